//! The packed ring (VIRTIO 1.2 §2.8): one ring of descriptors, which both sides write.
//!
//! Descriptor: `addr` u64 0, `len` u32 8, `id` u16 12, `flags` u16 14. Event suppression areas: `off_wrap` u16 0, `flags` u16 2.
//!
//! Four descriptors share a cache line, and the driver fills what we read and reads what we give back. So we leave a line that it is still
//! filling alone as long as there are others, and write the first descriptor given back last: until then the driver looks at no other.

mod inflight;
mod position;
mod record;

use super::chains::{Building, CHAIN_MAX, Chains, Gather, Unused};
use super::config::Base;
use super::indirect::Table;
use super::{CHAIN, INDIRECT, NEXT, Places, Queue, SIZE_MAX, Used, WRITE, passed};
use crate::fault::{Fault, Part};
use crate::features::Features;
use crate::inflight::InflightRing;
use crate::log::DirtyLog;
use crate::memory::GuestMemory;
use crate::record::RingRecord;
use crate::sys::{Area, Descriptor, For};
use inflight::Inflight;
use position::{AVAIL, Position, USED};
use record::Record;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence, fence};

/// Descriptors of a cache line.
const LINE: u16 = 4;
/// Values of an event suppression area's flags.
const ENABLE: u16 = 0;
const DISABLE: u16 = 1;
const AT_DESCRIPTOR: u16 = 2;
/// Bytes of such an area, and where its two words stand. The first of the device's area is free for [`record`]'s mark: it counts only with
/// [`AT_DESCRIPTOR`], which we never ask for.
const SUPPRESSION: usize = 4;
const DESC: usize = 0;
const FLAGS: usize = 2;

/// A packed ring.
pub(super) struct Packed {
    memory: Arc<GuestMemory>,
    parts: Parts,
    size: u16,
    features: Features,
    /// The next descriptor to read.
    avail: Position,
    /// The next one to give back.
    used: Position,
    /// Descriptors between the two.
    taken: u16,
    /// Where `used` was when it was last decided whether to notify; `None` when that was never.
    told: Option<u16>,
    inflight: Option<Inflight>,
    record: Option<Record>,
}

/// The parts of a ring in memory, and where the guest has those that we write.
struct Parts {
    ring: Area,
    ring_guest: u64,
    driver: Area,
    device: Area,
    device_guest: u64,
}

impl Parts {
    fn find(places: &Places, memory: &GuestMemory) -> Result<Self, Fault> {
        let find = |part, user, len, align| {
            memory.area(user, len, align).ok_or(Fault::Unplaced { part, user })
        };
        // Sizes and alignments: VIRTIO 1.2 §2.8.10.1.
        let (ring, ring_guest) =
            find(Part::Descriptors, places.desc, 16 * usize::from(places.size), 16)?;
        let (driver, _) = find(Part::Driver, places.driver, SUPPRESSION, 4)?;
        let (device, device_guest) = find(Part::Device, places.device, SUPPRESSION, 4)?;
        Ok(Self { ring, ring_guest, driver, device, device_guest })
    }

    fn mark(&self) -> u16 {
        self.device.load_u16(DESC, Ordering::Relaxed)
    }

    fn set_mark(&self, mark: u16) {
        self.device.store_u16(DESC, mark, Ordering::Relaxed);
    }
}

impl Packed {
    pub(super) fn new(
        places: &Places,
        base: Base,
        features: Features,
        memory: &Arc<GuestMemory>,
        (inflight, record): (Option<InflightRing>, Option<RingRecord>),
    ) -> Result<Self, Fault> {
        let size = places.size;
        if size == 0 || size > SIZE_MAX {
            return Err(Fault::Size(size));
        }
        let (avail, used) = Position::of(base, size)?;
        let (parts, memory) = (Parts::find(places, memory)?, Arc::clone(memory));
        let taken = avail.since(used, size);
        let mut packed = Self {
            memory,
            parts,
            size,
            features,
            avail,
            used,
            taken,
            told: None,
            inflight: None,
            record: None,
        };
        match (inflight, record) {
            // What the front-end keeps counts.
            (Some(ring), _) => packed.recover(ring)?,
            (None, Some(ring)) => packed.keep_record(ring, places, base),
            (None, None) => {}
        }
        Ok(packed)
    }

    /// Goes on where a process before us stopped giving back, if the front-end kept that.
    fn recover(&mut self, ring: InflightRing) -> Result<(), Fault> {
        let mut inflight = Inflight::new(ring, self.size)?;
        if let Some((old, new)) = inflight.left(self.size)? {
            self.resume(old, new);
        }
        inflight.begin_giving_back(self.used);
        inflight.end_giving_back(self.used);
        self.inflight = Some(inflight);
        Ok(())
    }

    /// The same, if we kept it.
    fn keep_record(&mut self, ring: RingRecord, places: &Places, base: Base) {
        let (record, left) = Record::open(ring, places, base, self.parts.mark());
        if let Some((old, new)) = left.filter(|&(_, new)| !new.is_used(self.flags(new))) {
            self.resume(old, new);
        }
        self.parts.set_mark(record.mark());
        record.holds(self.used);
        self.record = Some(record);
    }

    /// Goes on behind a process that was moving the used position from `old` to `new` (module `record` tells how). We give back in the order of
    /// the ring, so what it had taken beyond that is still there, unchanged, to be taken again.
    fn resume(&mut self, old: Position, new: Position) {
        let seen = !old.is_available(self.flags(old));
        let used = if seen || self.finish(old, new) { new } else { old };
        (self.used, self.avail, self.taken) = (used, used, 0);
    }

    /// Finishes a batch of which the last used descriptors are written and the first are not; false when none is.
    fn finish(&self, old: Position, new: Position) -> bool {
        let (mut at, mut left) = (old, new.since(old, self.size));
        let mut whole = Vec::new();
        while left > 0 && at.is_available(self.flags(at)) {
            let (id, places) = self.extent(at);
            whole.push(Used { id, places, len: 0 });
            at = at.forth(places, self.size);
            left = left.saturating_sub(places);
        }
        let is_torn = left > 0;
        if is_torn {
            self.write_all(old, &whole, total(&whole));
        }
        is_torn
    }

    /// The id of an available chain, and the places it takes: a lap at most.
    fn extent(&self, first: Position) -> (u16, u16) {
        let (mut at, mut places) = (first, 1);
        loop {
            let (_, _, id, flags) = self.descriptor(at);
            if flags & NEXT == 0 || places == self.size {
                return (id, places);
            }
            (at, places) = (at.forth(1, self.size), places + 1);
        }
    }

    /// Finds the ring's parts in another memory table.
    pub(super) fn place(
        &mut self,
        places: &Places,
        memory: &Arc<GuestMemory>,
    ) -> Result<(), Fault> {
        self.parts = Parts::find(places, memory)?;
        self.memory = Arc::clone(memory);
        if let Some(record) = &self.record {
            self.parts.set_mark(record.mark());
        }
        Ok(())
    }

    /// Un-reads buffers that were read last.
    pub(super) fn rewind(&mut self, unused: Unused) {
        self.avail = self.avail.back(unused.places, self.size);
        self.taken -= unused.places;
    }

    /// Where the ring would go on if `unused` had not been read.
    pub(super) fn base(&self, unused: Unused) -> Base {
        let avail = self.avail.back(unused.places, self.size);
        Base::Packed {
            avail: avail.place,
            avail_wrap: avail.wrap,
            used: self.used.place,
            used_wrap: self.used.wrap,
        }
    }

    /// 1 if a buffer is available that was not read; the ring keeps no count.
    pub(super) fn waiting(&self) -> u16 {
        let room = self.taken < self.size;
        u16::from(room && self.avail.is_available(self.flags(self.avail)))
    }

    fn flags(&self, at: Position) -> u16 {
        self.parts.ring.load_u16(16 * usize::from(at.place) + 14, Ordering::Acquire)
    }

    /// Adds up to `max` chains; returns how many. At least one if there is one, and none begun after `chains` is full.
    #[inline]
    pub(super) fn fetch(
        &mut self,
        max: usize,
        queue: Queue,
        chains: &mut Chains,
    ) -> Result<usize, Fault> {
        let mut done = 0;
        self.expect(max);
        let mut gather = chains.gather(queue.purpose());
        while done < max && self.taken < self.size && (done == 0 || !gather.is_full()) {
            done += self.alone(max - done, queue, &mut gather);
            // What comes next may be none of those, or not there.
            let stop = done > 0 && (self.is_line_being_filled() || gather.is_full());
            if stop || done == max || self.taken == self.size {
                break;
            }
            if !self.chain(queue, &mut gather)? {
                break;
            }
            done += 1;
        }
        Ok(done)
    }

    /// Adds up to `max` chains of one descriptor, as most are, before the ring's end; returns how many.
    #[inline]
    fn alone(&mut self, max: usize, queue: Queue, gather: &mut Gather<'_>) -> usize {
        let first = self.avail.place;
        let room = (self.size - self.taken).min(self.size - first).min(max as u16);
        let wanted = queue.alone() | self.avail.available();
        let offers = (first..first + self.in_filled_lines(room)).map_while(|place| {
            let (guest, len, id, flags) = self.descriptor(Position { place, ..self.avail });
            (flags & (CHAIN | AVAIL | USED) == wanted).then_some((guest, len, id))
        });
        let count = gather.run(offers, room.into(), queue.purpose());
        self.avail = self.avail.forth(count as u16, self.size);
        self.taken += count as u16;
        count
    }

    /// How many of the next `room` descriptors, none behind the ring's end, stand before a line that is being filled; those of the line where we
    /// are count.
    #[inline]
    fn in_filled_lines(&self, room: u16) -> u16 {
        let first = self.avail.place;
        let (limit, mut end) = (first + room, first / LINE * LINE + LINE);
        while end < limit && !self.line_is_being_filled(Position { place: end, ..self.avail }) {
            end += LINE;
        }
        end.min(limit) - first
    }

    /// Asks for the descriptors' lines, which we will also write, as far as a look ahead finds them available.
    #[inline]
    fn expect(&self, max: usize) {
        let room = max.min(usize::from(self.size - self.taken));
        let is_there = |ahead: usize| {
            ahead < room
                && self.avail.is_available(self.flags(self.avail.forth(ahead as u16, self.size)))
        };
        let Some(ahead) = [63, 31, 15].into_iter().find(|&ahead| is_there(ahead)) else { return };
        for place in (0..=ahead).step_by(LINE.into()) {
            let at = self.avail.forth(place as u16, self.size);
            self.parts.ring.prefetch(16 * usize::from(at.place), For::Writing);
        }
    }

    /// Whether a new line begins where we are that is not available to its end.
    #[inline]
    fn is_line_being_filled(&self) -> bool {
        self.line_is_being_filled(self.avail)
    }

    #[inline]
    fn line_is_being_filled(&self, at: Position) -> bool {
        let last = at.place + LINE - 1;
        at.place.is_multiple_of(LINE)
            && last < self.size
            && !at.is_available(self.flags(Position { place: last, ..at }))
    }

    /// The next chain, of any kind; false when there is none.
    fn chain(&mut self, queue: Queue, gather: &mut Gather<'_>) -> Result<bool, Fault> {
        let (guest, len, id, flags) = self.descriptor(self.avail);
        if !self.avail.is_available(flags) {
            return Ok(false);
        }
        let places = self.walk((guest, len, id, flags), queue, gather)?;
        self.avail = self.avail.forth(places, self.size);
        self.taken += places;
        Ok(true)
    }

    /// A chain of any kind; returns the places that it takes.
    #[inline(never)]
    fn walk(
        &self,
        first: (u64, u32, u16, u16),
        queue: Queue,
        gather: &mut Gather<'_>,
    ) -> Result<u16, Fault> {
        let mut chain = gather.begin();
        let (id, places) = self.follow(first, queue, &mut chain)?;
        chain.end(id, places);
        Ok(places)
    }

    /// A descriptor: its second half, which says whether it is available, before its first; each read once.
    #[inline]
    fn descriptor(&self, at: Position) -> (u64, u32, u16, u16) {
        let Descriptor { addr, len, third, fourth } =
            self.parts.ring.descriptor_in_place(at.place.into());
        (addr, len, third, fourth)
    }

    /// A chain of descriptors one after the other, or a table; returns its id, which the last descriptor has, and the places it takes.
    fn follow(
        &self,
        first: (u64, u32, u16, u16),
        queue: Queue,
        chain: &mut Building<'_, '_>,
    ) -> Result<(u16, u16), Fault> {
        let (mut guest, mut len, mut id, mut flags) = first;
        if flags & INDIRECT != 0 {
            let allowed = self.features.contains(Features::INDIRECT_DESC) && flags & NEXT == 0;
            Table::new(&self.memory, guest, len, allowed)?.listed(queue, chain)?;
            return Ok((id, 1));
        }
        let most = u32::from(self.size - self.taken).min(CHAIN_MAX) as u16;
        let mut at = self.avail;
        for places in 1..=most {
            if flags & INDIRECT != 0 {
                return Err(Fault::BadIndirect(len));
            }
            queue.check(flags)?;
            chain.push(guest, len)?;
            if flags & NEXT == 0 {
                return Ok((id, places));
            }
            at = at.forth(1, self.size);
            (guest, len, id, flags) = self.descriptor(at);
        }
        Err(Fault::ChainTooLong(most.into()))
    }

    /// Whether a front-end keeps an account of each buffer taken: it keeps one of positions.
    pub(super) fn has_inflight(&self) -> bool {
        false
    }

    /// Writes the used descriptors, the first one last.
    #[inline]
    pub(super) fn publish(&mut self, used: &[Used]) {
        let total = total(used);
        let (start, end) = (self.used, self.used.forth(total, self.size));
        if let Some(inflight) = &mut self.inflight {
            inflight.begin_giving_back(end);
        }
        if let Some(record) = &self.record {
            record.moves(start, end);
        }
        self.write_all(start, used, total);
        (self.used, self.taken) = (end, self.taken - total);
        if let Some(inflight) = &mut self.inflight {
            inflight.end_giving_back(end);
        }
    }

    /// Writes used descriptors, `total` places, from `start` on: from the last one back, so that a process that dies between two of them leaves the first ones
    /// whole (module `record`), and the very first, which shows the others to the driver, after all others.
    #[inline]
    fn write_all(&self, start: Position, used: &[Used], total: u16) {
        let Some((&first, others)) = used.split_first() else { return };
        if self.features.contains(Features::IN_ORDER) && used.iter().all(|used| used.len == 0) {
            // In order, buffers without data need one descriptor, which names the last of them (VIRTIO 1.2 §2.8.9).
            return self.write(start, others.last().copied().unwrap_or(first), Ordering::Release);
        }
        if usize::from(total) == used.len() && start.place + total <= self.size {
            // One place each, and no end of the ring between: as most batches are.
            for (place, one) in (start.place..start.place + total).zip(used).skip(1).rev() {
                self.write(Position { place, ..start }, *one, Ordering::Relaxed);
                compiler_fence(Ordering::SeqCst);
            }
        } else {
            let mut at = start.forth(total, self.size);
            for one in others.iter().rev() {
                at = at.back(one.places, self.size);
                self.write(at, *one, Ordering::Relaxed);
                compiler_fence(Ordering::SeqCst);
            }
        }
        fence(Ordering::Release);
        self.write(start, first, Ordering::Release);
    }

    /// Length, id and flags in one store.
    #[inline]
    fn write(&self, at: Position, used: Used, order: Ordering) {
        let marks = if at.wrap { AVAIL | USED } else { 0 };
        let flags = if used.len > 0 { marks | WRITE } else { marks };
        let word = u64::from(used.len) | u64::from(used.id) << 32 | u64::from(flags) << 48;
        self.parts.ring.store_u64(16 * usize::from(at.place) + 8, word, order);
    }

    /// Whether the driver wants to hear of what was used since the last time this was asked.
    #[inline]
    pub(super) fn wants_call(&mut self) -> bool {
        let new = self.used.place;
        let told = self.told.replace(new);
        let event = self.parts.driver.load_u32(0, Ordering::Acquire);
        let (off_wrap, flags) = (event as u16, (event >> 16) as u16 & 3);
        match (flags, told) {
            (ENABLE, _) => true,
            (DISABLE, _) => false,
            (AT_DESCRIPTOR, Some(told)) if self.features.contains(Features::EVENT_IDX) => {
                self.passed(off_wrap, new, told)
            }
            _ => true,
        }
    }

    /// Whether `used` moved from `old` to `new` over the place that the driver named (VIRTIO 1.2 §2.8.10).
    fn passed(&self, off_wrap: u16, new: u16, old: u16) -> bool {
        let (place, wrap) = (off_wrap & 0x7fff, off_wrap >> 15 == 1);
        // Places of the lap before this one are made negative.
        let event = if wrap == self.used.wrap { place } else { place.wrapping_sub(self.size) };
        let old = if new <= old { old.wrapping_sub(self.size) } else { old };
        passed(event, new, old)
    }

    /// Asks the driver for notifications of available buffers from now on, or for none.
    pub(super) fn set_notifications(&mut self, wanted: bool) {
        let flags = if wanted { ENABLE } else { DISABLE };
        self.parts.device.store_u16(FLAGS, flags, Ordering::Relaxed);
    }

    /// Marks the pages that we write: here the descriptors too.
    pub(super) fn log(&self, log: &DirtyLog) {
        log.mark(self.parts.ring_guest, 16 * u64::from(self.size));
        log.mark(self.parts.device_guest, SUPPRESSION as u64);
    }
}

/// Places that these take.
#[inline]
fn total(used: &[Used]) -> u16 {
    used.iter().map(|used| used.places).sum()
}
