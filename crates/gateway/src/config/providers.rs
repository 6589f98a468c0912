//! `[[providers]]`: the MCP servers behind the gateway.

mod apps;
mod auth;
mod choices;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use portcullis_app::{Auth, Declared};
use portcullis_core::{
    capability::{CapabilityKind, ProviderSlug},
    id::OrgId,
    secret::Secret,
};
use portcullis_upstream as upstream;
use serde::{Deserialize, Deserializer, de::Error as _};

use self::{
    apps::AppsCsp,
    auth::{Account, AuthName, OAuth, OwnerName, key_header, owners},
    choices::{Exposed, Forms, OutputSchema, Patterns, Pin, Protocol},
};
use super::{
    ConfigError, Connect,
    named::{NamedOrg, is_org},
    secrets::SecretSource,
    times,
};

/// One `[[providers]]` entry. Either `url` (streamable HTTP) or `command` (stdio).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    /// Its short name: the part of a tool id before the colon.
    pub(crate) slug: String,
    /// Its name for people; the slug when absent.
    name: Option<String>,
    /// Anybody may read its server card: slug, name and the address at this gateway.
    #[serde(default)]
    card: bool,
    /// The only org that may use it (its id or name); every org when absent.
    org: Option<String>,
    /// URL of its streamable HTTP endpoint; it may hold a secret.
    url: Option<SecretSource>,
    /// The program that speaks MCP over stdio, and its arguments. No shell.
    #[serde(default, deserialize_with = "command")]
    command: Option<Vec<String>>,
    /// Environment variables of the program, beside PATH, HOME, LANG and TZ.
    #[serde(default)]
    env: BTreeMap<String, SecretSource>,
    /// The folder the program runs in.
    cwd: Option<PathBuf>,
    #[serde(default)]
    auth: AuthName,
    /// The key, for `auth = "api_key"`; the connecting caller brings one when absent.
    api_key: Option<SecretSource>,
    /// The header that carries the key; `Authorization: Bearer` when absent.
    api_key_header: Option<String>,
    /// Format of the header, with `{}` for the key.
    api_key_format: Option<String>,
    /// Owners of connections: `me`, `org` or both.
    owners: Option<Vec<OwnerName>>,
    /// Settings of `auth = "oauth2"`.
    oauth: Option<OAuth>,
    /// Source of the account that a credential belongs to.
    account: Option<Account>,
    /// The host may have a private or loopback address, and may be spoken to without TLS.
    #[serde(default)]
    allow_private: bool,
    /// Kinds of its offer that pass: `tools`, `prompts`, `resources`, `apps`, `skills`; tools alone when absent.
    expose: Option<Vec<Exposed>>,
    /// Addresses that pages of its apps may name; none when absent.
    apps_csp: Option<AppsCsp>,
    /// Permissions that these pages may ask for; none when absent.
    apps_permissions: Option<Vec<String>>,
    /// These pages may have an origin of their choice.
    apps_domain: Option<bool>,
    /// Its skills pass although their files have no digests.
    #[serde(default)]
    allow_dynamic_skills: bool,
    /// Era of MCP that it speaks; found out when absent.
    #[serde(default)]
    protocol: Protocol,
    /// Answer to forms of a server of the older era.
    #[serde(default)]
    forms: Forms,
    /// Seconds a call may take, 1 to 300.
    #[serde(default, deserialize_with = "times::whole")]
    timeout_seconds: Option<u64>,
    /// Seconds a connection may take, 1 to 300.
    #[serde(default, deserialize_with = "times::whole")]
    connect_timeout_seconds: Option<u64>,
    /// Seconds a program may take to start, 1 to 900.
    #[serde(default, deserialize_with = "times::whole")]
    start_timeout_seconds: Option<u64>,
    /// Bytes of the largest answer, up to 64 MiB.
    max_response_bytes: Option<usize>,
    max_in_flight: Option<usize>,
    /// Treatment of tools that change; as `[tools]` says when absent.
    pin: Option<Pin>,
    /// Treatment of tools with patterns that cannot be enforced.
    #[serde(default)]
    patterns: Patterns,
    /// Treatment of results that do not fit the output schema of their tool.
    #[serde(default)]
    output_schema: OutputSchema,
    /// Tools that are remembered of it; as `[tools]` says when absent.
    max_pins: Option<usize>,
}

/// `[tools]`: the catalogue.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tools {
    /// Treatment of tools that change, where a provider does not say.
    pub(super) pin: Pin,
    /// Tools that are remembered of a provider, where it does not say.
    pub(super) max_pins: usize,
}

impl Default for Tools {
    fn default() -> Self {
        Self { pin: Pin::default(), max_pins: MAX_PINS }
    }
}

/// Twice what a server may list at once.
const MAX_PINS: usize = 2000;

impl Provider {
    /// Takes what it does not say itself from what holds for all.
    pub(super) fn fall_back_on(&mut self, tools: Tools) {
        self.pin.get_or_insert(tools.pin);
        self.max_pins.get_or_insert(tools.max_pins);
    }

    /// The org that it names.
    pub(super) fn named_org(&mut self) -> Option<NamedOrg<'_>> {
        let place = format!("provider `{}`", self.slug);
        self.org.as_mut().map(|org| NamedOrg { place, org, principals: Vec::new() })
    }

    /// Forgets an org that is given by its name: who looks for tools only does not depend on it.
    pub(crate) fn forget_name(&mut self) {
        self.org = self.org.take().filter(|org| is_org(org));
    }

    /// The provider, ready to be connected. The error says what to change.
    pub(crate) fn declare(
        &self,
        outbound: &upstream::Outbound,
        connect: &Connect,
    ) -> Result<Declared, ConfigError> {
        self.refuse_written_key()?;
        self.declared(outbound, connect).map_err(|error| self.wrong(&error))
    }

    /// Rejects what `declare` would reject, with stand-ins for the values of variables.
    pub(crate) fn rehearse(
        &self,
        outbound: &upstream::Outbound,
        connect: &Connect,
    ) -> Result<(), ConfigError> {
        self.refuse_written_key()?;
        let mut rehearsed = self.clone();
        rehearsed.url.iter_mut().for_each(|url| url.stand_in("https://stand-in.example/mcp"));
        rehearsed.api_key.iter_mut().for_each(|key| key.stand_in("stand-in"));
        rehearsed.env.values_mut().for_each(|value| value.stand_in("stand-in"));
        rehearsed.declared(outbound, connect).map(drop).map_err(|error| self.wrong(&error))
    }

    fn wrong(&self, error: &str) -> ConfigError {
        ConfigError::Wrong(format!("provider `{}`: {error}", self.slug))
    }

    /// Rejects a key that stands in the configuration itself.
    fn refuse_written_key(&self) -> Result<(), ConfigError> {
        let written = match &self.api_key {
            None | Some(SecretSource::File { .. }) => false,
            Some(SecretSource::Env { default, .. }) => default.is_some(),
            Some(SecretSource::Text(_)) => true,
        };
        if !written {
            return Ok(());
        }
        Err(self.wrong(
            "`api_key` is the key itself, which does not belong into this file; it comes from a variable, \
             `api_key = { env = \"NAME\" }`, or from a file, `api_key = { file = \"PATH\" }`",
        ))
    }

    fn declared(
        &self,
        outbound: &upstream::Outbound,
        connect: &Connect,
    ) -> Result<Declared, String> {
        let slug: ProviderSlug = self.slug.parse().map_err(text)?;
        let org: Option<OrgId> = self.org.as_deref().map(str::parse).transpose().map_err(text)?;
        if self.forms == Forms::Defaults && self.protocol == Protocol::Modern {
            return Err(
                "`forms = \"defaults\"` concerns the older era; leave out `protocol = \"modern\"`"
                    .to_owned(),
            );
        }
        let auth = self.auth(connect)?;
        let endpoint = self.endpoint()?;
        let owners = owners(self.owners.as_deref(), &auth)?;
        let account = self.account.as_ref().map(|it| it.source(self.reach())).transpose()?;
        let defaults = upstream::ServerSettings::new(slug.clone(), self.transport()?);
        let settings = upstream::ServerSettings {
            protocol: self.protocol.into(),
            forms: self.forms.into(),
            call_timeout: self.timeout_seconds.map_or(defaults.call_timeout, Duration::from_secs),
            connect_timeout: self
                .connect_timeout_seconds
                .map_or(defaults.connect_timeout, Duration::from_secs),
            start_timeout: self
                .start_timeout_seconds
                .map_or(defaults.start_timeout, Duration::from_secs),
            max_response_bytes: self.max_response_bytes.unwrap_or(defaults.max_response_bytes),
            max_in_flight: self.max_in_flight.unwrap_or(defaults.max_in_flight),
            kinds: self.kinds()?,
            apps: self.apps()?,
            dynamic_skills: self.allow_dynamic_skills,
            tasks: self.exposes(Exposed::Tasks),
            ..defaults
        };
        let server = upstream::Server::new(settings, outbound).map_err(text)?;
        let name = self.name.clone().unwrap_or_else(|| self.slug.clone());
        let pinning = self.pin.unwrap_or_default().into();
        let max_pins = self.max_pins.unwrap_or(MAX_PINS);
        if !(1..=100_000).contains(&max_pins) {
            return Err("`max_pins` has to be 1 to 100000".to_owned());
        }
        let strict_patterns = self.patterns == Patterns::Refuse;
        Ok(Declared {
            slug,
            name,
            card: self.card,
            org,
            auth,
            owners,
            account,
            endpoint,
            server,
            pinning,
            strict_patterns,
            misfits: self.output_schema.into(),
            max_pins,
        })
    }

    fn exposes(&self, what: Exposed) -> bool {
        self.expose.iter().flatten().any(|it| *it == what)
    }

    /// The kinds that it exposes, in one order.
    fn kinds(&self) -> Result<Vec<CapabilityKind>, String> {
        if self.allow_dynamic_skills && !self.exposes(Exposed::Skills) {
            return Err("`allow_dynamic_skills` needs `skills` in `expose`".to_owned());
        }
        if self.exposes(Exposed::Tasks) && !self.exposes(Exposed::Tools) {
            return Err("`tasks` in `expose` needs `tools`, whose calls they are".to_owned());
        }
        let Some(exposed) = &self.expose else { return Ok(vec![CapabilityKind::Tool]) };
        let named = exposed.iter().flat_map(|it| it.kinds()).copied();
        let named: BTreeSet<CapabilityKind> = named.collect();
        if named.is_empty() {
            return Err(
                "`expose` is empty, so nothing would pass; leave the provider out".to_owned()
            );
        }
        Ok(named.into_iter().collect())
    }

    /// Networks that addresses of this provider may reach.
    fn reach(&self) -> fn(&str) -> Result<upstream::Endpoint, upstream::SettingsError> {
        if self.allow_private { upstream::Endpoint::allowed } else { upstream::Endpoint::public }
    }

    fn auth(&self, connect: &Connect) -> Result<Auth, String> {
        if self.auth != AuthName::OAuth2 && self.oauth.is_some() {
            return Err("`[providers.oauth]` needs `auth = \"oauth2\"`".to_owned());
        }
        if self.auth != AuthName::ApiKey
            && (self.api_key_header.is_some() || self.api_key_format.is_some())
        {
            return Err("`api_key_header` needs `auth = \"api_key\"`".to_owned());
        }
        match (self.auth, &self.api_key) {
            (AuthName::None, _) => Ok(Auth::None),
            (AuthName::ApiKey, Some(_)) => Ok(Auth::ConfiguredKey),
            (AuthName::ApiKey, None) => {
                key_header(self.api_key_header.as_deref(), self.api_key_format.as_deref())
            }
            (AuthName::OAuth2, _) => {
                let oauth = self.oauth.clone().unwrap_or_default();
                oauth.settings(self.reach(), connect.is_confirmed())
            }
        }
    }

    fn endpoint(&self) -> Result<Option<upstream::Endpoint>, String> {
        let Some(source) = &self.url else { return Ok(None) };
        let url = source.read()?;
        if !self.allow_private && url.expose().to_ascii_lowercase().starts_with("http://") {
            return Err(
                "`url` begins with `http://`: plain HTTP needs `allow_private = true` and reaches \
                        private and loopback addresses alone; for any other use `https://`"
                    .to_owned(),
            );
        }
        self.reach()(url.expose()).map(Some).map_err(text)
    }

    fn transport(&self) -> Result<upstream::Transport, String> {
        match (self.endpoint()?, &self.command) {
            (Some(endpoint), None) => {
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
        if self.auth != AuthName::None {
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

    /// The program that it names, if there is none such.
    pub(crate) fn missing_program(&self) -> Option<&str> {
        let command = self.command.as_deref()?;
        self.program(command).ok()?.is_missing().then(|| command.first().map(String::as_str))?
    }

    fn credential(&self) -> Result<Option<upstream::Credential>, String> {
        let key = match (self.auth, &self.api_key) {
            (AuthName::ApiKey, Some(source)) => source.read()?,
            (AuthName::None | AuthName::OAuth2, Some(_)) => {
                return Err("`api_key` needs `auth = \"api_key\"`".to_owned());
            }
            (AuthName::None | AuthName::OAuth2 | AuthName::ApiKey, None) => return Ok(None),
        };
        let name = self.api_key_header.as_deref();
        let format = self.api_key_format.as_deref();
        let usual = if name.is_some() { "{}" } else { "Bearer {}" };
        let (before, after) = format.unwrap_or(usual).split_once("{}").unwrap_or_default();
        let value = Secret::new(format!("{before}{}{after}", key.expose()));
        let header = name.unwrap_or("authorization");
        upstream::Credential::header(header, &value).map(Some).map_err(text)
    }
}

/// A list of a program and its arguments. A text is refused with the list that it would be.
fn command<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Vec<String>>, D::Error> {
    let value = toml::Value::deserialize(reader)?;
    if let Some(text) = value.as_str() {
        let words: Vec<&str> = text.split_whitespace().collect();
        let list = toml::Value::from(words);
        return Err(D::Error::custom(format!(
            "`command` is a list of the program and its arguments: `command = {list}`"
        )));
    }
    value.try_into().map(Some).map_err(D::Error::custom)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
