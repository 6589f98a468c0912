//! Keys of monitoring, analytics and search services.

use super::{named, vendor};
use crate::dlp::detector::Detector;

pub(super) const ALL: &[Detector] = &[
    vendor("grafana_token", "Grafana service account, cloud or legacy token", &["glsa_", "glc_", "eyjrijoi"], r"glsa_[0-9A-Za-z]{32}_[0-9A-Fa-f]{8}|glc_[0-9A-Za-z+/]{32,400}={0,2}|eyJrIjoi[0-9A-Za-z]{60,400}={0,2}")
        .fires(&[concat!("glsa_", "Uq3N28qa9Xt2j47yauIBCo45X9YCZnCS_6d8e2a82"), concat!("eyJrIjoi", "wL9R289139F9cNahwk8UADVOlpOeXOM8oJ3oxW726KsQalbSbCJ5GHWpX2jbFaTykphE41kvlVRiVQrQ")])
        .passes(&["glsa_", "glc_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"]),
    vendor("new_relic_key", "New Relic user, license, insert or browser key", &["nrak-", "nrii-", "nriq-", "nrjs-", "nraa-", "nral"], r"NR(?:AK|AA|SP)-[0-9A-Za-z]{27,32}|NRI[IQ]-[0-9A-Za-z_-]{32}|NRJS-[0-9a-f]{19}|[0-9a-f]{36}NRAL")
        .fires(&[concat!("NRAK-", "BG64Q3IE6SY3BX789E1TGLJU413"), concat!("NRJS-", "79dec06d358065ea086")])
        .passes(&["NRAK-", "central"])
        .reaching_back(36),
    named("new_relic_user_id", "New Relic user API id, beside its name", &["new-relic", "newrelic", "new_relic"], r"[0-9a-z]{64}")
        .fires(&[concat!(r#"new-relic_token = ""#, "il53299p2i34mkw4y9a5ox8689nrwg28xa6uh0vh4hpswe2pager31a7oauakyji", r#"""#), concat!(r#"{"new-relicApiKey": ""#, "z03ak81r8ui4wtg1folp7b2y87d20gekn6kvrwy63rxa63d3f63igb37pi3crnt0", r#""}"#)])
        .passes(&[concat!("", "rl5v18r72co6oovu258qfxygcg8knl29ebgenue353pye6ecn5b2zppbnrzw4310")]),
    vendor("dynatrace_token", "Dynatrace token", &["dt0"], r"dt0[a-zA-Z][0-9]{2}\.[0-9A-Za-z]{24}\.[0-9A-Za-z]{64}")
        .fires(&[concat!("dt0c01.", "3O3MD9L47PM5R88BQYG1QGM3.AG4S08B539C5XUZIZ5RFJ9HUIO4JMPT30LPU2LBGN7J44FKCWUEL1APS90CGO38P")])
        .passes(&["dt0c01.X.Y"]),
    named("datadog_key", "Datadog API or application key, beside its name", &["datadog", "dd_api", "dd_app", "dd-api", "dd-app"], r"[0-9a-z]{40}|[0-9a-f]{32}")
        .fires(&[concat!(r#"datadog_token = ""#, "l033q83792236j2xbeoguv9ves1alxsitcjhadxe", r#"""#), concat!(r#"{"datadogApiKey": ""#, "g95232jb6u18mt6v7dbwp40r2jq2ccou0henmu9o", r#""}"#)])
        .passes(&[concat!("", "jh2d43m92c98mvklmdkwng9naava5l7nuve1ylav")]),
    vendor("sentry_token", "Sentry organisation or user token", &["sntrys_", "sntryu_"], r"sntrys_eyJ[0-9A-Za-z+/=_-]{60,300}|sntryu_[0-9a-f]{64}")
        .fires(&[concat!("sntryu_", "f9069fee967878bdfad63a776f4975bcef0d79260fbdafe069a40446aa79fc95")])
        .passes(&["sntryu_0f1e"]),
    named("sentry_access_token", "Sentry token of the older form, beside its name", &["sentry"], r"[0-9a-f]{64}")
        .fires(&[concat!(r#"sentry_token = ""#, "948b4e44e78ad0d91e23bba62706a798d49afe21ffc30b480561ff66554513ac", r#"""#), concat!(r#"{"sentryApiKey": ""#, "ca94e42d11041fe4fea4501db2608f32229047fb4f352833a8ead4e4de6051c1", r#""}"#)])
        .passes(&[concat!("", "1438eb0b7f65327e9bc39ede9809445fb7a4eb60201e2f8d2afa8cc6680adbdf")]),
    vendor("posthog_key", "PostHog personal API key", &["phx_"], r"phx_[0-9A-Za-z_]{43,48}")
        .fires(&[concat!("phx_", "C52m76O63Ru8ibviLtY7FmEltSyOK2wm5croC3nP3ghI")])
        .passes(&["phx_"]),
    vendor("honeycomb_key", "Honeycomb key", &["hcaik_", "hcalk_", "hcamk_"], r"hca[ilm]k_[0-9A-Za-z]{58,66}")
        .fires(&[concat!("hcaik_", "ii2hy6hl9zr49s2ykgr2n7bxtc37yfsjtndvxfyehmi9xgk5mktxb4de4g")])
        .passes(&["hcaik_"]),
    named("sumologic_key", "Sumo Logic access id or key, beside its name", &["sumo"], r"[0-9A-Za-z]{64}|su[0-9A-Za-z]{12}")
        .fires(&[concat!(r#"sumo_token = ""#, "SA9tU8K69AA2CNcyecjL8FPgT47PpJ8xUqKis1Bdj9IhlW73idJSCA5UySypZNko", r#"""#), concat!(r#"{"sumoApiKey": ""#, "cJ6bx9IC2RV2i5SiTFjyjJtLdvnsjz4Jru2ZrnlEzpv0J3a4FgHidgsYAkSrC45C", r#""}"#)])
        .passes(&[concat!("", "UF3MU20v48v8ak6Lu46P9Y0ommYkGHaqampCNsHb6wmTfDvjrrrO8vWlpp2EFoZV")]),
    named("rollbar_token", "Rollbar token, beside its name", &["rollbar"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"rollbar_token = ""#, "75d826f33593040e6533effccfe10832", r#"""#), concat!(r#"{"rollbarApiKey": ""#, "2b1ba5954699f06808ef402917254065", r#""}"#)])
        .passes(&[concat!("", "60e6b25fdbe85de2c031f70774037354")]),
    named("bugsnag_key", "Bugsnag key, beside its name", &["bugsnag"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"bugsnag_token = ""#, "d1947b6eb9c04177d539d979fdb8a29e", r#"""#), concat!(r#"{"bugsnagApiKey": ""#, "e383a6da59a9f4f1e511a452ce594081", r#""}"#)])
        .passes(&[concat!("", "201313857ac8579eb8fda0b1406b010b")]),
    named("pagerduty_key", "PagerDuty key, beside its name", &["pagerduty", "pager_duty"], r"[0-9A-Za-z_+-]{20}|[0-9a-f]{32}")
        .fires(&[concat!(r#"pagerduty_token = ""#, "f14az7xH7v22iOqCNOBM", r#"""#), concat!(r#"{"pagerdutyApiKey": ""#, "GD7UD6cg4bz281rHneoC", r#""}"#)])
        .passes(&[concat!("", "mv8s03904LE9TYjy6t7a")]),
    named("opsgenie_key", "Opsgenie key, beside its name", &["opsgenie"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"opsgenie_token = ""#, "05d0622e-e933-4597-a762-3a6a45379a5f", r#"""#), concat!(r#"{"opsgenieApiKey": ""#, "d49c7c78-e63c-47de-ab71-7a31320e217a", r#""}"#)])
        .passes(&[concat!("", "433a50f6-8ee7-4680-a804-d2f9a7aeb57c")]),
    vendor("axiom_token", "Axiom token", &["xaat-", "xapt-"], r"xa[ap]t-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("xaat-", "754dca7e-b2c0-4d67-adb5-a369db313674")])
        .passes(&["xaat-"]),
    named("influxdb_token", "InfluxDB token, beside its name", &["influx"], r"[0-9A-Za-z_-]{86}==")
        .fires(&[concat!(r#"influx_token = ""#, "iR6j998f4yB3cF70LCpeowVLWl61_4slQiqMi1mWkuSBHluUIcbhTxUrXtkrARuFbbmfZ_DC_G-AWXvJe0CxFR==", r#"""#), concat!(r#"{"influxApiKey": ""#, "oy3kT9fb2Wa2JomCrrw8cqI6Sc7LDrAuBZXgaoloVCZXobfKs8BFS1mJ1VX6uFdtqBtTDT4X-Ym69996uCv6tx==", r#""}"#)])
        .passes(&[concat!("", "LV4Nz6-_5OA3INXMajPY7yoMVLCRqrX3TF8YRJZj6cuUyoCQBiNyoEFASwr1Gbx2Y0nf7aTU6se2TSc6Id5YLa==")])
        .telling(),
    named("splunk_token", "Splunk HEC token, beside its name", &["splunk"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"splunk_token = ""#, "90cb330e-6080-443d-a72b-4821ae6d6516", r#"""#), concat!(r#"{"splunkApiKey": ""#, "2ddb99d9-e594-4cab-a53d-08a02de87f47", r#""}"#)])
        .passes(&[concat!("", "c026129a-84ea-4012-a318-493901753433")]),
    named("mixpanel_secret", "Mixpanel or Amplitude secret, beside its name", &["mixpanel", "amplitude"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"mixpanel_token = ""#, "4c0f5478086eb36aba3fa976e5c7b127", r#"""#), concat!(r#"{"mixpanelApiKey": ""#, "737a4c5aa6afd65e03044eab1ead1478", r#""}"#)])
        .passes(&[concat!("", "d653b6c78c9b3774490b5b90c5965c9b")]),
    named("segment_key", "Segment write key, beside its name", &["segment"], r"[0-9A-Za-z]{32}")
        .fires(&[concat!(r#"segment_token = ""#, "Q381z2Ri70z3uW0HKxJ12sYlj8AFFIU5", r#"""#), concat!(r#"{"segmentApiKey": ""#, "b77LD6f48O82Jz82de0ScFrQFl0Qm0gU", r#""}"#)])
        .passes(&[concat!("", "Tj3ID5jA5a12XThF7vgsTe36VkUpMlYh")]),
    named("fastly_token", "Fastly token, beside its name", &["fastly"], r"[0-9A-Za-z=_-]{32}")
        .fires(&[concat!(r#"fastly_token = ""#, "Ly4Gr7fK97n88KwEuokDGgh0venFa0sY", r#"""#), concat!(r#"{"fastlyApiKey": ""#, "fO9uh87t7nm5ZjfIMrE8F2gX09BRCLC4", r#""}"#)])
        .passes(&[concat!("", "J_3-z6tI6by9hlgKHmT9Ss8MjgNAklaB")]),
    named("rapidapi_key", "RapidAPI key, beside its name", &["rapidapi"], r"[0-9A-Za-z_-]{50}")
        .fires(&[concat!(r#"rapidapi_token = ""#, "HK6ru4ra9Sa7isOMX8cGJPxvHf9W2oPs1vZzyGA8gPDj1qRo4p", r#"""#), concat!(r#"{"rapidapiApiKey": ""#, "Ss4dt8uN7dg63hOyexvM04_KihF8ohbr7XWCyEZ6K7lewbMdMx", r#""}"#)])
        .passes(&[concat!("", "908Ir9lT3g222JWruzWMHzndrSoewn2Y6L3XTpDKPm67EBp9yy")]),
    named("looker_key", "Looker client id or secret, beside its name", &["looker"], r"[0-9A-Za-z]{24}|[0-9A-Za-z]{20}")
        .fires(&[concat!(r#"looker_token = ""#, "cp47e3c54vh35glhwx1gsjqb", r#"""#), concat!(r#"{"lookerApiKey": ""#, "dk7rf22767g7li2x3nr0fxa5", r#""}"#)])
        .passes(&[concat!("", "9s4r22ab2rn24bnqxegh499r")]),
    vendor("maxmind_key", "MaxMind licence key", &["_mmk"], r"[0-9A-Za-z]{6}_[0-9A-Za-z]{29}_mmk")
        .fires(&[concat!("j3JSLV", "_Ib5kB4qN5jz93yPBfxtWcBscuf1v7_mmk")])
        .passes(&["x_mmk"])
        .reaching_back(36),
    vendor("mapbox_token", "Mapbox token", &["sk.ey", "pk.ey"], r"sk\.eyJ1[0-9A-Za-z_-]{40,120}\.[0-9A-Za-z_-]{20,24}")
        .fires(&[concat!("sk.eyJ1", "us9dK8Kb4mn9fOhUaf7W1ApNtJ17tdeGALczZTu3Q1VuNkhHpE5X1uCF63WlaaIfzkK75rD240bI3dpq.Y06h24Cq5e499KzjaTrFYn")])
        .passes(&["sk.ey"]),
    named("mapbox_api_token", "Mapbox public token, beside its name", &["mapbox"], r"[ps]k\.[0-9A-Za-z]{60}\.[0-9A-Za-z_-]{22}|pk\.eyJ1[0-9A-Za-z_-]{40,120}\.[0-9A-Za-z_-]{20,24}")
        .fires(&[concat!(r#"mapbox_token = ""#, "pk.ql5sf7Oq5FO4UjyLu9s3OAkuF3YhLNFElNXbTKoD08JwVHTrVcW0CN8cs00w.NH7mW2ez7Px7UAs83S4rAJ", r#"""#), concat!(r#"{"mapboxApiKey": ""#, "pk.s086P3tP4Hs53cdCZkLpafeUkCojWYFtRKr77Sxy6HpXN2vPbOQZqOZ2I4nM.Xj3uK85F6wL48mXEt9G82r", r#""}"#)])
        .passes(&[concat!("", "pk.Yp8ml3UR70e6okZB609eHNPoIdBrKjCq3Poz8Tc1Q9adckMdPZwzbinh5s33.k02QY2xc9sr49dKUu0VH3c")])
        .telling(),
];
