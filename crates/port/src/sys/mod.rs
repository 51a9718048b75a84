//! The crate's only `unsafe`: system calls that no safe wrapper offers, and memory shared with the kernel.
//!
//! Everything exported here is safe to call with any argument.

#![expect(unsafe_code, reason = "system calls and shared memory")]

pub(crate) mod datagram;
pub(crate) mod ioctl;
mod memory;
pub(crate) mod packet;
pub(crate) mod parts;
mod ring;
pub(crate) mod xsk;
