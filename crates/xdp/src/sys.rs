//! The crate's only `unsafe`: which of our types may be read from map memory.

#![expect(unsafe_code, reason = "aya's `Pod` is an unsafe trait")]

use crate::abi::VerdictCount;

// SAFETY: `VerdictCount` is `repr(C)`, made of two `u64`: no padding, and every bit pattern is a value.
unsafe impl aya::Pod for VerdictCount {}
