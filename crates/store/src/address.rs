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
        let mut found = Self { config: Config::new(), tls: TlsSettings::default() };
        let (mut hosts, mut ports) = (base.get_hosts().to_vec(), base.get_ports().to_vec());
        if let Some(user) = base.get_user() {
            found.config.user(user);
        }
        if let Some(password) = base.get_password() {
            found.config.password(password);
        }
        if let Some(name) = base.get_dbname() {
            found.config.dbname(name);
        }
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "host" | "hostaddr" if value.starts_with('/') => {
                    hosts = vec![Host::Unix(PathBuf::from(&*value))];
                }
                "host" | "hostaddr" => hosts = vec![Host::Tcp(value.into_owned())],
                "port" => ports = vec![value.parse().map_err(|_| Malformed)?],
                _ => found.set(&key, &value)?,
            }
        }
        if hosts.is_empty() {
            hosts = vec![Host::Tcp("localhost".to_owned())];
        }
        for host in hosts {
            match host {
                Host::Tcp(host) => found.config.host(host),
                Host::Unix(path) => found.config.host_path(path),
            };
        }
        for port in ports {
            found.config.port(port);
        }
        Ok(found)
    }
}

impl Address {
    fn set(&mut self, key: &str, value: &str) -> Result<(), Malformed> {
        let file = || Some(PathBuf::from(value));
        match key {
            "user" => {
                self.config.user(value);
            }
            "password" => {
                self.config.password(value);
            }
            "dbname" => {
                self.config.dbname(value);
            }
            "application_name" => {
                self.config.application_name(value);
            }
            "options" => self.add_option(value),
            "sslmode" | "ssl-mode" => self.set_tls(value)?,
            "sslrootcert" | "ssl-root-cert" | "ssl-ca" => self.tls.roots = file(),
            "sslcert" | "ssl-cert" => self.tls.certificate = file(),
            "sslkey" | "ssl-key" => self.tls.key = file(),
            other => {
                let name = other.strip_prefix("options[").and_then(|it| it.strip_suffix(']'));
                if let Some(name) = name {
                    self.add_option(&format!("-c {name}={value}"));
                } else {
                    tracing::warn!(key, "the database URL has an unknown parameter");
                }
            }
        }
        Ok(())
    }

    fn set_tls(&mut self, mode: &str) -> Result<(), Malformed> {
        let (mode, verify) = match mode {
            "disable" | "allow" => (SslMode::Disable, Verify::Nothing),
            "prefer" => (SslMode::Prefer, Verify::Nothing),
            "require" => (SslMode::Require, Verify::Nothing),
            "verify-ca" => (SslMode::Require, Verify::Issuer),
            "verify-full" => (SslMode::Require, Verify::Full),
            _ => return Err(Malformed),
        };
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
        for wrong in ["postgres://[/x", "postgres://a/b?sslmode=maybe", "postgres://a/b?port=x"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
