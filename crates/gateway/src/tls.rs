//! TLS at our own listener.

use std::{sync::Arc, time::Duration};

use tokio::net::TcpStream;
use tokio_rustls::{
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
    server::TlsStream,
};

use crate::config::Tls;

/// Time that a client has for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Shakes hands with clients.
#[derive(Clone)]
pub(crate) struct TlsAcceptor(tokio_rustls::TlsAcceptor);

impl TlsAcceptor {
    /// Reads certificate and key. The error says what is wrong.
    pub(crate) fn load(tls: &Tls) -> Result<Self, String> {
        let chain = CertificateDer::pem_file_iter(&tls.certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| format!("`{}`: {error}", tls.certificate.display()))?;
        let key = PrivateKeyDer::from_pem_file(&tls.key)
            .map_err(|error| format!("`{}`: {error}", tls.key.display()))?;
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(tokio_rustls::TlsAcceptor::from(Arc::new(config))))
    }

    /// The encrypted stream; `None` if the client did not manage.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        tokio::time::timeout(HANDSHAKE, self.0.accept(stream)).await.ok()?.ok()
    }
}
