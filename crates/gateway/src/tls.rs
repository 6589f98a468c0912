//! TLS at our own listener, with a certificate that is taken anew when its files change.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use portcullis_core::json;
use tokio::{net::TcpStream, task::spawn_blocking, time::MissedTickBehavior};
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
/// The largest file of certificates or of a key.
const MAX_BYTES: u64 = 1 << 20;

/// Shakes hands with clients.
#[derive(Clone)]
pub(crate) struct TlsAcceptor {
    acceptor: tokio_rustls::TlsAcceptor,
    current: Arc<CurrentCertificate>,
}

/// The certificate of new connections.
struct CurrentCertificate {
    certified: ArcSwap<CertifiedKey>,
    /// State of the files that the first one is of.
    first: FileState,
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.certified.load_full())
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
        let (first, certified) = look(tls);
        let certified = ArcSwap::from_pointee(certified?);
        let current = Arc::new(CurrentCertificate { certified, first });
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<CurrentCertificate>::clone(&current);
        let mut config = ServerConfig::builder().with_no_client_auth().with_cert_resolver(resolver);
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

/// Digest of the files, or the reason that they cannot be read.
type FileState = Result<String, String>;

/// State of the files, and the certificate chain with its key, which have to go together.
fn look(tls: &Tls) -> (FileState, Result<CertifiedKey, String>) {
    let read = read(&tls.certificate).and_then(|chain| Ok((chain, read(&tls.key)?)));
    let (chain, key) = match read {
        Ok(read) => read,
        Err(error) => return (Err(error.clone()), Err(error)),
    };
    (Ok(json::sha256(&[&chain, b"\0", &key])), certified(tls, &chain, &key))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let read = || {
        // A pipe would be waited for.
        let found = fs::metadata(path)?;
        if !found.is_file() || found.len() > MAX_BYTES {
            return Err(io::Error::other("it is no file of at most 1 MiB"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| format!("`{}`: {error}", path.display()))
}

fn certified(tls: &Tls, chain: &[u8], key: &[u8]) -> Result<CertifiedKey, String> {
    let Tls { certificate, key: key_file } = tls;
    let (certificate, key_file) = (certificate.display(), key_file.display());
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.map_err(|error| format!("`{certificate}`: {error}"))?;
    if chain.is_empty() {
        return Err(format!("`{certificate}`: there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_slice(key);
    let key = key.map_err(|error| format!("`{key_file}`: {error}"))?;
    let certified = CertifiedKey::from_der(chain, key, ServerConfig::builder().crypto_provider());
    certified.map_err(|error| format!("`{certificate}` with `{key_file}`: {error}"))
}

async fn follow(tls: Tls, current: Arc<CurrentCertificate>) {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut judged = current.first.clone();
    let mut last = judged.clone();
    loop {
        looks.tick().await;
        // A disk may let wait.
        let tls = tls.clone();
        let Ok((now, certified)) = spawn_blocking(move || look(&tls)).await else { continue };
        // Two looks have to agree, for the files are written one after the other.
        let is_settled = now == last;
        last = now;
        if !is_settled || last == judged {
            continue;
        }
        judged.clone_from(&last);
        match certified {
            Ok(certified) => {
                current.certified.store(Arc::new(certified));
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
