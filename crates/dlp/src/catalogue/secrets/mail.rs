//! Keys of mail, messaging and telephony services.

use crate::catalogue::detector::Detector;
use crate::catalogue::secrets::vendor::{named, vendor};

pub(super) const ALL: &[Detector] = &[
    vendor("sendgrid_api_key", "SendGrid API key", &["sg."], r"SG\.[0-9A-Za-z=_.-]{60,72}")
        .fires(&[concat!("SG.", "jq94e8uX5Mr58b5PlqFPqW.C07Iz7Wt7Mc6obCYqo7bIC2L_tPEzmZ94ESPfEWM290")])
        .passes(&["msg.something", "SG.foo.bar"]),
    vendor("mailgun_key", "Mailgun private or public key", &["key-", "pubkey-"], r"(?:pub)?key-[0-9a-f]{32}")
        .fires(&[concat!("key-", "8ffc245ae96972c2d88dc28dd2a17220")])
        .passes(&["key-value", "api-key-0f1e2d3c"]),
    named("mailgun_signing_key", "Mailgun signing key, beside its name", &["mailgun"], r"[0-9a-h]{32}-[0-9a-h]{8}-[0-9a-h]{8}")
        .fires(&[concat!(r#"mailgun_token = ""#, "33dc488b3fff4327a5cec851cd499b6c-88478d6c-37188c0c", r#"""#), concat!(r#"{"mailgunApiKey": ""#, "1cb618fe911310ba8eeb47cb0c8ed488-b1a4f008-94f6779e", r#""}"#)])
        .passes(&[concat!("", "558e842277e1fdf31ad174e9ed2d20f5-42e6c4d3-7be50b1a")])
        .telling(),
    vendor("mailchimp_api_key", "Mailchimp API key", &["-us1", "-us2", "-us3", "-us4", "-us5", "-us6", "-us7", "-us8", "-us9"], r"[0-9a-f]{32}-us[0-9]{1,2}")
        .fires(&[concat!("266e97b5ccbbe7f984cfc5d9800793d1", "-us14")])
        .passes(&["-us1", "aea462953eb192d38c31a433e76257db-al32", "my-us2"])
        .reaching_back(32),
    vendor("mailchimp_transactional_key", "Mailchimp transactional key", &["md-"], r"md-[0-9A-Za-z]{22}")
        .fires(&[concat!("md-", "Y39ZU4GH5eF3q9VpUxQHPo")])
        .passes(&["md-icon"])
        .needing_digits(),
    vendor("brevo_api_key", "Brevo (Sendinblue) API or SMTP key", &["xkeysib-", "xsmtpsib-"], r"x(?:key|smtp)sib-[0-9a-f]{64}-[0-9A-Za-z]{16}")
        .fires(&[concat!("xkeysib-", "2ecabea780d5cc06aaa70b3c1c71ad7d7a08d39344e06f6da2c28868f97b72f0-ex4i92Ur91R4AqXL")])
        .passes(&["xkeysib-"]),
    vendor("resend_api_key", "Resend API key", &["re_"], r"re_[0-9A-Za-z]{7,8}_[0-9A-Za-z]{23,24}")
        .fires(&[concat!("re_", "y1netTZy_p268z81l5Y32JBGoxTuo88EW")])
        .passes(&["re_export", "are_12345678_x"])
        .needing_digits(),
    named("postmark_token", "Postmark token, beside its name", &["postmark"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"postmark_token = ""#, "ef885e1a-92ab-491c-a704-3b60a6d87720", r#"""#), concat!(r#"{"postmarkApiKey": ""#, "8eff0073-e235-44c2-a274-64c5e6cb10c5", r#""}"#)])
        .passes(&[concat!("", "c051fe1d-24af-4f83-aa1c-6af299362a57")]),
    named("mailjet_key", "Mailjet key or secret, beside its name", &["mailjet"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"mailjet_token = ""#, "61ea4a0ed74dc9b8a5a372132bb2c85b", r#"""#), concat!(r#"{"mailjetApiKey": ""#, "a095614bf4bb82e528188c89c7a14377", r#""}"#)])
        .passes(&[concat!("", "f89a2b324545c7832eb38bc6d156a365")]),
    named("twilio_key", "Twilio API key or token, beside its name", &["twilio"], r"(?:SK|AC)[0-9A-Fa-f]{32}|[0-9a-f]{32}")
        .fires(&[concat!(r#"twilio_token = ""#, "SKdc6b7c1ba07e0245a7210e26767f97a4", r#"""#), concat!(r#"{"twilioApiKey": ""#, "SK1aac1fad50dd7915a23c4249563355bf", r#""}"#)])
        .passes(&[concat!("", "SK399d98daaa9fc88ed4c193fe9b689191")]),
    named("messagebird_key", "MessageBird key or client id, beside its name", &["messagebird", "message_bird", "message-bird"], r"[0-9A-Za-z]{25}|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"messagebird_token = ""#, "c57kt8on75c72hqxgmymu4tjj", r#"""#), concat!(r#"{"messagebirdApiKey": ""#, "s44u254998n9u1kgcia0qdd4o", r#""}"#)])
        .passes(&[concat!("", "km8xr6wu5tt9ndc2qes2vr92g")]),
    named("vonage_secret", "Vonage or Nexmo secret, beside its name", &["vonage", "nexmo"], r"[0-9A-Za-z]{16}")
        .fires(&[concat!(r#"vonage_token = ""#, "DS7Ud7Mk7WF6TcHk", r#"""#), concat!(r#"{"vonageApiKey": ""#, "bC8ko5Mx7ZF7p8wx", r#""}"#)])
        .passes(&[concat!("", "sl4J59fM6DT8Wymk")]),
    named("plivo_token", "Plivo auth token, beside its name", &["plivo"], r"[0-9A-Za-z]{40}")
        .fires(&[concat!(r#"plivo_token = ""#, "wM6RL3fw5No5JuLqy9uggp6XyJ9e08glCs8izyeA", r#"""#), concat!(r#"{"plivoApiKey": ""#, "Z62zz6xg8r520Dj0K4hoRvC5Ug0jLpkhv2h8zoD3", r#""}"#)])
        .passes(&[concat!("", "mp76m6gf3OE5Kwzwy0qVs1dtjWzbuBFjbg8HwyTL")]),
    vendor("klaviyo_key", "Klaviyo private key", &["pk_"], r"pk_(?:[0-9A-Za-z]{6}_)?[0-9a-f]{34}")
        .fires(&[concat!("pk_", "0de33b1de4e4647e8d484bde8cbff4c93d")])
        .passes(&["pk_live_x", "pk_0f1e"]),
    named("sparkpost_key", "SparkPost API key, beside its name", &["sparkpost"], r"[0-9a-f]{40}")
        .fires(&[concat!(r#"sparkpost_token = ""#, "ae66555fd0018f16e6c92311a721d55f7e97ffd7", r#"""#), concat!(r#"{"sparkpostApiKey": ""#, "48f7dfdcc857c531f26ea30860d35fbbeb4fdde3", r#""}"#)])
        .passes(&[concat!("", "3821ab49547ace57081a97646df7a184d80974c0")]),
    vendor("onesignal_key", "OneSignal app or organisation key", &["os_v2_"], r"os_v2_(?:app|org)_[a-z2-7]{103}")
        .fires(&[concat!("os_v2_app_", "bubsnfzkgc4ab5d2jwjhvtj4amdfxer6ked5fyms552q6zeq4dh2g4a4gf5suigrqcblcfowjmdn3ac4c74udyjvnhl4iyqjcjnv3de")])
        .passes(&["os_v2_app_"]),
    vendor("mailersend_token", "MailerSend API token", &["mlsn."], r"mlsn\.[0-9A-Za-z]{40,100}")
        .fires(&[concat!("mlsn.", "a1734dd21cee4a7a55de27e5e2edced408ff4aa3cb7fbe6356e22a2520f27cbc")])
        .passes(&["mlsn."])
        .needing_digits(),
    vendor("courier_key", "Courier API key", &["pk_prod_", "pk_test_"], r"pk_(?:prod|test)_[0-9A-Z]{28}")
        .fires(&[concat!("pk_prod_", "JZ71Q57MW6WZ1T362L76QJ0H84Z3")])
        .passes(&["pk_prod_", "pk_test_51NqPRl2eZvKYlo2C1x2y3z4A"])
        .needing_digits(),
    vendor("nylas_api_key", "Nylas API key", &["nyk_v0_"], r"nyk_v0_[0-9A-Za-z]{64}")
        .fires(&[concat!("nyk_v0_", "P375ZdRszueqPNwSHW1mJduY0RQaatokIetCbxjf44yJIMmHV4b8CHlegzvbyimt")])
        .passes(&["nyk_v0_"]),
    vendor("pubnub_key", "PubNub publish, subscribe or secret key", &["pub-c-", "sub-c-", "sec-c-"], r"(?:pub|sub)-c-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}|sec-c-[0-9A-Za-z+/]{40,64}={0,2}")
        .fires(&[concat!("pub-c-", "04bc1c2f-5540-8e4f-f011-6b2826715e00"), concat!("sec-c-", "VF60lTxKsNcA0UiZQX73cpbRLoaoKvsysbpgrCjSxh7kg4Mg")])
        .passes(&["pub-c-", "sec-c-"]),
];
