//! A ring of records between two threads: one puts, one takes, neither waits.
//!
//! A record is a number of words and some bytes, one piece in memory: who takes reads it where it lies, as long as it has not given it back.
//! Positions count lines of 64 bytes since the beginning and never go back.
//!
//! ```text
//!            through ≤ taken ≤ put          put − taken ≤ lines of the ring
//!   free    │given back│ published │  free        (who takes moves the first two, who puts the last)
//! ```

use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Words of a line: records begin where a line does.
const LINE: usize = 8;
/// In place of a number of bytes: the next record is at the ring's beginning.
const SKIP: u64 = u64::MAX;

/// On a pair of cache lines of its own, which the hardware fetches together.
#[repr(align(128))]
struct Apart(AtomicU64);

struct Shared {
    words: Box<[AtomicU64]>,
    /// Lines, a power of two.
    lines: u64,
    put: Apart,
    taken: Apart,
    through: Apart,
}

/// Makes a ring of `bytes` (a power of two): the end that puts, and the one that takes.
pub(crate) fn ring<const N: usize>(bytes: usize) -> (Writer<N>, Reader<N>) {
    assert!(bytes.is_power_of_two() && bytes >= 64, "a ring of {bytes} bytes");
    let words: Box<[AtomicU64]> =
        std::iter::repeat_with(AtomicU64::default).take(bytes / 8).collect();
    let zero = || Apart(AtomicU64::new(0));
    let lines = (words.len() / LINE) as u64;
    let shared = Arc::new(Shared { words, lines, put: zero(), taken: zero(), through: zero() });
    let writer = Writer { shared: Arc::clone(&shared), put: 0, reserved: 0, begun: 0, taken: 0 };
    (writer, Reader { shared, put: 0, taken: 0, through: 0 })
}

/// Words in front of a record's bytes: their number, and the `N` that go with them.
const fn front_of(n: usize) -> usize {
    1 + n
}

/// Lines of a record of so many words and bytes.
fn lines_of(n: usize, len: usize) -> u64 {
    (front_of(n) * 8 + len).div_ceil(LINE * 8) as u64
}

impl Shared {
    /// Index of the first word of a line.
    fn word(&self, line: u64) -> usize {
        (line & (self.lines - 1)) as usize * LINE
    }
}

/// The end that puts.
pub(crate) struct Writer<const N: usize> {
    shared: Arc<Shared>,
    /// Behind the last record committed.
    put: u64,
    /// Behind the record reserved, and where it begins.
    reserved: u64,
    begun: u64,
    /// The reader has given back so much, as far as known here.
    taken: u64,
}

impl<const N: usize> Writer<N> {
    /// Room for a record, to be filled and then [committed](Self::commit); `None` when the ring is full.
    pub(crate) fn reserve(&mut self, words: [u64; N], len: usize) -> Option<&mut [u8]> {
        let need = lines_of(N, len);
        let rest = self.shared.lines - (self.put & (self.shared.lines - 1));
        let skip = if need > rest { rest } else { 0 };
        let end = self.put + skip + need;
        if end - self.taken > self.shared.lines {
            self.taken = self.shared.taken.0.load(Acquire);
            if end - self.taken > self.shared.lines {
                return None;
            }
        }
        if skip > 0 {
            self.shared.words[self.shared.word(self.put)].store(SKIP, Relaxed);
        }
        let at = self.shared.word(end - need);
        let record = &self.shared.words[at..at + need as usize * LINE];
        record[0].store(len as u64, Relaxed);
        record[1..front_of(N)].iter().zip(words).for_each(|(to, word)| to.store(word, Relaxed));
        let bytes = record[front_of(N)..].as_ptr().cast::<u8>().cast_mut();
        (self.reserved, self.begun) = (end, end - need);
        // SAFETY: `record` is within the ring and has its words in front and `len` bytes, rounded up; atomics may be written through a shared
        // reference. Nobody else touches these lines: there is one writer, borrowed as long as the slice lives, and the reader
        // reads lines between `taken` and the published `put` only, while these are beyond `put` and, by the check above, less
        // than one ring beyond `taken`, which the reader moved (release) after its last look at them and we loaded (acquire).
        Some(unsafe { slice::from_raw_parts_mut(bytes, len) })
    }

    /// The record last reserved is complete; it is not published yet.
    pub(crate) fn commit(&mut self) {
        self.put = self.reserved.max(self.put);
    }

    /// Where the record last reserved begins, for [`Writer::amend`].
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// Changes a word of a record that was committed and is not published.
    pub(crate) fn amend(&self, begun: u64, word: usize, change: impl FnOnce(u64) -> u64) {
        let word = &self.shared.words[self.shared.word(begun) + 1 + word];
        word.store(change(word.load(Relaxed)), Relaxed);
    }

    /// Shows the reader all that was committed.
    pub(crate) fn publish(&mut self) {
        self.shared.put.0.store(self.put, Release);
    }

    /// Behind the last record committed.
    pub(crate) fn position(&self) -> u64 {
        self.put
    }

    /// What was put before this position has been given back.
    pub(crate) fn taken(&self) -> u64 {
        self.shared.taken.0.load(Acquire)
    }

    /// What was put before this position has left the reader's worker. What that worker did before is visible here.
    pub(crate) fn through(&self) -> u64 {
        self.shared.through.0.load(Acquire)
    }
}

/// The end that takes.
pub(crate) struct Reader<const N: usize> {
    shared: Arc<Shared>,
    /// Published, as far as known here.
    put: u64,
    taken: u64,
    through: u64,
}

impl<const N: usize> Reader<N> {
    /// Whether there is a record now; only what this has seen is among [`Reader::records`].
    pub(crate) fn look(&mut self) -> bool {
        self.put = self.shared.put.0.load(Acquire);
        self.taken != self.put
    }

    /// Whether there is a record, without taking notice of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.shared.put.0.load(Acquire)
    }

    /// The records from the first on that was not given back.
    pub(crate) fn records(&self) -> Records<'_, N> {
        Records { reader: self, at: self.taken }
    }

    /// Gives back all records before that position, which [`Records::position`] told.
    pub(crate) fn release(&mut self, to: u64) {
        debug_assert!((self.taken..=self.put).contains(&to), "no record ends there");
        self.taken = to;
        self.shared.taken.0.store(to, Release);
    }

    /// All that was given back has left this worker too.
    pub(crate) fn pass_through(&mut self) {
        if self.through != self.taken {
            self.through = self.taken;
            self.shared.through.0.store(self.through, Release);
        }
    }
}

/// A walk over records.
pub(crate) struct Records<'a, const N: usize> {
    reader: &'a Reader<N>,
    at: u64,
}

impl<'a, const N: usize> Records<'a, N> {
    /// Behind the record told last.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// The next record's words, without taking it.
    pub(crate) fn peek(&mut self) -> Option<[u64; N]> {
        let front = self.front()?;
        Some(std::array::from_fn(|word| front[1 + word].load(Relaxed)))
    }

    /// The first words of the next record.
    fn front(&mut self) -> Option<&'a [AtomicU64]> {
        let shared: &'a Shared = &self.reader.shared;
        loop {
            if self.at >= self.reader.put {
                return None;
            }
            let at = shared.word(self.at);
            if shared.words[at].load(Relaxed) != SKIP {
                return Some(&shared.words[at..]);
            }
            self.at += shared.lines - (self.at & (shared.lines - 1));
        }
    }
}

impl<'a, const N: usize> Iterator for Records<'a, N> {
    type Item = ([u64; N], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let words = self.peek()?;
        let front = self.front()?;
        let len = front[0].load(Relaxed) as usize;
        let record = &front[..lines_of(N, len) as usize * LINE];
        self.at += lines_of(N, len);
        let bytes = record[front_of(N)..].as_ptr().cast::<u8>();
        // SAFETY: `record` is within the ring and has its words in front and `len` bytes. The writer filled them before it published (release) a
        // position that we loaded (acquire), and does not touch them until `release` has moved `taken` past them, which needs the
        // reader mutably, while the slice borrows it.
        Some((words, unsafe { slice::from_raw_parts(bytes, len) }))
    }
}

#[cfg(test)]
mod tests;
