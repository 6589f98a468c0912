//! Keys of services that give them no form of their own: the service and what the value is have to be named.

use crate::catalogue::secrets::{
    general::{is_key_text, is_other, is_uuid_of_hex},
    randomness::random,
    vendor::named,
};
use crate::{
    catalogue::{
        detector::{Candidate, Detector},
        naming::name,
    },
    text::words,
};

pub(super) const ALL: &[Detector] = &[Detector {
    check: service_key,
    ..named(
        "service_key",
        "Random text or UUID that is given to a key, token or secret of a service without a form of its own, beside the name of the service",
        SERVICES,
        r#"(?:^|[\s"'`=:>(,\[])([0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}|[0-9A-Za-z][0-9A-Za-z_-]{18,78}[0-9A-Za-z=])"#,
    )
}
.fires(&[
    concat!("cloudsmith_key: ", "5e1f0a94c7d83b62908f4ad17c3be6520f9d8a41"),
    concat!(r#"{"scrapingbeeKey": ""#, "M9X7KQ2ZP4TB81WVJ5RD63HYN0CFLGAE", r#""}"#),
    concat!("zenscrape token = '", "7d0c1f4e-52ab-4c39-9e8d-6b1f20a3c457", "'"),
])
.passes(&[
    concat!("https://status.cloudsmith.io/incidents/", "5e1f0a94c7d83b62908f4ad17c3be6520f9d8a41"),
    concat!("cloudsmith token sha256: ", "5e1f0a94c7d83b62908f4ad17c3be6520f9d8a41"),
    concat!("zenscrape_key_id = '", "7d0c1f4e-52ab-4c39-9e8d-6b1f20a3c457", "'"),
    concat!(r#"{"godaddy": {"domain": ""#, "M9X7KQ2ZP4TB81WVJ5RD63HYN0CFLGAE", r#""}}"#),
])];

/// Services whose names are hardly words. Those that begin as words of every text do (`event`, `true`) are
/// left out: each such word would be looked at.
#[rustfmt::skip]
const SERVICES: &[&str] = &[
    "abuseipdb", "accuweather", "airvisual", "alconost", "alphavantage", "amberdata", "apilayer",
    "apimatic", "apimetrics", "apitemplate", "appcenter", "appointedd", "appveyor",
    "aviationstack", "ayrshare", "baremetrics", "baseten", "beebole", "bitbar", "bitfinex",
    "bitly", "bitmex", "bitrise", "blazemeter", "blitapp", "blocknative", "bombbomb", "boostnote",
    "brandfetch", "brightdata", "browserstack", "browshot", "bscscan", "buddyns", "budibase",
    "bugherd", "buttercms", "bybit", "capsulecrm", "chainstack", "chartmogul", "chatfule",
    "checio", "clarifai", "clicksend", "cliengo", "clinchpad", "clockify", "cloudconvert",
    "cloudimage", "cloudinary", "cloudsmith", "codacy", "codemagic", "codequiry", "coderabbit",
    "coinapi", "coinlayer", "coinmarketcap", "commercejs", "contentstack", "convertapi",
    "convertkit", "coveralls", "craftmypdf", "cryptocompare", "currencycloud", "currencyfreaks",
    "currencylayer", "currencyscoop", "currentsapi", "cypress", "datocms", "deepai", "deribit",
    "docparser", "docusign", "dronahq", "dynalist", "elasticemail", "etherscan", "ethplorer",
    "everhour", "fastforex", "filestack", "financialmodelingprep", "flagsmith", "flightapi",
    "formbucket", "freshdesk", "freshservice", "fullstory", "geckoboard", "geoapify", "geocodify",
    "giphy", "gocanvas", "godaddy", "graphhopper", "helpcrunch", "holidayapi", "honeybadger",
    "hotjar", "hybiscus", "imagekit", "imgix", "infura", "instamojo", "interseller",
    "invoiceocean", "ip2location", "ipdata", "ipgeolocation", "ipinfo", "ipstack", "jupiterone",
    "kanbantool", "kickbox", "klipfolio", "knapsackpro", "lambdatest", "languagelayer",
    "leadfeeder", "lemlist", "linkpreview", "liveagent", "locationiq", "loginradius", "logrocket",
    "logzio", "loyverse", "magicbell", "mailboxlayer", "mailchannels", "mailerlite", "mailmodo",
    "mailtrap", "mandrill", "mapquest", "mediastack", "mesibo", "metaapi", "mixmax",
    "monkeylearn", "moosend", "moralis", "mrticktock", "musixmatch", "myintervals", "nethunt",
    "newscatcher", "nftport", "ngrok", "nozbe", "numverify", "oanda", "omdb", "onepagecrm",
    "opencage", "opencagedata", "openexchangerates", "openuv", "openweather", "openweathermap",
    "pagarme", "pandadoc", "paralleldots", "pdflayer", "pdfshift", "pendo", "pepipost",
    "pipedream", "pipedrive", "playht", "postageapp", "prospectcrm", "proxycrawl", "quandl",
    "quicknode", "rawg", "rebrandly", "rentman", "retellai", "rocketreach", "salescookie",
    "saucelabs", "scraperapi", "scrapestack", "scrapingbee", "screenshotapi", "screenshotlayer",
    "sendpulse", "serpapi", "serphouse", "sherpadesk", "shodan", "shotstack", "signaturit",
    "skrappio", "smartsheet", "speechmatics", "spoonacular", "sportsmonk", "statsig",
    "statuspage", "storecove", "storyblok", "swiftype", "tatumio", "telnyx", "textmagic",
    "theoddsapi", "tiingo", "tmdb", "tomtom", "transferwise", "transloadit", "travelpayouts",
    "ubidots", "unsplash", "uplead", "uploadcare", "uptimerobot", "vatlayer", "veriphone",
    "vimeo", "voiceflow", "voodoosms", "wakatime", "walkscore", "weatherbit", "weatherstack",
    "webscraper", "webscraping", "websitepulse", "wistia", "yousign", "zenrows", "zenscrape",
    "zipbooks", "zipcodeapi", "zipcodebase", "zoho",
];

/// Words in the name of a value that make it a secret of the service.
const KEYS: &[&str] =
    &["key", "token", "secret", "apikey", "auth", "password", "credential", "bearer"];

/// Words in the name of a value that make it something else, besides those of other secrets.
const OTHERS: &[&str] = &[
    "sha1", "sha256", "sha512", "commit", "etag", "uuid", "guid", "revision", "row", "object",
    "cache", "primary",
];

/// The name says that it is a secret and nothing else, and the value is random or a UUID.
fn service_key(candidate: &Candidate<'_>) -> Option<i32> {
    let called = name(candidate)?;
    let is_secret =
        words::names(called, KEYS) && !words::names(called, OTHERS) && !is_other(called);
    let is_value = if is_uuid_of_hex(candidate.matched()) {
        random(candidate).is_some()
    } else {
        is_key_text(candidate)
    };
    (is_secret && is_value).then_some(4)
}
