//! Which controller may write (OpenFlow 1.3.5 §6.3.4).

use crate::switch::Switch;
use openflow::{ErrorCode, Fault, Role};

impl Switch {
    /// Listener `id` claims `role`; a new master makes the master before it a slave. [`Role::NoChange`] and [`Role::Equal`]
    /// need no generation. Returns the generation in force, `u64::MAX` while none is.
    ///
    /// # Errors
    /// `OFPRRFC_STALE` for a generation before one seen already, in the circular order of §6.3.4.
    pub fn claim_role(&self, id: u64, role: Role, generation: u64) -> Result<u64, Fault> {
        let mut control = self.control();
        if matches!(role, Role::Master | Role::Slave) {
            if control.generation.is_some_and(|seen| (generation.wrapping_sub(seen) as i64) < 0) {
                return Err(Fault::new(
                    ErrorCode::RoleRequestFailedStale,
                    "an older generation than one seen before",
                ));
            }
            control.generation = Some(generation);
        }
        // Under the lock: of two that claim at once, the later one is the master.
        if role != Role::NoChange {
            let before = self.listeners.describe();
            self.listeners.grant(id, role);
            let now = self.listeners.describe();
            let changed = before.iter().zip(&now).filter(|(before, now)| before.role != now.role);
            changed.for_each(|(_, now)| self.tell_controller(now, "has another role"));
        }
        Ok(control.generation.unwrap_or(u64::MAX))
    }
}
