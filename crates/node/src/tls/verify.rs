//! Whose certificate is taken. The chain by webpki; name and pins here.

use api::Pin;
use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use std::sync::Arc;

/// Whom we believe.
#[derive(Debug)]
pub struct Trust {
    roots: RootCertStore,
    pins: Vec<Pin>,
    algorithms: WebPkiSupportedAlgorithms,
    /// The chain of a client's certificate.
    clients: Arc<dyn ClientCertVerifier>,
}

/// A certificate of a trusted authority that is not among those named one by one.
#[derive(Debug, thiserror::Error)]
#[error("its fingerprint is {found}")]
pub struct NotPinned {
    /// The fingerprint.
    pub found: Pin,
}

impl Trust {
    /// Authorities, of which there is at least one, and pins.
    pub fn new(roots: RootCertStore, pins: Vec<Pin>, provider: &CryptoProvider) -> Self {
        let authorities = Arc::new(roots.clone());
        let clients =
            WebPkiClientVerifier::builder_with_provider(authorities, Arc::new(provider.clone()))
                .build()
                .expect("there is an authority, and no revocation list to be wrong");
        Self { roots, pins, algorithms: provider.signature_verification_algorithms, clients }
    }

    fn check_pin(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let bytes = digest(&SHA256, certificate);
        let found = Pin::new(bytes.as_ref().try_into().expect("SHA-256 has 32 bytes"));
        if self.pins.is_empty() || self.pins.contains(&found) {
            return Ok(());
        }
        let other = OtherError(Arc::new(NotPinned { found }));
        Err(Error::InvalidCertificate(CertificateError::Other(other)))
    }
}

/// What both traits want alike: signatures by the provider's algorithms. No function or generic can give two traits their methods.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls12_signature(message, certificate, signed, &self.algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, certificate, signed, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }
    };
}

/// Verifies a controller that was called.
impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let (roots, algorithms) = (&self.roots, self.algorithms.all);
        verify_server_cert_signed_by_trust_anchor(&parsed, roots, intermediates, now, algorithms)?;
        if matches!(name, ServerName::DnsName(_)) {
            verify_server_name(&parsed, name)?;
        }
        self.check_pin(certificate)?;
        Ok(ServerCertVerified::assertion())
    }

    signatures!();
}

/// Verifies whoever called.
impl ClientCertVerifier for Trust {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.clients.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.clients.verify_client_cert(certificate, intermediates, now)?;
        self.check_pin(certificate)?;
        Ok(verified)
    }

    signatures!();
}
