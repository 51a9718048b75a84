//! What a tunnel puts around the frames of one flow, or takes off, as constants: for who forwards them past its port.
//!
//! Of a tunnel whose packets go past the kernel, everything outside is known before: addresses from routes and neighbours,
//! the source port from the flow. What is said here is what the port itself would do now.

use super::{Door, Outlet, Place};
use crate::underlay::Underlay;
use offload::{Declined, FlowReason, OUTSIDE, Outside, PortReason};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use wire::tunnel::{Dscp, entropy_of, outer_dscp};
use wire::{Field, Key, ip_proto};
use xdp::offload::Passage;

/// Bytes of Ethernet's header, which MTUs do not count.
const ETHERNET: u32 = 14;

/// A tunnel's way past the kernel, for flows.
pub struct Wrapping {
    pub(crate) outlet: Arc<Outlet>,
    pub(crate) came: Came,
    pub(crate) vni: u32,
    pub(crate) dscp: Dscp,
    /// Whether the first frames of a connection are changed.
    pub(crate) mss_clamp: bool,
}

/// What comes to a tunnel past the kernel.
#[derive(Clone)]
pub(crate) struct Came {
    pub(crate) place: Arc<Place>,
    pub(crate) underlay: Arc<Underlay>,
    /// UDP port.
    pub(crate) port: u16,
    /// Addresses that packets come from.
    pub(crate) senders: Vec<IpAddr>,
    /// What lies between a TAP and the tunnel's port.
    pub(crate) passage: Arc<Passage>,
}

/// What is put around a flow's frames, and where its packets go.
pub struct Wrapped {
    /// The headers.
    pub outside: Outside,
    /// Where the packets come in at the underlay's switch.
    pub door: Arc<Door>,
    /// Bytes of the longest frame that fits, with its Ethernet header and tags.
    pub longest: u32,
}

impl Wrapping {
    /// Whether no frame of a flow with this key is changed by what it says.
    fn is_plain(&self, key: &Key) -> Result<(), Declined> {
        let is_changed = self.mss_clamp && key.get(Field::IpProto) as u8 == ip_proto::TCP;
        if is_changed { Err(FlowReason::DependsOn(Field::TcpFlags).into()) } else { Ok(()) }
    }

    /// What is put around frames that have this key as they leave.
    ///
    /// # Errors
    /// There is no way now, or it is one that no rung knows.
    pub fn wrap(&self, key: &Key) -> Result<Wrapped, Declined> {
        self.is_plain(key)?;
        let (outer, port, door, mtu) =
            self.outlet.headers(entropy_of(key)).ok_or(PortReason::NoWay)?;
        let ds = outer_dscp(key.get(Field::IpDscp) as u8, self.dscp) << 2;
        let outside = Outside::new(&outer, (port, ds), self.vni)?;
        let longest = (mtu + ETHERNET).saturating_sub(OUTSIDE as u32);
        Ok(Wrapped { outside, door, longest })
    }

    /// Whether its packets have a way past the kernel now.
    pub fn has_way(&self) -> bool {
        self.outlet.hindrance().is_none()
    }

    /// Has the kernel look for the neighbours on its way.
    pub fn find_way(&self) {
        self.outlet.find();
    }

    /// Frames of a flow with this key left past the port.
    pub fn went(&self, key: &Key, frames: u64) {
        self.outlet.went(entropy_of(key), frames);
    }

    /// The tunnel's identifier.
    pub fn vni(&self) -> u32 {
        self.vni
    }

    /// What of packets that come lies between a TAP and the tunnel's port.
    pub fn passage(&self) -> &Arc<Passage> {
        &self.came.passage
    }

    /// Whether the tunnel takes packets with this key that leave by that door, before the kernel does: those of its VNI.
    pub fn takes(&self, outer: &Key, door: &Arc<Door>) -> bool {
        let address = |field| IpAddr::from(Ipv4Addr::from_bits(outer.get(field) as u32));
        let [_, _, mac @ ..] = (outer.get(Field::EthDst) as u64).to_be_bytes();
        let Came { place, underlay, .. } = &self.came;
        self.sends(outer)
            && door.is_mac(mac)
            && place.has(door)
            && underlay.is_own(address(Field::Ipv4Dst))
    }

    /// Whether any of its packets come over IPv4.
    pub fn comes_over_ipv4(&self) -> bool {
        self.came.senders.iter().any(IpAddr::is_ipv4)
    }

    /// Whether packets with this key may be of the tunnel's other end: those of its VNI.
    pub fn sends(&self, outer: &Key) -> bool {
        let from = Ipv4Addr::from_bits(outer.get(Field::Ipv4Src) as u32).into();
        let is_udp = outer.get(Field::IpProto) as u8 == ip_proto::UDP;
        is_udp
            && outer.get(Field::TpDst) as u16 == self.came.port
            && self.came.senders.contains(&from)
    }

    /// Whether frames of a flow with this key come out of packets with that one as they went in.
    ///
    /// # Errors
    /// What changes them.
    pub fn unwrap(&self, key: &Key, outer: &Key) -> Result<(), Declined> {
        self.is_plain(key)?;
        match self.dscp {
            // The tables see the outer one's.
            Dscp::Uniform if key.get(Field::IpDscp) != outer.get(Field::IpDscp) => {
                Err(FlowReason::Edits(offload::EditKind::Set(Field::IpDscp)).into())
            }
            _ => Ok(()),
        }
    }
}
