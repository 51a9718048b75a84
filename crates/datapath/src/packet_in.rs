//! The bytes of a packet-in, and the frame behind them for a switch that sends it on later.

use port::Body;
use wire::{Gso, Offload, PartialChecksum, checksum};

/// A frame taken out of its batch: what a controller is shown of it, and, if it was taken whole, what a port needs to send it.
///
/// A controller has nobody to complete a checksum for it. A partial one is summed over the whole frame, also over what is cut off
/// then; a large (GSO) frame is treated as the one long packet that its headers describe, so that the controller sees what
/// the guest sent. A checksum whose place lies outside the frame is left as it is: the controller gets the frame as it came.
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
    fn a_large_frame_is_shown_finished_and_sent_on_as_it_came() {
        let (frame, offload) = ([0x11, 0x22, 0x12, 0x34], partial(0, Gso::TcpV4));
        let held = take(&frame, &[], &offload, 9);
        assert_ne!(held.bytes(), frame);
        assert_eq!(held.into_sendable(), (frame.to_vec(), offload));
    }
}
