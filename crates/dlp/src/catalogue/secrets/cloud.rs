//! Keys of cloud platforms and hosters.

use crate::catalogue::detector::Detector;
use crate::catalogue::secrets::{
    published::unpublished,
    vendor::{named, vendor},
};

pub(super) const ALL: &[Detector] = &[
    vendor("aws_bedrock_api_key", "Amazon Bedrock API key", &["absk", "bedrock-api-key-"], r"ABSK[0-9A-Za-z+/]{100,280}={0,2}|bedrock-api-key-[0-9A-Za-z+/=_-]{16,400}")
        .fires(&[concat!("bedrock-api-key-", "YmVkcm9jay5hbWF6b25hd3MuY29t"), concat!("ABSK", "wJ5kR8ax5US5vUYSSoF0j8kPtlDAVaS3dBzwqHVVX363HcCF78Y97o/UjYp7RNmxNyHaYV9NOd8r0q8C+mSiWMFGdfEv7o9/NMhH/jfNhzgBfe")])
        .passes(&["bedrock-api-key-", "absk"]),
    vendor("aws_mws_key", "Amazon marketplace web service key", &["amzn.mws."], r"amzn\.mws\.[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("amzn.mws.", "55998523-f8a6-4e76-a8d3-705797a86cb1")])
        .passes(&["amzn.mws."]),
    Detector { check: unpublished, ..vendor("google_api_key", "Google API key", &["aiza"], r"AIza[0-9A-Za-z_-]{35}") }
        .fires(&[concat!("key=AIza", "dr63V3Xj7CO3Lgk37eI7O2pjVwp6sc_VEn2")])
        .passes(&["AIzaSy", "AIzaXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX"]),
    vendor("google_oauth_token", "Google OAuth access or refresh token", &["ya29.", "1//0"], r"ya29\.[0-9A-Za-z_.-]{20,2044}|1//0[0-9A-Za-z_-]{40,120}")
        .reaching(0, 2100)
        .fires(&[concat!("ya29.", "YL9Ta4L-39y8YL-9S4xDQNMAAL5QaDtpc6RzGKXi5Asa"), concat!("1//0", "gO79R7Ez81J8LEXa0sO40x9ehcZGvQfZnHg5wplQ70MxrbgPN9A5Ps05abwe")])
        .passes(&["ya29.short", "https://x/1//0"]),
    vendor("google_client_secret", "Google OAuth client secret", &["gocspx-"], r"GOCSPX-[0-9A-Za-z_-]{28}")
        .fires(&[concat!("GOCSPX-", "CF7vU5dF48D9klH7MDj_t5iovL-k")])
        .passes(&["GOCSPX-"]),
    vendor("azure_client_secret", "Microsoft Entra client secret", &["q~"], r"[0-9A-Za-z_~.-]{3}[0-9]Q~[0-9A-Za-z_~.-]{31,34}")
        .fires(&[concat!("secret: fK38", "Q~r86rr8ZY9Rb71DtfpSWNFSpHM3FFHdntbR")])
        .passes(&["8Q~", "fK38Q~short"])
        .reaching_back(4),
    vendor("azure_devops_token", "Azure DevOps personal access token", &["azdo"], r"[0-9A-Za-z]{76}AZDO[0-9A-Za-z]{4}")
        .fires(&[concat!("po2Zv9iP7jf2dsOncy62KibmWLA0tPNq18zPzRZ5YRBkYLXVbth5cmJTEvNhjbZhptoYLAlOnLY4", "AZDOz1Zs")])
        .passes(&["AZDO", "x AZDO1234"])
        .reaching_back(80),
    vendor("azure_service_key", "Azure key with a marker of its service: storage, service bus, event hub, relay, event grid, Cosmos DB, search, functions, registry, Redis, API management", &["+ast", "+asb", "+aeh", "+arm", "+amc", "ACDb", "AIoT", "APIM", "AzCa", "AzFu", "AzSe", "AZEG", "+acr", "+aba"], r"[0-9A-Za-z+/]{76}(?:\+ASt|ACDb|\+ABa|\+AMC|APIM)[0-9A-Za-z+/]{5}[AQgw]==|[0-9A-Za-z+/]{33}(?:\+ASb|\+AEh|\+ARm|AIoT|AzCa|AZEG)[A-P][0-9A-Za-z+/]{5}=|[0-9A-Za-z]{42}AzSe[A-D][0-9A-Za-z]{5}|[0-9A-Za-z_-]{44}AzFu[0-9A-Za-z_-]{5}[AQgw]==|[0-9A-Za-z+/]{42}\+ACR[A-D][0-9A-Za-z+/]{5}")
        .fires(&[concat!("key gb3xt4Vu65H2pta4OKzpzVwIayh43vh7yViqWEPPli", "AzSeAHsxPv"), concat!("rw8XK7rh7RF8s2K9ffDVS35PnmbjUPULn", "+ASbKE14vT=")])
        .passes(&["AzSeA12345", "+ASb", "Azure APIM gateway"])
        .at_any_edge()
        .reaching_back(80),
    vendor("azure_sas_token", "Azure shared access signature in an address", &["sig="], r"sig=[0-9A-Za-z%+/]{40,64}(?:%3[dD]|=)")
        .fires(&[concat!("https://x.blob.core.windows.net/c?sv=2024-11-04&sig=", "tV2AA64v8nc7lOch846IC4ZulAqpNx9DHG6HioLgyHS%3D")])
        .passes(&["sig=abc", "config=1"]),
    vendor("digitalocean_token", "DigitalOcean token", &["doo_v1_", "dop_v1_", "dor_v1_"], r"do[opr]_v1_[0-9a-f]{64}")
        .fires(&[concat!("dop_v1_", "9c38bbc3acb65862316574debf8b190af4c54f7ff870061c59b0bc2d3c92b127")])
        .passes(&["dop_v1_0f1e2d3c"]),
    vendor("alibaba_access_key", "Alibaba Cloud access key id", &["ltai"], r"LTAI[0-9A-Za-z]{17,21}")
        .fires(&[concat!("LTAI", "l163q7Qv7lG6kObq9eRD")])
        .passes(&["LTAI5t", "voltaire"])
        .needing_digits(),
    named("alibaba_secret_key", "Alibaba Cloud secret key, beside its name", &["alibaba", "aliyun"], r"[0-9A-Za-z]{30}")
        .fires(&[concat!(r#"alibaba_token = ""#, "zX5cB6hy6126yuAA2V4MBvAfAsdj4Z", r#"""#), concat!(r#"{"alibabaApiKey": ""#, "su3vR6sE7SF3vzafAVLkpuHZ6JGOIB", r#""}"#)])
        .passes(&[concat!("", "iF3Ap2Bu9k16YZ4e1zX8R6YCibFhme")]),
    vendor("tencent_secret_id", "Tencent Cloud secret id", &["akid"], r"AKID[0-9A-Za-z]{32}")
        .fires(&[concat!("AKID", "z69xA5WD2xi3Nz7f7i0PsuhM3JQIC5EW")])
        .passes(&["AKID"])
        .needing_digits(),
    named("ibm_cloud_api_key", "IBM Cloud API key, beside its name", &["ibm", "iam", "cloud_api", "cloud-api", "cloudapi", "cloud_iam", "cloud-iam"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{44})"#)
        .fires(&[concat!("ibm_api_key := ", "bi8OS6Qt9oj64emvLwlpVw0RI-lFk5sPrQE2G4kZmabh"), concat!(r#"CLOUD_IAM_API_KEY:""#, "Mm3rD4Y75gM42IYvackVjin9P9vlM1HNcnNGap7hvqrB", r#"""#)])
        .passes(&[concat!("", "XG52T5wH2-A6F5CDuJu2VDaV-256PCLB8dQqlm1ynrfX")]),
    named("ibm_cos_hmac_key", "IBM Cloud object storage secret, beside its name", &["ibm", "cos", "secret_access_key", "secret-access-key"], r"[0-9a-f]{48}")
        .fires(&[concat!(r#"ibm_cos_secret_key = ""#, "2106800747fd66a43ef18fe3eef28ad442db86ff4304e4f0", r#"""#)])
        .passes(&[concat!("", "41b18dfa02eb04d09e47d0d9178b68cd106ed38bc5076341")]),
    named("softlayer_api_key", "SoftLayer API key, beside its name", &["softlayer", "sl_api", "sl-api", "slapi"], r"[0-9a-z]{64}")
        .fires(&[concat!("softlayer_api_key := ", "od4355zx6a53losmf5snj6dkkhujgfe2kt52pe4is5y8ppjcj8po08scblyz91iy"), concat!("sl-api-key=", "jt4683903ec7h27fkw2zcu5klo4by0fiphyca7y520rarf88yspzr2pfr6njgo37")])
        .passes(&[concat!("", "8o2xd2s13mf9gqfqkusinmy2e3ij2o5gticn0di32kzwd4unhtb9m61rcf5p8alv")])
        .telling(),
    vendor("cloudflare_token", "Cloudflare user or account token, or global key", &["cfk_", "cfut_", "cfat_"], r"cf(?:k|ut|at)_[0-9A-Za-z_-]{40,64}")
        .fires(&[concat!("cfut_", "MK67H6b24Q38qP5FNpJ8Adi085BrkGDlVrjjgez1ZZtAK6U6")])
        .passes(&["cfut_x", "cfk_"]),
    named("cloudflare_api_token", "Cloudflare token or key of the older form, beside its name", &["cloudflare", "cf_api", "cfapi"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{40}|[0-9a-f]{37})"#)
        .fires(&[concat!(r#"cloudflare_token = ""#, "Eg3Nm2_E9Wz2KZSs2wvnS2mKVIQFObVyThCtUai1", r#"""#), concat!(r#"cloudflare: ""#, "396e54a22bf8fe7dc6ab35568a7bf24e65a7e", r#"""#)])
        .passes(&[concat!("", "jm3zI9L54W15tNEgSJwfYVBuS_Yr1ohN294lGqJ9")])
        .telling(),
    vendor("cloudflare_origin_ca_key", "Cloudflare origin CA key", &["v1.0-"], r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}")
        .fires(&[concat!("v1.0-", "c81628109f845238a7a16733-43ce1fc77da881be891c06cff6b2ffa5dcfd3b445dd788d3f534ce03ece37f5a3a460b0c2e13c68c974d986efde2a3b9851ae7fc32a66c628986b8bde9aecb089ea5aefe2ee3caab83")])
        .passes(&["v1.0-beta", "v1.0-0f1e2d3c4b5a69788796a5b4"]),
    vendor("heroku_api_key", "Heroku API key", &["hrku-"], r"HRKU-[0-9A-Za-z_-]{58,64}|HRKU-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("HRKU-AA", "nd40Z89D4Gn9wRyS23B7-PCzU8iwji5Fr4kbTA_yKXmhY0crHVAf1NqMHp")])
        .passes(&["HRKU-"]),
    named("heroku_uuid_key", "Heroku API key of the older form, beside its name", &["heroku"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"heroku_token = ""#, "374d9343-943d-41bf-a352-0a27db4e8181", r#"""#), concat!(r#"{"herokuApiKey": ""#, "d304f000-f6d4-4690-a6e6-6f9d8bb55817", r#""}"#)])
        .passes(&[concat!("", "e78a6ec0-15ba-4c4e-a778-c76c48c5c202")]),
    vendor("flyio_token", "Fly.io access token", &["fo1_", "fm1r_", "fm1a_", "fm2_"], r"fo1_[0-9A-Za-z_-]{43}|fm1[ar]_[0-9A-Za-z+/]{100,700}={0,3}|fm2_[0-9A-Za-z+/]{100,700}={0,3}")
        .fires(&[concat!("fo1_", "L96Zp83T6Bu50xi8gQYBS3_Lsoxvk80xkZ3m_CzPDyg")])
        .passes(&["fo1_", "fm2_x"]),
    named("linode_token", "Linode token, beside its name", &["linode"], r"[0-9a-f]{64}")
        .fires(&[concat!(r#"linode_token = ""#, "f65742197c7876e0f8aa3cb3938672eaa0c626a9a57ea4638b805787eabf6c91", r#"""#), concat!(r#"{"linodeApiKey": ""#, "77a91c19b52cdae914a3dff535a2e4f1d4816d4157e313bdc696259cdeda90c0", r#""}"#)])
        .passes(&[concat!("", "23d6fa2834439858cfbb75e33132a68c8586203ce1d11937d7fc6c8b33eb8a4c")]),
    named("vultr_api_key", "Vultr API key, beside its name", &["vultr"], r"[0-9A-Z]{36}")
        .fires(&[concat!(r#"vultr_token = ""#, "FP5M92OT5LI3AQOPBF2A0VDDVN1CLR1QEHRK", r#"""#), concat!(r#"{"vultrApiKey": ""#, "2E7B25XC7FL8T3SZN0B9MJT8FIMV6V1S5EMG", r#""}"#)])
        .passes(&[concat!("", "VU4U88F37LM34GTYE7663P321R9CXW9F3UUV")]),
    named("hetzner_api_token", "Hetzner Cloud token, beside its name", &["hetzner", "hcloud"], r"[0-9A-Za-z]{64}")
        .fires(&[concat!(r#"hetzner_token = ""#, "sP6FX4hk3JX5dpzoxvkkBJmmfjXOt1F7GaXv4h58oeuP1AsqWmECncJohv5XppNw", r#"""#), concat!(r#"{"hetznerApiKey": ""#, "PZ4TL50Y4yr2Ko0VceBk17AposXMHyt01gj04XxnwTMTVRb7fhqIw0mBRNAZ4gZi", r#""}"#)])
        .passes(&[concat!("", "aA2u83o15JH3Xnjf4El6DjA6HAqpyukO2U8rd6DR2s1KBxQaMyXS4HDri3Tu7I5i")]),
    vendor("scaleway_access_key", "Scaleway access key id", &["scw"], r"SCW[0-9A-Z]{17}")
        .fires(&[concat!("SCW", "RQ3ST8WP73P2LNX33")])
        .passes(&["SCW_ACCESS_KEY", "scwx"])
        .needing_digits(),
    named("scaleway_secret_key", "Scaleway secret key, beside its name", &["scaleway", "scw"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"scaleway_token = ""#, "698e4cd6-ff16-46f1-a58c-9c2fa6936df1", r#"""#), concat!(r#"{"scalewayApiKey": ""#, "1841bff5-fdf3-4a64-afc0-c154cc30e3bd", r#""}"#)])
        .passes(&[concat!("", "9a327e0a-7ac7-4366-a3ac-66ffd41b9f15")]),
    vendor("netlify_token", "Netlify token", &["nfp_", "nfc_", "nfo_", "nfu_"], r"nf[pcou]_[0-9A-Za-z_]{36,40}")
        .fires(&[concat!("nfp_", "0I2SY8dp48i82VXRtX4uCwjpjiK7EbNO48Xk")])
        .passes(&["nfp_"]),
    named("netlify_access_token", "Netlify token of the older form, beside its name", &["netlify"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z=_-]{40,46})"#)
        .fires(&[concat!(r#"netlify_token = ""#, "Hv4Hm9YJ6Se2ERiPot5dYHOxAjhPHKBKI24Trq2l29l", r#"""#), concat!(r#"{"netlifyApiKey": ""#, "Cv4fV2Jr78q40IREtMcst-m8XSCeRQ2xLwPDu33_wSQ", r#""}"#)])
        .passes(&[concat!("", "hP35H2cH9Sf4aueVbqiURz7KxdtDEQCdTSTTcQKINyP")]),
    vendor("vercel_token", "Vercel token", &["vcp_", "vci_", "vca_", "vcr_", "vck_"], r"vc[piark]_[0-9A-Za-z]{24,64}")
        .fires(&[concat!("vcp_", "SZ8HG4Fy4aq4BBtbuX7SA6z5gUvdi8VOd01zo4bCGjKR1CJO01foXrZZ")])
        .passes(&["vcp_", "vca_x"]),
    vendor("render_api_key", "Render API key", &["rnd_"], r"rnd_[0-9A-Za-z]{28,40}")
        .fires(&[concat!("rnd_", "dk6Pc5Jr48X4LMIBXvOu2QeKjtWpj01r")])
        .passes(&["rnd_state", "rnd_"])
        .needing_digits(),
    named("railway_token", "Railway token, beside its name", &["railway"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"railway_token = ""#, "3d67e45f-1f6b-4df0-a66e-b3aa64c2b8b2", r#"""#), concat!(r#"{"railwayApiKey": ""#, "80f97551-f899-470d-aa63-e931cdaa146e", r#""}"#)])
        .passes(&[concat!("", "6b7de660-30bd-4d17-a6c2-bca1bca1c9df")]),
    vendor("scalingo_token", "Scalingo token", &["tk-us-"], r"tk-us-[0-9A-Za-z_-]{48}")
        .fires(&[concat!("tk-us-", "bR6es7k03PH7jB_K41loq-HCHRD1vJF3B1qxu3FzJ4jxZPY1")])
        .passes(&["tk-us-east"]),
    vendor("azure_annotated_key", "Azure key in the common annotated form: AI services, App Configuration, Event Grid, Maps, Communication Services and others", &["JQQJ9"], r"[0-9A-Za-z]{52}JQQJ9[9DH][0-9A-Za-z][A-L][0-9A-Za-z]{16}[A-Za-z][0-9A-Za-z]{7}(?:[0-9A-Za-z]{2}==)?")
        .fires(&[concat!("Y8wtULHvYJj3mZVbwT8AObCW06BaBAtxdinT4PEiZv7yQI6bctvA", "JQQJ99ECfdawoA7072YNAAAAACOGZbkt")])
        .passes(&["JQQJ99"])
        .at_any_edge()
        .reaching_back(52),
    vendor("google_express_key", "Google Cloud express mode API key", &["aq.ab8r"], r"AQ\.Ab8R[0-9A-Za-z_-]{46,50}")
        .fires(&[concat!("AQ.Ab8R", "G6vrkP3nmqnNyAwojXP4fl-5jVAzMkXsczhrvsptposume")])
        .passes(&["AQ.Ab8R"]),
    vendor("google_hmac_key", "Google Cloud Storage HMAC access id of a service account", &["goog1e"], r"GOOG1E[0-9A-Z]{55}")
        .fires(&[concat!("GOOG1E", "6F2HR21TF3T7C1QDH25WUSSLK7HBKAUXNDY7JPLSDCAZKBE7FXMFW2J")])
        .passes(&["GOOG1E"])
        .needing_digits(),
    vendor("firebase_server_key", "Firebase Cloud Messaging server key", &[":apa91b"], r"AAAA[0-9A-Za-z_-]{7}:APA91b[0-9A-Za-z_-]{134}")
        .fires(&[concat!("AAAAu1bK_9s", ":APA91b6SfNfzjhcrwnGJo4wEkxt0fMcHJLr5d021Ht4GqLVHLeJ7dAPytaujRktDskpihamM9aQwiuXEd--IGJdnm-acz_6ZY_Qxjs3SPcLQEP7rNqaG9qyirEQW8N7VN82f8-PwyxZt")])
        .passes(&[":APA91b", "AAAA:APA91b"])
        .reaching_back(11),
    vendor("baidu_cloud_key", "Baidu Cloud API key", &["bce-v3/"], r"bce-v3/ALTAK(?:SP)?-[0-9A-Za-z]{21}/[0-9a-f]{40}")
        .fires(&[concat!("bce-v3/ALTAK-", "4w6Ivpp7c4ta4PVsY41ak/da16b2d8cb29fc3a07412a2ccef6f160ccb492af")])
        .passes(&["bce-v3/ALTAK-"]),
    vendor("volcengine_access_key", "Volcengine access key id", &["aklt"], r"AKLT[0-9A-Za-z]{40,60}")
        .fires(&[concat!("AKLT", "Dv8SOU2T6PdlKzYxS2cPFUWw9I1rLPnyTlao5UZonVA")])
        .passes(&["AKLT"])
        .needing_digits(),
    vendor("upcloud_token", "UpCloud API token", &["ucat_"], r"ucat_[0-9A-Z]{26}")
        .fires(&[concat!("ucat_", "DR95CRV2FA1FRA62QW5AEXAN0J")])
        .passes(&["ucat_"]),
    vendor("vercel_blob_token", "Vercel Blob read and write token", &["vercel_blob_rw_"], r"vercel_blob_rw_[0-9A-Za-z]{16}_[0-9A-Za-z]{30,64}")
        .fires(&[concat!("vercel_blob_rw_", "59M9pNWJpKQG6wLC_4jcUQFu3Mj0TOvnpOUL5ZeHJSe3PVJ")])
        .passes(&["vercel_blob_rw_", "vercel_blob_rw_token"]),
    vendor("entra_refresh_token", "Refresh token of Microsoft Entra", &[".agaba"], r"[01]\.A[0-9A-Za-z_-]{30,90}\.AgABA[0-9A-Za-z_-]{100,1800}")
        .fires(&[concat!("0.A", "XWYbLKOFty541RI3YH_OFKuu0ueDTA34dZiijFW-WEMP5iMdxssW2wrMm-QrI.AgABAwEAAADW38JOvi4D4FiItJsYBzsBR0aSyCccU4Eb12_1QF-N8ccLp5FY1Af3Yo0wwjVvDiWeqIdShJcf09dKxD-hLF56wHu1NbLPAxeN_c2u3RKmk1Qe04xZnQymYlOqjQ9Hji5bTeBn5wfIZNeRRBlFmMcikdMS3cY6lBkSQTXTmdqr5TqmhIueR_k3Uc1OyvD2v3_rW8XNJHsTqHNFLvt6hH1VgSbezNy8XKOX1I5hQGyOmZUU2LX0")])
        .passes(&[".AgABA", "0.Axxx.AgABA"])
        .reaching(96, 2000),
    named("azure_subscription_key", "Azure key of a subscription, beside its name", &["subscription-key", "subscription_key"], r"[0-9a-f]{32}")
        .fires(&[concat!("Ocp-Apim-Subscription-Key: ", "16103485a1c292be01e4fc2d031c4188"), concat!(r#"{"subscription_key": ""#, "5221c25f6aaf76fdc6c369aad6b68b75", r#""}"#)])
        .passes(&[concat!("", "b48e99f73f289509dddc3ebffc5ccd80"), "subscription_key_id = 3"])
        .telling(),
    named("azure_devops_old_token", "Azure DevOps personal access token of the older form, beside its name", &["ado_pat", "ado_token", "azure_devops", "azure devops", "azuredevops", "azure-devops"], r"[a-z2-7]{52}")
        .fires(&[concat!(r#"ado_pat = ""#, "ts44beyvxrhwwjh4jkd7svwfqilv3b6g3omc6g3bfbdw75rzemxo", r#"""#), concat!(r#"{"azureDevopsToken": ""#, "cklnrwtdfmx46ph64y25gxkh7osuqv6xuobcbpb3fn3o7ptvphv7", r#""}"#)])
        .passes(&[concat!("", "7lz62jlbcdkbx7q5fr3g5cix5lgkrshxqaksr4o2qvla6lcb3ynz")])
        .telling(),
];
