//! A switch's side of the datapath, and a journal that can be shut while a switch is being brought up.

use crate::journal::{Change, Journal, Wait};
use crate::offload::Offload;
use crate::ports::Ports;
use crate::switch::{Emission, Plane};
use datapath::{
    Clock, Datapath, MonotonicClock, PacketOut, PortAt, PortCounters, Publisher, QueueCounters,
    SwitchId,
};
use flow::{Nanos, PortNo, Snapshot};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// One switch on the datapath.
pub struct DatapathPlane {
    /// The switch.
    pub id: SwitchId,
    /// The workers.
    pub datapath: Arc<Datapath>,
    /// Where its tables go.
    pub publisher: Arc<Publisher>,
    /// Who sets interfaces up and down.
    pub ports: Arc<Ports>,
    /// Who has flows past the workers.
    pub offload: Arc<Offload>,
}

impl Plane for DatapathPlane {
    fn now(&self) -> Nanos {
        MonotonicClock.now()
    }

    fn publish(&self, tables: Arc<Snapshot>) {
        self.publisher.publish(tables);
        self.offload.published(self.id);
    }

    fn settle(&self) {
        self.datapath.barrier();
        self.offload.settle(self.id);
    }

    fn refresh(&self) {
        self.offload.refresh();
    }

    fn keep_frames(&self, keep: bool) {
        self.publisher.set_keeps_frames(keep);
    }

    fn packet_out(&self, emission: Emission) {
        let Emission { in_port, frame, offload, actions } = emission;
        let out = PacketOut { switch: self.id, in_port, frame, offload, actions };
        // Refused when too many wait: lost as on a full queue. The switch's counters show what was sent.
        if let Err(error) = self.datapath.packet_out(out) {
            tracing::debug!("packet-out lost: {error}");
        }
    }

    fn port_counters(&self, port: PortNo) -> PortCounters {
        self.datapath.port_counters(PortAt { switch: self.id, port }).unwrap_or_default()
    }

    fn queue_counters(&self, port: PortNo) -> Vec<QueueCounters> {
        self.datapath.queue_counters(PortAt { switch: self.id, port })
    }

    fn set_port_admin(&self, port: PortNo, up: bool) {
        self.ports.set_admin(PortAt { switch: self.id, port }, up);
    }
}

/// Passes changes on once it is opened: what a switch is brought up with is on disk or in the file already.
pub struct Gate {
    journal: Arc<dyn Journal>,
    open: AtomicBool,
    /// Changes of flows, groups and meters that passed.
    rules: AtomicU64,
}

impl Gate {
    /// Shut.
    pub fn shut(journal: Arc<dyn Journal>) -> Arc<Self> {
        Arc::new(Self { journal, open: AtomicBool::new(false), rules: AtomicU64::new(0) })
    }

    /// How many changes of flows, groups and meters have passed since it was opened.
    pub fn rule_changes(&self) -> u64 {
        self.rules.load(Relaxed)
    }

    /// Opens it for good.
    pub fn open(&self) {
        self.open.store(true, Relaxed);
    }
}

impl Journal for Gate {
    fn record(&self, change: Change) {
        if self.open.load(Relaxed) {
            let is_other = matches!(
                change,
                Change::Tables(_)
                    | Change::PortConfig { .. }
                    | Change::Used { .. }
                    | Change::Counted(_)
            );
            self.rules.fetch_add(u64::from(!is_other), Relaxed);
            self.journal.record(change);
        }
    }

    fn room(&self) -> Wait<'_> {
        self.journal.room()
    }

    fn flushed(&self) -> Wait<'_> {
        self.journal.flushed()
    }
}
