//! One worker: a thread that polls its queues while they have frames, and sleeps when none has.

mod handed;
mod onward;
mod round;

use crate::clock::Clock;
use crate::command::{Command, Removed, Reply};
use crate::config::Config;
use crate::engine::{CacheOf, Engine};
use crate::event::{Event, EventRing};
use crate::id::{PortAt, PortIx};
use crate::local::{LocalPort, World};
use crate::looks::Looks;
use crate::mailbox::Mailbox;
use crate::neighbours::Neighbours;
use crate::onward::Waiting;
use crate::poller::{Poller, Ready};
use crate::queues::{Queue, Queues};
use crate::samples::Sampler;
use crate::steering::Handover;
use crate::taps::{Taps, Turns};
use crate::touch::{QueueIx, Touch};
use flow::Nanos;
use port::{Bells, Drops, Lost, RxBatch, RxQueue};
use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use wire::DropReason;

/// Packet-outs done between two rounds, so that a controller cannot hold up the ports.
const PACKET_OUTS_PER_TURN: usize = wire::BATCH;
/// … or, where each makes many copies, those of so many ns. Chosen: frames that come meanwhile fit into any queue.
const PACKET_OUTS_NS: u64 = 250_000;

/// All that a worker owns.
pub(crate) struct Worker<C> {
    clock: Arc<C>,
    mailbox: Arc<Mailbox>,
    poller: Poller,
    queues: Queues,
    batch: RxBatch,
    /// What a source left out of its round.
    left_out: Drops,
    /// Shows frames to whoever looks for heavy flows.
    sampler: Sampler,
    /// Which frames it notes.
    turns: Turns,
    engine: Engine<C>,
    /// What it needs to hand frames over to other workers, while any switch is steered.
    pub(crate) handover: Option<Box<Handover>>,
    /// The queue whose round it is.
    serving: Option<QueueIx>,
    /// A source that still has its buffers since a panic, and what it keeps locked with them; also one that is parked for it.
    unreleased: Option<QueueIx>,
    /// At the queues that are not polled.
    looks: Looks,
    /// What mailboxes ring, and how often they had when the kernel was last asked.
    bells: (Bells, u64),
    /// How long, in ns, to poll in vain.
    spin: u64,
    neighbours: Neighbours,
    /// Frames on their way out of [`crate::onward::Onward`].
    going_on: Vec<Waiting>,
    /// Packet-outs done so far.
    injected: u64,
    /// Who waits until so many are done.
    barriers: VecDeque<(u64, Sender<Reply>)>,
}

/// What is left of a worker, for the thread that drops it.
pub(crate) struct Remains {
    #[expect(dead_code, reason = "only dropped, by the thread that stops the worker")]
    queues: Vec<Queue>,
    #[expect(dead_code, reason = "only dropped, by the thread that stops the worker")]
    world: World,
}

impl<C: Clock> Worker<C> {
    /// A worker without ports.
    pub(crate) fn new(
        (number, secret): (usize, [u64; 2]),
        config: &Config,
        clock: Arc<C>,
        mailbox: Arc<Mailbox>,
        (events, sampler): (Arc<EventRing>, Sampler),
    ) -> io::Result<Self> {
        let flight = Arc::clone(&mailbox.flight);
        let taps = Taps::new(Arc::clone(&clock) as Arc<dyn Clock>, config.tap.clone(), flight);
        let cache_of = CacheOf { worker: number as u8, secret, entries: config.cache_entries };
        Ok(Self {
            poller: Poller::new(mailbox.waker.as_fd())?,
            queues: Queues::new(config.learns),
            batch: RxBatch::default(),
            left_out: Drops::tapped(Some(taps.clone())),
            engine: Engine::new(
                cache_of,
                Arc::clone(&clock),
                events,
                Arc::clone(&mailbox.counters),
                taps,
            ),
            sampler,
            turns: Turns::default(),
            handover: None,
            serving: None,
            unreleased: None,
            looks: Looks::default(),
            bells: (config.bells.clone(), 0),
            spin: config.spin.as_nanos() as u64,
            neighbours: Neighbours::default(),
            going_on: Vec::new(),
            injected: 0,
            barriers: VecDeque::new(),
            clock,
            mailbox,
        })
    }

    /// Serves until told to stop, whatever panics.
    pub(crate) fn serve(mut self) -> Remains {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.run())) {
                Ok(()) => break,
                Err(panic) => self.recover(&*panic),
            }
        }
        self.into_remains()
    }

    /// Ends it.
    pub(crate) fn into_remains(self) -> Remains {
        Remains { queues: self.queues.into_all().collect(), world: self.engine.world }
    }

    fn run(&mut self) {
        self.release_after_panic();
        while self.turn().is_continue() {}
    }

    /// One look at everything there is to do; sleeps if there is nothing.
    pub(crate) fn turn(&mut self) -> ControlFlow<()> {
        while let Some(command) = self.mailbox.next_command() {
            self.obey(command)?;
        }
        self.inject();
        let (mut now, found) = self.poll_active();
        if self.handover.is_some() {
            now = self.take_handed(now);
        }
        if !self.engine.scratch.onward.is_empty() {
            self.go_on(now, found);
        }
        self.engine.depart(now);
        if self.handover.is_some() {
            self.settle(now);
        }
        let waits = self.engine.scratch.onward.is_empty() && !self.expects_frames(now);
        if self.queues.is_quiet() && waits && self.sleep(now) {
            return ControlFlow::Continue(());
        }
        let rung = self.bells.0.rung();
        if self.looks.are_due(now, found) || rung != self.bells.1 {
            self.bells.1 = rung;
            self.look(now);
        }
        if !found {
            self.give_way(now);
        }
        ControlFlow::Continue(())
    }

    /// Offers the core to whoever else wants it.
    fn give_way(&mut self, now: Nanos) {
        self.neighbours.offer(now, &*self.clock);
    }

    /// One round for each queue that had traffic lately; also says whether there were any frames. The time is told once for each batch of frames, by the count at which the one before ended.
    fn poll_active(&mut self) -> (Nanos, bool) {
        let mut at = self.clock.cycles();
        let mut now = self.clock.time_of(at);
        let spin = self.neighbours.spin(now, self.spin);
        let (mut place, mut stale, mut found) = (0, false, false);
        while let Some(ix) = self.queues.active(place) {
            if stale {
                now = self.clock.time_of(at);
            }
            if self.is_paused(ix) {
                (place, stale) = (place + 1, false);
                continue;
            }
            let outcome = self.round(ix, (at, now));
            stale = matches!(outcome, Ok((1.., _)));
            at = outcome.as_ref().map_or_else(|_| self.clock.cycles(), |&(_, end)| end);
            match outcome {
                Ok((0, _)) => {
                    place += usize::from(!self.queues.fruitless(place, (now, spin), &self.poller))
                }
                Ok(_) => {
                    found = true;
                    self.queues.fruitful(place, now);
                    place += 1;
                }
                Err(error) => self.park(ix, error),
            }
        }
        (now, found)
    }

    /// Whether its switch's steering is about to change: its frames wait in the source until then.
    fn is_paused(&mut self, ix: QueueIx) -> bool {
        let Some(handover) = &self.handover else { return false };
        self.queues.get_mut(ix).is_some_and(|queue| handover.pauses(queue.switch))
    }

    /// Whether other workers handed frames over lately, or frames wait here for what others do.
    fn expects_frames(&self, now: Nanos) -> bool {
        self.handover
            .as_ref()
            .is_some_and(|handover| handover.is_awake(now, self.neighbours.spin(now, self.spin)))
    }

    /// Sleeps until there is something to do; false if there is already, which others' frames must not wait for.
    fn sleep(&mut self, now: Nanos) -> bool {
        let mut limit = self.queues.forgive(now, &self.poller);
        if let Some(next) = self.engine.scratch.backlog.next() {
            if next <= now {
                return false; // more may leave than fits into one turn
            }
            let until = Duration::from_nanos(next.since(now));
            limit = Some(limit.map_or(until, |limit| limit.min(until)));
        }
        if !self.queues.is_quiet() || !self.mailbox.fall_asleep() {
            return false;
        }
        if self.handover.as_ref().is_some_and(|handover| !handover.has_heard_all()) {
            self.mailbox.waker.awake();
            return false;
        }
        self.mailbox.counters.sleeps.add(1);
        let woken = self.ask_kernel(limit);
        self.looks.slept(woken);
        self.mailbox.waker.awake();
        true
    }

    /// Finds the watched queues that have frames. The kernel is asked of sources that do not show what they have: a frame that comes during a
    /// system call is late.
    fn look(&mut self, now: Nanos) {
        let from = self.clock.now();
        self.queues.forgive(now, &self.poller);
        let asks_kernel = self.queues.look(from);
        let to = if asks_kernel { self.ask_kernel(Some(Duration::ZERO)) } else { self.clock.now() };
        self.looks.looked(from, to);
    }

    /// Waits for `limit` at most until the kernel knows of something; returns the time then.
    fn ask_kernel(&mut self, limit: Option<Duration>) -> Nanos {
        let ready = self.poller.wait(limit);
        let now = self.clock.now();
        for ready in ready {
            match ready {
                Ready::Queue(ix) => self.queues.woken(ix, now),
                Ready::Mailbox => self.mailbox.waker.heard(),
            }
        }
        now
    }

    fn obey(&mut self, command: Command) -> ControlFlow<()> {
        // A control thread that no longer waits for the answer drops it; what it holds is dropped here then.
        let (reply, answer) = match command {
            Command::AddSwitch { ix, shared, reply } => {
                self.engine.world.add_switch(ix, shared);
                (reply, Reply::Done)
            }
            Command::RemoveSwitch { ix, reply } => {
                let switch = self.engine.world.remove_switch(ix);
                (reply, switch.map_or(Reply::Done, |switch| Reply::Switch(Box::new(switch))))
            }
            Command::Attach { ix, port, rx, reply } => (reply, self.attach(ix, *port, rx)),
            Command::Detach { ix, reply } => (reply, Reply::Port(Box::new(self.detach(ix)))),
            Command::SetQueues { ix, shaper, reply } => {
                (reply, Reply::Shaper(self.engine.set_shaper(ix, shaper)))
            }
            Command::Steer { ix, part, steered, reply } => {
                self.handover = part.or(self.handover.take());
                if let Some(handover) = &mut self.handover {
                    handover.add(ix, steered);
                }
                (reply, Reply::Done)
            }
            Command::Reclassify { ix, classifier, reply } => {
                self.change_steering(ix, Some(classifier), reply);
                return ControlFlow::Continue(());
            }
            Command::Unsteer { ix, reply } => {
                self.change_steering(ix, None, reply);
                return ControlFlow::Continue(());
            }
            Command::Disconnect { reply } => (reply, Reply::Handover(self.handover.take())),
            Command::Tap { tap, reply } => {
                self.engine.taps.add(*tap);
                (reply, Reply::Done)
            }
            Command::Untap { id, reply } => {
                (reply, Reply::Tap(self.engine.taps.remove(id).map(Box::new)))
            }
            Command::Time { timer, reply } => {
                self.engine.taps.add_timer(*timer);
                (reply, Reply::Done)
            }
            Command::Untime { id, reply } => {
                (reply, Reply::Timer(self.engine.taps.remove_timer(id).map(Box::new)))
            }
            Command::Barrier { reply } => {
                let ahead = self.mailbox.packet_outs() as u64;
                self.barriers.push_back((self.injected + ahead, reply));
                return ControlFlow::Continue(());
            }
            Command::Stop => return ControlFlow::Break(()),
        };
        let _ = reply.send(answer);
        ControlFlow::Continue(())
    }

    fn attach(&mut self, ix: PortIx, port: LocalPort, rx: Vec<Box<dyn RxQueue>>) -> Reply {
        let (place, shared) = ((ix, port.switch), Arc::clone(&port.shared));
        let ports = self.engine.world.add_port(ix, port);
        self.engine
            .scratch
            .pending
            .reserve(crate::collect::copies_allowed(ports), self.engine.world.ports());
        let mut rx = rx.into_iter();
        while let Some(queue) = rx.next() {
            let now = self.clock.now();
            if let Err((error, queue)) = self.queues.add(queue, place, &shared, now, &self.poller) {
                let mut removed = self.detach(ix);
                removed.rx.push(queue);
                removed.rx.extend(rx);
                return Reply::Failed(error, Box::new(removed));
            }
        }
        Reply::Done
    }

    fn detach(&mut self, ix: PortIx) -> Removed {
        self.engine.scratch.backlog.forget(ix);
        Removed {
            rx: self.queues.remove(ix, &self.poller),
            port: self.engine.world.remove_port(ix),
        }
    }

    /// Takes a queue out of service and says so.
    fn park(&mut self, ix: QueueIx, error: io::Error) {
        self.queues.park(ix, &self.poller);
        if let Some(at) = self.queues.at(ix) {
            self.engine.events.notice(Event::PortFault { at, worker: self.engine.number, error });
        }
    }

    /// Does some of the packet-outs that wait, and answers barriers that have none before them.
    fn inject(&mut self) {
        self.inject_some();
        while self.barriers.front().is_some_and(|&(upto, _)| upto <= self.injected) {
            // A control thread that no longer waits for the answer drops it.
            let answered = self.barriers.pop_front();
            answered.into_iter().for_each(|(_, reply)| drop(reply.send(Reply::Done)));
        }
    }

    fn inject_some(&mut self) {
        if self.mailbox.packet_outs() == 0 {
            return;
        }
        let begin = self.clock.now();
        for _ in 0..PACKET_OUTS_PER_TURN {
            let Some(injected) = self.mailbox.next_packet_out() else { return };
            self.injected += 1;
            let switch = self.engine.world.switch(injected.ix);
            // The place may have gone to another switch since.
            if switch.is_some_and(|switch| switch.shared.id == injected.switch) {
                self.packet_out(&injected);
            }
            if self.clock.now().since(begin) >= PACKET_OUTS_NS {
                return;
            }
        }
    }

    /// Puts everything in order after a panic; runs no one else's code.
    fn recover(&mut self, panic: &(dyn Any + Send)) {
        self.mailbox.counters.restarts.add(1);
        self.mailbox.waker.awake();
        self.left_out.forget();
        let touch = self.engine.recover();
        self.engine.taps.decided(None, Nanos::default());
        self.recover_handed();
        self.going_on.clear();
        let served = self.serving.take();
        self.count_lost(served);
        self.batch.clear();
        self.unreleased = served;
        let at = match touch {
            Touch::Rx(ix) | Touch::Pipeline(ix) => self.strike_queue(ix),
            Touch::Tx(ix) => self.strike_port(ix),
            Touch::Handed | Touch::PacketOut | Touch::Nothing => None,
        };
        let message = message_of(panic);
        self.engine.events.notice(Event::WorkerDied { worker: self.engine.number, at, message });
    }

    /// The round's frames are lost, as far as they had not left.
    fn count_lost(&mut self, served: Option<QueueIx>) {
        let lost = self.batch.frames().len() as u64 + std::mem::take(&mut self.engine.in_hand);
        if let Some(queue) = served.and_then(|ix| self.queues.get_mut(ix)) {
            let drops = self.left_out.at(queue.shared.at);
            drops.lose(DropReason::WorkerFault, Lost::Elsewhere(lost));
            queue.shared.counters[self.engine.number].rx_drops.take(drops);
        }
    }

    /// A queue whose frames make the worker panic again and again goes out of service.
    fn strike_queue(&mut self, ix: QueueIx) -> Option<PortAt> {
        let at = self.queues.at(ix);
        if self.queues.is_parked(ix) {
            // It panicked even while it gave its buffers back.
            self.unreleased = None;
        } else if self.queues.strike(ix, self.clock.now()) {
            self.park(ix, io::Error::other("it made the worker panic repeatedly"));
        }
        at
    }

    /// So does a destination.
    fn strike_port(&mut self, ix: PortIx) -> Option<PortAt> {
        let port = self.engine.world.port_mut(ix)?;
        let at = port.shared.at;
        if port.strike() {
            let error = io::Error::other("sending made the worker panic repeatedly");
            self.engine.events.notice(Event::PortFault { at, worker: self.engine.number, error });
        }
        Some(at)
    }
}

/// The text of a panic.
fn message_of(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "no message".to_owned(),
    }
}
