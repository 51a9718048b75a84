//! # port: where frames enter and leave a switch
//!
//! **Question answered**: how do frames get from an interface to a worker and back, on every kind of port, with
//! checksum and segmentation state, honest counters and a reason for every frame lost?
//!
//! ## Types
//!
//! * [`RxQueue`], [`TxQueue`]: the two halves of a port's queue. Halves, so that a worker may send out of a port while it still
//!   holds frames received from it.
//! * [`RxBatch`]: the worker's memory for one rx round: 64 private heads, and 32 body buffers for ports whose source
//!   buffer is not shared memory. One per worker, whatever the number of ports.
//! * [`Body`]: the bytes after the head, still in the source buffer: in the batch, in a UMEM, and later in guest memory.
//! * [`Opener`] turns an [`api::PortSpec`] into an [`OpenPort`]: queues, [`PortFacts`], and the [`PortControl`] half that the node keeps.
//!   [`Chosen`] is what the specification leaves to the node; [`PortDetail`] is what only some kinds have to show.
//! * [`Ends`]: small numbers for the addresses of tunnels' ends, as flow keys have them.
//! * [`abilities()`]: what an interface can do to spread frames over cores by itself.
//! * [`HostUse`]: what a host uses an interface for; an interface that it uses is a port only where that is allowed.
//! * [`put_back`]: offloads that AF_XDP ports of a killed process switched off.
//! * [`LinkMonitor`]: news of a namespace's interfaces, so that a port whose interface went is reopened when it is back.
//! * `testing` (a feature): a port in memory.
//!
//! ## Kinds
//!
//! | kind | interface | large frames | checksums | tx of a worker without a queue |
//! |---|---|---|---|---|
//! | `tap` | ours, in the guest's namespace; persistent | whole, both ways | as state, both ways | shares a file: the kernel locks |
//! | `af_packet` | any | whole, both ways | as state, both ways | a socket for each worker |
//! | `af_xdp` | any with XDP | cut at tx, switched off at the source | recognised at rx, completed by the kernel or here | a packet socket |
//! | `vhost-user` | none: a guest's memory | whole, both ways, as far as the guest can take them | as state, both ways | the same rings, locked for a batch |
//! | `vxlan` | none: UDP sockets (encrypted: ESP in UDP), whose underlay is the kernel's; or past the kernel to a TAP | TCP is cut and put together here | completed here, found again at rx | the same sockets |
//! | `vlink` | none: a function call in `datapath` | | | |
//!
//! Needs `CAP_NET_ADMIN` and `CAP_NET_RAW`; `CAP_SYS_ADMIN` to enter namespaces; `CAP_BPF` and, beyond the memlock limit,
//! `CAP_IPC_LOCK` for `af_xdp`.
//!
//! ## Invariants
//!
//! * A frame's head is in private memory before anyone parses it. One that nobody parses may go on from where its source has it, compared with a pattern on the way or not ([`RxQueue::rx_unread`], [`TxQueue::tx_unread`]).
//! * A body is read at most once per destination, by tx, straight into the destination: one copy.
//! * `RxQueue::release` gives every buffer of the last round back; a round never outlives the next `rx`.
//! * A frame ends in one call, [`Drops::lose`], under one [`wire::DropReason`]; nothing is lost silently.
//! * Threads: an `RxQueue` and a `TxQueue` are used by one worker; [`PortControl`] by the node's control thread. They share only
//!   file descriptors and atomics.

mod abilities;
mod af_packet;
mod af_xdp;
mod batch;
mod bypass;
mod chosen;
mod common;
mod control;
mod detail;
mod drops;
mod ends;
mod error;
mod ethtool;
mod facts;
mod fitness;
mod frame;
mod gather;
mod host_use;
mod interface;
mod isolation;
mod mailbox;
mod merge;
mod netns;
mod nic;
mod open;
mod opened;
mod past;
mod peer;
mod plain;
mod queue;
mod settings;
mod sys;
mod tap;
#[cfg(feature = "testing")]
pub mod testing;

mod underlay;
mod unprivileged;
mod vhost_user;
mod vnet;
mod vxlan;

pub use abilities::{Abilities, abilities};
pub use af_packet::PacketSocket;
pub use batch::{BODY_MAX, BodyAt, Lengths, RxBatch, Slot};
pub use bypass::{Door, OutletFacts, Wrapped, Wrapping};
pub use chosen::{Chosen, SealOn};
pub use control::{Keep, PortControl};
pub use detail::{Details, GuestFacts, Hop, Outside, PortDetail, SaFacts, Sealing};
pub use drops::{Drops, LossTap, Lost, OuterPacket};
pub use ends::{Ends, NoNumber, Share};
pub use error::{AWAY, ControlError, OpenError};
pub use facts::PortFacts;
pub use flow::{PortAt, SwitchId};
pub use frame::{Body, Sent, TxFrame};
pub use host_use::HostUse;
pub use isolation::{release, release_others};
pub use mailbox::Bells;
pub use netlink::{Link, LinkEvent, LinkMonitor, Peer};
pub use netns::{NetnsRef, monitor, tcp_socket};
pub use nic::NicFacts;
pub use open::{Opener, open};
pub use opened::OpenPort;
pub use queue::{RxQueue, TX_MAX, TxQueue, UnreadSent};
pub use settings::put_back;
pub use vhost::{GuestBounds, Unread};
