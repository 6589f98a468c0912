//! Keys of monitoring, analytics and search services.

use crate::catalogue::detector::Detector;
use crate::catalogue::secrets::{
    summed,
    vendor::{named, vendor},
};

pub(super) const ALL: &[Detector] = &[
    Detector {
        check: summed::grafana,
        ..vendor("grafana_token", "Grafana service account token with a right checksum, cloud or legacy token", &["glsa_", "glc_", "eyjrijoi"], r"glsa_[0-9A-Za-z]{32}_[0-9A-Fa-f]{8}|glc_[0-9A-Za-z+/]{32,400}={0,2}|eyJrIjoi[0-9A-Za-z+/]{40,400}={0,2}")
    }
        .fires(&[concat!("glsa_", "Pde0IgxLd6GncfBAepfJBd0Kh8oOOL8d_4821f9bc"), concat!("eyJrIjoi", "8U9DV6lp6eX4M8oJ3oxW726KsQalbSbCJ5GHWpX2jbFaTykphE41kvlVRiVQrQNE7R9AYTf3ODbgRBUX")])
        .passes(&["glsa_", concat!("glsa_", "Pde0IgxLd6GncfBAepfJBd0Kh8oOOL8d_4821f9b0"), "glc_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"]),
    vendor("new_relic_key", "New Relic user, license, insert, browser or mobile key", &["NRAK-", "NRII-", "NRIQ-", "NRJS-", "NRBR-", "NRAA-", "NRSP-", "NRAL", "-nrma"], r"NR(?:AK|AA|SP)-[0-9A-Za-z]{27,32}|NRI[IQ]-[0-9A-Za-z_-]{25,32}|NR(?:JS|BR)-[0-9a-f]{19}|(?:[a-z]{2}[0-9]{2}xx)?[0-9A-Fa-f]{30,36}NRAL|(?:[a-z]{2}[0-9]{2}xx)?[0-9a-f]{36,42}-NRMA")
        .fires(&[concat!("NRAK-", "E39Y98X729E5TGLJU413QERGPT0"), concat!("NRJS-", "d358065ea08645deef7")])
        .passes(&["NRAK-", "central"])
        .reaching_back(48),
    named("new_relic_user_id", "New Relic user API id, beside its name", &["new-relic", "newrelic", "new_relic"], r"[0-9a-z]{64}")
        .fires(&[concat!(r#"new-relic_token = ""#, "yi4im8w489a6ox8689nrwg28xa6uh0vh4hpswe2pager31a7oauakyjio2ciz0wa", r#"""#), concat!(r#"{"new-relicApiKey": ""#, "ku81w8g16ol27b2y87d20gekn6kvrwy63rxa63d3f63igb37pi3crnt0hyzirlkv", r#""}"#)])
        .passes(&[concat!("", "oz2ov4254qf9ygcg8knl29ebgenue353pye6ecn5b2zppbnrzw4310ny99cs3oam")]),
    vendor("dynatrace_token", "Dynatrace token", &["dt0"], r"dt0[a-zA-Z][0-9]{2}\.[0-9A-Za-z]{24}\.[0-9A-Za-z]{64}")
        .fires(&[concat!("dt0c01.", "1P8XR88B2YG9QGM3F3XMAGXS.H96SX5ZI95R3J9HUIO4JMPT30LPU2LBGN7J44FKCWUEL1APS90CGO38PJ1GOL0K3")])
        .passes(&["dt0c01.X.Y"]),
    named("datadog_key", "Datadog API or application key, beside its name", &["datadog", "dd_api", "dd_app", "dd-api", "dd-app"], r"[0-9a-z]{40}|[0-9a-f]{32}")
        .fires(&[concat!(r#"datadog_token = ""#, "2256j4xb2og2v9ves1alxsitcjhadxeh05fg9j23", r#"""#), concat!(r#"{"datadogApiKey": ""#, "u19mt4v75bw840r2jq2ccou0henmu9onbs80jhrd", r#""}"#)])
        .passes(&[concat!("", "c99mv9lm9kw6g9naava5l7nuve1ylavdedy4sant")]),
    vendor("sentry_token", "Sentry organisation, user, app or integration token", &["sntrys_", "sntryu_", "sntrya_", "sntryi_"], r"sntrys_eyJ[0-9A-Za-z+/=_-]{60,400}|sntry[aiu]_[0-9a-f]{64}")
        .fires(&[concat!("sntryu_", "67878bdfad63a776f4975bcef0d79260fbdafe069a40446aa79fc95948b4e44e")])
        .passes(&["sntryu_0f1e"]),
    named("sentry_access_token", "Sentry token of the older form, beside its name", &["sentry"], r"[0-9a-f]{64}")
        .fires(&[concat!(r#"sentry_token = ""#, "78ad0d91e23bba62706a798d49afe21ffc30b480561ff66554513acca94e42d1", r#"""#), concat!(r#"{"sentryApiKey": ""#, "1041fe4fea4501db2608f32229047fb4f352833a8ead4e4de6051c11438eb0b7", r#""}"#)])
        .passes(&[concat!("", "f65327e9bc39ede9809445fb7a4eb60201e2f8d2afa8cc6680adbdfe6fa440a4")]),
    vendor("posthog_key", "PostHog personal or secure API key", &["phx_", "phs_"], r"ph[xs]_[0-9A-Za-z_]{41,49}")
        .fires(&[concat!("phx_", "Lt37F8El5Sy3K2wm5croC3nP3ghI7cQR1sGMhyPiiRUb")])
        .passes(&["phx_"]),
    vendor("honeycomb_key", "Honeycomb key", &["hcaik_", "hcalk_", "hcamk_"], r"hca[ilm]k_[0-9A-Za-z]{58,66}")
        .fires(&[concat!("hcaik_", "lf6rx6s28kg82n7bxtc37yfsjtndvxfyehmi9xgk5mktxb4de4g9br2k0n")])
        .passes(&["hcaik_"]),
    named("sumologic_key", "Sumo Logic access id or key, beside its name", &["sumo"], r"[0-9A-Za-z]{64}|su[0-9A-Za-z]{12}")
        .fires(&[concat!(r#"sumo_token = ""#, "nC9cy9cj28F2gT47PpJ8xUqKis1Bdj9IhlW73idJSCA5UySypZNkoIMDzCdcJVbx", r#"""#), concat!(r#"{"sumoApiKey": ""#, "i57iT7jy9Jt2dvnsjz4Jru2ZrnlEzpv0J3a4FgHidgsYAkSrC45CrQFPb0aUFTMU", r#""}"#)])
        .passes(&[concat!("", "k68u46P930o5mYkGHaqampCNsHb6wmTfDvjrrrO8vWlpp2EFoZV8e2c7KjBplGY1")]),
    named("rollbar_token", "Rollbar token, beside its name", &["rollbar"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"rollbar_token = ""#, "f33593040e6533effccfe108322b1ba5", r#"""#), concat!(r#"{"rollbarApiKey": ""#, "954699f06808ef40291725406560e6b2", r#""}"#)])
        .passes(&[concat!("", "5fdbe85de2c031f70774037354d1947b")]),
    named("bugsnag_key", "Bugsnag key, beside its name", &["bugsnag"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"bugsnag_token = ""#, "6eb9c04177d539d979fdb8a29ee383a6", r#"""#), concat!(r#"{"bugsnagApiKey": ""#, "da59a9f4f1e511a452ce594081201313", r#""}"#)])
        .passes(&[concat!("", "857ac8579eb8fda0b1406b010b20c5b2")]),
    named("pagerduty_key", "PagerDuty key, beside its name", &["pagerduty", "pager_duty"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_+-]{20}|[0-9a-f]{32})"#)
        .fires(&[concat!(r#"pagerduty_token = ""#, "v29iO7CN9BM215HvLuaG", r#"""#), concat!(r#"{"pagerdutyApiKey": ""#, "gH4zE21r5ne7CT6XwHMq", r#""}"#)])
        .passes(&[concat!("", "Vs3e94oL9mT2jy6t7aUA")]),
    named("opsgenie_key", "Opsgenie key, beside its name", &["opsgenie"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"opsgenie_token = ""#, "5d0622ee-9335-4977-a623-a6a45379a5fd", r#"""#), concat!(r#"{"opsgenieApiKey": ""#, "49c7c78e-63c7-4deb-a717-a31320e217a4", r#""}"#)])
        .passes(&[concat!("", "33a50f68-ee76-4808-a04d-2f9a7aeb57c7")]),
    vendor("axiom_token", "Axiom token", &["xaat-", "xapt-"], r"xa[ap]t-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("xaat-", "54dca7eb-2c0d-467d-ab5a-369db3136742")])
        .passes(&["xaat-"]),
    named("influxdb_token", "InfluxDB token, beside its name", &["influx"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{86}==)"#)
        .fires(&[concat!(r#"influx_token = ""#, "Rj99t4fc3B53F70LCpeowVLWl61_4slQiqMi1mWkuSBHluUIcbhTxUrXtkrARuFbbmfZ_DC_G-AWXvJe0CxFRN==", r#"""#), concat!(r#"{"influxApiKey": ""#, "yk9Tc2bi2aF6omCrrw8cqI6Sc7LDrAuBZXgaoloVCZXobfKs8BFS1mJ1VX6uFdtqBtTDT4X-Ym69996uCv6txj==", r#""}"#)])
        .passes(&[concat!("", "VX6zL5_e3Aq6NXMajPY7yoMVLCRqrX3TF8YRJZj6cuUyoCQBiNyoEFASwr1Gbx2Y0nf7aTU6se2TSc6Id5YLax==")])
        .telling(),
    named("splunk_token", "Splunk HEC token, beside its name", &["splunk"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"splunk_token = ""#, "0cb330e6-0804-43d7-a2b4-821ae6d65162", r#"""#), concat!(r#"{"splunkApiKey": ""#, "ddb99d9e-594c-4ab5-a3d0-8a02de87f47c", r#""}"#)])
        .passes(&[concat!("", "026129a8-4ea0-4123-a184-939017534334")]),
    named("mixpanel_secret", "Mixpanel or Amplitude secret, beside its name", &["mixpanel", "amplitude"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"mixpanel_token = ""#, "c0f5478086eb36aba3fa976e5c7b1277", r#"""#), concat!(r#"{"mixpanelApiKey": ""#, "37a4c5aa6afd65e03044eab1ead1478d", r#""}"#)])
        .passes(&[concat!("", "653b6c78c9b3774490b5b90c5965c9b3")]),
    named("segment_key", "Segment write key, beside its name", &["segment"], r"[0-9A-Za-z]{32}")
        .fires(&[concat!(r#"segment_token = ""#, "1z3Ri20z9uW3HKxJ12sYlj8AFFIU5Bax", r#"""#), concat!(r#"{"segmentApiKey": ""#, "4E48s9z84de8ScFrQFl0Qm0gUw4rLzIb", r#""}"#)])
        .passes(&[concat!("", "ga6EX5hF7vg6Te36VkUpMlYh3OgmpYa5")]),
    named("fastly_token", "Fastly token, beside its name", &["fastly"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z=_-]{32})"#)
        .fires(&[concat!(r#"fastly_token = ""#, "r52KJ7nV6Kw4uokDGgh0venFa0sYqP50", r#"""#), concat!(r#"{"fastlyApiKey": ""#, "h-6ty9m-3jf9MrE8F2gX09BRCLC483UA", r#""}"#)])
        .passes(&[concat!("", "zc6Im6ye3lg4HmT9Ss8MjgNAklaBpNN9")]),
    named("rapidapi_key", "RapidAPI key, beside its name", &["rapidapi"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{50})"#)
        .fires(&[concat!(r#"rapidapi_token = ""#, "uZ7ai4aj4sO2X8cGJPxvHf9W2oPs1vZzyGA8gPDj1qRo4pGv-P", r#"""#), concat!(r#"{"rapidapiApiKey": ""#, "tp9NI8gD3hO6exvM04_KihF8ohbr7XWCyEZ6K7lewbMdMxv0UM", r#""}"#)])
        .passes(&[concat!("", "rE2Ta52P3JW3uzWMHzndrSoewn2Y6L3XTpDKPm67EBp9yy17kh")]),
    named("looker_key", "Looker client id or secret, beside its name", &["looker"], r"[0-9A-Za-z]{24}|[0-9A-Za-z]{20}")
        .fires(&[concat!(r#"looker_token = ""#, "jc4iv6o53lh6x1gsjqblekfd", r#"""#), concat!(r#"{"lookerApiKey": ""#, "2767g7li6x39r0fxa5vc7tv9", r#""}"#)])
        .passes(&[concat!("", "ja2or4r48nq6egh499rjaccj")]),
    vendor("maxmind_key", "MaxMind licence key", &["_mmk"], r"[0-9A-Za-z]{6}_[0-9A-Za-z]{29}_mmk")
        .fires(&[concat!("qNtjzi", "_3y2Bf7tW5Bs5uf1v7GQolnEusCdKV_mmk")])
        .passes(&["x_mmk"])
        .reaching_back(36),
    vendor("mapbox_token", "Mapbox secret or temporary token", &["sk.ey", "tk.ey"], r"[st]k\.eyJ1[0-9A-Za-z_-]{20,160}\.[0-9A-Za-z_-]{20,24}")
        .fires(&[concat!("sk.eyJ1", "Of3hU7f791A6NtJ17tdeGALczZTu3Q1VuNkhHpE5X1uCF63WlaaIfzkK75rD240bI3dpqD5IJzl5MQCY.Te6s93zj6Tr5YnrHiXnCql")])
        .passes(&["sk.ey"]),
    named("mapbox_api_token", "Mapbox public token, beside its name", &["mapbox"], r#"(?:^|[\s"'`=:>(,\[])([ps]k\.[0-9A-Za-z]{60}\.[0-9A-Za-z_-]{22}|pk\.eyJ1[0-9A-Za-z_-]{40,120}\.[0-9A-Za-z_-]{20,24})"#)
        .fires(&[concat!(r#"mapbox_token = ""#, "pk.FO3Uj8Lu7s38AkuF3YhLNFElNXbTKoD08JwVHTrVcW0CN8cs00wpunlNHmmW.s86S42AJ22d92ws0k6PktP", r#"""#), concat!(r#"{"mapboxApiKey": ""#, "pk.Zk5pa9eU6Co6WYFtRKr77Sxy6HpXN2vPbOQZqOZ2I4nMAhlmXjkuK35F5wLH.fy8sH3Nl5pu2loURe0elok", r#""}"#)])
        .passes(&[concat!("", "pk.Br2jC73P2z82c1Q9adckMdPZwzbinh5s33P2y541VJeQx3qk0DQYaxcwsro9.MN8b42RI3iR5vcYYODIhbQ")])
        .telling(),
    vendor("logfire_token", "Logfire write or read token", &["pylf_v1_"], r"pylf_v1_[a-z]{2,10}_[0-9A-Za-z]{43,45}")
        .fires(&[concat!("pylf_v1_us_", "IrFnWg3EA2cTgXoRRhcGhmdWvALb4HVFdczFUAXX4G0G")])
        .passes(&["pylf_v1_us_token"]),
    vendor("pganalyze_key", "pganalyze API key", &["pgar_"], r"pgar_[0-9A-Za-z]{27}")
        .fires(&[concat!("pgar_", "dcAb6bvLvT2zEouMx9pndHTkLd9")])
        .passes(&["pgar_"])
        .needing_digits(),
    vendor("samsara_token", "Samsara API token", &["samsara_api_"], r"samsara_api_[0-9A-Za-z]{26,32}")
        .fires(&[concat!("samsara_api_", "ivnIfflSo4fksf7ex0CHJVj6Q45rfT")])
        .passes(&["samsara_api_"])
        .needing_digits(),
    vendor("fullstory_api_key", "FullStory API key", &["na1.", "eu1."], r"(?:na|eu)1\.[0-9A-Za-z+/]{90,110}={0,2}")
        .fires(&[concat!("na1.", "3/Vj1zxMB3043eNJdkpCtHNLpQkF5LiV4DjRoTYGMro/BbVZMcptY2URMNlC9RXbTmtTA8GuC8McgvfpG6GWovIk5JK2KXH1fwek")])
        .passes(&["na1.salesforce.com"]),
    vendor("nightfall_key", "Nightfall API key", &["nf-"], r"NF-[0-9A-Za-z]{32}")
        .fires(&[concat!("NF-", "uCy2b5i7AalVgBm4x30hDEYNIK4eRzzY")])
        .passes(&["NF-", "nf-core"])
        .needing_digits(),
    vendor("besttime_key", "BestTime private key", &["pri_"], r"pri_[0-9a-f]{32}")
        .fires(&[concat!("pri_", "2151a03bfcfb04d7a508c3a7250dc86f")])
        .passes(&["pri_", "pri_01h4bjg6kyp7p0f7e3gvzvvfxn"]),
    vendor("segment_public_api_token", "Segment public API token", &["sgp_"], r"sgp_[0-9A-Za-z]{64}")
        .fires(&[concat!("sgp_", "Zqumpm08hsE8JNpjJOQGa2rb19FlY0mG1ylvuhfJXqIEnomef2mSJ5CMTIeg1ZTV")])
        .passes(&["sgp_"])
        .needing_digits(),
    vendor("dependency_track_key", "Dependency-Track API key", &["odt_"], r"odt_[0-9A-Za-z]{32,40}")
        .fires(&[concat!("odt_", "nVv2fgKD0f6YYIgrCOX6Jhw7Hd11XzWL")])
        .passes(&["odt_", "odt_export_settings"])
        .needing_digits(),
    vendor("ubidots_token", "Ubidots token", &["bbff-"], r"BBFF-[0-9A-Za-z]{30}")
        .fires(&[concat!("BBFF-", "FdPE0SPgjtHfb1F6w70WAKadYEjW1W")])
        .passes(&["BBFF-"]),
];
