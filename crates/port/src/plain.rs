//! Cutting a large frame into plain ones for a destination that takes nothing else.

use crate::frame::TxFrame;
use wire::segment::Trains;
use wire::{DropReason, Gso, Offload, PartialChecksum, checksum, segment};

/// Where plain frames go: a ring of buffers, or a scratch buffer and a write.
pub(crate) trait Room {
    /// Whether `count` more frames find room.
    fn fits(&mut self, count: usize) -> bool;

    /// Whether it takes the segments of a UDP tunnel as large UDP frames ([`Trains`]).
    fn takes_trains(&self) -> bool {
        false
    }

    /// Sends a frame of `len` bytes that `fill` writes; what `offload` says is left to whoever can do it cheapest. It is large only where trains
    /// are taken.
    ///
    /// # Errors
    /// The reason why it, and what follows of the same large frame, is lost.
    fn put(
        &mut self,
        len: usize,
        offload: Offload,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), DropReason>;
}

/// Whether a destination with virtio-net headers cannot take the frame as it is: the kernel completes no SCTP checksum for us, DHCP's readers do
/// not ask it to, and the mark of a large frame stands for one IP header behind Ethernet's.
pub(crate) fn is_needed(frame: &TxFrame<'_>) -> bool {
    let by_us = |partial: PartialChecksum| partial.is_crc() || partial.is_dhcp(frame.head);
    frame.offload.checksum.is_some_and(by_us)
        || frame.offload.gso != Gso::None && !segment::is_plain(frame.head, &frame.offload)
}

/// Splits a checksum of a frame that begins with `head` into what is completed here and what is left to the destination.
fn by_us(checksum: Option<PartialChecksum>, head: &[u8]) -> (Option<PartialChecksum>, Offload) {
    match checksum {
        Some(partial) if partial.is_dhcp(head) => (Some(partial), Offload::default()),
        checksum => (None, Offload { checksum, ..Offload::default() }),
    }
}

/// Completes what is completed here.
fn finish(out: &mut [u8], ours: Option<PartialChecksum>) {
    if let Some(partial) = ours {
        checksum::complete(out, partial).expect("its header was found in the frame");
    }
}

/// A buffer for one plain frame on its way to a file descriptor.
#[derive(Default)]
pub(crate) struct Scratch {
    bytes: Vec<u8>,
}

impl Scratch {
    /// Lets `fill` write a frame that is not large; returns the checksum left to the kernel, which is any but SCTP's, and its bytes.
    ///
    /// # Errors
    /// The checksum lies outside the frame.
    pub(crate) fn write(
        &mut self,
        len: usize,
        checksum: Option<PartialChecksum>,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(Option<PartialChecksum>, &[u8]), DropReason> {
        self.bytes.resize(len, 0);
        let kernels = write(&mut self.bytes, checksum, fill)?;
        Ok((kernels, &self.bytes))
    }

    /// Puts a frame's parts together.
    pub(crate) fn join(&mut self, frame: &TxFrame<'_>) -> &[u8] {
        self.bytes.clear();
        self.bytes.extend_from_slice(frame.head);
        frame.body.append_to(&mut self.bytes);
        &self.bytes
    }
}

/// Lets `fill` write a frame that is not large, and completes what a kernel does not; returns the checksum that is left to it.
///
/// # Errors
/// The checksum lies outside the frame.
pub(crate) fn write(
    bytes: &mut [u8],
    checksum: Option<PartialChecksum>,
    fill: impl FnOnce(&mut [u8]),
) -> Result<Option<PartialChecksum>, DropReason> {
    fill(bytes);
    match checksum {
        Some(crc) if crc.is_crc() => {
            checksum::complete(bytes, crc).map_err(|_| DropReason::BadOffload)?;
            Ok(None)
        }
        kernels => Ok(kernels),
    }
}

/// Sends `frame` as one or more plain frames of at most `max_len` bytes each.
///
/// # Errors
/// Why it is lost: `TooBig`, `TxFull` (then no part of it was sent), `BadOffload`.
pub(crate) fn send(
    frame: &TxFrame<'_>,
    max_len: usize,
    room: &mut impl Room,
) -> Result<(), DropReason> {
    match frame.offload.gso {
        Gso::None => whole(frame, max_len, room),
        _ => cut(frame, max_len, room),
    }
}

fn whole(frame: &TxFrame<'_>, max_len: usize, room: &mut impl Room) -> Result<(), DropReason> {
    let len = frame.len();
    if len > max_len {
        return Err(DropReason::TooBig);
    }
    if !room.fits(1) {
        return Err(DropReason::TxFull);
    }
    let (ours, theirs) = by_us(frame.offload.checksum, frame.head);
    room.put(len, theirs, |out| {
        let (head, body) = out.split_at_mut(frame.head.len());
        head.copy_from_slice(frame.head);
        if !body.is_empty() {
            frame.body.copy_to(0, body);
        }
        finish(out, ours);
    })
}

fn cut(frame: &TxFrame<'_>, max_len: usize, room: &mut impl Room) -> Result<(), DropReason> {
    let segments = segment::plan(frame.head, frame.len(), &frame.offload)
        .map_err(|_| DropReason::BadOffload)?;
    if let Some(trains) = segments.trains().filter(|_| room.takes_trains()) {
        return join(frame, &trains, room);
    }
    let headers = segments.header_len();
    let (ours, theirs) = by_us(Some(segments.checksum()), frame.head);
    if headers + segments.payload(0).len() > max_len {
        return Err(DropReason::TooBig);
    }
    if !room.fits(segments.count()) {
        return Err(DropReason::TxFull);
    }
    for index in 0..segments.count() {
        let payload = segments.payload(index);
        room.put(headers + payload.len(), theirs, |out| {
            segments.write_headers(index, out);
            copy(frame, payload.start, &mut out[headers..]);
            finish(out, ours);
        })?;
    }
    Ok(())
}

fn join(frame: &TxFrame<'_>, trains: &Trains<'_>, room: &mut impl Room) -> Result<(), DropReason> {
    if !room.fits(trains.count()) {
        return Err(DropReason::TxFull);
    }
    (0..trains.count()).try_for_each(|index| {
        let fill = |out: &mut [u8]| trains.write(index, out, |at, into| copy(frame, at, into));
        room.put(trains.len(index), trains.offload(index), fill)
    })
}

/// Copies the frame's bytes from offset `at` on, across the seam of head and body.
fn copy(frame: &TxFrame<'_>, at: usize, into: &mut [u8]) {
    let in_head = frame.head.get(at..).unwrap_or_default();
    let (first, rest) = into.split_at_mut(in_head.len().min(into.len()));
    first.copy_from_slice(&in_head[..first.len()]);
    if !rest.is_empty() {
        frame.body.copy_to(at + first.len() - frame.head.len(), rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Body;
    use wire::Offload;

    /// Collects frames, up to a number.
    struct Frames(Vec<Vec<u8>>, usize);

    impl Room for Frames {
        fn fits(&mut self, count: usize) -> bool {
            self.0.len() + count <= self.1
        }

        fn put(
            &mut self,
            len: usize,
            _: Offload,
            fill: impl FnOnce(&mut [u8]),
        ) -> Result<(), DropReason> {
            let mut frame = vec![0; len];
            fill(&mut frame);
            self.0.push(frame);
            Ok(())
        }
    }

    #[test]
    fn head_and_body_are_joined() {
        let frame = TxFrame {
            head: &[1; 20],
            body: Body::private(&[2; 30]),
            offload: Offload::default(),
            tunnel_id: 0,
            tun_dst: 0,
        };
        let mut room = Frames(Vec::new(), 1);
        assert_eq!(send(&frame, 50, &mut room), Ok(()));
        assert_eq!(room.0, vec![[vec![1; 20], vec![2; 30]].concat()]);
        assert_eq!(send(&frame, 50, &mut room), Err(DropReason::TxFull));
        assert_eq!(send(&frame, 49, &mut room), Err(DropReason::TooBig));
    }

    #[test]
    fn dhcp_leaves_complete_and_other_datagrams_as_they_are() {
        let partial = PartialChecksum { start: 34, offset: 6 };
        for (ports, is_dhcp) in [([67, 68], true), ([5000, 547], true), ([5000, 53], false)] {
            let mut head = vec![0; 42];
            for (at, port) in [(34, ports[0]), (36, ports[1])] {
                head[at..at + 2].copy_from_slice(&u16::to_be_bytes(port));
            }
            let offload = Offload { checksum: Some(partial), ..Offload::default() };
            let body = Body::private(&[7; 301]);
            let frame = TxFrame { head: &head, body, offload, tunnel_id: 0, tun_dst: 0 };
            assert_eq!(is_needed(&frame), is_dhcp);
            let mut room = Frames(Vec::new(), 1);
            assert_eq!(send(&frame, 400, &mut room), Ok(()));
            let mut wanted = [head.clone(), vec![7; 301]].concat();
            if is_dhcp {
                checksum::complete(&mut wanted, partial).unwrap();
            }
            assert_eq!(room.0, [wanted]);
        }
        let outside = PartialChecksum { start: 38, offset: 6 };
        assert!(!outside.is_dhcp(&[0; 42]), "a header that ends outside the frame is none");
    }

    #[test]
    fn the_kernel_completes_sums_and_we_complete_crcs() {
        let mut scratch = Scratch::default();
        let sum = PartialChecksum { start: 14, offset: 16 };
        let (left, bytes) = scratch.write(40, Some(sum), |out| out.fill(1)).unwrap();
        assert_eq!((left, bytes), (Some(sum), &[1; 40][..]));
        let crc = PartialChecksum { start: 14, offset: 8 };
        let (left, bytes) = scratch.write(40, Some(crc), |out| out.fill(1)).unwrap();
        assert_eq!(left, None);
        assert_ne!(bytes[22..26], [1; 4]);
    }

    #[test]
    fn a_copy_crosses_the_seam() {
        let frame = TxFrame {
            head: &[1, 2, 3, 4],
            body: Body::private(&[5, 6, 7, 8]),
            offload: Offload::default(),
            tunnel_id: 0,
            tun_dst: 0,
        };
        for (at, expected) in [(0, [1, 2, 3]), (2, [3, 4, 5]), (4, [5, 6, 7]), (5, [6, 7, 8])] {
            let mut out = [0; 3];
            copy(&frame, at, &mut out);
            assert_eq!(out, expected);
        }
    }
}
