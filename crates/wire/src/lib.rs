//! # wire: bytes of frames, and nothing else
//!
//! **Question answered**: what is in this frame, how is a header changed in place, and which checksums follow?
//!
//! Pure: no I/O, clock, thread, `unsafe` or global state. Everything is `&[u8]`, [`Head`] and values.
//!
//! ## Types and functions
//!
//! * [`Head`]: the first ≤ 256 bytes of a frame in private memory, with room in front for pushed headers.
//! * [`parse()`] turns a `Head` into a [`Key`] and [`Layers`]: the flow key, 16 words of 64 bits, one layout for parsing, matching, hashing and
//!   printing ([`Field`] names its parts as OpenFlow does), and where the headers begin, so that edits need no second parse. [`parse_on`] goes only as far as anyone will look ([`Depth`]).
//! * [`Likeness`] tells without a key whether frames have the same one under a mask; [`Pattern`] is what those have in their bytes that are like one of them.
//! * [`Edit`]: every OpenFlow 1.3 action that changes a frame, with all checksums updated from the change alone.
//! * [`Offload`]: checksum and segmentation state of a frame, with virtio-net header semantics. [`checksum::complete`] and
//!   [`segment::plan`] resolve it for a destination that cannot; [`is_partial`] finds it again where a source lost it.
//! * [`merge::Train`] puts segments together again; [`too_big::answer`] tells a sender that the path takes less, [`mss::clamp`] tells TCP before.
//! * [`checksum`]: Internet checksums and CRC32c; [`tunnel`]: GRE and VXLAN headers; [`build`]: frames layer by layer.
//! * [`BATCH`]: how many frames every crate works on together.
//! * [`DropReason`]: why a frame went no further; one variant and one counter per cause.
//!
//! ## Invariants
//!
//! * Parsing never fails and costs at most one step per 4 bytes of head: a truncated or malformed header ends the key at the layer
//!   before it, and its [`Layers`] offset is 0. Every offset lies inside the head.
//! * Only the head's bytes count, not the frame's length: pushing or popping a header never changes how the rest is read.
//! * `Key`, `Layers` and `Offload` always describe the `Head` beside them, to the depth of the parse: every [`Edit`] keeps all in step or
//!   changes nothing. An edit needs the layers above what it changes: the Ethernet addresses and the tags [`Depth::Link`], all else
//!   [`Depth::Full`].
//! * A checksum that was right before an edit is right after it, a partial one stays partial, an absent one absent. The body
//!   is never read: not even for SCTP, whose CRC is linear.
//! * parse ∘ emit = identity for every header here.
//!
//! Each of these is a property test against slow, obvious code (`tests/oracle`) and a fuzz target (`fuzz/run wire_parse`, `fuzz/run wire_edit`).

mod batch;
pub mod build;
pub mod checksum;
mod depth;
mod drop;
mod edit;
mod head;
mod ip;
mod key;
mod layers;
mod likeness;
pub mod merge;
pub mod mss;
mod nested;
mod offload;
mod parse;
mod partial;
mod proto;
pub mod segment;
pub mod too_big;
pub mod tunnel;

pub use batch::BATCH;
pub use depth::Depth;
pub use drop::DropReason;
pub use edit::{Edit, EditError, nw_ttl};
pub use head::{HEAD_MAX, HEADROOM, Head, NoRoom};
pub use key::{Field, IN_PORT_WORD, Key, TunnelOut, VLAN_PRESENT, WORDS};
pub use layers::Layers;
pub use likeness::{Likeness, Pattern};
pub use offload::{Gso, Offload, PartialChecksum};
pub use parse::{parse, parse_bytes, parse_into, parse_on};
pub use partial::is_partial;
pub use proto::{eth_type, ip_proto};
