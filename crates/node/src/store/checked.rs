//! A file of redb's that is compared with its checksums, every page, whenever it is opened.
//!
//! redb does so after a crash alone, and else believes the file's own list of free pages. Where that is damaged, it writes over what is in use, or ends
//! the process. So it is shown a header that says that there was a crash, and one good commit: it walks the trees, and makes the list anew. With a
//! million rules, opening takes a fifth of a second (docs/decisions/0038).
//!
//! ```text
//! magic:9 flags:1 … slot 0 at 64:128 slot 1:128        flags: slot that counts 1, after a crash 2, in two phases 4; a slot's checksum is its last 16
//! ```
//!
//! The layout is that of redb's file format 3 (its `docs/design.md`, "Super-header").

use redb::{BackendError, StorageBackend};
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

const FLAGS: usize = 9;
const SECOND_COUNTS: u8 = 1;
const AFTER_A_CRASH: u8 = 2;
const IN_TWO_PHASES: u8 = 4;
const SLOTS: usize = 64;
const SLOT_LEN: usize = 128;
const HEADER_LEN: usize = SLOTS + 2 * SLOT_LEN;

/// A file that is about to be opened. Its header is as it was again where that fails: what is sound in it can be read then.
#[derive(Debug)]
pub(super) struct Checked<B: StorageBackend> {
    below: B,
    /// redb has not written its header yet.
    is_new: AtomicBool,
    /// The header that redb has written over. It does so under its lock.
    before: Mutex<Option<[u8; HEADER_LEN]>>,
    is_open: Arc<AtomicBool>,
}

/// To be told that a file could be opened.
pub(super) struct Opening(Arc<AtomicBool>);

impl Opening {
    /// Its header stays as redb wrote it.
    pub fn succeeded(self) {
        self.0.store(true, Relaxed);
    }
}

impl<B: StorageBackend> Checked<B> {
    /// For a file that nothing was read of yet.
    pub fn new(below: B) -> (Self, Opening) {
        let is_open = Arc::new(AtomicBool::new(false));
        let opening = Opening(is_open.clone());
        (Self { below, is_new: AtomicBool::new(true), before: Mutex::default(), is_open }, opening)
    }

    fn put_back(&self) -> io::Result<()> {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take();
        match before {
            Some(header) if !self.is_open.load(Relaxed) => {
                self.below.write(0, &header)?;
                self.below.sync_data()
            }
            _ => Ok(()),
        }
    }

    /// What redb is shown of a file's header.
    fn header(&self) -> io::Result<[u8; HEADER_LEN]> {
        let mut header = [0; HEADER_LEN];
        self.below.read(0, &mut header)?;
        let other = usize::from(header[FLAGS] & SECOND_COUNTS == 0);
        header[FLAGS] = header[FLAGS] & !IN_TWO_PHASES | AFTER_A_CRASH;
        // Or it would go back to the commit before, and say nothing of it.
        header[SLOTS + (other + 1) * SLOT_LEN - 1] ^= 1;
        Ok(header)
    }
}

impl<B: StorageBackend> StorageBackend for Checked<B> {
    fn len(&self) -> io::Result<u64> {
        self.below.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.below.read(offset, out)?;
        if self.is_new.load(Relaxed) && offset < HEADER_LEN as u64 {
            let shown = &self.header()?[offset as usize..];
            let len = shown.len().min(out.len());
            out[..len].copy_from_slice(&shown[..len]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.below.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.below.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset < HEADER_LEN as u64 && self.is_new.swap(false, Relaxed) {
            let mut header = [0; HEADER_LEN];
            let is_there = self.below.read(0, &mut header).is_ok();
            let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
            *before = is_there.then_some(header);
        }
        self.below.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.put_back()?;
        self.below.close()
    }

    fn try_lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
        self.below.try_lock_range(from, to)
    }

    fn try_lock_shared_range(
        &self,
        from: Bound<u64>,
        to: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.below.try_lock_shared_range(from, to)
    }

    fn lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<(), BackendError> {
        self.below.lock_range(from, to)
    }

    fn lock_shared_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<(), BackendError> {
        self.below.lock_shared_range(from, to)
    }

    fn unlock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<(), BackendError> {
        self.below.unlock_range(from, to)
    }

    fn query_lock_range(&self, from: Bound<u64>, to: Bound<u64>) -> Result<bool, BackendError> {
        self.below.query_lock_range(from, to)
    }
}

impl<B: StorageBackend> Drop for Checked<B> {
    /// Where redb panicked on what it found.
    fn drop(&mut self) {
        if let Err(error) = self.put_back() {
            tracing::warn!("state file: its header cannot be put back: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::backends::FileBackend;
    use redb::{Builder, ReadableDatabase, TableDefinition};

    #[test]
    fn where_opening_fails_the_header_is_as_it_was() {
        let file = tempfile::tempfile().unwrap();
        let below = || FileBackend::new(file.try_clone().unwrap()).unwrap();
        drop(Builder::new().create_with_backend(below()).unwrap());
        let header = || {
            let mut header = [0; HEADER_LEN];
            below().read(0, &mut header).unwrap();
            header
        };
        let before = header();
        for is_done in [false, true] {
            let (checked, opening) = Checked::new(below());
            checked.write(0, &[1; 16]).unwrap();
            if is_done {
                opening.succeeded();
            }
            drop(checked);
            assert_eq!(header() != before, is_done);
        }
    }

    const TABLE: TableDefinition<'static, u64, u64> = TableDefinition::new("table");

    /// redb may change its format: then this fails, and not the file.
    #[test]
    fn redb_checks_a_file_that_was_closed_in_good_order_and_finds_all_in_it() {
        let file = tempfile::tempfile().unwrap();
        let is_checked = Arc::new(AtomicBool::new(false));
        for (number, checked) in [(0, false), (1, true), (2, true)] {
            let seen = is_checked.clone();
            let mut builder = Builder::new();
            builder.set_repair_callback(move |_| seen.store(true, Relaxed));
            let below = FileBackend::new(file.try_clone().unwrap()).unwrap();
            let (checked_file, opening) = Checked::new(below);
            let database = builder.create_with_backend(checked_file).unwrap();
            opening.succeeded();
            assert_eq!(is_checked.swap(false, Relaxed), checked, "opened once more: {number}");
            let mut transaction = database.begin_write().unwrap();
            transaction.set_quick_repair(true);
            transaction.open_table(TABLE).unwrap().insert(number, number).unwrap();
            transaction.commit().unwrap();
            let table = database.begin_read().unwrap().open_table(TABLE).unwrap();
            assert_eq!(redb::ReadableTableMetadata::len(&table).unwrap(), number + 1);
        }
    }
}
