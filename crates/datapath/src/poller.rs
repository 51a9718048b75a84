//! What a worker sleeps on: an epoll instance that watches the receive queues it does not poll itself.
//!
//! Level-triggered and one-shot: a queue that becomes readable is reported once and then not watched, until the worker stops
//! polling it and watches it again; what arrived in between is reported at once. Nothing is lost in either order.

use crate::touch::QueueIx;
use arrayvec::ArrayVec;
use rustix::event::{Timespec, epoll};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// Readiness taken in one go.
const TAKEN: usize = 64;

/// Token of the worker's own mailbox; queues use theirs from 0.
const MAILBOX: u64 = u64::MAX;

/// Who is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ready {
    /// A frame waits in this queue, or its source is broken.
    Queue(QueueIx),
    /// The control thread wants something.
    Mailbox,
}

/// The epoll instance.
pub(crate) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    /// Watches the mailbox only.
    pub(crate) fn new(mailbox: BorrowedFd<'_>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, mailbox, epoll::EventData::new_u64(MAILBOX), epoll::EventFlags::IN)?;
        Ok(Self { epoll })
    }

    /// Adds a source and watches it.
    pub(crate) fn add(&self, source: BorrowedFd<'_>, ix: QueueIx) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, data(ix), ONCE)?)
    }

    /// Watches a source again.
    pub(crate) fn watch(&self, source: BorrowedFd<'_>, ix: QueueIx) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, data(ix), ONCE)?)
    }

    /// Forgets a source.
    pub(crate) fn remove(&self, source: BorrowedFd<'_>) {
        // Fails only if the source was closed or never added: it is not watched then.
        let _ = epoll::delete(&self.epoll, source);
    }

    /// Waits until something is ready, at most `limit` (`None`: for ever).
    pub(crate) fn wait(&self, limit: Option<Duration>) -> ArrayVec<Ready, TAKEN> {
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        });
        let nothing =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [nothing; TAKEN];
        // Interrupted by a signal: nothing is ready, and the caller comes again.
        let count = epoll::wait(&self.epoll, &mut events, limit.as_ref()).unwrap_or(0);
        events[..count].iter().map(|event| ready(event.data.u64())).collect()
    }
}

fn ready(token: u64) -> Ready {
    if token == MAILBOX { Ready::Mailbox } else { Ready::Queue(QueueIx(token as u32)) }
}

const ONCE: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::ONESHOT);

fn data(QueueIx(token): QueueIx) -> epoll::EventData {
    epoll::EventData::new_u64(token.into())
}
