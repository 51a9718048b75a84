//! What only some kinds of port have to show: a guest, keys, a way past the kernel.

use crate::bypass::OutletFacts;
use crate::chosen::SealOn;
use crate::drops::Drops;
use std::net::IpAddr;
use vhost::Look;

/// An open port's detail, for any thread at any time: it changes too often to be told as news.
pub trait Details: Send + Sync {
    /// The detail now.
    fn read(&self) -> PortDetail;

    /// Where packets of a tunnel go on this host's own network, those to `end` of one that has no end of its own.
    fn outside(&self, _end: Option<IpAddr>) -> Option<Outside> {
        None
    }
}

/// Where packets of a tunnel go now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outside {
    /// The other end.
    pub to: IpAddr,
    /// Its UDP port.
    pub port: u16,
    /// The VNI of all frames; `None`: each has its own.
    pub vni: Option<u32>,
    /// By which interface, or why by none.
    pub hop: Result<Hop, String>,
    /// Bytes of the longest frame that the path takes, its header included. Of longer ones the sender is told.
    pub longest: usize,
    /// Bytes that are put in front of a frame behind the outer Ethernet header.
    pub overhead: u32,
}

/// The interface by which packets leave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hop {
    /// Its index.
    pub interface: u32,
    /// Its name.
    pub name: String,
    /// What the packets begin with.
    pub headers: wire::tunnel::Outer,
}

/// What only some kinds of port have to show.
#[derive(Clone, Debug, Default)]
pub struct PortDetail {
    /// The guest of a vhost-user port.
    pub guest: Option<GuestFacts>,
    /// SAs of an encrypted tunnel, those that send first.
    pub sas: Vec<SaFacts>,
    /// Where an encrypted tunnel seals.
    pub sealing: Option<Sealing>,
    /// The way past the kernel of a tunnel that has one.
    pub forwarding: Option<OutletFacts>,
}

/// The guest of a vhost-user port.
#[derive(Clone, Debug)]
pub struct GuestFacts {
    /// What its session knows.
    pub look: Look,
    /// Whether its driver takes frames.
    pub is_ready: bool,
}

/// What users may know of a security association.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SaFacts {
    /// Whether it sends; else it receives.
    pub sends: bool,
    /// Its security parameters index.
    pub spi: u32,
    /// Packets sealed or opened since the port opened, or the SA came.
    pub packets: u64,
    /// The next sequence number to be sent, or the highest received.
    pub sequence: u64,
    /// Packets refused because they were there before, or are too old to know.
    pub replayed: u64,
    /// Packets refused because they were changed, or are of another key.
    pub bad_icv: u64,
    /// Packets refused because they were cut short or held something else.
    pub malformed: u64,
}

/// Where a tunnel seals, and what a thread of its own did.
#[derive(Clone, Debug, Default)]
pub struct Sealing {
    /// Where.
    pub on: SealOn,
    /// Packets that threads of their own have sealed and sent since the port opened.
    pub packets: u64,
    /// Packets that it could not send, though their frames were counted as sent by the port.
    pub lost: Drops,
}
