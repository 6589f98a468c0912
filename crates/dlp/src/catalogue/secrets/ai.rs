//! Keys of AI services.

use crate::catalogue::detector::{Candidate, Detector, Edges};
use crate::catalogue::secrets::{
    randomness::random_with_digits,
    vendor::{named, vendor},
};

pub(super) const ALL: &[Detector] = &[
    vendor("openai_api_key", "OpenAI API key", &["t3blbkfj", "sk-proj-", "sk-svcacct-", "sk-admin-"], r"sk-(?:proj-|svcacct-|admin-)?[0-9A-Za-z_-]{0,100}T3BlbkFJ[0-9A-Za-z_-]{20,100}|sk-(?:proj|svcacct|admin)-[0-9A-Za-z_-]{40,200}")
        .fires(&[concat!("sk-", "gn20P4zj3nK9U8Z2ijeqT3BlbkFJbD76y8Dl5Yr3TMG1txo6"), concat!("sk-proj-", "rg5KI5JW2Nf7goOe7JV8yJhsZkcyDsR0iowzfTZpvXX5E6R0NRvZZHYRiRM9BMi-DT_CN0H20l")])
        .passes(&["sk-proj-", "T3BlbkFJ", "task-projects"])
        .reaching_back(112),
    vendor("anthropic_api_key", "Anthropic API or admin key", &["sk-ant-"], r"sk-ant-(?:[a-z]{3,8}[0-9]{2}-)?[0-9A-Za-z_-]{24,120}")
        .fires(&[concat!("sk-ant-api03-", "Zn7-e7-Y8_q2u7cRaCY3RRqBX0DuwkyBwlZr4U1DIQ4HfP6r8QQO23GRnDYhi4kOCbLiws4pCXrAlM8cB9RncsnUZ7OEaAA")])
        .passes(&["sk-ant-api03-", "task-ant-colony"]),
    vendor("huggingface_token", "Hugging Face access token", &["hf_", "api_org_"], r"(?:hf|api_org)_[A-Za-z]{34}|hf_oauth_[0-9A-Za-z._-]{40,400}")
        .fires(&[concat!("hf_", "QYYpXPJWSYmbsUjlqSIEVRNZgVKuREVbmw")])
        .passes(&["hf_hub_download", "hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"])
        .mixed_case(),
    vendor("groq_api_key", "Groq API key", &["gsk_"], r"gsk_[0-9A-Za-z]{48,56}")
        .fires(&[concat!("gsk_", "eT3zS9iX2fy2XVdABmBsQb4x5AxNIfVAjUmQD1P8XQFXX4Q5igV3")])
        .passes(&["gsk_"]),
    vendor("xai_api_key", "xAI API or management key", &["xai-"], r"xai-(?:token-)?[0-9A-Za-z_]{64,90}")
        .fires(&[concat!("xai-", "Uu8Is2856zB9TTnSHiFpTDmzLH65X7Y1li248A1n6nUybSO2GX3CMAlBFFdgaJst2vYZTsJUQcR1vs8o")])
        .passes(&["xai-api"]),
    vendor("perplexity_api_key", "Perplexity API key", &["pplx-"], r"pplx-[0-9A-Za-z]{40,60}")
        .fires(&[concat!("pplx-", "dD3st7Xy33756Jt4qEoScOMOVQ5dHkoFRz2r6N8bvzVlOxk5")])
        .passes(&["pplx-7b-online"]),
    vendor("replicate_token", "Replicate API token", &["r8_"], r"r8_[0-9A-Za-z_-]{37}")
        .fires(&[concat!("r8_", "S15AR6AY96Q6CLc57un2PXVgjyg6H4544q4Dg")])
        .passes(&["r8_0"]),
    vendor("openrouter_api_key", "OpenRouter API key", &["sk-or-"], r"sk-or-(?:v1-)?[0-9a-f]{64}")
        .fires(&[concat!("sk-or-v1-", "56244d56ae4661acb7d4402c0265f381fc67c685df84225a8410d78faa9d6791")])
        .passes(&["sk-or-v1-"]),
    named("cohere_api_key", "Cohere API key, beside its name", &["cohere"], r"[0-9A-Za-z]{40}")
        .fires(&[concat!(r#"cohere_token = ""#, "Om5dh7vO97e6ycMH0RkADO9VJlGa7uxDpTIeWylr", r#"""#), concat!(r#"{"cohereApiKey": ""#, "F45dG6mp5jx9Wxlz6M35htVw26jlgx6NwDvREjr0", r#""}"#)])
        .passes(&[concat!("", "ns69T5hg5Kr4NEZllvA3JAijiO2B77SOzTTdBj8v")]),
    named("mistral_api_key", "Mistral API key, beside its name", &["mistral"], r"[0-9A-Za-z]{32}")
        .fires(&[concat!(r#"mistral_token = ""#, "576sB4LG71m65LHeMb9T3zHJsn5SLjdx", r#"""#), concat!(r#"{"mistralApiKey": ""#, "Ow9Yp6kL9PX6v8RNEiD4dPJfoDtqn7XO", r#""}"#)])
        .passes(&[concat!("", "nk4io5pi7b275Z03hCijr8gJ29x4tXgH")]),
    vendor("deepseek_api_key", "DeepSeek API key, or one of its form: Moonshot, Qwen and others", &["sk-"], r"sk-[0-9a-f]{32}")
        .fires(&[concat!("sk-", "cc6577428c2f6d6bc64e5a22fac180d6"), concat!("deepseek: sk-", "b2e6e1b465e551305fd2d2490ca4c616")])
        .passes(&["sk-", "task-0123456789abcdef0123456789abcdef"]),
    named("together_api_key", "Together AI API key, beside its name", &["together"], r#"(?:^|[\s"'`=:>(,\[])([0-9a-f]{64}|tgp_v1_[0-9A-Za-z_-]{43})"#)
        .fires(&[concat!(r#"together_token = ""#, "eb68df302f13c9452d0467e6139345bf5297f6a5a4cea45a85772c330a2e5c56", r#"""#), concat!(r#"{"togetherApiKey": ""#, "7a85259ab6a4827ee0b490e1f0b0ea0f0fad0f76dc788d8ce2e9bad07ed5cb88", r#""}"#)])
        .passes(&[concat!("", "923188e02716ccfe4bdf6ef7ff11d0cef3700a7155c19ae44c55ec02a8c6aaa0")]),
    vendor("fireworks_api_key", "Fireworks AI API key", &["fw_"], r"fw_[0-9A-Za-z]{22,28}")
        .fires(&[concat!("fw_", "Jk3xP5vZ87Z5IhAbz4Bdrcgw")])
        .passes(&["fw_update", "fw_"])
        .needing_digits(),
    vendor("elevenlabs_api_key", "ElevenLabs API key", &["sk_"], r"sk_[0-9a-f]{48}")
        .fires(&[concat!("sk_", "2ff3b406765ff06ca8f33b099dee624641c0bc052f96fb81")])
        .passes(&["sk_", "disk_usage"]),
    Detector {
        check: unlike_openai,
        ..vendor("stability_api_key", "Stability AI API key, or one of its form: Moonshot, SiliconFlow, Braintrust and others", &["sk-"], r"sk-[0-9A-Za-z]{48}")
    }
        .fires(&[concat!("sk-", "CqIz0Wiw8SE7diV3TMXVjM8AhghjsllAj7n4JuXFZo2qh20x"), concat!("STABILITY_API_KEY=sk-", "lReGsaL1dvnyzv0ZzyA0xIfl4c7xU2zXCot2PoPUtg3SUunW")])
        .passes(&["sk-", concat!("sk-", "gn20P4zj3nK9U8Z2ijeqT3BlbkFJbD76y8Dl5Yr3TMG1txo6")]),
    vendor("langsmith_api_key", "LangSmith API key", &["lsv2_"], r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}")
        .fires(&[concat!("lsv2_pt_", "afb793224efec8aff275e04dc04ef20b_5bd1c33954")])
        .passes(&["lsv2_pt_"]),
    vendor("langfuse_secret_key", "Langfuse secret key", &["sk-lf-"], r"sk-lf-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("sk-lf-", "ddfee609-7a7d-4d3e-a1da-bb123e3090df")])
        .passes(&["sk-lf-"]),
    named("wandb_api_key", "Weights & Biases API key, beside its name", &["wandb"], r"[0-9a-f]{40}")
        .fires(&[concat!(r#"wandb_token = ""#, "ad2c919239dbc0e005393e20ff59ae8593b81e0a", r#"""#), concat!(r#"{"wandbApiKey": ""#, "ba7da45083142db2760d9a79ffd7b4333e1cfea1", r#""}"#)])
        .passes(&[concat!("", "38798701d6e73685272a3d32311c392e8ee272c9")]),
    vendor("cerebras_api_key", "Cerebras API key", &["csk-"], r"csk-[0-9a-z]{40,56}")
        .fires(&[concat!("csk-", "ko43r9a96p96ryt7q9b6fpzc2735mnti95xf6oye3lv66an7")])
        .passes(&["csk-"]),
    vendor("tavily_api_key", "Tavily API key", &["tvly-"], r"tvly-(?:dev-|prod-)?[0-9A-Za-z]{28,40}")
        .fires(&[concat!("tvly-", "Wi5rY6hK5zP8JkDEpsUYM63JFnNJ5hr8")])
        .passes(&["tvly-"]),
    vendor("nvidia_api_key", "NVIDIA API key", &["nvapi-"], r"nvapi-[0-9A-Za-z_-]{60,72}")
        .fires(&[concat!("nvapi-", "5m8JP5Q33wA4l3YQt7X4gFmzpm5NU5IK5jciGbnslRC8ndgUWzP5PRFTqUoikQru")])
        .passes(&["nvapi-"]),
    vendor("voyage_api_key", "Voyage AI API key", &["pa-"], r"pa-[0-9A-Za-z_-]{43}")
        .fires(&[concat!("pa-", "9H4GT3Ds8Hw7hkHuTQYrLPPLS1oyMTD4HiNGs9Bw5Z5")])
        .passes(&["pa-system", "spa-x"])
        .needing_digits(),
    vendor("jina_api_key", "Jina API key", &["jina_"], r"jina_[0-9a-f]{32}[0-9A-Za-z_-]{20,36}")
        .fires(&[concat!("jina_", "925deecc69be1aa1ed0d81df4008d3d9A18fN2w537C8HhwViMY46eOUxirX")])
        .passes(&["jina_"]),
    vendor("firecrawl_api_key", "Firecrawl API key", &["fc-"], r"fc-[0-9a-f]{32}")
        .fires(&[concat!("fc-", "a02f053a66fb930051dd4636b1ceadae")])
        .passes(&["fc-0f1e"]),
    vendor("e2b_api_key", "E2B API key", &["e2b_"], r"e2b_[0-9a-f]{40}")
        .fires(&[concat!("e2b_", "81d7cef304de7e34a85249c13b7fd2f0e57e30f9")])
        .passes(&["e2b_"]),
    named("assemblyai_api_key", "AssemblyAI API key, beside its name", &["assemblyai", "assembly_ai"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"assemblyai_token = ""#, "1894a5c73075a3349648fb6c11397eb7", r#"""#), concat!(r#"{"assemblyaiApiKey": ""#, "e160cb8a6bd8d9430b38bd46b9234f1c", r#""}"#)])
        .passes(&[concat!("", "a992af1524028b2fd9d376eba0f28aa8")]),
    named("deepgram_api_key", "Deepgram API key, beside its name", &["deepgram"], r"[0-9a-f]{40}")
        .fires(&[concat!(r#"deepgram_token = ""#, "423cb480675930060bca3eef06d39e6f5e23cc7e", r#"""#), concat!(r#"{"deepgramApiKey": ""#, "3866ac5e26272c33a9b955ea41bad61ad3089338", r#""}"#)])
        .passes(&[concat!("", "d824e99f4d0287e2f5ab384aeeb7c89e5f736c84")]),
    vendor("cursor_api_key", "Cursor API key", &["key_", "crsr_"], r"key_[0-9a-f]{64}|crsr_[0-9a-f]{64}")
        .fires(&[concat!("crsr_", "2b284a31dd0f877f257f8287f51c25be24786cecf7fb12562278f02dc3ab6e13")])
        .passes(&["key_id", "crsr_"]),
    vendor("context7_api_key", "Context7 API key", &["ctx7sk-"], r"ctx7sk-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("ctx7sk-", "25f29cc8-a7d3-4430-a1e4-890ee8e8431c")])
        .passes(&["ctx7sk-"]),
    vendor("llama_cloud_api_key", "LlamaCloud API key", &["llx-"], r"llx-[0-9A-Za-z]{48}")
        .fires(&[concat!("llx-", "26auCJp8cHzlQEWht8NC1Wd3N52OWt3O2VcbNs6UPKlNfprB")])
        .passes(&["llx-", "llx-chat-widget"]),
    vendor("together_token", "Together AI API key with a mark", &["tgp_v1_"], r"tgp_v1_[0-9A-Za-z_-]{43}")
        .fires(&[concat!("tgp_v1_", "PEVVIPcP4Y7p4tD14z4gzM-jppZxO4z7KdcwjOoGUI0")])
        .passes(&["tgp_v1_"]),
    vendor("runpod_api_key", "RunPod API key", &["rpa_"], r"rpa_[0-9A-Z]{38,42}[0-9A-Za-z]{2,8}")
        .fires(&[concat!("rpa_", "0EPPW024DD9HKO4RUGA1PPMDUDCBA459GCCTMRWX9v0YgY")])
        .passes(&["rpa_", "rpa_process_id"])
        .needing_digits(),
    vendor("friendli_token", "Friendli token", &["flp_"], r"flp_[0-9A-Za-z]{46}")
        .fires(&[concat!("flp_", "cS9mDyQk2nH1MuUAJ02RyPA2EFAV296DuKOaY15QMhUxY4")])
        .passes(&["flp_"]),
    vendor("mem0_api_key", "Mem0 API key", &["m0-"], r"m0-[0-9A-Za-z]{40}")
        .fires(&[concat!("m0-", "4TRWhbQw8KdzKYC5JkAkJyGX1qwRKlpGGiFqudVR")])
        .passes(&["m0-", "m0-medium"])
        .needing_digits(),
    vendor("coze_token", "Coze personal access token", &["pat_"], r"pat_[0-9A-Za-z]{64}")
        .fires(&[concat!("pat_", "OzLpF0CVYy71uCPLYV9nubuDbh4ITjNqEVQs0fzGdjaNtEU7xvOdLMfxM1YvSOmq")])
        .passes(&["pat_", "pat_token"])
        .needing_digits(),
    vendor("cartesia_api_key", "Cartesia API key", &["sk_car_"], r"sk_car_[0-9A-Za-z]{20,24}")
        .fires(&[concat!("sk_car_", "FiQmA5eJyQ90igFSNWEnz9")])
        .passes(&["sk_car_"])
        .needing_digits(),
    vendor("wandb_token", "Weights & Biases API key of the newer form", &["wandb_v1_"], r"wandb_v1_[0-9A-Za-z_]{77}")
        .fires(&[concat!("wandb_v1_", "1eO9joovm4gfnvE0rGRV3XM4Z4U2htVAZDVxGm5frKvHxBj3OIgKfdvGHnaZoxd38PqaMtn5C3Fxa")])
        .passes(&["wandb_v1_"]),
    vendor("minimax_api_key", "MiniMax API key", &["sk-api-"], r"sk-api-[0-9A-Za-z_-]{119}")
        .fires(&[concat!("sk-api-", "uhTmQkfSm2BR7uEXs8CgXTUwh2x-JhGKq9FFv_W4KF0T9obHRp_N9NIbUYN-x7qRdSXvSRvzi1JYY4U9QF3MpeUGeKFAM4eVvmMBE25UheeiLGsZqGuzN8X")])
        .passes(&["sk-api-"]),
    vendor("helicone_api_key", "Helicone API key", &["sk-helicone-", "pk-helicone-"], r"[sp]k-helicone-(?:[a-z]{2,6}-)?[0-9a-z]{7}(?:-[0-9a-z]{7}){3}")
        .fires(&[concat!("sk-helicone-", "w67myze-bxvfwoy-iaij0db-dmlu1t3")])
        .passes(&["sk-helicone-"]),
    vendor("devin_api_key", "Devin API key", &["apk_user_", "cog_"], r"apk_user_[0-9A-Za-z+/]{80,180}={0,2}|cog_[a-z2-7]{52}")
        .fires(&[concat!("cog_", "6tjhl2xlb2e72b2hr3cq5wrxmnaqibyddzn76vtwkqx7bitqwrdf"), concat!("apk_user_", "0z1HmU9IeCDth63guwC+pjR9PtoejZHnfaZ5GrHuTE0jd0j8My4oy1OILnCw0Nkr9WoMUssLZ2shr3zJRrsBHX0P+pzr47oGQWeqUcmhwdDk4vJ/CsJ63cBGiDTZJTPCoc0xkQyiN6Ig==")])
        .passes(&["apk_user_", "cog_"]),
    vendor("apify_token", "Apify API token", &["apify_api_"], r"apify_api_[0-9A-Za-z]{34,38}")
        .fires(&[concat!("apify_api_", "W4Ffr1H5c95iomeivfDw1zcSEIGKxEPDIfSO")])
        .passes(&["apify_api_"]),
    named("brave_search_api_key", "Brave Search API key, beside its name", &["brave"], r"BSA[0-9A-Za-z_-]{27,28}")
        .fires(&[concat!(r#"BRAVE_API_KEY=""#, "BSAGTd7FguoV8FWnFbB0JxXujr4qqaa", r#"""#), concat!(r#"{"braveSearchApiKey": ""#, "BSAOx98whGcTZc1UWb5fxzpF7STG7nV", r#""}"#)])
        .passes(&[concat!("", "BSA1she_QAqq0nv3Vth1Ls6v6-O9JL8")])
        .telling(),
    vendor("scrapfly_api_key", "Scrapfly API key", &["scp-live-", "scp-test-"], r"scp-(?:live|test)-[0-9a-f]{32}")
        .fires(&[concat!("scp-live-", "a058e8a676cc406c0538ca926e4a7554")])
        .passes(&["scp-live-"]),
    vendor("browserbase_api_key", "Browserbase API key", &["bb_live_"], r"bb_live_[0-9A-Za-z_-]{24,40}")
        .fires(&[concat!("bb_live_", "SYzVsBE0lzkiHfvbbb4ZA1lf2kd")])
        .passes(&["bb_live_"])
        .needing_digits(),
    vendor("daytona_api_key", "Daytona API key", &["dtn_"], r"dtn_[0-9a-f]{64}")
        .fires(&[concat!("dtn_", "d71d36451d6188ef491f8bf4267ef3823247bb8338a3df40853ae7ab39c4b01f")])
        .passes(&["dtn_"]),
    Detector {
        edges: Edges::Word,
        ..vendor("runway_api_key", "Runway API key", &["key_"], r"key_[0-9a-f]{128}")
    }
        .fires(&[concat!("key_", "29fb876e020a4fc512f52640b349e1d8158494e1cbfaef1f5ee9835dd33fc86b3584ae22c619172a9e282d63c6e7b6d5691b4ffa441542a5012461dca6c89da4")])
        .passes(&["key_"]),
    vendor("deepl_api_key", "DeepL API key of the free plan", &[":fx"], r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:fx")
        .fires(&[concat!("288dc83c-869c-1be7-f5c9-02fc9df5cf59", ":fx")])
        .passes(&[":fx", "bb65ef0e-30bf-24ab-99a9-6826aaae8237"])
        .reaching_back(36),
];

/// Keys with `T3BlbkFJ` in the middle have a detector of their own.
fn unlike_openai(candidate: &Candidate<'_>) -> Option<i32> {
    let is_openai = memchr::memmem::find(candidate.matched(), b"T3BlbkFJ").is_some();
    if is_openai { None } else { random_with_digits(candidate) }
}
