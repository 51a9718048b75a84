//! `OFPP_NORMAL`: forwarding as an IEEE 802.1Q bridge does, with every port in every VLAN.

use super::{Env, Run};
use crate::packet::Sink;
use std::ops::ControlFlow;
use wire::{DropReason, Field};

/// Group bit of an Ethernet address.
const GROUP: u64 = 1 << 40;

/// The sixteen addresses that no bridge forwards: `01:80:c2:00:00:00` to `0f` (IEEE 802.1Q-2018 table 8-1).
const RESERVED: u64 = 0x0180_c200_0000;
const RESERVED_MASK: u64 = 0xffff_ffff_fff0;

impl<S: Sink> Run<'_, '_, S> {
    pub(super) fn normal(&mut self) -> ControlFlow<()> {
        let key = &self.packet.key;
        let in_port = self.packet.in_port();
        let vid = key.get(Field::VlanVid) as u16 & 0xfff; // a priority tag is in the untagged frames' VLAN
        let source = key.get(Field::EthSrc) as u64;
        let target = key.get(Field::EthDst) as u64;
        if target & RESERVED_MASK == RESERVED {
            return self.lose(DropReason::ReservedAddress);
        }
        let Env { ports, macs, now, .. } = *self.env;
        // A group address cannot send, and a packet-out's ingress need not be a port.
        if source & GROUP == 0 && ports.get(in_port).is_some() {
            macs.learn(vid, source, in_port, now);
        }
        let known = if target & GROUP == 0 { macs.lookup(vid, target, now) } else { None };
        match known {
            Some(port) if port == in_port => self.lose(DropReason::NoDestination),
            Some(port) if ports.is_live(port) => self.send_by(port),
            // Unknown, or its port is gone or down: the station may have moved.
            _ => self.send_by_all(ports.flood_but(in_port)),
        }
    }
}
