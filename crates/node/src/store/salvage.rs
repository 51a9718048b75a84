//! What is sound in a damaged file, copied to a new one.
//!
//! Each record has its own checksum, so one page that a disk lost costs the records of that page. The damaged file is opened to be read alone, and its
//! list of free pages is not used: it may be what is damaged.

use super::StoreError;
use super::checksum;
use super::database::{File, Records, SET_ASIDE, guarded, hex, put_aside, table};
use super::pending::Kind;
use super::place::Place;
use redb::{ReadOnlyDatabase, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableError};
use std::path::Path;

/// Records of one commit. Chosen: a commit takes milliseconds, and so many records some megabytes.
const BATCH: usize = 65_536;

/// Records that are found: switch, id, record.
type Found = Vec<(String, Vec<u8>, Vec<u8>)>;

/// What was done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Salvage {
    /// Records that are in force again.
    pub kept: u64,
    /// Records that are damaged, or that the file says it has and nobody finds.
    pub lost: u64,
}

/// Copies what is sound in the file at `from` to `new`, which has no records yet, and damaged records to those that are set aside.
///
/// # Errors
/// `from` is none of this release's, or `new` cannot be written.
pub(super) fn salvage(from: &Path, new: &File) -> Result<Salvage, StoreError> {
    let damaged = guarded(from, || open(from))?;
    let mut done = Salvage::default();
    for kind in Kind::ALL {
        let mut visit = |found: &mut Found| {
            let records = std::mem::take(found);
            new.commit(|transaction| {
                let mut to = transaction.open_table(table(kind))?;
                for (switch, id, record) in &records {
                    if checksum::open(kind, switch, id, record).is_some() {
                        to.insert((switch.as_str(), id.as_slice()), record.as_slice())?;
                        done.kept += 1;
                        continue;
                    }
                    tracing::error!(
                        "state file: a record of {:?}, switch {switch:?}, is damaged (id {}): not in force",
                        kind.table(),
                        hex(id)
                    );
                    put_aside(transaction, kind, (switch, id), record)?;
                    done.lost += 1;
                }
                Ok(())
            })
        };
        let missing = copy(from, &damaged, table(kind), &mut visit)?;
        done.lost += missing;
        if missing > 0 {
            tracing::error!("state file: {missing} records of {:?} are not found", kind.table());
        }
    }
    copy(from, &damaged, SET_ASIDE, &mut |found| {
        let records = std::mem::take(found);
        new.commit(|transaction| {
            let mut to = transaction.open_table(SET_ASIDE)?;
            for (switch, id, record) in &records {
                to.insert((switch.as_str(), id.as_slice()), record.as_slice())?;
            }
            Ok(())
        })
    })?;
    Ok(done)
}

/// The file, to be read.
fn open(path: &Path) -> Result<ReadOnlyDatabase, StoreError> {
    // Anything but a file is refused.
    let _pin = Place::open(path)?;
    ReadOnlyDatabase::open(path).map_err(|source| StoreError::opening(path, source))
}

/// Hands over the records of a table that can be read, in pieces; returns how many of those that it should have were not found.
fn copy(
    from: &Path,
    damaged: &ReadOnlyDatabase,
    table: Records,
    visit: &mut dyn FnMut(&mut Found) -> Result<(), Box<redb::Error>>,
) -> Result<u64, StoreError> {
    let (mut there, mut seen, mut found) = (0, 0, Found::new());
    let mut wrote = Ok(());
    let mut read = || -> Result<(), redb::Error> {
        let records = match damaged.begin_read()?.open_table(table) {
            Ok(records) => records,
            Err(TableError::TableDoesNotExist(_)) => return Ok(()),
            Err(other) => return Err(other.into()),
        };
        there = records.len()?;
        let mut last = None;
        for entry in records.iter()? {
            let (key, record) = entry?;
            let (switch, id) = key.value();
            let key = (switch.to_owned(), id.to_owned());
            // A page that leads back to where it was read would go round for ever.
            if last.as_ref().is_some_and(|last| *last >= key) {
                break;
            }
            last = Some(key.clone());
            seen += 1;
            found.push((key.0, key.1, record.value().to_owned()));
            if found.len() == BATCH {
                wrote = visit(&mut found);
                if wrote.is_err() {
                    break;
                }
            }
        }
        Ok(())
    };
    // Whatever ends it: what was read until then is read.
    let ended = guarded(from, || read().map_err(|source| StoreError::reading(from, source)));
    if let Err(error) = ended {
        tracing::error!("{}", api::chain(&error));
    }
    wrote.and_then(|()| visit(&mut found)).map_err(StoreError::Write)?;
    Ok(u64::saturating_sub(there, seen))
}
