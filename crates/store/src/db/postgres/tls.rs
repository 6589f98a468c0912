//! TLS to PostgreSQL.

use std::{
    error, fs, io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ::aws_lc_rs::digest::{SHA256, SHA384, SHA512, digest};
use futures_util::future::{self, BoxFuture, FutureExt as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{
    TlsConnector, client,
    rustls::{
        CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
        SignatureScheme,
        client::{
            WebPkiServerVerifier,
            danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        },
        crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    },
};

use crate::{
    address::{TlsSettings, Verify},
    error::DriverError,
};

/// Makes TLS connections.
#[derive(Clone)]
pub(crate) struct Tls(TlsConnector);

impl Tls {
    /// Reads the files of the settings.
    pub(crate) fn new(settings: &TlsSettings) -> Result<Self, DriverError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(unfit)?;
        let builder = match settings.verify {
            Verify::Full => builder.with_root_certificates(roots(settings)?),
            Verify::Nothing | Verify::Issuer => {
                let issuer = match settings.verify {
                    Verify::Issuer => Some(issuer(settings, Arc::clone(&provider))?),
                    Verify::Nothing | Verify::Full => None,
                };
                let lenient = Arc::new(Lenient { issuer, provider });
                builder.dangerous().with_custom_certificate_verifier(lenient)
            }
        };
        let config = match (&settings.certificate, &settings.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(chain), Some(key)) => {
                let chain = certificates(chain)?;
                let key = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(unfit)?;
                builder.with_client_auth_cert(chain, key).map_err(unfit)?
            }
            (Some(_), None) | (None, Some(_)) => {
                return Err(unfit("`sslcert` and `sslkey` belong together"));
            }
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

fn unfit(error: impl Into<Box<dyn error::Error + Send + Sync>>) -> DriverError {
    DriverError::Settings(error.into().to_string())
}

fn read(path: &Path) -> Result<Vec<u8>, DriverError> {
    fs::read(path).map_err(|error| unfit(format!("{}: {error}", path.display())))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, DriverError> {
    let pem = read(path)?;
    CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|_| unfit(format!("{} has an unreadable certificate", path.display())))
}

/// The issuers of the settings; without any, the public ones.
fn roots(settings: &TlsSettings) -> Result<RootCertStore, DriverError> {
    let Some(file) = &settings.roots else {
        return Ok(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect());
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(unfit)?;
    }
    if roots.is_empty() {
        return Err(unfit(format!("{} has no certificate", file.display())));
    }
    Ok(roots)
}

fn issuer(
    settings: &TlsSettings,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, DriverError> {
    let roots = Arc::new(roots(settings)?);
    WebPkiServerVerifier::builder_with_provider(roots, provider).build().map_err(unfit)
}

/// Accepts any name, and without an issuer any certificate. The server has to prove that it has the certificate's key.
#[derive(Debug)]
struct Lenient {
    issuer: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(issuer) = &self.issuer else { return Ok(ServerCertVerified::assertion()) };
        match issuer.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        // A socket of this machine has no name.
        let name = (!host.is_empty()).then(|| ServerName::try_from(host.to_owned()));
        Ok(Handshake(self.0.clone(), name.transpose().map_err(io::Error::other)?))
    }
}

/// A handshake with a server of this name.
pub(crate) struct Handshake(TlsConnector, Option<ServerName<'static>>);

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> TlsConnect<S> for Handshake {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Stream<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        let Self(connector, name) = self;
        let Some(name) = name else {
            let nameless = io::Error::other("a server without a name cannot be verified");
            return future::ready(Err(nameless)).boxed();
        };
        connector.connect(name, stream).map(|made| made.map(|made| Stream(Box::new(made)))).boxed()
    }
}

/// A connection under TLS.
pub(crate) struct Stream<S>(Box<client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        let hash = certificate.and_then(|it| end_point(it));
        hash.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// `tls-server-end-point` (RFC 5929): the certificate under the hash of its signature. `None` for signatures of which
/// the RFC does not say the hash.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3];
    let (whole, _) = element(certificate)?;
    let (_, signature) = element(whole)?;
    let (algorithm, _) = element(signature)?;
    let (name, _) = element(algorithm)?;
    let (last, family) = name.split_last()?;
    let hash = match (family, last) {
        (RSA, 11) | (ECDSA, 2) => &SHA256,
        (RSA, 12) | (ECDSA, 3) => &SHA384,
        (RSA, 13) | (ECDSA, 4) => &SHA512,
        _ => return None,
    };
    Some(digest(hash, certificate).as_ref().to_vec())
}

/// The content of the first element of DER, and what stands behind it.
fn element(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = der.get(1..)?.split_first()?;
    if length < 0x80 {
        return rest.split_at_checked(usize::from(length));
    }
    let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
    let length = bytes
        .iter()
        .try_fold(0_usize, |sum, byte| sum.checked_mul(256)?.checked_add(usize::from(*byte)))?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate in outline: its body, the algorithm of its signature, and no signature.
    fn outline(algorithm: &[u8]) -> Vec<u8> {
        let name = [&[6, u8::try_from(algorithm.len()).unwrap()], algorithm].concat();
        let algorithm = [&[0x30, u8::try_from(name.len()).unwrap()], name.as_slice()].concat();
        let body = [&[0x30, 0x82, 1, 0][..], &[0; 256]].concat();
        let length = u16::try_from(body.len() + algorithm.len()).unwrap().to_be_bytes();
        [&[0x30, 0x82][..], &length, &body, &algorithm].concat()
    }

    #[test]
    fn a_certificate_is_bound_by_the_hash_of_its_signature() {
        for (algorithm, bytes) in [
            (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11][..], Some(32)),
            (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3], Some(48)),
            (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], Some(64)),
            (&[0x2b, 0x65, 0x70], None),
        ] {
            let hash = end_point(&outline(algorithm));
            assert_eq!(hash.map(|it| it.len()), bytes, "{algorithm:?}");
        }
        let whole = outline(&[0x2b, 0x65, 0x70]);
        assert!((0..whole.len()).all(|end| end_point(&whole[..end]).is_none()));
        assert_eq!(element(&[0x30, 0x89, 1, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
