//! TLS to PostgreSQL.

use std::{
    error, fs, io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::{BoxFuture, FutureExt as _};
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

/// The public issuers, and those of the settings.
fn roots(settings: &TlsSettings) -> Result<RootCertStore, DriverError> {
    let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    if let Some(more) = &settings.roots {
        for certificate in certificates(more)? {
            roots.add(certificate).map_err(unfit)?;
        }
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
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Handshake(self.0.clone(), name))
    }
}

/// A handshake with a server of this name.
pub(crate) struct Handshake(TlsConnector, ServerName<'static>);

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> TlsConnect<S> for Handshake {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Stream<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        self.0.connect(self.1, stream).map(|made| made.map(|made| Stream(Box::new(made)))).boxed()
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
        ChannelBinding::none()
    }
}
