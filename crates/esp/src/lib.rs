//! # esp: packets that only the other end can read, make or repeat
//!
//! **Question answered**: how does a payload become an ESP packet (RFC 4303) with AES-GCM (RFC 4106), and what is a received one worth?
//!
//! Pure: no I/O, no clock, no thread, no `unsafe`, no global state. AES-GCM itself is `ring`'s.
//!
//! ## A packet
//!
//! ```text
//! SPI 4 | sequence, low half 4 | IV 8 | encrypted: payload | padding 0..3 | pad length 1 | next header 1 | ICV 16
//! ```
//!
//! The nonce is the key's salt (4) and the IV (8); authenticated beside the rest are SPI and sequence number, all 64 bits of it with extended
//! sequence numbers (ESN), of which the high half is not sent. Behind a UDP header it is RFC 3948's: [`udp::classify`] tells it from IKE
//! and keepalives.
//!
//! ## Types
//!
//! * [`Outbound`] seals, [`Inbound`] opens; both by `&self`, so that workers share them. [`Inbounds`] finds the SA by its SPI.
//! * [`Key`]: AES-128 or AES-256 and the salt. Wiped when it goes, never printed. `ring` keeps the expanded key where nobody can wipe it.
//! * [`Envelope`]: what is around a VXLAN packet inside: a UDP header (transport mode), or an IP header too (tunnel mode).
//! * [`keys::parse`]: the file of a user. One end has several SAs: flows are spread over those that send (the idea of RFC 9611), so that
//!   one tunnel uses many cores at the receiver; and some may only receive, so that keys change without loss.
//! * [`Refusal`]: why a packet was not opened; one variant and one counter each.
//!
//! ## Invariants
//!
//! * **A nonce never repeats under one key.** Within a process an atomic counter gives each packet its sequence number and IV. Across
//!   restarts [`Counters`] say where to go on, and two independent guards must fail before a nonce repeats: nothing is sealed beyond what
//!   the caller said is on disk ([`Outbound::allow`]), and an IV begins at no less than the caller's clock in ns ([`Counters::resume`]), which no
//!   sender outruns. If the disk forgets, sequence numbers begin again and the receiver refuses them: it stops, and nothing leaks. If the clock
//!   goes back, the disk holds. Both ends of a tunnel have keys of their own, which [`keys::parse`] insists on: nothing else keeps two
//!   senders apart.
//! * **A packet is accepted once**: the window ([`Window`], 4096 wide) is looked at before the ICV is verified, and moved after it.
//! * **Any byte changed, any packet refused**: nothing of a packet is looked at, but SPI and sequence number, before its ICV is right.

mod cipher;
mod envelope;
mod inbound;
mod key;
pub mod keys;
mod outbound;
mod packet;
mod refusal;
pub mod udp;
mod window;

pub use envelope::{Contents, Envelope, Mode};
pub use inbound::{Inbound, InboundCounts, Inbounds, Opened};
pub use key::{BadKey, Key};
pub use outbound::{Counters, Exhausted, Outbound};
pub use packet::{HEADER, ICV, payload_max, sealed_len, spi};
pub use refusal::Refusal;
pub use window::{WINDOW, Window};
