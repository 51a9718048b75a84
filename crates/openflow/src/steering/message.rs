//! The bodies of experimenter messages.

use super::Wire;
use super::entry::PlaceMod;
use super::host::HostInfo;
use super::vm::VmStatus;
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::oxm::SUIRO;
use crate::switch::Experimenter;

/// The version of the extension that this crate speaks.
pub const VERSION: u8 = 1;

// Types of messages.
const HOST_INFO_REQUEST: u32 = 0;
const HOST_INFO: u32 = 1;
const SUBSCRIBE: u32 = 2;
const VM_STATUS: u32 = 3;
const PLACE_MOD: u32 = 4;

bitflags::bitflags! {
    /// What a controller wants to be told unasked. Unknown bits survive decoding, and a switch refuses them.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Events: u32 {
        /// [`Message::HostInfo`], now and whenever it changes.
        const HOST = 1;
        /// [`Message::VmStatus`] of every machine now, and of changes.
        const VMS = 2;
    }
}

/// A message.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// What is the host?
    HostInfoRequest,
    /// What the host is: an answer, or news.
    HostInfo(HostInfo),
    /// Tell me of these from now on, and of no others.
    Subscribe(Events),
    /// News of a virtual machine.
    VmStatus(VmStatus),
    /// Change steering entries.
    PlaceMod(PlaceMod),
}

impl Message {
    /// As an experimenter message.
    pub fn encode(&self) -> Experimenter {
        let mut out = Writer::default();
        let exp_type = match self {
            Self::HostInfoRequest => HOST_INFO_REQUEST,
            Self::HostInfo(host) => {
                host.put(&mut out);
                HOST_INFO
            }
            Self::Subscribe(events) => {
                out.u32(events.bits());
                out.zeros(4);
                SUBSCRIBE
            }
            Self::VmStatus(status) => {
                status.put(&mut out);
                VM_STATUS
            }
            Self::PlaceMod(change) => {
                change.put(&mut out);
                PLACE_MOD
            }
        };
        Experimenter { experimenter: SUIRO, exp_type, body: out.0 }
    }

    /// What an experimenter message says. Bytes behind what this version knows are ignored.
    ///
    /// # Errors
    /// The error to answer with: another experimenter, an unknown type, a wrong length.
    pub fn decode(message: &Experimenter) -> Result<Self, Fault> {
        let mut body = body(message)?;
        Ok(match message.exp_type {
            HOST_INFO_REQUEST => Self::HostInfoRequest,
            HOST_INFO => Self::HostInfo(Wire::take(&mut body)?),
            SUBSCRIBE => {
                let events = Events::from_bits_retain(body.u32()?);
                body.skip(4)?;
                Self::Subscribe(events)
            }
            VM_STATUS => Self::VmStatus(Wire::take(&mut body)?),
            PLACE_MOD => Self::PlaceMod(Wire::take(&mut body)?),
            _ => return Err(unknown_type()),
        })
    }
}

/// The body of a message of ours.
pub(super) fn body(message: &Experimenter) -> Result<Reader<'_>, Fault> {
    if message.experimenter != SUIRO {
        return Err(Fault::new(
            ErrorCode::BadRequestBadExperimenter,
            "an experimenter that suiro does not know",
        ));
    }
    Ok(Reader::new(&message.body, ErrorCode::BadRequestBadLen))
}

pub(super) fn unknown_type() -> Fault {
    Fault::new(ErrorCode::BadRequestBadExpType, "a type that this version does not define")
}
