//! What waits to be sent to one peer, and what is lost when the peer does not read.
//!
//! Three kinds of messages wait in one buffer, each with its own bound, so that order is kept and memory is bounded. The bounds follow from `unread`
//! of `bounds` of `[node]`, a MiB unless it says otherwise (10 ms of 100-byte packet-ins at a million a second):
//!
//! * *replies* are caused by the peer's own requests: the session stops reading while half of `unread` bytes of them wait, so a
//!   peer that asks and never reads stalls only itself. Packet-ins do not count there: a peer that sends before it reads on
//!   would wait for us, and we for it;
//! * *packet-ins* are lost, and counted, above `unread`;
//! * *notices* (flow-removed, port-status) must not be lost silently, because the protocol cannot say "you missed some":
//!   above twice `unread`, with what the writer holds, the connection ends, and the controller learns the state anew when it comes back.
//!
//! Lock: one mutex, held while bytes are copied in or the buffer is swapped out; never across a wait.

use crate::room::Part;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A bounded queue of encoded messages, written by anybody, emptied by the connection's writer.
#[derive(Default)]
pub struct Outbox {
    waiting: Mutex<Waiting>,
    /// Rung when bytes or the end arrive.
    filled: Notify,
    /// Rung when the writer took the bytes.
    emptied: Notify,
    /// Rung at the end.
    ended: Notify,
    lost_packet_ins: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// How many of them are replies.
    replies: usize,
    /// How many the writer has taken and not written.
    taken: usize,
    closed: bool,
    /// A notice did not fit.
    overflowed: bool,
    /// What the bytes take of the node's room for what waits.
    part: Part,
}

impl Waiting {
    fn total(&self) -> usize {
        self.bytes.len() + self.taken
    }

    fn has_too_many_replies(&self) -> bool {
        self.replies >= self.part.unread() / 2 || self.replies > 0 && !self.part.may(self.total())
    }
}

impl Outbox {
    /// An empty one, whose bytes take this part of the node's room.
    pub fn new(part: Part) -> Self {
        Self { waiting: Mutex::new(Waiting { part, ..Waiting::default() }), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues what `emit` appends, unless the connection is ending.
    pub fn reply(&self, emit: impl FnOnce(&mut Vec<u8>)) {
        self.push(
            |_| usize::MAX,
            |waiting| {
                let before = waiting.bytes.len();
                emit(&mut waiting.bytes);
                waiting.replies += waiting.bytes.len() - before;
            },
        );
    }

    /// Queues a packet-in; false, and one more in [`Outbox::lost_packet_ins`], when the peer is too far behind.
    pub fn packet_in(&self, emit: impl FnOnce(&mut Vec<u8>)) -> bool {
        let queued = self.push(|unread| unread, |waiting| emit(&mut waiting.bytes));
        if !queued {
            self.lost_packet_ins.fetch_add(1, Ordering::Relaxed);
        }
        queued
    }

    /// Queues a flow-removed or port-status; a peer too far behind loses its connection instead.
    pub fn notice(&self, emit: impl FnOnce(&mut Vec<u8>)) {
        if !self.push(|unread| 2 * unread, |waiting| emit(&mut waiting.bytes)) {
            let mut waiting = self.lock();
            // A notice after the end is no loss.
            if !waiting.closed {
                (waiting.overflowed, waiting.bytes) = (true, Vec::new());
            }
            drop(waiting);
            self.close();
        }
    }

    fn push(&self, limit: fn(usize) -> usize, emit: impl FnOnce(&mut Waiting)) -> bool {
        let mut waiting = self.lock();
        let (total, limit) = (waiting.total(), limit(waiting.part.unread()));
        // Replies are never refused: who has too many of them is not read.
        let is_full = total >= limit || limit != usize::MAX && !waiting.part.may(total);
        if waiting.closed || is_full {
            return false;
        }
        let was_empty = waiting.bytes.is_empty();
        emit(&mut waiting);
        let total = waiting.total();
        waiting.part.set(total);
        drop(waiting);
        if was_empty {
            self.filled.notify_one();
        }
        true
    }

    /// Ends the connection once what waits is written.
    pub fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
        self.emptied.notify_one();
        self.ended.notify_one();
    }

    /// Waits until the connection is ending; for the session only.
    pub async fn closed(&self) {
        while !self.is_closed() {
            self.ended.notified().await;
        }
    }

    /// Whether the connection is ending.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Whether the connection is ending because a notice did not fit.
    pub fn is_overflowed(&self) -> bool {
        self.lock().overflowed
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        self.lock().bytes.len()
    }

    /// Packet-ins this peer lost because it did not read fast enough.
    pub fn lost_packet_ins(&self) -> u64 {
        self.lost_packet_ins.load(Ordering::Relaxed)
    }

    /// Waits for bytes and swaps them into `taken` (whose old content is forgotten, its memory reused); false at the end.
    pub async fn take(&self, taken: &mut Vec<u8>) -> bool {
        taken.clear();
        loop {
            if self.swap(taken) {
                self.emptied.notify_one();
                return true;
            }
            if self.is_closed() {
                return false;
            }
            self.filled.notified().await;
        }
    }

    fn swap(&self, taken: &mut Vec<u8>) -> bool {
        let mut waiting = self.lock();
        std::mem::swap(&mut waiting.bytes, taken);
        (waiting.replies, waiting.taken) = (0, taken.len());
        let total = waiting.total();
        waiting.part.set(total);
        // A burst must not pin its memory for the connection's life.
        if waiting.bytes.capacity() > 2 * waiting.part.unread() {
            waiting.bytes = Vec::new();
        }
        !taken.is_empty()
    }

    /// Whether so many bytes of replies wait that no request is to be read.
    pub fn is_full(&self) -> bool {
        self.lock().has_too_many_replies()
    }

    /// Waits until few enough replies wait, or the connection ends; for the session that asks only.
    pub async fn room(&self) {
        while {
            let waiting = self.lock();
            waiting.has_too_many_replies() && !waiting.closed
        } {
            self.emptied.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::{FREE, Room};
    use std::sync::Arc;

    const UNREAD: usize = 1 << 20;

    #[test]
    fn a_peer_that_never_reads_loses_packet_ins_counted_but_no_reply() {
        let outbox = Outbox::default();
        let frame = vec![7; 1000];
        let queued = (0..2000).filter(|_| outbox.packet_in(|out| out.extend(&frame))).count();
        assert_eq!(queued, UNREAD.div_ceil(1000));
        assert_eq!(outbox.lost_packet_ins(), 2000 - queued as u64);
        assert_eq!(outbox.waiting(), queued * 1000);
        outbox.reply(|out| out.push(1));
        assert!(!outbox.is_closed());
    }

    #[test]
    fn where_many_peers_are_deaf_each_has_less() {
        let room = Arc::new(Room::new(4 << 20, UNREAD));
        let outboxes: Vec<Outbox> = (0..16).map(|_| Outbox::new(room.part())).collect();
        for _ in 0..3000 {
            for outbox in &outboxes {
                outbox.packet_in(|out| out.extend([7; 1000]));
            }
        }
        let held: Vec<usize> = outboxes.iter().map(Outbox::waiting).collect();
        assert!(held.iter().sum::<usize>() <= 5 << 20, "{held:?}");
        assert!(held.iter().all(|bytes| *bytes >= FREE as usize), "{held:?}");
        let last = &outboxes[15];
        last.reply(|out| out.push(1));
        assert!(last.is_full(), "what it asks is not read until it reads");
    }

    #[test]
    fn too_many_notices_end_the_connection() {
        let outbox = Outbox::default();
        outbox.reply(|out| out.resize(2 * UNREAD, 0));
        outbox.notice(|out| out.push(1));
        assert!(outbox.is_closed() && outbox.is_overflowed());
    }

    #[tokio::test]
    async fn what_the_writer_holds_of_a_deaf_peer_counts_too() {
        let outbox = Outbox::default();
        outbox.notice(|out| out.resize(2 * UNREAD, 0));
        let mut held = Vec::new();
        assert!(outbox.take(&mut held).await);
        assert!(!outbox.packet_in(|out| out.push(1)));
        assert_eq!((held.len(), outbox.waiting()), (2 * UNREAD, 0));
        assert!(!outbox.is_closed(), "the writer may write it yet");
        outbox.notice(|out| out.push(1));
        assert!(outbox.is_closed() && outbox.is_overflowed());
    }

    #[tokio::test]
    async fn what_was_queued_before_the_end_is_still_taken() {
        let outbox = Outbox::default();
        outbox.reply(|out| out.push(9));
        outbox.close();
        let mut taken = Vec::new();
        assert!(outbox.take(&mut taken).await);
        assert_eq!(taken, [9]);
        assert!(!outbox.take(&mut taken).await);
    }

    #[tokio::test]
    async fn packet_ins_do_not_keep_a_session_from_reading() {
        let outbox = Outbox::default();
        assert!(outbox.packet_in(|out| out.resize(UNREAD, 0)));
        outbox.room().await;
    }

    #[tokio::test]
    async fn room_returns_when_the_writer_took_the_bytes() {
        let outbox = std::sync::Arc::new(Outbox::default());
        outbox.reply(|out| out.resize(UNREAD / 2, 0));
        let reader = outbox.clone();
        let waiter = tokio::spawn(async move { reader.room().await });
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        assert!(outbox.take(&mut Vec::new()).await);
        waiter.await.unwrap();
    }
}
