//! What all connections of one controller share: role, wanted events, and who carries its packet-ins (OpenFlow 1.3.5 §6.3.4,
//! §6.3.7, §7.3.10).
//!
//! A main connection has a channel of its own; its auxiliary connections use it too. Atomics, because an event that crosses a change
//! may be sent by the old or by the new setting; one lock around the list of auxiliary connections.

use crate::agent::peer::Peer;
use openflow::{AsyncConfig, Role};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

/// Kinds of events that [`AsyncConfig`] tells apart.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// `OFPT_PACKET_IN`.
    PacketIn,
    /// `OFPT_PORT_STATUS`.
    PortStatus,
    /// `OFPT_FLOW_REMOVED`.
    FlowRemoved,
}

/// One controller.
pub struct Channel {
    /// Its main connection's.
    id: u64,
    role: AtomicU8,
    /// By [`Kind`], then as equal or master (0) and as slave (1).
    masks: [[AtomicU32; 2]; 3],
    miss_send_len: AtomicU16,
    hears: AtomicBool,
    claimed: AtomicBool,
    auxiliaries: RwLock<Vec<Arc<Peer>>>,
}

impl Channel {
    /// A controller that has just come; `hears` says whether it gets events without asking.
    pub fn new(id: u64, hears: bool, miss_send_len: u16) -> Self {
        let channel = Self {
            id,
            role: AtomicU8::new(Role::Equal.wire() as u8),
            masks: Default::default(),
            miss_send_len: AtomicU16::new(miss_send_len),
            hears: AtomicBool::new(false),
            claimed: AtomicBool::new(hears),
            auxiliaries: RwLock::default(),
        };
        channel.set_async_config(&AsyncConfig::default());
        channel.hears.store(hears, Relaxed);
        channel
    }

    /// Its main connection's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its role.
    pub fn role(&self) -> Role {
        Role::from_wire(self.role.load(Relaxed).into()).unwrap_or(Role::Equal)
    }

    /// Changes its role.
    pub fn set_role(&self, role: Role) {
        self.role.store(role.wire() as u8, Relaxed);
    }

    /// Which events it wants.
    pub fn async_config(&self) -> AsyncConfig {
        let load = |kind: Kind| self.masks[kind as usize].each_ref().map(|mask| mask.load(Relaxed));
        AsyncConfig {
            packet_in: load(Kind::PacketIn),
            port_status: load(Kind::PortStatus),
            flow_removed: load(Kind::FlowRemoved),
        }
    }

    /// Changes which events it wants; it hears them from now on.
    pub fn set_async_config(&self, config: &AsyncConfig) {
        let wanted = [config.packet_in, config.port_status, config.flow_removed];
        for (mask, wanted) in self.masks.iter().flatten().zip(wanted.into_iter().flatten()) {
            mask.store(wanted, Relaxed);
        }
        self.set_hears(true);
    }

    /// Whether it hears events at all.
    pub fn set_hears(&self, hears: bool) {
        self.hears.store(hears, Relaxed);
    }

    /// Bytes of a packet that no action limits.
    pub fn miss_send_len(&self) -> u16 {
        self.miss_send_len.load(Relaxed)
    }

    /// Changes it.
    pub fn set_miss_send_len(&self, bytes: u16) {
        self.miss_send_len.store(bytes, Relaxed);
    }

    /// Whether it behaves as a controller: it was called, asked for events, or claimed a role.
    pub fn is_claimed(&self) -> bool {
        self.claimed.load(Relaxed)
    }

    /// It behaves as one from now on; true the first time.
    pub fn claim(&self) -> bool {
        !self.claimed.swap(true, Relaxed)
    }

    /// Whether it wants events of this kind and reason.
    pub(super) fn wants(&self, kind: Kind, reason: u8) -> bool {
        let mask = &self.masks[kind as usize][usize::from(self.role() == Role::Slave)];
        self.hears.load(Relaxed) && mask.load(Relaxed) >> reason & 1 == 1
    }

    /// An auxiliary connection stands.
    pub fn join(&self, peer: Arc<Peer>) {
        self.auxiliaries.write().unwrap_or_else(PoisonError::into_inner).push(peer);
    }

    /// An auxiliary connection is gone.
    pub fn leave(&self, id: u64) {
        self.auxiliaries
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|peer| peer.channel_member() != id);
    }

    /// How many auxiliary connections stand.
    pub fn auxiliaries(&self) -> usize {
        self.auxiliaries.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The auxiliary connection that carries packets like this one, always the same for one flow; none while there is none.
    pub fn carrier(&self, in_port: u32, frame: &[u8]) -> Option<Arc<Peer>> {
        let peers = self.auxiliaries.read().unwrap_or_else(PoisonError::into_inner);
        if peers.is_empty() {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (in_port, flow_of(frame)).hash(&mut hasher);
        Some(peers[(hasher.finish() % peers.len() as u64) as usize].clone())
    }
}

/// What the packets of one flow have in common, as far as a spread needs it: MAC addresses and type, and IPv4 addresses.
fn flow_of(frame: &[u8]) -> (&[u8], &[u8]) {
    let link = &frame[..frame.len().min(14)];
    let is_ipv4 = link.get(12..14) == Some(&[8, 0]);
    (link, frame.get(26..34).filter(|_| is_ipv4).unwrap_or_default())
}
