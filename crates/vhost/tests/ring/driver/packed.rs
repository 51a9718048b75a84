//! A packed ring from the driver's side (VIRTIO 1.2 §2.8.21, §2.8.22).

use super::super::guest::{Buffer, Guest};
use super::{INDIRECT, Layout, NEXT};
use vhost::{Base, Features};

const AVAIL: u16 = 1 << 7;
const USED: u16 = 1 << 15;

/// A place, counted on for ever; the lap it is in gives the wrap counter.
type Count = u64;

pub struct Packed {
    ring: u64,
    driver: u64,
    device: u64,
    size: u16,
    event_idx: bool,
    next: Count,
    used: Count,
    /// Places of each id.
    places: Vec<u16>,
    /// Whether anything was offered since it was last decided whether to notify.
    news: bool,
}

impl Packed {
    pub fn new(
        [ring, driver, device]: [u64; 3],
        size: u16,
        features: Features,
        start: u16,
    ) -> Self {
        assert!(start < size);
        Self {
            ring,
            driver,
            device,
            size,
            event_idx: features.contains(Features::EVENT_IDX),
            next: start.into(),
            used: start.into(),
            places: vec![0; size.into()],
            news: false,
        }
    }

    fn at(&self, count: Count) -> u64 {
        self.ring + 16 * (count % u64::from(self.size))
    }

    /// The wrap counter: 1 in the first lap, and so on by turns.
    fn wrap(&self, count: Count) -> bool {
        (count / u64::from(self.size)).is_multiple_of(2)
    }

    fn available(&self, count: Count) -> u16 {
        if self.wrap(count) { AVAIL } else { USED }
    }
}

impl Layout for Packed {
    fn base(&self) -> Base {
        let place = (self.next % u64::from(self.size)) as u16;
        let wrap = self.wrap(self.next);
        Base::Packed { avail: place, avail_wrap: wrap, used: place, used_wrap: wrap }
    }

    fn offer(
        &mut self,
        guest: &Guest,
        id: u16,
        chain: &[Buffer],
        flags: u16,
        table: Option<u64>,
    ) -> u16 {
        let (pieces, flags) = match table {
            Some(table) => {
                for (index, piece) in chain.iter().enumerate() {
                    guest.write_descriptor(table + 16 * index as u64, *piece, 0, flags);
                }
                (vec![Buffer { at: table, len: 16 * chain.len() as u32 }], INDIRECT)
            }
            None => (chain.to_vec(), flags),
        };
        // The first descriptor last: the device looks at no other before it.
        for (index, piece) in pieces.iter().enumerate().rev() {
            let count = self.next + index as Count;
            let next = if index + 1 < pieces.len() { NEXT } else { 0 };
            guest.write_descriptor(
                self.at(count),
                *piece,
                id,
                flags | next | self.available(count),
            );
        }
        self.next += pieces.len() as Count;
        self.places[usize::from(id)] = pieces.len() as u16;
        self.news = true;
        pieces.len() as u16
    }

    fn wants_kick(&mut self, guest: &Guest) -> bool {
        // This device names no descriptor of its own.
        std::mem::take(&mut self.news) && guest.read_u16(self.device + 2) == 0
    }

    fn reap(&self, guest: &Guest) -> Option<(u16, u32)> {
        let at = self.at(self.used);
        let flags = guest.read_u16(at + 14);
        let marks = if self.wrap(self.used) { AVAIL | USED } else { 0 };
        if self.used == self.next || flags & (AVAIL | USED) != marks {
            return None;
        }
        let len = guest.read_u32(at + 8);
        assert_eq!(flags & super::WRITE != 0, len > 0, "a length is there when the flag says so");
        Some((guest.read_u16(at + 12), len))
    }

    fn done(&mut self, id: u16) {
        let places = std::mem::take(&mut self.places[usize::from(id)]);
        assert_ne!(places, 0, "only what was offered is given back");
        self.used += Count::from(places);
    }

    fn set_calls(&mut self, guest: &Guest, wanted: bool) {
        let place = (self.used % u64::from(self.size)) as u16;
        let off_wrap = place | u16::from(self.wrap(self.used)) << 15;
        guest.write_u16(self.driver, off_wrap);
        guest.write_u16(
            self.driver + 2,
            match (wanted, self.event_idx) {
                (false, _) => 1,
                (true, false) => 0,
                (true, true) => 2,
            },
        );
    }
}
