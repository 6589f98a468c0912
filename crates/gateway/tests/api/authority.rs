//! An authority of a test, which vouches for servers on 127.0.0.1.

use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer},
};

use crate::prelude::*;

/// An authority, whose certificate is in a file.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) file: PathBuf,
}

impl Authority {
    /// A new authority with its certificate in `folder`, under this name.
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let mut issuer = CertificateParams::default();
        issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(issuer, KeyPair::generate().unwrap()).unwrap();
        let file = folder.join(name);
        fs::write(&file, issuer.pem()).unwrap();
        Self { issuer, file }
    }

    pub(crate) fn certificate(&self) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        (certificate.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// A server with such a certificate.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let (certificate, key) = self.certificate();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
