//! Driver and device on two threads, who sleep whenever they can: nobody may sleep for ever.

use crate::driver::Driver;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vhost::{Chains, Fault, Features, Slot, SlotState};

const FRAMES: usize = 20_000;

/// Waits until it is readable. Ten seconds are for ever: both ends are busy or asleep, and a wake-up takes microseconds.
fn wait(file: impl AsFd) {
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ready, 1, "a wake-up was lost");
}

fn slot() -> Arc<Slot> {
    Slot::new(Arc::new(eventfd(0, EventfdFlags::NONBLOCK).unwrap())).unwrap()
}

/// Takes all frames, asleep between them.
fn serve(slot: &Arc<Slot>) {
    let (mut seen, mut chains) = (0_usize, Chains::default());
    while seen < FRAMES {
        let mut guard = slot.lock();
        let ring = guard.ring().unwrap();
        let count = ring.take(8, &mut chains).unwrap();
        for index in 0..count {
            let mut bytes = [0; 8];
            chains.read(index, &mut bytes);
            assert_eq!(usize::from_le_bytes(bytes), seen, "in order, none lost");
            seen += 1;
        }
        ring.give_back();
        drop(guard);
        if count == 0 && slot.arm() {
            wait(slot.readiness());
        }
    }
}

fn run(features: Features) {
    let mut driver = Driver::new(16, Features::VERSION_1 | features);
    let slot = slot();
    slot.start(driver.device()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| serve(&slot));
        let (mut sent, mut back) = (0_usize, 0);
        while back < FRAMES {
            while sent < FRAMES && driver.send(&sent.to_le_bytes(), &[5, 3], false) {
                sent += 1;
            }
            driver.kick_if_wanted();
            while driver.reap().is_some() {
                back += 1;
            }
            if back < FRAMES && (sent == FRAMES || !driver.has_room(2)) && driver.sleep() {
                wait(&driver.call);
            }
            driver.wake();
        }
    });
}

#[test]
fn no_wake_up_is_lost_with_flags() {
    run(Features::empty());
}

#[test]
fn no_wake_up_is_lost_with_event_indices() {
    run(Features::EVENT_IDX | Features::IN_ORDER);
}

#[test]
fn no_wake_up_is_lost_in_a_packed_ring() {
    run(Features::RING_PACKED);
    run(Features::RING_PACKED | Features::EVENT_IDX | Features::IN_ORDER);
}

#[test]
fn a_kick_wakes_once_and_a_change_of_the_slot_wakes_too() {
    let ready = |slot: &Slot| {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&slot.readiness(), PollFlags::IN)], Some(&now)).unwrap() == 1
    };
    let (mut driver, slot) = (Driver::new(16, Features::VERSION_1), slot());
    slot.start(driver.device()).unwrap();
    assert!(ready(&slot), "a ring has come");
    assert!(slot.arm() && !ready(&slot));
    assert!(driver.send(&[0; 60], &[60], false) && driver.kick_if_wanted());
    assert!(ready(&slot));
    assert!(!slot.arm(), "a frame waits");
    assert!(!ready(&slot), "the kick is forgotten, the frame is known");
    slot.stop();
    assert!(ready(&slot), "the ring has gone");
    assert!(slot.arm() && !ready(&slot));
}

#[test]
fn a_ring_without_a_kick_is_polled() {
    let (driver, slot) = (Driver::new(16, Features::VERSION_1), slot());
    let config = vhost::VringConfig { kick: None, ..driver.config() };
    slot.start(vhost::Vring::new(config).unwrap()).unwrap();
    assert!(!slot.arm());
}

#[test]
fn a_faulted_slot_keeps_its_reason_and_can_be_started_again() {
    let (driver, slot) = (Driver::new(16, Features::VERSION_1), slot());
    slot.start(driver.device()).unwrap();
    let mut guard = slot.lock();
    guard.fail(Fault::Withdrawn);
    assert!(guard.ring().is_none());
    drop(guard);
    assert_eq!(slot.state(), SlotState::Faulted(Fault::Withdrawn));
    assert!(!slot.is_running() && slot.arm());
    assert_eq!(slot.stop(), Some(driver.config().base));
    assert_eq!(slot.state(), SlotState::Idle);
    slot.start(driver.device()).unwrap();
    assert_eq!(slot.state(), SlotState::Running { size: 16, waiting: 0, reach: None });
}

#[test]
fn a_running_ring_goes_over_to_another_memory_table() {
    let mut driver = Driver::new(16, Features::VERSION_1 | Features::MRG_RXBUF);
    let slot = slot();
    slot.start(driver.device()).unwrap();
    assert!(driver.post(&[100], false) && driver.post(&[100], false));
    slot.lock().ring().unwrap().reserve(2).unwrap();
    slot.replace_memory(&driver.guest.memory());
    let mut guard = slot.lock();
    let ring = guard.ring().unwrap();
    ring.put(vhost::Frame { head: &[5; 60], ..vhost::Frame::default() }).unwrap();
    ring.publish();
    drop(guard);
    assert_eq!(driver.reap().unwrap()[12..], [5; 60]);
    slot.replace_memory(&vhost::GuestMemory::map(&[]).unwrap());
    assert!(matches!(slot.state(), SlotState::Faulted(Fault::Unplaced { .. })));
}

/// Makes writing to an eventfd wait, again and again, for as long as `lasts`: its flag is off and its counter full, whoever reads it meanwhile.
fn keep_full(call: &OwnedFd, lasts: &AtomicBool) {
    while lasts.load(Ordering::Relaxed) {
        // What is missing is not known: from large pieces to small ones it fits in somewhere. Only this writer must not wait.
        fcntl_setfl(call, OFlags::NONBLOCK).unwrap();
        for bit in (0..64).rev() {
            let _ = rustix::io::write(call, &(1_u64 << bit).to_ne_bytes());
        }
        fcntl_setfl(call, OFlags::empty()).unwrap();
        std::thread::yield_now();
    }
    // A worker that did wait shall be seen in the test's result, not in a test that never ends.
    let _ = rustix::io::read(call, &mut [0; 8]);
}

#[test]
fn a_call_that_its_front_end_makes_wait_holds_up_no_worker() {
    for features in [Features::empty(), Features::RING_PACKED] {
        let [mut hostile, mut other] =
            [0, 1].map(|_| Driver::new(16, Features::VERSION_1 | features));
        let call = Arc::clone(&hostile.call);
        let mut devices = [hostile.device(), other.device()];
        let lasts = AtomicBool::new(true);
        let (served, news) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| keep_full(&call, &lasts));
            scope.spawn(move || {
                let mut chains = Chains::default();
                for _ in 0..FRAMES {
                    for (driver, device) in [&mut hostile, &mut other].into_iter().zip(&mut devices)
                    {
                        assert!(driver.send(&[7; 60], &[60], false));
                        assert_eq!(device.take(8, &mut chains).unwrap(), 1);
                        device.give_back();
                        assert!(driver.reap().is_some());
                    }
                }
                assert!(other.drain_calls(), "the other driver was told");
                let _ = served.send(());
            });
            let in_time = news.recv_timeout(Duration::from_secs(20)).is_ok();
            lasts.store(false, Ordering::Relaxed);
            assert!(in_time, "the worker waits for a front-end");
        });
    }
}
