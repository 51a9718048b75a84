//! Who hears of a switch's events: controllers, and whoever else asked. The switch knows them only by this trait.

use crate::switch::port::SwitchPort;
use flow::{PacketIn, PacketInReason, PortNo};
use openflow::{FlowRemoved, Role};
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

/// A frame on its way to the controllers, borrowed from the datapath's event.
#[derive(Clone, Copy, Debug)]
pub struct PacketInEvent<'a> {
    /// Port by which it entered.
    pub in_port: PortNo,
    /// Its bytes, perhaps cut.
    pub data: &'a [u8],
    /// Bytes of the whole frame.
    pub total_len: u32,
    /// Reason, table, cookie.
    pub why: PacketIn,
    /// Table metadata when it left the tables.
    pub metadata: u64,
    /// Tunnel id.
    pub tunnel_id: u64,
    /// The tunnel's end that sent it, if it has a number.
    pub tun_src: Option<IpAddr>,
    /// The end that rules chose for it.
    pub tun_dst: Option<IpAddr>,
    /// Where the switch keeps the whole frame, if it does.
    pub buffer_id: Option<u32>,
}

impl PacketInEvent<'_> {
    /// Whether no entry sent it, as one of the switch's versions demands of a packet without a match.
    pub fn is_unasked(&self) -> bool {
        self.why.reason == PacketInReason::NoMatch && self.why.cookie == u64::MAX
    }
}

/// What happened to a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortEvent {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// Its state or configuration changed.
    Changed,
}

/// Something that the protocol tells without being asked.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A frame for the controller.
    PacketIn(&'a PacketInEvent<'a>),
    /// An entry is gone.
    FlowRemoved(&'a FlowRemoved),
    /// A port came, went or changed.
    Port(PortEvent, &'a SwitchPort),
}

/// A connection that hears events. Calls must not wait: they come under the switch's lock.
pub trait Listener: Send + Sync {
    /// Unique in the switch.
    fn id(&self) -> u64;

    /// Whether the switch is not on its own while this listener is there.
    fn is_controller(&self) -> bool;

    /// Whether packets that no entry matches go to it, without an entry that says so (OpenFlow 1.0).
    fn takes_misses(&self) -> bool {
        false
    }

    /// Whether it is to get only the beginning of this frame, and so has use for a buffer that keeps all of it.
    fn wants_buffer(&self, _event: &PacketInEvent<'_>) -> bool {
        false
    }

    /// Takes the event, if it wants it.
    fn hear(&self, event: Event<'_>);

    /// Another one became master.
    fn become_slave(&self);

    /// What it shares with the auxiliary connections beside it: the main connection's id.
    fn controller_id(&self) -> u64 {
        self.id()
    }

    /// It was granted this role.
    fn take_role(&self, _role: Role) {}

    /// For `switch show` and the API.
    fn describe(&self) -> Connection;
}

/// A connection, as the API shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    /// The peer's address.
    pub peer: String,
    /// Who is behind it: of a caller the host alone.
    pub who: String,
    /// Whether it is a controller of the switch or a visitor (`ovs-ofctl`).
    pub controller: bool,
    /// 0 for a main connection (OpenFlow 1.3.5 §6.3.7).
    pub auxiliary: u8,
    /// `equal`, `master` or `slave`.
    pub role: &'static str,
    /// OpenFlow version, as `1.3`.
    pub version: &'static str,
    /// Packet-ins sent.
    pub packet_ins: u64,
    /// Packet-ins lost because it did not read.
    pub lost_packet_ins: u64,
}

/// Who hears a switch, as far as it decides what becomes of packets without a match.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Audience {
    /// A controller is there: the switch is not on its own.
    pub controller: bool,
    /// Somebody takes packets without a match.
    pub takes_misses: bool,
}

/// The listeners of one switch.
#[derive(Default)]
pub(crate) struct Listeners(RwLock<Vec<Arc<dyn Listener>>>);

impl Listeners {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<Arc<dyn Listener>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, listener: Arc<dyn Listener>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    pub(crate) fn remove(&self, id: u64) -> Option<Arc<dyn Listener>> {
        let mut listeners = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let at = listeners.iter().position(|listener| listener.id() == id)?;
        Some(listeners.remove(at))
    }

    pub(crate) fn tell(&self, event: Event<'_>) {
        self.read().iter().for_each(|listener| listener.hear(event));
    }

    /// Gives listener `id` a role. A new master makes the listeners of other controllers slaves.
    pub(crate) fn grant(&self, id: u64, role: Role) {
        let listeners = self.read();
        let claimant = listeners.iter().find(|listener| listener.id() == id);
        let controller = claimant.map_or(id, |claimant| claimant.controller_id());
        if role == Role::Master {
            let others = listeners.iter().filter(|other| other.controller_id() != controller);
            others.for_each(|other| other.become_slave());
        }
        claimant.iter().for_each(|claimant| claimant.take_role(role));
    }

    pub(crate) fn audience(&self) -> Audience {
        Audience {
            controller: self.any_controller(),
            takes_misses: self.any(|listener| listener.takes_misses()),
        }
    }

    pub(crate) fn any_controller(&self) -> bool {
        self.any(|listener| listener.is_controller())
    }

    pub(crate) fn any(&self, is_so: impl Fn(&dyn Listener) -> bool) -> bool {
        self.read().iter().any(|listener| is_so(&**listener))
    }

    pub(crate) fn describe(&self) -> Vec<Connection> {
        self.read().iter().map(|listener| listener.describe()).collect()
    }
}
