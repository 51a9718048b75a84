//! Why a session ended, in words for the one who has to mend it.

use crate::tls::Trouble;
use api::chain;
use openflow::{BadFrame, VersionSet};
use std::io;
use thiserror::Error;

/// Why a session ended.
#[derive(Debug, Error)]
pub enum End {
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    /// Nothing was heard of the peer.
    #[error("the peer was silent for too long; see whether it hangs or the network is broken")]
    Silent,
    /// The peer did not read what it must not miss.
    #[error("the peer reads too slowly to be told of changes; give it time, or fewer events")]
    TooSlow,
    /// What came is no OpenFlow.
    #[error(
        "hello: the peer does not speak OpenFlow (first bytes: version {version}, type {kind}); check what connects to this port"
    )]
    NoHello {
        /// The first byte.
        version: u8,
        /// The second byte.
        kind: u8,
    },
    /// What came is TLS.
    #[error(
        "hello: the peer speaks TLS, and this connection is plain TCP; name it ssl: (or pssl:) here, or let it speak plain TCP"
    )]
    TlsSpoken,
    /// No common version.
    #[error(
        "hello: the peer's OpenFlow versions (newest: wire version {theirs}) are none of the switch's ({ours}); enable one there, or change the switch's protocols"
    )]
    NoVersion {
        /// The switch's.
        ours: VersionSet,
        /// The version in the header of the peer's hello.
        theirs: u8,
    },
    /// The stream cannot be cut into messages any more.
    #[error("framing: the peer is no OpenFlow speaker or is broken; check what connects here")]
    Framing(#[source] BadFrame),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // TLS without a last word.
            io::ErrorKind::UnexpectedEof => End::Closed,
            _ => End::Broken(error),
        }
    }
}

impl End {
    /// Whether the peer misbehaved, which an operator should hear of, or just went.
    pub fn is_fault_of_peer(&self) -> bool {
        match self {
            End::Closed => false,
            End::Broken(error) => Trouble::of_stream(error).is_some(),
            _ => true,
        }
    }

    /// Cause and remedy, which [`End`]'s own text separates by a semicolon.
    pub fn trouble(&self) -> Trouble {
        if let End::Broken(error) = self
            && let Some(trouble) = Trouble::of_stream(error)
        {
            return trouble;
        }
        let text = chain(self);
        let (cause, remedy) =
            text.split_once("; ").unwrap_or((&text, "see the log of the other side"));
        Trouble::new(cause, remedy)
    }
}
