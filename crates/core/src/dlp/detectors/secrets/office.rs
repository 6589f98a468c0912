//! Tokens of project, customer and document services.

use super::{named, vendor};
use crate::dlp::detector::Detector;

pub(super) const ALL: &[Detector] = &[
    vendor("linear_token", "Linear API key or OAuth token", &["lin_api_", "lin_oauth_"], r"lin_(?:api|oauth)_[0-9A-Za-z]{40,64}")
        .fires(&[concat!("lin_api_", "RU8cY2OD9hb5YH6URy7IceodICO0nVtBySKaTy1Z")])
        .passes(&["lin_api_key"]),
    named("linear_client_secret", "Linear client secret, beside its name", &["linear"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"linear_token = ""#, "0a87e34238316dd7ecaac9a940b5ac18", r#"""#), concat!(r#"{"linearApiKey": ""#, "ec492debbf32c30149381c205515372a", r#""}"#)])
        .passes(&[concat!("", "92e4e2ac770188be9d230aa576de3f72")]),
    vendor("notion_token", "Notion integration token", &["ntn_", "secret_"], r"ntn_[0-9]{11}[0-9A-Za-z]{35}|secret_[0-9A-Za-z]{43}")
        .fires(&[concat!("ntn_", "36715010921un9Z37tH9LL3nKH2jCWbsXG8D3NjHzNXDPC")])
        .passes(&["ntn_1", "secret_key"])
        .needing_digits(),
    vendor("airtable_token", "Airtable personal access token", &["pat"], r"pat[0-9A-Za-z]{14}\.[0-9a-f]{64}")
        .fires(&[concat!("pat", "CE8RD5VH6Ha3UU.f67336e403fb930bcd62707ccbff0f55cd8b1b48ca480bc62b9971da6f8b9576")])
        .passes(&["pat", "patient.record"]),
    named("airtable_api_key", "Airtable API key of the older form, beside its name", &["airtable"], r"[0-9A-Za-z]{17}")
        .fires(&[concat!(r#"airtable_token = ""#, "keyXC43K8WL5yV8ID", r#"""#), concat!(r#"{"airtableApiKey": ""#, "keySX4Wf5p78sR934", r#""}"#)])
        .passes(&[concat!("", "keyJX4Sq6VM7if5Si")]),
    vendor("asana_token", "Asana personal access token", &["1/", "2/"], r"[12]/[0-9]{13,20}(?:/[0-9]{13,20})?:[0-9a-f]{32}")
        .fires(&[concat!("2/", "9065756114489274/9434000254195467:3f634d7d38b7b2b0457c2732a26d7e61")])
        .passes(&["1/2", "2/3"]),
    named("asana_secret", "Asana client id or secret, beside its name", &["asana"], r"[0-9a-z]{32}|[0-9]{16}")
        .fires(&[concat!(r#"asana_token = ""#, "f546h23b5bg6noq6t9hi6pn2od9l1gpd", r#"""#), concat!(r#"{"asanaApiKey": ""#, "am8ay46t57u3f2iv8pd6g47ozliigr7t", r#""}"#)])
        .passes(&[concat!("", "1d39s8wt61g5oofe8xgqi407b507zu68")]),
    named("zendesk_token", "Zendesk token, beside its name", &["zendesk"], r"[0-9A-Za-z]{40}")
        .fires(&[concat!(r#"zendesk_token = ""#, "oN3cf6XD79r75eGIYdT1ED8MuXArCcFA6mpf85EW", r#"""#), concat!(r#"{"zendeskApiKey": ""#, "PD5mD7xx5oH2z8I2YFtKSNMOFPkOCyHmchjqdgB1", r#""}"#)])
        .passes(&[concat!("", "A47Jc5Fa3vh6KtdlIF3WURCETd2o4Gyv6UeLBGlg")]),
    vendor("hubspot_token", "HubSpot private app token", &["pat-"], r"pat-(?:na|eu|ap)[0-9]-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("pat-na1-", "43155bbf-9a0e-44d4-aee7-9e6eb136dc41")])
        .passes(&["pat-na1-", "pattern"]),
    named("hubspot_api_key", "HubSpot API key, beside its name", &["hubspot"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"hubspot_token = ""#, "231887a3-51e3-4de8-a42c-cb38d4e62852", r#"""#), concat!(r#"{"hubspotApiKey": ""#, "b6b86529-fb8e-484b-a5b4-3a239f0a4fd8", r#""}"#)])
        .passes(&[concat!("", "f27567ca-6fe0-41e0-aad3-0e564fee0fea")]),
    vendor("dropbox_token", "Dropbox access token", &["sl."], r"sl\.(?:u\.)?[0-9A-Za-z_=-]{130,1400}")
        .fires(&[concat!("sl.", "782Sj8r25Or3DAyyTfCyqoxonLGbSDuJagAahKIo_GJ4-hVVTTPI6YWAMmo77ktdF98VKfdaMHylqsyef38QHNVZcg1H0gnIUC0L6mj43ARthXljphmmyjX_27frXopjdvgJooSb")])
        .passes(&["sl.no", "sl.example"])
        .reaching(0, 1500),
    named("dropbox_secret", "Dropbox app secret or long-lived token, beside its name", &["dropbox"], r"[0-9A-Za-z]{11}AAAAAAAAAA[0-9A-Za-z_=-]{43}|[0-9a-z]{15}")
        .fires(&[concat!(r#"dropbox_token = ""#, "9x9wh9fb6632m8h", r#"""#), concat!(r#"{"dropboxApiKey": ""#, "1a2038rf8q22xsn", r#""}"#)])
        .passes(&[concat!("", "1o3oo5tz7ab5ovy")]),
    named("okta_token", "Okta API token, beside its name", &["okta"], r"00[0-9A-Za-z_=-]{40}")
        .fires(&[concat!(r#"okta_token = ""#, "00RB36N6gx4yY9J3jVo5A1wjW3v8bV5OYD62_D4-3U", r#"""#), concat!(r#"{"oktaApiKey": ""#, "001b5IY2fq5447J3gDLzQAWBlHwDLkJqrYvbxOOG_i", r#""}"#)])
        .passes(&[concat!("", "008j4e83Yk5qG95OGHASvgPzmcQX_-RqZy5sRfLM3S")])
        .telling(),
    named("auth0_secret", "Auth0 client secret, beside its name", &["auth0"], r"[0-9A-Za-z_-]{64}")
        .fires(&[concat!(r#"auth0_token = ""#, "5j9ua9V_2ot5rKAEq2wz9KEqmkHcSaI5p75iaNAiJDv4YbhN0w4ZEBk5BPLileFs", r#"""#), concat!(r#"{"auth0ApiKey": ""#, "Nd4Bj9iv6eS9Q_DVCBUtjqQbgNlymUrrF7UPdo8FARMM_FyiFvP6Z8a18xemteVT", r#""}"#)])
        .passes(&[concat!("", "Ev9L08-H2BO9Efq2rhWEyZF4OMJkId3ETRLQiMwSpYBXiuy89xWVdY6JKgoYZc2U")]),
    vendor("salesforce_token", "Salesforce session or refresh token", &["00d", "5aep"], r"00D[0-9A-Za-z]{12}(?:[0-9A-Za-z]{3})?![0-9A-Za-z._]{80,140}|5Aep[0-9A-Za-z._]{60,100}")
        .fires(&[concat!("00D", "Wo8Px6Xd3KG8!hm99z8vN3Cm38NZSXTno4dCDVeRPtqpPi6EekKOVXhR6FQTz7HqM0w2LHmbAh5cjOtUrg5bnkuM8vEIIXDslwXhBuJkYxOPQ")])
        .passes(&["00D", "0x00d1"]),
    vendor("typeform_token", "Typeform token", &["tfp_"], r"tfp_[0-9A-Za-z_.=-]{40,64}")
        .fires(&[concat!("tfp_", "su8RX3H39SJ2vPmoS89d4vGRqnEg2aZqNCnsWZfQrh1T9EXccagEPIQG80q")])
        .passes(&["tfp_"]),
    vendor("frameio_token", "Frame.io token", &["fio-u-"], r"fio-u-[0-9A-Za-z=_-]{64}")
        .fires(&[concat!("fio-u-", "hq6nS46T71o9Nx0YJrNtzs1GE4RSZ9TEg4jMAo80NMLSzIKw3FVFUionIqZDVbZ8")])
        .passes(&["fio-u-"]),
    named("beamer_token", "Beamer API token, beside its name", &["beamer"], r"b_[0-9A-Za-z=_-]{44}")
        .fires(&[concat!(r#"beamer_token = ""#, "b_WS6qg5Vm8d35xeJ0xb7fQT4Gx5vOKhgKG4J4MEJV3izV", r#"""#), concat!(r#"{"beamerApiKey": ""#, "b_q82q99eE8Y_4P0Indp_su5ZX9BaoXf6mRLSWirVbHyxE", r#""}"#)])
        .passes(&[concat!("", "b_CJ7888PW6Yu6riogOtPLv7UNFEmm8rQZPxhkNjkYU0Ki")])
        .telling(),
    vendor("retool_token", "Retool API token", &["retool_"], r"retool_[0-9a-z]{26,40}")
        .fires(&[concat!("retool_", "qs4uq2eu88o5mwvltad4kfpc22")])
        .passes(&["retool_app"])
        .needing_digits(),
    named("adafruit_key", "Adafruit IO key, beside its name", &["adafruit"], r"[0-9A-Za-z_-]{32}|aio_[0-9A-Za-z]{28}")
        .fires(&[concat!(r#"adafruit_token = ""#, "qg4789hk62v4j5nrqz9t6wzh33xiyr14", r#"""#), concat!(r#"{"adafruitApiKey": ""#, "s52js3ku6qh7ieitrijuqorazt98dd64", r#""}"#)])
        .passes(&[concat!("", "w93e59c76ph5kg2uu2o140q3h969dalq")]),
    vendor("adobe_secret", "Adobe client secret", &["p8e-"], r"p8e-[0-9A-Za-z_-]{32}")
        .fires(&[concat!("p8e-", "U88oe3bN4of2jWDqkEqPDZuplU83tSxv")])
        .passes(&["p8e-"]),
    named("adobe_client_id", "Adobe client id, beside its name", &["adobe"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"adobe_token = ""#, "540f579340b79a1391cfecd852f39994", r#"""#), concat!(r#"{"adobeApiKey": ""#, "b386085b125fb1aa0ddbf7001a0f5aa6", r#""}"#)])
        .passes(&[concat!("", "816d352cb6ec8fb94a917afc50fb8928")]),
    vendor("yandex_api_key", "Yandex API key, IAM token or static key", &["aqvn", "t1.", "yc"], r"AQVN[0-9A-Za-z_-]{35,38}|t1\.[A-Z0-9a-z_-]+[=]{0,2}\.[A-Z0-9a-z_-]{86}={0,2}|YC[0-9A-Za-z_-]{38}")
        .fires(&[concat!("AQVN", "k-8sO2QZ4o-3xD0xdqzDmBWYinTCKSjS47Sz")])
        .passes(&["AQVN", "t1.micro", "cycle"])
        .needing_digits(),
    vendor("sidekiq_url", "Credentials of Sidekiq's gem server", &["contribsys"], r"[0-9a-f]{8}:[0-9a-f]{8}@(?:gems|enterprise)\.contribsys\.com|CONTRIBSYS__COM=[0-9a-f]{8}:[0-9a-f]{8}")
        .fires(&[concat!("https://cafebabe:", "deadbeef@gems.contribsys.com")])
        .passes(&["https://gems.contribsys.com"])
        .at_any_edge()
        .even_if_dull()
        .reaching_back(40),
    vendor("cloudant_url", "Cloudant credentials in an address", &[".cloudant.com"], r"://[0-9A-Za-z_-]{1,60}:([0-9a-z]{24,64})@[0-9A-Za-z_-]{1,60}\.cloudant\.com")
        .fires(&[concat!("https://acme:", "sr4lv7wl7nd3vmg133q2a2fg65oecrhxqy8c1y7lwlf0l2u1oj9vg1nfgz5ls3ho@acme.cloudant.com")])
        .passes(&["https://acme.cloudant.com"])
        .at_any_edge()
        .reaching_back(200),
];
