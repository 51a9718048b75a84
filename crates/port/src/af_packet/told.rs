//! Frames of which a packet socket cannot say all, sent so that a program at the interface's way out says the rest ([`xdp::outer`]).

use super::made;
use crate::common::Common;
use crate::error::OpenError;
use crate::frame::TxFrame;
use crate::gather::reason;
use crate::interface::cannot_enter;
use crate::netns::Netns;
use crate::past;
use crate::plain::Scratch;
use crate::sys::packet;
use crate::sys::parts::Part;
use crate::vnet;
use netlink::Link;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use wire::segment::{is_plain, plan, tunnel_headers};
use wire::{DropReason, Gso, PartialChecksum};
use xdp::outer::{MARK, Outer, Told, Way};

/// Where two VLAN tags are in a frame.
const TAGS: Range<usize> = 12..20;
const TAG_LEN: u16 = 4;

/// A socket for such frames.
pub(crate) struct ToldTx {
    socket: OwnedFd,
    scratch: Scratch,
    /// Goes with the last socket.
    _program: Arc<Outer>,
}

/// So many of them on an interface; or none, and a note of what that costs.
pub(crate) fn open(
    spec: &Common,
    netns: &Netns,
    link: &Link,
    count: usize,
) -> Result<(Vec<Option<ToldTx>>, Option<String>), OpenError> {
    let program = netns.run(|| Outer::new(&link.name, Way::Out));
    match program.map_err(|source| cannot_enter(spec, source))? {
        Ok(program) => {
            let program = Arc::new(program);
            let one = |_| ToldTx::new(link.index, program.clone()).map(Some);
            let make = || (0..count).map(one).collect();
            Ok((made(spec, netns, "open sending packet sockets", make)?, None))
        }
        Err(error) => {
            let note = format!(
                "full-size frames with two tags do not fit, and large segments in GRE are cut: {}",
                past::chain(&error)
            );
            Ok(((0..count).map(|_| None).collect(), Some(note)))
        }
    }
}

impl ToldTx {
    fn new(index: u32, program: Arc<Outer>) -> io::Result<Self> {
        let socket = super::sender(index)?;
        packet::set_int(&socket, libc::SOL_SOCKET, libc::SO_MARK, MARK as i32)?;
        packet::take_times(&socket)?;
        Ok(Self { socket, scratch: Scratch::default(), _program: program })
    }

    /// Sends a large frame in a tunnel whole, if that can be told and the kernel takes it.
    pub(super) fn send_in_tunnel(&mut self, frame: &TxFrame<'_>) -> bool {
        let tunnel = tunnel_headers(frame.head, frame.len(), &frame.offload);
        let Some(told) = tunnel.and_then(|tunnel| Told::tunnel(&tunnel)) else { return false };
        let header = vnet::encode(frame);
        let parts = [Part::private(&header), Part::private(self.scratch.join(frame))];
        packet::send_at(&self.socket, &parts, told.0).is_ok()
    }

    /// Sends a frame that is too long for the kernel with both of its tags in it; a large one as it is, which the kernel cuts where it must.
    ///
    /// # Errors
    /// It has no two tags, or is too long all the same.
    pub(crate) fn send_tagged(&mut self, frame: &TxFrame<'_>) -> Result<(), DropReason> {
        let told = tags(frame).ok_or(DropReason::TooBig)?;
        if frame.offload.gso != Gso::None {
            let header = vnet::encode(frame);
            let parts = [Part::private(&header), Part::private(self.scratch.join(frame))];
            return packet::send(&self.socket, &[&parts]).map(drop).map_err(|error| reason(&error));
        }
        let before =
            |PartialChecksum { start, offset }| PartialChecksum { start: start - TAG_LEN, offset };
        let header: [u8; vnet::LEN] = vnet::plain(frame.offload.checksum.map(before));
        let joined = self.scratch.join(frame);
        let (addresses, rest) = (&joined[..TAGS.start], &joined[TAGS.end..]);
        let parts = [&header[..], addresses, &Told::UNTOLD_TAG, rest].map(Part::private);
        packet::send_at(&self.socket, &parts, told.0).map_err(|error| reason(&error))
    }
}

/// What is told of a frame that has two tags.
fn tags(frame: &TxFrame<'_>) -> Option<Told> {
    frame.head.get(TAGS)?.first_chunk::<8>().copied().and_then(Told::tags)
}

/// Whether a frame has two tags, and is longer than so many bytes on a wire, or its segments are: [`ToldTx::send_tagged`] can send it.
pub(crate) fn is_too_long(frame: &TxFrame<'_>, longest: usize) -> bool {
    frame.len() > longest && tags(frame).is_some() && segment_len(frame) > Some(longest)
}

/// Bytes of the longest frame that it becomes; `None` for a large one whose headers say otherwise.
fn segment_len(frame: &TxFrame<'_>) -> Option<usize> {
    let offload = &frame.offload;
    match offload.gso {
        Gso::None => Some(frame.len()),
        _ if !is_plain(frame.head, offload) => None,
        _ => {
            let segments = plan(frame.head, frame.len(), offload).ok()?;
            Some(segments.header_len() + segments.payload(0).len())
        }
    }
}
