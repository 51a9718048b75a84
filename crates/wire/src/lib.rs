//! # wire: bytes of frames, and nothing else
//!
//! **Question answered**: what is in this frame, how is a header changed in place, and which checksums follow?
//!
//! Pure: no I/O, clock, thread, `unsafe` or global state. Everything is `&[u8]`, [`Head`] and values.
//!
//! ## Types
//!
//! * [`Head`]: the first ≤ 256 bytes of a frame in private memory, with room in front for pushed headers.
//! * [`Key`]: the flow key, 16 words of 64 bits, one layout for parsing, matching, hashing and printing;
//!   [`Field`] names its parts as OpenFlow does.
//! * [`Layers`]: where the headers begin inside a `Head`, so that edits need no second parse.
//! * [`Offload`]: checksum and segmentation state of a frame, with virtio-net header semantics.
//! * [`DropReason`]: why a frame went no further; one variant and one counter per cause.
//!
//! ## Invariants
//!
//! * Parsing never fails: a truncated or malformed header ends the key at the layer before it ([`Layers`] says where).
//! * parse ∘ emit = identity for every header here; an incremental checksum equals a full recomputation.
//! * `Layers` and `Offload` always describe the `Head` beside them: every edit keeps all three in step.

pub mod build;
pub mod checksum;
mod drop;
mod edit;
mod head;
mod ip;
mod key;
mod layers;
mod offload;
mod parse;
mod partial;
mod proto;
pub mod segment;
pub mod tunnel;

pub use drop::DropReason;
pub use edit::{Edit, EditError};
pub use head::{HEAD_MAX, HEADROOM, Head, NoRoom};
pub use key::{Field, IN_PORT_WORD, Key, VLAN_PRESENT, WORDS};
pub use layers::Layers;
pub use offload::{Gso, Offload, PartialChecksum};
pub use parse::{parse, parse_into};
pub use partial::is_partial;
pub use proto::{eth_type, ip_proto};
