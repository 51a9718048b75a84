//! # The roll: do the control threads still work?
//!
//! **Question answered**: which thread has failed, or has been at one thing for so long that nobody gets an answer from it?
//!
//! A control thread begins by [`Roll::spawn`] and says when it [waits](Duty::waits) for something to do and when it [works](Duty::works). Whoever looks after
//! the node [calls](Roll::call) the roll: systemd's watchdog is fed only while everybody answers, and a node of which one has failed ends, so that its
//! service starts it again with all that it keeps.
//!
//! Threads that wait for a disk or for others' networks by their nature (the store's, the member's) are not asked how long they take, only
//! whether they are there: what they do not get done is told elsewhere, and frames go on.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// A thread.
#[derive(Debug)]
struct Post {
    name: &'static str,
    /// Since when it has been at work, in milliseconds of the roll's age; 0 while it waits.
    since: AtomicU64,
    has_failed: AtomicBool,
}

/// Who does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absence {
    /// It panicked.
    Failed(&'static str),
    /// It has been at one thing for so long.
    Stuck(&'static str, Duration),
}

/// The threads of a node. Clones are the same.
#[derive(Clone, Debug)]
pub struct Roll(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    born: Instant,
    posts: Mutex<Vec<Arc<Post>>>,
}

/// What a thread tells of itself. It is its own: the thread has ended when this is dropped.
#[derive(Debug)]
pub struct Duty {
    post: Arc<Post>,
    roll: Roll,
}

impl Default for Roll {
    fn default() -> Self {
        Self(Arc::new(Shared { born: Instant::now(), posts: Mutex::default() }))
    }
}

impl Roll {
    /// Starts a control thread. It counts as waiting until it says something else.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(Duty) -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let duty = self.begin(name);
        Builder::new().name(name.into()).spawn(move || work(duty))
    }

    /// Calls the roll: who has failed, or else who has been at one thing for longer than `limit`.
    ///
    /// # Errors
    /// Somebody.
    pub fn call(&self, limit: Duration) -> Result<(), Absence> {
        judge(&self.posts(), self.age(), limit)
    }

    fn begin(&self, name: &'static str) -> Duty {
        let (since, has_failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let post = Arc::new(Post { name, since, has_failed });
        self.posts().push(post.clone());
        Duty { post, roll: self.clone() }
    }

    fn posts(&self) -> MutexGuard<'_, Vec<Arc<Post>>> {
        self.0.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In milliseconds, and one: never 0.
    fn age(&self) -> u64 {
        self.0.born.elapsed().as_millis() as u64 + 1
    }
}

fn judge(posts: &[Arc<Post>], now: u64, limit: Duration) -> Result<(), Absence> {
    if let Some(post) = posts.iter().find(|post| post.has_failed.load(Relaxed)) {
        return Err(Absence::Failed(post.name));
    }
    for post in posts {
        let since = post.since.load(Relaxed);
        let worked = Duration::from_millis(now.saturating_sub(since));
        if since != 0 && worked > limit {
            return Err(Absence::Stuck(post.name, worked));
        }
    }
    Ok(())
}

impl Duty {
    /// It waits for something to do, however long that takes.
    pub fn waits(&self) {
        self.post.since.store(0, Relaxed);
    }

    /// It does something, and something else than before: to be said for each thing.
    pub fn works(&self) {
        self.post.since.store(self.roll.age(), Relaxed);
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.post.has_failed.store(true, Relaxed);
            return;
        }
        self.roll.posts().retain(|post| !Arc::ptr_eq(post, &self.post));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_fails_is_missed_and_one_that_ends_is_not() {
        let roll = Roll::default();
        roll.spawn("ends", |duty| duty.works()).unwrap().join().unwrap();
        assert_eq!((roll.call(Duration::ZERO), roll.posts().len()), (Ok(()), 0));
        let failed = roll.spawn("fails", |duty| {
            duty.works();
            panic!("on purpose");
        });
        assert!(failed.unwrap().join().is_err());
        assert_eq!(roll.call(Duration::MAX), Err(Absence::Failed("fails")));
    }

    #[test]
    fn who_waits_may_wait_for_ever_and_who_works_may_not_work_for_ever() {
        let roll = Roll::default();
        let duty = roll.begin("works");
        let (limit, hour) = (Duration::from_secs(10), 3_600_000);
        let judge = |now| judge(&roll.posts(), now, limit);
        assert_eq!(judge(roll.age() + hour), Ok(()));
        duty.works();
        let since = duty.post.since.load(Relaxed);
        assert_eq!(judge(since + 10_000), Ok(()));
        let stuck = Absence::Stuck("works", Duration::from_millis(10_001));
        assert_eq!(judge(since + 10_001), Err(stuck));
        duty.waits();
        assert_eq!(judge(roll.age() + hour), Ok(()));
    }
}
