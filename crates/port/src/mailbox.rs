//! What threads of this process hand to a receiving queue: a bounded line, and a bell for a worker that sleeps.

use crossbeam_queue::ArrayQueue;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

/// Counts how often the bells of one node's mailboxes rang. Clones share the count.
///
/// A worker that polls other queues looks at this one word, and at the kernel only when it changed.
#[derive(Clone, Debug, Default)]
pub struct Bells(Arc<AtomicU64>);

impl Bells {
    /// Changes whenever something comes, from this process, to a queue that nobody polls.
    #[inline]
    pub fn rung(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn ring(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A line of `T`s from any thread to one.
pub(crate) struct Mailbox<T> {
    /// Made for the first that comes: most never see one.
    line: OnceLock<ArrayQueue<T>>,
    room: usize,
    /// Readable when something waits for who is away, sometimes when nothing does.
    bell: OwnedFd,
    /// Of all mailboxes of the node.
    bells: Bells,
    /// Nobody looks: who adds something rings.
    is_away: AtomicBool,
}

impl<T> Mailbox<T> {
    /// For `room` of them, away.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub(crate) fn new(room: usize, bells: Bells) -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { line: OnceLock::new(), room, bell, bells, is_away: true.into() })
    }

    /// Adds one; gives it back if there is no room.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        self.line.get_or_init(|| ArrayQueue::new(self.room)).push(item)?;
        // Either this sees that the reader is away, or the reader, who says so before its last look, sees the item.
        if self.is_away.swap(false, SeqCst) {
            // Refused only while it rings already.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
            self.bells.ring();
        }
        Ok(())
    }

    /// The next one. Whoever asks is not away.
    pub(crate) fn pop(&self) -> Option<T> {
        self.line.get()?.pop()
    }

    /// Whether something waits.
    pub(crate) fn has_some(&self) -> bool {
        self.line.get().is_some_and(|line| !line.is_empty())
    }

    /// The reader goes: what comes from now on rings. False if something waits.
    pub(crate) fn leave(&self) -> bool {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.is_away.store(true, SeqCst);
        !self.has_some()
    }
}

impl<T> AsFd for Mailbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Rounds in a row that a queue serves from its mailbox alone. Chosen: a system call is a tenth of what eight rounds cost.
const IN_A_ROW: u8 = 8;

/// Which of a queue's rounds ask the kernel too, by a system call: all where the mailbox is empty, and some of the others, so that it hides
/// nothing.
#[derive(Default)]
pub(crate) struct Turns(u8);

impl Turns {
    /// Whether the next round does.
    pub(crate) fn asks_kernel(&mut self, has_mail: bool) -> bool {
        self.0 = if has_mail && self.0 < IN_A_ROW { self.0 + 1 } else { 0 };
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn rings(mailbox: &Mailbox<u32>) -> bool {
        let now = Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 });
        poll(&mut [PollFd::new(mailbox, PollFlags::IN)], now).unwrap() == 1
    }

    #[test]
    fn what_is_pushed_comes_out_in_order_and_a_flood_is_cut_off() {
        let mailbox = Mailbox::new(64, Bells::default()).unwrap();
        let kept = (0..200).filter(|&number| mailbox.push(number).is_ok()).count();
        assert_eq!((kept, mailbox.has_some()), (64, true));
        let all: Vec<_> = std::iter::from_fn(|| mailbox.pop()).collect();
        assert_eq!(all, (0..64).collect::<Vec<u32>>());
        assert!(!mailbox.has_some());
    }

    #[test]
    fn it_rings_once_for_who_is_away_and_not_for_who_looks() {
        let bells = Bells::default();
        let mailbox = Mailbox::new(4, bells.clone()).unwrap();
        assert!(mailbox.leave() && !rings(&mailbox) && bells.rung() == 0);
        mailbox.push(1).unwrap();
        assert!(rings(&mailbox) && !mailbox.leave() && bells.rung() == 1);
        mailbox.pop();
        assert!(mailbox.leave() && !rings(&mailbox));
        mailbox.push(2).unwrap();
        mailbox.pop();
        // Still there from before: it may ring for nothing, once.
        assert!(mailbox.leave() && !rings(&mailbox));
    }

    #[test]
    fn the_kernel_is_asked_whenever_there_is_no_mail_and_now_and_then_else() {
        let mut turns = Turns::default();
        assert!((0..20).all(|_| turns.asks_kernel(false)));
        let asked: Vec<_> = (0..20).filter(|_| turns.asks_kernel(true)).collect();
        assert_eq!(asked, [8, 17]);
    }

    #[test]
    fn nobody_who_leaves_misses_anything() {
        let mailbox = Mailbox::new(8, Bells::default()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..20_000 {
                    while mailbox.push(number).is_err() {
                        std::thread::yield_now();
                    }
                }
            });
            let mut next = 0;
            while next < 20_000 {
                while let Some(number) = mailbox.pop() {
                    assert_eq!(number, next);
                    next += 1;
                }
                if next < 20_000 && mailbox.leave() {
                    let limit = Some(&rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 });
                    let woken = poll(&mut [PollFd::new(&mailbox, PollFlags::IN)], limit).unwrap();
                    assert_eq!(woken, 1, "{next} came, and then nobody rang");
                }
            }
        });
    }
}
