//! Address of a PostgreSQL database: a URL as libpq takes it.

use std::{fmt, path::PathBuf};

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

/// The URL does not have the form of one.
#[derive(Debug)]
pub(crate) struct Malformed;

impl std::str::FromStr for Address {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let base: Config = place.parse().map_err(|_| Malformed)?;
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
                key if DRIVERS.contains(&key) => {
                    let value = value.replace('\\', r"\\").replace('\'', r"\'");
                    driver.push(format!("{key}='{value}'"));
                }
                key => {
                    let name = key.strip_prefix("options[").and_then(|it| it.strip_suffix(']'));
                    if let Some(name) = name {
                        options.push(format!("-c {name}={value}"));
                    } else {
                        tracing::warn!(key, "the database URL has an unknown parameter");
                    }
                }
            }
        }
        let config: Config = driver.join(" ").parse().map_err(|_| Malformed)?;
        let mut found = Self { config, tls };
        found.fill_in(&base);
        found.set_tls(mode.as_deref().unwrap_or("prefer"))?;
        for option in options {
            found.add_option(&option);
        }
        Ok(found)
    }
}

/// Parameters of a URL that the driver reads itself.
const DRIVERS: [&str; 16] = [
    "application_name", "channel_binding", "connect_timeout", "dbname", "host", "hostaddr",
    "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_retries",
    "load_balance_hosts", "password", "port", "target_session_attrs", "tcp_user_timeout", "user",
];
/// Value of `sslrootcert` for the public issuers.
const PUBLIC_ISSUERS: &str = "system";

impl Address {
    /// Takes what the parameters leave open from the part before them.
    fn fill_in(&mut self, base: &Config) {
        let config = &mut self.config;
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
    }

    /// As with libpq, an issuer that is named is verified, and public ones are for `verify-full`.
    fn set_tls(&mut self, mode: &str) -> Result<(), Malformed> {
        let is_public = self.tls.roots.as_deref().is_some_and(|path| path == PUBLIC_ISSUERS);
        let (mode, verify) = match mode {
            "disable" => (SslMode::Disable, Verify::Nothing),
            "verify-full" => (SslMode::Require, Verify::Full),
            "prefer" if is_public => (SslMode::Require, Verify::Full),
            _ if is_public => return Err(Malformed),
            "allow" | "prefer" => (SslMode::Prefer, Verify::Nothing),
            "require" if self.tls.roots.is_none() => (SslMode::Require, Verify::Nothing),
            "require" | "verify-ca" => (SslMode::Require, Verify::Issuer),
            _ => return Err(Malformed),
        };
        if is_public {
            self.tls.roots = None;
        }
        self.config.ssl_mode(mode);
        self.tls.verify = verify;
        Ok(())
    }

    /// Adds a setting that each session begins with.
    pub(crate) fn add_option(&mut self, option: &str) {
        let before = self.config.get_options().map(|before| format!("{before} "));
        self.config.options(before.unwrap_or_default() + option);
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, time::Duration};

    use tokio_postgres::config::TargetSessionAttrs;

    use super::*;

    #[test]
    fn an_address_is_read_as_libpq_reads_it() {
        let text = "postgres://gate:p%40ss@db.example:5433/store?sslmode=verify-full\
                    &sslrootcert=%2Fetc%2Fca.pem&options=-c%20a%3D1&options[b]=2&later=1";
        let address: Address = text.parse().unwrap();

        assert_eq!(address.to_string(), "postgres://db.example:5433/store");
        assert_eq!(address.config.get_user(), Some("gate"));
        assert_eq!(address.config.get_password(), Some(&b"p@ss"[..]));
        assert_eq!(address.config.get_options(), Some("-c a=1 -c b=2"));
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
        assert!(address.tls.verify == Verify::Full);
        assert_eq!(address.tls.roots, Some(PathBuf::from("/etc/ca.pem")));
        let socket: Address = "postgres://gate@/store?host=/run/postgresql".parse().unwrap();
        assert_eq!(socket.config.get_hosts(), [Host::Unix(PathBuf::from("/run/postgresql"))]);
        for wrong in [
            "postgres://[/x",
            "postgres://a/b?sslmode=maybe",
            "postgres://a/b?port=x",
            "postgres://a/b?target_session_attrs=fast",
            "postgres://a/b?sslmode=verify-ca&sslrootcert=system",
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
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
        ] {
            let address = read(&format!("postgres://a/b{query}"));
            assert_eq!(address.config.get_ssl_mode(), mode, "{query}");
            assert!(address.tls.verify == verify, "{query}");
        }
    }
}
