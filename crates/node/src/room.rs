//! Memory for what waits: messages that a controller has not read, frames kept for one, lists that somebody reads.
//!
//! Each holder has a bound of its own, which is generous as long as few make use of it. All of them together have this one. A little is everybody's
//! ([`FREE`]); beyond, a holder may have as much as it leaves free for all (dynamic threshold, Choudhury and Hahne 1998, α = 1).

use crate::bounds::BoundsSpec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes that a holder may always have: nobody's answers stop because of others. Chosen: a part of a long OpenFlow answer.
pub const FREE: u64 = 64 << 10;

/// The memory.
#[derive(Debug)]
pub struct Room {
    limit: u64,
    unread: usize,
    used: AtomicU64,
}

impl Default for Room {
    /// Without a limit.
    fn default() -> Self {
        Self::new(u64::MAX, BoundsSpec::default().unread)
    }
}

impl Room {
    /// So many bytes, of which `unread` are packet-ins that one peer need not read.
    pub fn new(limit: u64, unread: usize) -> Self {
        Self { limit, unread, used: AtomicU64::new(0) }
    }

    /// One more holder, that holds nothing yet.
    pub fn part(self: &Arc<Self>) -> Part {
        Part { room: self.clone(), held: 0 }
    }
}

/// What one holder has of it; given back when it is dropped.
#[derive(Debug)]
pub struct Part {
    room: Arc<Room>,
    held: u64,
}

impl Default for Part {
    fn default() -> Self {
        Arc::<Room>::default().part()
    }
}

impl Part {
    /// Whether it may hold so many bytes in all.
    pub fn may(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let others = self.room.used.load(Relaxed).saturating_sub(self.held);
        bytes <= FREE || bytes <= self.room.limit.saturating_sub(others) / 2
    }

    /// Bytes of packet-ins that a peer need not read, if there is room for them.
    pub fn unread(&self) -> usize {
        self.room.unread
    }

    /// It holds so many now.
    pub fn set(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        // Two's complement: less is taken as well.
        self.room.used.fetch_add(bytes.wrapping_sub(self.held), Relaxed);
        self.held = bytes;
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Takes until it may not, a MiB at a time; how many it has then.
    fn fill(part: &mut Part) -> usize {
        let mut held = 0;
        while part.may((held + 1) * MIB) {
            held += 1;
            part.set(held * MIB);
        }
        held
    }

    #[test]
    fn one_takes_half_the_next_half_of_the_rest_and_all_of_it_comes_back() {
        let room = Arc::new(Room::new(16 << 20, MIB));
        let [mut one, mut two, mut three] = [(); 3].map(|()| room.part());
        assert_eq!([fill(&mut one), fill(&mut two), fill(&mut three)], [8, 4, 2]);
        drop(one);
        assert_eq!(fill(&mut three), 6);
        two.set(0);
        drop(three);
        assert_eq!((room.used.load(Relaxed), fill(&mut two)), (0, 8));
    }

    #[test]
    fn a_little_is_everybodys_however_much_others_hold() {
        let room = Arc::new(Room::new(0, MIB));
        let part = room.part();
        assert!(part.may(FREE as usize) && !part.may(FREE as usize + 1));
        assert!(Part::default().may(usize::MAX / 4));
    }
}
