//! A packet socket for whole frames of the node itself: no batches, no offloads, one frame a call.

use super::rx::taken_tag;
use crate::sys::packet::{self, Received};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes that may wait to be read. Chosen: some hundred frames of a jumbo link.
const WAITING: i32 = 4 << 20;
/// Destination and source address: the tag goes behind them.
const ADDRESSES: usize = 12;

/// A packet socket on one interface of the node's own namespace, for frames of any type that others send. It never blocks.
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens it; who has privileges does.
    ///
    /// # Errors
    /// There is no such interface, or the kernel refuses.
    pub fn open(interface: &str) -> io::Result<Self> {
        let link = netlink::Netlink::new()?.link(interface)?;
        let index = link.ok_or(io::ErrorKind::NotFound)?.index;
        let socket = packet::socket()?;
        packet::set_int(&socket, libc::SOL_PACKET, packet::PACKET_IGNORE_OUTGOING, 1)?;
        packet::set_int(&socket, libc::SOL_PACKET, packet::PACKET_AUXDATA, 1)?;
        packet::set_int(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, WAITING)?;
        packet::bind(&socket, index, libc::ETH_P_ALL as u16)?;
        Ok(Self(socket))
    }

    /// A frame that has come, with the tag that the kernel took out; its length. Of one that is too long nothing is told.
    ///
    /// # Errors
    /// The interface is down or gone.
    pub fn receive(&self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        let mut received = [Received::default(); crate::batch::BODIES];
        let mut buffers = [[IoSliceMut::new(frame)]];
        loop {
            match packet::receive(&self.0, &mut buffers, &mut received) {
                Ok(0) => return Ok(None),
                Ok(_) if received[0].truncated => {}
                Ok(_) => break,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => return Ok(None),
                    _ => return Err(error),
                },
            }
        }
        let Received { len, aux, .. } = received[0];
        let Some(tag) = taken_tag(&aux) else { return Ok(Some(len)) };
        if len < ADDRESSES || len + tag.len() > frame.len() {
            return Ok(Some(len));
        }
        frame.copy_within(ADDRESSES..len, ADDRESSES + tag.len());
        frame[ADDRESSES..][..tag.len()].copy_from_slice(&tag);
        Ok(Some(len + tag.len()))
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The interface takes none now, or not one so long.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        let sent = rustix::net::send(&self.0, frame, rustix::net::SendFlags::DONTWAIT);
        sent.map(drop).map_err(Into::into)
    }

    /// Whether an error says that the interface is down or gone.
    pub fn is_gone(&self, error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
