//! What the control thread knows of switches and ports, and the places it gives them in the workers' tables.

use super::capture::Running;
use crate::counters::{PortBlock, blocks};
use crate::id::{PortAt, PortIx, SwitchId, SwitchIx};
use crate::shape::PortQueuesShared;
use crate::shared::PortShared;
use crate::steering::Shared as Steered;
use crate::switch::SwitchShared;
use crate::taps::CaptureId;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A switch in service.
pub(super) struct SwitchEntry {
    pub(super) ix: SwitchIx,
    pub(super) shared: Arc<SwitchShared>,
    /// How its flows are steered between workers, if they are.
    pub(super) steered: Option<Arc<Steered>>,
}

/// A port in service.
pub(super) struct PortEntry {
    pub(super) ix: PortIx,
    pub(super) shared: Arc<PortShared>,
    /// The other end, if it is a vlink.
    pub(super) peer: Option<PortAt>,
    /// The worker of each receive queue.
    pub(super) workers: Vec<usize>,
    /// Its queues and rates, if it has any.
    pub(super) queues: Option<Arc<PortQueuesShared>>,
}

/// All of them.
pub(super) struct Registry {
    pub(super) switches: HashMap<SwitchId, SwitchEntry>,
    pub(super) ports: BTreeMap<PortAt, PortEntry>,
    /// What was counted at ports in service, and at those that may come back ([`super::Datapath::forget_port`]).
    pub(super) counted: BTreeMap<PortAt, Arc<[PortBlock]>>,
    /// Receive queues of each worker.
    pub(super) queues: Vec<usize>,
    /// Captures under way.
    pub(super) captures: Vec<Running>,
    /// Timings under way, and of which switch.
    pub(super) timings: Vec<(CaptureId, SwitchId)>,
    /// Number of the last capture that began.
    pub(super) last_capture: u32,
    switch_places: Places,
    port_places: Places,
}

/// Places in a table: those given back, and where the untouched ones begin.
#[derive(Default)]
struct Places {
    free: Vec<u32>,
    next: u32,
}

impl Places {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

impl Registry {
    /// What was counted at a port so far.
    pub(super) fn counters(&mut self, at: PortAt) -> Arc<[PortBlock]> {
        // The last is for frames that no worker saw.
        let blocks = || blocks(self.queues.len() + 1).into();
        self.counted.entry(at).or_insert_with(blocks).clone()
    }

    pub(super) fn new(workers: usize) -> Self {
        Self {
            switches: HashMap::new(),
            counted: BTreeMap::new(),
            ports: BTreeMap::new(),
            queues: vec![0; workers],
            captures: Vec::new(),
            timings: Vec::new(),
            last_capture: 0,
            switch_places: Places::default(),
            port_places: Places::default(),
        }
    }

    pub(super) fn take_switch_place(&mut self) -> SwitchIx {
        SwitchIx(self.switch_places.take())
    }

    pub(super) fn give_switch_place(&mut self, ix: SwitchIx) {
        self.switch_places.free.push(ix.0);
    }

    pub(super) fn take_port_place(&mut self) -> PortIx {
        PortIx(self.port_places.take())
    }

    pub(super) fn give_port_place(&mut self, ix: PortIx) {
        self.port_places.free.push(ix.0);
    }

    /// The ports of a switch, in order of number.
    pub(super) fn ports_of(&self, switch: SwitchId) -> impl Iterator<Item = (&PortAt, &PortEntry)> {
        let at = |port| PortAt { switch, port };
        self.ports.range(at(0)..=at(u32::MAX))
    }
}
