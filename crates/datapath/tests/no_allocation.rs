//! A worker in its steady state allocates nothing.

#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(unsafe_code, reason = "a global allocator that counts")]

use datapath::{Config, Datapath, PortAt, Queues, SwitchId};
use flow::{Action, FlowMod, Instructions, Limits, Nanos, Output, Pipeline, PortState};
use place::steering::{Options, Urgency};
use place::{CoreId, Reason, UnitId};
use port::{BodyAt, Drops, RxBatch, RxQueue, Sent, TxFrame, TxQueue};
use rustix::event::{EventfdFlags, eventfd};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use wire::Field;
use wire::build::{Frame, Ipv4};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is handed to the system allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` came from `System.alloc` above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// An endless source of frames.
struct Source {
    ready: OwnedFd,
    frames: Vec<Vec<u8>>,
    next: usize,
}

impl RxQueue for Source {
    fn rx(&mut self, batch: &mut RxBatch, _drops: &mut Drops) -> io::Result<usize> {
        let mut count = 0;
        for slot in batch.free() {
            let frame = &self.frames[self.next % self.frames.len()];
            self.next += 1;
            slot.head.area()[..frame.len()].copy_from_slice(frame);
            slot.head.set_len(frame.len());
            slot.body = BodyAt::Nowhere;
            slot.offload = wire::Offload::default();
            count += 1;
        }
        batch.advance(count);
        Ok(count)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

struct Sink(Arc<AtomicU64>);

impl TxQueue for Sink {
    fn tx(&mut self, frames: &[TxFrame<'_>], _drops: &mut Drops) -> Sent {
        self.0.fetch_add(frames.len() as u64, Relaxed);
        Sent {
            frames: frames.len() as u64,
            bytes: frames.iter().map(|frame| frame.len() as u64).sum(),
        }
    }
}

fn frame(flow: u16) -> Vec<u8> {
    Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).udp(flow, 2).payload(&[0; 20]).finish()
}

fn tables(switch: u32, ports: &[u32], actions: Vec<Action>) -> Arc<flow::Snapshot> {
    let mut pipeline =
        Pipeline::new(Limits { switch, ..Limits::default() }, &flow::Serials::default());
    pipeline.set_ports(ports.iter().map(|&port| PortState::up(port)).collect());
    let instructions = Instructions { apply: actions, ..Instructions::default() };
    pipeline.flow_mod(&FlowMod { instructions, ..FlowMod::default() }, Nanos(1)).unwrap();
    pipeline.snapshot()
}

fn wait_for(counter: &AtomicU64, more: u64) {
    let until = counter.load(Relaxed) + more;
    while counter.load(Relaxed) < until {
        std::hint::spin_loop();
    }
}

/// One test at a time: all allocations of the process are counted.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn frames_handed_over_and_units_that_move_allocate_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let config = Config { cores: vec![0, 1], cache_entries: 4096, ..Config::default() };
    let (datapath, _events) = Datapath::start(config).unwrap();
    let at = |port| PortAt { switch: SwitchId(1), port };
    let _one =
        datapath.add_switch(SwitchId(1), tables(1, &[1, 2], vec![Action::Output(Output::Port(2))]));
    let sent = Arc::new(AtomicU64::new(0));
    let sink = || Box::new(Sink(Arc::clone(&sent))) as Box<dyn TxQueue>;
    let queues = |rx: Vec<Box<dyn RxQueue>>| Queues { rx, tx: vec![sink(), sink()], mtu: 1500 };
    datapath.attach(at(2), queues(vec![])).unwrap();
    let ready = eventfd(1, EventfdFlags::NONBLOCK).unwrap();
    let frames = (0..1000).map(frame).collect();
    datapath.attach(at(1), queues(vec![Box::new(Source { ready, frames, next: 0 })])).unwrap();
    let steering = datapath.steer(SwitchId(1), Options::default()).unwrap();
    let move_all = |turn: u16| {
        let haste = if turn % 4 < 2 { Urgency::DropToDrain } else { Urgency::WhenDrained };
        for unit in 0..256 {
            steering.want(UnitId(unit), CoreId(turn % 2), Reason::Balance, haste);
        }
        wait_for(&sent, 20_000);
    };
    (0..10).for_each(move_all);
    let before = ALLOCATIONS.load(Relaxed);
    (0..40).for_each(move_all);
    assert_eq!(ALLOCATIONS.load(Relaxed) - before, 0);
    let over = steering.handovers().into_iter().filter(|pair| pair.from != pair.to);
    assert!(over.map(|pair| pair.taken).sum::<u64>() > 100_000, "{:?}", steering.handovers());
}

#[test]
fn floods_edits_and_vlinks_allocate_nothing() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let config = Config { cores: vec![1], cache_entries: 4096, ..Config::default() };
    let (datapath, _events) = Datapath::start(config).unwrap();
    let at = |switch, port| PortAt { switch: SwitchId(switch), port };
    let edit = |value| Action::SetField {
        field: Field::EthSrc,
        of: None,
        value,
        mask: Field::EthSrc.full(),
    };
    let flood = Action::Output(Output::Flood);
    let _one =
        datapath.add_switch(SwitchId(1), tables(1, &[1, 2, 3, 9], vec![flood, edit(7), flood]));
    let _two = datapath.add_switch(
        SwitchId(2),
        tables(2, &[1, 2, 9], vec![edit(8), Action::PushVlan(0x8100), flood]),
    );
    let sent = Arc::new(AtomicU64::new(0));
    let queues = |rx: Vec<Box<dyn RxQueue>>| Queues {
        rx,
        tx: vec![Box::new(Sink(Arc::clone(&sent)))],
        mtu: 1500,
    };
    datapath.attach_vlink(at(1, 9), at(2, 9)).unwrap();
    for (switch, port) in [(1, 2), (1, 3), (2, 1), (2, 2)] {
        datapath.attach(at(switch, port), queues(vec![])).unwrap();
    }
    let ready = eventfd(1, EventfdFlags::NONBLOCK).unwrap();
    let frames = (0..1000).map(frame).collect();
    datapath.attach(at(1, 1), queues(vec![Box::new(Source { ready, frames, next: 0 })])).unwrap();
    wait_for(&sent, 200_000); // every flow seen, every list grown
    let before = ALLOCATIONS.load(Relaxed);
    wait_for(&sent, 1_000_000);
    assert_eq!(ALLOCATIONS.load(Relaxed) - before, 0);
}
