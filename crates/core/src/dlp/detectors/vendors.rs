//! Keys of chat, payment, mail, AI and other services.

use super::{Examples, vendor};
use crate::dlp::detector::{Detector, Shape};

pub(super) const ALL: &[Detector] = &[
    vendor(
        "slack_token",
        "Slack bot, user, app or refresh token",
        &["xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"],
        r"xox[aboprs]-(?:[0-9A-Za-z]{1,80}-){1,4}[0-9A-Za-z]{8,80}|xoxe[.-][0-9A-Za-z.-]{20,250}|xapp-[0-9]-[A-Z0-9]{6,20}-[0-9]{6,20}-[0-9a-f]{32,80}",
        &Examples {
            fires: &[concat!("xoxb-", "012345678901-012345678901-F4k3abcdefghijklmnop")],
            passes: &["xoxb-", "xoxb-your-token-here"],
        },
    )
    .needing_digits(),
    vendor(
        "slack_webhook",
        "Slack incoming webhook address",
        &["hooks.slack.com/"],
        "hooks\\.slack\\.com/(?:services/T[0-9A-Z]{6,12}/B[0-9A-Z]{6,12}|workflows/T[0-9A-Z]{6,12}/A[0-9A-Z]{6,12}/[0-9]{6,24})/[0-9A-Za-z]{16,32}",
        &Examples {
            fires: &[concat!("https://hooks.slack.com/services/", "T0F4K3F4K/B0F4K3F4K/F4k3abcdefghijklmnop0123")],
            passes: &["https://hooks.slack.com/services/"],
        },
    ),
    vendor(
        "stripe_key",
        "Stripe secret, restricted or webhook key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_prod_", "rk_prod_", "whsec_"],
        "[rs]k_(?:live|test|prod)_[0-9A-Za-z]{16,247}|whsec_[0-9A-Za-z+/]{32,64}",
        &Examples {
            fires: &[concat!("sk_live_", "F4k3abcdefghijklmnop0123"), concat!("sk_test_", "F4k3abcdefghijklmnop0123")],
            passes: &["sk_live_xxxxxxxxxxxxxxxxxxxxxxxx", "pk_live_abc", "disk_test_results"],
        },
    ),
    vendor(
        "openai_api_key",
        "OpenAI API key",
        &["t3blbkfj", "sk-proj-", "sk-svcacct-", "sk-admin-"],
        "sk-(?:proj-|svcacct-|admin-)?[0-9A-Za-z_-]{0,100}T3BlbkFJ[0-9A-Za-z_-]{20,100}|sk-(?:proj|svcacct|admin)-[0-9A-Za-z_-]{40,200}",
        &Examples {
            fires: &[
                concat!("sk-", "F4k3abcdefghijklmnop", "T3BlbkFJ", "F4k3abcdefghijklmnop"),
                concat!("sk-proj-", "F4k3abcdefghijklmnop0123456789F4k3abcdefghijklmnop"),
            ],
            passes: &["sk-proj-", "T3BlbkFJ", "task-projects"],
        },
    )
    .reaching_back(112),
    vendor(
        "anthropic_api_key",
        "Anthropic API or admin key",
        &["sk-ant-"],
        "sk-ant-(?:[a-z]{3,8}[0-9]{2}-)?[0-9A-Za-z_-]{40,120}",
        &Examples {
            fires: &[concat!(
                "sk-ant-api03-",
                "F4k3abcdefghijklmnop0123456789F4k3abcdefghijklmnop0123456789"
            )],
            passes: &["sk-ant-api03-", "task-ant-colony"],
        },
    ),
    vendor(
        "huggingface_token",
        "Hugging Face access token",
        &["hf_", "api_org_"],
        "(?:hf|api_org)_[0-9A-Za-z]{34}",
        &Examples {
            fires: &[concat!("hf_", "FakeabcdefghijklmnopqrstuvwxyzABCD")],
            passes: &["hf_hub_download", "hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"],
        },
    ),
    vendor(
        "ai_vendor_key",
        "Groq, xAI, Perplexity, Replicate or OpenRouter key",
        &["gsk_", "xai-", "pplx-", "r8_", "sk-or-v1-"],
        "gsk_[0-9A-Za-z]{48,56}|xai-[0-9A-Za-z_]{64,90}|pplx-[0-9A-Za-z]{40,60}|r8_[0-9A-Za-z_-]{37}|sk-or-v1-[0-9a-f]{64}",
        &Examples {
            fires: &[
                concat!("gsk_", "F4k3abcdefghijklmnop0123456789F4k3abcdefghijklmnop01"),
                concat!("r8_", "F4k3abcdefghijklmnop0123456789F4k3abc"),
            ],
            passes: &["gsk_", "xai-api", "r8_0"],
        },
    ),
    vendor(
        "sendgrid_api_key",
        "SendGrid API key",
        &["sg."],
        r"SG\.[0-9A-Za-z_-]{16,32}\.[0-9A-Za-z_-]{16,64}",
        &Examples {
            fires: &[concat!("SG.", "F4k3abcdefghijklmnop01.F4k3abcdefghijklmnop0123456789F4k3abcdefghi")],
            passes: &["msg.something", "SG.foo.bar"],
        },
    ),
    vendor(
        "mail_vendor_key",
        "Mailgun or Brevo key",
        &["key-", "xkeysib-"],
        "key-[0-9a-f]{32}|xkeysib-[0-9a-f]{64}-[0-9A-Za-z]{16}",
        &Examples {
            fires: &[concat!("key-", "0f1e2d3c4b5a69788796a5b4c3d2e1f0")],
            passes: &["key-value", "api-key-0f1e2d3c"],
        },
    )
    .needing_digits(),
    Detector {
        shape: Shape::Beside {
            literals: &["twilio"],
            pattern: "SK[0-9a-f]{32}",
            after: 200,
        },
        ..vendor(
            "twilio_key",
            "Twilio API key, beside Twilio's name",
            &[],
            "",
            &Examples {
                fires: &[concat!(r#"{"twilio_sid": "SK"#, r#"0f1e2d3c4b5a69788796a5b4c3d2e1f0"}"#)],
                passes: &["twilio SK00000000000000000000000000000000", "twilio SK0f1e2d3c"],
            },
        )
    },
    vendor(
        "telegram_bot_token",
        "Telegram bot token",
        &[":aa"],
        "[0-9]{8,10}:AA[0-9A-Za-z_-]{33}",
        &Examples {
            fires: &[concat!("bot 0123456789", ":AAF4k3abcdefghijklmnop0123456789F4k")],
            passes: &["12:AA", "1234567890:AAA"],
        },
    )
    .reaching_back(11),
    vendor(
        "discord_webhook",
        "Discord webhook address",
        &["/api/webhooks/"],
        "discord(?:app)?\\.com/api/webhooks/[0-9]{17,20}/[0-9A-Za-z_-]{60,72}",
        &Examples {
            fires: &[concat!(
                "https://discord.com/api/webhooks/012345678901234567/",
                "F4k3abcdefghijklmnop0123456789F4k3abcdefghijklmnop0123456789ABCDEFGH"
            )],
            passes: &["https://discord.com/api/webhooks/"],
        },
    )
    .reaching_back(14),
    vendor(
        "shopify_token",
        "Shopify access token or shared secret",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        "shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}",
        &Examples {
            fires: &[concat!("shpat_", "0f1e2d3c4b5a69788796a5b4c3d2e1f0")],
            passes: &["shpat_0f1e"],
        },
    ),
    vendor(
        "square_token",
        "Square access token or secret",
        &["sq0atp-", "sq0csp-"],
        "sq0(?:atp|csp)-[0-9A-Za-z_-]{22,60}",
        &Examples {
            fires: &[concat!("sq0atp-", "F4k3abcdefghijklmnop01")],
            passes: &["sq0atp-x"],
        },
    ),
    vendor(
        "observability_token",
        "Grafana, New Relic or Dynatrace token",
        &["glsa_", "glc_", "nrak-", "dt0c01."],
        r"glsa_[0-9A-Za-z]{32}_[0-9A-Fa-f]{8}|glc_[0-9A-Za-z+/=]{32,300}|NRAK-[0-9A-Za-z]{27}|dt0c01\.[0-9A-Za-z]{24}\.[0-9A-Za-z]{64}",
        &Examples {
            fires: &[
                concat!("glsa_", "F4k3abcdefghijklmnop012345678901_0f1e2d3c"),
                concat!("NRAK-", "F4K3ABCDEFGHIJKLMNOP0123456"),
            ],
            passes: &["glsa_", "NRAK-", "dt0c01.X.Y"],
        },
    ),
    vendor(
        "saas_token",
        "Linear, Notion, Figma, Airtable, Doppler, PlanetScale, Supabase or PostHog token",
        &["lin_api_", "ntn_", "figd_", "dp.pt.", "pscale_", "sbp_", "phx_"],
        r"lin_api_[0-9A-Za-z]{40}|ntn_[0-9]{11}[0-9A-Za-z]{35}|figd_[0-9A-Za-z_-]{38,44}|dp\.pt\.[0-9A-Za-z]{43}|pscale_(?:tkn|oauth|pw)_[0-9A-Za-z_.=-]{32,64}|sbp_[0-9a-f]{40}|phx_[0-9A-Za-z_]{43,48}",
        &Examples {
            fires: &[
                concat!("lin_api_", "F4k3abcdefghijklmnop0123456789F4k3abcdef"),
                concat!("sbp_", "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"),
            ],
            passes: &["lin_api_key", "ntn_1", "figd_x"],
        },
    ),
];
