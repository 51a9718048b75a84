//! What went wrong with a peer, in words for the one who has to mend it.

use super::verify::NotPinned;
use rustls::{AlertDescription, CertificateError, Error};
use std::fmt;
use std::io;

/// A cause and its remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// Why a connection failed.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause, self.remedy)
    }
}

impl Trouble {
    /// A trouble of these words.
    pub fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { cause: cause.into(), remedy: remedy.into() }
    }

    /// A handshake that failed, for whatever reason.
    pub fn of_handshake(error: &io::Error) -> Self {
        Self::of_stream(error).unwrap_or_else(|| {
            let cause = format!("TLS: the peer hung up during the handshake: {error}");
            Self::new(
                cause,
                "see its log: it may want plain TCP (tcp:, ptcp:) here, or refuse our certificate",
            )
        })
    }

    /// An error of TLS that a stream met; in TLS 1.3 a peer may refuse our certificate only then.
    pub fn of_stream(error: &io::Error) -> Option<Self> {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>())?;
        Some(match tls {
            Error::InvalidCertificate(wrong) => of_certificate(wrong),
            Error::NoCertificatesPresented => Self::new(
                "TLS: the peer shows no certificate",
                "give it one of a CA of our `ca` file; for ovs-ofctl: --certificate, --private-key and --ca-cert",
            ),
            Error::AlertReceived(alert) => of_alert(*alert),
            Error::InvalidMessage(_) | Error::PeerSentOversizedRecord => Self::new(
                "TLS: what the peer sends is not TLS",
                "it speaks plain TCP here: name it tcp: instead of ssl:, or let it speak TLS",
            ),
            Error::PeerIncompatible(reason) => Self::new(
                format!("TLS: the peer and suiro have no version or cipher in common ({reason:?})"),
                "allow TLS 1.2 or 1.3 with ECDHE and AES-GCM or ChaCha20 there",
            ),
            other => Self::new(format!("TLS: {other}"), "see the peer's log for its side"),
        })
    }
}

fn of_certificate(wrong: &CertificateError) -> Trouble {
    let said = |cause: &str, remedy: &str| {
        Trouble::new(format!("TLS: the peer's certificate {cause}"), remedy)
    };
    match wrong {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => said(
            "is of no CA in our `ca` file",
            "give the peer a certificate of that CA, or add its CA to the file",
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => said(
            "has expired",
            "make it a new one; if it has one, compare the clocks of both sides",
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            said("is not valid yet", "compare the clocks of both sides")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let presented =
                if presented.is_empty() { "no name".into() } else { presented.join(", ") };
            let cause = format!("is for {presented}, not for {}", expected.to_str());
            said(
                &cause,
                "make one with that name as subjectAltName, or name the controller as its certificate does",
            )
        }
        CertificateError::NotValidForName => said(
            "is for another name",
            "make one with the controller's name as subjectAltName, or name the controller as its certificate does",
        ),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => said(
            "is not meant for its side of a connection",
            "make one with extendedKeyUsage serverAuth for a side that is called, clientAuth for one that calls, or both",
        ),
        CertificateError::Other(other) if other.0.is::<NotPinned>() => said(
            &format!("is not among `pins`: {}", other.0),
            "add that fingerprint if the peer is the right one",
        ),
        other => said(&format!("cannot be taken: {other}"), "make it a new one, X.509 version 3"),
    }
}

fn of_alert(alert: AlertDescription) -> Trouble {
    let name = format!("{alert:?}");
    let said =
        |cause: &str, remedy: &str| Trouble::new(format!("TLS: {cause} (alert {name})"), remedy);
    match alert {
        AlertDescription::UnknownCA => said(
            "the peer does not know the CA of our certificate",
            "add our CA to those that the peer trusts, or give suiro a certificate of one of them",
        ),
        AlertDescription::CertificateExpired => said(
            "our certificate has expired, the peer says",
            "make suiro a new one; the file is read again by itself",
        ),
        AlertDescription::CertificateRequired => said(
            "the peer wants a certificate and got none",
            "see the peer's log: it may ask for one of another CA than ours",
        ),
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => said(
            "the peer does not take our certificate",
            "see the peer's log, and our certificate with: openssl x509 -noout -text -in FILE",
        ),
        AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure => said(
            "the peer and suiro have no version or cipher in common",
            "allow TLS 1.2 or 1.3 with ECDHE and AES-GCM or ChaCha20 there; a peer without a certificate of its own fails so, too",
        ),
        _ => said("the peer ended the handshake", "see the peer's log for its side"),
    }
}
