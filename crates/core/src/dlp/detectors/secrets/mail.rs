//! Keys of mail, messaging and telephony services.

use super::{named, vendor};
use crate::dlp::detector::Detector;

pub(super) const ALL: &[Detector] = &[
    vendor("sendgrid_api_key", "SendGrid API key", &["sg."], r"SG\.[0-9A-Za-z=_.-]{60,72}")
        .fires(&[concat!("SG.", "Mt7xE3Nj4w45PuXPMrn8b5.Pq28Y5CC8eI6_WtmMcUobCYqo7bIC2L_tPEzmZ94ESP")])
        .passes(&["msg.something", "SG.foo.bar"]),
    vendor("mailgun_key", "Mailgun private or public key", &["key-", "pubkey-"], r"(?:pub)?key-[0-9a-f]{32}")
        .fires(&[concat!("key-", "dfdbaa98ffc245ae96972c2d88dc28dd")])
        .passes(&["key-value", "api-key-0f1e2d3c"]),
    named("mailgun_signing_key", "Mailgun signing key, beside its name", &["mailgun"], r"[0-9a-h]{32}-[0-9a-h]{8}-[0-9a-h]{8}")
        .fires(&[concat!(r#"mailgun_token = ""#, "2a1722033dc488b3fff4327a5cec851c-d499b6c8-8478d6c3", r#"""#), concat!(r#"{"mailgunApiKey": ""#, "7188c0c1cb618fe911310ba8eeb47cb0-c8ed488b-1a4f0089", r#""}"#)])
        .passes(&[concat!("", "4f6779e558e842277e1fdf31ad174e9e-d2d20f54-2e6c4d37")])
        .telling(),
    vendor("mailchimp_api_key", "Mailchimp API key", &["-us1", "-us2", "-us3", "-us4", "-us5", "-us6", "-us7", "-us8", "-us9"], r"[0-9a-f]{32}-us[0-9]{1,2}")
        .fires(&[concat!("be50b1a266e97b5ccbbe7f984cfc5d98", "-us14")])
        .passes(&["-us1", "aea462953eb192d38c31a433e76257db-al32", "my-us2"])
        .reaching_back(32),
    vendor("mailchimp_transactional_key", "Mailchimp transactional key", &["md-"], r"md-[0-9A-Za-z]{22}")
        .fires(&[concat!("md-", "ba5sh70S5Y39ZUWGHGeFqq")])
        .passes(&["md-icon"])
        .needing_digits(),
    vendor("brevo_api_key", "Brevo (Sendinblue) API or SMTP key", &["xkeysib-", "xsmtpsib-"], r"x(?:key|smtp)sib-[0-9a-f]{64}-[0-9A-Za-z]{16}")
        .fires(&[concat!("xkeysib-", "5622ecabea780d5cc06aaa70b3c1c71ad7d7a08d39344e06f6da2c28868f97b7-eE2708ex6i94UrV1")])
        .passes(&["xkeysib-"]),
    vendor("resend_api_key", "Resend API key", &["re_"], r"re_[0-9A-Za-z]{7,8}_[0-9A-Za-z]{23,24}")
        .fires(&[concat!("re_", "bDky1net_TZ9p268z81l5Y3FJBGoxTuo8")])
        .passes(&["re_export", "are_12345678_x"])
        .needing_digits(),
    named("postmark_token", "Postmark token, beside its name", &["postmark"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"postmark_token = ""#, "0ef885e1-a92a-4b91-ac70-43b60a6d8772", r#"""#), concat!(r#"{"postmarkApiKey": ""#, "08eff007-3e23-454c-a227-464c5e6cb10c", r#""}"#)])
        .passes(&[concat!("", "5c051fe1-d24a-4ff8-a3a1-c6af299362a5")]),
    named("mailjet_key", "Mailjet key or secret, beside its name", &["mailjet"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"mailjet_token = ""#, "761ea4a0ed74dc9b8a5a372132bb2c85", r#"""#), concat!(r#"{"mailjetApiKey": ""#, "ba095614bf4bb82e528188c89c7a1437", r#""}"#)])
        .passes(&[concat!("", "7f89a2b324545c7832eb38bc6d156a36")]),
    named("twilio_key", "Twilio API key or token, beside its name", &["twilio"], r"(?:SK|AC)[0-9a-f]{32}|[0-9a-f]{32}")
        .fires(&[concat!(r#"twilio_token = ""#, "SK5dc6b7c1ba07e0245a7210e26767f97a", r#"""#), concat!(r#"{"twilioApiKey": ""#, "SK41aac1fad50dd7915a23c4249563355b", r#""}"#)])
        .passes(&[concat!("", "SKf399d98daaa9fc88ed4c193fe9b68919")]),
    named("messagebird_key", "MessageBird key or client id, beside its name", &["messagebird", "message_bird", "message-bird"], r"[0-9A-Za-z]{25}|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"messagebird_token = ""#, "cc4sk7xo8j57t2hqxgmymu4tj", r#"""#), concat!(r#"{"messagebirdApiKey": ""#, "vs5du4q45489eu1kgcia0qdd4", r#""}"#)])
        .passes(&[concat!("", "5k3ux84w6it5rndc2qes2vr92")]),
    named("vonage_secret", "Vonage or Nexmo secret, beside its name", &["vonage", "nexmo"], r"[0-9A-Za-z]{16}")
        .fires(&[concat!(r#"vonage_token = ""#, "ED4pU7IM7dW7YTcH", r#"""#), concat!(r#"{"vonageApiKey": ""#, "tb7gk8eM5NZ7yp8w", r#""}"#)])
        .passes(&[concat!("", "VP8us5tJ4ef42DTX")]),
    named("plivo_token", "Plivo auth token, beside its name", &["plivo"], r"[0-9A-Za-z]{40}")
        .fires(&[concat!(r#"plivo_token = ""#, "C94VB8MW8LM3wDNoOJuLqy9uggp6XyJ9e08glCs8", r#"""#), concat!(r#"{"plivoApiKey": ""#, "AG3KT4g95SG4PWpZ67zzOxg4r5d0Dj0K4hoRvC5U", r#""}"#)])
        .passes(&[concat!("", "hv8h82oD7cs89LampS6mggfROE3Kwzwy0qVs1dtj")]),
    vendor("klaviyo_key", "Klaviyo private key", &["pk_"], r"pk_[0-9a-f]{34}")
        .fires(&[concat!("pk_", "f403bcb8360de33b1de4e4647e8d484bde")])
        .passes(&["pk_live_x", "pk_0f1e"]),
    named("sparkpost_key", "SparkPost API key, beside its name", &["sparkpost"], r"[0-9a-f]{40}")
        .fires(&[concat!(r#"sparkpost_token = ""#, "8cbff4c93dae66555fd0018f16e6c92311a721d5", r#"""#), concat!(r#"{"sparkpostApiKey": ""#, "5f7e97ffd748f7dfdcc857c531f26ea30860d35f", r#""}"#)])
        .passes(&[concat!("", "bbeb4fdde33821ab49547ace57081a97646df7a1")]),
];
