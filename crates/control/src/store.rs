//! What a store does for a controller, and the embedded one: a redb file.
//!
//! Values are JSON under text keys. Each commit is one step of one order, its revision; it happens whole or not at all, and only if every key that it was
//! decided on is as it was read. What `commit` has answered is on disk.

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A step of the one order of commits.
pub type Revision = u64;
/// A key's value, and the revision that wrote it.
pub type Versioned = (Value, Revision);

/// A key that a decision was made on is not as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The key.
    pub key: String,
}

/// What a controller needs of a store.
pub trait Store: Send + Sync {
    /// A key's value.
    ///
    /// # Errors
    /// The store cannot be read.
    fn get(&self, key: &str) -> Result<Option<Versioned>, StoreError>;

    /// All keys that begin so, in order.
    ///
    /// # Errors
    /// The store cannot be read.
    fn range(&self, prefix: &str) -> Result<Vec<(String, Versioned)>, StoreError>;

    /// Writes and removes all of `put`, if each key of `when` was last written at that revision; none: is not there.
    ///
    /// # Errors
    /// The store cannot be written: nothing is.
    fn commit(
        &self,
        when: &[(String, Option<Revision>)],
        put: &[(String, Option<Value>)],
    ) -> Result<Result<Revision, Conflict>, StoreError>;

    /// How often it was taken over, this time included.
    fn epoch(&self) -> u64;
}

/// The store does not do what it is for.
#[derive(Debug, thiserror::Error)]
#[error("store {}: {step} failed", path.display())]
pub struct StoreError {
    path: PathBuf,
    step: &'static str,
    source: Box<redb::Error>,
}

impl StoreError {
    /// What to do.
    pub fn remedy(&self) -> String {
        match &*self.source {
            redb::Error::DatabaseAlreadyOpen => {
                "another controller runs with this state directory: stop it, or choose another with --state-dir".into()
            }
            _ => format!("see that {} can be written and its disk has room", self.path.display()),
        }
    }
}

const RECORDS: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("records");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const REVISION: &str = "revision";
const EPOCH: &str = "epoch";

/// The embedded store. The file is locked: one controller has it.
pub struct Embedded {
    database: Database,
    path: PathBuf,
    epoch: u64,
}

impl Embedded {
    /// Opens or makes the file.
    ///
    /// # Errors
    /// Another process has it, or the disk refuses.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |source: redb::Error| StoreError {
            path: path.into(),
            step: "opening",
            source: Box::new(source),
        };
        let database = Database::create(path).map_err(|error| failed(error.into()))?;
        // It holds the key of the domain's authority.
        std::fs::set_permissions(path, Permissions::from_mode(0o600))
            .map_err(|error| failed(error.into()))?;
        let epoch = take_over(&database).map_err(failed)?;
        Ok(Self { database, path: path.into(), epoch })
    }

    fn failed(&self, step: &'static str) -> impl Fn(redb::Error) -> StoreError {
        let path = self.path.clone();
        move |source| StoreError { path: path.clone(), step, source: Box::new(source) }
    }

    fn read(&self, from: &str, one: bool) -> Result<Vec<(String, Versioned)>, redb::Error> {
        let table = match self.database.begin_read()?.open_table(RECORDS) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            table => table?,
        };
        let mut found = Vec::new();
        for row in table.range(from..)? {
            let (key, value) = row?;
            let is_wanted = if one { key.value() == from } else { key.value().starts_with(from) };
            if !is_wanted {
                break;
            }
            let (revision, bytes) = value.value();
            let value = serde_json::from_slice(bytes)
                .map_err(|error| redb::Error::Corrupted(error.to_string()))?;
            found.push((key.value().to_owned(), (value, revision)));
        }
        Ok(found)
    }

    fn write(
        &self,
        when: &[(String, Option<Revision>)],
        put: &[(String, Option<Value>)],
    ) -> Result<Result<Revision, Conflict>, redb::Error> {
        let transaction = self.database.begin_write()?;
        let revision = {
            let mut records = transaction.open_table(RECORDS)?;
            for (key, wanted) in when {
                let found = records.get(key.as_str())?.map(|value| value.value().0);
                if found != *wanted {
                    return Ok(Err(Conflict { key: key.clone() }));
                }
            }
            let mut meta = transaction.open_table(META)?;
            let revision = meta.get(REVISION)?.map_or(0, |value| value.value()) + 1;
            meta.insert(REVISION, revision)?;
            for (key, value) in put {
                match value {
                    Some(value) => {
                        records.insert(key.as_str(), (revision, value.to_string().as_bytes()))?;
                    }
                    None => drop(records.remove(key.as_str())?),
                }
            }
            revision
        };
        transaction.commit()?;
        Ok(Ok(revision))
    }
}

/// Counts one more take-over.
fn take_over(database: &Database) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let epoch = {
        let mut meta = transaction.open_table(META)?;
        let epoch = meta.get(EPOCH)?.map_or(0, |value| value.value()) + 1;
        meta.insert(EPOCH, epoch)?;
        epoch
    };
    transaction.commit()?;
    Ok(epoch)
}

impl Store for Embedded {
    fn get(&self, key: &str) -> Result<Option<Versioned>, StoreError> {
        let found = self.read(key, true).map_err(self.failed("reading"))?;
        Ok(found.into_iter().next().map(|(_, value)| value))
    }

    fn range(&self, prefix: &str) -> Result<Vec<(String, Versioned)>, StoreError> {
        self.read(prefix, false).map_err(self.failed("reading"))
    }

    fn commit(
        &self,
        when: &[(String, Option<Revision>)],
        put: &[(String, Option<Value>)],
    ) -> Result<Result<Revision, Conflict>, StoreError> {
        self.write(when, put).map_err(self.failed("writing"))
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn put(key: &str, value: Value) -> (String, Option<Value>) {
        (key.into(), Some(value))
    }

    #[test]
    fn a_commit_is_whole_or_not_at_all_and_there_after_the_next_take_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control.redb");
        let store = Embedded::open(&path).unwrap();
        assert_eq!(store.epoch(), 1);
        let first = store.commit(
            &[("slice/a".into(), None)],
            &[put("slice/a", json!(1)), put("slice/b", json!(2))],
        );
        assert_eq!(first.unwrap(), Ok(1));
        let late = store.commit(&[("slice/a".into(), None)], &[put("slice/c", json!(3))]);
        assert_eq!(late.unwrap(), Err(Conflict { key: "slice/a".into() }));
        assert_eq!(store.get("slice/c").unwrap(), None);
        let second = store.commit(
            &[("slice/a".into(), Some(1))],
            &[("slice/a".into(), None), put("other", json!({}))],
        );
        assert_eq!(second.unwrap(), Ok(2));
        drop(store);
        let store = Embedded::open(&path).unwrap();
        assert_eq!(store.epoch(), 2);
        assert_eq!(store.range("slice/").unwrap(), [("slice/b".into(), (json!(2), 1))]);
        assert_eq!(store.get("other").unwrap(), Some((json!({}), 2)));
    }

    #[test]
    fn two_controllers_never_have_one_store() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control.redb");
        let _held = Embedded::open(&path).unwrap();
        let Err(error) = Embedded::open(&path) else { panic!("it was opened twice") };
        assert!(error.remedy().contains("another controller runs"), "{}", error.remedy());
    }
}
