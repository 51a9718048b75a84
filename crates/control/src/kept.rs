//! What of the domain is kept under which key of the store, and how it is read again.

use crate::fault;
use crate::store::{Revision, Store};
use axum::http::StatusCode;
use domain::SliceKey;
use serde_json::Value;
use serve::error::ApiError;

/// The operator's domain.
pub const DOMAIN: &str = "op/domain";
/// What uids are made from.
pub const SECRET: &str = "op/secret";
/// Tunnel ids that rest.
pub const QUARANTINE: &str = "op/quarantine";
/// Certificate and key of the domain's authority.
pub const AUTHORITY: &str = "op/authority";
/// Below which number every event may have been given.
pub const EVENTS: &str = "op/events";
/// Before the number of each line of the audit.
pub const AUDIT: &str = "audit/";
/// Before the name of each slice.
pub const SLICES: &str = "slice/";

/// A slice's record.
pub fn slice(key: &SliceKey) -> String {
    format!("{SLICES}{key}")
}

/// How often a slice's name was made.
pub fn lives(key: &SliceKey) -> String {
    format!("lives/{key}")
}

/// What a slice was declared as; before a generation's number.
pub fn histories(key: &SliceKey) -> String {
    format!("history/{key}/")
}

/// What a slice was declared as in one generation.
pub fn history(key: &SliceKey, generation: u64) -> String {
    format!("{}{generation:08}", histories(key))
}

/// A value as what it was written from.
///
/// # Errors
/// Another release wrote it.
pub fn read<T: serde::de::DeserializeOwned>(key: &str, value: Value) -> Result<T, ApiError> {
    serde_json::from_value(value).map_err(|error| {
        fault::refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            key,
            "read it from the store",
            error.to_string(),
            "use the suiro that wrote it, or a later one",
        )
    })
}

/// Writes and removes all of `put`, if each key of `when` is as it was read.
///
/// # Errors
/// Another controller has changed one of them, or the store refuses.
pub fn commit(
    store: &dyn Store,
    when: &[(String, Option<Revision>)],
    put: &[(String, Option<Value>)],
) -> Result<Revision, ApiError> {
    let done = store.commit(when, put).map_err(|error| fault::store(&error))?;
    done.map_err(|conflict| {
        fault::refused(
            StatusCode::CONFLICT,
            conflict.key,
            "keep it",
            "another controller has changed it",
            "ask again",
        )
    })
}
