//! A file of redb's that is compared with its checksums, every page, whenever it is opened.
//!
//! redb does so after a crash alone, and else believes the file's own list of free pages. Where that is damaged, it writes over what is in use, or ends
//! the process. So it is shown a header that says that there was a crash, and one good commit: it walks the trees, and makes the list anew. Of a
//! million rules that takes a fifth of a second.
//!
//! ```text
//! magic:9 flags:1 … slot 0 at 64:128 slot 1:128        flags: slot that counts 1, after a crash 2, in two phases 4; a slot's checksum is its last 16
//! ```
//!
//! The layout is that of redb's file format 3 (its `docs/design.md`, "Super-header").

use redb::{BackendError, StorageBackend};
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const FLAGS: usize = 9;
const SECOND_COUNTS: u8 = 1;
const AFTER_A_CRASH: u8 = 2;
const IN_TWO_PHASES: u8 = 4;
const SLOTS: usize = 64;
const SLOT_LEN: usize = 128;
const HEADER_LEN: usize = SLOTS + 2 * SLOT_LEN;

/// A file, until redb has written its header.
#[derive(Debug)]
pub(super) struct Checked<B> {
    below: B,
    is_new: AtomicBool,
}

impl<B: StorageBackend> Checked<B> {
    /// A file that is about to be opened.
    pub fn new(below: B) -> Self {
        Self { below, is_new: AtomicBool::new(true) }
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
        if offset < HEADER_LEN as u64 {
            self.is_new.store(false, Relaxed);
        }
        self.below.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
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

/// The header of a file that is about to be opened, which redb changes: as it was again when this is dropped, unless the file could be opened.
pub(super) struct Before {
    file: File,
    header: Vec<u8>,
}

impl Before {
    /// Of a file that can be written.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(file: File) -> io::Result<Self> {
        let mut header = vec![0; HEADER_LEN.min(file.metadata()?.len() as usize)];
        file.read_exact_at(&mut header, 0)?;
        Ok(Self { file, header })
    }

    /// The file could be opened.
    pub fn forget(mut self) {
        self.header.clear();
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        if let Err(error) = self.file.write_all_at(&self.header, 0) {
            tracing::warn!("state file: its header cannot be put back: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::backends::FileBackend;
    use redb::{Builder, ReadableDatabase, TableDefinition};
    use std::sync::Arc;

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
            let database = builder.create_with_backend(Checked::new(below)).unwrap();
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
