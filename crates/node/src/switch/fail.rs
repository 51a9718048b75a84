//! What a switch does while no controller is there, and who counts as one: see [`FailMode`] (OpenFlow 1.3.5 §6.3.2).

use crate::spec::FailMode;
use crate::switch::listener::{Audience, Listener};
use crate::switch::{Control, Switch};
use flow::{FragMode, Miss, SwitchConfig};
use openflow::{ErrorCode, Fault, FragmentMode};
use std::sync::Arc;

impl Control {
    /// Puts fail mode and fragment mode in force.
    pub(crate) fn configure(&mut self, audience: Audience) {
        let alone = self.fail_mode == FailMode::Standalone && !audience.controller;
        let miss = match (alone, self.calls_controllers) {
            (false, _) if audience.takes_misses => Miss::Controller,
            (false, _) => Miss::Drop,
            (true, false) => Miss::Normal,
            (true, true) => Miss::Orphaned,
        };
        self.pipeline.set_config(SwitchConfig {
            miss,
            fragments: if self.fragments == FragmentMode::Drop {
                FragMode::Drop
            } else {
                FragMode::Normal
            },
            invalid_ttl_to_controller: true,
        });
    }
}

impl Switch {
    /// A connection hears events from now on; a controller ends the switch's being on its own.
    pub fn join(&self, listener: Arc<dyn Listener>) {
        self.listeners.add(listener);
        self.listeners_changed();
        self.reconfigure(|_| ());
    }

    /// A connection is gone.
    pub fn leave(&self, id: u64) {
        self.listeners.remove(id);
        self.listeners_changed();
        self.reconfigure(|_| ());
    }

    /// A connection that stays wants other events, or has another role: it may take packets without a match, or no longer.
    pub fn audience_changed(&self) {
        self.reconfigure(|_| ());
    }

    #[cfg(test)]
    pub(crate) fn audience(&self) -> Audience {
        self.listeners.audience()
    }

    /// Whether a controller is connected now.
    pub fn has_controller(&self) -> bool {
        self.listeners.any_controller()
    }

    /// Without a controller.
    pub fn fail_mode(&self) -> FailMode {
        self.control().fail_mode
    }

    /// Changes what happens without a controller.
    pub fn set_fail_mode(&self, mode: FailMode) {
        self.reconfigure(|control| control.fail_mode = mode);
    }

    /// Whether it calls controllers. While none of them is there, a standalone switch does by itself what it would ask them about; one
    /// that calls nobody is left to its rules, whoever wrote them.
    pub fn set_calls_controllers(&self, calls: bool) {
        self.reconfigure(|control| control.calls_controllers = calls);
    }

    /// What happens to fragments.
    pub fn fragments(&self) -> FragmentMode {
        self.control().fragments
    }

    /// Changes what happens to fragments.
    ///
    /// # Errors
    /// `OFPSCFC_BAD_FLAGS`: suiro does not reassemble.
    pub fn set_fragments(&self, fragments: FragmentMode) -> Result<(), Fault> {
        if fragments == FragmentMode::Reassemble {
            return Err(Fault::new(
                ErrorCode::SwitchConfigFailedBadFlags,
                "suiro does not reassemble fragments",
            ));
        }
        self.reconfigure(|control| control.fragments = fragments);
        Ok(())
    }

    fn reconfigure(&self, change: impl FnOnce(&mut Control)) {
        let mut control = self.control();
        change(&mut control);
        control.configure(self.listeners.audience());
        self.touch(&mut control);
    }
}
