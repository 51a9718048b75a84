//! What ports have of the host while they come or go: nobody else's change may take it meanwhile.

use super::taken::Taken;
use api::{PortName, PortSpec, SwitchName};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A port that comes or goes.
#[derive(Clone, PartialEq)]
struct Claimed {
    switch: SwitchName,
    name: PortName,
    spec: PortSpec,
}

/// All of them.
#[derive(Default)]
pub struct Claims(Mutex<Vec<Claimed>>);

/// One of them, for as long as this lives.
pub struct Claim<'c> {
    of: &'c Claims,
    claimed: Claimed,
}

impl Claims {
    /// A port that contradicts no other comes, or one that is there goes.
    pub fn claim(&self, switch: &SwitchName, name: &PortName, spec: &PortSpec) -> Claim<'_> {
        let claimed = Claimed { switch: switch.clone(), name: name.clone(), spec: spec.clone() };
        self.lock().push(claimed.clone());
        Claim { of: self, claimed }
    }

    /// Notes them as taken.
    pub fn add_to(&self, taken: &mut Taken) {
        for Claimed { switch, name, spec } in &*self.lock() {
            taken.add_port(switch, name, spec, "which comes or goes just now");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Claimed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut all = self.of.lock();
        let place = all.iter().position(|claimed| *claimed == self.claimed);
        place.into_iter().for_each(|place| drop(all.swap_remove(place)));
    }
}
