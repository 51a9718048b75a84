//! Frames that wait for their departure, copied into memory that was allocated when their queue was configured.

use flow::Nanos;
use port::{Body, TxFrame};
use wire::Offload;

/// Most frames that wait in one queue at one worker; its bytes are bounded besides.
const FRAMES: usize = 1024;

/// A frame in the ring.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stored {
    at: u32,
    head: u32,
    len: u32,
    /// Bytes that it puts on the wire.
    pub(crate) wire_len: u32,
    /// When the round began that put it here.
    pub(crate) since: Nanos,
    tunnel_id: u32,
    tun_dst: u16,
    offload: Offload,
}

/// First in, first out. Each frame's bytes lie in one piece: at the end of the memory a frame that does not fit begins at its start.
pub(crate) struct Ring {
    bytes: Box<[u8]>,
    frames: Box<[Stored]>,
    first: usize,
    count: usize,
    /// Where the next frame's bytes begin.
    end: usize,
}

impl Ring {
    /// A ring of so many bytes. Zeroed memory is touched only as far as it is used.
    pub(crate) fn new(bytes: usize) -> Self {
        let frames = vec![Stored::default(); FRAMES].into();
        Self { bytes: vec![0; bytes].into(), frames, first: 0, count: 0, end: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Frames that wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Copies a frame in; false when it does not fit.
    pub(crate) fn push(&mut self, frame: &TxFrame<'_>, wire_len: u32, since: Nanos) -> bool {
        let len = frame.len();
        let Some(at) = self.place(len) else { return false };
        let head = frame.head.len();
        let room = &mut self.bytes[at..at + len];
        room[..head].copy_from_slice(frame.head);
        frame.body.copy_to(0, &mut room[head..]);
        let TxFrame { offload, tunnel_id, tun_dst, .. } = *frame;
        let (at32, head, len32) = (at as u32, head as u32, len as u32);
        self.frames[(self.first + self.count) % FRAMES] =
            Stored { at: at32, head, len: len32, wire_len, since, tunnel_id, tun_dst, offload };
        self.count += 1;
        self.end = at + len;
        true
    }

    /// Where `len` bytes in one piece are free.
    fn place(&self, len: usize) -> Option<usize> {
        let all = self.bytes.len();
        if self.count == 0 {
            return (len <= all).then_some(0);
        }
        let start = self.frames[self.first].at as usize;
        match () {
            () if self.count == FRAMES => None,
            () if self.end <= start => (start - self.end >= len).then_some(self.end),
            () if all - self.end >= len => Some(self.end),
            () => (start >= len).then_some(0),
        }
    }

    /// The frame that leaves next.
    pub(crate) fn peek(&self) -> Option<&Stored> {
        (self.count > 0).then(|| &self.frames[self.first])
    }

    /// Takes it out. Its bytes stay where they are until the next [`Ring::push`].
    pub(crate) fn pop(&mut self) -> Option<Stored> {
        let stored = *self.peek()?;
        self.first = (self.first + 1) % FRAMES;
        self.count -= 1;
        Some(stored)
    }

    /// The frame's bytes, divided as they were handed over.
    pub(crate) fn frame(&self, stored: &Stored) -> TxFrame<'_> {
        let (at, head, len) = (stored.at as usize, stored.head as usize, stored.len as usize);
        let (head, body) = self.bytes[at..at + len].split_at(head);
        TxFrame {
            head,
            body: Body::private(body),
            offload: stored.offload,
            tunnel_id: stored.tunnel_id,
            tun_dst: stored.tun_dst,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Its bytes, and where it goes.
    fn told_of(frame: &TxFrame<'_>) -> (Vec<u8>, u32, u16) {
        let mut bytes = frame.head.to_vec();
        frame.body.append_to(&mut bytes);
        (bytes, frame.tunnel_id, frame.tun_dst)
    }

    proptest! {
        #[test]
        fn frames_come_out_whole_and_in_order_and_the_memory_stays_bounded(
            steps in prop::collection::vec((any::<bool>(), 14usize..400, 0usize..400), 1..300),
        ) {
            let (mut ring, mut oracle) = (Ring::new(1000), VecDeque::new());
            for (step, (push, head, body)) in steps.into_iter().enumerate() {
                if !push {
                    let out = ring.pop().map(|stored| told_of(&ring.frame(&stored)));
                    prop_assert_eq!(out, oracle.pop_front());
                    continue;
                }
                let (head, body) = (vec![step as u8; head], vec![!step as u8; body]);
                let frame =
                    TxFrame { head: &head, body: Body::private(&body), offload: Offload::default(), tunnel_id: step as u32, tun_dst: !step as u16 };
                if ring.push(&frame, 0, Nanos(0)) {
                    oracle.push_back(told_of(&frame));
                } else {
                    let used: usize = oracle.iter().map(|(bytes, ..)| bytes.len()).sum();
                    // At the end of the memory lies a piece that was too short for some frame, 800 bytes at most.
                    prop_assert!(used + frame.len() + 800 > 1000);
                }
                prop_assert_eq!(ring.len(), oracle.len());
            }
        }
    }

    #[test]
    fn frames_are_bounded_as_their_bytes_are() {
        let mut ring = Ring::new(1 << 20);
        let frame = TxFrame {
            head: &[0; 60],
            body: Body::default(),
            offload: Offload::default(),
            tunnel_id: 0,
            tun_dst: 0,
        };
        assert_eq!((0..5000).filter(|_| ring.push(&frame, 60, Nanos(0))).count(), FRAMES);
        let mut small = Ring::new(150);
        assert_eq!((0..5000).filter(|_| small.push(&frame, 60, Nanos(0))).count(), 2);
    }
}
