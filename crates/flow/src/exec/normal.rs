//! `OFPP_NORMAL`: forwarding as an IEEE 802.1Q bridge does, with every port in every VLAN.

use super::Env;
use super::leave::{Leaves, by, by_all};
use crate::action::PortNo;
use crate::limits::LANES;
use crate::mac::{Macs, Spot};
use crate::packet::Packet;
use crate::storm::{Flood, Storm};
use crate::time::Nanos;
use arrayvec::ArrayVec;
use std::hint::black_box;
use wire::{DropReason, Field, Key};

/// Group bit of an Ethernet address.
const GROUP: u64 = 1 << 40;

/// The sixteen addresses that no bridge forwards: `01:80:c2:00:00:00` to `0f` (IEEE 802.1Q-2018 table 8-1).
const RESERVED: u64 = 0x0180_c200_0000;
const RESERVED_MASK: u64 = 0xffff_ffff_fff0;

/// Whether an address is a group's.
#[inline]
pub(crate) fn is_group_address(mac: u64) -> bool {
    mac & GROUP != 0
}

/// Whether no bridge forwards to an address.
#[inline]
pub(crate) fn is_reserved_address(mac: u64) -> bool {
    mac & RESERVED_MASK == RESERVED
}

/// Where a frame's stations are in the learning table.
struct Stations<'a> {
    source: Spot<'a>,
    target: Spot<'a>,
}

impl<'a> Stations<'a> {
    #[inline]
    fn of(key: &Key, macs: &Macs<'a>) -> Self {
        let vid = key.get(Field::VlanVid) as u16; // a priority tag is in the untagged frames' VLAN
        Self {
            source: macs.spot(vid, key.get(Field::EthSrc) as u64),
            target: macs.spot(vid, key.get(Field::EthDst) as u64),
        }
    }
}

/// Brings all stations into the cache, so that their misses overlap.
#[inline]
fn touch(stations: &[Stations<'_>]) {
    let sum =
        |sum, Stations { source, target }: &Stations<'_>| sum ^ source.touch() ^ target.touch();
    black_box(stations.iter().fold(0, sum));
}

impl<'a> Env<'a> {
    /// Learns where the packet came from and finds where it goes.
    pub(super) fn bridged(&self, packet: &Packet<'_>) -> Leaves<'a> {
        let macs = self.macs.at(self.now);
        self.bridge(&packet.key, &macs, &Stations::of(&packet.key, &macs))
    }

    /// The same for neighbours, one after the other: `leaves` is told of each. Their stations are looked for in a pass ahead, so that the
    /// cache misses of all of them overlap.
    #[inline]
    pub(crate) fn bridged_each<'k>(
        &self,
        keys: impl Iterator<Item = &'k Key> + Clone,
        mut leaves: impl FnMut(Leaves<'a>),
    ) {
        let macs = self.macs.at(self.now);
        let stations: ArrayVec<_, LANES> =
            keys.clone().map(|key| Stations::of(key, &macs)).collect();
        touch(&stations);
        for (key, stations) in keys.zip(&stations) {
            leaves(self.bridge(key, &macs, stations));
        }
    }

    /// Returns the one port by which neighbours leave that came in by `in_port`, if the table knows all their stations: every sender
    /// behind `in_port`, every target behind the port. Else `None`, and nothing was learned; ages may have been renewed.
    #[inline]
    pub(crate) fn bridged_to(&self, keys: &[Key], in_port: PortNo) -> Option<PortNo> {
        self.ports.get(in_port)?;
        let macs = self.macs.at(self.now);
        let mut exit = None;
        for keys in keys.chunks(LANES) {
            let stations: ArrayVec<_, LANES> =
                keys.iter().map(|key| Stations::of(key, &macs)).collect();
            touch(&stations);
            for (key, Stations { source, target }) in keys.iter().zip(&stations) {
                let is_group = |field| key.get(field) as u64 & GROUP != 0;
                let is_known = is_group(Field::EthSrc) || macs.renew(source, in_port);
                if !is_known || is_group(Field::EthDst) {
                    return None;
                }
                let port = macs.lookup(target)?;
                if port == in_port || *exit.get_or_insert(port) != port {
                    return None;
                }
            }
        }
        exit.filter(|&port| self.ports.surely_sends(port))
    }

    #[inline]
    fn bridge(&self, key: &Key, macs: &Macs<'_>, stations: &Stations<'_>) -> Leaves<'a> {
        let (in_port, ports) = (key.get(Field::InPort) as PortNo, self.ports);
        let source = key.get(Field::EthSrc) as u64;
        let target = key.get(Field::EthDst) as u64;
        if is_reserved_address(target) {
            return Leaves::Nowhere(DropReason::ReservedAddress);
        }
        // A group address cannot send, and a packet-out's ingress need not be a port.
        if !is_group_address(source) && ports.get(in_port).is_some() {
            macs.learn(&stations.source, in_port);
        }
        let known = if is_group_address(target) { None } else { macs.lookup(&stations.target) };
        match self.leaves_bridged(known, in_port) {
            Leaves::ByAll(ports) => self.flooded(ports, in_port, target, Storm::take),
            leaves => leaves,
        }
    }

    /// Where a frame to `target` goes that is to be flooded to `ports`: there, if the port that it came in by may have so many copies made of it.
    /// `asks` takes them, or only says whether they would be taken.
    #[inline(never)]
    pub(crate) fn flooded(
        &self,
        ports: &'a [PortNo],
        in_port: PortNo,
        target: u64,
        asks: impl FnOnce(&Storm, Flood, usize, Option<u32>, Nanos) -> bool,
    ) -> Leaves<'a> {
        let flood = if is_group_address(target) { Flood::Group } else { Flood::Unknown };
        // The first copy is the frame itself. A packet-out's ingress need not be a port.
        let (more, rate) = (ports.len() - 1, self.flood_copies_per_s);
        let storm = self.ports.storm(in_port);
        match storm.is_none_or(|storm| asks(storm, flood, more, rate, self.now)) {
            true => Leaves::ByAll(ports),
            false => Leaves::Nowhere(DropReason::Storm),
        }
    }

    /// Where a frame goes whose destination is behind this port, as far as is known.
    #[inline]
    pub(crate) fn leaves_bridged(&self, known: Option<PortNo>, in_port: PortNo) -> Leaves<'a> {
        match known {
            Some(port) if self.ports.surely_forwards(in_port, port) => Leaves::By(port),
            _ => self.unsurely(known, in_port),
        }
    }

    #[inline(never)]
    fn unsurely(&self, known: Option<PortNo>, in_port: PortNo) -> Leaves<'a> {
        match known.and_then(|port| self.ports.get(port)) {
            Some(port) if port.number == in_port => Leaves::Nowhere(DropReason::NoDestination),
            Some(port) if port.live => by(port),
            // Unknown, or its port is gone or down: the station may have moved.
            _ => by_all(self.ports.flood_but(in_port)),
        }
    }
}
