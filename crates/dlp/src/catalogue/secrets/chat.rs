//! Tokens of chat, social and meeting services.

use std::ops::Range;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use crate::catalogue::secrets::{
    randomness::random_with_digits,
    vendor::{named, vendor},
};
use crate::{
    catalogue::detector::{Before, Detector, Edges, Shape},
    text::{digits::DigitRun, window::Window},
};

pub(super) const ALL: &[Detector] = &[
    vendor("slack_token", "Slack bot, user, app, configuration, refresh or browser token", &["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-", "xwfp-"], r"xox[ar]-(?:[0-9]-)?[A-Za-z]{0,40}[0-9][0-9A-Za-z]{7,47}|xox[os]-[0-9]+-[0-9]+-[0-9]+-[0-9A-Fa-f]+|xox[aboprs]-[0-9][0-9A-Za-z]{0,79}-(?:[0-9A-Za-z]{1,80}-){0,3}[0-9A-Za-z]{8,80}|xoxe[.-][0-9A-Za-z.-]{20,250}|xapp-[0-9]-[A-Z0-9]{6,20}-[0-9]{6,20}-[0-9a-f]{32,80}|xwfp-[0-9]{8,16}-[0-9A-Za-z]{20,80}|xoxc(?:-[0-9]{9,15}){3}-[0-9a-f]{64}|xoxd-[0-9A-Za-z%/+]{100,300}={0,2}")
        .fires(&[concat!("xoxb-", "046483451709-550144786416-fb77M3Gu2b823OdBalycC6rs"), concat!("xoxc-", "046483451709-550144786416-7701958823410-4ecd5b868ec5ff527e03af2a080ad8541c11a795e1d763f588b265b2344421c5")])
        .passes(&["xoxb-", "xoxb-your-token-here"])
        .even_if_dull(),
    vendor("slack_webhook", "Slack incoming webhook address", &["hooks.slack.com/"], r"hooks\.slack\.com/(?:services|workflows|triggers)/[0-9A-Za-z+/]{40,60}")
        .fires(&[concat!("https://hooks.slack.com/services/", "T3X28T73T/BLIW5M3FJ/8w7MF57U9hi4L33GXjDBJ69S")])
        .passes(&["https://hooks.slack.com/services/"]),
    vendor("discord_webhook", "Discord webhook address", &["/api/webhooks/"], r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[0-9A-Za-z_-]{60,72}")
        .fires(&[concat!("https://discord.com/api/webhooks/385114139297284285/", "lB24d51p5t97CIhGUb1kixrQWWJjDuWJl58c72xEHNVF_64xB4bI5JcD9hEw6xTVBesR")])
        .passes(&["https://discord.com/api/webhooks/"])
        .reaching_back(14),
    Detector {
        shape: Shape::Run(bot_token),
        edges: Edges::Any,
        ..vendor("discord_bot_token", "Discord bot token: an id in base64, a time, a signature", &[], "")
    }
        .fires(&[concat!("client.login('MzIxNDU2Nzg5MDEyMzQ1Njc4", ".Zq8vT3.nKf0LwRj5mXyB7cHdPs2GuEa9NiVkQ4tZq')")])
        .passes(&["MZ1yGvKTj0rY0cV8i47CjAa.uHQPq.Xb1Mk2nEhe-4icrGOuegj57zMC", "MzIxNDU2Nzg5MDEyMzQ1Njc4.Zq8vT3"]),
    named("discord_secret", "Discord client id, secret or token, beside its name", &["discord"], r#"(?:^|[\s"'`=:>(,\[])([0-9a-f]{64}|[0-9A-Za-z=_-]{32}|[0-9]{17,19}|[MNO][0-9A-Za-z]{23,25}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27,38})"#)
        .fires(&[concat!(r#"discord_token = ""#, "WA9E03Dj8S67trCXgktraZweXbovKVNq", r#"""#), concat!(r#"{"discordApiKey": ""#, "Yr3038AA74j98iCQSVhzmGgceNR5H8S0", r#""}"#)])
        .passes(&[concat!("", "nw9266oP6mu5YElsmw79zYEFsm6qRjwr")]),
    named("telegram_token", "Telegram bot token of an older form, beside its name", &["telegr"], r#"(?:^|[\s"'`=:>(,\[])([0-9]{5,16}:A[0-9A-Za-z_-]{34})"#)
        .fires(&[concat!(r#"telegramToken = ""#, "84468:Ahxlarmat335brr9or39u41v420cp3ax57y", r#"""#)])
        .passes(&["telegram: 84468:Ahx", concat!("84468:Ahxlarmat335brr", "9or39u41v420cp3ax57y")]),
    vendor("telegram_bot_token", "Telegram bot token", &[":aa"], r"[0-9]{8,10}:(?i:AA)[0-9A-Za-z_-]{32,33}")
        .fires(&[concat!("bot ", "7497728384:AABW4OG4bV85m5l1g16FS0xHfEmMiLBw9q9")])
        .passes(&["12:AA", "1234567890:AAA"])
        .reaching_back(11),
    vendor("teams_webhook", "Webhook address of Microsoft Teams, Power Automate or Logic Apps", &["webhook.office.com/", "outlook.office.com/webhook/", "logic.azure.com", "api.powerplatform.com"], r"(?:webhook\.office\.com/webhookb2|outlook\.office\.com/webhook)/[0-9A-Za-z@/-]{60,300}|(?:logic\.azure\.com|api\.powerplatform\.com)[0-9A-Za-z:/?&=%._-]{20,500}[?&]sig=[0-9A-Za-z_%-]{40,60}")
        .reaching(0, 640)
        .fires(&[concat!("https://x.webhook.office.com/webhookb2/", "e710ab50-9fea-4292-a372-b6b346262e67@530609a0-6272-4f8b-a157-c24ace7d9ea1/IncomingWebhook/1fb81bff13b62dcfed07388f75c047f8/7a371a2b-b64e-45c2-a438-1fa0312566f4"), concat!("https://prod-07.westeurope.logic.azure.com:443/workflows/8f2ab06d7e8c4a5f/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=", "TDuRgR3yNwos_bDWmE4kuv4VGOfYcMuqbKLLp_2jfTu")])
        .passes(&["https://x.webhook.office.com/"]),
    named("mattermost_token", "Mattermost token, beside its name", &["mattermost"], r"[0-9a-z]{26}")
        .fires(&[concat!(r#"mattermost_token = ""#, "eo3vu9bw6bo8oukl0ag53ihrr3", r#"""#), concat!(r#"{"mattermostApiKey": ""#, "jy2b566463d61qbvomkyaps7bf", r#""}"#)])
        .passes(&[concat!("", "si3k36ud84n8i0j65ce9ve1xjb")]),
    named("twitch_token", "Twitch token, beside its name", &["twitch"], r"[0-9a-z]{30}")
        .fires(&[concat!(r#"twitch_token = ""#, "1f9gu36w48j623x7mv9p1s5q8v2exa", r#"""#), concat!(r#"{"twitchApiKey": ""#, "1s7o63h92bz6gl6dbfnqmjl0vhwx7t", r#""}"#)])
        .passes(&[concat!("", "hm2z88yv6lc35gdxdmum4jdsofs6gu")]),
    vendor("twitter_bearer_token", "Twitter bearer token", &["aaaaaaaaaaaaaaaaaaaaa"], r"A{21,23}[0-9A-Za-z%]{80,100}")
        .fires(&[concat!("AAAAAAAAAAAAAAAAAAAAAA", "rp49x4lW4ir2pLuLNmrJLFw5noGMUHZkXJk9GKK6FMe7SO3LjZGbhVHmjmzcoDuX2FZ2GNpBFmT6IQSf4LA4Bn60RTOyA12B")])
        .passes(&["AAAAAAAAAAAAAAAAAAAAAA", concat!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")])
        .behind_row(),
    named("twitter_secret", "Twitter key, secret or access token, beside its name", &["twitter"], r"[0-9]{15,25}-[0-9A-Za-z]{20,40}|[0-9A-Za-z]{50}|[0-9A-Za-z]{45}|[0-9A-Za-z]{25}")
        .fires(&[concat!(r#"twitter_token = ""#, "mc4ks79537f8njFWu2uHLZpcEEZMGB5nytFSLn1744nLpgUsKK", r#"""#), concat!(r#"{"twitterApiKey": ""#, "kW7nP2JR2s440kZuSXrbRFNjgjigt5m9nUwLkL0p9Vlzpnoxna", r#""}"#)])
        .passes(&[concat!("", "7E7pt2Ie6tN3VN42fV1C2BJIGLq3kpOUJeTgZPrsByEmHeHsnt")]),
    vendor("facebook_token", "Facebook access token", &["EAA"], r"EAA[0-9A-Za-z]{91,301}")
        .fires(&[concat!("EAAC", "P04IX30w5pm4ozdKIn5wy9S0jhReeqIjBr0awZAZzri7Pt0BqTNDGblNaNDjZyMYmZcQUse0KsWlOa0GaOWD6fLnzi8MbYKgarLj2Jk0pFV7PjRXoIydRK1i9aOiJma2uVlryfafDOK9")])
        .passes(&["EAAC", "EAAB", concat!("eaaf1bee9f1a2fc0768d4e74caf82193fd8fe40f8a938a6bbf3bc792f173a1611ec406fb05acef0", "dbc0fe6eb79b283a69985e0575d454f5c")])
        .needing_letters()
        .reaching(0, 320),
    Detector {
        shape: Shape::Digits { least: 15, before: Before::Anything, find: app_token },
        edges: Edges::Word,
        check: random_with_digits,
        ..vendor("facebook_app_token", "Facebook access token of an app", &[], "")
    }
        .fires(&[concat!("access_token=3241024652308693|", "tbp6u46w83xhi5owwn8pjtza4l3j")])
        .passes(&["| 3241024652308693|name |", "3241024652308693"]),
    named("facebook_secret", "Facebook app secret or token, beside its name", &["facebook", "fb_app", "instagram"], r#"(?:^|[\s"'`=:>(,\[])([0-9a-f]{32}|[0-9]{15,16}(?:\||%7C)[0-9A-Za-z_-]{27,40})"#)
        .fires(&[concat!(r#"facebook_token = ""#, "15ed411cc84a13958f14c2dd7d206832", r#"""#), concat!(r#"{"facebookApiKey": ""#, "492d633b346c3011fd72c903722b34a1", r#""}"#)])
        .passes(&[concat!("", "186bfa12fed0c43df5301e90b472590c")]),
    named("linkedin_secret", "LinkedIn client id or secret, beside its name", &["linkedin", "linked_in"], r"[0-9A-Za-z]{16}|[0-9A-Za-z]{14}")
        .fires(&[concat!(r#"linkedin_token = ""#, "7i7q55vx39h78xza", r#"""#), concat!(r#"{"linkedinApiKey": ""#, "sc33d77j9g09s842", r#""}"#)])
        .passes(&[concat!("", "815kh9ia7s53u2ah")]),
    named("spotify_secret", "Spotify client secret, beside its name", &["spotify"], r"[0-9a-f]{32}")
        .fires(&[concat!(r#"spotify_token = ""#, "ed43aeeaef2c1cce93ab28693234d970", r#"""#), concat!(r#"{"spotifyApiKey": ""#, "daff4ae14ca80b215f6882daa6bb849d", r#""}"#)])
        .passes(&[concat!("", "d776bc6560531ea6b0c4266007023d25")]),
    named("reddit_secret", "Reddit client secret, beside its name", &["reddit"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{27,30})"#)
        .fires(&[concat!(r#"reddit_token = ""#, "oS4tj3rD75x2NkvOeV6Nt21gynO", r#"""#), concat!(r#"{"redditApiKey": ""#, "Ld7jb6qh7s74kXuFy4YDBOhivam", r#""}"#)])
        .passes(&[concat!("", "LR6jc9dP9HQ8GLb6ACeFjdOzPdY")]),
    named("intercom_token", "Intercom token, beside its name", &["intercom"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z=_-]{60})"#)
        .fires(&[concat!(r#"intercom_token = ""#, "GI2nt68o3dt4Y1sVpz6y7DMhv5jvZrzPnl4RfkwpmRcxtcTqPJKkvJKHx7ue", r#"""#), concat!(r#"{"intercomApiKey": ""#, "nw3iJ5-X4kH2NWrIU_1IEGSuxaDN70bn_hVG6cJVRi4bL4LKm56u0Pjd02bU", r#""}"#)])
        .passes(&[concat!("", "pi78G2wr4N57csCkpOzJhjVETgoVQHJgVgksPeO3-wXhO0wvEQHIP6L1C3bx")]),
    named("sendbird_token", "Sendbird token or application id, beside its name", &["sendbird"], r"[0-9a-f]{40}|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"sendbird_token = ""#, "15849e9bbcead6d70c7e95d820a80d02f194f1b7", r#"""#), concat!(r#"{"sendbirdApiKey": ""#, "22abcb1ecce9a15a0dccaf6593f6a41b587c3cdf", r#""}"#)])
        .passes(&[concat!("", "a55ccd4e1104cd499efdff09e3045cf1f86124e4")]),
    named("gitter_token", "Gitter token, beside its name", &["gitter"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{40})"#)
        .fires(&[concat!(r#"gitter_token = ""#, "kA6FZ7r97V63sdM70YNCE6IgM7XPMRQwmVNz4MCP", r#"""#), concat!(r#"{"gitterApiKey": ""#, "cx4-T9JV8EA5PFmOx5qKOcMK6Tz7F0VmpkeU9-GX", r#""}"#)])
        .passes(&[concat!("", "KO8NY2gg7pq4IqpfO4CdZycLP5bZHT27s_ldOO3H")]),
    named("zoom_secret", "Zoom client secret or API key, beside its name", &["zoom"], r"[0-9A-Za-z]{32}|[0-9A-Za-z]{36}")
        .fires(&[concat!(r#"zoom_token = ""#, "Kc6Zr38g4OY9KPWVkgpnipvjZriwu9pn", r#"""#), concat!(r#"{"zoomApiKey": ""#, "Z89EW7F336s92FGQizDRYCbZKhd8793h", r#""}"#)])
        .passes(&[concat!("", "s65f097u4fj9Y2udbNH2DzOnLuksqBHv")]),
    named("flickr_token", "Flickr token, beside its name", &["flickr"], r"[0-9a-z]{32}")
        .fires(&[concat!(r#"flickr_token = ""#, "ct5534cn9cq5tmq0cszmqbmmb3lct385", r#"""#), concat!(r#"{"flickrApiKey": ""#, "qv4ri9js8tn4x1at3zk5focp3jyfzjmn", r#""}"#)])
        .passes(&[concat!("", "q48k13zw6hc9qob2xdhnatrarzqaibe5")]),
    named("etsy_token", "Etsy token, beside its name", &["etsy"], r"[0-9a-z]{24}")
        .fires(&[concat!(r#"etsy_token = ""#, "gz7rp9qi2ue7v74aibjips0q", r#"""#), concat!(r#"{"etsyApiKey": ""#, "dw7kr53p7bj4hc7pn8shloml", r#""}"#)])
        .passes(&[concat!("", "y44m86xx6489gq4mwo3wgtnr")]),
    named("nytimes_key", "New York Times API key, beside its name", &["nytimes", "new-york-times", "newyorktimes"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z=_-]{32})"#)
        .fires(&[concat!(r#"nytimes_token = ""#, "nU5vC8Cm5vj8XF1xSIJF8cPgpasPHd5J", r#"""#), concat!(r#"{"nytimesApiKey": ""#, "tt3aa96_6215Rrj1dyCST-V6LvpEkbSL", r#""}"#)])
        .passes(&[concat!("", "sg4eQ6qI8Wd48F3fEzxws9OjhIFuy4HV")]),
    vendor("figma_token", "Figma token", &["figd_", "figr_", "figo_", "figor_", "figoh_", "figu_", "figur_", "figuh_"], r"fig(?:[dr]|[ou][hr]?)_[0-9A-Za-z_-]{38,44}")
        .fires(&[concat!("figd_", "yM4XO83A9dD4UJJ11ViztS03dBaVFHP5oSdCc7EA")])
        .passes(&["figd_x"]),
    vendor("zapier_webhook", "Zapier webhook address", &["hooks.zapier.com/"], r"hooks\.zapier\.com/hooks/catch/[0-9]{4,12}/[0-9A-Za-z]{6,20}")
        .fires(&[concat!("https://hooks.zapier.com/hooks/catch/", "1316994/6dy7r6g")])
        .passes(&["https://hooks.zapier.com/"])
        .even_if_dull(),
    vendor("tines_webhook", "Tines webhook address", &[".tines.com/webhook/"], r"\.tines\.com/webhook/[0-9a-z]{32}/[0-9a-z]{32}")
        .fires(&[concat!("https://acme.tines.com/webhook/", "q4p0kurwa1ifll2o78lvs1d3mxwe2yda/i796sb9dfz53veavefxgeariltb9vf1v")])
        .passes(&["https://acme.tines.com/webhook/"])
        .at_any_edge(),
    vendor("mattermost_webhook", "Mattermost incoming webhook address", &["/hooks/"], r"https?://[0-9A-Za-z.:-]{3,100}/hooks/[0-9a-z]{26}")
        .fires(&[concat!("https://chat.example.org/hooks/", "fe2dp4kls3njbcmkpmbty9e4ax")])
        .passes(&["https://git.example.org/hooks/pre-commit", "src/hooks/useauthenticatedsession"])
        .needing_digits()
        .reaching_back(110),
    vendor("canva_secret", "Canva client secret", &["cnvca"], r"cnvca[0-9A-Za-z_-]{51}")
        .fires(&[concat!("cnvca", "aumOOzD5aiKGSII3RwLvL5gHC3wTaFBE3-ZrdFP7_8_HcTv8yNK")])
        .passes(&["cnvca"]),
    vendor("intercom_access_token", "Intercom access token: base64 of `tok:`", &["dg9ro"], r"dG9rO[0-9A-Za-z+/]{54}=")
        .fires(&[concat!("dG9rO", "jkzYjBhNDZhX2EwNzJfZGY3NV9hYTA5XzFmNDE3NzhlZWIzZDoxOjA=")])
        .passes(&["dG9rO"]),
    vendor("riot_api_key", "Riot Games API key", &["rgapi-"], r"RGAPI-[0-9A-Za-z]{8}-[0-9A-Za-z]{4}-[0-9A-Za-z]{4}-[0-9A-Za-z]{4}-[0-9A-Za-z]{12}")
        .fires(&[concat!("RGAPI-", "bbd52066-4481-ebb9-cdb7-90a8316b5a9b")])
        .passes(&["RGAPI-"]),
];

/// In an id in base64 that two more parts follow, all three.
fn bot_token(text: &Window<'_>, id: Range<usize>) -> Option<Range<usize>> {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let decoded = STANDARD_NO_PAD.decode(text.get(id.clone())?).ok()?;
    let is_id = (17..=20).contains(&decoded.len()) && decoded.iter().all(u8::is_ascii_digit);
    let after = text.get(id.end..)?;
    let dots = after.first() == Some(&b'.') && after.get(7) == Some(&b'.');
    let time = after.get(1..)?.iter().take_while(is_part).count();
    let signature = after.get(8..)?.iter().take_while(is_part).count();
    let is_token = is_id && dots && time == 6 && (25..=40).contains(&signature);
    is_token.then_some(id.start..id.end + 8 + signature)
}

/// In the id of an app that `|` and a token follow, all of it.
fn app_token(text: &Window<'_>, run: &DigitRun) -> Vec<Range<usize>> {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let Some(id) = run.groups.last().filter(|group| matches!(group.len(), 15 | 16)) else {
        return Vec::new();
    };
    let after = text.get(id.end..).unwrap_or_default();
    let found = || {
        let sign =
            [b"|".as_slice(), b"%7C", b"%7c", b"%"].into_iter().find(|s| after.starts_with(s))?;
        let length = after.get(sign.len()..)?.iter().take_while(is_part).count();
        (27..=40).contains(&length).then_some(id.start..id.end + sign.len() + length)
    };
    found().into_iter().collect()
}
