//! A file that cannot be written, as a store that can: what is changed stays in memory.
//!
//! So a start reads what is on a full or read-only disk, and does with it what it does with any store. The changes are forgotten with it.

use redb::StorageBackend;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: u64 = 4096;

/// The file below, and what lies over it.
#[derive(Debug)]
pub(super) struct Overlay {
    file: File,
    over: Mutex<Over>,
}

#[derive(Debug)]
struct Over {
    len: u64,
    /// The file counts up to here.
    below: u64,
    pages: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
}

impl Overlay {
    /// Over a file that can be read.
    ///
    /// # Errors
    /// Its length cannot be found out.
    pub fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, over: Mutex::new(Over { len, below: len, pages: BTreeMap::new() }) })
    }

    fn over(&self) -> MutexGuard<'_, Over> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page of the file, zero where that does not count.
    fn page_below(&self, number: u64, below: u64) -> io::Result<Box<[u8; PAGE as usize]>> {
        let mut page = Box::new([0; PAGE as usize]);
        let start = number * PAGE;
        let len = below.saturating_sub(start).min(PAGE) as usize;
        self.file.read_exact_at(&mut page[..len], start)?;
        Ok(page)
    }
}

/// The parts of a range that lie in one page each: number, offset in it, length.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + len as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        let (number, within) = (at / PAGE, at % PAGE);
        let part = (PAGE - within).min(end - at);
        at += part;
        (part > 0).then_some((number, within as usize, part as usize))
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.over().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let over = self.over();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > over.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        for (number, within, len) in parts(offset, out.len()) {
            let out = &mut out[done..done + len];
            match over.pages.get(&number) {
                Some(page) => out.copy_from_slice(&page[within..within + len]),
                None => {
                    let page = self.page_below(number, over.below)?;
                    out.copy_from_slice(&page[within..within + len]);
                }
            }
            done += len;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut over = self.over();
        over.below = over.below.min(len);
        let beyond = over.pages.split_off(&len.div_ceil(PAGE));
        drop(beyond);
        if let Some(last) = over.pages.get_mut(&(len / PAGE)) {
            last[(len % PAGE) as usize..].fill(0);
        }
        over.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut over = self.over();
        let mut done = 0;
        for (number, within, len) in parts(offset, data.len()) {
            if !over.pages.contains_key(&number) {
                let page = self.page_below(number, over.below)?;
                over.pages.insert(number, page);
            }
            if let Some(page) = over.pages.get_mut(&number) {
                page[within..within + len].copy_from_slice(&data[done..done + len]);
            }
            done += len;
        }
        over.len = over.len.max(offset + data.len() as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    proptest! {
        #[test]
        fn it_is_a_file_in_memory_and_the_one_below_stays_as_it_is(
            below in 0..20_000_usize,
            steps in prop::collection::vec((0..20_000_u64, 0..9000_usize, any::<u8>(), any::<bool>()), 0..20),
        ) {
            let mut file = tempfile::tempfile().unwrap();
            let mut oracle: Vec<u8> = (0..below).map(|at| at as u8).collect();
            file.write_all(&oracle).unwrap();
            let overlay = Overlay::new(file.try_clone().unwrap()).unwrap();
            let before = oracle.clone();
            for (offset, len, value, writes) in steps {
                if writes {
                    let end = offset as usize + len;
                    oracle.resize(oracle.len().max(end), 0);
                    oracle[offset as usize..end].fill(value);
                    overlay.write(offset, &vec![value; len]).unwrap();
                } else {
                    oracle.resize(offset as usize, 0);
                    overlay.set_len(offset).unwrap();
                }
                let mut found = vec![0; overlay.len().unwrap() as usize];
                overlay.read(0, &mut found).unwrap();
                prop_assert_eq!(&found, &oracle);
            }
            let mut kept = vec![0; below];
            file.read_exact_at(&mut kept, 0).unwrap();
            prop_assert_eq!(kept, before);
        }
    }
}
