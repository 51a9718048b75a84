//! What is really there against what is declared.

use crate::Fault;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a node found that is not as its parts declare it, when its controller asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditReport {
    /// The question's number ([`Wanted::audit`](crate::Wanted::audit)).
    pub number: u64,
    /// Each thing that differs.
    pub found: Vec<Fault>,
}

/// Something of a domain that is not as it is declared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Deviation {
    /// At which node.
    pub node: String,
    /// What, in what it differs, and what to do.
    #[serde(flatten)]
    pub fault: Fault,
}

impl Deviation {
    /// Between this thing and what is declared of it.
    pub fn of(
        thing: impl Into<String>,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Fault {
        Fault::new(thing, "compare it with what is declared", cause, remedy)
    }
}
