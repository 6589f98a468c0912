//! One TOML file, overlaid by `PORTCULLIS_…` variables, read whole before a port is bound.
//!
//! `PORTCULLIS_SERVER__LISTEN=0.0.0.0:8443` sets `listen` in `[server]`: two underscores go down
//! one level ([`environment`]). Values are TOML where they parse as TOML, text otherwise.

mod admin;
mod audit;
mod audit_retention;
mod audit_sinks;
mod connect;
mod console;
mod database;
mod dlp;
mod environment;
mod keys;
mod limits;
mod login;
mod mcp;
mod named;
mod oauth;
mod otlp;
mod providers;
mod secrets;
mod server;
mod times;
mod tokens;
mod traces;
mod trust;
mod webhooks;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use portcullis_app::LoginParts;
use portcullis_core::{openid::LoginKey, trust::TrustRules};
use portcullis_upstream::Outbound;
use serde::Deserialize;

pub(crate) use self::{
    admin::Admin,
    audit::{Audit, AuditSync, KeySource},
    audit_retention::{AuditRetention, CaptureMode},
    audit_sinks::{Exports, Sink},
    connect::Connect,
    console::Console,
    database::Database,
    dlp::Dlp,
    keys::Keys,
    limits::Limits,
    login::Login,
    mcp::Mcp,
    named::{Named, is_org, is_principal},
    oauth::OAuthServer,
    providers::{Provider, Tools},
    server::{Log, LogFormat, Server, Tls, address},
    times::seconds,
    tokens::Tokens,
    traces::Traces,
    trust::{TrustEntry, Trusted},
    webhooks::WebhookSettings,
};

/// The whole configuration. Every key has a default; unknown keys are refused.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Folder of everything that has no path of its own.
    pub(crate) data_dir: PathBuf,
    pub(crate) server: Server,
    pub(crate) admin: Admin,
    pub(crate) console: Console,
    pub(crate) database: Database,
    pub(crate) audit: Audit,
    pub(crate) keys: Keys,
    pub(crate) limits: Limits,
    pub(crate) connect: Connect,
    pub(crate) policies: Policies,
    pub(crate) dlp: Dlp,
    pub(crate) log: Log,
    pub(crate) login: Login,
    pub(crate) mcp: Mcp,
    pub(crate) oauth: OAuthServer,
    pub(crate) providers: Vec<Provider>,
    pub(crate) tokens: Tokens,
    pub(crate) tools: Tools,
    pub(crate) traces: Traces,
    pub(crate) trust: Vec<TrustEntry>,
    #[serde(skip)]
    pub(crate) file: Option<PathBuf>,
    /// True if a file or an environment variable sets anything.
    #[serde(skip)]
    pub(crate) is_given: bool,
    pub(crate) webhooks: BTreeMap<String, WebhookSettings>,
}

/// The policy folder.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Policies {
    /// A folder of `*.cedar` files; `policies` in the data folder when absent.
    pub(crate) path: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("portcullis-data"),
            server: Server::default(),
            admin: Admin::default(),
            console: Console::default(),
            database: Database::default(),
            audit: Audit::default(),
            keys: Keys::default(),
            limits: Limits::default(),
            connect: Connect::default(),
            policies: Policies::default(),
            dlp: Dlp::default(),
            log: Log::default(),
            login: Login::default(),
            mcp: Mcp::default(),
            oauth: OAuthServer::default(),
            providers: Vec::new(),
            tokens: Tokens::default(),
            tools: Tools::default(),
            traces: Traces::default(),
            trust: Vec::new(),
            file: None,
            is_given: false,
            webhooks: BTreeMap::new(),
        }
    }
}

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("the configuration file `{path}` cannot be read")]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the configuration file `{path}` is not valid")]
    Invalid {
        path: PathBuf,
        #[source]
        source: Box<toml::de::Error>,
    },
    #[error("{0}")]
    Wrong(String),
}

impl Config {
    /// Reads `file`, or takes the defaults, and lays the environment over it.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let text = match file {
            None => String::new(),
            Some(path) => fs::read_to_string(path)
                .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?,
        };
        let path = file.unwrap_or(Path::new("defaults"));
        let mut config = Self::parse(&text, env::vars(), path)?;
        if let Some(folder) = file.and_then(Path::parent) {
            config.take_paths_from(folder);
            config.dlp.lie_in(folder);
        }
        for provider in &mut config.providers {
            provider.fall_back_on(config.tools);
        }
        config.file = file.map(Path::to_owned);
        config.is_given =
            file.is_some() || env::vars().any(|(name, _)| environment::sets_something(&name));
        config.check()?;
        Ok(config)
    }

    fn parse(
        text: &str,
        variables: impl Iterator<Item = (String, String)>,
        path: &Path,
    ) -> Result<Self, ConfigError> {
        let invalid = |source: toml::de::Error| ConfigError::Invalid {
            path: path.to_owned(),
            source: Box::new(source),
        };
        let plain: Self = toml::from_str(text).map_err(invalid)?;
        let settings = environment::settings(variables)?;
        if settings.is_empty() {
            return Ok(plain);
        }
        environment::overlaid(&text.parse().map_err(invalid)?, &settings)
    }

    /// Makes relative paths begin at the folder of the file they are written in.
    fn take_paths_from(&mut self, folder: &Path) {
        self.data_dir = folder.join(&self.data_dir);
        self.policies.path.iter_mut().for_each(|path| *path = folder.join(&*path));
        self.audit.take_paths_from(folder);
        self.trust.iter_mut().for_each(|entry| entry.take_paths_from(folder));
        self.oauth.take_paths_from(folder);
    }

    /// Checks that involve several keys. All that is wrong is told at once.
    fn check(&self) -> Result<(), ConfigError> {
        let limits = self.limits.patience().map(drop).map_err(|error| error.to_string());
        let checks = [
            self.server.check(),
            self.mcp.check(),
            self.oauth.check(),
            limits,
            self.tokens.check(),
            self.audit.check(),
        ];
        let mut wrong: Vec<String> = checks.into_iter().filter_map(Result::err).collect();
        let mut slugs: Vec<&str> = self.providers.iter().map(|p| p.slug.as_str()).collect();
        slugs.sort_unstable();
        let twice = slugs.windows(2).filter(|pair| pair.first() == pair.last());
        let twice = twice.filter_map(|pair| pair.first());
        wrong.extend(twice.map(|slug| format!("the provider `{slug}` is declared twice")));
        if wrong.is_empty() { Ok(()) } else { Err(ConfigError::Wrong(wrong.join("\n"))) }
    }

    /// The trust rules and the places of their issuers' keys.
    pub(crate) fn trusted(&self) -> Result<Trusted, ConfigError> {
        Trusted::of(&self.trust, self.server.public_url.as_deref())
    }

    /// Logins of people. `attempts` seals logins that are under way.
    pub(crate) fn login_parts(
        &self,
        rules: &TrustRules,
        attempts: LoginKey,
        outbound: &Outbound,
    ) -> Result<LoginParts, ConfigError> {
        let parts = self.login.parts(&self.trust, rules, attempts, outbound);
        parts.map_err(ConfigError::Wrong)
    }

    /// The places that name an org or a principal by something else than an id.
    pub(crate) fn named(&mut self) -> Vec<Named<'_>> {
        let providers = self.providers.iter_mut().filter_map(Provider::named);
        let trust = self.trust.iter_mut().map(TrustEntry::named);
        providers.chain(trust).filter(Named::has_names).collect()
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.keys.file.clone().unwrap_or_else(|| self.data_dir.join("key"))
    }

    /// Folder of export files.
    pub(crate) fn export_folder(&self) -> PathBuf {
        self.audit.exports.path.clone().unwrap_or_else(|| self.data_dir.join("exports"))
    }

    pub(crate) fn policy_folder(&self) -> PathBuf {
        self.policies.path.clone().unwrap_or_else(|| self.data_dir.join("policies"))
    }

    /// Folder of the files of the set that was last in force.
    pub(crate) fn last_good_file(&self) -> PathBuf {
        self.data_dir.join("policies.last-good.json")
    }

    /// File of the policies that are switched off for a while.
    pub(crate) fn overrides_file(&self) -> PathBuf {
        self.data_dir.join("policies.overrides.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::SystemRandom;

    fn parse(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::parse(text, variables, Path::new("test.toml"))
    }

    #[test]
    fn an_empty_file_is_the_defaults() {
        let config = parse("", &[]).unwrap();

        assert_eq!(config.server.listen, "127.0.0.1:8080");
        assert_eq!(config.policy_folder(), PathBuf::from("portcullis-data/policies"));
    }

    const EXAMPLE: &str = include_str!("../../../docs/portcullis.example.toml");

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
            let refused = std::error::Error::source(&refused).unwrap().to_string();
            let (_, expected) = refused.split_once("expected ").expect("the keys there are");
            let keys: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();

            assert!(!keys.is_empty(), "{section}: {refused}");
            for key in keys {
                let words = EXAMPLE.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
                assert!(words.into_iter().any(|word| word == key), "`{key}` of {section}");
            }
        }
    }

    const PAGE: &str = include_str!("../../../docs/configuration.md");

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
        let mut lines =
            PAGE.lines().skip_while(|line| !(is_heading(line) && line.contains(heading)));
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
        let config = parse(include_str!("../../../docs/portcullis.starter.toml"), &[]).unwrap();

        assert!(config.check().is_ok());
        assert_eq!(config.providers.len(), 1);
    }

    #[test]
    fn the_trust_rules_of_the_page_on_identity_are_valid_and_need_no_warning() {
        let key =
            r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cluster-keys.json");
        fs::write(file, format!("{{\"keys\":[{key}]}}")).unwrap();
        let page = include_str!("../../../docs/identity.md");
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
        let blocks = include_str!("../../../docs/providers.md").split("```toml\n").skip(1);
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

        let shown = format!("{}", std::error::Error::source(&error).unwrap());
        assert!(shown.contains("listen_on"), "{shown}");
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
}
