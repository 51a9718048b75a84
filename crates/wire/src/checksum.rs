//! The Internet checksum (RFC 1071, RFC 1624) and SCTP's CRC32c: sums, incremental updates, completion.
//!
//! A *sum* here is an unfolded one's-complement sum of big-endian 16-bit words in a `u64`; sums of parts are added with `+`, and
//! [`fold`] brings the result to 16 bits. A field on the wire holds `!fold(sum)` when complete, and `fold(pseudo-header)` when partial.

mod crc32c;
mod internet;
mod offload;

pub use crc32c::{crc32c, crc32c_append, crc32c_shift};
pub use internet::{append, fold, pseudo_ipv4, pseudo_ipv6, sum, sum_u128, update, update_partial};
pub use offload::{BadOffload, complete, complete_parts};
