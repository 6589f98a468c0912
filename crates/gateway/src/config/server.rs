//! `[server]` and `[log]`: where Portcullis listens and what it says.

use std::{env, net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

use portcullis_core::{limits::UNAUTHENTICATED_PER_MINUTE, oauth::PublicUrl, token::CidrList};
use serde::{Deserialize, Deserializer};

use super::times;

/// `[server]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Server {
    /// Name of the node among those that share a database.
    pub(crate) node: String,
    /// Address and port of the API.
    #[serde(deserialize_with = "written_address")]
    pub(crate) listen: String,
    /// Address and port of `/metrics`; absent means no metrics listener.
    pub(crate) metrics_listen: Option<String>,
    /// Address and port where `/healthz` and `/readyz` are answered, and nothing else; absent means
    /// that they are answered where the API is only.
    pub(crate) health_listen: Option<String>,
    /// The name audit logs are written under: the public host of this installation.
    pub(crate) public_host: String,
    /// Address of the gateway for browsers: `https://host`, or `https://host/path` behind a proxy that gives it that
    /// path. Its listening address when absent.
    pub(crate) public_url: Option<String>,
    /// Certificate and key; without them only loopback is listened on.
    pub(crate) tls: Option<Tls>,
    /// TLS ends at a proxy in front of this listener.
    pub(crate) behind_tls_proxy: bool,
    /// Networks of proxies whose `X-Forwarded-For` is believed.
    pub(crate) trusted_proxies: Vec<String>,
    /// Connections at once; on a few further ones health probes are answered.
    pub(crate) max_connections: usize,
    /// Connections of one address at once; an IPv6 network of 64 bits is an address, and trusted
    /// proxies are not bounded.
    pub(crate) max_connections_per_address: usize,
    /// Failed requests without a valid token that one address may make in a minute.
    pub(crate) unauthenticated_per_minute: u32,
    /// Calls on the way to their tools at once, judged or waiting to be; others are refused.
    pub(crate) max_calls: NonZeroUsize,
    /// Seconds a client may take to send the head of a request, idle time before it included.
    #[serde(deserialize_with = "times::whole")]
    pub(crate) header_timeout_seconds: u64,
    /// The same until a caller has authenticated over the connection; TLS handshakes do not count.
    #[serde(deserialize_with = "times::whole")]
    pub(crate) unauthenticated_idle_seconds: u64,
    /// Seconds a client may take to send the body of a request.
    #[serde(deserialize_with = "times::whole")]
    pub(crate) body_timeout_seconds: u64,
    /// Seconds that the port stays open at shutdown, so that balancers learn of it first.
    #[serde(deserialize_with = "times::whole")]
    pub(crate) drain_listen_seconds: Option<u64>,
    /// Seconds that calls in flight get to end at shutdown.
    #[serde(deserialize_with = "times::whole")]
    pub(crate) drain_seconds: u64,
    /// Seconds that providers get to tell their tools, before the port is bound or a command goes on.
    #[serde(deserialize_with = "times::whole")]
    pub(crate) provider_patience_seconds: Option<u64>,
}

/// `[server.tls]`, both in PEM.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// The certificate chain.
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            node: "node-1".to_owned(),
            listen: "127.0.0.1:8080".to_owned(),
            metrics_listen: None,
            health_listen: None,
            public_host: "localhost".to_owned(),
            public_url: None,
            tls: None,
            behind_tls_proxy: false,
            trusted_proxies: Vec::new(),
            max_connections: 10_000,
            max_connections_per_address: 256,
            unauthenticated_per_minute: UNAUTHENTICATED_PER_MINUTE,
            max_calls: const { NonZeroUsize::new(256).unwrap() },
            header_timeout_seconds: 15,
            unauthenticated_idle_seconds: 5,
            body_timeout_seconds: 30,
            drain_listen_seconds: None,
            drain_seconds: 30,
            provider_patience_seconds: None,
        }
    }
}

impl Server {
    /// Time that providers get to tell their tools before the port is bound.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.provider_patience_seconds.unwrap_or(5))
    }

    /// The same for a command, which no call waits for: programs that are installed when they are
    /// started take a minute.
    pub(crate) fn command_patience(&self) -> Duration {
        Duration::from_secs(self.provider_patience_seconds.unwrap_or(60))
    }

    /// Time that the port stays open at shutdown: none for people at a terminal, who wait for it.
    pub(crate) fn drain_listen(&self) -> Duration {
        let of_service = || if env::var_os("NOTIFY_SOCKET").is_some() { 5 } else { 0 };
        Duration::from_secs(self.drain_listen_seconds.unwrap_or_else(of_service))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let listen = address(&self.listen, "server.listen")?;
        if let Some(metrics) = &self.metrics_listen {
            address(metrics, "server.metrics_listen")?;
        }
        if let Some(health) = &self.health_listen {
            address(health, "server.health_listen")?;
        }
        self.check_bounds()?;
        if !listen.ip().is_loopback() && self.tls.is_none() && !self.behind_tls_proxy {
            return Err(format!(
                "`server.listen` is {listen}, which others can reach, and there is no TLS: set \
                 `[server.tls]`, or `behind_tls_proxy = true` if a proxy in front ends TLS"
            ));
        }
        if let Some(url) = &self.public_url
            && !PublicUrl::parse(url).is_some_and(|url| portcullis_faces::can_be_below(url.path()))
        {
            return Err(format!(
                "`server.public_url` is `{url}`, but has to be an origin such as \
                 https://gateway.acme.example or, behind a proxy that gives the gateway a path, one \
                 with that path, such as https://acme.example/portcullis. The path is of letters, \
                 digits and `-._~`, and does not begin with one of the gateway's own, such as /mcp"
            ));
        }
        let refused = |letter: char| letter.is_whitespace() || "+/".contains(letter);
        if self.public_host.is_empty() || self.public_host.contains(refused) {
            return Err(format!(
                "`server.public_host` is `{}`, but audit logs are signed under it: a host name, \
                 with neither scheme nor path, such as gateway.example.com",
                self.public_host
            ));
        }
        self.proxies().map(|_| ())
    }

    /// Rejects bounds under which no request could be answered.
    fn check_bounds(&self) -> Result<(), String> {
        let counts = [
            ("max_connections", self.max_connections),
            ("max_connections_per_address", self.max_connections_per_address),
        ];
        if let Some((key, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(format!("`server.{key}` is 0, so nobody could connect"));
        }
        if self.unauthenticated_per_minute == 0 {
            return Err(
                "`server.unauthenticated_per_minute` is 0, so nobody could log in".to_owned()
            );
        }
        let times = [
            ("header_timeout_seconds", self.header_timeout_seconds),
            ("unauthenticated_idle_seconds", self.unauthenticated_idle_seconds),
            ("body_timeout_seconds", self.body_timeout_seconds),
        ];
        match times.iter().find(|(_, seconds)| *seconds == 0) {
            Some((key, _)) => Err(format!("`server.{key}` is 0, so no request could arrive")),
            None => Ok(()),
        }
    }

    /// The proxies that are believed.
    pub(crate) fn proxies(&self) -> Result<Option<CidrList>, String> {
        if self.trusted_proxies.is_empty() {
            return Ok(None);
        }
        let list = self.trusted_proxies.join(",").parse();
        list.map(Some).map_err(|error| format!("`server.trusted_proxies`: {error}"))
    }
}

/// The text of an address: a port alone is told how to write it.
fn written_address<'de, D: Deserializer<'de>>(reader: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "an address and a port in quotes, such as \"127.0.0.1:8080\"")]
    enum Text {
        Text(String),
    }
    let Text::Text(text) = Text::deserialize(reader)?;
    Ok(text)
}

/// An address and a port; host names would listen at addresses that the operator did not choose.
pub(crate) fn address(text: &str, key: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("`{key}` is `{text}`, but has to be an address and a port such as 127.0.0.1:8080")
    })
}

/// `[log]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Log {
    /// `error`, `warn`, `info`, `debug` or a filter such as `info,portcullis_upstream=debug`.
    pub(crate) level: String,
    /// `text` for people, `json` for machines.
    pub(crate) format: LogFormat,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(listen: &str) -> Server {
        Server { listen: listen.to_owned(), ..Server::default() }
    }

    #[test]
    fn a_bound_of_nothing_is_refused() {
        let nothing = [
            Server { max_connections: 0, ..Server::default() },
            Server { max_connections_per_address: 0, ..Server::default() },
            Server { unauthenticated_per_minute: 0, ..Server::default() },
            Server { header_timeout_seconds: 0, ..Server::default() },
            Server { unauthenticated_idle_seconds: 0, ..Server::default() },
        ];

        assert!(nothing.iter().all(|server| server.check().is_err()));
        assert!(Server::default().check().is_ok());
    }

    #[test]
    fn plain_http_is_for_loopback_or_behind_a_declared_proxy() {
        let proxied = Server { behind_tls_proxy: true, ..listening("0.0.0.0:80") };

        assert!(listening("127.0.0.1:8080").check().is_ok());
        assert!(listening("[::1]:8080").check().is_ok());
        assert!(listening("0.0.0.0:8080").check().is_err());
        assert!(proxied.check().is_ok());
        assert!(listening("localhost:8080").check().is_err());
    }
}
