//! The configuration as a whole: defaults, the example, the pages that show it.

use super::*;
use crate::boot::SystemRandom;

fn parse(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::parse(text, variables, Path::new("test.toml"))
}

#[test]
fn an_empty_file_is_the_defaults() {
    let config = parse("", &[]).unwrap();

    assert_eq!(config.server.listen, "127.0.0.1:8080");
    assert_eq!(config.policy_folder(), PathBuf::from("portcullis-data/policies"));
}

const EXAMPLE: &str = include_str!("../../../../docs/portcullis.example.toml");

/// The example with each `#key = value` as a setting.
fn uncommented() -> String {
    let setting = |line: &'static str| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => setting,
        Some(_) | None => line,
    };
    EXAMPLE.lines().map(setting).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_as_it_is_changes_nothing() {
    let config = parse(EXAMPLE, &[]).unwrap();

    assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
}

#[test]
fn every_setting_of_the_example_is_valid() {
    let config = parse(&uncommented(), &[]).unwrap();

    config.check().unwrap();
    assert_eq!(config.providers.len(), 3);
    assert_eq!(config.trusted().unwrap().rules.iter().count(), 2);
}

#[test]
fn every_key_of_seconds_takes_a_time_as_well() {
    let text = |line: &str| match line.split_once("_seconds = ") {
        Some((key, number)) => format!("{key}_seconds = \"{number}s\""),
        None => line.to_owned(),
    };
    let numbers = uncommented();
    let texts = numbers.lines().map(text).collect::<Vec<_>>().join("\n");

    let [number, time] = [&numbers, &texts].map(|it| format!("{:?}", parse(it, &[]).unwrap()));

    assert!(texts.matches("s\"").count() > 10, "{texts}");
    assert_eq!(number, time);
    let drain = |value: &str| parse(&format!("[server]\ndrain_seconds = {value}"), &[]);
    assert_eq!(drain("\"2m\"").unwrap().server.drain_seconds, 120);
    assert_eq!(drain("\"0s\"").unwrap().server.drain_seconds, 0);
    for wrong in ["\"soon\"", "\"-5s\"", "-5", "1.5"] {
        let refused = drain(wrong).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("a time such as"), "{refused}");
        assert!(refused.contains("a number of seconds"), "{refused}");
    }
}

#[test]
fn every_key_is_in_the_example() {
    for section in [
        "",
        "[server]",
        "[server.tls]",
        "[database]",
        "[admin]",
        "[console]",
        "[limits]",
        "[audit]",
        "[audit.retention]",
        "[audit.anchor]",
        "[[audit.anchor.witnesses]]",
        "[audit.exports]",
        "[[audit.sink]]\ntype = \"file\"",
        "[connect]",
        "[keys]",
        "[policies]",
        "[dlp]",
        "[dlp.limits]",
        "[dlp.actions.input]",
        "[dlp.detectors.email]",
        "[[dlp.allow]]",
        "[[dlp.custom]]",
        "[dlp.external]",
        "[tokens]",
        "[log]",
        "[login]",
        "[[login.issuers]]",
        "[mcp]",
        "[oauth]",
        "[[oauth.client]]",
        "[tools]",
        "[traces]",
        "[webhooks.x]",
        "[[providers]]",
        "[[providers]]\nslug = \"a\"\n[providers.oauth]",
        "[[trust]]",
    ] {
        let refused = parse(&format!("{section}\nno_such_key = 1\n"), &[]).unwrap_err();
        let refused = refused.to_string();
        let (_, expected) = refused.split_once("expected ").expect("the keys there are");
        let keys: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();

        assert!(!keys.is_empty(), "{section}: {refused}");
        for key in keys {
            let words = EXAMPLE.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
            assert!(words.into_iter().any(|word| word == key), "`{key}` of {section}");
        }
    }
}

const PAGE: &str = include_str!("../../../../docs/configuration.md");

/// Each table of the example with its keys, commented out or not. A table comes first with an empty key.
fn settings_of_the_example() -> Vec<(&'static str, &'static str)> {
    let is_name = |it: &str| it.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut table = "";
    let mut settings = vec![(table, "")];
    for line in EXAMPLE.lines() {
        let line = line.trim_start_matches('#').trim();
        if line.starts_with('[') && line.ends_with(']') {
            table = line;
            settings.push((table, ""));
        } else if let Some((key, _)) = line.split_once(" = ")
            && is_name(key)
        {
            settings.push((table, key));
        }
    }
    settings
}

/// Part of a heading of the page that stands for this table of the example.
fn heading_of(table: &str) -> String {
    match table {
        "" => "Top of the file".to_owned(),
        "[dlp.detectors.email]" => "`[dlp.detectors.<name>]`".to_owned(),
        "[webhooks.secops]" => "`[webhooks.<name>]`".to_owned(),
        table => format!("`{table}`"),
    }
}

/// Text of the page from this heading to the next one.
fn section(heading: &str) -> Option<String> {
    let is_heading = |line: &&str| line.starts_with('#');
    let mut lines = PAGE.lines().skip_while(|line| !(is_heading(line) && line.contains(heading)));
    lines.next()?;
    Some(lines.take_while(|line| !is_heading(line)).collect::<Vec<_>>().join("\n"))
}

#[test]
fn every_table_and_key_of_the_example_is_on_the_page_of_the_configuration() {
    let settings = settings_of_the_example();
    let mut missing = Vec::new();

    for (table, key) in &settings {
        let heading = heading_of(table);
        match section(&heading) {
            None => missing.push(format!("a heading with {heading}")),
            Some(text) if key.is_empty() || text.contains(&format!("`{key}`")) => {}
            Some(_) => missing.push(format!("`{key}` below {heading}")),
        }
    }

    assert!(settings.len() > 200, "{} tables and keys were read", settings.len());
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_starter_is_a_valid_configuration() {
    let config = parse(include_str!("../../../../docs/portcullis.starter.toml"), &[]).unwrap();

    assert!(config.check().is_ok());
    assert_eq!(config.providers.len(), 1);
}

#[test]
fn the_trust_rules_of_the_page_on_identity_are_valid_and_need_no_warning() {
    let key = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cluster-keys.json");
    fs::write(file, format!("{{\"keys\":[{key}]}}")).unwrap();
    let page = include_str!("../../../../docs/identity.md");
    let blocks = page.split("```toml\n").skip(1).filter(|block| block.contains("[[trust]]"));
    let blocks: Vec<&str> = blocks.collect();
    assert_eq!(blocks.len(), 5);

    for block in blocks {
        let mut config = parse(block.split("```").next().unwrap(), &[]).unwrap();
        config.take_paths_from(folder.path());

        let trusted = config.trusted().unwrap();

        assert_eq!(trusted.rules.iter().count(), 1, "{block}");
        let warnings = trusted.rules.iter().flat_map(|rule| rule.warnings());
        assert_eq!(warnings.collect::<Vec<_>>(), Vec::<String>::new(), "{block}");
    }
}

#[test]
fn every_configuration_of_the_providers_guide_can_be_used() {
    let outbound = Outbound::new(std::sync::Arc::new(SystemRandom));
    let blocks = include_str!("../../../../docs/providers.md").split("```toml\n").skip(1);
    let mut declared = 0;

    for block in blocks {
        let config = parse(block.split("```").next().unwrap(), &[]).unwrap();
        config.check().unwrap();
        config.connect.connecting().unwrap();
        for provider in &config.providers {
            provider.declare(&outbound, &config.connect).unwrap();
            declared += 1;
        }
    }

    assert_eq!(declared, 4);
}

#[test]
fn a_provider_that_cannot_be_connected_is_refused_with_what_to_change() {
    let outbound = Outbound::new(std::sync::Arc::new(SystemRandom));
    for (more, told) in [
        ("auth = \"oauth2\"\n[providers.oauth]\ntoken_url = \"https://a.example\"", "belong"),
        ("auth = \"oauth2\"\n[providers.oauth]\nclient_secret = \"x\"", "client_id"),
        ("auth = \"oauth2\"\n[providers.oauth]\ntoken_format = \"x\"", "{}"),
        ("auth = \"oauth2\"\n[providers.oauth]\nscopes = [\"a b\"]", "scope"),
        ("auth = \"oauth2\"\n[providers.oauth]\nissuer = \"http://a.example\"", "https"),
        (
            "auth = \"oauth2\"\n[providers.oauth]\nauthorize_parameters = { state = \"x\" }",
            "`state`",
        ),
        ("auth = \"oauth2\"\n[providers.oauth]\nclient_id = \"x\"", "`oauth.issuer`"),
        ("[providers.oauth]\nclient_id = \"x\"", "oauth2"),
        ("auth = \"api_key\"\napi_key = { env = \"PATH\" }\nowners = [\"me\"]", "org's"),
        ("auth = \"api_key\"\napi_key = \"hunter2\"", "{ env = \"NAME\" }"),
        (
            "auth = \"api_key\"\napi_key = { env = \"X\", default = \"hunter2\" }",
            "{ env = \"NAME\" }",
        ),
        ("owners = []", "owners"),
    ] {
        let text =
            format!("[[providers]]\nslug = \"a\"\nurl = \"https://mcp.example/mcp\"\n{more}");
        let config = parse(&text, &[]).unwrap();
        let refused = config.providers[0].declare(&outbound, &config.connect).unwrap_err();
        assert!(refused.to_string().contains(told), "{more}: {refused}");
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
    }
}

#[test]
fn unknown_keys_are_refused_and_named() {
    let error = parse("[server]\nlisten_on = \"x\"", &[]).unwrap_err();

    let shown = error.to_string();
    assert!(shown.contains("listen_on"), "{shown}");
    let port = parse("[server]\nlisten = 18120", &[]).unwrap_err();
    let shown = port.to_string();
    assert!(shown.contains("such as \"127.0.0.1:8080\""), "{shown}");
}

#[test]
fn the_environment_lies_over_the_file() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\nmax_connections = 5";
    let listen = ("PORTCULLIS_SERVER__LISTEN", "127.0.0.1:2");
    let config = parse(file, &[listen, ("PORTCULLIS_CONFIG", "x"), ("HOME", "/")]).unwrap();

    assert_eq!(config.server.listen, "127.0.0.1:2");
    assert_eq!(config.server.max_connections, 5);
    assert!(parse("", &[("PORTCULLIS_SERVER__LISTN", "x")]).is_err());
}

#[test]
fn the_environment_leaves_the_trust_rules_as_they_are() {
    let example = uncommented();
    let config = parse(&example, &[("PORTCULLIS_SERVER__LISTEN", "127.0.0.1:2")]).unwrap();

    assert_eq!(config.trusted().unwrap().rules.iter().count(), 2);
}

#[test]
fn one_slug_is_declared_once() {
    let twice = "[[providers]]\nslug = \"a\"\ncommand = [\"x\"]\n".repeat(2);

    assert!(parse(&twice, &[]).unwrap().check().is_err());
}
