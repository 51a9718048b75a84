//! Records of one kind, as the store has them: read at the start, changed behind each commit.

use crate::kept;
use crate::store::{Revision, Store};
use crate::{fault, kept::commit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serve::error::ApiError;
use std::collections::BTreeMap;

/// The records whose keys begin so.
pub struct Shelf<T> {
    prefix: &'static str,
    records: BTreeMap<String, (T, Revision)>,
}

impl<T: Serialize + DeserializeOwned> Shelf<T> {
    /// What a store has.
    ///
    /// # Errors
    /// It cannot be read, or holds what this release cannot read.
    pub fn read(store: &dyn Store, prefix: &'static str) -> Result<Self, ApiError> {
        let found = store.range(prefix).map_err(|error| fault::store(&error))?;
        let one = |(key, (value, revision)): (String, _)| {
            Ok((key[prefix.len()..].to_owned(), (kept::read(&key, value)?, revision)))
        };
        Ok(Self { prefix, records: found.into_iter().map(one).collect::<Result<_, _>>()? })
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.records.get(name).map(|(record, _)| record)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.records.iter().map(|(name, (record, _))| (name.as_str(), record))
    }

    /// Puts one in place of the one before, or removes it.
    ///
    /// # Errors
    /// The store does not take it: all is as it was.
    pub fn put(
        &mut self,
        store: &dyn Store,
        name: &str,
        record: Option<T>,
    ) -> Result<(), ApiError> {
        let key = format!("{}{name}", self.prefix);
        let before = self.records.get(name).map(|(_, revision)| *revision);
        let value = record.as_ref().map(|record| json!(record));
        let revision = commit(store, &[(key.clone(), before)], &[(key, value)])?;
        match record {
            Some(record) => self.records.insert(name.into(), (record, revision)),
            None => self.records.remove(name),
        };
        Ok(())
    }
}
