//! The bytes of a packet-in, and the frame behind them for a switch that sends it on later.

use port::Body;
use wire::{Gso, Offload, PartialChecksum, checksum, segment};

/// A frame taken out of its batch: what a controller is shown of it, and, if it was taken whole, what a port needs to send it.
///
/// A controller has nobody to complete a checksum for it. A partial one is summed over the whole frame, also over what is cut off
/// then. A large (GSO) frame that is asked for in full is taken segment by segment ([`Pieces`]), each as a wire would show it: what a controller
/// sends on then fits the next link. One that may wait in a buffer, or cannot be cut, is the one long packet that its headers describe. A checksum whose place lies outside the frame is left as
/// it is: the controller gets the frame as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldFrame {
    bytes: Vec<u8>,
    frame_len: u32,
    /// What is still to be done to it before a wire; of a large frame only, any other is finished.
    offload: Offload,
    /// What a large frame's checksum field held before it was completed: segmentation starts from there.
    begun: [u8; 2],
}

impl HeldFrame {
    /// Takes the first `most` bytes of the frame into `memory`, whose old content is forgotten.
    pub(crate) fn take(
        memory: Vec<u8>,
        (head, body): (&[u8], Body<'_>),
        offload: &Offload,
        most: usize,
    ) -> Self {
        let total = head.len() + body.len();
        let wanted = total.min(most);
        let bytes = first(memory, head, body, offload.checksum.map_or(wanted, |_| total));
        let mut held = Self {
            bytes,
            frame_len: total as u32,
            offload: if offload.gso == Gso::None { Offload::default() } else { *offload },
            begun: [0; 2],
        };
        if let Some(partial) = offload.checksum {
            held.begun = held.field(partial).map_or([0; 2], |field| *field);
            let _ = checksum::complete(&mut held.bytes, partial);
            held.bytes.truncate(wanted);
        }
        held
    }

    /// A frame that is complete with its checksums.
    pub fn complete(bytes: Vec<u8>) -> Self {
        let frame_len = bytes.len() as u32;
        Self { bytes, frame_len, offload: Offload::default(), begun: [0; 2] }
    }

    /// Its bytes, perhaps cut, all checksums in place.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether nothing was cut off.
    pub fn is_whole(&self) -> bool {
        self.bytes.len() == self.frame_len as usize
    }

    /// The whole frame as a port may send it, and what that port must still do to it: segments stay one large frame until then.
    /// Of a frame that was cut, what there is.
    pub fn into_sendable(mut self) -> (Vec<u8>, Offload) {
        let begun = self.begun;
        if let Some(field) = self.offload.checksum.and_then(|partial| self.field(partial)) {
            *field = begun;
        }
        (self.bytes, self.offload)
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Its memory, to be used again.
    pub(crate) fn into_memory(self) -> Vec<u8> {
        self.bytes
    }

    fn field(&mut self, partial: PartialChecksum) -> Option<&mut [u8; 2]> {
        let at = usize::from(partial.start) + usize::from(partial.offset);
        self.bytes.get_mut(at..)?.first_chunk_mut()
    }
}

/// A frame as it is shown to controllers: itself, or the segments of a large one, each as a wire would show it.
pub(crate) struct Pieces<'f> {
    head: &'f [u8],
    body: Body<'f>,
    offload: &'f Offload,
    segments: Option<segment::Segments<'f>>,
}

impl<'f> Pieces<'f> {
    /// Of a frame that is asked for in full, unless `may_wait`: then a large one may wait whole in a buffer, and leaves as it came.
    pub(crate) fn of(head: &'f [u8], body: Body<'f>, offload: &'f Offload, may_wait: bool) -> Self {
        let segments = match offload.gso {
            Gso::None => None,
            _ if may_wait => None,
            _ => segment::plan(head, head.len() + body.len(), offload).ok(),
        };
        Self { head, body, offload, segments }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.segments.map_or(1, |segments| segments.count())
    }

    /// Bytes of the one at `index`.
    pub(crate) fn len(&self, index: usize) -> usize {
        match &self.segments {
            Some(segments) => segments.header_len() + segments.payload(index).len(),
            None => self.head.len() + self.body.len(),
        }
    }

    /// Takes the first `most` bytes of the one at `index` into `memory`, whose old content is forgotten.
    pub(crate) fn take(&self, index: usize, mut memory: Vec<u8>, most: usize) -> HeldFrame {
        let Some(segments) = &self.segments else {
            return HeldFrame::take(memory, (self.head, self.body), self.offload, most);
        };
        let (len, start) = (self.len(index), segments.header_len());
        memory.clear();
        memory.resize(len, 0);
        segments.write_headers(index, &mut memory);
        copy((self.head, self.body), segments.payload(index).start, &mut memory[start..]);
        checksum::complete(&mut memory, segments.checksum()).expect("a segment has its headers");
        memory.truncate(most);
        let frame_len = len as u32;
        HeldFrame { bytes: memory, frame_len, offload: Offload::default(), begun: [0; 2] }
    }
}

/// Copies a frame's bytes from `at` on, across the seam of head and body.
fn copy((head, body): (&[u8], Body<'_>), at: usize, into: &mut [u8]) {
    let in_head = head.get(at..).unwrap_or_default();
    let (first, rest) = into.split_at_mut(in_head.len().min(into.len()));
    first.copy_from_slice(&in_head[..first.len()]);
    if !rest.is_empty() {
        body.copy_to(at + first.len() - head.len(), rest);
    }
}

fn first(mut memory: Vec<u8>, head: &[u8], body: Body<'_>, len: usize) -> Vec<u8> {
    let from_head = len.min(head.len());
    memory.clear();
    memory.reserve(len);
    memory.extend_from_slice(&head[..from_head]);
    memory.resize(len, 0);
    body.copy_to(0, &mut memory[from_head..]);
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(head: &[u8], body: &[u8], offload: &Offload, most: usize) -> HeldFrame {
        HeldFrame::take(vec![9; 3], (head, Body::private(body)), offload, most)
    }

    fn partial(start: u16, gso: Gso) -> Offload {
        let checksum = Some(PartialChecksum { start, offset: 0 });
        Offload { checksum, gso, gso_size: 1, ..Offload::default() }
    }

    #[test]
    fn head_and_body_are_joined_and_cut() {
        let held = |most| take(&[1, 2, 3], &[4, 5], &Offload::default(), most);
        assert_eq!(held(9).bytes(), [1, 2, 3, 4, 5]);
        assert_eq!(held(4).bytes(), [1, 2, 3, 4]);
        assert_eq!(held(2).bytes(), [1, 2]);
        assert_eq!(held(0).bytes(), [0; 0]);
        assert!(held(5).is_whole() && !held(4).is_whole());
    }

    #[test]
    fn a_partial_checksum_counts_the_bytes_that_are_cut_off() {
        let held = take(&[0, 0, 0x12, 0x34], &[0x56, 0x78], &partial(0, Gso::None), 4);
        assert_eq!(
            held.bytes(),
            [&(!(0x1234u16 + 0x5678)).to_be_bytes()[..], &[0x12, 0x34]].concat()
        );
    }

    #[test]
    fn a_checksum_outside_the_frame_changes_nothing() {
        let held = take(&[1, 2, 3], &[], &partial(90, Gso::None), 9);
        assert_eq!(held.bytes(), [1, 2, 3]);
    }

    #[test]
    fn an_ordinary_frame_is_sent_on_finished() {
        let held = take(&[0, 0, 0x12, 0x34], &[], &partial(0, Gso::None), 9);
        let shown = held.bytes().to_vec();
        assert_eq!(held.into_sendable(), (shown, Offload::default()));
    }

    #[test]
    fn a_large_frame_is_taken_segment_by_segment_as_a_wire_would_show_it() {
        let mut head = vec![0; 54];
        (head[12], head[14], head[23]) = (8, 0x45, 6);
        head[16..18].copy_from_slice(&(40 + 2500_u16).to_be_bytes());
        head[46] = 0x50;
        let offload = Offload {
            checksum: Some(PartialChecksum { start: 34, offset: 16 }),
            gso: Gso::TcpV4,
            gso_size: 1000,
            ..Offload::default()
        };
        let body: Vec<u8> = (0..2500).map(|at| at as u8).collect();
        let pieces = Pieces::of(&head, Body::private(&body), &offload, false);
        let lengths: Vec<_> = (0..pieces.count()).map(|index| pieces.len(index)).collect();
        assert_eq!(lengths, [1054, 1054, 554]);
        let held: Vec<_> = (0..3).map(|index| pieces.take(index, vec![9; 3], 2000)).collect();
        let payload: Vec<u8> = held.iter().flat_map(|held| held.bytes()[54..].to_vec()).collect();
        assert_eq!(payload, body);
        for held in &held {
            let len = (held.bytes().len() - 34) as u64;
            assert_eq!(checksum::fold(6 + len + checksum::sum(&held.bytes()[34..])), 0xffff);
            assert!(held.is_whole());
        }
        assert_eq!(Pieces::of(&head, Body::private(&body), &offload, true).count(), 1);
        let cut = pieces.take(0, Vec::new(), 60);
        assert_eq!((cut.bytes().len(), cut.is_whole()), (60, false));
    }

    #[test]
    fn a_large_frame_is_shown_finished_and_sent_on_as_it_came() {
        let (frame, offload) = ([0x11, 0x22, 0x12, 0x34], partial(0, Gso::TcpV4));
        let held = take(&frame, &[], &offload, 9);
        assert_ne!(held.bytes(), frame);
        assert_eq!(held.into_sendable(), (frame.to_vec(), offload));
    }
}
