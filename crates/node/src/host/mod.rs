//! What a node asks of its host: one instance per run directory, few privileges, enough descriptors, and systemd's attention.

mod identity;
mod limits;
mod lock;
pub mod memory;
pub mod notify;
pub mod privilege;
mod survey;

pub use identity::{IDENTITY_FILE, Identity, Machine};
pub use limits::raise_open_files;
pub use lock::{LockError, RunDir};
pub use survey::survey;
