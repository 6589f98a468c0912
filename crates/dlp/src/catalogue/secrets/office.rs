//! Tokens of project, customer and document services.

use crate::catalogue::detector::Detector;
use crate::catalogue::secrets::vendor::{named, vendor};

pub(super) const ALL: &[Detector] = &[
    vendor("linear_token", "Linear API key or OAuth token", &["lin_api_", "lin_oauth_"], r"lin_(?:api|oauth)_[0-9A-Za-z]{40,64}")
        .fires(&[concat!("lin_api_", "dI3O03Vt6yS3aTy1Z4BdDmQN9WaIVuqpC8MMhPi4")])
        .passes(&["lin_api_key"]),
    named("linear_client_secret", "Linear client secret, beside its name", &["linear"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"linear_token = ""#, "16dd7ecaac9a940b5ac18ec492debbf3", r#"""#), concat!(r#"{"linearApiKey": ""#, "2c30149381c205515372a92e4e2ac770", r#""}"#)])
        .passes(&[concat!("", "188be9d230aa576de3f726cf2a12043a")]),
    vendor("notion_token", "Notion integration token", &["ntn_", "secret_"], r"ntn_[0-9]{11}[0-9A-Za-z]{35}|secret_[0-9A-Za-z]{43}")
        .fires(&[concat!("ntn_", "31848599039H23CW2sX68D8NjHzNXDPCOCuSCfCEyRDAVH")])
        .passes(&["ntn_1", "secret_key"])
        .needing_digits(),
    vendor("airtable_token", "Airtable personal access token", &["pat"], r"pat[0-9A-Za-z]{14}\.[0-9a-f]{64}")
        .fires(&[concat!("pat", "oP4hF2U63gg9mD.b930bcd62707ccbff0f55cd8b1b48ca480bc62b9971da6f8b9576e5ece5c7d02")])
        .passes(&["pat", "patient.record"]),
    named("airtable_api_key", "Airtable API key of the older form, beside its name", &["airtable"], r"[0-9A-Za-z]{17}")
        .fires(&[concat!(r#"airtable_token = ""#, "key0p8Ps9K37iQ652", r#"""#), concat!(r#"{"airtableApiKey": ""#, "keyzV7ri5nS2k48rT", r#""}"#)])
        .passes(&[concat!("", "key6x4Fu9Ag60q6GK")]),
    vendor("asana_token", "Asana personal access token", &["1/", "2/"], r"[12]/[0-9]{13,20}(?:/[0-9]{13,20})?:[0-9a-f]{32}")
        .fires(&[concat!("2/", "3400025419546798/1731296361845351:b0457c2732a26d7e612f035e03034678")])
        .passes(&["1/2", "2/3"]),
    named("asana_secret", "Asana client id or secret, beside its name", &["asana"], r"[0-9a-z]{32}|[0-9]{16}")
        .fires(&[concat!(r#"asana_token = ""#, "6t5hi7pn9od3l1gpd6jd89nsam3ayr6t", r#"""#), concat!(r#"{"asanaApiKey": ""#, "2i98p86g37o5liigr7tz6ime1dr9sjwt", r#""}"#)])
        .passes(&[concat!("", "oo2e89gq9407b507zu68h0smozcf3rie")]),
    named("zendesk_token", "Zendesk token, beside its name", &["zendesk"], r"[0-9A-Za-z]{40}")
        .fires(&[concat!(r#"zendesk_token = ""#, "XA9Cc4A69pf85EWfrLvxPDymDCxx0oHlz8I2YFtK", r#"""#), concat!(r#"{"zendeskApiKey": ""#, "Hm2hj5dg81n7nLdA4fJcDFaevhrKtdlIF3WURCET", r#""}"#)])
        .passes(&[concat!("", "6U4LB9lg9Gw5gHqjhdk32kwwQFMsvI4KW5aCiA3G")]),
    vendor("hubspot_token", "HubSpot private app token", &["pat-"], r"pat-(?:na|eu|ap)[0-9]-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("pat-na1-", "9e6eb136-dc41-4231-a887-a351e3de842c")])
        .passes(&["pat-na1-", "pattern"]),
    named("hubspot_api_key", "HubSpot API key, beside its name", &["hubspot"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"hubspot_token = ""#, "cb38d4e6-2852-4b6b-a865-29fb8e84b5b4", r#"""#), concat!(r#"{"hubspotApiKey": ""#, "3a239f0a-4fd8-4f27-a567-ca6fe01e0ad3", r#""}"#)])
        .passes(&[concat!("", "0e564fee-0fea-4efd-ab22-4d0a4a7666b1")]),
    vendor("dropbox_token", "Dropbox access token", &["sl."], r"sl\.(?:u\.)?[0-9A-Za-z_=-]{130,1400}")
        .fires(&[concat!("sl.", "Cy2ox8nL2bS7uJagAahKIo_GJ4-hVVTTPI6YWAMmo77ktdF98VKfdaMHylqsyef38QHNVZcg1H0gnIUC0L6mj43ARthXljphmmyjX_27frXopjdvgJooSba1FnUTpxkcN7tzp_8M")])
        .passes(&["sl.no", "sl.example"])
        .reaching(0, 1500),
    named("dropbox_secret", "Dropbox app secret or long-lived token, beside its name", &["dropbox"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z]{11}AAAAAAAAAA[0-9A-Za-z_=-]{43}|[0-9a-z]{15})"#)
        .fires(&[concat!(r#"dropbox_token = ""#, "032rf8q25xs2czy", r#"""#), concat!(r#"{"dropboxApiKey": ""#, "oo5tz7ab5ov8hpw", r#""}"#)])
        .passes(&[concat!("", "3t36d9xm56x81ex")]),
    named("okta_token", "Okta API token, beside its name", &["okta"], r#"(?:^|[\s"'`=:>(,\[])(00[0-9A-Za-z_=-]{40})"#)
        .fires(&[concat!(r#"okta_token = ""#, "00wj63v5bV7OY562_D4-3UmIr71bpIYUfqy44KJ3gD", r#"""#), concat!(r#"{"oktaApiKey": ""#, "00WB5Hw7Lk4qr2vbxOOG_iEhyT8joe8JYkpqG_5OGH", r#""}"#)])
        .passes(&[concat!("", "00Pz4cQ8_-4qZ55sRfLM3SxpE95jzuagV_NoturKAE")])
        .telling(),
    named("auth0_secret", "Auth0 client secret, beside its name", &["auth0"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{64})"#)
        .fires(&[concat!(r#"auth0_token = ""#, "9K5qm5Hc7aI4p75iaNAiJDv4YbhN0w4ZEBk5BPLileFs7-dBNdGBjliv7eSEQ_DV", r#"""#), concat!(r#"{"auth0ApiKey": ""#, "jq4bg2ly8Ur5F7UPdo8FARMM_FyiFvP6Z8a18xemteVTt_G4EvTL0Q-HiBO0Efq2", r#""}"#)])
        .passes(&[concat!("", "yZ54O7Jk5d35TRLQiMwSpYBXiuy89xWVdY6JKgoYZc2U5Wb9CBVgpWKm0pyWYIR4")]),
    vendor("salesforce_token", "Salesforce session or refresh token", &["00d", "5aep"], r"00D[0-9A-Za-z]{12}(?:[0-9A-Za-z]{3})?![0-9A-Za-z._]{80,140}|5Aep[0-9A-Za-z._]{60,100}")
        .fires(&[concat!("00D", "4d4DV9RP3qp4!KO9Xh96F2Tz9HqM0w2LHmbAh5cjOtUrg5bnkuM8vEIIXDslwXhBuJkYxOPQ3CyT6Vh6OeXIjkrv2QUymZqIBICwrjkugh4wP")])
        .passes(&["00D", "0x00d1"]),
    vendor("typeform_token", "Typeform token", &["tfp_"], r"tfp_[0-9A-Za-z_.=-]{40,64}")
        .fires(&[concat!("tfp_", "vG4qn6g24Zq5CnsWZfQrh1T9EXccagEPIQG80qYo7hhqNnSy6Th1ohNx0YJ")])
        .passes(&["tfp_"]),
    vendor("frameio_token", "Frame.io token", &["fio-u-"], r"fio-u-[0-9A-Za-z=_-]{64}")
        .fires(&[concat!("fio-u-", "s12E49SZ2TE74jMAo80NMLSzIKw3FVFUionIqZDVbZ8LrT4WSmqgqVmSd3BxeJ0x")])
        .passes(&["fio-u-"]),
    named("beamer_token", "Beamer API token, beside its name", &["beamer"], r#"(?:^|[\s"'`=:>(,\[])(b_[0-9A-Za-z=_-]{44})"#)
        .fires(&[concat!(r#"beamer_token = ""#, "b_T43x59OK4gK44J4MEJV3izVJB1yq8yq9weEmY_EP0Ind", r#"""#), concat!(r#"{"beamerApiKey": ""#, "b_5Z49B7oX66m4LSWirVbHyxEa9YvCJR88dPWtYuSriogO", r#""}"#)])
        .passes(&[concat!("", "b_7U2FE9m84QZ3xhkNjkYU0KiQ1GLGL_PHEiPzC_zTRxNa")])
        .telling(),
    vendor("retool_token", "Retool API token", &["retool_"], r"retool_[0-9a-z]{26,40}")
        .fires(&[concat!("retool_", "pc62k7zm8gf38zhko2vnj5nrqz")])
        .passes(&["retool_app"])
        .needing_digits(),
    named("adafruit_key", "Adafruit IO key, beside its name", &["adafruit"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{32}|aio_[0-9A-Za-z]{28})"#)
        .fires(&[concat!(r#"adafruit_token = ""#, "337iy6145l26ks52jssku3qhnieitrij", r#"""#), concat!(r#"{"adafruitApiKey": ""#, "az8989d68bf6uw9ne5pc7bphjkg2uu2o", r#""}"#)])
        .passes(&[concat!("", "3h6697al7h88rn5oeab2ofj3qk4q3upl")]),
    vendor("adobe_secret", "Adobe client secret", &["p8e-"], r"p8e-[0-9A-Za-z_-]{32}")
        .fires(&[concat!("p8e-", "5f3j96Gd2ia8kpsWW5hJZ7jaGwpVtWvc")])
        .passes(&["p8e-"]),
    named("adobe_client_id", "Adobe client id, beside its name", &["adobe"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"adobe_token = ""#, "fecd852f39994b386085b125fb1aa0dd", r#"""#), concat!(r#"{"adobeApiKey": ""#, "bf7001a0f5aa6816d352cb6ec8fb94a9", r#""}"#)])
        .passes(&[concat!("", "17afc50fb8928ff14abac73f257d5046")]),
    vendor("yandex_api_key", "Yandex API key, IAM token or static key", &["aqvn", "t1.", "yc"], r"AQVN[0-9A-Za-z_-]{35,38}|t1\.[A-Z0-9a-z_-]+[=]{0,2}\.[A-Z0-9a-z_-]{86}={0,2}|YC[0-9A-Za-z_-]{38}")
        .fires(&[concat!("AQVN", "Dm8WY9nT9KS6S47Sz2frlLIVwR4SwBBhVQzn")])
        .passes(&["AQVN", "t1.micro", "cycle"])
        .needing_digits(),
    vendor("sidekiq_url", "Credentials of Sidekiq's gem server", &["contribsys"], r"[0-9a-f]{8}:[0-9a-f]{8}@(?:gems|enterprise)\.contribsys\.com|(?i:CONTRIBSYS__COM)[0-9A-Za-z_]{0,16}[^0-9A-Za-z_]{1,8}([0-9a-f]{8}:[0-9a-f]{8})")
        .fires(&[concat!("https://cafebabe:", "deadbeef@gems.contribsys.com")])
        .passes(&["https://gems.contribsys.com"])
        .at_any_edge()
        .even_if_dull()
        .reaching_back(40),
    vendor("cloudant_url", "Cloudant credentials in an address", &[".cloudant.com"], r"://[0-9A-Za-z_-]{1,60}:([0-9a-z]{24,64})@[0-9A-Za-z_-]{1,60}\.cloudant\.com")
        .fires(&[concat!("https://acme:", "2a5fg65o2cr3xqy8c1y7lwlf0l2u1oj9vg1nfgz5ls3ho8jvuho6ola81f9dae1g@acme.cloudant.com")])
        .passes(&["https://acme.cloudant.com"])
        .at_any_edge()
        .reaching_back(200),
    vendor("clickup_token", "ClickUp personal token", &["pk_"], r"pk_[0-9]{6,10}_[0-9A-Z]{32}")
        .fires(&[concat!("pk_", "48120377_998ZKEAINV5E8F2VF72JJAC3ROGCHQTS")])
        .passes(&["pk_", "pk_1_2"]),
    vendor("teamwork_token", "Teamwork API token", &["tkn.v1_"], r"tkn\.v1_[0-9A-Za-z+/]{60,90}={0,2}")
        .fires(&[concat!("tkn.v1_", "CVwES2XLpwv8Gnpop1RqYClR71wf2SmEN6kULvG7yUxzIYIfQYDlmhrkTFo73DDQKRQ0MKr=")])
        .passes(&["tkn.v1_"]),
    vendor("persona_api_key", "Persona API key", &["persona_production_", "persona_sandbox_"], r"persona_(?:production|sandbox)_[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("persona_production_", "5c057ecf-503c-b209-c056-f0ef90df2264")])
        .passes(&["persona_production_"]),
    vendor("flexport_token", "Flexport logistics token", &["shltm_"], r"shltm_[0-9A-Za-z_-]{40}")
        .fires(&[concat!("shltm_", "VP93is9bC7llsNdUwZA2U_G2AtJoMrliVfaD6WZE")])
        .passes(&["shltm_"]),
    vendor("fleetbase_key", "Fleetbase API key", &["flb_live_"], r"flb_live_[0-9A-Za-z]{20}")
        .fires(&[concat!("flb_live_", "r4p3k5y6oK1JKmaCIxC2")])
        .passes(&["flb_live_"])
        .needing_digits(),
    vendor("bannerbear_key", "Bannerbear API key", &["bb_pr_", "bb_ma_"], r"bb_(?:pr|ma)_[0-9a-f]{30}")
        .fires(&[concat!("bb_pr_", "ad0641ba64590e9c905ddffd45aef5")])
        .passes(&["bb_pr_"]),
    vendor("yandex_translate_key", "Yandex translator or predictor key", &["trnsl.1.1.", "pdct.1.1."], r"(?:trnsl|pdct)\.1\.1\.[0-9]{8}T[0-9]{6}Z\.[0-9a-f]{16}\.[0-9a-f]{40}")
        .fires(&[concat!("trnsl.1.1.", "20240611T101502Z.bca35365a1c37e52.fc82f78406fbc6f40f7a126ad69342c97b8a2978")])
        .passes(&["trnsl.1.1."]),
];
