//! # netlink: what the kernel says of interfaces, and how it is told
//!
//! **Question answered**: which interfaces, addresses, routes and neighbours does a network namespace have, what can a driver do, and how is
//! that changed?
//!
//! ## Types
//!
//! * [`Netlink`]: a blocking request socket of rtnetlink. It belongs to the namespace that it was made in.
//! * [`Link`], [`InterfaceAddress`], [`Route`], [`TableRoute`], [`Neighbour`]: what it answers; [`Change`]: what it changes.
//! * [`Filter`]: a filter at tc's hooks; [`Netlink::add_taker`] adds one that takes every frame from the host's own stack.
//! * [`Family`]: a family of generic netlink. [`Netdev`] asks `netdev`, [`Offloads`] asks `ethtool`.
//! * [`LinkMonitor`], [`TableMonitor`]: news of interfaces, and of the tables that routes depend on.
//!
//! ## Invariants
//!
//! * Unknown attributes are skipped and short ones ignored: a newer kernel breaks nothing.
//! * A request ends with the kernel's acknowledgement, or after five seconds.
//! * No thread, no state beside the sockets. A value is used by one thread at a time.
//!
//! Why the messages are written here and not taken from a crate: `docs/decisions/0025-netlink.md`.

mod address;
mod codec;
mod features;
mod generic;
mod ingress;
mod link;
mod neighbour;
mod offload;
mod route;
mod socket;
mod watch;

pub use address::InterfaceAddress;
pub use features::{Netdev, XdpFeatures, xdp_features};
pub use generic::Family;
pub use ingress::{EGRESS, Filter, INGRESS};
pub use link::{Link, Peer, XdpAttached};
pub use neighbour::{Neighbour, Via};
pub use offload::{OffloadState, Offloads};
pub use route::{Prefix, Route, TableRoute};
pub use socket::{Change, Netlink};
pub use watch::{LinkEvent, LinkMonitor, News, TableMonitor};
