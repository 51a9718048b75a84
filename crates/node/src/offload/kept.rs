//! What offload was asked for, as the store keeps it.
//!
//! ```text
//! id              record
//! on              empty; there is none while it is off
//! policy/NAME     JSON of an `OffloadPolicy`
//! ```

use super::Journal;
use crate::store::{Kept, StoreError};
use api::OffloadPolicy;

const ON: &str = "on";
const POLICY: &str = "policy/";

/// What an earlier node was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Desired {
    /// Whether it was on.
    pub on: bool,
    /// Its policies.
    pub policies: Vec<OffloadPolicy>,
}

impl Journal {
    /// It is on, or off.
    pub fn put_on(&self, on: bool) {
        self.0.put(ON, on.then(Vec::new));
    }

    /// A policy is there, or no more.
    pub fn put_policy(&self, name: &str, policy: Option<&OffloadPolicy>) {
        let json = |policy| serde_json::to_vec(policy).expect("a policy is plain data");
        self.0.put(&format!("{POLICY}{name}"), policy.map(json));
    }
}

/// Reads it. A record that cannot be read is left out, and logged.
///
/// # Errors
/// The file is damaged.
pub fn restore(kept: &Kept) -> Result<Desired, StoreError> {
    let mut desired = Desired::default();
    kept.offload(|id, record| match (id, id.strip_prefix(POLICY)) {
        (ON, _) => desired.on = true,
        (_, Some(_)) if let Ok(policy) = serde_json::from_slice(record) => {
            desired.policies.push(policy);
        }
        _ => tracing::warn!("offload: the record {id:?} is unreadable: left out"),
    })?;
    Ok(desired)
}
