//! `[[providers]]`: the MCP servers behind the gateway.

use std::{collections::BTreeMap, env, fs, path::PathBuf, time::Duration};

use portcullis_app::{AuthKind, Declared, Pinning};
use portcullis_core::{id::OrgId, policy::Catalogue, secret::Secret, tool::ProviderSlug};
use portcullis_upstream as upstream;
use serde::Deserialize;

use super::ConfigError;

/// One `[[providers]]` entry. Either `url` (streamable HTTP) or `command` (stdio).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    /// Its short name: the part of a tool id before the colon.
    pub(crate) slug: String,
    /// Its name for people; the slug when absent.
    name: Option<String>,
    /// The only org that may use it (`org_…`); every org when absent.
    org: Option<String>,
    /// Where its streamable HTTP endpoint is.
    url: Option<String>,
    /// The program that speaks MCP over stdio, and its arguments. No shell.
    command: Option<Vec<String>>,
    /// Environment variables of the program, beside PATH, HOME, LANG and TZ.
    #[serde(default)]
    env: BTreeMap<String, SecretSource>,
    /// The folder the program runs in.
    cwd: Option<PathBuf>,
    /// How the gateway authenticates.
    #[serde(default)]
    auth: Auth,
    /// The key, for `auth = "api_key"`.
    api_key: Option<SecretSource>,
    /// The header that carries the key; `Authorization: Bearer` when absent.
    api_key_header: Option<String>,
    /// This host may have a private or loopback address, and may be spoken to without TLS.
    #[serde(default)]
    allow_private: bool,
    /// Which era of MCP it speaks; found out when absent.
    #[serde(default)]
    protocol: Protocol,
    /// Seconds a call may take, 1 to 300.
    timeout_seconds: Option<u64>,
    /// Seconds a connection may take, 1 to 300.
    connect_timeout_seconds: Option<u64>,
    /// Bytes of the largest answer, up to 64 MiB.
    max_response_bytes: Option<usize>,
    /// Calls in flight at once.
    max_in_flight: Option<usize>,
    /// What becomes of tools that change; as `[tools]` says when absent.
    pin: Option<Pin>,
}

/// `[tools]`: the catalogue.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tools {
    /// What becomes of tools that change, where a provider does not say.
    pub(super) pin: Pin,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pin {
    #[default]
    On,
    Review,
    Off,
}

impl From<Pin> for Pinning {
    fn from(pin: Pin) -> Self {
        match pin {
            Pin::On => Self::On,
            Pin::Review => Self::Review,
            Pin::Off => Self::Off,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Auth {
    #[default]
    None,
    ApiKey,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Protocol {
    #[default]
    Auto,
    Modern,
    Legacy,
}

/// Where a secret comes from. Plain text in the file is possible for what is none.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum SecretSource {
    Env { env: String },
    File { file: PathBuf },
    Text(String),
}

impl std::fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env { env } => write!(f, "env {env}"),
            Self::File { file } => write!(f, "file {}", file.display()),
            Self::Text(_) => f.write_str("text …"),
        }
    }
}

impl SecretSource {
    pub(super) fn read(&self) -> Result<Secret, String> {
        match self {
            Self::Env { env } => env::var(env)
                .map(Secret::new)
                .map_err(|_| format!("the environment variable `{env}` is not set")),
            Self::File { file } => fs::read_to_string(file)
                .map(|text| Secret::new(text.trim_end().to_owned()))
                .map_err(|error| format!("`{}` cannot be read: {error}", file.display())),
            Self::Text(text) => Ok(Secret::new(text.clone())),
        }
    }
}

impl Provider {
    /// Takes what it does not say itself from what holds for all.
    pub(super) fn fall_back_on(&mut self, tools: Tools) {
        self.pin.get_or_insert(tools.pin);
    }

    /// The provider, ready to be connected. Says no with what to change.
    pub(crate) fn declare(&self, outbound: &upstream::Outbound) -> Result<Declared, ConfigError> {
        self.declared(outbound)
            .map_err(|error| ConfigError::Wrong(format!("provider `{}`: {error}", self.slug)))
    }

    fn declared(&self, outbound: &upstream::Outbound) -> Result<Declared, String> {
        let slug: ProviderSlug = self.slug.parse().map_err(text)?;
        if self.slug == Catalogue::RESERVED_PROVIDER {
            return Err("this slug is reserved for action groups; choose another".to_owned());
        }
        let org: Option<OrgId> = self.org.as_deref().map(str::parse).transpose().map_err(text)?;
        let defaults = upstream::ServerSettings::new(slug.clone(), self.transport()?);
        let settings = upstream::ServerSettings {
            protocol: match self.protocol {
                Protocol::Auto => upstream::Protocol::Auto,
                Protocol::Modern => upstream::Protocol::Modern,
                Protocol::Legacy => upstream::Protocol::Legacy,
            },
            call_timeout: self.timeout_seconds.map_or(defaults.call_timeout, Duration::from_secs),
            connect_timeout: self
                .connect_timeout_seconds
                .map_or(defaults.connect_timeout, Duration::from_secs),
            max_response_bytes: self.max_response_bytes.unwrap_or(defaults.max_response_bytes),
            max_in_flight: self.max_in_flight.unwrap_or(defaults.max_in_flight),
            ..defaults
        };
        let auth = match self.auth {
            Auth::None => AuthKind::None,
            Auth::ApiKey => AuthKind::ApiKey,
        };
        let server = upstream::Server::new(settings, outbound).map_err(text)?;
        let name = self.name.clone().unwrap_or_else(|| self.slug.clone());
        let pinning = self.pin.unwrap_or_default().into();
        Ok(Declared { slug, name, org, auth, server, pinning })
    }

    fn transport(&self) -> Result<upstream::Transport, String> {
        match (&self.url, &self.command) {
            (Some(url), None) => {
                let endpoint = if self.allow_private {
                    upstream::Endpoint::named(url)
                } else {
                    upstream::Endpoint::public(url)
                };
                let endpoint = endpoint.map_err(text)?;
                Ok(upstream::Transport::Http { endpoint, credential: self.credential()? })
            }
            (None, Some(command)) => self.program(command).map(upstream::Transport::Stdio),
            (Some(_), Some(_)) | (None, None) => {
                Err("give either `url` or `command`, one of them".to_owned())
            }
        }
    }

    fn program(&self, command: &[String]) -> Result<upstream::Program, String> {
        let (program, args) = command.split_first().ok_or("`command` is empty")?;
        if self.auth == Auth::ApiKey {
            return Err(
                "a program gets its key as a variable in `env`, not as `api_key`".to_owned()
            );
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut program = upstream::Program::new(program, &args);
        program.cwd.clone_from(&self.cwd);
        for (name, source) in &self.env {
            program.env.insert(name.clone(), source.read()?);
        }
        Ok(program)
    }

    fn credential(&self) -> Result<Option<upstream::Credential>, String> {
        let key = match (self.auth, &self.api_key) {
            (Auth::None, None) => return Ok(None),
            (Auth::ApiKey, Some(source)) => source.read()?,
            (Auth::None, Some(_)) => return Err("`api_key` needs `auth = \"api_key\"`".to_owned()),
            (Auth::ApiKey, None) => return Err("`auth = \"api_key\"` needs `api_key`".to_owned()),
        };
        let credential = match &self.api_key_header {
            None => upstream::Credential::bearer(&key),
            Some(header) => upstream::Credential::header(header, &key),
        };
        credential.map(Some).map_err(text)
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
