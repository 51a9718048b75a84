//! What is shown of frames that were lost.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Frames lost for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DropView {
    /// The reason; the users' guide explains each.
    pub reason: String,
    /// How many.
    pub frames: u64,
}
