//! The two files that people write: a tenant's slice and the operator's domain.

pub mod check;
pub mod domain;
mod domain_keys;
pub mod slice;
mod slice_keys;

pub use domain_keys::DOMAIN;
pub use slice_keys::SLICE;
