//! Address of a PostgreSQL database: a URL as libpq takes it.

use std::{fmt, path::PathBuf, time::Duration};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};
use url::form_urlencoded;

/// Place of a database, and how to connect to it.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) tls: TlsSettings,
}

/// Files for TLS, and how much of the server's certificate is verified.
#[derive(Clone, Default)]
pub(crate) struct TlsSettings {
    pub(crate) verify: Verify,
    /// Issuers besides the public ones, as PEM.
    pub(crate) roots: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Verify {
    #[default]
    Nothing,
    /// The issuer, not the name.
    Issuer,
    Full,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Without user and password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => String::new(),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        write!(f, "postgres://{host}:{port}/{}", self.config.get_dbname().unwrap_or_default())
    }
}

/// Fault of a URL, without its values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the PostgreSQL URL has the form `postgres://user:password@host:port/database`")]
    Form,
    #[error("the PostgreSQL URL has an unknown parameter `{0}`")]
    Unknown(String),
    #[error(
        "the PostgreSQL URL has a parameter with a wrong value, or one that does not fit the others"
    )]
    Value,
    #[error(
        "`sslmode=verify-ca` needs `sslrootcert`: public issuers are verified with `verify-full`"
    )]
    Issuer,
    #[error("the password in the PostgreSQL URL needs its `?` and `@` as `%3F` and `%40`")]
    Password,
}

impl std::str::FromStr for Address {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        if query.contains('@') && !place.contains('@') {
            return Err(Malformed::Password);
        }
        let base: Config = place.parse().map_err(|_| Malformed::Form)?;
        let mut tls = TlsSettings::default();
        let (mut mode, mut options, mut driver) = (None, Vec::new(), Vec::new());
        // A plus sign stands for itself: this is no form.
        for (key, value) in form_urlencoded::parse(query.replace('+', "%2B").as_bytes()) {
            let file = || Some(PathBuf::from(&*value));
            match &*key {
                "sslmode" | "ssl-mode" => mode = Some(value.into_owned()),
                "sslrootcert" | "ssl-root-cert" | "ssl-ca" => tls.roots = file(),
                "sslcert" | "ssl-cert" => tls.certificate = file(),
                "sslkey" | "ssl-key" => tls.key = file(),
                "options" => options.push(value.into_owned()),
                key if WITHOUT_EFFECT.contains(&key) => {}
                key => {
                    let name = key.strip_prefix("options[").and_then(|it| it.strip_suffix(']'));
                    let known = DRIVERS.iter().find(|(known, _)| *known == key);
                    if let Some(name) = name {
                        let value = value.replace('\\', r"\\").replace(' ', r"\ ");
                        options.push(format!("-c {name}={value}"));
                    } else if let Some((_, key)) = known {
                        let value = value.replace('\\', r"\\").replace('\'', r"\'");
                        driver.push(format!("{key}='{value}'"));
                    } else {
                        // It may be a part of a password.
                        let is_name = key.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
                        return Err(Malformed::Unknown(if is_name { key } else { "…" }.to_owned()));
                    }
                }
            }
        }
        let mut config: Config = driver.join(" ").parse().map_err(|_| Malformed::Value)?;
        fill_in(&mut config, &base);
        let mut found = Self { config, tls };
        found.set_tls(mode.as_deref())?;
        for option in options {
            found.add_option(&option);
        }
        Ok(found)
    }
}

/// Parameters of libpq that the driver reads itself, and its names for them.
const DRIVERS: [(&str, &str); 15] = [
    ("application_name", "application_name"),
    ("channel_binding", "channel_binding"),
    ("connect_timeout", "connect_timeout"),
    ("dbname", "dbname"),
    ("host", "host"),
    ("hostaddr", "hostaddr"),
    ("keepalives", "keepalives"),
    ("keepalives_count", "keepalives_retries"),
    ("keepalives_idle", "keepalives_idle"),
    ("keepalives_interval", "keepalives_interval"),
    ("load_balance_hosts", "load_balance_hosts"),
    ("password", "password"),
    ("port", "port"),
    ("target_session_attrs", "target_session_attrs"),
    ("user", "user"),
];
/// Parameters of libpq for what the gateway does not do, whatever they say.
const WITHOUT_EFFECT: [&str; 5] =
    ["client_encoding", "fallback_application_name", "gssencmode", "sslcompression", "sslsni"];
/// Value of `sslrootcert` for the public issuers.
const PUBLIC_ISSUERS: &str = "system";
/// Time after which a connection is probed, and pause between probes.
const PROBED: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(3)];
/// The driver's own time before the first probe is longer.
const LONG: Duration = Duration::from_hours(1);
/// Time for which a server may leave what is sent unacknowledged.
const UNACKNOWLEDGED: Duration = Duration::from_secs(15);
/// Time to connect to one of several hosts.
const TO_ONE: Duration = Duration::from_secs(2);

/// Takes what the parameters leave open from the part before them, or from defaults.
fn fill_in(config: &mut Config, base: &Config) {
    if config.get_hosts().is_empty() {
        for host in base.get_hosts() {
            match host {
                Host::Tcp(host) => config.host(host),
                Host::Unix(path) => config.host_path(path),
            };
        }
    }
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        config.host("localhost");
    }
    if config.get_ports().is_empty() {
        for port in base.get_ports() {
            config.port(*port);
        }
    }
    if let (None, Some(user)) = (config.get_user(), base.get_user()) {
        config.user(user);
    }
    if let (None, Some(password)) = (config.get_password(), base.get_password()) {
        config.password(password);
    }
    if let (None, Some(name)) = (config.get_dbname(), base.get_dbname()) {
        config.dbname(name);
    }
    // The system's own defaults are hours.
    let [idle, interval] = PROBED;
    if config.get_keepalives_idle() > LONG {
        config.keepalives_idle(idle);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(interval).keepalives_retries(3);
    }
    config.tcp_user_timeout(UNACKNOWLEDGED);
    let several = config.get_hosts().len().max(config.get_hostaddrs().len()) > 1;
    if several && config.get_connect_timeout().is_none() {
        config.connect_timeout(TO_ONE);
    }
}

impl Address {
    /// As with libpq, an issuer that is named is verified, sockets of this machine are without TLS, and `system` stands
    /// for the public issuers.
    fn set_tls(&mut self, mode: Option<&str>) -> Result<(), Malformed> {
        let hosts = self.config.get_hosts();
        let is_local = !hosts.is_empty() && hosts.iter().all(|it| matches!(it, Host::Unix(_)));
        let is_public = self.tls.roots.as_deref().is_some_and(|path| path == PUBLIC_ISSUERS);
        let (mode, verify) = match (mode, &self.tls.roots) {
            _ if is_local => (SslMode::Disable, Verify::Nothing),
            (Some("disable"), _) => (SslMode::Disable, Verify::Nothing),
            (Some("verify-full"), _) => (SslMode::Require, Verify::Full),
            (None, Some(_)) if is_public => (SslMode::Require, Verify::Full),
            (_, Some(_)) if is_public => return Err(Malformed::Value),
            (None | Some("allow" | "prefer"), _) => (SslMode::Prefer, Verify::Nothing),
            (Some("require"), None) => (SslMode::Require, Verify::Nothing),
            (Some("require" | "verify-ca"), Some(_)) => (SslMode::Require, Verify::Issuer),
            (Some("verify-ca"), None) => return Err(Malformed::Issuer),
            (Some(_), _) => return Err(Malformed::Value),
        };
        if is_public {
            self.tls.roots = None;
        }
        self.config.ssl_mode(mode);
        self.tls.verify = verify;
        Ok(())
    }

    /// Adds a setting that each session begins with.
    fn add_option(&mut self, option: &str) {
        let before = self.config.get_options().map(|before| format!("{before} "));
        self.config.options(before.unwrap_or_default() + option);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio_postgres::config::TargetSessionAttrs;

    use super::*;

    #[test]
    fn an_address_is_read_as_libpq_reads_it() {
        let text = "postgres://gate:p%40ss@db.example:5433/store?sslmode=verify-full\
                    &sslrootcert=%2Fetc%2Fca.pem&options=-c%20a%3D1&options[b]=2%203";
        let address: Address = text.parse().unwrap();

        assert_eq!(address.to_string(), "postgres://db.example:5433/store");
        assert_eq!(address.config.get_user(), Some("gate"));
        assert_eq!(address.config.get_password(), Some(&b"p@ss"[..]));
        assert_eq!(address.config.get_options(), Some(r"-c a=1 -c b=2\ 3"));
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
        assert!(address.tls.verify == Verify::Full);
        assert_eq!(address.tls.roots, Some(PathBuf::from("/etc/ca.pem")));
        let socket: Address = "postgres://gate@/store?host=/run/postgresql".parse().unwrap();
        assert_eq!(socket.config.get_hosts(), [Host::Unix(PathBuf::from("/run/postgresql"))]);
        for (wrong, fault) in [
            ("postgres://[/x", Malformed::Form),
            ("postgres://gate:77?x@a/b?sslmode=require", Malformed::Password),
            ("postgres://a/b?sslmode=maybe", Malformed::Value),
            ("postgres://a/b?port=x", Malformed::Value),
            ("postgres://a/b?target_session_attrs=fast", Malformed::Value),
            ("postgres://a/b?sslmode=require&sslrootcert=system", Malformed::Value),
            ("postgres://a/b?sslmode=verify-ca", Malformed::Issuer),
            ("postgres://a/b?sslmod=verify-full", Malformed::Unknown("sslmod".to_owned())),
            ("postgres://g:a@b?Zq9=x@localhost/b", Malformed::Unknown("…".to_owned())),
        ] {
            assert_eq!(wrong.parse::<Address>().err(), Some(fault), "{wrong}");
        }
    }

    #[test]
    fn parameters_stand_for_what_they_stand_for_in_libpq() {
        let read = |text: &str| text.parse::<Address>().unwrap();
        let tcp = |names: &[&str]| -> Vec<Host> {
            names.iter().map(|name| Host::Tcp((*name).to_owned())).collect()
        };
        let many = read("postgres://u@a:1,b:2/d?target_session_attrs=read-write&password=x+y'\\");
        assert_eq!(many.config.get_hosts(), tcp(&["a", "b"]));
        assert_eq!(many.config.get_ports(), [1, 2]);
        assert_eq!(many.config.get_connect_timeout(), Some(&TO_ONE));
        assert_eq!(many.config.get_password(), Some(&b"x+y'\\"[..]));
        assert_eq!(many.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        let other = read("postgres://a:1/d?host=b,c&port=2,3&connect_timeout=4");
        assert_eq!(other.config.get_hosts(), tcp(&["b", "c"]));
        assert_eq!(other.config.get_ports(), [2, 3]);
        assert_eq!(other.config.get_connect_timeout(), Some(&Duration::from_secs(4)));
        let addressed = read("postgres://db.example/d?hostaddr=203.0.113.7&sslmode=verify-full");
        assert_eq!(addressed.config.get_hosts(), tcp(&["db.example"]), "whose name is verified");
        assert_eq!(addressed.config.get_hostaddrs(), [IpAddr::from([203, 0, 113, 7])]);
        for (query, mode, verify) in [
            ("", SslMode::Prefer, Verify::Nothing),
            ("?sslmode=allow", SslMode::Prefer, Verify::Nothing),
            ("?sslmode=require", SslMode::Require, Verify::Nothing),
            ("?sslmode=require&sslrootcert=ca.pem", SslMode::Require, Verify::Issuer),
            ("?sslrootcert=system", SslMode::Require, Verify::Full),
            ("?host=/run/postgresql&sslmode=require", SslMode::Disable, Verify::Nothing),
        ] {
            let address = read(&format!("postgres://a/b{query}"));
            assert_eq!(address.config.get_ssl_mode(), mode, "{query}");
            assert!(address.tls.verify == verify, "{query}");
        }
    }
}
