//! The split ring (VIRTIO 1.2 §2.7): a table of descriptors, a ring of what is available, a ring of what was used.
//!
//! Available ring: `flags` 0, `idx` 2, `ring[size]` 4.., `used_event` behind. Used ring: `flags` 0, `idx` 2, `ring[size]` of (id u32, len u32) 4..,
//! `avail_event` behind. Indices run freely modulo 2^16; places in a ring are indices modulo its size, a power of two.

mod inflight;

use super::chains::{Building, CHAIN_MAX, Chains, Gather, Unused};
use super::config::Base;
use super::indirect::Table;
use super::{CHAIN, INDIRECT, NEXT, Places, Queue, SIZE_MAX, Used, passed};
use crate::fault::{Fault, Part};
use crate::features::Features;
use crate::inflight::InflightRing;
use crate::log::DirtyLog;
use crate::memory::GuestMemory;
use crate::sys::{Area, For};
use inflight::Inflight;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wire::BATCH;

/// Where `flags`, `idx` and the entries stand, in both rings.
const FLAGS: usize = 0;
const INDEX: usize = 2;
const ENTRIES: usize = 4;
/// `VIRTQ_AVAIL_F_NO_INTERRUPT` and `VIRTQ_USED_F_NO_NOTIFY`.
const DO_NOT: u16 = 1;
/// Bytes of a cache line.
const LINE: usize = 64;

/// A split ring.
pub(super) struct Split {
    memory: Arc<GuestMemory>,
    table: Area,
    avail: Area,
    used: Area,
    size: u16,
    features: Features,
    /// The next available index to read.
    next: u16,
    /// The used index as the driver sees it.
    used_index: u16,
    /// … when it was last decided whether to notify; `None` when that was never.
    told: Option<u16>,
    inflight: Option<Inflight>,
    /// Taken by a process before us and never given back; these come first.
    again: Vec<u16>,
}

/// The parts of a ring in memory.
struct Parts {
    table: Area,
    avail: Area,
    used: Area,
}

impl Parts {
    fn find(places: &Places, memory: &GuestMemory) -> Result<Self, Fault> {
        let size = usize::from(places.size);
        let find = |part, user, len, align| {
            memory
                .area(user, len, align)
                .map(|(area, _)| area)
                .ok_or(Fault::Unplaced { part, user })
        };
        // Sizes and alignments: VIRTIO 1.2 §2.7, with the event index behind each ring.
        Ok(Self {
            table: find(Part::Descriptors, places.desc, 16 * size, 16)?,
            avail: find(Part::Driver, places.driver, 6 + 2 * size, 2)?,
            used: find(Part::Device, places.device, 6 + 8 * size, 4)?,
        })
    }
}

impl Split {
    pub(super) fn new(
        places: &Places,
        next: u16,
        features: Features,
        memory: &Arc<GuestMemory>,
        inflight: Option<InflightRing>,
    ) -> Result<Self, Fault> {
        let size = places.size;
        if !size.is_power_of_two() || size > SIZE_MAX {
            return Err(Fault::Size(size));
        }
        let Parts { table, avail, used } = Parts::find(places, memory)?;
        let used_index = used.load_u16(INDEX, Ordering::Acquire);
        let mut split = Self {
            memory: Arc::clone(memory),
            table,
            avail,
            used,
            size,
            features,
            next,
            used_index,
            told: None,
            inflight: None,
            again: Vec::new(),
        };
        if let Some(ring) = inflight {
            split.recover(Inflight::new(ring, size)?)?;
        }
        Ok(split)
    }

    /// Takes up what a process before us left: its buffers come first, and everything before them was used.
    fn recover(&mut self, inflight: Inflight) -> Result<(), Fault> {
        self.again = inflight.recover(self.used_index)?;
        if !self.again.is_empty() {
            self.next = self.used_index.wrapping_add(self.again.len() as u16);
        }
        self.inflight = Some(inflight);
        Ok(())
    }

    /// Finds the ring's parts in another memory table.
    pub(super) fn place(
        &mut self,
        places: &Places,
        memory: &Arc<GuestMemory>,
    ) -> Result<(), Fault> {
        let Parts { table, avail, used } = Parts::find(places, memory)?;
        (self.table, self.avail, self.used) = (table, avail, used);
        self.memory = Arc::clone(memory);
        Ok(())
    }

    /// Un-reads buffers that were read last.
    pub(super) fn rewind(&mut self, unused: Unused) {
        self.next = self.next.wrapping_sub(unused.buffers);
    }

    /// Where the ring would go on if `unused` had not been read.
    pub(super) fn base(&self, unused: Unused) -> Base {
        Base::Split(self.next.wrapping_sub(unused.buffers + self.again.len() as u16))
    }

    /// Available buffers that were not read.
    pub(super) fn waiting(&self) -> u16 {
        let index = self.avail.load_u16(INDEX, Ordering::Acquire);
        index.wrapping_sub(self.next).min(self.size).saturating_add(self.again.len() as u16)
    }

    /// Adds up to `max` chains; returns how many. At least one if there is one, and none begun after `chains` is full.
    #[inline]
    pub(super) fn fetch(
        &mut self,
        max: usize,
        queue: Queue,
        chains: &mut Chains,
    ) -> Result<usize, Fault> {
        let mut heads = [0; BATCH];
        let (count, old) = self.heads(max.min(BATCH), &mut heads)?;
        self.expect_used(count, queue);
        let (mut done, mut gather) = (0, chains.gather(queue.purpose()));
        while done < count && (done == 0 || !gather.is_full()) {
            // Most are one descriptor.
            let offers = heads[done..count].iter().map_while(|&head| {
                let first = self.table.descriptor(head.into());
                (first.third & CHAIN == queue.alone()).then_some((first.addr, first.len, head))
            });
            let alone = gather.run(offers, count - done, queue.purpose());
            if alone == 0 {
                self.walk(heads[done], queue, &mut gather)?;
            }
            done += alone.max(1);
        }
        if queue == Queue::Transmit
            && let Some(inflight) = &mut self.inflight
        {
            heads[..done].iter().for_each(|&head| inflight.take(head));
        }
        match old {
            true => drop(self.again.drain(..done)),
            false => self.next = self.next.wrapping_add(done as u16),
        }
        Ok(done)
    }

    /// The numbers of the next chains, each read once and checked, and whether they are old ones; asks for their descriptors.
    #[inline]
    fn heads(&mut self, max: usize, heads: &mut [u16; BATCH]) -> Result<(usize, bool), Fault> {
        if !self.again.is_empty() {
            return Ok((self.old_heads(max, heads), true));
        }
        let index = self.avail.load_u16(INDEX, Ordering::Acquire);
        let (waiting, size) = (index.wrapping_sub(self.next), self.size);
        if waiting > size {
            return Err(Fault::IndexJump { index, waiting, size });
        }
        let count = max.min(waiting.into());
        for (place, head) in heads[..count].iter_mut().enumerate() {
            let place = usize::from(self.next.wrapping_add(place as u16) & (size - 1));
            *head = self.avail.load_u16(ENTRIES + 2 * place, Ordering::Relaxed);
            if *head >= size {
                return Err(Fault::BadIndex { index: *head, size });
            }
            self.table.prefetch(16 * usize::from(*head), For::Reading);
        }
        Ok((count, false))
    }

    /// Asks for the index of what is available: the driver has written it since, and it will be read when the frames in hand are gone.
    #[inline]
    pub(super) fn expect_more(&self) {
        self.avail.prefetch(INDEX, For::Reading);
    }

    /// Asks for the lines that the used entries of the next `count` buffers will be written to; of what the driver sends, which is given back soon, the used index's
    /// too.
    #[inline]
    fn expect_used(&self, count: usize, queue: Queue) {
        if queue == Queue::Transmit && count > 0 {
            self.used.prefetch(INDEX, For::Writing);
            if self.features.contains(Features::IN_ORDER) {
                // One entry for all of them.
                let place = usize::from(self.used_index & (self.size - 1));
                return self.used.prefetch(ENTRIES + 8 * place, For::Writing);
            }
        }
        let first = usize::from(self.next & (self.size - 1));
        for place in (first..first + count).step_by(LINE / 8) {
            let place = place & usize::from(self.size - 1);
            self.used.prefetch(ENTRIES + 8 * place, For::Writing);
        }
    }

    #[cold]
    fn old_heads(&self, max: usize, heads: &mut [u16; BATCH]) -> usize {
        let count = max.min(self.again.len());
        heads[..count].copy_from_slice(&self.again[..count]);
        count
    }

    /// A chain of any kind; its first descriptor is read anew.
    #[inline(never)]
    fn walk(&self, head: u16, queue: Queue, gather: &mut Gather<'_>) -> Result<(), Fault> {
        let mut chain = gather.begin();
        self.follow(head, queue, &mut chain)?;
        chain.end(head, 1);
        Ok(())
    }

    /// A chain by `next`, whose last descriptor may be a table.
    fn follow(&self, head: u16, queue: Queue, chain: &mut Building<'_, '_>) -> Result<(), Fault> {
        let most = u32::from(self.size).min(CHAIN_MAX);
        let allowed = self.features.contains(Features::INDIRECT_DESC);
        let mut index = head;
        for _ in 0..most {
            let descriptor = self.table.descriptor(index.into());
            let (flags, next) = (descriptor.third, descriptor.fourth);
            if flags & INDIRECT != 0 {
                let allowed = allowed && flags & NEXT == 0;
                let table = Table::new(&self.memory, descriptor.addr, descriptor.len, allowed)?;
                return table.chained(queue, chain);
            }
            queue.check(flags)?;
            chain.push(descriptor.addr, descriptor.len)?;
            if flags & NEXT == 0 {
                return Ok(());
            }
            if next >= self.size {
                return Err(Fault::BadIndex { index: next, size: self.size });
            }
            index = next;
        }
        Err(Fault::ChainTooLong(most))
    }

    /// Whether a front-end keeps an account of each buffer taken.
    pub(super) fn has_inflight(&self) -> bool {
        self.inflight.is_some()
    }

    /// Writes the entries, then the index.
    #[inline]
    pub(super) fn publish(&mut self, used: &[Used]) {
        let buffers: u16 = used.iter().map(|used| used.places).sum();
        let new = self.used_index.wrapping_add(buffers);
        match used.last() {
            // In order, buffers without data need one entry, which names the last of them (VIRTIO 1.2 §2.7.9).
            Some(last)
                if self.features.contains(Features::IN_ORDER)
                    && used.iter().all(|used| used.len == 0) =>
            {
                self.entry(self.used_index, *last);
            }
            _ => {
                for (place, one) in used.iter().enumerate() {
                    self.entry(self.used_index.wrapping_add(place as u16), *one);
                }
            }
        }
        if let Some(inflight) = &mut self.inflight {
            inflight.begin_giving_back(used);
        }
        self.used.store_u16(INDEX, new, Ordering::Release);
        if let Some(inflight) = &mut self.inflight {
            inflight.end_giving_back(used, new);
        }
        self.used_index = new;
    }

    #[inline]
    fn entry(&self, index: u16, used: Used) {
        let place = usize::from(index & (self.size - 1));
        self.used.write_pair(ENTRIES + 8 * place, used.id.into(), used.len);
    }

    /// Whether the driver wants to hear of what was used since the last time this was asked.
    #[inline]
    pub(super) fn wants_call(&mut self) -> bool {
        let told = self.told.replace(self.used_index);
        if !self.features.contains(Features::EVENT_IDX) {
            return self.avail.load_u16(FLAGS, Ordering::Relaxed) & DO_NOT == 0;
        }
        let event = self.avail.load_u16(ENTRIES + 2 * usize::from(self.size), Ordering::Relaxed);
        told.is_none_or(|told| passed(event, self.used_index, told))
    }

    /// Asks the driver for notifications of available buffers from now on, or for none.
    pub(super) fn set_notifications(&mut self, wanted: bool) {
        if !self.features.contains(Features::EVENT_IDX) {
            let flags = if wanted { 0 } else { DO_NOT };
            self.used.store_u16(FLAGS, flags, Ordering::Relaxed);
        } else if wanted {
            // When it makes the next one available. Asking for none is leaving the index behind.
            self.used.store_u16(ENTRIES + 8 * usize::from(self.size), self.next, Ordering::Relaxed);
        }
    }

    /// Marks the pages of the used ring.
    pub(super) fn log(&self, log: &DirtyLog, used_at: u64) {
        log.mark(used_at, 6 + 8 * u64::from(self.size));
    }
}
