//! What a node asks of its host: one instance per run directory, few privileges, enough descriptors, and systemd's attention.

pub mod confine;
pub(crate) mod cores;
mod identity;
mod limits;
mod lock;
mod look;
mod machines;
pub mod memory;
pub mod notify;
pub mod privilege;
mod right;
mod survey;
#[expect(unsafe_code, reason = "the allocator is asked by a call of C")]
mod sys;

pub use identity::{IDENTITY_FILE, Identity, Machine};
pub use limits::{open_files, raise_open_files};
pub use lock::{LockError, ReadSocketError, RunDir};
pub use look::{Roots, look_around};
pub use right::Right;
pub use survey::survey;
pub use sys::give_back_large_buffers;
