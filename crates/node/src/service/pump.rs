//! Carries what workers saw to those whom it concerns. One thread: packet-ins must not queue behind a long API answer.

use super::directory::Directory;
use crate::feed::Feed;
use crate::ports::Ports;
use crate::roll::{Duty, Roll};
use api::{Happening, News, Noun};
use datapath::{Event, Events};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// How often a pump without events looks whether it is to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// After so many events the pump says that it works.
const LOOKS: u64 = 256;

/// The thread's handle; dropping it ends the thread.
pub struct Pump {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pump {
    /// Starts it.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(
        events: Events,
        directory: Arc<Directory>,
        ports: Arc<Ports>,
        feed: Feed,
        roll: &Roll,
    ) -> io::Result<Self> {
        let ending = Arc::new(AtomicBool::new(false));
        let end = ending.clone();
        let run = move |duty: Duty| {
            while !end.load(Relaxed) {
                // Interrupted or timed out: look all the same.
                duty.waits();
                let _ = poll(&mut [PollFd::new(&events, PollFlags::IN)], Some(&LOOK));
                duty.works();
                drain((&events, &duty), &directory, &ports, &feed);
            }
        };
        let thread = roll.spawn("suiro-events", run)?;
        Ok(Self { ending, thread: Some(thread) })
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.ending.store(true, Relaxed);
        // A pump that panicked has said so.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Handles what waits, then what came before the workers knew that they must wake us again.
fn drain((events, duty): (&Events, &Duty), directory: &Directory, ports: &Ports, feed: &Feed) {
    handle_all((events, duty), directory, ports, feed);
    events.acknowledge();
    handle_all((events, duty), directory, ports, feed);
}

fn handle_all((events, duty): (&Events, &Duty), directory: &Directory, ports: &Ports, feed: &Feed) {
    // A flood of packet-ins may have no end; who carries it is not stuck.
    for number in 0_u64.. {
        if number % LOOKS == 0 {
            duty.works();
        }
        let Some(event) = events.pop() else { return };
        match event {
            Event::PacketIn(punt) => {
                let member = directory.by_id(punt.switch);
                if let Some(frame) = member.and_then(|member| member.switch.on_packet_in(punt)) {
                    events.recycle(frame);
                }
            }
            Event::PortFault { at, worker, error } => {
                tracing::warn!("{at}: worker {worker} finds its queue broken: {error}");
                ports.faulted(at, error);
            }
            Event::WorkerDied { worker, at, message } => {
                let place = at.map_or_else(|| "unknown".into(), |at| at.to_string());
                tracing::error!(
                    worker,
                    place,
                    "a worker failed and went on: {message}; please report this"
                );
                let (name, change) = (format!("worker {worker}"), Happening::Fault);
                let text = format!("failed at {place} and went on: {message}; please report this");
                feed.tell(News::of_node(Noun::Node, &name, change, text));
            }
        }
    }
}
