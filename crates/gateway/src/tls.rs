//! TLS at our own listener, with a certificate that is taken anew when its files change.

use std::{fmt, fs, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use portcullis_core::json;
use tokio::{net::TcpStream, time::MissedTickBehavior};
use tokio_rustls::{
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    },
    server::TlsStream,
};

use crate::{boot::detach, config::Tls};

/// Time that a client has for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Interval between two looks at the files. They are read, not watched: a certificate may lie behind links
/// and mounts that are replaced far from the named path, and certificate and key are written one by one.
const LOOK: Duration = Duration::from_secs(2);

/// Shakes hands with clients.
#[derive(Clone)]
pub(crate) struct TlsAcceptor {
    acceptor: tokio_rustls::TlsAcceptor,
    current: Arc<CurrentCertificate>,
}

/// The certificate of new connections.
struct CurrentCertificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// Nothing of the key.
impl fmt::Debug for CurrentCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CurrentCertificate").finish_non_exhaustive()
    }
}

impl TlsAcceptor {
    /// Reads certificate and key. The error says what is wrong.
    pub(crate) fn load(tls: &Tls) -> Result<Self, String> {
        let builder = ServerConfig::builder();
        let current = Arc::new(CurrentCertificate(ArcSwap::from_pointee(certified(tls)?)));
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<CurrentCertificate>::clone(&current);
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        Ok(Self { acceptor, current })
    }

    /// Takes a changed certificate and its key over as long as the process lives. Connections that are open
    /// keep the certificate they began with; files that do not go together are refused.
    pub(crate) fn watch(&self, tls: &Tls) {
        detach(follow(tls.clone(), Arc::clone(&self.current)));
    }

    /// The encrypted stream; `None` if the client did not manage.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        tokio::time::timeout(HANDSHAKE, self.acceptor.accept(stream)).await.ok()?.ok()
    }
}

/// The certificate chain with its key, which have to go together.
fn certified(tls: &Tls) -> Result<CertifiedKey, String> {
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("`{}`: {error}", tls.certificate.display()))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| format!("`{}`: {error}", tls.key.display()))?;
    let builder = ServerConfig::builder();
    let certified = CertifiedKey::from_der(chain, key, builder.crypto_provider());
    certified.map_err(|error| {
        format!("`{}` with `{}`: {error}", tls.certificate.display(), tls.key.display())
    })
}

async fn follow(tls: Tls, current: Arc<CurrentCertificate>) {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut used = contents(&tls);
    let mut last = used.clone();
    loop {
        looks.tick().await;
        let now = contents(&tls);
        // Two looks have to agree, for the files are written one after the other.
        let is_settled = now == last;
        last = now;
        if !is_settled || last.is_none() || last == used {
            continue;
        }
        used.clone_from(&last);
        match certified(&tls) {
            Ok(certified) => {
                current.0.store(Arc::new(certified));
                tracing::info!("new connections get the changed TLS certificate");
            }
            Err(error) => {
                tracing::error!(
                    error,
                    "the changed TLS certificate is not used; the old one stays"
                );
                portcullis_app::telemetry::counters::tls_reload_failed();
            }
        }
    }
}

/// Digest of both files; `None` while one of them is not there.
fn contents(tls: &Tls) -> Option<String> {
    let [certificate, key] = [&tls.certificate, &tls.key].map(|file| fs::read(file).ok());
    Some(json::sha256(&[&certificate?, b"\0", &key?]))
}
