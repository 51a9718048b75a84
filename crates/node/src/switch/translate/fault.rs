//! The tables' refusals as OpenFlow errors (OpenFlow 1.3.5 §7.4.4): the only place that maps them.

use flow::{ActionError, FlowModError, GroupModError, MeterModError};
use openflow::{ErrorCode, Fault};
use port::NoNumber;

/// A refused flow-mod.
pub fn flow_mod_fault(error: FlowModError) -> Fault {
    let (code, what) = match error {
        FlowModError::TableFull { limit, .. } => (ErrorCode::FlowModFailedTableFull, limit),
        FlowModError::Overlap { .. } => {
            (ErrorCode::FlowModFailedOverlap, "an entry with the same priority overlaps")
        }
        FlowModError::BadTable => (ErrorCode::FlowModFailedBadTableId, "no such table"),
        FlowModError::BadGoto { .. } => {
            (ErrorCode::BadInstructionBadTableId, "goto an earlier table or none")
        }
        FlowModError::Action(error) => return action_fault(error),
    };
    Fault::new(code, what)
}

/// A refused end of a tunnel, with the code for what it stands in.
pub fn no_number(code: ErrorCode, NoNumber: NoNumber) -> Fault {
    let what =
        "one tunnel end more than the switch may name: of 65534 as many as are left for others";
    Fault::new(code, what)
}

/// A refused group-mod.
pub fn group_fault(error: GroupModError) -> Fault {
    let (code, what) = match error {
        GroupModError::Exists(_) => {
            (ErrorCode::GroupModFailedGroupExists, "the group exists already")
        }
        GroupModError::Invalid(_) => {
            (ErrorCode::GroupModFailedInvalidGroup, "no group can be like that")
        }
        GroupModError::OutOfGroups(_) => {
            (ErrorCode::GroupModFailedOutOfGroups, "the group table is full")
        }
        GroupModError::OutOfBuckets(_) => {
            (ErrorCode::GroupModFailedOutOfBuckets, "too many buckets in one group")
        }
        GroupModError::ChainTooLong(_) => {
            (ErrorCode::GroupModFailedChainingUnsupported, "groups would be nested too deep")
        }
        GroupModError::Loop(_) => {
            (ErrorCode::GroupModFailedLoop, "the group would forward to itself")
        }
        GroupModError::Unknown(_) => {
            (ErrorCode::GroupModFailedUnknownGroup, "the group does not exist")
        }
        GroupModError::Chained { .. } => {
            (ErrorCode::GroupModFailedChainedGroup, "another group forwards to it")
        }
        GroupModError::BadBucket(_) => {
            (ErrorCode::GroupModFailedInvalidGroup, "a weight outside a select group")
        }
        GroupModError::BadWatch(_) => {
            (ErrorCode::GroupModFailedBadWatch, "a bucket watches what cannot be")
        }
        GroupModError::Action { source, .. } => return action_fault(source),
    };
    Fault::new(code, what)
}

/// A refused meter-mod.
pub fn meter_fault(error: MeterModError) -> Fault {
    let (code, what) = match error {
        MeterModError::Exists(_) => {
            (ErrorCode::MeterModFailedMeterExists, "the meter exists already")
        }
        MeterModError::Invalid(_) => {
            (ErrorCode::MeterModFailedInvalidMeter, "no meter can have that number")
        }
        MeterModError::Unknown(_) => {
            (ErrorCode::MeterModFailedUnknownMeter, "the meter does not exist")
        }
        MeterModError::BadRate(_) => (ErrorCode::MeterModFailedBadRate, "a band without a rate"),
        MeterModError::BadBandValue(_) => {
            (ErrorCode::MeterModFailedBadBandValue, "a remark by no step")
        }
        MeterModError::OutOfMeters(_) => {
            (ErrorCode::MeterModFailedOutOfMeters, "the meter table is full")
        }
        MeterModError::OutOfBands(_) => {
            (ErrorCode::MeterModFailedOutOfBands, "too many bands in one meter")
        }
    };
    Fault::new(code, what)
}

/// Actions or instructions that the tables refuse.
pub fn action_fault(error: ActionError) -> Fault {
    let (code, what) = match error {
        ActionError::BadOutPort(_) => {
            (ErrorCode::BadActionBadOutPort, "a port that nothing can be sent to")
        }
        ActionError::BadArgument(_) => {
            (ErrorCode::BadActionBadArgument, "an argument that the action cannot have")
        }
        ActionError::TooMany => (ErrorCode::BadActionTooMany, "too many actions"),
        ActionError::BadQueue(_) => {
            (ErrorCode::BadActionBadQueue, "a queue that nothing can be sent to")
        }
        ActionError::BadOutGroup(_) => {
            (ErrorCode::BadActionBadOutGroup, "the group does not exist")
        }
        ActionError::MatchInconsistent(_) => (
            ErrorCode::BadActionMatchInconsistent,
            "the match does not promise the header that an action needs",
        ),
        ActionError::BadSetType(_) => {
            (ErrorCode::BadActionBadSetType, "a field that cannot be set")
        }
        ActionError::BadSetArgument(_) => {
            (ErrorCode::BadActionBadSetArgument, "a value that the field cannot have")
        }
        ActionError::UnknownMeter(_) => {
            (ErrorCode::MeterModFailedUnknownMeter, "the meter does not exist")
        }
    };
    Fault::new(code, what)
}
