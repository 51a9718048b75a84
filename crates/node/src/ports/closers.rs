//! Threads that close interfaces, several at a time.
//!
//! The kernel takes some 20 ms to remove a TAP and waits for most of them, for many as long as for one: 100 TAPs one by one take 2.0 s, by 16
//! threads 0.3 s. Threads of the ports' thread have its privileges.

use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};

/// Most threads. Chosen: by 100 threads 100 TAPs go in 0.2 s, which is hardly less.
const MOST: usize = 16;

/// Closes one interface.
pub type Closing = Box<dyn FnOnce() + Send>;

/// The threads that close something now.
#[derive(Default)]
pub struct Closers(Vec<JoinHandle<()>>);

impl Closers {
    /// Closes it on a thread of its own, or here when there are enough of those already.
    pub fn close(&mut self, closing: Closing) {
        self.0.retain(|thread| !thread.is_finished());
        if self.0.len() >= MOST {
            return closing();
        }
        let (hand, taken) = channel::<Closing>();
        let run = move || taken.recv().into_iter().for_each(|closing| closing());
        match Builder::new().name("suiro-close".into()).spawn(run) {
            // The thread waits for it.
            Ok(thread) => {
                let _ = hand.send(closing);
                self.0.push(thread);
            }
            Err(_) => closing(),
        }
    }
}

impl Drop for Closers {
    /// Nothing is left half closed.
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            // One that panicked has closed what it had.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};

    #[test]
    fn as_many_as_there_are_threads_close_together_and_none_is_left() {
        let (told, done) = channel();
        let mut closers = Closers::default();
        // Each waits for all others: one by one they would wait for ever.
        let together = Arc::new(Barrier::new(MOST));
        for number in 0..MOST {
            let (told, together) = (told.clone(), together.clone());
            closers.close(Box::new(move || {
                together.wait();
                told.send(number).unwrap();
            }));
        }
        for number in MOST..2 * MOST {
            let told = told.clone();
            closers.close(Box::new(move || told.send(number).unwrap()));
        }
        drop((closers, told));
        let mut all: Vec<usize> = done.iter().collect();
        all.sort_unstable();
        assert_eq!(all, (0..2 * MOST).collect::<Vec<_>>());
    }
}
