//! # The steering thread
//!
//! **Question answered**: how does the node ask the steering agent for something, and who wakes the agent?
//!
//! One thread owns the [`Agent`]: it answers requests and calls [`Agent::tick`] when the agent said that it wants to be called. Like the
//! ports' thread it keeps privileges (eBPF programs, maps and pins need them) and does what may block in the kernel. A second
//! thread, without privileges, looks for virtual machines: reading `/proc` of a busy host takes longer than a tick may.
//!
//! Users ask by the local API (`service`), controllers by suiro's OpenFlow extension ([`Controllers`]).
//! The agent steers interfaces by the kernel and switches by the workers; it learns of these when the node has them ([`Steer::serve`]).
//!
//! What the agent was asked for is kept in the store ([`kept`]); what the kernel does goes on without us, and is taken up again at the
//! next start.

mod controllers;
mod kept;
mod opener;
mod surroundings;
mod watch;

use crate::host::look_around;
use crate::refusal::{Refusal, Why};
use crate::roll::{Duty, Roll};
use api::Fault;
pub use controllers::Controllers;
use datapath::{Clock, Datapath, MonotonicClock, Steers, SwitchId, Workers};
pub use kept::{Journal, restore};
use opener::Everywhere;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use steer::{Agent, SteerError, SteerErrorKind};
use surroundings::Scout;
use tokio::sync::oneshot;
use watch::Watch;
use xdp::steer::{Frames, Kernel, frames_of};

enum Message {
    Ask(Box<dyn FnOnce(&mut Agent) + Send>),
    Stop,
}

/// The thread's handle.
pub struct Steer {
    messages: Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
    workers: Workers,
}

impl Steer {
    /// Starts the thread, which has the capabilities of its caller and keeps them.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(roll: &Roll) -> io::Result<Self> {
        let (messages, inbox) = channel();
        let back = messages.clone();
        let workers = Workers::default();
        let everywhere = Everywhere { kernel: Kernel::new(), workers: workers.clone() };
        let own = roll.clone();
        let work = move |duty| run(&inbox, (back, own), everywhere, &duty);
        let thread = roll.spawn("suiro-steer", work)?;
        Ok(Self { messages, thread: Mutex::new(Some(thread)), workers })
    }

    /// From now on switches, which `find` finds by name, can be steered between these workers; `tell` hears of it.
    pub fn serve(
        &self,
        datapath: Arc<Datapath>,
        find: impl Fn(&str) -> Option<SwitchId> + Send + Sync + 'static,
        tell: impl Fn(SwitchId, Steers) + Send + Sync + 'static,
    ) {
        self.workers.serve(datapath, find, tell);
    }

    /// Has the agent do something.
    ///
    /// # Errors
    /// What it refuses.
    pub async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Agent) -> Result<T, SteerError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        let ask = move |agent: &mut Agent| {
            // Who asked may have gone; what was asked is done all the same.
            let _ = answer.send(ask(agent));
        };
        // An ended thread shows by the missing answer.
        let _ = self.messages.send(Message::Ask(Box::new(ask)));
        match answered.await {
            Ok(done) => done.map_err(|error| refusal(&error)),
            Err(_) => Err(ended()),
        }
    }

    /// The frames of an interface, as steering's programs see them.
    ///
    /// # Errors
    /// It is not steered, or by programs of an earlier version, which show none.
    pub async fn frames(&self, interface: &str) -> Result<Frames, Refusal> {
        let name = interface.to_owned();
        self.ask(move |agent| {
            if !agent.interface_names().contains(&name) {
                return Err(SteerError::NotSteered { interface: name });
            }
            frames_of(&name).map_err(|source| SteerError::Open { interface: name, source })
        })
        .await
    }

    /// Ends the thread. Steering itself goes on in the kernel.
    pub async fn stop(&self) {
        // An ended thread needs no message.
        let _ = self.messages.send(Message::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that panicked has said so already.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

fn run(
    inbox: &Receiver<Message>,
    (back, roll): (Sender<Message>, Roll),
    opener: Everywhere,
    duty: &Duty,
) {
    let clock = MonotonicClock;
    let mut agent = Agent::new(opener, look_around());
    let _scout = Scout::start(back, &roll);
    let mut watch = Watch::begin();
    loop {
        let begun = clock.now().0;
        let every = agent.tick(begun);
        watch.look(agent.receiving());
        duty.waits();
        let heard = inbox.recv_timeout(rest_of(every, Duration::from_nanos(clock.now().0 - begun)));
        duty.works();
        match heard {
            Ok(Message::Ask(ask)) => watch.aside(|| {
                // What is asked is answered as of now, not as of the last tick.
                agent.tick(clock.now().0);
                ask(&mut agent);
            }),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
}

/// What is left between two ticks behind the work of the first: half of it at least, for a thread that goes before all others must let them run.
fn rest_of(every: Duration, worked: Duration) -> Duration {
    every.saturating_sub(worked).max(every / 2)
}

/// An error of steering as the API answers it.
pub fn refusal(error: &SteerError) -> Refusal {
    let why = match error.kind() {
        SteerErrorKind::NotFound => Why::NotFound,
        SteerErrorKind::Conflict => Why::Conflict,
        SteerErrorKind::Invalid => Why::Invalid,
        SteerErrorKind::Impossible | SteerErrorKind::Full => Why::Impossible,
    };
    let (thing, step) = (error.thing(), error.step());
    Refusal::new(why, Fault::new(thing, step, error.cause(), error.remedy()))
}

fn ended() -> Refusal {
    let remedy = "restart suiro; please report its last log lines";
    Refusal::new(Why::Impossible, Fault::new("steering", "ask its thread", "it has ended", remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_at_their_pace_and_leave_others_half_of_the_time() {
        let us = Duration::from_micros;
        assert_eq!(rest_of(us(1000), us(0)), us(1000));
        assert_eq!(rest_of(us(1000), us(200)), us(800));
        assert_eq!(rest_of(us(1000), us(5000)), us(500));
    }
}

#[cfg(test)]
mod workers_tests;
