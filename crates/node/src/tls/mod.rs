//! # TLS of controller connections
//!
//! **Question answered**: which certificate does a switch show, whose does it take, and what is wrong when a handshake fails?
//!
//! * [`Credentials`]: what the files of one `tls` table held when they were read: both ends' configuration for rustls.
//! * [`Tls`]: the files themselves; a changed one is read again before the next connection.
//! * [`Trouble`]: a failed handshake in words, with its remedy.
//!
//! ## What is verified
//!
//! Both sides show a certificate; TLS 1.2 and 1.3; nothing is resumed, so every connection is verified anew.
//! The peer's certificate must be signed by an authority of `ca`, be valid now, and be meant for its side (extended key usage, where
//! it says any). A controller that is called by *name* must have a certificate for that name (`subjectAltName`; the
//! common name does not count). One that is called by *address* need not have one for the address: the authority alone
//! decides. `pins` narrows either to certificates that are named one by one.

mod credentials;
mod files;
mod trouble;
mod verify;

#[cfg(test)]
pub(crate) mod tests;

pub use credentials::{Credentials, TlsFault};
pub use files::Tls;
pub use trouble::Trouble;
