//! Keys of databases, storage and infrastructure tools.

use crate::catalogue::detector::Detector;
use crate::catalogue::secrets::vendor::{named, vendor};

pub(super) const ALL: &[Detector] = &[
    vendor("vault_token", "HashiCorp Vault token", &["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[0-9A-Za-z_-]{24,300}")
        .fires(&[concat!("hvs.", "8W6Ps7BQ5bg2lyszTdHJ55ljAgm4jm-v63Jv1oRLDNhkYbQdCE2WGxS3I-juhOvDBUlsWmjQJl7zUHkmDD1RBbap3a")])
        .passes(&["hvs.token", "hvs.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"]),
    named("vault_service_token", "HashiCorp Vault token of the older form, beside its name", &["vault"], r"s\.[0-9A-Za-z]{24}")
        .fires(&[concat!(r#"vault_token = ""#, "s.Vc4nP5CT5XE4Z1LFtbyhobPv", r#"""#), concat!(r#"{"vaultApiKey": ""#, "s.AO7D55Ag4Is23TZ2UsFE0Rzr", r#""}"#)])
        .passes(&[concat!("", "s.8Y7pa2B64QQ50PctzxMhvC0n")])
        .telling(),
    vendor("terraform_cloud_token", "Terraform Cloud API token", &[".atlasv1."], r"[0-9A-Za-z]{14}\.atlasv1\.[0-9A-Za-z_=-]{60,70}")
        .fires(&[concat!("2D7sV7ta8RJ44G", ".atlasv1.gK6ZQ2792cL7SEjbRIbJ-ffsFVujZmqISsoE3znOTF_E2rkGPLYpTSDE6Idr96riO")])
        .passes(&["x.atlasv1.y"])
        .reaching_back(14),
    vendor("databricks_token", "Databricks personal access token", &["dapi"], r"dapi[0-9a-f]{32}(?:-[0-9])?")
        .fires(&[concat!("dapi", "4664a7a2d75a897495b719a62ab85db8")])
        .passes(&["dapi", "dapi00000000000000000000000000000000"]),
    vendor("planetscale_token", "PlanetScale token, OAuth token or password", &["pscale_"], r"pscale_(?:tkn|oauth|pw)_[0-9A-Za-z_.=-]{32,64}")
        .fires(&[concat!("pscale_tkn_", "Db7tl9AS32B9qWicrnlHG0TfbnibrKuKsqpQhTEl")])
        .passes(&["pscale_tkn_"]),
    vendor("supabase_token", "Supabase access token or secret key", &["sbp_", "sb_secret_"], r"sbp_(?:v0_|oauth_)?[0-9a-f]{40}|sb_secret_[0-9A-Za-z_-]{31,36}")
        .fires(&[concat!("sbp_", "04573b363f4139a3a935df1433ac2d02dfc4a78c"), concat!("sb_secret_", "qz21_67L9Jv8GVP7-FP0ND_tzM-QIfX")])
        .passes(&["sbp_1", "sb_publishable_abc"]),
    vendor("neon_api_key", "Neon API key", &["napi_"], r"napi_[0-9a-z]{64}")
        .fires(&[concat!("napi_", "cd8hj57k5jj7yifxstly2825c66jbkkxlqmu9dh569oiacihucncgw5p83jzzphq")])
        .passes(&["napi_env", "napi_value"]),
    vendor("aiven_password", "Aiven service password or token", &["avns_"], r"AVNS_[0-9A-Za-z_-]{19}")
        .fires(&[concat!("AVNS_", "L76l95Jd3DV5QNMHjaN")])
        .passes(&["AVNS_"]),
    vendor("pinecone_api_key", "Pinecone API key", &["pcsk_"], r"pcsk_[0-9A-Za-z]{5,6}_[0-9A-Za-z]{50,64}")
        .fires(&[concat!("pcsk_", "TbBg5c_md7oA3Wk57V48XgNLXkcRMPHvEXBq5GN4p2aQACZPpt8SobPz3kSW6ugtl6XbwF")])
        .passes(&["pcsk_"]),
    vendor("mongodb_atlas_secret", "MongoDB Atlas service account secret", &["mdb_sa_sk_"], r"mdb_sa_sk_[0-9A-Za-z_-]{40}")
        .fires(&[concat!("mdb_sa_sk_", "RO9Y_3HT58d7ZgoFDr5Y9nA6Ktzxn10gkVNnRTww")])
        .passes(&["mdb_sa_sk_"]),
    vendor("clickhouse_cloud_key", "ClickHouse Cloud API secret", &["4b1d"], r"4b1d[0-9A-Za-z]{38}")
        .fires(&[concat!("ClickHouse = 4b1d", "v178a2Q93en53wR9eWNl5L38mumWJNViWQhwXf")])
        .passes(&["4b1d", "4b1d0f1e-2d3c-4b5a-6978-8796a5b4c3d2"])
        .needing_letters(),
    named("confluent_secret_key", "Confluent secret, beside its name", &["confluent"], r"[0-9A-Za-z+/]{64}|[0-9A-Za-z]{16}")
        .fires(&[concat!(r#"confluent_token = ""#, "zl26R9J66rf5T4juXz1ZKAQiUWajcbimb5dWtirdoVHSv84X5TUdIpyMotSQWKuJ", r#"""#), concat!(r#"{"confluentApiKey": ""#, "Aq9uv6wC4tY9SfJpdF3rD1WVZZ2Gh8CIKqDFVftHLA0h2uKn8LUvnDYsSAGax0xm", r#""}"#)])
        .passes(&[concat!("", "CA7BU2Hm2ZW4GtuyiCUzpIe4ugdbE2r9xT1cnA6kfmwBPSCgpkj9ZJsSNDqYg5TN")]),
    named("snowflake_token", "Snowflake token, beside its name", &["snowflake"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{80,300})"#)
        .fires(&[concat!(r#"snowflake_token = ""#, "St9ds5Dt4m73Br3L0r90vOvc9fFXgmlH7F1XYx41dGRbn4NovQwbFkSfqFtX9FHqBsEn4w32nqK5fEwKVZKzpA7OHGRacM2g4nQFQDYCnZYtzOm8LML78evt", r#"""#), concat!(r#"{"snowflakeApiKey": ""#, "Kn5fn3ra8Im5Oycb959N1MAdRe5AvP7JHS4uE5ojq6S178eXMJONjoGT8saNc5vlDxEBb0L2iXOolA9tMDf9jQ5vxV1UN1qKy88ySi5yu3lrDGiJq3ivU0P3", r#""}"#)])
        .passes(&[concat!("", "HT9tc5JH5983RwgBIZpvCI8RUHmYbnPzWE5sBvXfq9UQ0ZXApAMgwQlvdeFuyygCVU1dzi7KduFvAtq4sbxeujDOo7SQJqBQRFZQ73v5sUyuyVny3zy7yCSe")]),
    named("elastic_api_key", "Elastic API key, beside its name", &["elastic", "elasticsearch", "elastic_cloud"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z+/_-]{56,80}={0,2})"#)
        .fires(&[concat!(r#"elastic_token = ""#, "Fq4uP6fn3BL4LfcmCoDDKMonAMxTY6N6mI6s0G0YVZ5gtTQMh7zeAfKk6xYH", r#"""#), concat!(r#"{"elasticApiKey": ""#, "yk90Q7lr6yo8AyQQfmGYliYqYQZ2xoT9lHIuJ57jsRxJBywPnhnOusrV6Epe", r#""}"#)])
        .passes(&[concat!("", "M76qs5YO9vy547TvPN0RK6gg0NCrK4kuOtmoMnrXxm1u9jhWbaukrtf8SDfk")]),
    named("algolia_api_key", "Algolia API key, beside its name", &["algolia"], r"[0-9a-z]{32}")
        .fires(&[concat!(r#"algolia_token = ""#, "361b89009cf504513166bd2bb3291708", r#"""#), concat!(r#"{"algoliaApiKey": ""#, "adc6bcf7d15c29e0e63ce09245b3d6ab", r#""}"#)])
        .passes(&[concat!("", "bdf425e007e709a75cdc41c5c243aba5")]),
    vendor("age_secret_key", "Secret key of age encryption", &["age-secret-key-1"], r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}")
        .fires(&[concat!("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE")])
        .passes(&["AGE-SECRET-KEY-1"])
        .even_if_dull(),
    vendor("onepassword_service_token", "1Password service account token", &["ops_eyj"], r"ops_eyJ[0-9A-Za-z+/_-]{200,1200}={0,3}")
        .fires(&[concat!("ops_eyJ", "1934E3sK5tp9E6yQfff69H7uE5Fb0G4N2tJzu7dmxTuUB8UTkjS4g1AD9uq5McEJJuCbUVZudYcdcqwOw2JC1aubz5WE7iawKl9METNjRhthRuwK5726dnaoohSQKgDqEkbLzT5KbpxxQDtJrzmDt4W6S5lNvWy4onLUUTUoCI0GJfe2j1PVeCkxDshJ5Cc6ttHSWdtAJZR0VdefqRaIO3ncxnud8gjqZ5hHJpoU50fgIZPL5BL8zMWI4Z")])
        .passes(&["ops_eyJ"])
        .reaching(0, 1400),
    vendor("onepassword_secret_key", "1Password secret key or recovery code", &["a3-", "1prk-"], r"A3-[0-9A-Z]{6}-(?:[0-9A-Z]{11}|[0-9A-Z]{6}-[0-9A-Z]{5})-[0-9A-Z]{5}-[0-9A-Z]{5}-[0-9A-Z]{5}|1PRK(?:-[0-9A-Z]{4}){13}")
        .fires(&[concat!("A3-", "861OJ3-2D72KC-VZ7MZ-271C9-F8NII-MLYVB"), concat!("1PRK-", "MWAW-SMKQ-0O0W-ZAH6-8MA7-TK62-NQ03-97SM-BGTE-CD0T-X9SM-GZZL-Q3VI")])
        .passes(&["A3-SHEET"]),
    vendor("doppler_token", "Doppler token", &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."], r"dp\.(?:pt|ct|sa|scim|audit|st(?:\.[0-9a-z_-]{2,35})?)\.[0-9A-Za-z]{40,44}")
        .fires(&[concat!("dp.pt.", "Mq2dX5ME8TU8azJ2oNK9Ym89f9zEDe90qIYyVPDKMTV")])
        .passes(&["dp.pt.x"]),
    vendor("infracost_token", "Infracost API token", &["ico-"], r"ico-[0-9A-Za-z]{32}")
        .fires(&[concat!("ico-", "w55HE43L2cr24F129tXc19xjyB43umxV")])
        .passes(&["ico-arrow", "favico-"])
        .needing_digits(),
    vendor("pulumi_token", "Pulumi access token", &["pul-"], r"pul-[0-9a-f]{40}")
        .fires(&[concat!("pul-", "b9e4772c1f3ef9dcd81d27c2f426b44d3629b3bd")])
        .passes(&["pul-0f1e"]),
    vendor("prefect_api_token", "Prefect API token", &["pnu_", "pnb_"], r"pn[ub]_[0-9A-Za-z]{36}")
        .fires(&[concat!("pnu_", "cZ3Id87o93k5AhwzN5IujX4vO8VBZvjgtMfY")])
        .passes(&["pnu_"]),
    vendor("harness_token", "Harness access token", &["pat.", "sat."], r"[ps]at\.[0-9A-Za-z_-]{22}\.[0-9A-Za-z]{24}\.[0-9A-Za-z]{20}")
        .fires(&[concat!("pat.", "8c9x95Yq2x53vpm2SUqGvm.b18b5ad7c47d35aa43cbbb42.f56EO4cI3xZ4RyLrHfN4")])
        .passes(&["pat.com", "x.pat.y"]),
    vendor("octopus_api_key", "Octopus Deploy API key", &["api-"], r"API-[0-9A-Z]{26}")
        .fires(&[concat!("API-", "QD4C83SU8XL38NDYPVBSORHUHH")])
        .passes(&["API-CalculadoraDeInvestimentos", "api-key"])
        .needing_digits(),
    vendor("openshift_token", "OpenShift user token", &["sha256~"], r"sha256~[0-9A-Za-z_-]{43}")
        .fires(&[concat!("sha256~", "ZK4L13Sr7p34LS1T19TyH5Ny7m6XD_rEIqw-5vDiktw")])
        .passes(&["sha256~x"]),
    named("kubernetes_bootstrap_token", "Kubernetes bootstrap token, beside its name", &["kubeadm", "kubelet", "bootstrap", "kubernetes", "k8s"], r"[0-9a-z]{6}\.[0-9a-z]{16}")
        .fires(&[concat!(r#"kubeadm_token = ""#, "tsyxgk.lh6wi5p04463pw0s", r#"""#), concat!(r#"{"kubeadmApiKey": ""#, "wc62ak.h35zp9p35np8l6gg", r#""}"#)])
        .passes(&[concat!("", "clbpvb.kq7wh5qx8v15e045")])
        .telling(),
    vendor("defined_networking_token", "Defined Networking API token", &["dnkey-"], r"dnkey-[0-9A-Za-z=_-]{26}-[0-9A-Za-z=_-]{52}")
        .fires(&[concat!("dnkey-", "hX9qW7h98g2698aKuX_hY68xfr-q84315Ss46M2LGILL4vO6E-UeZpRHD4FL-9lzVS40LHGod-q4y4f")])
        .passes(&["dnkey-"]),
    vendor("tailscale_key", "Tailscale auth, API or OAuth key", &["tskey-"], r"tskey-(?:auth|api|client|scim|webhook)-[0-9A-Za-z]{6,20}(?:CNTRL)?-[0-9A-Za-z]{20,40}")
        .fires(&[concat!("tskey-auth-", "nG4pN6y79XE2CNTRL-JU2hj6kz55S5Xe2uu5zdoka0O04SLam1")])
        .passes(&["tskey-auth-"]),
    named("meraki_api_key", "Cisco Meraki API key, beside its name", &["meraki"], r"[0-9a-f]{40}")
        .fires(&[concat!(r#"meraki_token = ""#, "ef0abcf4c6cb2c3be070da19d22728143d6caa8b", r#"""#), concat!(r#"{"merakiApiKey": ""#, "4e85cb8ed9ac27aea733038a36703799625d8859", r#""}"#)])
        .passes(&[concat!("", "99e5f219269511327630b98bc0b780499021fefb")]),
    vendor("authress_key", "Authress service client access key", &["sc_", "ext_", "scauth_", "authress_"], r"(?:sc|ext|scauth|authress)_[0-9a-z]{5,30}\.[0-9a-z]{4,6}\.acc[_-][0-9a-z-]{10,32}\.[0-9A-Za-z+/_=-]{30,120}")
        .fires(&[concat!("sc_", "rz61o5kh9nn4.qzfn.acc_co9yq8rz78730q.4o41-2fU68v8f7h7fmxDuTMxUWLMk-rXACV1YYxX")])
        .passes(&["sc_x", "misc_table"]),
    vendor("intra42_secret", "Intra 42 client secret", &["s-s4t2"], r"s-s4t2(?:ud|af)-[0-9a-f]{64}")
        .fires(&[concat!("s-s4t2ud-", "1fb556b1264b8293a655a278a45b263927a97b18b3ed14d4eb656a03ba78dcb4")])
        .passes(&["s-s4t2ud-"]),
    vendor("settlemint_token", "SettleMint token", &["sm_pat_", "sm_aat_", "sm_sat_"], r"sm_(?:pat|aat|sat)_[0-9A-Za-z]{16}")
        .fires(&[concat!("sm_pat_", "x63217v54e85ptjg")])
        .passes(&["sm_pat_"]),
    vendor("elastic_cloud_api_key", "Elastic Cloud API key", &["essu_"], r"essu_[0-9A-Za-z+/_-]{60,200}={0,2}")
        .fires(&[concat!("essu_", "qDeY91l6e6knyIUvKggIsWEpibpzPZQBHrxqzUqqInUlZWXk6prTwLqCaeFth8KXiKSjqNG2xtAQpKrnLAZ1KMTdbey=")])
        .passes(&["essu_"]),
    vendor("astra_token", "DataStax Astra token", &["astracs:"], r"AstraCS:[0-9A-Za-z]{20,30}:[0-9a-f]{64}")
        .fires(&[concat!("AstraCS:", "LuEyAa8K1eMghljyVy7Abx1Q:d4575b7ae039087430ab6c540abf77f2945272d32e8cb24600d5187f6ad1fc67")])
        .passes(&["AstraCS:"]),
    vendor("cockroach_cloud_key", "CockroachDB Cloud API key", &["ccdb1_"], r"CCDB1_[0-9A-Za-z]{22}_[0-9A-Za-z]{40}")
        .fires(&[concat!("CCDB1_", "uHJ2axzJnLFp5pEJPU08xy_atiDVFPLqEohkcxNhtgQWpbC4tomiVn0Z1Rjif7o")])
        .passes(&["CCDB1_"]),
    vendor("configcat_sdk_key", "ConfigCat SDK key", &["configcat-sdk-1/"], r"configcat-sdk-1/[0-9A-Za-z_-]{22}/[0-9A-Za-z_-]{22}")
        .fires(&[concat!("configcat-sdk-1/", "51jGj08LWyYccdzEEe8b7a/Zq8VW1HeRwTz8ZYcQLz88z")])
        .passes(&["configcat-sdk-1/"]),
    vendor("devcycle_server_key", "DevCycle server key", &["dvc_server_"], r"dvc_server_[0-9A-Za-z_]{20,80}")
        .fires(&[concat!("dvc_server_", "ZMe82UIxJpUDpT0U8MgNebFn0cMQsnOTSxKnQ7uQy6wE")])
        .passes(&["dvc_server_"])
        .needing_digits(),
    vendor("docker_swarm_token", "Docker Swarm join token or unlock key", &["swmtkn-1-", "swmkey-1-"], r"SWMTKN-1-[0-9a-z]{50}-[0-9a-z]{25}|SWMKEY-1-[0-9A-Za-z+/]{43}")
        .fires(&[concat!("SWMTKN-1-", "9s667xx6a8wxzxcxf124vcxrljh5whxedu3q3dkiupwk35vji0-b2qad8drnp1bpj9vmoe7qiz5x"), concat!("SWMKEY-1-", "A5741FY8pPbSVsm8Vj9O7qUpN55uUEx2EW4hdPDbntd")])
        .passes(&["SWMTKN-1-", "SWMKEY-1-"]),
    vendor("zuplo_api_key", "Zuplo API key", &["zpka_"], r"zpka_[0-9a-z]{32}_[0-9a-f]{8}")
        .fires(&[concat!("zpka_", "w1tz5xrypzccla2owsgq9sjw2tbpbbbg_22445a8e")])
        .passes(&["zpka_"]),
    vendor("unkey_root_key", "Unkey root key", &["unkey_"], r"unkey_[0-9A-Za-z]{20,32}")
        .fires(&[concat!("unkey_", "saUHspjk49w7KrGMrva68N43")])
        .passes(&["unkey_", "unkey_id"])
        .needing_digits(),
    vendor("salad_cloud_key", "SaladCloud API key", &["salad_cloud_"], r"salad_cloud_[0-9A-Za-z]{1,7}_[0-9A-Za-z]{20,235}")
        .fires(&[concat!("salad_cloud_", "user_mibaNVt2ma7AYl2hSO6oMxRRgo6Vkm9DVgYLakB2")])
        .passes(&["salad_cloud_", "salad_cloud_api_key"])
        .needing_digits(),
];
