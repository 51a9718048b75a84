//! Authorities and what they sign, as files of the lab.

use acceptance::Lab;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};

/// Authority (`ca`), switch (`sw`), controller (`ctl`) and a controller of yesterday (`old`); and of another authority (`other-ca`) a switch
/// (`other-sw`) and a controller (`stranger`).
pub fn make_certificates(lab: &Lab) {
    let (ours, theirs) = (authority("suiro test CA"), authority("another CA"));
    std::fs::write(lab.path("ca.pem"), ours.pem()).unwrap();
    std::fs::write(lab.path("other-ca.pem"), theirs.pem()).unwrap();
    for (owner, issuer, last_year) in [
        ("sw", &ours, 2090),
        ("ctl", &ours, 2090),
        ("old", &ours, 2020),
        ("other-sw", &theirs, 2090),
        ("stranger", &theirs, 2090),
    ] {
        sign(lab, owner, issuer, last_year);
    }
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn sign(lab: &Lab, owner: &str, issuer: &Authority, last_year: i32) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_after = date_time_ymd(last_year, 12, 31);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    std::fs::write(lab.path(&format!("{owner}.pem")), certificate.pem()).unwrap();
    std::fs::write(lab.path(&format!("{owner}.key")), key.serialize_pem()).unwrap();
}

/// A file's path, for command lines.
pub fn file_of(lab: &Lab, name: &str) -> String {
    lab.path(name).display().to_string()
}

/// Puts a copy of one file in the place of another, in one step.
pub fn replace(lab: &Lab, from: &str, to: &str) {
    let new = lab.path(&format!("{to}.new"));
    std::fs::copy(lab.path(from), &new).unwrap();
    std::fs::rename(new, lab.path(to)).unwrap();
}

/// The options that give a switch its certificates.
pub fn tls_options(lab: &Lab) -> [String; 6] {
    let [certificate, key, ca] = ["sw.pem", "sw.key", "ca.pem"].map(|file| file_of(lab, file));
    ["--tls-certificate".into(), certificate, "--tls-key".into(), key, "--tls-ca".into(), ca]
}
