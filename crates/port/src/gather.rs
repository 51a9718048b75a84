//! A frame as the parts of a vectored write, and what a refused write means.

use crate::frame::TxFrame;
use crate::sys::parts::Part;
use arrayvec::ArrayVec;
use std::io;
use vhost::Payload;
use wire::{DropReason, Gso};

/// Most parts of a frame: header, head, and a body in guest memory. Linux guests send in up to 19 segments (`MAX_SKB_FRAGS` + 2).
const PARTS: usize = 24;

/// The parts of a write.
pub(crate) type Parts<'a> = ArrayVec<Part<'a>, PARTS>;

/// Whether a frame has more parts than one write takes, so that it must be put together first.
pub(crate) fn is_scattered(frame: &TxFrame<'_>) -> bool {
    matches!(frame.body.payload(), Payload::Guest(segments) if segments.len() > PARTS - 2)
}

/// `header`, head and body of a frame that is not scattered.
pub(crate) fn gather<'a>(header: &'a [u8], frame: &TxFrame<'a>) -> Parts<'a> {
    let mut parts = Parts::new();
    parts.push(Part::private(header));
    parts.push(Part::private(frame.head));
    match frame.body.payload() {
        Payload::Private([]) => {}
        Payload::Private(bytes) => parts.push(Part::private(bytes)),
        Payload::Guest(segments) => {
            parts.extend(segments.iter().map(|segment| Part::guest(*segment)))
        }
    }
    parts
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
