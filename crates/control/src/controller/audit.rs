//! Who changed what: the last changes, in the store.

use super::{Controller, now_s};
use crate::fault;
use crate::kept::{self, AUDIT, commit};
use crate::store::Store;
use api::AuditLine;
use serde_json::json;
use serve::error::ApiError;
use std::sync::PoisonError;

/// Lines that are kept. Chosen: months of an ordinary domain; 3 MB.
pub const KEPT: u64 = 10_000;

impl Controller {
    /// Notes a change that somebody made, or was refused.
    ///
    /// # Errors
    /// The store refuses.
    pub fn note(
        &self,
        who: String,
        what: String,
        status: u16,
        refused: Option<String>,
    ) -> Result<(), ApiError> {
        self.append(|number| AuditLine { number, at_s: now_s(), who, what, status, refused }, KEPT)
    }

    fn append(&self, line: impl FnOnce(u64) -> AuditLine, kept: u64) -> Result<(), ApiError> {
        let mut last = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        let number = *last + 1;
        let mut put = vec![(key(number), Some(json!(line(number))))];
        put.extend(number.checked_sub(kept).map(|old| (key(old), None)));
        commit(&*self.store, &[], &put)?;
        *last = number;
        Ok(())
    }

    /// The last changes, the oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn audit(&self) -> Result<Vec<AuditLine>, ApiError> {
        let found = self.store.range(AUDIT).map_err(|error| fault::store(&error))?;
        found.into_iter().map(|(key, (value, _))| kept::read(&key, value)).collect()
    }
}

/// The number of the newest line of a store.
pub fn last(store: &dyn Store) -> Result<u64, ApiError> {
    let found = store.range(AUDIT).map_err(|error| fault::store(&error))?;
    Ok(found.last().and_then(|(key, _)| key[AUDIT.len()..].parse().ok()).unwrap_or(0))
}

fn key(number: u64) -> String {
    format!("{AUDIT}{number:012}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Embedded;
    use std::sync::Arc;

    #[test]
    fn the_oldest_line_goes_and_numbers_go_on_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let controller = || {
            let store = Embedded::open(&directory.path().join("control.redb")).unwrap();
            Controller::new(Arc::new(store)).map_err(ApiError::into_fault).unwrap()
        };
        let line = |number| AuditLine {
            number,
            at_s: 0,
            who: "root".into(),
            what: "PUT /v1/domain".into(),
            status: 200,
            refused: None,
        };
        for _ in 0..2 {
            let controller = controller();
            (0..3).for_each(|_| controller.append(line, 4).map_err(ApiError::into_fault).unwrap());
        }
        let lines = controller().audit().map_err(ApiError::into_fault).unwrap();
        let numbers: Vec<_> = lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [3, 4, 5, 6]);
    }
}
