//! # The feed: what happened, in one order
//!
//! **Question answered**: how does a reader hear of each change once, also when it was away, and what does a slow one cost?
//!
//! Whoever changes something or sees it change calls [`Feed::tell`]; the event gets the next [`Revision`] there. Readers come with the
//! revision of their last event and take what is after it, a portion at a time: [`Feed::after`], [`Feed::wait`].
//!
//! ## Invariants
//!
//! * `tell` never waits: it pushes to a queue of bounded length and size, under a lock that is a leaf. The oldest event goes.
//! * A reader costs nothing while it is away or slow: nothing is kept for it. One that is too far behind is told so.
//! * A revision is never given twice, over restarts too: numbers are reserved in the store, a block ahead. The number before a block is given to
//!   nothing, so a cursor of an earlier process is never mistaken for the beginning of this one.

use api::{Event, Gone, News, Revision};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Events that are kept. Chosen: some minutes of the busiest controller that flaps ports, and a day of an ordinary node.
pub const KEPT: usize = 65_536;
/// Bytes of their texts that are kept.
const KEPT_BYTES: usize = 16 << 20;
/// Events that one look hands out. Chosen: the lock is held for some 10 µs.
pub const PORTION: usize = 256;
/// Numbers that are reserved at a time: the store has written the next block long before this one is used up.
const BLOCK: u64 = 1_000_000;

/// Notes in the store below which number everything may have been given.
type Reserve = Box<dyn Fn(Revision) + Send + Sync>;

/// What happened. Clones are the same feed.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

struct Shared {
    kept: Mutex<Kept>,
    /// The newest revision; nothing when there will be no more.
    newest: watch::Sender<Option<Revision>>,
    reserve: Reserve,
}

struct Kept {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    newest: Revision,
    reserved: Revision,
}

/// What a reader gets at a look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Portion {
    /// What came next; nothing if there is nothing yet.
    Events(Vec<Arc<Event>>),
    /// Some of what came next is not kept any more.
    Gone(Gone),
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Feed up to {}", self.newest())
    }
}

impl Default for Feed {
    /// A feed of a process that leaves nothing behind.
    fn default() -> Self {
        Self::after_block(Revision(0), |_| ())
    }
}

impl Feed {
    /// A feed whose numbers follow what an earlier process had `reserved`; `reserve` is told what this one may give.
    pub fn after_block(
        reserved: Revision,
        reserve: impl Fn(Revision) + Send + Sync + 'static,
    ) -> Self {
        let (events, newest) = (VecDeque::new(), reserved);
        let kept = Kept { events, bytes: 0, newest, reserved: Revision(newest.0 + BLOCK) };
        reserve(kept.reserved);
        Self(Arc::new(Shared {
            kept: Mutex::new(kept),
            newest: watch::Sender::new(Some(newest)),
            reserve: Box::new(reserve),
        }))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened. Never waits.
    pub fn tell(&self, news: News) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut kept = self.kept();
        let revision = kept.push(at.as_nanos() as u64, news);
        let runs_out = revision.0 + BLOCK / 2 >= kept.reserved.0;
        if runs_out {
            kept.reserved.0 += BLOCK;
        }
        let reserved = kept.reserved;
        drop(kept);
        if runs_out {
            (self.0.reserve)(reserved);
        }
        // Of two that tell at once, the later number stays; a closed feed stays closed.
        self.0.newest.send_modify(|newest| *newest = newest.map(|newest| newest.max(revision)));
    }

    /// Where a reader is that wants only what comes from now on.
    pub fn newest(&self) -> Revision {
        self.kept().newest
    }

    /// Where a reader is that wants everything that is kept.
    pub fn oldest(&self) -> Revision {
        self.kept().oldest()
    }

    /// What came after a revision.
    pub fn after(&self, since: Revision) -> Portion {
        let kept = self.kept();
        let (oldest, newest) = (kept.oldest(), kept.newest);
        if since < oldest || since > newest {
            return Portion::Gone(Gone { since, oldest, newest });
        }
        let from = (since.0 - oldest.0) as usize;
        Portion::Events(kept.events.range(from..).take(PORTION).cloned().collect())
    }

    /// Ready when there is something after a revision: true; or when there will be nothing any more.
    pub async fn wait(&self, since: Revision) -> bool {
        let mut newest = self.0.newest.subscribe();
        let news = newest.wait_for(|newest| newest.is_none_or(|newest| newest > since)).await;
        news.is_ok_and(|newest| newest.is_some())
    }

    /// Lets readers go: the process ends.
    pub fn close(&self) {
        self.0.newest.send_replace(None);
    }
}

impl Kept {
    fn push(&mut self, at_ns: u64, news: News) -> Revision {
        self.newest.0 += 1;
        self.bytes += size(&news);
        self.events.push_back(Arc::new(Event { revision: self.newest, at_ns, news }));
        while self.events.len() > KEPT || self.bytes > KEPT_BYTES {
            let gone = self.events.pop_front();
            self.bytes -= gone.map_or(0, |gone| size(&gone.news));
        }
        self.newest
    }

    /// The revision before the first that is kept.
    fn oldest(&self) -> Revision {
        Revision(self.newest.0 - self.events.len() as u64)
    }
}

fn size(news: &News) -> usize {
    let names = [&news.switch, &news.name, &news.by].into_iter().flatten();
    size_of::<Event>() + news.text.len() + names.map(String::len).sum::<usize>()
}

#[cfg(test)]
mod tests;
