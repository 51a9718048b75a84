//! Certificates made on the spot, and what their files may be wrong in.

use super::*;
use api::{TlsSpec, chain};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use std::path::{Path, PathBuf};

/// An authority with a directory for what it signs.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    home: tempfile::TempDir,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        // Two authorities of one name would be told apart only by their signatures.
        let home = tempfile::tempdir().unwrap();
        params.distinguished_name.push(DnType::CommonName, home.path().to_str().unwrap());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(home.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, home }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Signs a certificate for these names, valid today.
    pub fn sign(&self, owner: &str, names: &[&str]) -> TlsSpec {
        self.sign_with(owner, names, |_| ())
    }

    /// Signs one that ended with 2020.
    pub fn sign_expired(&self, owner: &str, names: &[&str]) -> TlsSpec {
        self.sign_with(owner, names, |params| {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 12, 31);
        })
    }

    /// Signs one for one side only.
    pub fn sign_for(&self, owner: &str, names: &[&str], usage: ExtendedKeyUsagePurpose) -> TlsSpec {
        self.sign_with(owner, names, |params| params.extended_key_usages = vec![usage])
    }

    fn sign_with(
        &self,
        owner: &str,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> TlsSpec {
        let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let [certificate_file, key_file] =
            ["cert", "key"].map(|kind| self.file(&format!("{owner}-{kind}.pem")));
        std::fs::write(&certificate_file, certificate.pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        TlsSpec {
            certificate: certificate_file,
            key: key_file,
            ca: self.file("ca.pem"),
            pins: vec![],
        }
    }
}

fn fault(spec: &TlsSpec) -> (&'static str, String) {
    let fault = Credentials::load(spec).err().expect("the files are wrong");
    assert!(!fault.remedy().is_empty());
    (fault.key(), chain(&fault))
}

#[track_caller]
fn assert_fault(spec: &TlsSpec, key: &str, part: &str) {
    let (found, text) = fault(spec);
    assert_eq!(found, key, "{text}");
    assert!(text.contains(part), "{text}");
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_key() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let good = ours.sign("sw", &[]);
    assert!(Credentials::faults(&good).is_empty());
    let gone = PathBuf::from("/nowhere/x.pem");
    assert_fault(
        &TlsSpec { certificate: gone.clone(), ..good.clone() },
        "certificate",
        "No such file",
    );
    assert_fault(&TlsSpec { key: gone.clone(), ..good.clone() }, "key", "cannot be read");
    assert_fault(&TlsSpec { ca: gone.clone(), ..good.clone() }, "ca", "/nowhere/x.pem");
    let directory = ours.file(".");
    assert_fault(
        &TlsSpec { ca: directory, ..good.clone() },
        "ca",
        "a directory, not a regular file",
    );
    let other = theirs.sign("other", &[]);
    assert_fault(&TlsSpec { key: other.key, ..good.clone() }, "key", "does not belong to");
    assert_fault(&TlsSpec { key: good.ca.clone(), ..good.clone() }, "key", "holds no private key");
    assert_fault(&TlsSpec { ca: good.key.clone(), ..good.clone() }, "ca", "holds no certificate");
    let garbage = ours.file("garbage.pem");
    std::fs::write(&garbage, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        .unwrap();
    assert_fault(
        &TlsSpec { certificate: garbage.clone(), ..good.clone() },
        "certificate",
        "cannot be used",
    );
    assert_fault(&TlsSpec { ca: garbage, ..good.clone() }, "ca", "cannot be used");
    let both = TlsSpec { certificate: gone.clone(), ca: gone, ..good };
    assert_eq!(Credentials::faults(&both).len(), 2, "both are told at once");
}

fn replace(from: &Path, to: &Path) {
    std::fs::rename(from, to).unwrap();
}

#[test]
fn a_changed_file_is_read_again_and_a_bad_change_leaves_the_old_in_use() {
    let authority = Authority::new();
    let spec = authority.sign("sw", &[]);
    let tls = Tls::new(spec.clone());
    let first = tls.credentials().unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &tls.credentials().unwrap()), "nothing has changed");
    let next = authority.sign("next", &[]);
    replace(&next.certificate, &spec.certificate);
    let mismatched = tls.credentials().unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &mismatched), "the key is still the old one's");
    replace(&next.key, &spec.key);
    let second = tls.credentials().unwrap();
    assert!(!std::sync::Arc::ptr_eq(&first, &second));
}
