//! Errors (1.0.0 §5.4.4): the numbers that 1.0 gives to codes, and what it is told where it has no such code.
//!
//! | neutral code | 1.0 says |
//! |---|---|
//! | in [`EXACT`] | the same |
//! | `OFPBRC_*` that came later, `OFPSCFC_*`, `OFPPMFC_*` that came later | `OFPBRC_EPERM`; a bad length `OFPBRC_BAD_LEN` |
//! | `OFPBAC_*` that came later | `OFPBAC_BAD_ARGUMENT`; a group as destination `OFPBAC_BAD_OUT_PORT` |
//! | `OFPBMC_*`, `OFPBIC_*`, `OFPFMFC_*` that came later | `OFPFMFC_UNSUPPORTED` |
//! | `OFPFMFC_BAD_TIMEOUT`, `OFPFMFC_TABLE_FULL` | `OFPFMFC_BAD_EMERG_TIMEOUT`, `OFPFMFC_ALL_TABLES_FULL`: their names in 1.0 |
//! | errors of messages that 1.0 lacks (groups, meters, tables, roles) | `OFPBRC_BAD_TYPE` |

use super::Wire;
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, ErrorKind, ErrorMsg, Fault};
use ErrorCode as E;

/// Type and code of what 1.0 has a code for, by §5.4.4.
const EXACT: &[(ErrorCode, u16, u16)] = &[
    (E::HelloFailedIncompatible, 0, 0),
    (E::HelloFailedEperm, 0, 1),
    (E::BadRequestBadVersion, 1, 0),
    (E::BadRequestBadType, 1, 1),
    (E::BadRequestBadMultipart, 1, 2),
    (E::BadRequestBadExperimenter, 1, 3),
    (E::BadRequestBadExpType, 1, 4),
    (E::BadRequestEperm, 1, 5),
    (E::BadRequestBadLen, 1, 6),
    (E::BadRequestBufferEmpty, 1, 7),
    (E::BadRequestBufferUnknown, 1, 8),
    (E::BadActionBadType, 2, 0),
    (E::BadActionBadLen, 2, 1),
    (E::BadActionBadExperimenter, 2, 2),
    (E::BadActionBadExpType, 2, 3),
    (E::BadActionBadOutPort, 2, 4),
    (E::BadActionBadArgument, 2, 5),
    (E::BadActionEperm, 2, 6),
    (E::BadActionTooMany, 2, 7),
    (E::BadActionBadQueue, 2, 8),
    (E::FlowModFailedTableFull, 3, 0),
    (E::FlowModFailedOverlap, 3, 1),
    (E::FlowModFailedEperm, 3, 2),
    (E::FlowModFailedBadTimeout, 3, 3),
    (E::FlowModFailedBadCommand, 3, 4),
    (E::FlowModFailedUnknown, 3, 5),
    (E::PortModFailedBadPort, 4, 0),
    (E::PortModFailedBadHwAddr, 4, 1),
    (E::QueueOpFailedBadPort, 5, 0),
    (E::QueueOpFailedBadQueue, 5, 1),
    (E::QueueOpFailedEperm, 5, 2),
];

/// `OFPFMFC_UNSUPPORTED`.
const UNSUPPORTED: ErrorCode = E::FlowModFailedUnknown;

/// Type and code for a controller of 1.0.
fn numbers(code: ErrorCode) -> (u16, u16) {
    let found = |wanted| EXACT.iter().find(|(exact, ..)| *exact == wanted);
    let (_, kind, number) = found(code).or_else(|| found(nearest(code))).unwrap_or(&EXACT[7]);
    (*kind, *number)
}

/// The code of [`EXACT`] that says most of what `code` says. The ranges are those of the types of 1.3.
fn nearest(code: ErrorCode) -> ErrorCode {
    let (kind, _) = code.numbers();
    match (code, kind) {
        (E::SwitchConfigFailedBadLen, _) => E::BadRequestBadLen,
        (E::BadActionBadOutGroup, _) => E::BadActionBadOutPort,
        (_, 2) => E::BadActionBadArgument,
        (_, 3..=5) => UNSUPPORTED,
        (_, 6 | 8 | 11..=13) => E::BadRequestBadType,
        _ => E::BadRequestEperm,
    }
}

impl Wire for ErrorMsg {
    /// An experimenter's error has no place in 1.0 and becomes `OFPBRC_EPERM`.
    fn put(&self, out: &mut Writer) {
        let (kind, code) = match self.kind {
            ErrorKind::Known(code) => numbers(code),
            ErrorKind::Unknown { kind, code } => (kind, code),
            ErrorKind::Experimenter { .. } => numbers(E::BadRequestEperm),
        };
        out.u16(kind);
        out.u16(code);
        out.bytes(&self.data);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (kind, code) = (input.u16()?, input.u16()?);
        let known = EXACT.iter().find(|(_, k, c)| (*k, *c) == (kind, code));
        let kind = match known {
            Some((code, ..)) => ErrorKind::Known(*code),
            None => ErrorKind::Unknown { kind, code },
        };
        Ok(ErrorMsg { kind, data: input.remaining() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_numbers_that_1_0_defines() {
        for &code in ErrorCode::ALL {
            let (kind, number) = numbers(code);
            assert!(EXACT.iter().any(|(_, k, n)| (*k, *n) == (kind, number)), "{code}");
        }
    }

    #[test]
    fn what_1_0_lacks_is_told_by_the_nearest_code() {
        assert_eq!(numbers(E::BadRequestIsSlave), (1, 5));
        assert_eq!(numbers(E::BadRequestBadPort), (1, 5));
        assert_eq!(numbers(E::BadActionMatchInconsistent), (2, 5));
        assert_eq!(numbers(E::BadActionBadOutGroup), (2, 4));
        assert_eq!(numbers(E::BadMatchBadPrereq), (3, 5));
        assert_eq!(numbers(E::FlowModFailedBadTableId), (3, 5));
        assert_eq!(numbers(E::SwitchConfigFailedBadFlags), (1, 5));
        assert_eq!(numbers(E::GroupModFailedLoop), (1, 1));
    }
}
