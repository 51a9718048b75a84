//! Certificate, key and authorities, read from their files and checked against each other.

use super::verify::Trust;
use api::TlsSpec;
use files::regular;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Versions spoken. Older ones are broken (RFC 8996).
const VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];

/// No file of certificates is longer. Chosen: a host's whole bundle of authorities, four times.
const LONGEST: u64 = 1 << 20;

/// Why certificates cannot be used.
#[derive(Debug, Error)]
pub enum TlsFault {
    /// A file cannot be read.
    #[error("{key}: {} cannot be read", path.display())]
    Unreadable {
        /// Its key in the configuration.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: regular::ReadError,
    },
    /// A file does not hold what it should.
    #[error("{key}: {} holds no {what} in PEM form", path.display())]
    Missing {
        /// Its key in the configuration.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// A certificate or key that cannot be understood.
    #[error("{key}: {} cannot be used", path.display())]
    Unusable {
        /// Its key in the configuration.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The key is another certificate's.
    #[error("key: {} does not belong to the certificate {}", key.display(), certificate.display())]
    Mismatch {
        /// The key's file.
        key: PathBuf,
        /// The certificate's file.
        certificate: PathBuf,
    },
    /// TLS is asked for, and no files are named.
    #[error("no certificate is configured")]
    NotConfigured,
}

impl TlsFault {
    /// The configuration's key that is at fault.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Unreadable { key, .. }
            | Self::Missing { key, .. }
            | Self::Unusable { key, .. } => key,
            Self::Mismatch { .. } => "key",
            Self::NotConfigured => "tls",
        }
    }

    /// What to do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Unreadable { path, source, .. } => source.remedy(|error| unreadable(path, error)),
            Self::Missing { key: "key", path, .. } => format!(
                "write the key unencrypted, with: openssl pkey -in {0} -out {0}.plain",
                path.display()
            ),
            Self::Missing { path, .. } => {
                format!("look at it with: openssl x509 -noout -text -in {}", path.display())
            }
            Self::Unusable { path, .. } => format!(
                "make it anew, X.509 version 3 with an RSA (2048 bits or more), P-256, P-384 or Ed25519 key: {}",
                path.display()
            ),
            Self::Mismatch { certificate, key } => format!(
                "name the pair that was made together; these print the same for one: openssl x509 -noout -pubkey -in {}; openssl pkey -pubout -in {}",
                certificate.display(),
                key.display()
            ),
            Self::NotConfigured => {
                "give the switch or the node tls = { certificate, key, ca }, or suiro switch mod --tls-certificate, --tls-key and --tls-ca".into()
            }
        }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("make the file, or correct its path: {path}"),
        _ => format!(
            "let the user that suiro runs as own and read it (suiro keeps no capability to read others' files): ls -l {path}"
        ),
    }
}

/// Everything that a handshake needs, as the files said it at one moment.
pub struct Credentials {
    /// For calling.
    pub client: Arc<ClientConfig>,
    /// For being called.
    pub server: Arc<ServerConfig>,
}

impl Credentials {
    /// Reads and checks the files.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn load(spec: &TlsSpec) -> Result<Self, TlsFault> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let identity = load_identity(spec, &provider)?;
        let trust = load_trust(spec, &provider)?;
        Ok(Self::of(identity, trust, &provider))
    }

    /// Everything that is wrong with the files.
    pub fn faults(spec: &TlsSpec) -> Vec<TlsFault> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let identity = load_identity(spec, &provider).err();
        identity.into_iter().chain(load_trust(spec, &provider).err()).collect()
    }

    fn of(identity: CertifiedKey, trust: Arc<Trust>, provider: &Arc<CryptoProvider>) -> Self {
        let ours = Arc::new(SingleCertAndKey::from(identity));
        let versions = "ring's provider speaks TLS 1.2 and 1.3";
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(VERSIONS)
            .expect(versions)
            .dangerous()
            .with_custom_certificate_verifier(trust.clone())
            .with_client_cert_resolver(ours.clone());
        client.resumption = Resumption::disabled();
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(VERSIONS)
            .expect(versions)
            .with_client_cert_verifier(trust)
            .with_cert_resolver(ours);
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Self { client: Arc::new(client), server: Arc::new(server) }
    }
}

fn load_identity(spec: &TlsSpec, provider: &CryptoProvider) -> Result<CertifiedKey, TlsFault> {
    let chain = certificates("certificate", &spec.certificate)?;
    let pem = read("key", &spec.key)?;
    let missing = |_| TlsFault::Missing { key: "key", path: spec.key.clone(), what: "private key" };
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(missing)?;
    let unusable = |source| TlsFault::Unusable { key: "key", path: spec.key.clone(), source };
    let signer = provider.key_provider.load_private_key(key).map_err(unusable)?;
    let identity = CertifiedKey::new(chain, signer);
    match identity.keys_match() {
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(TlsFault::Mismatch { key: spec.key.clone(), certificate: spec.certificate.clone() })
        }
        Err(source) => {
            Err(TlsFault::Unusable { key: "certificate", path: spec.certificate.clone(), source })
        }
        Ok(()) => Ok(identity),
    }
}

fn load_trust(spec: &TlsSpec, provider: &CryptoProvider) -> Result<Arc<Trust>, TlsFault> {
    let mut roots = RootCertStore::empty();
    for authority in certificates("ca", &spec.ca)? {
        roots.add(authority).map_err(|source| TlsFault::Unusable {
            key: "ca",
            path: spec.ca.clone(),
            source,
        })?;
    }
    Ok(Arc::new(Trust::new(roots, spec.pins.clone(), provider)))
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let pem = read(key, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    found.ok().filter(|list| !list.is_empty()).ok_or_else(|| TlsFault::Missing {
        key,
        path: path.into(),
        what: "certificate",
    })
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsFault> {
    regular::read(path, LONGEST).map_err(|source| TlsFault::Unreadable {
        key,
        path: path.into(),
        source,
    })
}
