//! A port changes and carries on: all of its keys, or none.

use super::keeper::{Keeper, control_fault, queues_fault};
use super::{Door, Wanted};
use api::{Fault, Kind, PortSpec};
use datapath::{PortAt, PortQueues};

impl Keeper {
    /// Brings these keys of a port to what `to` says. One that is not open has them when it is.
    ///
    /// # Errors
    /// The host refuses one; the others are as they were.
    pub(super) fn change(&mut self, to: Wanted, keys: &[&str]) -> Result<(), Fault> {
        let Wanted { at, door, queues, .. } = to;
        let Some((door_before, queues_before)) = self.before(at) else { return Ok(()) };
        for (done, key) in keys.iter().enumerate() {
            if let Err(fault) = self.bring(at, key, &door, &queues) {
                for key in keys[..done].iter().rev() {
                    // It was so a moment ago.
                    let _ = self.bring(at, key, &door_before, &queues_before);
                }
                self.refresh(at);
                return Err(fault);
            }
        }
        if let Some(entry) = self.entries.get_mut(&at) {
            (entry.wanted.door, entry.wanted.queues) = (door, queues);
        }
        self.refresh(at);
        self.tell_offload(at);
        Ok(())
    }

    /// What a port is brought back to: what was wanted, with the MTU that the interface has where none was.
    fn before(&self, at: PortAt) -> Option<(Door, PortQueues)> {
        let entry = self.entries.get(&at)?;
        let mut door = entry.wanted.door.clone();
        if let (Door::Interface(wanted), Some(control)) = (&mut door, entry.control()) {
            let (facts, spec) = (control.facts().ok(), &mut wanted.0);
            spec.mtu = spec.mtu.or(facts.map(|facts| facts.mtu));
        }
        Some((door, entry.wanted.queues.clone()))
    }

    fn bring(
        &mut self,
        at: PortAt,
        key: &str,
        door: &Door,
        queues: &PortQueues,
    ) -> Result<(), Fault> {
        if let "rate" | "queue" = key {
            return self.set_queues(at, queues);
        }
        let Some(entry) = self.entries.get(&at) else { return Ok(()) };
        let label = &entry.wanted.label;
        let Door::Interface(wanted) = door else {
            let cause = "a vlink passes frames of every size";
            let remedy = "set it on the ports behind the vlink";
            return Err(Fault::new(label, format!("set its {key}"), cause, remedy));
        };
        let Some(control) = entry.control() else { return Ok(()) };
        let changed = match key {
            "mtu" => mtu(&wanted.0).map_or(Ok(()), |mtu| control.set_mtu(mtu)),
            key => control.change(key, &wanted.0, &wanted.1),
        };
        changed.map_err(|error| control_fault(label, &error))
    }

    fn set_queues(&mut self, at: PortAt, queues: &PortQueues) -> Result<(), Fault> {
        let Some(entry) = self.entries.get_mut(&at) else { return Ok(()) };
        if entry.open.is_some() {
            let set = self.datapath.set_queues(at, queues);
            set.map_err(|error| queues_fault(&entry.wanted.label, &error))?;
        }
        entry.wanted.switch.set_queues(entry.number(), queues.clone());
        Ok(())
    }
}

/// The MTU to set; an interface of the kernel keeps the one it has where none is wanted.
fn mtu(spec: &PortSpec) -> Option<u32> {
    let is_ours = matches!(spec.kind, Kind::VhostUser(_) | Kind::Vxlan(_));
    spec.mtu.or(is_ours.then_some(0))
}
