//! Why a connection was given up.

use crate::{Fault, Features, InflightError, MemoryError};
use std::io;
use vhost_protocol::vhost_user::Error;
use vhost_protocol::vhost_user::message::FrontendReq;

/// What the front-end did that ended its connection, or what the system refused us.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The bytes have no header of this protocol.
    #[error("what came on the socket is no vhost-user message")]
    NotVhostUser,
    /// A request that no version of the protocol that we know has.
    #[error("message {0} is unknown")]
    Unknown(u32),
    /// A message did not end.
    #[error("a message stopped after {have} bytes")]
    Half {
        /// Bytes that came.
        have: usize,
    },
    /// A known message that cannot be right.
    #[error("message {request:?}: {why}")]
    Message {
        /// Which.
        request: FrontendReq,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The driver accepted what was not offered.
    #[error("features that were not offered were accepted: {}", names(*.0))]
    Features(Features),
    /// A ring that the port does not have.
    #[error("ring {index} was set up, the port has {pairs} queue pairs (2 rings each)")]
    NoSuchRing {
        /// The ring.
        index: u32,
        /// Queue pairs of the port.
        pairs: u16,
    },
    /// A ring that cannot be served.
    #[error("ring {index} cannot start")]
    Ring {
        /// The ring.
        index: usize,
        /// Why.
        source: Fault,
    },
    /// Memory that cannot be shared.
    #[error("the guest's memory cannot be shared")]
    Memory(#[from] MemoryError),
    /// An inflight region that cannot be used.
    #[error("the inflight region cannot be used")]
    Inflight(#[from] InflightError),
    /// The system refused.
    #[error("{step} failed")]
    System {
        /// What.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl Trouble {
    /// For `map_err`.
    pub(super) fn system<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { step, source: source.into() }
    }

    /// What the protocol crate says of a request: our own reason, if a handler of ours gave one. `None`: the front-end went away.
    pub(super) fn of(request: FrontendReq, error: Error) -> Option<Self> {
        let why = match error {
            Error::Disconnected | Error::SocketBroken(_) => return None,
            Error::ReqHandlerError(source) => match source.downcast::<Self>() {
                Ok(ours) => return Some(ours),
                Err(source) => return Some(Self::System { step: "answer", source }),
            },
            Error::SocketError(source)
            | Error::SocketRetry(source)
            | Error::SocketConnect(source) => {
                return Some(Self::System { step: "read or answer a message", source });
            }
            Error::InactiveFeature(_) | Error::InactiveOperation(_) => {
                "needs a feature that was not agreed on"
            }
            Error::IncorrectFds => "a wrong number of file descriptors came with it",
            Error::PartialMessage => "its end is missing",
            Error::InvalidOperation(why) => why,
            _ => "its content cannot be right",
        };
        Some(Self::Message { request, why })
    }

    /// What the user can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotVhostUser => {
                "see which program listens there: `ss -xlp`; give the port the socket of a vhost-user front-end"
            }
            Self::Half { .. } => "restart the guest; suiro is waiting for it",
            Self::NoSuchRing { .. } => "give the port more queues (`queues`), or the guest fewer",
            Self::Memory(_) => {
                "share the guest's memory: QEMU needs a memory-backend-memfd or -file with share=on, cloud-hypervisor `--memory shared=on`"
            }
            Self::System { source, .. } => match source.raw_os_error() {
                Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files (LimitNOFILE=)",
                Some(libc::ENOMEM) => "free memory, or raise vm.max_map_count",
                _ => "see the kernel's log (`dmesg`) for its reason",
            },
            Self::Unknown(_)
            | Self::Message { .. }
            | Self::Features(_)
            | Self::Ring { .. }
            | Self::Inflight(_) => {
                "update the guest's front-end or driver, which breaks the protocol; suiro is waiting for it"
            }
        }
    }

    /// Whether the guest would have cost more than it may.
    pub(super) fn is_a_bound(&self) -> bool {
        matches!(self, Self::Memory(MemoryError::TooLarge { .. } | MemoryError::LongLog { .. }))
    }

    /// With its causes, in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        text
    }
}

fn names(features: Features) -> String {
    let unnamed = features.bits() & !Features::all().bits();
    let mut names: Vec<_> = features.names().map(str::to_owned).collect();
    names
        .extend((0..64).filter(|bit| unnamed >> bit & 1 != 0).map(|bit: u32| format!("bit {bit}")));
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_without_a_name_are_told_by_number() {
        let strange = Features::from_bits_retain(Features::MQ.bits() | 1 << 63);
        assert_eq!(names(strange), "MQ, bit 63");
    }

    #[test]
    fn a_guest_that_shares_too_much_hits_a_bound_and_a_broken_one_does_not() {
        let shares = |memory| Trouble::from(memory).is_a_bound();
        assert!(shares(MemoryError::TooLarge { guest: 0, size: 1 << 50 }));
        assert!(shares(MemoryError::LongLog { size: 2, most: 1 }));
        assert!(!shares(MemoryError::Missing { guest: 0 }) && !Trouble::Unknown(7).is_a_bound());
    }

    #[test]
    fn our_own_reason_survives_the_protocol_crate() {
        let error = Error::ReqHandlerError(io::Error::other(Trouble::Unknown(7)));
        assert!(matches!(Trouble::of(FrontendReq::SET_OWNER, error), Some(Trouble::Unknown(7))));
    }
}
