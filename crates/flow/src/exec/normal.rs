//! `OFPP_NORMAL`: forwarding as an IEEE 802.1Q bridge does, with every port in every VLAN.

use super::Env;
use super::leave::{Leaves, by, by_all};
use crate::packet::Packet;
use wire::{DropReason, Field};

/// Group bit of an Ethernet address.
const GROUP: u64 = 1 << 40;

/// The sixteen addresses that no bridge forwards: `01:80:c2:00:00:00` to `0f` (IEEE 802.1Q-2018 table 8-1).
const RESERVED: u64 = 0x0180_c200_0000;
const RESERVED_MASK: u64 = 0xffff_ffff_fff0;

impl<'a> Env<'a> {
    /// Learns where the packet came from and finds where it goes.
    pub(super) fn bridged(&self, packet: &Packet<'_>) -> Leaves<'a> {
        let key = &packet.key;
        let in_port = packet.in_port();
        let vid = key.get(Field::VlanVid) as u16 & 0xfff; // a priority tag is in the untagged frames' VLAN
        let source = key.get(Field::EthSrc) as u64;
        let target = key.get(Field::EthDst) as u64;
        if target & RESERVED_MASK == RESERVED {
            return Leaves::Nowhere(DropReason::ReservedAddress);
        }
        let Env { ports, macs, now, .. } = *self;
        // A group address cannot send, and a packet-out's ingress need not be a port.
        if source & GROUP == 0 && ports.get(in_port).is_some() {
            macs.learn(vid, source, in_port, now);
        }
        let known = if target & GROUP == 0 { macs.lookup(vid, target, now) } else { None };
        match known.and_then(|port| ports.get(port)) {
            Some(port) if port.number == in_port => Leaves::Nowhere(DropReason::NoDestination),
            Some(port) if port.live => by(port),
            // Unknown, or its port is gone or down: the station may have moved.
            _ => by_all(ports.flood_but(in_port)),
        }
    }
}
