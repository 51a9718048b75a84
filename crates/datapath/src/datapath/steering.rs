//! Steering of switches between the workers: begun, changed, ended.

use super::registry::Registry;
use super::start::random;
use super::{Command, Datapath, Steering};
use crate::id::{SwitchId, SwitchIx};
use crate::steering::{self, Choosing, Classifier, Settled, Shared, Steered, SteeringError};
use place::CoreId;
use place::steering::{Options, Unmatched};
use std::sync::Arc;

impl Datapath {
    /// Steers the flows of a switch between the workers from now on: without a core table they stay where they arrive, until
    /// [`Steering::set_core_table`] is called.
    ///
    /// # Errors
    /// [`SteeringError`]: nothing is steered then.
    pub fn steer(&self, switch: SwitchId, options: Options) -> Result<Steering, SteeringError> {
        if self.workers.len() < 2 {
            return Err(SteeringError::OneWorker);
        }
        if let Unmatched::Groups(groups) = options.unmatched
            && !(groups.is_power_of_two() && u32::from(groups) <= place::steering::GROUPS_MAX)
        {
            return Err(SteeringError::Groups(groups));
        }
        let secret = [random(), random()];
        let classifier = Classifier::new(&[], (options.unmatched, options.is_fcf), secret);
        let classifier = Arc::new(classifier.map_err(|_| SteeringError::Masks)?);
        let cores: Box<[CoreId]> =
            self.workers.iter().map(|worker| CoreId(worker.core as u16)).collect();
        let shared = Arc::new(Shared::new(cores, Choosing::new()));
        let mut registry = self.registry();
        let is_first = !registry.is_steering();
        let entry = registry.switches.get_mut(&switch).ok_or(SteeringError::NoSwitch(switch))?;
        if entry.steered.is_some() {
            return Err(SteeringError::Steered(switch));
        }
        entry.steered = Some(Arc::clone(&shared));
        let ix = entry.ix;
        let wakers: Vec<_> =
            self.workers.iter().map(|worker| Arc::clone(&worker.mailbox.waker)).collect();
        let mut parts = if is_first { steering::connect(&wakers) } else { Vec::new() }.into_iter();
        self.ask_all(|_, reply| {
            let steered = Steered::new(switch, Arc::clone(&shared), Arc::clone(&classifier));
            Command::Steer {
                ix,
                part: parts.next().map(Box::new),
                steered: Box::new(steered),
                reply,
            }
        });
        Ok(Steering::new((switch, shared), options, secret, classifier))
    }

    /// Steers it no more; returns when no frame is on its way between workers. Nothing happens if it is not steered by this.
    pub fn unsteer(&self, steering: &Steering) {
        let mut registry = self.registry();
        if registry.ix_of(steering).is_some() {
            self.end_steering(&mut registry, steering.switch());
        }
    }

    /// Whether workers hand each other frames of the switch.
    pub fn steers(&self, switch: SwitchId) -> bool {
        self.registry().switches.get(&switch).is_some_and(|entry| entry.steered.is_some())
    }

    /// Whether the switch is there, and steered by this.
    pub fn is_steered(&self, steering: &Steering) -> bool {
        self.registry().ix_of(steering).is_some()
    }

    pub(crate) fn reclassify(
        &self,
        steering: &Steering,
        classifier: &Arc<Classifier>,
    ) -> Result<(), SteeringError> {
        let registry = self.registry();
        let ix = registry.ix_of(steering).ok_or(SteeringError::NoSwitch(steering.switch()))?;
        // The answers hold the entries that were: they end on this thread.
        let _: Vec<Settled> = self.ask_all(|_, reply| Command::Reclassify {
            ix,
            classifier: Arc::clone(classifier),
            reply,
        });
        Ok(())
    }

    pub(super) fn end_steering(&self, registry: &mut Registry, switch: SwitchId) {
        let Some(entry) = registry.switches.get_mut(&switch) else { return };
        if entry.steered.take().is_none() {
            return;
        }
        let ix = entry.ix;
        let _: Vec<Settled> = self.ask_all(|_, reply| Command::Unsteer { ix, reply });
        if !registry.is_steering() {
            self.ask_all(|_, reply| Command::Disconnect { reply });
        }
    }
}

impl Registry {
    fn is_steering(&self) -> bool {
        self.switches.values().any(|switch| switch.steered.is_some())
    }

    fn ix_of(&self, steering: &Steering) -> Option<SwitchIx> {
        let entry = self.switches.get(&steering.switch())?;
        entry.steered.as_ref().filter(|steered| steering.is_of(steered)).map(|_| entry.ix)
    }
}
