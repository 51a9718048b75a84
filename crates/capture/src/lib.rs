//! # capture: what was seen of a packet, as others read it
//!
//! **Question answered**: how does a packet that was seen at several points become rows of one file, and how is it known again?
//!
//! Pure. Who sees packets hands over their bytes; who reads the file gets whole blocks.
//!
//! * [`pcapng`]: the writer of the file, seven kinds of block.
//! * [`Blocks`]: the reader of such a file as it arrives, block by block.
//! * [`pick()`]: one packet of a file by its number, of a pcap file, too.
//! * [`upper`]: messages without frames around them.
//! * [`bpf`]: filters as libpcap compiles them.
//! * [`samples`]: a sample of the traffic for collectors, by sFlow and IPFIX.
//! * [`PacketId`]: a number of a packet that no switch on its way changes.
//!
//! ## Invariants
//!
//! * A file is a row of whole blocks. Who stops between two of them leaves a file that every reader accepts.
//! * What is for machines stands in comments as `key=value`: readers of today ignore options that they do not know.
//! * An id comes from what is in the first 256 bytes and stays when addresses, ports, tags, lifetimes and checksums are rewritten.
//! * Nothing here trusts a length that it reads.
//!
//! Source: the IETF draft "PCAP Now Generic (pcapng) Capture File Format" (draft-ietf-opsawg-pcapng).

mod block;
pub mod bpf;
mod id;
pub mod pcapng;
mod pick;
mod reader;
pub mod samples;
pub mod upper;

pub use block::Direction;
pub use id::{IdKey, PacketId};
pub use pick::{NotPicked, Picked, pick};
pub use reader::{BadBlock, Block, Blocks, Content, Seen};
