//! Keys of AI services.

use super::{named, vendor};
use crate::dlp::detector::Detector;

pub(super) const ALL: &[Detector] = &[
    vendor("openai_api_key", "OpenAI API key", &["t3blbkfj", "sk-proj-", "sk-svcacct-", "sk-admin-"], r"sk-(?:proj-|svcacct-|admin-)?[0-9A-Za-z_-]{0,100}T3BlbkFJ[0-9A-Za-z_-]{20,100}|sk-(?:proj|svcacct|admin)-[0-9A-Za-z_-]{40,200}")
        .fires(&[concat!("sk-", "eB9yn7IO2ES3eNWEkxSVT3BlbkFJvw4bg4N03uz6anKNU8Z2"), concat!("sk-proj-", "cr35d7X76IR9VCQ0EorgQKIqJWMNfbgoOe7JV8yJhsZkcyDsR0iowzfTZpvXX5E6R0NRvZZHYR")])
        .passes(&["sk-proj-", "T3BlbkFJ", "task-projects"])
        .reaching_back(112),
    vendor("anthropic_api_key", "Anthropic API or admin key", &["sk-ant-"], r"sk-ant-(?:[a-z]{3,8}[0-9]{2}-)?[0-9A-Za-z_-]{24,120}")
        .fires(&[concat!("sk-ant-api03-", "BM5-D3_C60H90lDDfVZn3-eJ-Y9_qTu7cRaCY3RRqBX0DuwkyBwlZr4U1DIQ4HfP6r8QQO23GRnDYhi4kOCbLiws4pCXrAA")])
        .passes(&["sk-ant-api03-", "task-ant-colony"]),
    vendor("huggingface_token", "Hugging Face access token", &["hf_", "api_org_"], r"(?:hf|api_org)_[A-Za-z]{34}|hf_oauth_[0-9A-Za-z._-]{40,400}")
        .fires(&[concat!("hf_", "THbnSEvgbMjgxJzIWDHHuVRpavuAcQYYpX")])
        .passes(&["hf_hub_download", "hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"])
        .mixed_case(),
    vendor("groq_api_key", "Groq API key", &["gsk_"], r"gsk_[0-9A-Za-z]{48,56}")
        .fires(&[concat!("gsk_", "PJ8WS5Ym86s6jlqS9IEVRN1Z9gVKuREV4bmweTnzSUiXwfyhXVdA")])
        .passes(&["gsk_"]),
    vendor("xai_api_key", "xAI API key", &["xai-"], r"xai-[0-9A-Za-z_]{64,90}")
        .fires(&[concat!("xai-", "Qb5x58xN2fV9jUmQD1P8XQFXX4Q5igV3fGR6VDaaUugIsV85JzBOTTnSHiFpTDmzLH65X7Y1li248A1n")])
        .passes(&["xai-api"]),
    vendor("perplexity_api_key", "Perplexity API key", &["pplx-"], r"pplx-[0-9A-Za-z]{40,60}")
        .fires(&[concat!("pplx-", "MA6BF6dg9Js52vYZTsJUQcR1vs8oycqTGDdDwst8Xyn37z6J")])
        .passes(&["pplx-7b-online"]),
    vendor("replicate_token", "Replicate API token", &["r8_"], r"r8_[0-9A-Za-z_-]{37}")
        .fires(&[concat!("r8_", "Sc9MO8Q59Hk8FRz2r6N8bvzVlOxk5RhvK8foS")])
        .passes(&["r8_0"]),
    vendor("openrouter_api_key", "OpenRouter API key", &["sk-or-"], r"sk-or-(?:v1-)?[0-9a-f]{64}")
        .fires(&[concat!("sk-or-v1-", "9e1a634c38e368e956244d56ae4661acb7d4402c0265f381fc67c685df84225a")])
        .passes(&["sk-or-v1-"]),
    named("cohere_api_key", "Cohere API key, beside its name", &["cohere"], r"[0-9A-Za-z]{40}")
        .fires(&[concat!(r#"cohere_token = ""#, "Pr7Si5Pc3bI8SB7prGEuu54RsBUX7motK4dOmtdh", r#"""#), concat!(r#"{"cohereApiKey": ""#, "cM50R5AD29V4lGa7uxDpTIeWylr7Z6owPE7rF47d", r#""}"#)])
        .passes(&[concat!("", "xu5xl96M55h6Vw26jlgx6NwDvREjr00pKrUPRMMI")]),
    named("mistral_api_key", "Mistral API key, beside its name", &["mistral"], r"[0-9A-Za-z]{32}")
        .fires(&[concat!(r#"mistral_token = ""#, "392Oh83K4BN7ZllvA3JAijiO2B77SOzT", r#"""#), concat!(r#"{"mistralApiKey": ""#, "UY6Y05mn4j52LsB6LG21mc5LHeMb9T3z", r#""}"#)])
        .passes(&[concat!("", "xr6ur5wf9pQ6LqPX9v8RNEiD4dPJfoDt")]),
    named("deepseek_api_key", "DeepSeek API key, beside its name", &["deepseek"], r"sk-[0-9a-f]{32}")
        .fires(&[concat!(r#"deepseek_token = ""#, "sk-e8654717403e4483b9347baf164ceed5", r#"""#), concat!(r#"{"deepseekApiKey": ""#, "sk-bdb5418a138789a377d1f1bf4b82b1ed", r#""}"#)])
        .passes(&[concat!("", "sk-15f7d4f90edff94246414242b35f22c3")])
        .telling(),
    named("together_api_key", "Together AI API key, beside its name", &["together"], r"[0-9a-f]{64}|tgp_v1_[0-9A-Za-z_-]{43}")
        .fires(&[concat!(r#"together_token = ""#, "31a6778360a3696044532edeb68df302f13c9452d0467e6139345bf5297f6a5a", r#"""#), concat!(r#"{"togetherApiKey": ""#, "4cea45a85772c330a2e5c567a85259ab6a4827ee0b490e1f0b0ea0f0fad0f76d", r#""}"#)])
        .passes(&[concat!("", "c788d8ce2e9bad07ed5cb88923188e02716ccfe4bdf6ef7ff11d0cef3700a715")]),
    vendor("fireworks_api_key", "Fireworks AI API key", &["fw_"], r"fw_[0-9A-Za-z]{22,28}")
        .fires(&[concat!("fw_", "lz8ds2Ov3CT7iYzlPkY3D6H1")])
        .passes(&["fw_update", "fw_"])
        .needing_digits(),
    vendor("elevenlabs_api_key", "ElevenLabs API key", &["sk_"], r"sk_[0-9a-f]{48}")
        .fires(&[concat!("sk_", "8c6aaa05b5ab33d0cd1813b36d72ff3b406765ff06ca8f33")])
        .passes(&["sk_", "disk_usage"]),
    named("stability_api_key", "Stability AI API key, beside its name", &["stability"], r"sk-[0-9A-Za-z]{48}")
        .fires(&[concat!(r#"stability_token = ""#, "sk-Rx2Xb7t965K9DSn06eMYjmicKHz0NawNzaleFIHtn913FKxq", r#"""#), concat!(r#"{"stabilityApiKey": ""#, "sk-vb8Rm8lt9Il7YnWFB4rSJba3Y0o8zmeiHpMjbe9CztV9X67k", r#""}"#)])
        .passes(&[concat!("", "sk-Vq5fw5k26bC8KVVBPgQu9fw7j3xbT0iCK9sOTzC62baooypP")])
        .telling(),
    vendor("langsmith_api_key", "LangSmith API key", &["lsv2_"], r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}")
        .fires(&[concat!("lsv2_pt_", "0200062e53a03ca461f8f9ed5afb7932_24efec8aff")])
        .passes(&["lsv2_pt_"]),
    vendor("langfuse_secret_key", "Langfuse secret key", &["sk-lf-"], r"sk-lf-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("sk-lf-", "275e04dc-04ef-420b-a5bd-1c33954ddfee")])
        .passes(&["sk-lf-"]),
    named("wandb_api_key", "Weights & Biases API key, beside its name", &["wandb"], r"[0-9a-f]{40}")
        .fires(&[concat!(r#"wandb_token = ""#, "6097a7dd3e1dabb123e3090dfad2c919239dbc0e", r#"""#), concat!(r#"{"wandbApiKey": ""#, "005393e20ff59ae8593b81e0aba7da45083142db", r#""}"#)])
        .passes(&[concat!("", "2760d9a79ffd7b4333e1cfea138798701d6e7368")]),
    vendor("cerebras_api_key", "Cerebras API key", &["csk-"], r"csk-[0-9a-z]{40,56}")
        .fires(&[concat!("csk-", "lf2fv90g9gd9zhse3r23foezsko13r8a9vp9aryt7q9b6fpz")])
        .passes(&["csk-"]),
    vendor("tavily_api_key", "Tavily API key", &["tvly-"], r"tvly-(?:dev-|prod-)?[0-9A-Za-z]{28,40}")
        .fires(&[concat!("tvly-", "mQ2On5i449F9fGoyZe0DZlXLvW00P9G3")])
        .passes(&["tvly-"]),
    vendor("nvidia_api_key", "NVIDIA API key", &["nvapi-"], r"nvapi-[0-9A-Za-z_-]{60,72}")
        .fires(&[concat!("nvapi-", "HJ9ZI3yY2792K-ApICJFW5mfJPOQ3xwACl3YQt7X4gFmzpm5NU5IK5jciGbnslRC")])
        .passes(&["nvapi-"]),
    vendor("voyage_api_key", "Voyage AI API key", &["pa-"], r"pa-[0-9A-Za-z_-]{43}")
        .fires(&[concat!("pa-", "xy7Ku3Mu4vp7Oi4Uxhefv5OXi5kz3VoeXi9H0GTPDs8")])
        .passes(&["pa-system", "spa-x"])
        .needing_digits(),
    vendor("jina_api_key", "Jina API key", &["jina_"], r"jina_[0-9a-f]{32}[0-9A-Za-z_-]{20,36}")
        .fires(&[concat!("jina_", "87ce49db43da925deecc69be1aa1ed0dHe3_q6cI8p09A1ifN_w5c7CBHhwV")])
        .passes(&["jina_"]),
    vendor("firecrawl_api_key", "Firecrawl API key", &["fc-"], r"fc-[0-9a-f]{32}")
        .fires(&[concat!("fc-", "e1ab524cc03ca02f053a66fb930051dd")])
        .passes(&["fc-0f1e"]),
    vendor("e2b_api_key", "E2B API key", &["e2b_"], r"e2b_[0-9a-f]{40}")
        .fires(&[concat!("e2b_", "4636b1ceadae81d7cef304de7e34a85249c13b7f")])
        .passes(&["e2b_"]),
    named("assemblyai_api_key", "AssemblyAI API key, beside its name", &["assemblyai", "assembly_ai"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"assemblyai_token = ""#, "d2f0e57e30f91894a5c73075a3349648", r#"""#), concat!(r#"{"assemblyaiApiKey": ""#, "fb6c11397eb7e160cb8a6bd8d9430b38", r#""}"#)])
        .passes(&[concat!("", "bd46b9234f1ca992af1524028b2fd9d3")]),
    named("deepgram_api_key", "Deepgram API key, beside its name", &["deepgram"], r"[0-9a-f]{40}")
        .fires(&[concat!(r#"deepgram_token = ""#, "76eba0f28aa8423cb480675930060bca3eef06d3", r#"""#), concat!(r#"{"deepgramApiKey": ""#, "9e6f5e23cc7e3866ac5e26272c33a9b955ea41ba", r#""}"#)])
        .passes(&[concat!("", "d61ad3089338d824e99f4d0287e2f5ab384aeeb7")]),
    vendor("cursor_api_key", "Cursor API key", &["key_", "crsr_"], r"key_[0-9a-f]{64}|crsr_[0-9a-f]{64}")
        .fires(&[concat!("crsr_", "c89e5f736c842b284a31dd0f877f257f8287f51c25be24786cecf7fb12562278")])
        .passes(&["key_id", "crsr_"]),
    vendor("context7_api_key", "Context7 API key", &["ctx7sk-"], r"ctx7sk-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("ctx7sk-", "f02dc3ab-6e13-425f-a29c-c8a7d34301e4")])
        .passes(&["ctx7sk-"]),
];
