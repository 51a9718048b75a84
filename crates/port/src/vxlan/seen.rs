//! A tunnel's packets as they are on the underlay, for whoever captures them there.
//!
//! The kernel writes the real headers, and shows none of them. Ours have its addresses, ports, DS field and TTL; identification, checksums and MAC
//! addresses are not known, and 0.

use crate::drops::{OuterPacket, Watch};
use std::net::SocketAddr;
use wire::tunnel::{Outer, Vxlan};

/// Who sees the packets of one way, and what they have in common.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    watch: Watch,
    outer: Outer,
    from_port: u16,
    ds: u8,
    is_sent: bool,
}

/// What a packet's headers say beside its addresses.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    pub(super) ds: u8,
    pub(super) ttl: u8,
    pub(super) is_sent: bool,
}

impl Seen {
    /// `None`: the ends are of two families.
    pub(super) fn new(watch: Watch, [from, to]: [SocketAddr; 2], marks: Marks) -> Option<Self> {
        let Marks { ds, ttl, is_sent } = marks;
        let (mac, from_mac) = Default::default();
        let (port, checksum) = (to.port(), false);
        let outer = Outer { mac, from_mac, from: from.ip(), to: to.ip(), port, ttl, checksum };
        let is_one = from.is_ipv4() == to.is_ipv4();
        is_one.then(|| Self { watch, outer, from_port: from.port(), ds, is_sent })
    }

    /// Shows a run of VXLAN packets.
    pub(super) fn show_run(&self, run: &[u8], segment: usize) {
        run.chunks(segment.max(1)).for_each(|vxlan| self.show(vxlan, vxlan));
    }

    /// Shows a datagram with this payload, in which there is this VXLAN packet.
    pub(super) fn show(&self, payload: &[u8], vxlan: &[u8]) {
        let mut headers = [0; Outer::MAX_LEN];
        self.outer.write(&mut headers, (self.from_port, self.ds), payload.len(), None);
        let headers = &headers[..self.outer.len()];
        let inside = Vxlan::parse(vxlan).map_or(&[][..], |_| &vxlan[Vxlan::LEN..]);
        let is_sent = self.is_sent;
        self.watch.show(&OuterPacket { is_sent, headers, payload, inside });
    }
}
