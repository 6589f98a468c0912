//! Tokens of chat, social and meeting services.

use super::{named, vendor};
use crate::dlp::detector::Detector;

pub(super) const ALL: &[Detector] = &[
    vendor("slack_token", "Slack bot, user, app, configuration or refresh token", &["xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-", "xwfp-"], r"xox[aboprs]-(?:[0-9A-Za-z]{1,80}-){1,4}[0-9A-Za-z]{8,80}|xoxe[.-][0-9A-Za-z.-]{20,250}|xapp-[0-9]-[A-Z0-9]{6,20}-[0-9]{6,20}-[0-9a-f]{32,80}|xwfp-[0-9]{8,16}-[0-9A-Za-z]{20,80}")
        .fires(&[concat!("xoxb-", "440877474210-604648345170-Mw3u47df5tr2ZGBrX6eAfbW7")])
        .passes(&["xoxb-", "xoxb-your-token-here"])
        .needing_digits(),
    vendor("slack_webhook", "Slack incoming webhook address", &["hooks.slack.com/"], r"hooks\.slack\.com/(?:services|workflows|triggers)/[0-9A-Za-z+/]{40,60}")
        .fires(&[concat!("https://hooks.slack.com/services/", "TPD1ALYC2/BRSXFDC3X/CI53L94H3D645QL5t2liVwF9")])
        .passes(&["https://hooks.slack.com/services/"]),
    vendor("discord_webhook", "Discord webhook address", &["/api/webhooks/"], r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[0-9A-Za-z_-]{60,72}")
        .fires(&[concat!("https://discord.com/api/webhooks/579712982768537238/", "Si9Nm2u85Lq4lBd4dh1pqt9bCIhGUb1kixrQWWJjDuWJl58c72xEHNVF_64xB4bI5JcD")])
        .passes(&["https://discord.com/api/webhooks/"])
        .reaching_back(14),
    named("discord_secret", "Discord client id, secret or token, beside its name", &["discord"], r"[0-9a-f]{64}|[0-9A-Za-z=_-]{32}|[0-9]{17,19}|[MNO][0-9A-Za-z]{23,25}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27,38}")
        .fires(&[concat!(r#"discord_token = ""#, "6x2VB8sR4zB2WA5E0pDjQS6otrCXgktr", r#"""#), concat!(r#"{"discordApiKey": ""#, "Xb3vK6Nq2lW2YrV03wAA-4j98iCQSVhz", r#""}"#)])
        .passes(&[concat!("", "eN55H8S05XV5nwm265oPsmuvYElsmw79")]),
    vendor("telegram_bot_token", "Telegram bot token", &[":aa"], r"[0-9]{8,10}:(?i:AA)[0-9A-Za-z_-]{32,33}")
        .fires(&[concat!("bot ", "2817285912:AAr96Kz2J75rD3BWpOGRbVQ5mEl1g16FS0x")])
        .passes(&["12:AA", "1234567890:AAA"])
        .reaching_back(11),
    vendor("teams_webhook", "Microsoft Teams webhook address", &["webhook.office.com/"], r"webhook\.office\.com/webhookb2/[0-9A-Za-z@/-]{60,300}")
        .fires(&[concat!("https://x.webhook.office.com/webhookb2/", "92965f4f-55c6-4e71-a0ab-509fea292372@b6b34626-2e67-4530-a609-a06272f8b157/IncomingWebhook/c24ace7d9ea11fb81bff13b62dcfed07/388f75c0-47f8-47a3-a71a-2bb64e5c2438")])
        .passes(&["https://x.webhook.office.com/"]),
    named("mattermost_token", "Mattermost token, beside its name", &["mattermost"], r"[0-9a-z]{26}")
        .fires(&[concat!(r#"mattermost_token = ""#, "c47ah4fl4m98ieoavufbw1bovo", r#"""#), concat!(r#"{"mattermostApiKey": ""#, "ag63i2rr7f55yjyjb5h64i3d51", r#""}"#)])
        .passes(&[concat!("", "mk9ap47b87b4t9qsibk39uds4n")]),
    named("twitch_token", "Twitch token, beside its name", &["twitch"], r"[0-9a-z]{30}")
        .fires(&[concat!(r#"twitch_token = ""#, "655e97e15jb8qz11fagul6wd8j623x", r#"""#), concat!(r#"{"twitchApiKey": ""#, "s538v5ex65f5s1s9o69h9ebzugl6db", r#""}"#)])
        .passes(&[concat!("", "jl5vh7x75ug9rhmoz8myv5lc65gdxd")]),
    vendor("twitter_bearer_token", "Twitter bearer token", &["aaaaaaaaaaaaaaaaaaaaa"], r"A{21,23}[0-9A-Za-z%]{80,100}")
        .fires(&[concat!("AAAAAAAAAAAAAAAAAAAAAA", "j73so8sG8uc5W4PtLgrp69xilWgir6pLuLNmrJLFw5noGMUHZkXJk9GKK6FMe7SO3LjZGbhVHmjmzcoDuX2FZ2GNpBFmT6IQ")])
        .passes(&["AAAAAAAAAAAAAAAAAAAAAA"])
        .even_if_dull(),
    named("twitter_secret", "Twitter key, secret or access token, beside its name", &["twitter"], r"[0-9]{15,25}-[0-9A-Za-z]{20,40}|[0-9A-Za-z]{50}|[0-9A-Za-z]{45}|[0-9A-Za-z]{25}")
        .fires(&[concat!(r#"twitter_token = ""#, "608TO5A18BT6Z7WZ3li24QbmcLks795Q7fHnjFWu2uHLZpcEEZ", r#"""#), concat!(r#"{"twitterApiKey": ""#, "FS4n13446Lp5UsKKS32j1vgykWdnPaJRWs4K0kZuSXrbRFNjgj", r#""}"#)])
        .passes(&[concat!("", "9n4wL5L039V3zpnoxnavadk7EVptNIe7tNvVN42fV1C2BJIGLq")]),
    vendor("facebook_token", "Facebook access token", &["eaaa", "eaab", "eaac", "eaad", "eaag", "eaam"], r"EAA[ABCDGM][0-9A-Za-z]{90,300}")
        .fires(&[concat!("EAAC", "ZP8sB2Em4eH2ntXv90J7aL1qThP0lIX00w7pmDozdKIn5wy9S0jhReeqIjBr0awZAZzri7Pt0BqTNDGblNaNDjZyMYmZcQUse0KsWlOa0GaOWD6fLnzi8MbYKgarLj2Jk0pFV7PjRXoI")])
        .passes(&["EAAC", "EAAB"])
        .reaching(0, 320),
    named("facebook_secret", "Facebook app secret or token, beside its name", &["facebook", "fb_app", "instagram"], r"[0-9a-f]{32}|[0-9]{15,16}(?:\||%7C)[0-9A-Za-z_-]{27,40}")
        .fires(&[concat!(r#"facebook_token = ""#, "460a58c202e536515ed411cc84a13958", r#"""#), concat!(r#"{"facebookApiKey": ""#, "f14c2dd7d206832492d633b346c3011f", r#""}"#)])
        .passes(&[concat!("", "d72c903722b34a1186bfa12fed0c43df")]),
    named("linkedin_secret", "LinkedIn client id or secret, beside its name", &["linkedin", "linked_in"], r"[0-9A-Za-z]{16}|[0-9A-Za-z]{14}")
        .fires(&[concat!(r#"linkedin_token = ""#, "kg4d34bx6pf9tbz7", r#"""#), concat!(r#"{"linkedinApiKey": ""#, "cv6592u88za9xoex", r#""}"#)])
        .passes(&[concat!("", "da8jn30k4843gv32")]),
    named("spotify_secret", "Spotify client secret, beside its name", &["spotify"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"spotify_token = ""#, "3409f9ae036fa2ed43aeeaef2c1cce93", r#"""#), concat!(r#"{"spotifyApiKey": ""#, "ab28693234d970daff4ae14ca80b215f", r#""}"#)])
        .passes(&[concat!("", "6882daa6bb849dd776bc6560531ea6b0")]),
    named("reddit_secret", "Reddit client secret, beside its name", &["reddit"], r"[0-9A-Za-z_-]{27,30}")
        .fires(&[concat!(r#"reddit_token = ""#, "zI63e9Gn7MP4pbfhUAOfloS6tjK", r#"""#), concat!(r#"{"redditApiKey": ""#, "vO2V68t26gy3Ol0WZ4RfZuaLd8j", r#""}"#)])
        .passes(&[concat!("", "ls4bk2uF64Y2BOhivamwTItvlLR")]),
    named("intercom_token", "Intercom token, beside its name", &["intercom"], r"[0-9A-Za-z=_-]{60}")
        .fires(&[concat!(r#"intercom_token = ""#, "8c74i4sg7gN6_3GIRntz8ojdtOY1sVpz6y7DMhv5jvZrzPnl4RfkwpmRcxtc", r#"""#), concat!(r#"{"intercomApiKey": ""#, "Kk6JK6x73ee9jqnw8iJO-XXkHDNWrIU_1IEGSuxaDN70bn_hVG6cJVRi4bL4", r#""}"#)])
        .passes(&[concat!("", "6u4Pj4025Uk7vdpi58G7wrYN5mcsCkpOzJhjVETgoVQHJgVgksPeO3-wXhO0")]),
    named("sendbird_token", "Sendbird token or application id, beside its name", &["sendbird"], r"[0-9a-f]{40}|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"sendbird_token = ""#, "88ae9d7d05a15b15849e9bbcead6d70c7e95d820", r#"""#), concat!(r#"{"sendbirdApiKey": ""#, "a80d02f194f1b722abcb1ecce9a15a0dccaf6593", r#""}"#)])
        .passes(&[concat!("", "f6a41b587c3cdfa55ccd4e1104cd499efdff09e3")]),
    named("gitter_token", "Gitter token, beside its name", &["gitter"], r"[0-9A-Za-z_-]{40}")
        .fires(&[concat!(r#"gitter_token = ""#, "br8W97_J6gl75r-AXFZJr9DV6LsdM70YNCE6IgM7", r#"""#), concat!(r#"{"gitterApiKey": ""#, "Qw5VN94M5PI8QjcxN-TJJV4EAiPFmOx5qKOcMK6T", r#""}"#)])
        .passes(&[concat!("", "Vm2ke89-6Xs7WzKOxNYsggBpqhIqpfO4CdZycLP5")]),
    named("zoom_secret", "Zoom client secret or API key, beside its name", &["zoom"], r"[0-9A-Za-z]{32}|[0-9A-Za-z]{36}")
        .fires(&[concat!(r#"zoom_token = ""#, "RB2jS4J53Nf5X12uuBqzauiKcIZrB8gR", r#"""#), concat!(r#"{"zoomApiKey": ""#, "ni9vj4ri8u99nr0UfkCZ8AEWFF3n6sL2", r#""}"#)])
        .passes(&[concat!("", "RY7bZ2hd2799hZ2CuhFs6gf0v7u3fjJY")]),
    named("flickr_token", "Flickr token, beside its name", &["flickr"], r"[0-9a-z]{32}")
        .fires(&[concat!(r#"flickr_token = ""#, "zn5ks6172o254cth53acnecqgtmq0csz", r#"""#), concat!(r#"{"flickrApiKey": ""#, "mb4lc9383o653nqvlrizjs1tnxx1at3z", r#""}"#)])
        .passes(&[concat!("", "cp3jy5zj2nl6ylq4xk17zwnhc5qob2xd")]),
    named("etsy_token", "Etsy token, beside its name", &["etsy"], r"[0-9a-z]{24}")
        .fires(&[concat!(r#"etsy_token = ""#, "ra3zq4ib75z9s3gzurpiqiwu", r#"""#), concat!(r#"{"etsyApiKey": ""#, "ai4ji5s03v429xdw9krk3pob", r#""}"#)])
        .passes(&[concat!("", "7p98s5lo3lx6w8ly4am8lxxz")]),
    named("nytimes_key", "New York Times API key, beside its name", &["nytimes", "new-york-times", "newyorktimes"], r"[0-9A-Za-z=_-]{32}")
        .fires(&[concat!(r#"nytimes_token = ""#, "8z6D65nM9Jr2H5nUCvClCmBvjsXF1xSI", r#"""#), concat!(r#"{"nytimesApiKey": ""#, "Pg5as7Hd7JF9CXttHaac6_S21_Rrj1dy", r#""}"#)])
        .passes(&[concat!("", "V64vp4kb4Lm9IzsgqeQnqImWdC8F3fEz")]),
    vendor("figma_token", "Figma token", &["figd_", "figo_", "figu_"], r"fig[dou]_[0-9A-Za-z_-]{38,44}")
        .fires(&[concat!("figd_", "Oj2IF7y45Vt62tyMkXOc3AYdDVUJJ11ViztS03dB")])
        .passes(&["figd_x"]),
    vendor("zapier_webhook", "Zapier webhook address", &["hooks.zapier.com/"], r"hooks\.zapier\.com/hooks/catch/[0-9]{4,12}/[0-9A-Za-z]{6,20}")
        .fires(&[concat!("https://hooks.zapier.com/hooks/catch/", "5978150/ob3pnk0")])
        .passes(&["https://hooks.zapier.com/"])
        .even_if_dull(),
];
