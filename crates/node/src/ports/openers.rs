//! Interfaces that are being opened, several at a time, each on a thread of its own.
//!
//! The kernel takes up to some 100 ms to open one (an AF_XDP port's program and rings), and much of that is waiting. Meanwhile the ports' thread goes
//! on with others' ports. Threads of the ports' thread have its privileges.

use super::keeper::REPORT;
use super::watch::ring;
use super::{Answer, OnFailure, Request};
use api::{Fault, PortSpec, chain};
use datapath::PortAt;
use port::{Chosen, OpenPort};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

/// Most threads. Chosen: as many as close interfaces.
const MOST: usize = 16;

/// A port whose interface is being opened, and what was asked of it meanwhile.
pub(super) struct Opening {
    on_failure: OnFailure,
    answer: Answer,
    put_off: Vec<Request>,
}

impl Opening {
    /// `answer` hears what came of it.
    pub(super) fn new(on_failure: OnFailure, answer: Answer) -> Self {
        Self { on_failure, answer, put_off: Vec::new() }
    }

    /// Keeps a request until the port is open, or cannot be.
    pub(super) fn put_off(&mut self, request: Request) {
        self.put_off.push(request);
    }

    /// Tells who asked; the requests that waited.
    pub(super) fn end(self, result: Result<(), Fault>) -> Vec<Request> {
        // A caller that no longer listens has gone.
        let _ = self.answer.send(result);
        self.put_off
    }

    /// What to do with the port if it cannot be opened.
    pub(super) fn on_failure(&self) -> OnFailure {
        self.on_failure
    }
}

/// What is to be opened.
pub(super) struct Wish {
    pub(super) at: PortAt,
    /// For messages.
    pub(super) label: String,
    pub(super) spec: PortSpec,
    pub(super) chosen: Chosen,
    /// How often the node let flows go past the workers, or no more.
    pub(super) era: u64,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) at: PortAt,
    pub(super) era: u64,
    pub(super) opened: Result<OpenPort, Fault>,
}

/// The threads.
pub(super) struct Openers {
    opener: Arc<port::Opener>,
    wake: Arc<OwnedFd>,
    running: usize,
    waiting: VecDeque<Wish>,
    outcomes: (Sender<Outcome>, Receiver<Outcome>),
}

impl Openers {
    /// None yet. Outcomes ring at `wake`.
    pub(super) fn new(opener: Arc<port::Opener>, wake: Arc<OwnedFd>) -> Self {
        Self { opener, wake, running: 0, waiting: VecDeque::new(), outcomes: channel() }
    }

    /// Begins to open an interface, now or when others are open.
    pub(super) fn open(&mut self, wish: Wish) {
        if self.running >= MOST {
            return self.waiting.push_back(wish);
        }
        self.running += 1;
        let (opener, wake, told) =
            (self.opener.clone(), self.wake.clone(), self.outcomes.0.clone());
        let (hand, taken) = channel::<Wish>();
        let run = move || {
            for wish in taken {
                let _ = told.send(outcome(&opener, wish));
                ring(&wake);
            }
        };
        match Builder::new().name("suiro-open".into()).spawn(run) {
            Ok(_) => _ = hand.send(wish),
            // Then here.
            Err(_) => _ = self.outcomes.0.send(outcome(&self.opener, wish)),
        }
    }

    /// One that is done.
    pub(super) fn done(&mut self) -> Option<Outcome> {
        let outcome = self.outcomes.1.try_recv().ok()?;
        self.next();
        Some(outcome)
    }

    /// The next that is done, if any is being opened.
    pub(super) fn wait(&mut self) -> Option<Outcome> {
        if self.running == 0 {
            return None;
        }
        let outcome = self.outcomes.1.recv().ok()?;
        self.next();
        Some(outcome)
    }

    fn next(&mut self) {
        self.running -= 1;
        if let Some(wish) = self.waiting.pop_front() {
            self.open(wish);
        }
    }
}

fn outcome(opener: &port::Opener, wish: Wish) -> Outcome {
    let Wish { at, label, spec, chosen, era } = wish;
    let opened = catch_unwind(AssertUnwindSafe(|| open(opener, &label, (&spec, &chosen))));
    let panicked = |_| Err(Fault::new(&label, "open it", "its thread panicked", REPORT));
    Outcome { at, era, opened: opened.unwrap_or_else(panicked) }
}

/// Opens an interface.
///
/// # Errors
/// Why it cannot be had.
pub(super) fn open(
    opener: &port::Opener,
    label: &str,
    (spec, chosen): (&PortSpec, &Chosen),
) -> Result<OpenPort, Fault> {
    let opened = opener.open_chosen(spec, chosen);
    opened.map_err(|error| Fault::new(label, error.step(), chain(&error), error.remedy()))
}
