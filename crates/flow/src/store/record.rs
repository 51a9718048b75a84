//! One entry as workers see it: packed key, program, lifetime and counters in one cache line (or two, or three).
//!
//! | word | content |
//! |---|---|
//! | 0, 1 | packets, bytes counted by the owning worker |
//! | 2 | program 24, owner 8, priority 16, mask 16 |
//! | 3 | birth 32, life 32 (generations) |
//! | 4 | last use 32 (ticks), home 32 |
//! | 5.. | packed key |
//!
//! Records are shared by every snapshot and never copied; atomics make that sound. What changes is seen by whom?
//!
//! * **Key, program, priority** are written before the record is published and stay until no snapshot can see it.
//! * **Birth and life** say which snapshots see it: those of generation `birth .. birth + life`, modulo 2³². A living
//!   record has life 2³¹; [`Record::refresh`] moves birth along before a comparison could wrap.
//! * **Counters** are biased: the first worker that hits an entry owns words 0 and 1 and counts with plain loads and
//!   stores; every other worker adds to the [`Spill`] with atomic additions. The sum is exact at any time.
//! * **Home** is the record that counts: itself, or an earlier version of the same entry (a modify keeps counters).

use crate::time::Nanos;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A cache line of a record; the first has the header.
#[repr(align(64))]
#[derive(Default)]
pub(crate) struct Line(pub(super) [AtomicU64; 8]);

/// Key words in the first line.
pub(crate) const FIRST_WORDS: usize = 8 - HEADER_WORDS;

/// The rarely used part of a record.
#[derive(Default)]
pub(crate) struct Spill {
    packets: AtomicU64,
    bytes: AtomicU64,
    cookie: AtomicU64,
}

/// Words before the key.
pub(super) const HEADER_WORDS: usize = 5;
/// Life of a record that nobody has removed.
const FOREVER: u32 = 1 << 31;
/// Nobody owns the counters yet.
const UNOWNED: u64 = 0;
/// log2 of nanoseconds per tick of last use: 67 ms, so that the word is rarely written.
pub(super) const TICK_SHIFT: u32 = 26;

/// Last-use time of `now`.
pub(crate) const fn tick(now: Nanos) -> u32 {
    (now.0 >> TICK_SHIFT) as u32
}

impl Default for RecordId {
    fn default() -> Self {
        Self::NONE
    }
}

/// Which record: class (lines - 1) in the top 2 bits, slot in the low 24.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct RecordId(pub u32);

impl RecordId {
    /// No record.
    pub const NONE: Self = Self(u32::MAX);
    /// Most records per class.
    pub const SLOTS: u32 = 1 << 24;

    pub(super) const fn new(class: usize, slot: u32) -> Self {
        Self((class as u32) << 30 | slot)
    }

    pub(super) const fn class(self) -> usize {
        (self.0 >> 30) as usize
    }

    pub(super) const fn slot(self) -> u32 {
        self.0 & (Self::SLOTS - 1)
    }

    /// Whether this is a record.
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }
}

/// What a record says beside its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// Program, 24 bits.
    pub program: u32,
    /// Priority.
    pub priority: u16,
    /// The table's number for the mask.
    pub mask: u16,
}

impl Rule {
    const fn word(self) -> u64 {
        (self.program as u64) << 40 | (self.priority as u64) << 16 | self.mask as u64
    }

    const fn of(word: u64) -> Self {
        Self { program: (word >> 40) as u32, priority: (word >> 16) as u16, mask: word as u16 }
    }
}

impl Line {
    /// Word `index` of the packed key, below [`FIRST_WORDS`].
    pub fn key_word(&self, index: usize) -> u64 {
        self.0[HEADER_WORDS + index].load(Relaxed)
    }

    /// What the entry does.
    pub fn rule(&self) -> Rule {
        Rule::of(self.0[2].load(Relaxed))
    }

    /// Whether snapshots of `generation` see this record.
    pub fn is_visible(&self, generation: u32) -> bool {
        let word = self.0[3].load(Relaxed);
        let (birth, life) = ((word >> 32) as u32, word as u32);
        generation.wrapping_sub(birth) < life
    }

    /// The record that counts for this one.
    pub fn home(&self) -> RecordId {
        RecordId(self.0[4].load(Relaxed) as u32)
    }

    /// Counts as `worker` (1..=255) with plain loads and stores, if it owns the counters or nobody did. Returns whether.
    pub fn count_as_owner(&self, worker: u8, packets: u64, bytes: u64) -> bool {
        let rule = self.0[2].load(Relaxed);
        let owner = (rule >> 32) as u8;
        let owns = owner == worker || u64::from(owner) == UNOWNED && self.claim(rule, worker);
        if owns {
            self.0[0].store(self.0[0].load(Relaxed).wrapping_add(packets), Relaxed);
            self.0[1].store(self.0[1].load(Relaxed).wrapping_add(bytes), Relaxed);
        }
        owns
    }

    /// Makes `worker` the owner unless another was quicker.
    #[cold]
    fn claim(&self, rule: u64, worker: u8) -> bool {
        self.0[2].compare_exchange(rule, rule | u64::from(worker) << 32, Relaxed, Relaxed).is_ok()
    }

    /// Notes a use. `tick` is [`tick`] of now.
    pub fn touch(&self, tick: u32) {
        let old = self.0[4].load(Relaxed);
        if (old >> 32) as u32 != tick {
            self.0[4].store(u64::from(tick) << 32 | old & 0xffff_ffff, Relaxed);
        }
    }
}

impl Deref for Record<'_> {
    type Target = Line;

    fn deref(&self) -> &Line {
        self.first
    }
}

/// A record in place.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(super) first: &'a Line,
    pub(super) rest: &'a [Line],
    /// The page's spills, and which is this record's.
    pub(super) spills: &'a [Spill],
    pub(super) at: usize,
}

impl Record<'_> {
    fn word(&self, index: usize) -> &AtomicU64 {
        let line = if index < 8 { self.first } else { &self.rest[index / 8 - 1] };
        &line.0[index % 8]
    }

    fn spill(&self) -> &Spill {
        &self.spills[self.at]
    }

    /// Fills a record that no snapshot can see yet.
    pub fn write(&self, packed: &[u64], rule: Rule, cookie: u64, home: RecordId, now: Nanos) {
        self.word(0).store(0, Relaxed);
        self.word(1).store(0, Relaxed);
        self.word(2).store(rule.word(), Relaxed);
        self.word(3).store(0, Relaxed);
        self.word(4).store((tick(now) as u64) << 32 | home.0 as u64, Relaxed);
        for (i, &word) in packed.iter().enumerate() {
            self.word(HEADER_WORDS + i).store(word, Relaxed);
        }
        let spill = self.spill();
        spill.packets.store(0, Relaxed);
        spill.bytes.store(0, Relaxed);
        spill.cookie.store(cookie, Relaxed);
    }

    /// Fills a record that no snapshot can see yet with another version of `other`, which counts where that counts.
    pub fn copy_from(&self, other: &Record<'_>, rule: Rule) {
        let key: [u64; wire::WORDS] =
            std::array::from_fn(|i| if i < other.key_room() { other.key_word(i) } else { 0 });
        self.write(
            &key[..other.key_room().min(wire::WORDS)],
            rule,
            other.cookie(),
            other.home(),
            Nanos(0),
        );
    }

    /// Key words there is room for.
    pub fn key_room(&self) -> usize {
        (1 + self.rest.len()) * 8 - HEADER_WORDS
    }

    /// Word `index` of the packed key.
    pub fn key_word(&self, index: usize) -> u64 {
        self.word(HEADER_WORDS + index).load(Relaxed)
    }

    /// Whether the packed key is `packed`.
    pub fn has_key(&self, packed: &[u64]) -> bool {
        packed.iter().enumerate().fold(0, |differ, (i, &word)| differ | (word ^ self.key_word(i)))
            == 0
    }

    /// Replaces what the entry does; for records that no snapshot can see yet.
    pub fn set_rule(&self, rule: Rule) {
        self.word(2).store(rule.word(), Relaxed);
    }

    /// The entry's cookie.
    pub fn cookie(&self) -> u64 {
        self.spill().cookie.load(Relaxed)
    }

    /// Makes the record count on `home`; for records that no snapshot can see yet.
    pub fn set_home(&self, home: RecordId) {
        let word = self.word(4);
        word.store(word.load(Relaxed) & !0xffff_ffff | home.0 as u64, Relaxed);
    }

    /// Replaces the cookie; for records that no snapshot can see yet.
    pub fn set_cookie(&self, cookie: u64) {
        self.spill().cookie.store(cookie, Relaxed);
    }

    /// Visible from `generation` on.
    pub fn be_born(&self, generation: u32) {
        self.word(3).store((generation as u64) << 32 | FOREVER as u64, Relaxed);
    }

    /// Visible to generations before `generation` only. Returns whether any such generation exists.
    pub fn die(&self, generation: u32) -> bool {
        let birth = (self.word(3).load(Relaxed) >> 32) as u32;
        let life = generation.wrapping_sub(birth);
        self.word(3).store((birth as u64) << 32 | life as u64, Relaxed);
        life != 0
    }

    /// For a living record born before every snapshot in use: moves its birth to `oldest`.
    pub fn refresh(&self, oldest: u32) {
        let word = self.word(3).load(Relaxed);
        let age = oldest.wrapping_sub((word >> 32) as u32);
        if word as u32 == FOREVER && age < FOREVER {
            self.be_born(oldest);
        }
    }

    /// Adds to the counters of a record that another worker owns.
    pub fn count_as_guest(&self, packets: u64, bytes: u64) {
        let spill = self.spill();
        spill.packets.fetch_add(packets, Relaxed);
        spill.bytes.fetch_add(bytes, Relaxed);
    }

    /// Packets and bytes counted on this record so far.
    pub fn counts(&self) -> (u64, u64) {
        let sum = |own: &AtomicU64, spilt: &AtomicU64| {
            own.load(Relaxed).wrapping_add(spilt.load(Relaxed))
        };
        (sum(self.word(0), &self.spill().packets), sum(self.word(1), &self.spill().bytes))
    }

    /// Notes a use that may lie before the last one.
    pub fn touch_later(&self, tick: u32) {
        if u64::from(tick) > self.word(4).load(Relaxed) >> 32 {
            self.touch(tick);
        }
    }

    /// When this record was last used or written, to a tick; `None`: not since the clock began.
    pub fn last_use(&self) -> Option<Nanos> {
        let tick = self.word(4).load(Relaxed) >> 32;
        (tick != 0).then_some(Nanos(tick << TICK_SHIFT))
    }
}
