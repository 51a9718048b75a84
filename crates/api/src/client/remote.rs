//! A controller at an address: TCP and TLS, its authority known by fingerprint.
//!
//! The controller sends its authority's certificate with its own. The authority is believed if its fingerprint is the one that the token, or the
//! certificate before, came with; the controller if that authority signed it for [`CONTROLLER_NAME`].

use crate::{CONTROLLER_NAME, Fault, Pin, Token};
use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError,
    RootCertStore, SignatureScheme,
};
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Where a controller is, how it is known, and as whom it is asked.
#[derive(Clone)]
pub struct ControllerAt {
    address: String,
    connector: TlsConnector,
    bearer: Option<Token>,
}

/// As whom a controller is asked.
#[derive(Clone, Debug)]
pub enum As {
    /// Nobody yet.
    Nobody,
    /// Who has that token.
    Bearer(Token),
    /// Whose certificate and key these are, in PEM form.
    Certificate {
        /// The certificate.
        certificate: String,
        /// Its key.
        key: String,
    },
}

/// A controller's authority is not the one that is known.
#[derive(Debug, thiserror::Error)]
#[error("its authority is {found}, not {wanted}")]
struct WrongAuthority {
    found: String,
    wanted: Pin,
}

impl ControllerAt {
    /// A controller at `HOST:PORT`.
    ///
    /// # Errors
    /// Certificate and key are of no use.
    pub fn new(address: &str, authority: &Pin, who: As) -> Result<Self, Fault> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trust = Arc::new(Trust::new(authority.clone(), &provider));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("ring's provider speaks TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(trust);
        let mut bearer = None;
        let config = match who {
            As::Certificate { certificate, key } => {
                let chain: Result<Vec<_>, _> =
                    CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
                let chain = chain.map_err(|error| unusable(&error))?;
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
                    .map_err(|error| unusable(&error))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| unusable(&error))?
            }
            As::Nobody => builder.with_no_client_auth(),
            As::Bearer(token) => {
                bearer = Some(token);
                builder.with_no_client_auth()
            }
        };
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { address: address.into(), connector, bearer })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// What the request says of who sends it.
    pub(super) fn authorization(&self) -> Option<String> {
        self.bearer.as_ref().map(|token| format!("Bearer {token}"))
    }

    pub(super) async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(CONTROLLER_NAME).expect("a name of DNS");
        self.connector.connect(name, stream).await
    }
}

fn unusable(error: &dyn std::error::Error) -> Fault {
    let remedy = "join again: suiro node --join ADDRESS --node-name NAME --token-file FILE";
    Fault::new("node's certificate", "use it", error.to_string(), remedy)
}

/// Cause and remedy of a TLS error, for who asks a controller; none if it is no error of TLS.
pub(super) fn in_words(error: &io::Error) -> Option<(String, &'static str)> {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>())?;
    let clock =
        "compare the clocks of both hosts (date -u): certificates have a beginning and an end";
    Some(match tls {
        Error::InvalidCertificate(CertificateError::Other(other))
            if other.0.is::<WrongAuthority>() =>
        {
            (
                format!(
                    "it is another controller than the one that the token or certificate is of: {}",
                    other.0
                ),
                "correct the address, or get a token of this controller (suiro domain token add, suiro domain user add)",
            )
        }
        Error::InvalidCertificate(
            wrong @ (CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }),
        ) => (
            format!(
                "by this host's clock the controller's certificate is of another time: {wrong}"
            ),
            clock,
        ),
        Error::InvalidCertificate(wrong) => (
            format!("the controller's certificate cannot be taken: {wrong}"),
            "see that a suiro controller listens at that address",
        ),
        Error::AlertReceived(AlertDescription::CertificateExpired) => (
            "by the controller's clock this node's certificate is of another time".into(),
            "compare the clocks of both hosts (date -u); if they agree, join again with a token: suiro domain token add",
        ),
        Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::DecryptError,
        ) => (
            "the controller does not take this node's certificate".into(),
            "the controller is of another domain, or has lost its state: join again with a token (suiro domain token add)",
        ),
        Error::InvalidMessage(_) => (
            "what listens there does not speak TLS".into(),
            "name the address that suiro control --listen has",
        ),
        other => (format!("TLS: {other}"), "see the controller's log for its side"),
    })
}

/// Whom a client believes.
#[derive(Debug)]
struct Trust {
    authority: Pin,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Trust {
    fn new(authority: Pin, provider: &CryptoProvider) -> Self {
        Self { authority, algorithms: provider.signature_verification_algorithms }
    }

    /// The authority's certificate among those that were sent.
    fn root(&self, sent: &[CertificateDer<'_>]) -> Result<RootCertStore, Error> {
        let pin = |certificate: &CertificateDer<'_>| {
            let digest = digest(&SHA256, certificate);
            Pin::new(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
        };
        let found = sent.iter().find(|certificate| pin(certificate) == self.authority);
        let authority = found.ok_or_else(|| {
            let found = sent.last().map_or("unknown".into(), |last| pin(last).to_string());
            let wrong = WrongAuthority { found, wanted: self.authority.clone() };
            Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(wrong))))
        })?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        Ok(roots)
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let roots = self.root(intermediates)?;
        let parsed = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], now, algorithms)?;
        verify_server_name(&parsed, name)?;
        Ok(ServerCertVerified::assertion())
    }

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
}
