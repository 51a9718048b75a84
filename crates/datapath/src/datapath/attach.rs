//! Switches and ports into service and out of it; a controller's frames.

use super::registry::{PortEntry, Registry, SwitchEntry};
use super::{Command, Datapath, Reply};
use crate::command::Injected;
use crate::id::{PortAt, PortIx, SwitchId, SwitchIx};
use crate::local::{LocalPort, Sink};
use crate::placement;
use crate::quota::Quota;
use crate::shared::PortShared;
use crate::switch::{Publisher, SwitchShared};
use flow::{Action, PortNo, Snapshot};
use port::{RxQueue, TxQueue};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wire::Offload;

/// A vlink has no MTU of its own: the ports behind it do.
const VLINK_MTU: u32 = u32::MAX;

/// A port's queues, on their way to the workers.
pub struct Queues {
    /// Receive queues; each is given to one worker.
    pub rx: Vec<Box<dyn RxQueue>>,
    /// Sending halves, one for each worker, in the order of [`crate::Config::cores`].
    pub tx: Vec<Box<dyn TxQueue>>,
    /// Longest packet after the Ethernet header and VLAN tags.
    pub mtu: u32,
}

/// Why something did not come into service.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The datapath has no such switch.
    #[error("{0} is not in service")]
    NoSwitch(SwitchId),
    /// The number is taken.
    #[error("{0} is in service already")]
    PortInUse(PortAt),
    /// A vlink cannot end where it begins.
    #[error("a vlink from {0} to itself")]
    Itself(PortAt),
    /// Every worker needs a sending half.
    #[error("{at} has {have} sending halves for {need} workers")]
    TxQueues {
        /// The port.
        at: PortAt,
        /// How many it has.
        have: usize,
        /// How many there must be.
        need: usize,
    },
    /// A receive queue's file descriptor cannot be watched.
    #[error("{at}: watching a receive queue failed")]
    Watch {
        /// The port.
        at: PortAt,
        /// Why.
        source: io::Error,
    },
}

/// A frame that a controller sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketOut {
    /// The switch.
    pub switch: SwitchId,
    /// What the tables and `Output::InPort` take for its ingress port; need not exist.
    pub in_port: PortNo,
    /// The frame, no FCS.
    pub frame: Vec<u8>,
    /// What is still to be done to it; the default for a frame that is complete with its checksums.
    pub offload: Offload,
    /// What to do with it.
    pub actions: Vec<Action>,
}

/// Why a packet-out was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PacketOutError {
    /// The datapath has no such switch.
    #[error("{0} is not in service")]
    NoSwitch(SwitchId),
    /// Too many packet-outs wait; the controller is faster than the worker.
    #[error("{0}: too many packet-outs wait")]
    Full(SwitchId),
}

impl Datapath {
    /// Brings a switch without ports into service. `tables` is what its first frames meet.
    ///
    /// A switch of that number that is still in service is removed first.
    pub fn add_switch(&self, switch: SwitchId, tables: Arc<Snapshot>) -> Arc<Publisher> {
        self.remove_switch(switch);
        let quota = Quota::new(self.config.packet_in_per_s, self.events.share());
        let shared = SwitchShared::new(switch, tables, quota, self.workers.len());
        let mut registry = self.registry();
        let ix = registry.take_switch_place();
        self.ask_all(|_, reply| Command::AddSwitch { ix, shared: Arc::clone(&shared), reply });
        registry
            .switches
            .insert(switch, SwitchEntry { ix, shared: Arc::clone(&shared), steered: None });
        Publisher::new(shared)
    }

    /// Takes a switch and its ports out of service. Nothing happens if it is not there.
    pub fn remove_switch(&self, switch: SwitchId) {
        let mut registry = self.registry();
        self.end_steering(&mut registry, switch);
        let ports: Vec<PortAt> = registry.ports_of(switch).map(|(&at, _)| at).collect();
        for at in ports {
            self.take_out(&mut registry, at);
        }
        registry.counted.retain(|at, _| at.switch != switch);
        if let Some(entry) = registry.switches.remove(&switch) {
            self.ask_all(|_, reply| Command::RemoveSwitch { ix: entry.ix, reply });
            registry.give_switch_place(entry.ix);
        }
    }

    /// Brings a port into service: every worker can send to it, and one worker polls each receive queue.
    ///
    /// # Errors
    /// [`AttachError`]: nothing of it is in service then, and its queues are dropped.
    pub fn attach(&self, at: PortAt, queues: Queues) -> Result<(), AttachError> {
        let Queues { rx, tx, mtu } = queues;
        let (have, need) = (tx.len(), self.workers.len());
        if have != need {
            return Err(AttachError::TxQueues { at, have, need });
        }
        let mut registry = self.registry();
        let switch = registry.vacant(at)?;
        let shared = PortShared::new(at, mtu, registry.counters(at));
        let ix = registry.take_port_place();
        let (workers, rx) = assign(&mut registry, rx);
        let entry =
            PortEntry { ix, shared: Arc::clone(&shared), peer: None, workers, queues: None };
        registry.show_tap(at, &entry);
        registry.ports.insert(at, entry);
        let mut parts = tx.into_iter().zip(rx);
        let answers = self.ask_all(|_, reply| {
            let (tx, rx) = parts.next().expect("there is a part for every worker");
            let port = LocalPort::new(Arc::clone(&shared), switch, Sink::Queue(tx));
            Command::Attach { ix, port: Box::new(port), rx, reply }
        });
        for answer in answers {
            if let Reply::Failed(source, _) = answer {
                self.take_out(&mut registry, at);
                return Err(AttachError::Watch { at, source });
            }
        }
        Ok(())
    }

    /// Joins two switches (or two ports of one): what one end sends, the other receives, in the same pass.
    ///
    /// # Errors
    /// [`AttachError`]: nothing is in service then.
    pub fn attach_vlink(&self, one: PortAt, other: PortAt) -> Result<(), AttachError> {
        if one == other {
            return Err(AttachError::Itself(one));
        }
        let mut registry = self.registry();
        let switches = [registry.vacant(one)?, registry.vacant(other)?];
        let places = [registry.take_port_place(), registry.take_port_place()];
        for (end, (at, peer)) in [(one, other), (other, one)].into_iter().enumerate() {
            let shared = PortShared::new(at, VLINK_MTU, registry.counters(at));
            let (ix, sink) = (places[end], || Sink::Vlink(places[1 - end]));
            self.ask_all(|_, reply| {
                let port = LocalPort::new(Arc::clone(&shared), switches[end], sink());
                Command::Attach { ix, port: Box::new(port), rx: Vec::new(), reply }
            });
            let entry =
                PortEntry { ix, shared, peer: Some(peer), workers: Vec::new(), queues: None };
            registry.show_tap(at, &entry);
            registry.ports.insert(at, entry);
        }
        Ok(())
    }

    /// Takes a port out of service. When this returns, no worker holds its queues: they were dropped on this thread. A
    /// vlink goes with both its ends. What was counted stays for the port's return. Returns false if there was no such port.
    pub fn detach(&self, at: PortAt) -> bool {
        self.take_out(&mut self.registry(), at)
    }

    /// Forgets what was counted at a port that is out of service and does not come back.
    pub fn forget_port(&self, at: PortAt) {
        let mut registry = self.registry();
        if !registry.ports.contains_key(&at) {
            registry.counted.remove(&at);
        }
    }

    fn take_out(&self, registry: &mut Registry, at: PortAt) -> bool {
        let Some(entry) = registry.ports.remove(&at) else { return false };
        let far = entry.peer.and_then(|peer| registry.ports.remove(&peer));
        for entry in std::iter::once(entry).chain(far) {
            self.give_up(registry, entry);
        }
        true
    }

    fn give_up(&self, registry: &mut Registry, entry: PortEntry) {
        let ix: PortIx = entry.ix;
        self.ask_all(|_, reply| Command::Detach { ix, reply });
        for worker in entry.workers {
            registry.queues[worker] -= 1;
        }
        registry.give_port_place(ix);
    }

    /// Changes the longest packet (after the Ethernet header and tags) that may leave by a port; false if there is none.
    pub fn set_mtu(&self, at: PortAt, mtu: u32) -> bool {
        self.registry().ports.get(&at).map(|entry| entry.shared.mtu.store(mtu, Relaxed)).is_some()
    }

    /// Opens or shuts a port: through one that is down nothing comes and nothing leaves. False if there is none.
    pub fn set_up(&self, at: PortAt, up: bool) -> bool {
        self.registry().ports.get(&at).map(|entry| entry.shared.up.store(up, Relaxed)).is_some()
    }

    /// Has a worker send a frame, always the same worker for one switch, so that a controller's frames keep their order.
    ///
    /// # Errors
    /// [`PacketOutError`]: the frame is not sent.
    pub fn packet_out(&self, out: PacketOut) -> Result<(), PacketOutError> {
        let PacketOut { switch, in_port, frame, offload, actions } = out;
        let ix = self.registry().switches.get(&switch).map(|entry| entry.ix);
        let ix: SwitchIx = ix.ok_or(PacketOutError::NoSwitch(switch))?;
        let worker = &self.workers[ix.0 as usize % self.workers.len()];
        let injected = Injected { ix, switch, in_port, frame, offload, actions };
        if worker.mailbox.packet_out(injected) { Ok(()) } else { Err(PacketOutError::Full(switch)) }
    }
}

impl Registry {
    /// The place of the switch on which `at` is free.
    fn vacant(&self, at: PortAt) -> Result<SwitchIx, AttachError> {
        let entry = self.switches.get(&at.switch).ok_or(AttachError::NoSwitch(at.switch))?;
        if self.ports.contains_key(&at) {
            return Err(AttachError::PortInUse(at));
        }
        Ok(entry.ix)
    }
}

/// Gives each receive queue to a worker: the worker of each, and the queues of each worker.
fn assign(
    registry: &mut Registry,
    rx: Vec<Box<dyn RxQueue>>,
) -> (Vec<usize>, Vec<Vec<Box<dyn RxQueue>>>) {
    let mut by_worker: Vec<Vec<_>> = registry.queues.iter().map(|_| Vec::new()).collect();
    let mut workers = Vec::new();
    for queue in rx {
        let worker = placement::choose(&registry.queues);
        registry.queues[worker] += 1;
        workers.push(worker);
        by_worker[worker].push(queue);
    }
    (workers, by_worker)
}
