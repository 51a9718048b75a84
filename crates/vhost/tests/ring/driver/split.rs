//! A split ring from the driver's side (VIRTIO 1.2 §2.7.13, §2.7.14).

use super::super::guest::{Buffer, Guest};
use super::{INDIRECT, Layout, NEXT};
use vhost::{Base, Features};

pub struct Split {
    table: u64,
    avail: u64,
    used: u64,
    size: u16,
    event_idx: bool,
    free: Vec<u16>,
    /// Descriptors of each id.
    chains: Vec<Vec<u16>>,
    /// The id of each head.
    ids: Vec<u16>,
    next_avail: u16,
    /// `next_avail` when it was last decided whether to notify.
    told: u16,
    last_used: u16,
}

impl Split {
    pub fn new(
        guest: &Guest,
        [table, avail, used]: [u64; 3],
        size: u16,
        features: Features,
        start: u16,
    ) -> Self {
        guest.write_u16(avail + 2, start);
        guest.write_u16(used + 2, start);
        Self {
            table,
            avail,
            used,
            size,
            event_idx: features.contains(Features::EVENT_IDX),
            free: (0..size).rev().collect(),
            chains: vec![Vec::new(); size.into()],
            ids: vec![0; size.into()],
            next_avail: start,
            told: start,
            last_used: start,
        }
    }

    fn entry(&self, index: u16) -> u64 {
        u64::from(index % self.size)
    }
}

impl Layout for Split {
    fn base(&self) -> Base {
        Base::Split(self.next_avail)
    }

    fn offer(
        &mut self,
        guest: &Guest,
        id: u16,
        chain: &[Buffer],
        flags: u16,
        table: Option<u64>,
    ) -> u16 {
        let mut taken = Vec::new();
        if let Some(table) = table {
            for (index, piece) in chain.iter().enumerate() {
                let next = if index + 1 < chain.len() { NEXT } else { 0 };
                guest.write_descriptor(
                    table + 16 * index as u64,
                    *piece,
                    flags | next,
                    index as u16 + 1,
                );
            }
            let head = self.free.pop().unwrap();
            let whole = Buffer { at: table, len: 16 * chain.len() as u32 };
            guest.write_descriptor(self.table + 16 * u64::from(head), whole, INDIRECT, 0);
            taken.push(head);
        } else {
            taken.extend((0..chain.len()).map(|_| self.free.pop().unwrap()));
            for (index, piece) in chain.iter().enumerate() {
                let next = taken.get(index + 1).copied();
                let flags = flags | if next.is_some() { NEXT } else { 0 };
                let at = self.table + 16 * u64::from(taken[index]);
                guest.write_descriptor(at, *piece, flags, next.unwrap_or(0));
            }
        }
        let (head, count) = (taken[0], taken.len() as u16);
        self.chains[usize::from(id)] = taken;
        self.ids[usize::from(head)] = id;
        guest.write_u16(self.avail + 4 + 2 * self.entry(self.next_avail), head);
        self.next_avail = self.next_avail.wrapping_add(1);
        guest.write_u16(self.avail + 2, self.next_avail);
        count
    }

    fn wants_kick(&mut self, guest: &Guest) -> bool {
        let (old, new) = (std::mem::replace(&mut self.told, self.next_avail), self.next_avail);
        if !self.event_idx {
            return old != new && guest.read_u16(self.used) & 1 == 0;
        }
        let event = guest.read_u16(self.used + 4 + 8 * u64::from(self.size));
        // §2.7.10: notify when the index that the device named was made available since the last look.
        (0..new.wrapping_sub(old)).any(|passed| old.wrapping_add(passed) == event)
    }

    fn reap(&self, guest: &Guest) -> Option<(u16, u32)> {
        if guest.read_u16(self.used + 2) == self.last_used {
            return None;
        }
        let at = self.used + 4 + 8 * self.entry(self.last_used);
        Some((self.ids[guest.read_u32(at) as usize], guest.read_u32(at + 4)))
    }

    fn done(&mut self, id: u16) {
        let descriptors = std::mem::take(&mut self.chains[usize::from(id)]);
        assert!(!descriptors.is_empty(), "only what was offered is given back");
        self.free.extend(descriptors);
        self.last_used = self.last_used.wrapping_add(1);
    }

    fn set_calls(&mut self, guest: &Guest, wanted: bool) {
        if !self.event_idx {
            guest.write_u16(self.avail, u16::from(!wanted));
        } else if wanted {
            guest.write_u16(self.avail + 4 + 2 * u64::from(self.size), self.last_used);
        }
    }
}
