//! Memory for records: pages of fixed size that never move, so that snapshots share them.
//!
//! Three classes of records, of one, two and three cache lines. The control thread alone allocates and frees; it frees
//! a slot only when no snapshot can see it (see `pipeline/retired.rs`). Beside each record lies its [`Cold`] part, which
//! workers never see.

use super::record::{HEADER_WORDS, Line, Record, RecordId, Spill, TICK_SHIFT};
use crate::flow_mod::FlowFlags;
use crate::time::Nanos;
use std::sync::Arc;

/// Records per page.
const PAGE: usize = 256;
/// Classes: records of 1, 2 and 3 lines hold 3, 11 and 19 key words.
const CLASSES: usize = 3;

/// Records and spills of one page.
#[derive(Clone)]
struct Page {
    lines: Arc<[Line]>,
    spills: Arc<[Spill]>,
}

impl Page {
    fn new(class: usize) -> Self {
        Self {
            lines: (0..PAGE * (class + 1)).map(|_| Line::default()).collect(),
            spills: (0..PAGE).map(|_| Spill::default()).collect(),
        }
    }
}

/// The control thread's part of a record.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Cold {
    /// When the entry was added, in nanoseconds; before the clock began for one that is older than that.
    pub created: i64,
    /// Ticks from then to the last use that was known when it was added.
    pub used: u32,
    /// Idle timeout.
    pub idle_s: u16,
    /// Hard timeout.
    pub hard_s: u16,
    /// Tells uses of a slot apart.
    pub version: u16,
    /// Table.
    pub table: u8,
    /// Flags as bits ([`Cold::flags`]).
    pub(crate) bits: u8,
    /// See [`crate::FlowMod::note`].
    pub note: u32,
}

impl Cold {
    /// Nanoseconds since the entry was added.
    pub fn age(&self, now: Nanos) -> u64 {
        (now.0 as i64).saturating_sub(self.created).max(0) as u64
    }

    /// When it was last used, as far as was known when it was added; before the clock began, too.
    pub fn used(&self) -> i64 {
        self.created.saturating_add_unsigned(u64::from(self.used) << TICK_SHIFT)
    }

    /// The entry's flags.
    pub fn flags(&self) -> FlowFlags {
        let bit = |n: u8| self.bits & 1 << n != 0;
        FlowFlags {
            send_flow_removed: bit(0),
            check_overlap: bit(1),
            reset_counts: bit(2),
            no_packet_counts: bit(3),
            no_byte_counts: bit(4),
        }
    }

    /// Replaces them.
    pub fn set_flags(&mut self, flags: FlowFlags) {
        let all = [
            flags.send_flow_removed,
            flags.check_overlap,
            flags.reset_counts,
            flags.no_packet_counts,
            flags.no_byte_counts,
        ];
        self.bits = all.iter().enumerate().map(|(n, &set)| u8::from(set) << n).sum();
    }
}

/// Pages as workers see them.
#[derive(Clone, Default)]
pub(crate) struct ArenaView {
    pages: [Arc<Vec<Page>>; CLASSES],
}

impl ArenaView {
    /// The record `id`; `None` if it is younger than this view, as a candidate from the shared index may be.
    pub fn get(&self, id: RecordId) -> Option<Record<'_>> {
        let (class, slot) = (id.class(), id.slot() as usize);
        let page = self.pages.get(class)?.get(slot / PAGE)?;
        let (at, lines) = (slot % PAGE, class + 1);
        let (first, rest) = page.lines.get(at * lines..(at + 1) * lines)?.split_first()?;
        Some(Record { first, rest, spills: &page.spills, at })
    }

    /// Brings a record's first line into the cache: give the result to something that cannot be optimised away.
    pub fn touch(&self, id: RecordId) -> u64 {
        self.line(id).map_or(0, |line| line.key_word(0))
    }

    /// The record `id`, which a snapshot's own structures name.
    pub fn record(&self, id: RecordId) -> Record<'_> {
        self.get(id).expect("a snapshot names only records of its own pages")
    }

    /// The first line of record `id`; `None` if it is younger than this view.
    #[inline]
    pub fn line(&self, id: RecordId) -> Option<&Line> {
        let slot = id.slot() as usize;
        self.pages.get(id.class())?.get(slot / PAGE)?.lines.get(slot % PAGE * (id.class() + 1))
    }

    /// The first line of a record of one line; any line of that class, or `None`, for other ids.
    pub fn short_line(&self, id: RecordId) -> Option<&Line> {
        let slot = id.slot() as usize;
        self.pages[0].get(slot / PAGE)?.lines.get(slot % PAGE)
    }

    /// Counts on the home of `id`, whose first line is `line`.
    #[inline]
    pub fn count(
        &self,
        id: RecordId,
        line: &Line,
        worker: u8,
        packets: u64,
        bytes: u64,
        tick: u32,
    ) {
        let home = line.home();
        let counting = if home == id { line } else { self.record(home).first };
        if !counting.count_as_owner(worker, packets, bytes) {
            self.record(home).count_as_guest(packets, bytes);
        }
        counting.touch(tick);
    }
}

/// The allocator.
#[derive(Default)]
pub(crate) struct Arena {
    view: ArenaView,
    cold: [Vec<Box<[Cold]>>; CLASSES],
    free: [Vec<u32>; CLASSES],
    used: [u32; CLASSES],
}

impl Arena {
    /// The pages so far.
    pub fn view(&self) -> &ArenaView {
        &self.view
    }

    /// The record `id`.
    pub fn record(&self, id: RecordId) -> Record<'_> {
        self.view.record(id)
    }

    /// A free record for a key of `words` words; `None` when 2²⁴ of its class are in use.
    pub fn allocate(&mut self, words: usize) -> Option<RecordId> {
        let class = (words + HEADER_WORDS).div_ceil(8).max(1) - 1;
        if let Some(slot) = self.free[class].pop() {
            return Some(RecordId::new(class, slot));
        }
        let slot = self.used[class];
        if slot == RecordId::SLOTS {
            return None;
        }
        if (slot as usize).is_multiple_of(PAGE) {
            Arc::make_mut(&mut self.view.pages[class]).push(Page::new(class));
            self.cold[class].push(vec![Cold::default(); PAGE].into());
        }
        self.used[class] += 1;
        Some(RecordId::new(class, slot))
    }

    /// Takes `id` back. No snapshot may see it.
    pub fn free(&mut self, id: RecordId) {
        let version = self.cold(id).version.wrapping_add(1);
        *self.cold_mut(id) = Cold { version, ..Cold::default() };
        self.free[id.class()].push(id.slot());
    }

    /// The entry of `id` lives on under another record, or not at all: appointments made for `id` no longer hold.
    pub fn forget(&mut self, id: RecordId) {
        let cold = self.cold_mut(id);
        cold.version = cold.version.wrapping_add(1);
    }

    /// The cold part of `id`.
    pub fn cold(&self, id: RecordId) -> &Cold {
        let slot = id.slot() as usize;
        &self.cold[id.class()][slot / PAGE][slot % PAGE]
    }

    /// The cold part of `id`.
    pub fn cold_mut(&mut self, id: RecordId) -> &mut Cold {
        let slot = id.slot() as usize;
        &mut self.cold[id.class()][slot / PAGE][slot % PAGE]
    }

    /// The record after `id` in a walk over all slots that were ever used, round and round.
    pub fn walk(&self, id: RecordId) -> Option<RecordId> {
        let start = if id.is_some() { id } else { RecordId::new(0, RecordId::SLOTS - 1) };
        let next = start.slot() + 1;
        if next < self.used[start.class()] {
            return Some(RecordId::new(start.class(), next));
        }
        (1..=CLASSES)
            .map(|step| (start.class() + step) % CLASSES)
            .find(|&class| self.used[class] > 0)
            .map(|class| RecordId::new(class, 0))
    }

    /// Bytes in use by pages.
    pub fn bytes(&self) -> usize {
        let per_record =
            |class: usize| (class + 1) * size_of::<Line>() + size_of::<Spill>() + size_of::<Cold>();
        (0..CLASSES).map(|class| self.view.pages[class].len() * PAGE * per_record(class)).sum()
    }
}
