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
mod written;

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
    named::{NamedOrg, is_org, is_principal},
    oauth::OAuthServer,
    providers::{Provider, Tools},
    server::{Log, LogFormat, Server, Tls, address},
    times::seconds,
    tokens::Tokens,
    traces::Traces,
    trust::{TrustConfig, TrustEntry},
    webhooks::WebhookSettings,
    written::Written,
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
    /// As the file says it.
    #[serde(skip)]
    pub(crate) written: Written,
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
            written: Written::default(),
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
    /// Without the text of the line, which may hold a password.
    #[error("the configuration file `{path}` is not valid{meant}: {place}: {message}")]
    Invalid {
        path: PathBuf,
        /// The nearest keys, where one is not known.
        meant: String,
        /// Line and key.
        place: String,
        message: String,
    },
    #[error("{0}")]
    Wrong(String),
}

/// The line of an error and its key, or its head; nothing of values.
fn place_of(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|at| text.get(..at.start)).unwrap_or_default();
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default();
    let key = line.split_once('=').map(|(key, _)| key.trim());
    let name = key.or_else(|| line.starts_with('[').then_some(line)).unwrap_or_default();
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.[]".contains(c);
    let shown = if !name.is_empty() && name.chars().all(is_name) { name } else { "…" };
    format!("line {}, `{shown}`", number + 1)
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
        config.written = Written::of(&text);
        config.dlp.stand_in(path, &text);
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
        let invalid = |error: toml::de::Error| ConfigError::Invalid {
            path: path.to_owned(),
            meant: environment::meant(&error.to_string()),
            place: place_of(&error, text),
            message: environment::without_value(error.message()),
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
        wrong.extend(twice.map(|slug| {
            let lines = self.written.lines_of(slug).join(" and ");
            let place = if lines.is_empty() { lines } else { format!(" (lines {lines})") };
            format!("the provider `{slug}` is declared twice{place}")
        }));
        if wrong.is_empty() { Ok(()) } else { Err(ConfigError::Wrong(wrong.join("\n"))) }
    }

    /// Rejects the defaults if a configuration that was not named lies in the data folder.
    pub(crate) fn overlooks_none(self) -> Result<Self, ConfigError> {
        let file = self.data_dir.join("portcullis.toml");
        if self.is_given || !file.exists() {
            return Ok(self);
        }
        let file = file.display();
        Err(ConfigError::Wrong(format!(
            "no configuration was named, and there is one in `{file}`: add `--config {file}`, or set \
             PORTCULLIS_CONFIG"
        )))
    }

    /// Rejects the defaults where there is nothing for them to serve, too.
    pub(crate) fn of_installation(self) -> Result<Self, ConfigError> {
        let config = self.overlooks_none()?;
        let is_there = config.is_given || config.key_file().exists();
        if is_there { Ok(config) } else { Err(config.without_installation()) }
    }

    /// Error for a data folder with nothing in it that no configuration names.
    pub(crate) fn without_installation(&self) -> ConfigError {
        ConfigError::Wrong(format!(
            "no configuration was named, and there is no installation in `{}`: name its configuration with \
             `--config FILE` or PORTCULLIS_CONFIG, or begin with `portcullis quickstart`",
            self.data_dir.display()
        ))
    }

    /// The trust rules and the places of their issuers' keys.
    pub(crate) fn trusted(&self) -> Result<TrustConfig, ConfigError> {
        TrustConfig::of(&self.trust, self.server.public_url.as_deref())
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
    pub(crate) fn named_orgs(&mut self) -> Vec<NamedOrg<'_>> {
        let providers = self.providers.iter_mut().filter_map(Provider::named_org);
        let trust = self.trust.iter_mut().map(TrustEntry::named_org);
        providers.chain(trust).filter(NamedOrg::has_names).collect()
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

    /// File with the result of the last reload of a serving node.
    pub(crate) fn reload_report_file(&self) -> PathBuf {
        self.data_dir.join("policies.reload.json")
    }

    /// File with the settings that a serving node takes at its next start only.
    pub(crate) fn restart_report_file(&self) -> PathBuf {
        self.data_dir.join("settings.restart.json")
    }

    /// File of the policies that are switched off for a while.
    pub(crate) fn overrides_file(&self) -> PathBuf {
        self.data_dir.join("policies.overrides.json")
    }
}

#[cfg(test)]
mod tests;
