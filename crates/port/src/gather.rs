//! A frame as the slices of a vectored write, and what a refused write means.

use crate::queue::TxFrame;
use crate::vnet;
use arrayvec::ArrayVec;
use std::io::{self, IoSlice};
use wire::{DropReason, Gso};

/// Most slices of a frame: header, head, and a body in guest memory of a few segments.
pub(crate) const SLICES: usize = 8;

/// The slices of a write.
pub(crate) type Slices<'a> = ArrayVec<IoSlice<'a>, SLICES>;

/// `header`, head and body; `None` when the body has too many segments.
pub(crate) fn gather<'a>(header: &'a [u8; vnet::LEN], frame: &TxFrame<'a>) -> Option<Slices<'a>> {
    let mut slices = Slices::new();
    for bytes in [&header[..], frame.head].into_iter().chain(frame.body.slices()) {
        slices.try_push(IoSlice::new(bytes)).ok()?;
    }
    Some(slices)
}

/// Why the kernel refused a frame.
pub(crate) fn reason(error: &io::Error) -> DropReason {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS) => DropReason::TxFull,
        Some(libc::EMSGSIZE) => DropReason::TooBig,
        Some(libc::EIO | libc::ENETDOWN | libc::ENXIO | libc::ENODEV | libc::EBADFD) => {
            DropReason::PortDown
        }
        _ => DropReason::TxError,
    }
}

/// Whether the frame was refused because the kernel cannot cut UDP (before 6.2), so that we must.
pub(crate) fn lacks_uso(error: &io::Error, frame: &TxFrame<'_>) -> bool {
    error.raw_os_error() == Some(libc::EINVAL) && frame.offload.gso == Gso::Udp
}
