//! Which station is behind which port: the learning table of `OFPP_NORMAL` (IEEE 802.1Q-2018 §8.7, §8.8).
//!
//! Of fixed size and shared by all workers. A (VLAN, address) pair can be in one *set* only ([`set`]), which has seven
//! places; so a lookup reads at most seven keys, on one cache line, whatever is sent. Which set follows from a secret
//! of this boot, so nobody can choose addresses that crowd one set.
//!
//! **Fairness.** An entry may be put out only by a port that holds at least two places fewer in that set than the
//! entry's own port: first the free and aged places are taken, then the fullest port's oldest entry goes. A guest that
//! floods addresses fills what is free, and from then on puts out only its own entries; and a newcomer always finds a
//! place as long as any port holds two of the seven. So no port needs a fixed quota, and an uplink with thousands of
//! stations may use what nobody else wants.
//!
//! **Torn reads.** A set is a seqlock: a reader that saw a writer at work looks again, and after a few attempts calls
//! the address unknown, which floods the frame inside its own VLAN. So no mixture of two entries is ever used, and no
//! frame follows another VLAN's entry. A worker that finds a set being written does not wait: it learns from the
//! station's next frame.

mod set;
#[cfg(test)]
mod tests;

use crate::action::PortNo;
use crate::time::Nanos;
use set::{Found, Set};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Entries a table is made for by default. Chosen: a large subnet; 256 KiB for each switch that forwards by learning.
pub const DEFAULT_MAC_ENTRIES: usize = 4096;

/// Seconds without a frame after which an entry counts no more (IEEE 802.1Q-2018 table 8-6).
pub const DEFAULT_MAC_AGEING_S: u32 = 300;

/// Entries of a set that are expected to be in use when the table holds what it was made for: of seven places, so that
/// about one entry in 1000 finds its set full.
const LOAD: usize = 2;

/// An entry of the table, as the API shows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MacEntry {
    /// VLAN id; 0 for untagged frames.
    pub vlan: u16,
    /// Ethernet address, right-aligned.
    pub mac: u64,
    /// The port behind which it was seen.
    pub port: PortNo,
    /// Seconds since its last frame.
    pub age_s: u32,
}

/// The learning table of one switch.
#[derive(Debug)]
pub struct MacTable {
    /// Made when the first address is learned: most switches of a node are programmed and never learn.
    sets: OnceLock<Box<[Set]>>,
    count: usize,
    secret: [u64; 2],
    ageing_s: AtomicU32,
}

impl MacTable {
    /// A table for about `entries` addresses, with a secret that is random in each boot.
    pub fn new(secret: [u64; 2], entries: usize) -> Self {
        Self {
            sets: OnceLock::new(),
            count: entries.div_ceil(LOAD).next_power_of_two(),
            secret: secret.map(|half| half | 1), // a factor of 0 would make all hashes one
            ageing_s: AtomicU32::new(DEFAULT_MAC_AGEING_S),
        }
    }

    /// Sets the ageing time.
    pub fn set_ageing(&self, seconds: u32) {
        self.ageing_s.store(seconds, Relaxed);
    }

    /// A frame of this station came in. Of VLAN ids the low 12 bits count, of addresses the low 48.
    pub fn learn(&self, vlan: u16, mac: u64, port: PortNo, now: Nanos) {
        let macs = self.at(now);
        macs.learn(&macs.spot(vlan, mac), port);
    }

    /// The port behind which a station was last seen.
    pub fn lookup(&self, vlan: u16, mac: u64, now: Nanos) -> Option<PortNo> {
        let macs = self.at(now);
        macs.lookup(&macs.spot(vlan, mac))
    }

    /// The table as it is used now.
    pub(crate) fn at(&self, now: Nanos) -> Macs<'_> {
        let sets = self.sets.get_or_init(|| (0..self.count).map(|_| Set::default()).collect());
        let ageing_s = self.ageing_s.load(Relaxed);
        Macs { sets, secret: self.secret, now_s: seconds(now), ageing_s }
    }

    /// Forgets what was learned behind the ports that `which` names: they went down or away, or are new ones with the
    /// number of an old one.
    pub fn flush_ports(&self, which: impl Fn(PortNo) -> bool) {
        let sets = self.sets.get().into_iter().flatten();
        sets.for_each(|set| set.forget(|value| which(set::port(value))));
    }

    /// Forgets everything.
    pub fn flush(&self) {
        self.flush_ports(|_| true);
    }

    /// The entries that count, by VLAN and address.
    pub fn dump(&self, now: Nanos) -> Vec<MacEntry> {
        let (now_s, ageing_s) = (seconds(now), self.ageing_s.load(Relaxed));
        let entry = |(key, value): (u64, u64)| MacEntry {
            vlan: (key >> 48) as u16,
            mac: key & 0xffff_ffff_ffff,
            port: set::port(value),
            age_s: set::age(value, now_s),
        };
        let all = self.sets.get().into_iter().flatten().flat_map(Set::entries).map(entry);
        let mut entries: Vec<_> = all.filter(|entry| entry.age_s <= ageing_s).collect();
        entries.sort_unstable();
        entries
    }
}

/// The table at one time: what all frames of a batch share.
pub(crate) struct Macs<'t> {
    sets: &'t [Set],
    secret: [u64; 2],
    now_s: u32,
    ageing_s: u32,
}

/// Where a station is, if it is in the table.
pub(crate) struct Spot<'t> {
    set: &'t Set,
    /// The place in the set that is the station's own unless another has it.
    own: usize,
    key: u64,
}

impl Spot<'_> {
    /// What is there.
    #[inline]
    fn find(&self) -> Found {
        match self.set.find_own(self.key, self.own) {
            Some(value) => Found::At { at: self.own, value },
            None => self.set.find(self.key, self.own),
        }
    }

    /// Brings it into the cache: give the result to something that cannot be optimised away.
    #[inline]
    pub fn touch(&self) -> u64 {
        self.set.touch(self.own)
    }
}

impl<'t> Macs<'t> {
    /// Where a station is.
    #[inline]
    pub fn spot(&self, vlan: u16, mac: u64) -> Spot<'t> {
        let (key, [first, second]) = (key(vlan, mac), self.secret);
        let hash = fold(fold(key ^ second, first), second);
        let own = (u64::from((hash >> 32) as u32) * set::PLACES as u64) >> 32;
        // There are a power of two of sets.
        Spot { set: &self.sets[hash as usize & (self.sets.len() - 1)], own: own as usize, key }
    }

    /// As [`MacTable::learn`].
    #[inline]
    pub fn learn(&self, spot: &Spot<'_>, port: PortNo) {
        match spot.find() {
            Found::Busy => {}
            Found::At { at, value } if set::port(value) == port => {
                spot.set.refresh(at, value, self.now_s);
            }
            Found::At { .. } | Found::Nowhere => {
                spot.set.put(spot.key, spot.own, port, self.now_s, self.ageing_s);
            }
        }
    }

    /// Renews a station's age; false, and nothing else, if it is not known behind this port.
    #[inline]
    pub fn renew(&self, spot: &Spot<'_>, port: PortNo) -> bool {
        match spot.find() {
            Found::At { at, value } if set::port(value) == port => {
                spot.set.refresh(at, value, self.now_s);
                true
            }
            _ => false,
        }
    }

    /// As [`MacTable::lookup`].
    #[inline]
    pub fn lookup(&self, spot: &Spot<'_>) -> Option<PortNo> {
        let Found::At { value, .. } = spot.find() else { return None };
        (set::age(value, self.now_s) <= self.ageing_s).then(|| set::port(value))
    }
}

/// VLAN id and address in one word; below 2^60.
fn key(vlan: u16, mac: u64) -> u64 {
    u64::from(vlan & 0xfff) << 48 | mac & 0xffff_ffff_ffff
}

/// Whole seconds: 32 bits last 136 years.
fn seconds(now: Nanos) -> u32 {
    (now.0 / 1_000_000_000) as u32
}

/// Both halves of a 128-bit product mixed into one.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
