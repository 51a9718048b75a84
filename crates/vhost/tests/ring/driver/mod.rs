//! The plain driver, for either layout.

mod packed;
mod split;

use super::guest::{Buffer, Guest};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use vhost::{Base, Call, Features, HEADER_MAX, Vring, VringConfig};

pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const INDIRECT: u16 = 4;

/// What the layouts differ in.
pub trait Layout {
    /// Where the ring begins.
    fn base(&self) -> Base;
    /// Makes a chain available; its pieces are all of one direction. Returns the descriptors it takes.
    fn offer(
        &mut self,
        guest: &Guest,
        id: u16,
        chain: &[Buffer],
        flags: u16,
        table: Option<u64>,
    ) -> u16;
    /// Whether the device asked to be notified of the chains offered since this was last asked.
    fn wants_kick(&mut self, guest: &Guest) -> bool;
    /// The next entry of what was given back: its id and the bytes written.
    fn reap(&self, guest: &Guest) -> Option<(u16, u32)>;
    /// Goes on behind a chain that was given back, whose descriptors are free again.
    fn done(&mut self, id: u16);
    /// Asks the device to notify, or not to.
    fn set_calls(&mut self, guest: &Guest, wanted: bool);
}

/// An offered chain.
struct Offered {
    id: u16,
    descriptors: u16,
    pieces: Vec<Buffer>,
}

/// A driver of one ring.
pub struct Driver {
    pub guest: Guest,
    pub kick: Arc<OwnedFd>,
    pub call: Arc<OwnedFd>,
    layout: Box<dyn Layout + Send>,
    /// Where the ring began.
    start: Base,
    pub features: Features,
    pub size: u16,
    /// Offsets of the three areas.
    pub areas: [u64; 3],
    free_descriptors: u16,
    free_ids: VecDeque<u16>,
    offered: VecDeque<Offered>,
    /// In order: given back, not yet told apart.
    batch: VecDeque<(u16, u32)>,
    /// A table for each id.
    tables: u64,
    /// Buffers for each id.
    buffers: u64,
}

/// Bytes of buffers for each id, and descriptors of its table.
pub const SPACE: u64 = 4096;
const TABLE: u64 = 16;

impl Driver {
    pub fn new(size: u16, features: Features) -> Self {
        Self::starting_at(size, features, 0)
    }

    /// A ring whose indices have come to `start` already (split: any; packed: less than its size). If that is odd, headers end where lines of the cache do, as DPDK's.
    pub fn starting_at(size: u16, features: Features, start: u16) -> Self {
        let mut guest =
            Guest::new((u64::from(size) * (SPACE + TABLE * 16) + (1 << 20)).next_multiple_of(4096));
        let packed = features.contains(Features::RING_PACKED);
        let long = u64::from(size);
        let areas = if packed {
            [(16 * long, 16), (4, 4), (4, 4)]
        } else {
            [(16 * long, 16), (6 + 2 * long, 2), (6 + 8 * long, 4)]
        };
        let areas = areas.map(|(len, align)| guest.allocate(len, align));
        let tables = guest.allocate(long * TABLE * 16, 16);
        let before = if start % 2 == 1 { 64 - HEADER_MAX as u64 } else { 0 };
        let buffers = guest.allocate(long * SPACE + before, SPACE) + before;
        let event = || Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap());
        let layout: Box<dyn Layout + Send> = if packed {
            Box::new(packed::Packed::new(areas, size, features, start))
        } else {
            Box::new(split::Split::new(&guest, areas, size, features, start))
        };
        let start = layout.base();
        Self {
            guest,
            start,
            kick: event(),
            call: event(),
            layout,
            features,
            size,
            areas,
            free_descriptors: size,
            free_ids: (0..size).collect(),
            offered: VecDeque::new(),
            batch: VecDeque::new(),
            tables,
            buffers,
        }
    }

    pub fn config(&self) -> VringConfig {
        let [desc, driver, device] = self.areas.map(|at| super::guest::USER + at);
        VringConfig {
            features: self.features,
            size: self.size,
            desc,
            driver,
            device,
            base: self.start,
            log_used_at: None,
            memory: self.guest.memory(),
            kick: Some(Arc::clone(&self.kick)),
            call: Some(Arc::new(Call::new(self.call.try_clone().unwrap()).unwrap())),
            inflight: None,
            record: None,
            log: None,
        }
    }

    /// Where the buffers of an id begin.
    pub fn buffer(&self, id: u64) -> u64 {
        self.buffers + id * SPACE
    }

    /// The device's end.
    pub fn device(&self) -> Vring {
        Vring::new(self.config()).unwrap()
    }

    /// Offers a frame to send, cut into pieces of these lengths; false when there is no room.
    pub fn send(&mut self, frame: &[u8], pieces: &[u32], indirect: bool) -> bool {
        let Some(chain) = self.prepare(pieces, indirect) else { return false };
        let mut rest = frame;
        for piece in &chain.pieces {
            let (part, later) = rest.split_at(piece.len as usize);
            self.guest.write(piece.at, part);
            rest = later;
        }
        assert!(rest.is_empty(), "the pieces are the frame");
        self.offer(chain, 0, indirect);
        true
    }

    /// Offers a buffer to receive into.
    pub fn post(&mut self, pieces: &[u32], indirect: bool) -> bool {
        let Some(chain) = self.prepare(pieces, indirect) else { return false };
        self.offer(chain, WRITE, indirect);
        true
    }

    /// Writes into the header of the buffer that is offered next.
    pub fn write_next_header(&self, header: &[u8; HEADER_MAX]) {
        if let Some(&id) = self.free_ids.front() {
            self.guest.write(self.buffer(id.into()), header);
        }
    }

    /// Notifies if the device wants it; returns whether it did.
    pub fn kick_if_wanted(&mut self) -> bool {
        fence(Ordering::SeqCst);
        let wanted = self.layout.wants_kick(&self.guest);
        if wanted {
            rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).unwrap();
        }
        wanted
    }

    /// Whether a chain of so many descriptors can be offered.
    pub fn has_room(&self, descriptors: u16) -> bool {
        descriptors <= self.free_descriptors && !self.free_ids.is_empty()
    }

    fn prepare(&mut self, pieces: &[u32], indirect: bool) -> Option<Offered> {
        let descriptors = if indirect { 1 } else { pieces.len() as u16 };
        if !self.has_room(descriptors) {
            return None;
        }
        let id = self.free_ids.pop_front()?;
        let mut at = self.buffer(id.into());
        let mut chain = Offered { id, descriptors, pieces: Vec::new() };
        for &len in pieces {
            chain.pieces.push(Buffer { at, len });
            at += u64::from(len);
        }
        assert!(at <= self.buffer(u64::from(id) + 1) && pieces.len() as u64 <= TABLE);
        Some(chain)
    }

    fn offer(&mut self, chain: Offered, flags: u16, indirect: bool) {
        let table = indirect.then_some(self.tables + u64::from(chain.id) * TABLE * 16);
        let descriptors = self.layout.offer(&self.guest, chain.id, &chain.pieces, flags, table);
        assert_eq!(descriptors, chain.descriptors);
        self.free_descriptors -= descriptors;
        self.offered.push_back(chain);
    }

    /// The next buffer given back: its bytes, as many as the device wrote.
    pub fn reap(&mut self) -> Option<Vec<u8>> {
        self.look();
        let (id, len) = self.batch.pop_front()?;
        let offered = self.offered.pop_front().unwrap();
        assert_eq!(offered.id, id);
        self.free_descriptors += offered.descriptors;
        self.free_ids.push_back(id);
        let mut bytes = Vec::new();
        for piece in offered.pieces {
            let rest = len as usize - bytes.len();
            bytes.extend(self.guest.read(piece.at, rest.min(piece.len as usize)));
        }
        assert_eq!(bytes.len(), len as usize, "no more was written than there is room");
        Some(bytes)
    }

    /// Asks for notifications; when nothing came meanwhile (true), the driver may sleep until one comes.
    pub fn sleep(&mut self) -> bool {
        self.drain_calls();
        self.layout.set_calls(&self.guest, true);
        fence(Ordering::SeqCst);
        self.look();
        self.batch.is_empty()
    }

    /// Goes back to work.
    pub fn wake(&mut self) {
        self.layout.set_calls(&self.guest, false);
    }

    /// Reads the next entry, if there is nothing left of the one before. In order, one entry may stand for all buffers up to the one it
    /// names; only those without data are left out.
    fn look(&mut self) {
        if !self.batch.is_empty() {
            return;
        }
        let Some((last, len)) = self.layout.reap(&self.guest) else { return };
        let count = self.offered.iter().position(|offered| offered.id == last).unwrap() + 1;
        let in_order = self.features.contains(Features::IN_ORDER);
        assert!(
            count == 1 || in_order && len == 0,
            "this device gives back in order, and says the length of what it fills"
        );
        for offered in self.offered.iter().take(count) {
            self.layout.done(offered.id);
            self.batch.push_back((offered.id, len));
        }
    }

    /// Whether the device notified since this was last asked.
    pub fn drain_calls(&self) -> bool {
        rustix::io::read(&self.call, &mut [0; 8]).is_ok()
    }
}
