//! Errors that OpenFlow has no code for, told as `OFPET_EXPERIMENTER`. 1.0 has no such errors and is told `OFPBRC_EPERM`.

use crate::error::ErrorKind;
use crate::oxm::SUIRO;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Why the host cannot do what is asked.
    SteerError: u16 {
        /// The switch's owner has not let its controllers program the host.
        NotAllowed = 1,
        /// The named interface is not attached.
        UnknownInterface = 2,
        /// No such core, or one that is excluded from packet processing.
        BadCore = 3,
        /// The entry is one that this host cannot look up, or whose frames nothing tells.
        Unsupported = 4,
        /// The host refused; the node's log says why.
        Host = 5,
    }
}

impl SteerError {
    /// As an error message says it.
    pub const fn kind(self) -> ErrorKind {
        ErrorKind::Experimenter { experimenter: SUIRO, exp_type: self.wire() }
    }
}
