//! Settings of one upstream.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use http::{HeaderName, HeaderValue};
use portcullis_core::{
    capability::{CapabilityKind, ProviderSlug},
    mcp::{LEGACY, apps::AppRules},
    secret::Secret,
};

use crate::{error::SettingsError, forms::Forms, reach::Endpoint};

/// One upstream server, as configured.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub slug: ProviderSlug,
    pub transport: Transport,
    pub protocol: Protocol,
    /// Answer to its forms, if it speaks the older era.
    pub forms: Forms,
    /// The time for one call, everything included: at most [`MAX_CALL_TIMEOUT`].
    pub call_timeout: Duration,
    /// The time for one connection; over stdio, the silence after which a server that does not
    /// answer the first question is taken for one of the older era.
    pub connect_timeout: Duration,
    /// The time for a program to start, handshake included: at most [`MAX_START_TIMEOUT`].
    pub start_timeout: Duration,
    pub max_response_bytes: usize,
    pub max_in_flight: usize,
    /// Kinds of what it offers that are read and used.
    pub kinds: Vec<CapabilityKind>,
    /// Rights of its apps, if they pass. Without [`CapabilityKind::Template`] their pages are all that passes of its
    /// resources.
    pub apps: Option<AppRules>,
    /// Skills pass whose files have no digests.
    pub dynamic_skills: bool,
    /// Calls of its tools may become tasks.
    pub tasks: bool,
}

/// The longest call.
pub const MAX_CALL_TIMEOUT: Duration = Duration::from_mins(5);
/// The longest start.
pub const MAX_START_TIMEOUT: Duration = Duration::from_mins(15);
/// The largest answer that may be configured.
pub const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// The era of MCP a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Found out on first use.
    #[default]
    Auto,
    /// 2026-07-28: stateless.
    Modern,
    /// 2025-11-25 and before: `initialize` and sessions.
    Legacy,
    /// One version of these and no other, from [`LEGACY`].
    Version(&'static str),
}

impl Protocol {
    /// Returns true if `server/discover` is to be asked.
    pub(crate) const fn may_be_modern(self) -> bool {
        match self {
            Self::Auto | Self::Modern => true,
            Self::Legacy | Self::Version(_) => false,
        }
    }

    /// Returns true if `initialize` may be used.
    pub(crate) const fn may_be_legacy(self) -> bool {
        match self {
            Self::Auto | Self::Legacy | Self::Version(_) => true,
            Self::Modern => false,
        }
    }

    /// The versions to ask for in `initialize`, one after the other until the server takes one.
    pub(crate) fn versions(self) -> impl Iterator<Item = &'static str> {
        let only = match self {
            Self::Version(version) => Some(version),
            Self::Auto | Self::Modern | Self::Legacy => None,
        };
        LEGACY.into_iter().filter(move |known| only.is_none_or(|only| only == *known))
    }
}

/// Transport of a server.
#[derive(Debug, Clone)]
pub enum Transport {
    /// A child process that speaks over its standard input and output.
    Stdio(Program),
    /// Streamable HTTP.
    Http { endpoint: Endpoint, credential: Option<Credential> },
}

/// A program to start. It is started without a shell, in a process group of its own, and sees
/// only `env` and a few variables of the gateway's environment (`PATH`, `HOME`, `LANG`, …).
#[derive(Debug, Clone)]
pub struct Program {
    /// A path, or a name looked up in `PATH`.
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, Secret>,
    /// Working directory; the gateway's own when absent.
    pub cwd: Option<PathBuf>,
}

impl Program {
    /// Returns true if no file of that name exists where it would be looked for.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        let command = Path::new(&self.command);
        if self.command.contains('/') {
            return !self.cwd.as_deref().unwrap_or(Path::new("")).join(command).exists();
        }
        let own = self.env.get("PATH").map(|path| OsString::from(path.expose()));
        let folders = own.or_else(|| env::var_os("PATH")).unwrap_or_default();
        !env::split_paths(&folders).any(|folder| folder.join(command).is_file())
    }
}

/// A header that is sent with every request to one upstream.
#[derive(Debug, Clone)]
pub struct Credential {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
}

impl ServerSettings {
    /// Settings with the defaults: era found out, 30 s a call, 3 s to connect, 90 s to start, 4 MiB an answer,
    /// 64 calls at once.
    #[must_use]
    pub fn new(slug: ProviderSlug, transport: Transport) -> Self {
        Self {
            slug,
            transport,
            protocol: Protocol::Auto,
            forms: Forms::Refuse,
            call_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(3),
            start_timeout: Duration::from_secs(90),
            max_response_bytes: 4 << 20,
            max_in_flight: 64,
            kinds: vec![CapabilityKind::Tool],
            apps: None,
            dynamic_skills: false,
            tasks: false,
        }
    }

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let range = |name, range, fits: bool| {
            if fits { Ok(()) } else { Err(SettingsError::Range { name, range }) }
        };
        let call = !self.call_timeout.is_zero() && self.call_timeout <= MAX_CALL_TIMEOUT;
        range("call_timeout", "above 0 and at most 300 s", call)?;
        let connect = !self.connect_timeout.is_zero() && self.connect_timeout <= MAX_CALL_TIMEOUT;
        range("connect_timeout", "above 0 and at most 300 s", connect)?;
        let start = !self.start_timeout.is_zero() && self.start_timeout <= MAX_START_TIMEOUT;
        range("start_timeout", "above 0 and at most 900 s", start)?;
        let bytes = (1..=MAX_RESPONSE_BYTES).contains(&self.max_response_bytes);
        range("max_response_bytes", "1 to 67108864", bytes)?;
        range("max_in_flight", "1 to 10000", (1..=10_000).contains(&self.max_in_flight))?;
        match &self.transport {
            Transport::Stdio(program) => program.check(),
            Transport::Http { .. } => Ok(()),
        }
    }
}

impl Program {
    /// A program with arguments and nothing else.
    #[must_use]
    pub fn new(command: &str, args: &[&str]) -> Self {
        Self {
            command: command.to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            env: BTreeMap::new(),
            cwd: None,
        }
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.command.is_empty() {
            return Err(SettingsError::Program("the command must not be empty"));
        }
        let texts = self.args.iter().chain([&self.command]).map(String::as_str);
        let values = self.env.values().map(Secret::expose);
        if texts.chain(values).any(|text| text.contains('\0')) {
            return Err(SettingsError::Program("the command must not hold a NUL character"));
        }
        if self.env.keys().any(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(SettingsError::Program("a variable's name must not be empty nor hold `=`"));
        }
        Ok(())
    }
}

impl Credential {
    /// Sends `value` in the header `name`. Rejects headers that HTTP or MCP need themselves and
    /// values that are no header values.
    pub fn header(name: &str, value: &Secret) -> Result<Self, SettingsError> {
        const TAKEN: [&str; 10] = [
            "host", "content-type", "content-length", "content-encoding", "transfer-encoding",
            "connection", "accept", "accept-encoding", "last-event-id", "user-agent",
        ];
        let name: HeaderName = name
            .parse()
            .map_err(|_| SettingsError::Credential("the credential's header has no valid name"))?;
        if TAKEN.contains(&name.as_str()) || name.as_str().starts_with("mcp-") {
            return Err(SettingsError::Credential("this header cannot carry a credential"));
        }
        let mut value = HeaderValue::from_str(value.expose())
            .map_err(|_| SettingsError::Credential("the credential is not a header value"))?;
        value.set_sensitive(true);
        Ok(Self { name, value })
    }

    /// The value, without the scheme before it.
    pub(crate) fn secret(&self) -> &str {
        let value = self.value.to_str().unwrap_or_default();
        value.rsplit_once(' ').map_or(value, |(_, secret)| secret)
    }

    /// Sends `Authorization: Bearer <token>`.
    pub fn bearer(token: &Secret) -> Result<Self, SettingsError> {
        Self::header("authorization", &Secret::new(format!("Bearer {}", token.expose())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_named() {
        let program = Transport::Stdio(Program::new("true", &[]));
        let good = ServerSettings::new("a".parse().unwrap(), program);
        let slow = ServerSettings { call_timeout: Duration::from_secs(301), ..good.clone() };
        let none = ServerSettings { max_in_flight: 0, ..good.clone() };

        assert_eq!(good.check(), Ok(()));
        assert!(slow.check().unwrap_err().to_string().contains("`call_timeout`"));
        assert!(none.check().unwrap_err().to_string().contains("`max_in_flight`"));
    }

    #[test]
    fn neither_credentials_nor_variables_show_in_debug_output() {
        let secret = Secret::new("hunter2".to_owned());
        let mut program = Program::new("true", &[]);
        program.env.insert("KEY".to_owned(), secret.clone());
        let credential = Credential::bearer(&secret).unwrap();

        assert!(!format!("{program:?} {credential:?}").contains("hunter2"));
    }

    #[test]
    fn headers_that_the_protocol_needs_carry_no_credential() {
        let secret = Secret::new("x".to_owned());
        let broken = Secret::new("x\r\nhost: y".to_owned());

        for name in ["Host", "Mcp-Session-Id", "content-length", "a b", ""] {
            assert!(Credential::header(name, &secret).is_err(), "{name}");
        }
        assert!(Credential::header("x-api-key", &broken).is_err());
        assert!(Credential::header("x-api-key", &secret).is_ok());
    }
}
