//! Tasks of which only so many may be at a time, and who goes when one more comes.
//!
//! A task that waits for its peer (a request that is not whole, an answer that nobody reads) stays while there is room: somebody may read a long
//! answer page by page. When there is no room, the one whose peer has not moved for the longest ends. One that is at work is let finish, and one
//! whose peer moved a moment ago, too.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Says whether a task's peer moves.
#[derive(Debug)]
pub struct Pulse {
    born: Instant,
    /// When the peer last took or gave something, in microseconds of our life.
    moved_us: AtomicU64,
    works: AtomicBool,
}

impl Pulse {
    fn new() -> Arc<Self> {
        let (moved_us, works) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { born: Instant::now(), moved_us, works })
    }

    /// The peer took or gave something.
    pub fn beat(&self) {
        self.moved_us.store(self.born.elapsed().as_micros() as u64, Relaxed);
    }

    /// The peer has said everything, or has its answer: is it ours to do something now?
    pub fn set_works(&self, works: bool) {
        self.works.store(works, Relaxed);
        self.beat();
    }

    fn moved(&self) -> Instant {
        self.born + Duration::from_micros(self.moved_us.load(Relaxed))
    }
}

/// Tasks of one kind.
#[derive(Debug)]
pub struct Crowd {
    most: usize,
    still: Duration,
    there: Mutex<Vec<Member>>,
}

#[derive(Debug)]
struct Member {
    pulse: Arc<Pulse>,
    task: AbortHandle,
}

/// What became of one more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// There was room.
    Free,
    /// Another has ended for it.
    InPlace,
    /// None made room.
    Refused,
}

impl Crowd {
    /// Nobody yet, and so many at most; who was still for so long makes room for others.
    pub fn new(most: usize, still: Duration) -> Self {
        Self { most, still, there: Mutex::default() }
    }

    /// How many there may be.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Lets one more begin, in place of another if there is no room. Within a runtime.
    #[must_use]
    pub fn admit<F>(&self, work: impl FnOnce(Arc<Pulse>) -> F) -> Admission
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut there = self.there.lock().unwrap_or_else(PoisonError::into_inner);
        there.retain(|member| !member.task.is_finished());
        let is_full = there.len() >= self.most;
        if is_full {
            let waits = there.iter().enumerate().filter(|(_, it)| !it.pulse.works.load(Relaxed));
            let stillest = waits.min_by_key(|(_, it)| it.pulse.moved());
            let goes = stillest.filter(|(_, it)| it.pulse.moved().elapsed() >= self.still);
            let Some((index, _)) = goes else { return Admission::Refused };
            there.remove(index).task.abort();
        }
        let pulse = Pulse::new();
        let task = tokio::spawn(work(pulse.clone())).abort_handle();
        there.push(Member { pulse, task });
        if is_full { Admission::InPlace } else { Admission::Free }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    /// Tells its number when it ends.
    struct Tells(u32, UnboundedSender<u32>);

    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.1.send(self.0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_not_moved_for_the_longest_makes_room_and_who_works_stays() {
        let crowd = Crowd::new(3, Duration::from_millis(1));
        let (sender, mut ended) = unbounded_channel();
        let pulses: Mutex<Vec<Arc<Pulse>>> = Mutex::default();
        let come = |number| {
            let tells = Tells(number, sender.clone());
            crowd.admit(|pulse| {
                pulses.lock().unwrap().push(pulse);
                async move {
                    let _tells = tells;
                    std::future::pending().await
                }
            })
        };
        let pulse = |number: usize| pulses.lock().unwrap()[number].clone();
        for number in 0..3 {
            assert_eq!(come(number), Admission::Free);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        pulse(0).beat();
        pulse(1).set_works(true);
        assert_eq!(come(3), Admission::InPlace);
        assert_eq!(ended.recv().await, Some(2), "0 has moved since, and 1 works");
        [0, 3].into_iter().map(pulse).for_each(|pulse| pulse.set_works(true));
        assert_eq!(come(4), Admission::Refused, "all work");
        assert_eq!(ended.recv().await, Some(4));
        pulse(3).set_works(false);
        assert_eq!(come(5), Admission::Refused, "3 has just moved");
        assert_eq!(ended.recv().await, Some(5));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(come(6), Admission::InPlace);
        assert_eq!(ended.recv().await, Some(3));
    }

    #[tokio::test]
    async fn who_has_ended_leaves_room() {
        let crowd = Crowd::new(1, Duration::ZERO);
        for _ in 0..3 {
            let (done, is_done) = tokio::sync::oneshot::channel::<()>();
            let came = crowd.admit(|pulse| async move {
                pulse.set_works(true);
                drop(done);
            });
            assert_eq!(came, Admission::Free);
            let _ = is_done.await;
            tokio::task::yield_now().await;
        }
    }
}
