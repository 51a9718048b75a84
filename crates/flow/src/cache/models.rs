//! What packets of a port were like lately that all went one way: the next ones most often are like them, and need no search then.

use super::attempts::Attempts;
use super::ways;
use crate::action::PortNo;
use crate::store::RecordId;
use wire::Pattern;

/// What is known of packets like one: the entry that each finds, and the port by which it leaves as it is.
pub(crate) struct Model {
    pub(crate) pattern: Pattern,
    pub(crate) entry: RecordId,
    pub(crate) port: PortNo,
}

/// One port of one snapshot; no snapshot has serial 0.
#[derive(Default)]
struct Place {
    serial: u64,
    in_port: PortNo,
    model: Option<Model>,
    attempts: Attempts,
}

/// What is known, by port, in places as [`ways`] has them.
pub(crate) struct Models(Box<[Place]>);

impl Default for Models {
    fn default() -> Self {
        Self((0..ways::PLACES).map(|_| Place::default()).collect())
    }
}

impl Models {
    /// What is known of packets of a port of the snapshot with this serial.
    #[inline]
    pub(crate) fn get(&self, serial: u64, in_port: PortNo) -> Option<&Model> {
        let place = &self.0[ways::place(serial, in_port)];
        place.model.as_ref().filter(|_| (place.serial, place.in_port) == (serial, in_port))
    }

    /// Keeps it.
    pub(crate) fn set(&mut self, serial: u64, in_port: PortNo, model: Model) {
        let place = &mut self.0[ways::place(serial, in_port)];
        (place.serial, place.in_port, place.model) = (serial, in_port, Some(model));
    }

    /// Whether to try it: a guess, which ports may share.
    #[inline]
    pub(crate) fn attempts(&mut self, serial: u64, in_port: PortNo) -> &mut Attempts {
        &mut self.0[ways::place(serial, in_port)].attempts
    }
}
