//! By which certificates a switch and its controllers know each other.

use crate::BadText;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use utoipa::ToSchema;

text_type! {
    /// The SHA-256 fingerprint of one certificate, as `openssl x509 -noout -fingerprint -sha256` prints it.
    Pin([u8; 32]), "a certificate's fingerprint", "sha256: and 64 hexadecimal digits, with or without colons between them", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    parse_pin
}

impl Pin {
    /// A fingerprint from its bytes.
    pub fn new(digest: [u8; 32]) -> Self {
        Self(digest)
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn parse_pin(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text.strip_prefix("sha256:")?.bytes().filter(|&b| b != b':').collect();
    let mut digest = [0; 32];
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

/// Our certificate, its key, and whom we trust. PEM files; a changed file is used from the next connection on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// Our certificate, followed by those of intermediate authorities.
    #[schema(value_type = String)]
    pub certificate: PathBuf,
    /// Its private key, not encrypted.
    #[schema(value_type = String)]
    pub key: PathBuf,
    /// Certificates of the authorities that sign our peers' certificates.
    #[schema(value_type = String)]
    pub ca: PathBuf,
    /// If any: of the peers that the authorities vouch for, only those with one of these certificates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<Pin>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_reads_as_openssl_prints_it() {
        let plain = "sha256:".to_owned() + &"0aF9".repeat(16);
        let colons = "sha256:".to_owned() + &["0A:F9"; 16].join(":");
        let pin: Pin = plain.parse().unwrap();
        assert_eq!(pin, colons.parse().unwrap());
        assert_eq!(pin.to_string().parse::<Pin>().unwrap(), pin);
        for bad in ["", "sha256:", "0af9", &plain[..70], &(plain.clone() + "0"), "sha256:+a"] {
            assert!(bad.parse::<Pin>().is_err(), "{bad:?}");
        }
    }
}
