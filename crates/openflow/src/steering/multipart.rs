//! The bodies of experimenter multiparts (1.0: vendor statistics).

use super::message::{body, unknown_type};
use super::stats::{CoreStats, PlacementRequest, PlacementStats};
use super::vm::Vm;
use super::{Wire, put_core, take_core};
use crate::bytes::Writer;
use crate::envelope::{Entries, take_list};
use crate::error::{EncodeError, Fault};
use crate::multipart::MultipartKind;
use crate::oxm::SUIRO;
use crate::switch::Experimenter;

// Types of multiparts; no type of a message has the same number.
const VM_INFO: u32 = 16;
const CORE_STATS: u32 = 17;
const PLACEMENT_STATS: u32 = 18;

/// Bytes of a message before the body of an experimenter multipart of 1.3, which are more than those of 1.0.
const HEADERS: usize = 24;

/// What is asked.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Request {
    /// The virtual machine of this number; 0 = all.
    VmInfo(u16),
    /// What this core does; `None` = every core.
    CoreStats(Option<u16>),
    /// What was placed where.
    PlacementStats(PlacementRequest),
}

/// What is answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reply {
    /// Virtual machines.
    VmInfo(Vec<Vm>),
    /// Cores.
    CoreStats(Vec<CoreStats>),
    /// Placements.
    PlacementStats(Vec<PlacementStats>),
}

impl Request {
    /// As the body of a multipart request.
    pub fn encode(&self) -> Experimenter {
        let mut out = Writer::default();
        let exp_type = match self {
            Self::VmInfo(vm) => {
                out.u16(*vm);
                out.zeros(6);
                VM_INFO
            }
            Self::CoreStats(core) => {
                put_core(*core, &mut out);
                out.zeros(6);
                CORE_STATS
            }
            Self::PlacementStats(request) => {
                request.put(&mut out);
                PLACEMENT_STATS
            }
        };
        Experimenter { experimenter: SUIRO, exp_type, body: out.0 }
    }

    /// What a multipart request asks. Bytes behind what this version knows are ignored.
    ///
    /// # Errors
    /// The error to answer with: another experimenter, an unknown type, a wrong length.
    pub fn decode(request: &Experimenter) -> Result<Self, Fault> {
        let mut body = body(request)?;
        Ok(match request.exp_type {
            VM_INFO => {
                let vm = body.u16()?;
                body.skip(6)?;
                Self::VmInfo(vm)
            }
            CORE_STATS => {
                let core = take_core(&mut body)?;
                body.skip(6)?;
                Self::CoreStats(core)
            }
            PLACEMENT_STATS => Self::PlacementStats(Wire::take(&mut body)?),
            _ => return Err(unknown_type()),
        })
    }
}

impl Reply {
    /// As bodies of multipart replies, at least one, each of which fits a message.
    ///
    /// # Errors
    /// [`EncodeError::EntryTooLong`]: an element that alone fits no message.
    pub fn encode(&self) -> Result<Vec<Experimenter>, EncodeError> {
        let (exp_type, entries) = match self {
            Self::VmInfo(vms) => (VM_INFO, Entries::of(vms, Wire::put)),
            Self::CoreStats(cores) => (CORE_STATS, Entries::of(cores, Wire::put)),
            Self::PlacementStats(list) => (PLACEMENT_STATS, Entries::of(list, Wire::put)),
        };
        let pieces = entries
            .pieces(usize::from(u16::MAX) - HEADERS)
            .ok_or(EncodeError::EntryTooLong { kind: MultipartKind::Experimenter })?;
        let wrap =
            |piece: &[u8]| Experimenter { experimenter: SUIRO, exp_type, body: piece.to_vec() };
        Ok(pieces.into_iter().map(wrap).collect())
    }

    /// What a multipart reply says.
    ///
    /// # Errors
    /// As [`Request::decode`].
    pub fn decode(reply: &Experimenter) -> Result<Self, Fault> {
        let body = body(reply)?;
        Ok(match reply.exp_type {
            VM_INFO => Self::VmInfo(take_list(body, Wire::take)?),
            CORE_STATS => Self::CoreStats(take_list(body, Wire::take)?),
            PLACEMENT_STATS => Self::PlacementStats(take_list(body, Wire::take)?),
            _ => return Err(unknown_type()),
        })
    }
}
