//! The file itself: opening, one commit, reading back.
//!
//! Each record is under a checksum (see `checksum`). One that is damaged, or that nobody can read, is moved to the table `set_aside` when it
//! is met: nothing of it is in force, and nothing of it is lost.

use super::checked::Checked;
use super::overlay::Overlay;
use super::pending::{Kind, Pending};
use super::place::Place;
use super::stamp::Moment;
use super::{StoreError, checksum, upgrade};
use redb::backends::FileBackend;
use redb::{
    Database, ReadOnlyTable, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    StorageBackend, TableDefinition, TableError,
};
use std::fs::OpenOptions;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Every table: switch and id → record.
pub(super) type Records = TableDefinition<'static, (&'static str, &'static [u8]), &'static [u8]>;

type ReadOnlyRecords = ReadOnlyTable<(&'static str, &'static [u8]), &'static [u8]>;

const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");
const FORMAT: &str = "format";
/// Raised when a release writes what an older one cannot read.
pub const FORMAT_VERSION: u64 = 2;
/// The format before, which [`upgrade`] reads.
const FORMAT_BEFORE: u64 = 1;
/// Records that are not in force: switch, and table and id with a 0 between them → record.
pub(super) const SET_ASIDE: Records = TableDefinition::new("set_aside");
/// Chosen: the inner pages of two million records; redb's default of 1 GiB would dwarf the switch. Leaves are read once, in order.
const CACHE_BYTES: usize = 8 << 20;

pub(super) const fn table(kind: Kind) -> Records {
    TableDefinition::new(kind.table())
}

/// An open file.
pub struct File {
    database: Database,
    place: Arc<Place>,
    /// Damaged records that were set aside when it was opened.
    damaged: usize,
}

impl File {
    /// Opens or makes the file; one of the format before becomes one of this format, as of `now`.
    ///
    /// # Errors
    /// Another process has it, the disk refuses, it is damaged, or it is of a later format.
    pub fn open(path: &Path, now: Moment) -> Result<Self, StoreError> {
        guarded(path, || {
            let mut file = Self::open_again(&Place::open(path)?.into(), now)?;
            file.damaged = file.rehearse(path)?;
            Ok(file)
        })
    }

    /// Opens a file of before, whatever its name is by now. Its records are in force: none is set aside.
    ///
    /// # Errors
    /// As [`File::open`].
    pub fn open_again(place: &Arc<Place>, now: Moment) -> Result<Self, StoreError> {
        let path = place.path();
        guarded(path, || {
            let opened = place.again(OpenOptions::new().read(true).write(true));
            let opened = opened.map_err(|error| redb::DatabaseError::Storage(error.into()));
            let opened = opened.and_then(FileBackend::new).and_then(checked);
            let database = opened.map_err(|source| StoreError::opening(path, source))?;
            let file = Self { database, place: place.clone(), damaged: 0 };
            file.check_format(path, now)?;
            Ok(file)
        })
    }

    /// Opens a file that cannot be written: what is changed stays in memory.
    ///
    /// # Errors
    /// It cannot be read either, or is damaged.
    pub fn open_unwritable(path: &Path, now: Moment) -> Result<Self, StoreError> {
        guarded(path, || {
            let place = Place::open(path)?;
            let opened = place.again(OpenOptions::new().read(true)).and_then(Overlay::new);
            let opened = opened.map_err(|error| redb::DatabaseError::Storage(error.into()));
            let database =
                opened.and_then(checked).map_err(|source| StoreError::opening(path, source))?;
            let mut file = Self { database, place: place.into(), damaged: 0 };
            file.check_format(path, now)?;
            file.damaged = file.rehearse(path)?;
            Ok(file)
        })
    }

    /// Where it belongs.
    pub(super) fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// Writes all of it to a new file where it belongs, and what lies there is renamed. Killed in between, either is whole.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn written_anew(&self, now: Moment) -> Result<Self, StoreError> {
        let path = self.place.path();
        let failed = |source: std::io::Error| StoreError::Write(Box::new(redb::Error::Io(source)));
        let beside = path.with_extension("new");
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        let mut new = Self::open_again(&Place::open(&beside)?.into(), now)?;
        guarded(path, || self.copy_to(&new))?;
        if path.exists() {
            set_aside(path, "replaced").map_err(failed)?;
        }
        let place = Arc::get_mut(&mut new.place).expect("nobody else has the new file's place");
        place.move_to(path).map_err(failed)?;
        Ok(new)
    }

    fn copy_to(&self, new: &Self) -> Result<(), StoreError> {
        let copied = new.commit(|transaction| {
            let from = self.database.begin_read()?;
            for table in Kind::ALL.map(table).into_iter().chain([SET_ASIDE]) {
                let records = match from.open_table(table) {
                    Ok(records) => records,
                    Err(TableError::TableDoesNotExist(_)) => continue,
                    Err(other) => return Err(other.into()),
                };
                let mut to = transaction.open_table(table)?;
                for entry in records.iter()? {
                    let (key, record) = entry?;
                    to.insert(key.value(), record.value())?;
                }
            }
            Ok(())
        });
        copied.map_err(StoreError::Write)
    }

    /// Counts records of the file before that are lost.
    pub(super) fn note_lost(&mut self, lost: u64) {
        self.damaged += lost as usize;
    }

    /// Damaged records that were set aside when it was opened.
    pub fn damaged(&self) -> usize {
        self.damaged
    }

    /// Does once all that a start does with a file, each switch's records and each search: one that cannot bear it is found out before
    /// anything of it is in force. Returns how many records were damaged.
    fn rehearse(&self, path: &Path) -> Result<usize, StoreError> {
        let mut damaged = 0;
        for kind in Kind::ALL {
            let switches = self.switches(path, kind)?;
            damaged += self.rehearse_kind(path, kind, switches.iter().map(|name| Some(&**name)))?;
        }
        for kind in [Kind::Switch, Kind::Port, Kind::Node] {
            damaged += self.rehearse_kind(path, kind, [None])?;
        }
        Ok(damaged)
    }

    /// The same for one kind, whose records are all met by these reads: a tree whose inner pages are damaged leads past some, and says nothing.
    fn rehearse_kind<'s>(
        &self,
        path: &Path,
        kind: Kind,
        reads: impl IntoIterator<Item = Option<&'s str>>,
    ) -> Result<usize, StoreError> {
        let count = || Ok(self.records(kind)?.map_or(Ok(0), |records| records.len())?);
        let count = || count().map_err(|source: redb::Error| StoreError::reading(path, source));
        let there = guarded(path, count)?;
        let (mut sound, mut damaged) = (0, 0);
        for switch in reads {
            damaged += self.read(path, kind, switch, |_, _, _| {
                sound += 1;
                Some(())
            })?;
        }
        let found = sound + damaged as u64;
        if found != there {
            let cause = format!("{found} of {there} records of {:?} are found", kind.table());
            return Err(StoreError::Damaged { path: path.into(), cause });
        }
        Ok(damaged)
    }

    fn check_format(&self, path: &Path, now: Moment) -> Result<(), StoreError> {
        let found = self.format().map_err(|source| StoreError::reading(path, source))?;
        match found {
            Some(found) if found > FORMAT_VERSION => {
                Err(StoreError::Format { path: path.into(), found })
            }
            Some(FORMAT_BEFORE) => self.upgrade(now).map_err(StoreError::Write),
            Some(_) => Ok(()),
            None => self.write_format().map_err(StoreError::Write),
        }
    }

    fn format(&self) -> Result<Option<u64>, redb::Error> {
        match self.database.begin_read()?.open_table(META) {
            Ok(meta) => Ok(meta.get(FORMAT)?.map(|found| found.value())),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    fn write_format(&self) -> Result<(), Box<redb::Error>> {
        self.commit(|transaction| {
            transaction.open_table(META)?.insert(FORMAT, FORMAT_VERSION)?;
            Ok(())
        })
    }

    fn upgrade(&self, now: Moment) -> Result<(), Box<redb::Error>> {
        self.commit(|transaction| {
            upgrade::records(transaction, now)?;
            transaction.open_table(META)?.insert(FORMAT, FORMAT_VERSION)?;
            Ok(())
        })
    }

    /// Writes everything, or nothing.
    ///
    /// # Errors
    /// Nothing was written; the file must be opened anew before it is used again.
    pub fn write(&self, pending: &Pending) -> Result<(), Box<redb::Error>> {
        let (forget, things) = pending.in_order();
        self.commit(|transaction| {
            for switch in forget {
                forget_switch(transaction, switch)?;
            }
            for run in things.chunk_by(|(_, a, _), (_, b, _)| a.kind == b.kind) {
                let mut records = transaction.open_table(table(run[0].1.kind))?;
                for (switch, thing, record) in run {
                    let key = (*switch, &*thing.id);
                    match record {
                        Some(payload) => {
                            let record = checksum::seal(thing.kind, switch, &thing.id, payload);
                            records.insert(key, &*record)?
                        }
                        None => records.remove(key)?,
                    };
                }
            }
            Ok(())
        })
    }

    pub(super) fn commit(
        &self,
        change: impl FnOnce(&redb::WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), Box<redb::Error>> {
        let mut transaction =
            self.database.begin_write().map_err(|error| Box::new(error.into()))?;
        // Two-phase commits with the allocator's state: opening after kill -9 takes no walk over a million rules.
        transaction.set_quick_repair(true);
        change(&transaction)?;
        transaction.commit().map_err(|error| Box::new(error.into()))
    }

    /// Hands every record of a kind to `visit`, of one switch or of all. Damaged ones, and those that `visit` cannot read, are set
    /// aside; returns how many.
    ///
    /// # Errors
    /// The file cannot be read, or nothing be set aside; what came before was visited.
    pub fn read(
        &self,
        path: &Path,
        kind: Kind,
        switch: Option<&str>,
        mut visit: impl FnMut(&str, &[u8], &[u8]) -> Option<()>,
    ) -> Result<usize, StoreError> {
        let mut bad = Vec::new();
        let mut read = || -> Result<(), redb::Error> {
            let Some(records) = self.records(kind)? else { return Ok(()) };
            let after = switch.map(successor);
            let range = match (switch, &after) {
                (Some(switch), Some(after)) => {
                    records.range((switch, &[][..])..(after.as_str(), &[][..]))?
                }
                _ => records.iter()?,
            };
            for entry in range {
                let (key, record) = entry?;
                let (switch, id) = key.value();
                let payload = checksum::open(kind, switch, id, record.value());
                if payload.and_then(|payload| visit(switch, id, payload)).is_none() {
                    bad.push((switch.to_owned(), id.to_vec()));
                }
            }
            Ok(())
        };
        guarded(path, || read().map_err(|source| StoreError::reading(path, source)))?;
        if !bad.is_empty() {
            guarded(path, || self.set_records_aside(kind, &bad).map_err(StoreError::Write))?;
        }
        Ok(bad.len())
    }

    fn set_records_aside(
        &self,
        kind: Kind,
        keys: &[(String, Vec<u8>)],
    ) -> Result<(), Box<redb::Error>> {
        for (switch, id) in keys {
            tracing::error!(
                remedy = "look at what is there, and make anew what is missing",
                "state file: a record of {:?}, switch {switch:?}, is damaged (id {}): set aside, not in force",
                kind.table(),
                hex(id)
            );
        }
        self.commit(|transaction| {
            let mut records = transaction.open_table(table(kind))?;
            for (switch, id) in keys {
                if let Some(record) = records.remove((switch.as_str(), id.as_slice()))? {
                    put_aside(transaction, kind, (switch, id), record.value())?;
                }
            }
            Ok(())
        })
    }

    /// The switches that have records of a kind, by one seek each.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn switches(&self, path: &Path, kind: Kind) -> Result<Vec<String>, StoreError> {
        let read = || -> Result<Option<Vec<String>>, redb::Error> {
            let (mut found, mut from) = (Vec::new(), String::new());
            let Some(records) = self.records(kind)? else { return Ok(Some(found)) };
            while let Some(entry) = records.range((from.as_str(), &[][..])..)?.next() {
                let (key, _) = entry?;
                let switch = key.value().0.to_owned();
                // Else it might go round for ever.
                if switch < from {
                    return Ok(None);
                }
                from = successor(&switch);
                found.push(switch);
            }
            Ok(Some(found))
        };
        let found = guarded(path, || read().map_err(|source| StoreError::reading(path, source)))?;
        let cause = "its keys are out of order";
        found.ok_or_else(|| StoreError::Damaged { path: path.into(), cause: cause.into() })
    }

    /// How many records of a kind a switch has; at most `most` are counted.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn count_up_to(
        &self,
        path: &Path,
        kind: Kind,
        switch: &str,
        most: usize,
    ) -> Result<usize, StoreError> {
        let read = || -> Result<usize, redb::Error> {
            let Some(records) = self.records(kind)? else { return Ok(0) };
            let after = successor(switch);
            let range = records.range((switch, &[][..])..(after.as_str(), &[][..]))?;
            range.take(most).try_fold(0, |count, entry| {
                entry?;
                Ok(count + 1)
            })
        };
        guarded(path, || read().map_err(|source| StoreError::reading(path, source)))
    }

    fn records(&self, kind: Kind) -> Result<Option<ReadOnlyRecords>, redb::Error> {
        match self.database.begin_read()?.open_table(table(kind)) {
            Ok(records) => Ok(Some(records)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }
}

/// Puts a record among those that are not in force.
///
/// # Errors
/// The disk refuses.
pub(super) fn put_aside(
    transaction: &redb::WriteTransaction,
    kind: Kind,
    (switch, id): (&str, &[u8]),
    record: &[u8],
) -> Result<(), redb::Error> {
    let id = [kind.table().as_bytes(), &[0], id].concat();
    transaction.open_table(SET_ASIDE)?.insert((switch, id.as_slice()), record)?;
    Ok(())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Does what may meet a damaged file. redb promises errors there, not panics, and does not keep that for every page.
///
/// # Errors
/// Those of `work`, and [`StoreError::Damaged`] for a panic.
pub(super) fn guarded<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let damaged = |_| {
        let cause = "its structure is impossible".into();
        Err(StoreError::Damaged { path: path.into(), cause })
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(damaged)
}

/// Makes panics inside redb lines of the log: damaged files cause them, and they are caught. To be called once, when the process starts.
pub fn log_panics_of_redb() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match panic.location() {
        Some(place) if place.file().contains("/redb-") => {
            let name = Path::new(place.file()).file_name().unwrap_or_default().display();
            tracing::error!("state file: damaged, found by redb, {name} line {}", place.line());
        }
        _ => usual(panic),
    }));
}

/// Opens a file, every page of which is compared with its checksum.
fn checked(file: impl StorageBackend) -> Result<Database, redb::DatabaseError> {
    let (file, opening) = Checked::new(file);
    let mut builder = redb::Builder::new();
    let opened = builder.set_cache_size(CACHE_BYTES).create_with_backend(file)?;
    opening.succeeded();
    Ok(opened)
}

/// The first string after `switch` and everything keyed by it.
fn successor(switch: &str) -> String {
    format!("{switch}\0")
}

fn forget_switch(transaction: &redb::WriteTransaction, switch: &str) -> Result<(), redb::Error> {
    let after = successor(switch);
    for table in Kind::ALL.map(table).into_iter().chain([SET_ASIDE]) {
        let mut records = transaction.open_table(table)?;
        records.retain_in((switch, &[][..])..(after.as_str(), &[][..]), |_, _| false)?;
    }
    Ok(())
}

/// Renames what lies where the file belongs, so that nobody loses what could still be saved. Returns its new name.
///
/// # Errors
/// The directory refuses.
pub fn set_aside(path: &Path, as_what: &str) -> std::io::Result<PathBuf> {
    let free =
        (1..).map(|n| path.with_extension(format!("{as_what}-{n}"))).find(|name| !name.exists());
    let name = free.expect("the numbers do not run out");
    std::fs::rename(path, &name)?;
    Ok(name)
}
