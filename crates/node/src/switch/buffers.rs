//! Frames that the switch keeps until a controller decides (OpenFlow 1.3.5 §6.1.2, §7.4.1; 1.0.0 §5.4.1).
//!
//! A frame waits in a *slot*; its buffer id is the slot's number and a *cookie* drawn anew for each frame, so that an id neither names
//! a later frame by mistake nor can be guessed by a controller that was never told it. A buffer is good for one use, and for
//! [`LIFE`]. Memory is bounded twice, in frames and in bytes; a switch that keeps nothing has none.
//!
//! What an id means: of a frame that waits, that frame; of one that was used, `OFPBRC_BUFFER_EMPTY`, until its slot is needed again; any
//! other, also of a frame that waited too long, `OFPBRC_BUFFER_UNKNOWN`.

use crate::room::Part;
use datapath::HeldFrame;
use flow::{Nanos, PortNo};
use openflow::{ErrorCode, Fault};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

/// Frames that one switch keeps at most: what its features say (`n_buffers`).
pub const SLOTS: u32 = 1024;

/// Bytes that they take at most. Chosen: all slots with full Ethernet frames, or 64 large TCP segments.
const MOST_BYTES: usize = 4 << 20;

/// How long a frame waits. Chosen: longer than a controller takes that is worth waiting for; a sender's own retry (RFC 6298: 1 s)
/// has come by then.
pub const LIFE: Nanos = Nanos(2_000_000_000);

/// Bits of a slot's number in a buffer id; the others are the cookie.
const SLOT_BITS: u32 = SLOTS.ilog2();

/// Cookies are 1..this: 0 would make ids that a controller sends by mistake, and the last one `OFP_NO_BUFFER`.
const COOKIES: u64 = (1 << (u32::BITS - SLOT_BITS)) - 1;

/// A frame and the port by which it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Whole, as the actions had left it when it went to the controller.
    pub frame: HeldFrame,
    /// Its ingress port.
    pub in_port: PortNo,
}

/// What became of a slot's latest frame.
#[derive(Debug)]
enum State {
    Waits(Kept, Nanos),
    Used,
    Expired,
}

#[derive(Debug)]
struct Slot {
    cookie: u32,
    state: State,
}

/// One switch's kept frames. Time is a value: the datapath's.
#[derive(Debug, Default)]
pub struct PacketBuffers {
    slots: Vec<Slot>,
    /// Slots without a frame, the one longest unused first, so that a used id is told from an unknown one for long.
    free: VecDeque<u32>,
    bytes: usize,
    /// No frame expires before.
    earliest: Nanos,
    issued: u64,
    secret: RandomState,
    /// What the frames take of the node's room for what waits.
    part: Part,
}

impl PacketBuffers {
    /// None; what is kept takes this part of the node's room.
    pub fn within(part: Part) -> Self {
        Self { part, ..Self::default() }
    }

    fn take_bytes(&mut self, bytes: usize) {
        self.bytes = bytes;
        self.part.set(bytes);
    }

    /// Whether a frame of `len` bytes finds a place.
    pub fn has_room(&mut self, len: usize, now: Nanos) -> bool {
        if !self.fits(len) {
            self.expire(now);
        }
        self.fits(len)
    }

    fn fits(&self, len: usize) -> bool {
        let slot = !self.free.is_empty() || self.slots.len() < SLOTS as usize;
        slot && self.bytes + len <= MOST_BYTES && self.part.may(self.bytes + len)
    }

    /// The id that the next frame to be kept will have.
    pub fn next_id(&self) -> u32 {
        let number = self.free.front().copied().unwrap_or(self.slots.len() as u32);
        let before = self.slots.get(number as usize).map(|slot| slot.cookie);
        let drawn = 1 + (self.secret.hash_one(self.issued) % (COOKIES - 1)) as u32;
        let again = 1 + drawn % (COOKIES - 1) as u32;
        let cookie = if before == Some(drawn) { again } else { drawn };
        cookie << SLOT_BITS | number
    }

    /// Keeps a frame, for which there is room, under [`PacketBuffers::next_id`].
    pub fn keep(&mut self, kept: Kept, now: Nanos) {
        let (number, cookie) = split(self.next_id());
        let due = Nanos(now.0 + LIFE.0);
        if self.bytes == 0 {
            self.earliest = due;
        }
        self.issued += 1;
        self.take_bytes(self.bytes + kept.frame.memory());
        let slot = Slot { cookie, state: State::Waits(kept, due) };
        match self.free.pop_front() {
            Some(number) => self.slots[number as usize] = slot,
            None => {
                debug_assert_eq!(number, self.slots.len(), "slots are taken in order");
                self.slots.push(slot);
            }
        }
    }

    /// Whether `id` names a frame that waits.
    ///
    /// # Errors
    /// `OFPBRC_BUFFER_EMPTY` or `OFPBRC_BUFFER_UNKNOWN`.
    pub fn check(&mut self, id: u32, now: Nanos) -> Result<(), Fault> {
        self.waiting(id, now).map(drop)
    }

    /// Takes the frame, which uses the buffer up.
    ///
    /// # Errors
    /// As [`PacketBuffers::check`].
    pub fn take(&mut self, id: u32, now: Nanos) -> Result<Kept, Fault> {
        let slot = self.waiting(id, now)?;
        let State::Waits(kept, _) = std::mem::replace(&mut slot.state, State::Used) else {
            unreachable!("`waiting` found a frame")
        };
        self.take_bytes(self.bytes - kept.frame.memory());
        self.free.push_back(split(id).0 as u32);
        Ok(kept)
    }

    fn waiting(&mut self, id: u32, now: Nanos) -> Result<&mut Slot, Fault> {
        let unknown =
            Fault::new(ErrorCode::BadRequestBufferUnknown, "no packet waits under this buffer id");
        self.expire(now);
        let (number, cookie) = split(id);
        let slot = self.slots.get_mut(number).filter(|slot| slot.cookie == cookie);
        let slot = slot.ok_or(unknown)?;
        match slot.state {
            State::Waits(..) => Ok(slot),
            State::Used => Err(Fault::new(
                ErrorCode::BadRequestBufferEmpty,
                "the packet under this buffer id was sent already",
            )),
            State::Expired => Err(unknown),
        }
    }

    /// Forgets frames that waited too long; costs nothing while there is none.
    pub fn expire(&mut self, now: Nanos) {
        if self.bytes == 0 || now < self.earliest {
            return;
        }
        self.earliest = Nanos(u64::MAX);
        let mut bytes = self.bytes;
        for (number, slot) in self.slots.iter_mut().enumerate() {
            let State::Waits(kept, due) = &slot.state else { continue };
            if *due > now {
                self.earliest = self.earliest.min(*due);
                continue;
            }
            bytes -= kept.frame.memory();
            self.free.push_back(number as u32);
            slot.state = State::Expired;
        }
        self.take_bytes(bytes);
    }

    /// Forgets everything and gives its memory back.
    pub fn clear(&mut self) {
        let mut part = std::mem::take(&mut self.part);
        part.set(0);
        *self = Self::within(part);
    }
}

/// Slot and cookie of an id.
fn split(id: u32) -> (usize, u32) {
    ((id & (SLOTS - 1)) as usize, id >> SLOT_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const START: Nanos = Nanos(1);

    fn after_life() -> Nanos {
        Nanos(START.0 + LIFE.0)
    }

    fn kept(len: usize) -> Kept {
        Kept { frame: HeldFrame::complete(vec![7; len]), in_port: 3 }
    }

    fn keep(buffers: &mut PacketBuffers, len: usize, now: Nanos) -> Option<u32> {
        buffers.has_room(len, now).then(|| {
            let id = buffers.next_id();
            buffers.keep(kept(len), now);
            id
        })
    }

    fn frames(buffers: &PacketBuffers) -> usize {
        buffers.slots.len() - buffers.free.len()
    }

    fn code<T: std::fmt::Debug>(result: Result<T, Fault>) -> ErrorCode {
        result.unwrap_err().code
    }

    #[test]
    fn a_buffer_is_used_once_and_then_empty() {
        let mut buffers = PacketBuffers::default();
        let id = keep(&mut buffers, 60, START).unwrap();
        assert_eq!(buffers.check(id, START), Ok(()));
        assert_eq!(buffers.take(id, START), Ok(kept(60)));
        assert_eq!(code(buffers.take(id, START)), ErrorCode::BadRequestBufferEmpty);
        assert_eq!(code(buffers.check(id, after_life())), ErrorCode::BadRequestBufferEmpty);
    }

    #[test]
    fn an_id_that_was_never_issued_is_unknown() {
        let mut buffers = PacketBuffers::default();
        assert_eq!(code(buffers.take(0, START)), ErrorCode::BadRequestBufferUnknown);
        let id = keep(&mut buffers, 60, START).unwrap();
        for wrong in [id ^ 1, id ^ 1 << SLOT_BITS, id ^ 1 << 31, id & (SLOTS - 1)] {
            assert_eq!(code(buffers.take(wrong, START)), ErrorCode::BadRequestBufferUnknown);
        }
        assert!(buffers.take(id, START).is_ok());
    }

    #[test]
    fn a_frame_waits_for_its_life_and_not_longer() {
        let mut buffers = PacketBuffers::default();
        let id = keep(&mut buffers, 60, START).unwrap();
        assert_eq!(buffers.check(id, Nanos(after_life().0 - 1)), Ok(()));
        assert_eq!(code(buffers.take(id, after_life())), ErrorCode::BadRequestBufferUnknown);
        assert_eq!((frames(&buffers), buffers.bytes), (0, 0));
    }

    #[test]
    fn each_frame_expires_at_its_own_time() {
        let mut buffers = PacketBuffers::default();
        let first = keep(&mut buffers, 60, START).unwrap();
        let second = keep(&mut buffers, 60, Nanos(START.0 + 5)).unwrap();
        buffers.take(first, START).unwrap();
        buffers.expire(after_life());
        assert_eq!(frames(&buffers), 1);
        buffers.expire(Nanos(after_life().0 + 5));
        assert_eq!(code(buffers.take(second, after_life())), ErrorCode::BadRequestBufferUnknown);
    }

    #[test]
    fn when_all_slots_are_taken_there_is_room_only_after_one_is_used_or_expires() {
        let mut buffers = PacketBuffers::default();
        let ids: Vec<u32> = (0..SLOTS).map(|_| keep(&mut buffers, 60, START).unwrap()).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), SLOTS as usize);
        assert_eq!(keep(&mut buffers, 60, START), None);
        buffers.take(ids[5], START).unwrap();
        let again = keep(&mut buffers, 60, START).unwrap();
        assert_ne!(again, ids[5], "the slot is the same, its cookie is not");
        assert_eq!(code(buffers.take(ids[5], START)), ErrorCode::BadRequestBufferUnknown);
        assert_eq!(keep(&mut buffers, 60, START), None);
        assert!(keep(&mut buffers, 60, after_life()).is_some());
    }

    #[test]
    fn large_frames_are_bounded_by_their_bytes() {
        let mut buffers = PacketBuffers::default();
        let large = 65_536;
        let count = (0..SLOTS).filter(|_| keep(&mut buffers, large, START).is_some()).count();
        assert_eq!(count, MOST_BYTES / large);
        assert_eq!(keep(&mut buffers, 1, START), None);
    }

    #[test]
    fn no_id_is_no_buffer_and_ids_of_two_switches_differ() {
        let mut one = PacketBuffers::default();
        let mut other = PacketBuffers::default();
        let mut same = 0;
        for _ in 0..SLOTS {
            let (a, b) = (keep(&mut one, 1, START).unwrap(), keep(&mut other, 1, START).unwrap());
            assert!(a != u32::MAX && a >= SLOTS);
            same += u32::from(a == b);
        }
        assert!(same < 4, "{same} of {SLOTS} ids are the same; 1 in 4096 times one is, by chance");
    }

    #[test]
    fn what_is_cleared_is_unknown_and_takes_no_memory() {
        let mut buffers = PacketBuffers::default();
        let id = keep(&mut buffers, 60, START).unwrap();
        buffers.clear();
        assert_eq!(code(buffers.take(id, START)), ErrorCode::BadRequestBufferUnknown);
        assert_eq!((buffers.slots.capacity(), frames(&buffers)), (0, 0));
    }
}
