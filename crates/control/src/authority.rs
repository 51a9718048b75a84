//! The domain's own certificate authority: it signs controllers' certificates and nodes'.
//!
//! Whose a certificate is stands in the store, by fingerprint, and not in the certificate: so one that is forgotten is worth nothing from then on.

use crate::fault;
use crate::kept::{self, AUTHORITY, commit};
use crate::store::Store;
use api::{CONTROLLER_NAME, Pin};
use axum::http::StatusCode;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use ring::digest::{SHA256, digest};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serve::error::ApiError;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

const DAY_S: u64 = 86_400;
/// How long the authority is good. Chosen: longer than the hosts of a domain are.
const AUTHORITY_S: u64 = 3650 * DAY_S;
/// How long a controller's certificate is good. It gets a new one every day.
const CONTROLLER_S: u64 = 30 * DAY_S;
/// How long a node's certificate is good. It asks for a new one at half of that.
pub const NODE_S: u64 = 30 * DAY_S;
/// How much earlier than it was made a certificate is good: clocks may differ so much (domain's design, D9.13).
const GRACE_S: u64 = DAY_S;

/// The authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

/// As it is kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    certificate: String,
    key: String,
}

impl Authority {
    /// The store's; made if there is none yet.
    ///
    /// # Errors
    /// The store cannot be read or written, or holds what cannot be used.
    pub fn of(store: &dyn Store, now_s: u64) -> Result<Self, ApiError> {
        if let Some((value, _)) = store.get(AUTHORITY).map_err(|error| fault::store(&error))? {
            let record: Record = kept::read(AUTHORITY, value)?;
            return Self::from_record(&record).map_err(|error| broken(&error));
        }
        let record = make(now_s).map_err(|error| broken(&error))?;
        commit(store, &[(AUTHORITY.into(), None)], &[(AUTHORITY.into(), Some(json!(record)))])?;
        Self::from_record(&record).map_err(|error| broken(&error))
    }

    fn from_record(record: &Record) -> Result<Self, rcgen::Error> {
        let issuer =
            Issuer::from_ca_cert_pem(&record.certificate, KeyPair::from_pem(&record.key)?)?;
        let certificate = CertificateDer::from_pem_slice(record.certificate.as_bytes());
        Ok(Self {
            issuer,
            certificate: certificate.map_err(|_| rcgen::Error::CouldNotParseCertificate)?,
        })
    }

    /// Its certificate.
    #[cfg(test)]
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }

    /// The fingerprint of its certificate.
    pub fn fingerprint(&self) -> [u8; 32] {
        sha256(&self.certificate)
    }

    /// What a controller needs to be called: a new certificate of its own, and whose callers' certificates it takes.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn server(&self, now_s: u64) -> Result<Arc<ServerConfig>, ApiError> {
        let key = KeyPair::generate().map_err(|error| broken(&error))?;
        let params = CertificateParams::new(vec![CONTROLLER_NAME.into()]);
        let mut params = params.map_err(|error| broken(&error))?;
        limits(&mut params, now_s, CONTROLLER_S);
        params.distinguished_name.push(DnType::CommonName, CONTROLLER_NAME);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let own = params.signed_by(&key, &self.issuer).map_err(|error| broken(&error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).map_err(|error| broken(&error))?;
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .allow_unauthenticated()
                .build()
                .map_err(|error| broken(&error))?;
        let chain = vec![own.der().clone(), self.certificate.clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key in PKCS #8");
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("ring's provider speaks TLS 1.3")
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)
            .map_err(|error| broken(&error))?;
        // Nothing is resumed: every connection is verified anew.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// A node's certificate, in PEM form, and its fingerprint. Of the request only the key is used, and that who sends it has it.
    ///
    /// # Errors
    /// The request cannot be read, or is not signed by its key.
    pub fn sign(&self, node: &str, request: &str, now_s: u64) -> Result<(String, Pin), ApiError> {
        let bad = |error: rcgen::Error| {
            fault::refused(
                StatusCode::BAD_REQUEST,
                format!("node {node}"),
                "read its certificate signing request",
                error.to_string(),
                "use the suiro of the controller's version",
            )
        };
        let mut request = CertificateSigningRequestParams::from_pem(request).map_err(bad)?;
        request.params = CertificateParams::default();
        limits(&mut request.params, now_s, NODE_S);
        request.params.distinguished_name.push(DnType::CommonName, node);
        request.params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let signed = request.signed_by(&self.issuer).map_err(bad)?;
        Ok((signed.pem(), Pin::new(sha256(signed.der()))))
    }
}

/// SHA-256.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

fn make(now_s: u64) -> Result<Record, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    limits(&mut params, now_s, AUTHORITY_S);
    // Two authorities of one name would be told apart only by their signatures.
    let name: String =
        sha256(key.public_key_raw())[..4].iter().map(|b| format!("{b:02x}")).collect();
    params.distinguished_name.push(DnType::CommonName, format!("suiro domain {name}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let certificate = params.self_signed(&key)?.pem();
    Ok(Record { certificate, key: key.serialize_pem() })
}

fn limits(params: &mut CertificateParams, now_s: u64, for_s: u64) {
    params.distinguished_name = rcgen::DistinguishedName::new();
    let moment = |seconds| (UNIX_EPOCH + Duration::from_secs(seconds)).into();
    params.not_before = moment(now_s.saturating_sub(GRACE_S));
    params.not_after = moment(now_s + for_s);
}

fn broken(error: &(dyn std::error::Error + 'static)) -> ApiError {
    fault::refused(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the domain's authority",
        "use it",
        api::chain(error),
        "see that the store is the one that this release wrote, and that getrandom(2) is allowed",
    )
}
