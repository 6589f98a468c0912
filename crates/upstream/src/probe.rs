//! Requests to a listener on this machine: its health, and a call of the quickstart.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http::{Method, StatusCode};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::time::timeout;

use crate::{
    clients::{Clients, PROVIDER},
    http_client::{ANYTHING, HttpClient, JSON, accepting, sending},
    reach::{Endpoint, Reach},
    settings::Credential,
};

/// Time limit of an answer about its health, and of a connection.
const PATIENCE: Duration = Duration::from_secs(4);
/// The largest answer to a call.
const MAX_BYTES: usize = 1 << 20;

/// There was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    #[error("nothing answers at {0}")]
    Silent(SocketAddr),
    #[error("the node does not answer")]
    Unanswered,
    #[error("the HTTP client cannot be set up")]
    HttpClient,
}

/// The status that a listener at `address` answers `path` with. A listener on all addresses is asked
/// on loopback. Whose certificate it shows is not looked at: nothing secret is sent, and the only
/// thing believed is how it says it is.
pub async fn status_of(address: SocketAddr, tls: bool, path: &str) -> Result<u16, ProbeError> {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    let address = SocketAddr::new(ip, address.port());
    let silent = ProbeError::Silent(address);
    let config = trusting_all().map_err(|_| ProbeError::HttpClient)?;
    // An address meets no resolver, and this reach is the one that takes plain HTTP.
    let client = HttpClient::new(Reach::Private, PATIENCE, &config);
    let scheme = if tls { "https" } else { "http" };
    let uri = format!("{scheme}://{address}{path}").parse().map_err(|_| silent)?;
    let sent = client.send(Method::GET, uri, accepting(ANYTHING), Vec::new());
    let Ok(Ok(answer)) = timeout(PATIENCE, sent).await else { return Err(silent) };
    Ok(answer.status().as_u16())
}

/// Posts JSON to a listener that this process has at `url`; gives status and body of its answer.
pub async fn post(
    url: &str,
    credential: &Credential,
    body: String,
) -> Result<(StatusCode, Vec<u8>), ProbeError> {
    let endpoint = Endpoint::allowed(url).map_err(|_| ProbeError::HttpClient)?;
    let uri = endpoint.uri().map_err(|_| ProbeError::HttpClient)?;
    let clients = Clients::new(endpoint.reach(), PATIENCE).map_err(|_| ProbeError::HttpClient)?;
    let mut headers = sending(JSON, ANYTHING);
    headers.insert(credential.name.clone(), credential.value.clone());
    let client = clients.here();
    let sent = client.send(Method::POST, uri, headers, body.into_bytes());
    let answer = sent.await.map_err(|_| ProbeError::Unanswered)?;
    let status = answer.status();
    let body = answer.read(MAX_BYTES).await.map_err(|_| ProbeError::Unanswered)?;
    Ok((status, body))
}

/// TLS that checks no certificate.
fn trusting_all() -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(&PROVIDER))
        .with_safe_default_protocol_versions()?;
    let verifier = Arc::new(AnyCertificate);
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Accepts every certificate.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        PROVIDER.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::secret::Secret;
    use rustls::{ServerConfig, pki_types::PrivateKeyDer};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };
    use tokio_rustls::TlsAcceptor;
    use tokio_util::task::TaskTracker;

    use super::*;

    /// A listener with a certificate of its own making, which answers once.
    async fn listener() -> SocketAddr {
        let made = rcgen::generate_simple_self_signed(vec!["elsewhere".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::clone(&PROVIDER));
        let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let server = server.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        TaskTracker::new().spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let accepted = TlsAcceptor::from(Arc::new(server)).accept(stream).await;
            let Ok(mut stream) = accepted else { return };
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            let _ = stream.read(&mut [0; 1]).await;
        });
        address
    }

    #[tokio::test]
    async fn any_certificate_will_do_for_a_status_and_none_for_a_token() {
        let address = listener().await;
        assert_eq!(status_of(address, true, "/readyz").await, Ok(204));

        let url = format!("https://{}/", listener().await);
        let token = Credential::bearer(&Secret::new("x".to_owned())).unwrap();
        let posted = post(&url, &token, String::new()).await;
        assert_eq!(posted, Err(ProbeError::Unanswered));
    }

    #[tokio::test]
    async fn an_address_without_a_listener_is_silent() {
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();

        assert_eq!(status_of(address, false, "/").await, Err(ProbeError::Silent(address)));
    }
}
