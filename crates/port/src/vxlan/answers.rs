//! What a tunnel port says to the guests of its own switch: from its sending halves, which find a frame too long, to its receiving half, which brings
//! the answer in as if the other end had sent it.

use crossbeam_queue::ArrayQueue;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Answers that wait. Chosen: a burst's worth; what a flood adds is not missed.
const ROOM: usize = 64;

/// The answers on their way.
pub(super) struct Answers {
    /// As if this end had sent it; 0: the port has only one.
    queue: ArrayQueue<(u16, Vec<u8>)>,
    /// Readable when one waits, sometimes when none does.
    bell: OwnedFd,
}

impl Answers {
    pub(super) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { queue: ArrayQueue::new(ROOM), bell })
    }

    /// Adds an answer of an end's, if there is room.
    pub(super) fn push(&self, end: u16, datagram: Vec<u8>) {
        if self.queue.push((end, datagram)).is_ok() {
            // Refused only while it rings already.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    /// The next answer, and whose it is.
    pub(super) fn pop(&self) -> Option<(u16, Vec<u8>)> {
        self.queue.pop()
    }

    /// Silences the bell; whether nothing waits. What comes later rings again.
    pub(super) fn rest(&self) -> bool {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.queue.is_empty()
    }
}

impl AsFd for Answers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_comes_out_in_order_and_a_flood_is_cut_off() {
        let answers = Answers::new().unwrap();
        assert!(answers.rest());
        (0..200).for_each(|number| answers.push(7, vec![number]));
        assert!(!answers.rest());
        let all: Vec<_> =
            std::iter::from_fn(|| answers.pop()).flat_map(|(_, answer)| answer).collect();
        assert_eq!(all, (0..64).collect::<Vec<u8>>());
        assert!(answers.rest());
    }
}
