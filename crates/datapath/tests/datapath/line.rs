//! A port in memory: what a test puts on the line enters the switch, what the switch sends out of the port is kept.

use datapath::Queues;
use port::{Body, BodyAt, Drops, Lost, RxBatch, RxQueue, Sent, TxFrame, TxQueue};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;
use wire::{DropReason, HEAD_MAX, Offload};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A frame and its state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wired {
    pub bytes: Vec<u8>,
    pub offload: Offload,
}

impl From<Vec<u8>> for Wired {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, offload: Offload::default() }
    }
}

/// What the port does instead of its duty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The interface is gone.
    Gone,
    /// Receiving panics.
    RxPanics,
    /// … once.
    RxPanicsOnce,
    /// … with frames in hand.
    RxPanicsHolding,
    /// Giving buffers back panics.
    ReleasePanics,
    /// Sending panics.
    TxPanics,
    /// Sending finds no room.
    TxFull,
    /// Sending loses each frame for this reason.
    Loses(DropReason),
    /// The next batch comes with so many that were lost elsewhere.
    LostElsewhere(DropReason, u64),
}

/// What a tunnel is told of a frame: its tunnel id, and the number of the end that it goes to.
pub type Tunnelled = (u32, u16);

#[derive(Default)]
struct State {
    waiting: VecDeque<Wired>,
    in_round: usize,
    sent: Vec<Wired>,
    /// Of a tunnel: those of the frames that wait, and of those sent.
    tunnel_ids: Option<(VecDeque<u32>, Vec<Tunnelled>)>,
    fault: Option<Fault>,
    rounds: u64,
    keep_ready: bool,
    received_by: Vec<ThreadId>,
    dropped_by: Vec<ThreadId>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    ready: OwnedFd,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_timeout_while(self.state(), PATIENCE, |state| !done(state));
        let (state, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(
            !outcome.timed_out(),
            "waited in vain: {} frames wait, {} in hand",
            state.waiting.len(),
            state.in_round
        );
        state
    }

    fn drop_half(&self) {
        self.state().dropped_by.push(std::thread::current().id());
        self.changed.notify_all();
    }
}

/// The test's end of the port.
#[derive(Clone)]
pub struct Line(Arc<Shared>);

impl Line {
    pub fn new() -> Self {
        let ready = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap();
        Self(Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), ready }))
    }

    /// A port whose frames have tunnel ids.
    pub fn tunnel() -> Self {
        let line = Self::new();
        line.0.state().tunnel_ids = Some(Default::default());
        line
    }

    /// Puts a frame on a tunnel's line, with its tunnel id; who sent it is [`sender`].
    pub fn put_by(&self, tunnel_id: u32, frame: Vec<u8>) {
        self.put_all_by([(tunnel_id, frame.into())]);
    }

    /// … several at once.
    pub fn put_all_by(&self, frames: impl IntoIterator<Item = (u32, Wired)>) {
        let mut state = self.0.state();
        for (tunnel_id, frame) in frames {
            state.tunnel_ids.as_mut().expect("a tunnel").0.push_back(tunnel_id);
            state.waiting.push_back(frame);
        }
        drop(state);
        self.wake();
    }

    /// The tunnel ids of what the switch sent since the last call.
    pub fn take_tunnel_ids(&self) -> Vec<u32> {
        self.take_tunnels().into_iter().map(|(id, _)| id).collect()
    }

    /// The same with the ends that it was to go to.
    pub fn take_tunnels(&self) -> Vec<Tunnelled> {
        std::mem::take(&mut self.0.state().tunnel_ids.as_mut().expect("a tunnel").1)
    }

    /// One receive queue, and a sending half for each worker.
    pub fn queues(&self, workers: usize) -> Queues {
        let tx = |_| Box::new(Tx(Arc::clone(&self.0))) as Box<dyn TxQueue>;
        Queues {
            rx: vec![Box::new(Rx { shared: Arc::clone(&self.0), bodies: Vec::new() })],
            tx: (0..workers).map(tx).collect(),
            mtu: 1500,
        }
    }

    /// Puts frames on the line.
    pub fn put(&self, frames: impl IntoIterator<Item = impl Into<Wired>>) {
        self.0.state().waiting.extend(frames.into_iter().map(Into::into));
        self.wake();
    }

    /// … and waits until the switch is done with them.
    pub fn pass(&self, frames: impl IntoIterator<Item = impl Into<Wired>>) {
        self.put(frames);
        self.settle();
    }

    /// Waits until the switch is done with all frames.
    pub fn settle(&self) {
        drop(self.0.wait(|state| state.waiting.is_empty() && state.in_round == 0));
    }

    /// Waits until the switch has given back all that it took, whether or not frames wait.
    pub fn let_go(&self) {
        drop(self.0.wait(|state| state.in_round == 0));
    }

    /// What the switch sent since the last call.
    pub fn take(&self) -> Vec<Wired> {
        std::mem::take(&mut self.0.state().sent)
    }

    /// The same, bytes only.
    pub fn take_bytes(&self) -> Vec<Vec<u8>> {
        self.take().into_iter().map(|frame| frame.bytes).collect()
    }

    pub fn set_fault(&self, fault: Option<Fault>) {
        self.0.state().fault = fault;
        self.wake();
    }

    /// Readable for ever, with or without frames: a source that cries wolf.
    pub fn keep_ready(&self) {
        self.0.state().keep_ready = true;
        self.wake();
    }

    /// Readable once.
    pub fn wake(&self) {
        rustix::io::write(&self.0.ready, &1u64.to_ne_bytes()).unwrap();
    }

    /// Calls of rx.
    pub fn rounds(&self) -> u64 {
        self.0.state().rounds
    }

    /// Threads that received from it.
    pub fn received_by(&self) -> Vec<ThreadId> {
        self.0.state().received_by.clone()
    }

    /// Threads that dropped its halves.
    pub fn dropped_by(&self) -> Vec<ThreadId> {
        self.0.state().dropped_by.clone()
    }
}

struct Rx {
    shared: Arc<Shared>,
    /// The rest of long frames: the port's own memory.
    bodies: Vec<Vec<u8>>,
}

impl Rx {
    fn take(&mut self, batch: &mut RxBatch) -> usize {
        let mut state = self.shared.state();
        state.rounds += 1;
        let thread = std::thread::current().id();
        if !state.received_by.contains(&thread) {
            state.received_by.push(thread);
        }
        let mut count = 0;
        for slot in batch.free() {
            let Some(frame) = state.waiting.pop_front() else { break };
            let (head, rest) = frame.bytes.split_at(frame.bytes.len().min(HEAD_MAX));
            slot.head.area()[..head.len()].copy_from_slice(head);
            slot.head.set_len(head.len());
            if let Some((waiting, _)) = &mut state.tunnel_ids {
                slot.tunnel_id = waiting.pop_front().expect("each frame has one");
                slot.tun_src = sender(slot.tunnel_id);
            }
            slot.offload = frame.offload;
            slot.body = BodyAt::Nowhere;
            if !rest.is_empty() {
                slot.body = BodyAt::Port { at: self.bodies.len() as u64, len: rest.len() as u32 };
                self.bodies.push(rest.to_vec());
            }
            count += 1;
        }
        state.in_round = count;
        if state.waiting.is_empty() && !state.keep_ready {
            let _ = rustix::io::read(&self.shared.ready, &mut [0u8; 8]);
        }
        count
    }
}

/// The number of the end that sends the frames of a tunnel id here.
pub fn sender(tunnel_id: u32) -> u16 {
    !tunnel_id as u16
}

impl RxQueue for Rx {
    fn rx(&mut self, batch: &mut RxBatch, drops: &mut Drops) -> io::Result<usize> {
        let fault = self.shared.state().fault;
        match fault {
            Some(Fault::Gone) => return Err(io::Error::other("no such device")),
            Some(Fault::RxPanics) => panic!("rx of the double"),
            Some(Fault::RxPanicsOnce) => {
                self.shared.state().fault = None;
                panic!("rx of the double");
            }
            Some(Fault::LostElsewhere(reason, count)) => {
                let mut state = self.shared.state();
                state.fault = None;
                drops.lose(reason, Lost::Elsewhere(count));
            }
            _ => {}
        }
        let count = self.take(batch);
        if self.shared.state().tunnel_ids.is_some() {
            batch.set_tunnel_ids();
        }
        assert!(fault != Some(Fault::RxPanicsHolding) || count == 0, "rx of the double");
        batch.advance(count);
        Ok(count)
    }

    fn body(&self, at: u64, len: u32) -> Body<'_> {
        Body::private(&self.bodies[at as usize][..len as usize])
    }

    fn release(&mut self) {
        assert!(self.shared.state().fault != Some(Fault::ReleasePanics), "release of the double");
        self.bodies.clear();
        self.shared.state().in_round = 0;
        self.shared.changed.notify_all();
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.shared.ready.as_fd()
    }
}

impl Drop for Rx {
    fn drop(&mut self) {
        self.shared.drop_half();
    }
}

struct Tx(Arc<Shared>);

impl TxQueue for Tx {
    fn wants_tunnel_ids(&self) -> bool {
        self.0.state().tunnel_ids.is_some()
    }

    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent {
        let fault = self.0.state().fault;
        match fault {
            Some(Fault::TxPanics) => panic!("tx of the double"),
            Some(Fault::TxFull) => {
                frames.iter().for_each(|frame| drops.lose(DropReason::TxFull, frame));
                return Sent::default();
            }
            Some(Fault::Loses(reason)) => {
                frames.iter().for_each(|frame| drops.lose(reason, frame));
                return Sent::default();
            }
            _ => {}
        }
        let mut sent = Sent::default();
        for frame in frames {
            let mut bytes = frame.head.to_vec();
            frame.body.append_to(&mut bytes);
            sent.frames += 1;
            sent.bytes += bytes.len() as u64;
            let mut state = self.0.state();
            state.sent.push(Wired { bytes, offload: frame.offload });
            match &mut state.tunnel_ids {
                Some((_, sent)) => sent.push((frame.tunnel_id, frame.tun_dst)),
                None => assert_eq!((frame.tunnel_id, frame.tun_dst), (0, 0), "nobody asked"),
            }
        }
        sent
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        self.0.drop_half();
    }
}
