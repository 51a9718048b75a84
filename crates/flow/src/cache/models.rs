//! What packets of a port were like lately that all went one way: the next ones most often are like them, and need no search then.

use super::attempts::Attempts;
use super::ways::{PLACES, Place};
use crate::action::PortNo;
use crate::store::RecordId;
use wire::Pattern;

/// What is known of packets like one: the entry that each finds, and the port by which it leaves as it is.
pub(crate) struct Model {
    pub(crate) pattern: Pattern,
    pub(crate) entry: RecordId,
    pub(crate) port: PortNo,
}

/// One port at one version, which is never 0.
#[derive(Default)]
struct Kept {
    place: Place,
    version: u64,
    model: Option<Model>,
    attempts: Attempts,
}

/// What is known, by port.
pub(crate) struct Models(Box<[Kept]>);

impl Default for Models {
    fn default() -> Self {
        Self((0..PLACES).map(|_| Kept::default()).collect())
    }
}

impl Models {
    /// What is known of packets of a port whose tables have this version.
    #[inline]
    pub(crate) fn get(&self, place: Place, version: u64) -> Option<&Model> {
        let kept = &self.0[place.at()];
        kept.model.as_ref().filter(|_| (kept.version, kept.place) == (version, place))
    }

    /// Keeps it.
    pub(crate) fn set(&mut self, place: Place, version: u64, model: Model) {
        let kept = &mut self.0[place.at()];
        (kept.place, kept.version, kept.model) = (place, version, Some(model));
    }

    /// Whether to try it: a guess, which ports may share.
    #[inline]
    pub(crate) fn attempts(&mut self, place: Place) -> &mut Attempts {
        &mut self.0[place.at()].attempts
    }
}
