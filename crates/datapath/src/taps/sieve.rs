//! What a capture wants of the frames that are seen elsewhere than at workers: its filter, its share, its budget, the same as at workers.

use super::share::{Chooser, Purse};
use super::{Filter, Share};
use crate::id::{PortAt, SwitchId};
use flow::Nanos;
use port::Body;

/// Frames there are at no port of a switch: no match of one takes them.
const NOWHERE: PortAt = PortAt { switch: SwitchId(0), port: 0 };

/// One capture's, for one place.
pub struct Sieve {
    filter: Filter,
    chooser: Chooser,
    purse: Purse,
}

impl Sieve {
    /// For frames that the filter takes, and this share of them.
    pub fn new(filter: Filter, share: &Share) -> Self {
        Self { filter, chooser: Chooser::new(share), purse: Purse::new(share) }
    }

    /// Whether it wants a frame at a point.
    pub fn takes(&mut self, point: usize, bytes: &[u8]) -> bool {
        let (place, body) = ((NOWHERE, point), Body::default());
        self.filter.takes(NOWHERE, bytes, body) && self.chooser.takes(place, bytes, body)
    }

    /// Charges it for time that its frames took, until now.
    pub fn pay(&mut self, now: Nanos, spent_ns: u64) {
        self.purse.fill(now);
        self.purse.spend(spent_ns);
    }

    /// Whether its budget allows records.
    pub fn may_write(&self) -> bool {
        self.purse.may_write()
    }

    /// Whether its budget allows to look at frames at all.
    pub fn may_look(&self) -> bool {
        self.purse.may_look()
    }
}
