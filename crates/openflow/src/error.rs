//! Every error of OpenFlow 1.3.5 (§7.4.4) as one typed code, and the errors of this crate that carry one.
//!
//! The table below has the numbers of 1.3, `v10::error` those of 1.0; nothing else knows a number.

use crate::{MultipartKind, Version};

macro_rules! codes {
    ($($name:ident = $kind:literal, $code:literal, $text:literal;)*) => {
        /// An error type and code of the specification; the variant reads type then code.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[expect(missing_docs, reason = "each variant is named after its constant in §7.4.4, which is its documentation")]
        pub enum ErrorCode { $($name,)* }

        impl ErrorCode {
            /// Every code, in order of type and code.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name,)*];

            /// Type and code as OpenFlow 1.3 numbers them.
            pub const fn numbers(self) -> (u16, u16) {
                match self { $(ErrorCode::$name => ($kind, $code),)* }
            }

            /// The constant's name in the specification, e.g. `OFPBMC_BAD_MASK`.
            pub const fn name(self) -> &'static str {
                match self { $(ErrorCode::$name => $text,)* }
            }

            /// The code with these OpenFlow 1.3 numbers.
            pub const fn from_numbers(kind: u16, code: u16) -> Option<Self> {
                match (kind, code) { $(($kind, $code) => Some(ErrorCode::$name),)* _ => None }
            }
        }
    };
}

codes! {
    // OFPET_HELLO_FAILED
    HelloFailedIncompatible = 0, 0, "OFPHFC_INCOMPATIBLE";
    HelloFailedEperm = 0, 1, "OFPHFC_EPERM";
    // OFPET_BAD_REQUEST
    BadRequestBadVersion = 1, 0, "OFPBRC_BAD_VERSION";
    BadRequestBadType = 1, 1, "OFPBRC_BAD_TYPE";
    BadRequestBadMultipart = 1, 2, "OFPBRC_BAD_MULTIPART";
    BadRequestBadExperimenter = 1, 3, "OFPBRC_BAD_EXPERIMENTER";
    BadRequestBadExpType = 1, 4, "OFPBRC_BAD_EXP_TYPE";
    BadRequestEperm = 1, 5, "OFPBRC_EPERM";
    BadRequestBadLen = 1, 6, "OFPBRC_BAD_LEN";
    BadRequestBufferEmpty = 1, 7, "OFPBRC_BUFFER_EMPTY";
    BadRequestBufferUnknown = 1, 8, "OFPBRC_BUFFER_UNKNOWN";
    BadRequestBadTableId = 1, 9, "OFPBRC_BAD_TABLE_ID";
    BadRequestIsSlave = 1, 10, "OFPBRC_IS_SLAVE";
    BadRequestBadPort = 1, 11, "OFPBRC_BAD_PORT";
    BadRequestBadPacket = 1, 12, "OFPBRC_BAD_PACKET";
    BadRequestMultipartBufferOverflow = 1, 13, "OFPBRC_MULTIPART_BUFFER_OVERFLOW";
    // OFPET_BAD_ACTION
    BadActionBadType = 2, 0, "OFPBAC_BAD_TYPE";
    BadActionBadLen = 2, 1, "OFPBAC_BAD_LEN";
    BadActionBadExperimenter = 2, 2, "OFPBAC_BAD_EXPERIMENTER";
    BadActionBadExpType = 2, 3, "OFPBAC_BAD_EXP_TYPE";
    BadActionBadOutPort = 2, 4, "OFPBAC_BAD_OUT_PORT";
    BadActionBadArgument = 2, 5, "OFPBAC_BAD_ARGUMENT";
    BadActionEperm = 2, 6, "OFPBAC_EPERM";
    BadActionTooMany = 2, 7, "OFPBAC_TOO_MANY";
    BadActionBadQueue = 2, 8, "OFPBAC_BAD_QUEUE";
    BadActionBadOutGroup = 2, 9, "OFPBAC_BAD_OUT_GROUP";
    BadActionMatchInconsistent = 2, 10, "OFPBAC_MATCH_INCONSISTENT";
    BadActionUnsupportedOrder = 2, 11, "OFPBAC_UNSUPPORTED_ORDER";
    BadActionBadTag = 2, 12, "OFPBAC_BAD_TAG";
    BadActionBadSetType = 2, 13, "OFPBAC_BAD_SET_TYPE";
    BadActionBadSetLen = 2, 14, "OFPBAC_BAD_SET_LEN";
    BadActionBadSetArgument = 2, 15, "OFPBAC_BAD_SET_ARGUMENT";
    // OFPET_BAD_INSTRUCTION
    BadInstructionUnknownInst = 3, 0, "OFPBIC_UNKNOWN_INST";
    BadInstructionUnsupInst = 3, 1, "OFPBIC_UNSUP_INST";
    BadInstructionBadTableId = 3, 2, "OFPBIC_BAD_TABLE_ID";
    BadInstructionUnsupMetadata = 3, 3, "OFPBIC_UNSUP_METADATA";
    BadInstructionUnsupMetadataMask = 3, 4, "OFPBIC_UNSUP_METADATA_MASK";
    BadInstructionBadExperimenter = 3, 5, "OFPBIC_BAD_EXPERIMENTER";
    BadInstructionBadExpType = 3, 6, "OFPBIC_BAD_EXP_TYPE";
    BadInstructionBadLen = 3, 7, "OFPBIC_BAD_LEN";
    BadInstructionEperm = 3, 8, "OFPBIC_EPERM";
    // OFPET_BAD_MATCH
    BadMatchBadType = 4, 0, "OFPBMC_BAD_TYPE";
    BadMatchBadLen = 4, 1, "OFPBMC_BAD_LEN";
    BadMatchBadTag = 4, 2, "OFPBMC_BAD_TAG";
    BadMatchBadDlAddrMask = 4, 3, "OFPBMC_BAD_DL_ADDR_MASK";
    BadMatchBadNwAddrMask = 4, 4, "OFPBMC_BAD_NW_ADDR_MASK";
    BadMatchBadWildcards = 4, 5, "OFPBMC_BAD_WILDCARDS";
    BadMatchBadField = 4, 6, "OFPBMC_BAD_FIELD";
    BadMatchBadValue = 4, 7, "OFPBMC_BAD_VALUE";
    BadMatchBadMask = 4, 8, "OFPBMC_BAD_MASK";
    BadMatchBadPrereq = 4, 9, "OFPBMC_BAD_PREREQ";
    BadMatchDupField = 4, 10, "OFPBMC_DUP_FIELD";
    BadMatchEperm = 4, 11, "OFPBMC_EPERM";
    // OFPET_FLOW_MOD_FAILED
    FlowModFailedUnknown = 5, 0, "OFPFMFC_UNKNOWN";
    FlowModFailedTableFull = 5, 1, "OFPFMFC_TABLE_FULL";
    FlowModFailedBadTableId = 5, 2, "OFPFMFC_BAD_TABLE_ID";
    FlowModFailedOverlap = 5, 3, "OFPFMFC_OVERLAP";
    FlowModFailedEperm = 5, 4, "OFPFMFC_EPERM";
    FlowModFailedBadTimeout = 5, 5, "OFPFMFC_BAD_TIMEOUT";
    FlowModFailedBadCommand = 5, 6, "OFPFMFC_BAD_COMMAND";
    FlowModFailedBadFlags = 5, 7, "OFPFMFC_BAD_FLAGS";
    // OFPET_GROUP_MOD_FAILED
    GroupModFailedGroupExists = 6, 0, "OFPGMFC_GROUP_EXISTS";
    GroupModFailedInvalidGroup = 6, 1, "OFPGMFC_INVALID_GROUP";
    GroupModFailedWeightUnsupported = 6, 2, "OFPGMFC_WEIGHT_UNSUPPORTED";
    GroupModFailedOutOfGroups = 6, 3, "OFPGMFC_OUT_OF_GROUPS";
    GroupModFailedOutOfBuckets = 6, 4, "OFPGMFC_OUT_OF_BUCKETS";
    GroupModFailedChainingUnsupported = 6, 5, "OFPGMFC_CHAINING_UNSUPPORTED";
    GroupModFailedWatchUnsupported = 6, 6, "OFPGMFC_WATCH_UNSUPPORTED";
    GroupModFailedLoop = 6, 7, "OFPGMFC_LOOP";
    GroupModFailedUnknownGroup = 6, 8, "OFPGMFC_UNKNOWN_GROUP";
    GroupModFailedChainedGroup = 6, 9, "OFPGMFC_CHAINED_GROUP";
    GroupModFailedBadType = 6, 10, "OFPGMFC_BAD_TYPE";
    GroupModFailedBadCommand = 6, 11, "OFPGMFC_BAD_COMMAND";
    GroupModFailedBadBucket = 6, 12, "OFPGMFC_BAD_BUCKET";
    GroupModFailedBadWatch = 6, 13, "OFPGMFC_BAD_WATCH";
    GroupModFailedEperm = 6, 14, "OFPGMFC_EPERM";
    // OFPET_PORT_MOD_FAILED
    PortModFailedBadPort = 7, 0, "OFPPMFC_BAD_PORT";
    PortModFailedBadHwAddr = 7, 1, "OFPPMFC_BAD_HW_ADDR";
    PortModFailedBadConfig = 7, 2, "OFPPMFC_BAD_CONFIG";
    PortModFailedBadAdvertise = 7, 3, "OFPPMFC_BAD_ADVERTISE";
    PortModFailedEperm = 7, 4, "OFPPMFC_EPERM";
    // OFPET_TABLE_MOD_FAILED
    TableModFailedBadTable = 8, 0, "OFPTMFC_BAD_TABLE";
    TableModFailedBadConfig = 8, 1, "OFPTMFC_BAD_CONFIG";
    TableModFailedEperm = 8, 2, "OFPTMFC_EPERM";
    // OFPET_QUEUE_OP_FAILED
    QueueOpFailedBadPort = 9, 0, "OFPQOFC_BAD_PORT";
    QueueOpFailedBadQueue = 9, 1, "OFPQOFC_BAD_QUEUE";
    QueueOpFailedEperm = 9, 2, "OFPQOFC_EPERM";
    // OFPET_SWITCH_CONFIG_FAILED
    SwitchConfigFailedBadFlags = 10, 0, "OFPSCFC_BAD_FLAGS";
    SwitchConfigFailedBadLen = 10, 1, "OFPSCFC_BAD_LEN";
    SwitchConfigFailedEperm = 10, 2, "OFPSCFC_EPERM";
    // OFPET_ROLE_REQUEST_FAILED
    RoleRequestFailedStale = 11, 0, "OFPRRFC_STALE";
    RoleRequestFailedUnsup = 11, 1, "OFPRRFC_UNSUP";
    RoleRequestFailedBadRole = 11, 2, "OFPRRFC_BAD_ROLE";
    // OFPET_METER_MOD_FAILED
    MeterModFailedUnknown = 12, 0, "OFPMMFC_UNKNOWN";
    MeterModFailedMeterExists = 12, 1, "OFPMMFC_METER_EXISTS";
    MeterModFailedInvalidMeter = 12, 2, "OFPMMFC_INVALID_METER";
    MeterModFailedUnknownMeter = 12, 3, "OFPMMFC_UNKNOWN_METER";
    MeterModFailedBadCommand = 12, 4, "OFPMMFC_BAD_COMMAND";
    MeterModFailedBadFlags = 12, 5, "OFPMMFC_BAD_FLAGS";
    MeterModFailedBadRate = 12, 6, "OFPMMFC_BAD_RATE";
    MeterModFailedBadBurst = 12, 7, "OFPMMFC_BAD_BURST";
    MeterModFailedBadBand = 12, 8, "OFPMMFC_BAD_BAND";
    MeterModFailedBadBandValue = 12, 9, "OFPMMFC_BAD_BAND_VALUE";
    MeterModFailedOutOfMeters = 12, 10, "OFPMMFC_OUT_OF_METERS";
    MeterModFailedOutOfBands = 12, 11, "OFPMMFC_OUT_OF_BANDS";
    // OFPET_TABLE_FEATURES_FAILED
    TableFeaturesFailedBadTable = 13, 0, "OFPTFFC_BAD_TABLE";
    TableFeaturesFailedBadMetadata = 13, 1, "OFPTFFC_BAD_METADATA";
    TableFeaturesFailedBadType = 13, 2, "OFPTFFC_BAD_TYPE";
    TableFeaturesFailedBadLen = 13, 3, "OFPTFFC_BAD_LEN";
    TableFeaturesFailedBadArgument = 13, 4, "OFPTFFC_BAD_ARGUMENT";
    TableFeaturesFailedEperm = 13, 5, "OFPTFFC_EPERM";
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What an error message says went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// A code of the specification.
    Known(ErrorCode),
    /// `OFPET_EXPERIMENTER`: the experimenter's own numbering.
    Experimenter {
        /// Who defined it.
        experimenter: u32,
        /// Its number there.
        exp_type: u16,
    },
    /// Numbers that the specification does not define.
    Unknown {
        /// The type field.
        kind: u16,
        /// The code field.
        code: u16,
    },
}

/// An error message (`OFPT_ERROR`).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ErrorMsg {
    /// Type and code.
    pub kind: ErrorKind,
    /// The first bytes of the message that failed, or text for `OFPET_HELLO_FAILED`.
    pub data: Vec<u8>,
}

/// Most bytes of the failed message that an error answer repeats: the least that §7.4.4 demands, and no more, so that
/// an answer is never much longer than what provoked it.
pub const ERROR_ECHO: usize = 64;

impl ErrorMsg {
    /// The answer to `request` (a whole message) that `code` demands.
    pub fn answer(code: ErrorCode, request: &[u8]) -> Self {
        Self {
            kind: ErrorKind::Known(code),
            data: request[..request.len().min(ERROR_ECHO)].to_vec(),
        }
    }
}

/// Why bytes are no message, or a message is no valid request: the answer to give, and what was wrong where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}: {what}")]
pub struct Fault {
    /// The error to answer with.
    pub code: ErrorCode,
    /// What was wrong, in one clause for the log.
    pub what: &'static str,
}

impl Fault {
    /// A fault.
    pub const fn new(code: ErrorCode, what: &'static str) -> Self {
        Self { code, what }
    }
}

/// Why a value has no encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncodeError {
    /// The length field holds 16 bits.
    #[error("a message of {len} bytes does not fit OpenFlow's 65535")]
    TooLong {
        /// Bytes it would have had.
        len: usize,
    },
    /// The version has no such message or multipart.
    #[error("OpenFlow {version} has no such message")]
    NotInVersion {
        /// The version.
        version: Version,
    },
    /// One entry of a multipart list is longer than a message.
    #[error("one entry of a {kind:?} multipart does not fit a message")]
    EntryTooLong {
        /// Which multipart.
        kind: MultipartKind,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_numbers_and_named_uniquely() {
        let mut names = std::collections::BTreeSet::new();
        for &code in ErrorCode::ALL {
            let (kind, number) = code.numbers();
            assert_eq!(ErrorCode::from_numbers(kind, number), Some(code));
            assert!(names.insert(code.name()), "{code} twice");
        }
        assert_eq!(ErrorCode::ALL.len(), 111);
        assert_eq!(ErrorCode::from_numbers(14, 0), None);
    }
}
