//! The control thread's handle: starts and stops workers, attaches and detaches, reads counters.

mod attach;
mod capture;
mod control;
mod queues;
mod read;
mod registry;
mod start;
mod steering;
mod why;

use crate::command::{Command, Reply};
use crate::config::Config;
use crate::event::EventRing;
use crate::mailbox::Mailbox;
use crate::rung::Rungs;
use crate::samples::Samples;
use crate::worker::Remains;
use port::Bells;
use registry::Registry;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

pub use attach::{AttachError, PacketOut, PacketOutError, Queues};
pub use capture::CaptureError;
pub use control::{HandoverCounts, Steering};
pub use queues::{OnlyHere, QueuesError};

/// The workers of a node. All methods may be called from any thread; those that change what is served wait until every
/// worker has done so, which takes a round or a wake-up.
pub struct Datapath {
    workers: Vec<Handle>,
    registry: Mutex<Registry>,
    events: Arc<EventRing>,
    samples: Arc<Samples>,
    config: Config,
    started: start::Started,
}

/// One worker, from outside.
struct Handle {
    core: usize,
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<Remains>>,
}

impl Datapath {
    /// Returns when all packet-outs so far are done and no round is under way that began before the call: every later frame sees what
    /// was published before (`OFPT_BARRIER_REQUEST`).
    pub fn barrier(&self) {
        self.ask_all(|_, reply| Command::Barrier { reply });
    }

    /// What workers show of the frames that they see.
    pub fn samples(&self) -> &Arc<Samples> {
        &self.samples
    }

    /// What the mailboxes of these workers' ports shall ring.
    pub fn bells(&self) -> Bells {
        self.config.bells.clone()
    }

    /// Switches rungs of the ladder on and off, from each worker's next round on. [`Datapath::barrier`] waits for that.
    pub fn set_rungs(&self, rungs: Rungs) {
        self.workers.iter().for_each(|worker| worker.mailbox.set_rungs(rungs));
    }

    /// Stops the workers and drops all ports and switches, on this thread.
    pub fn shutdown(self) {
        drop(self);
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks every worker and waits for all answers, in no stated order.
    fn ask_all<A>(&self, mut command: impl FnMut(usize, Sender<A>) -> Command) -> Vec<A> {
        let (reply, answers): (_, Receiver<A>) = channel();
        for (worker, handle) in self.workers.iter().enumerate() {
            handle.mailbox.command(command(worker, reply.clone()));
        }
        drop(reply);
        answers.iter().collect()
    }
}

impl Drop for Datapath {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.mailbox.command(Command::Stop);
        }
        for worker in &mut self.workers {
            // A worker survives every panic; should its thread have ended all the same, there is nothing left to drop.
            let _ = worker.thread.take().map(JoinHandle::join);
        }
    }
}
