//! Moves under traffic: no datagram overtakes another of its flow.

use crate::lab::{HERE, Lab, enter, inside, options, pin, two_cores};
use place::steering::{PolicyKind, Unmatched, Urgency};
use place::{CoreId, Reason};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use xdp::steer::{Attached, EventKind, Options};

const FLOWS: usize = 16;
/// Datagrams between two looks at the clock.
const BURST: u64 = 32;

/// What the receiver saw.
#[derive(Default, Debug)]
struct Seen {
    frames: u64,
    reordered: u64,
    highest: [u64; FLOWS],
}

impl Seen {
    fn take(&mut self, datagram: &[u8]) {
        let word = |at: usize| {
            u64::from_le_bytes(datagram[at..at + 8].try_into().expect("the kernel obliges"))
        };
        let (flow, sequence) = (word(0) as usize, word(8));
        self.frames += 1;
        if sequence < self.highest[flow] {
            self.reordered += 1;
        }
        self.highest[flow] = self.highest[flow].max(sequence);
    }
}

/// Reads until the sender is done and nothing has come for a while.
fn receive(socket: &UdpSocket, is_done: &AtomicBool) -> Seen {
    socket.set_read_timeout(Some(Duration::from_millis(200))).expect("the kernel obliges");
    set_socket_recv_buffer_size_force(socket, 64 << 20).expect("the kernel obliges");
    let (mut seen, mut buffer) = (Seen::default(), [0; 64]);
    loop {
        match socket.recv(&mut buffer) {
            Ok(len) => seen.take(&buffer[..len]),
            Err(_) if is_done.load(Ordering::Relaxed) => return seen,
            Err(_) => {}
        }
    }
}

/// Sends `frames` datagrams of many flows from core 0, and asks every millisecond for a move of one unit to the other core.
fn send_and_move(attached: &Attached, port: u16, frames: u64, urgency: Urgency) -> (u64, Duration) {
    let sockets: Vec<_> =
        (0..FLOWS).map(|_| UdpSocket::bind("10.9.0.2:0").expect("the kernel obliges")).collect();
    sockets.iter().for_each(|socket| socket.connect((HERE, port)).expect("the kernel obliges"));
    let begun = Instant::now();
    let (mut wishes, mut last) = (0, begun);
    let mut units = Vec::new();
    for sequence in 0..frames / FLOWS as u64 {
        for (flow, socket) in sockets.iter().enumerate() {
            let mut datagram = [0; 18];
            datagram[..8].copy_from_slice(&(flow as u64).to_le_bytes());
            datagram[8..16].copy_from_slice(&sequence.to_le_bytes());
            socket.send(&datagram).expect("the kernel obliges");
        }
        if sequence % (BURST / FLOWS as u64) != 0 || last.elapsed() < Duration::from_millis(1) {
            continue;
        }
        last = Instant::now();
        if units.is_empty() {
            units = attached.units().into_iter().map(|unit| unit.id).collect();
        }
        let unit = attached.unit(units[wishes as usize % units.len()]).expect("the kernel obliges");
        let other = CoreId(1 - unit.wanted.unwrap_or(CoreId(0)).0);
        attached.want(unit.id, other, Reason::Balance, urgency);
        wishes += 1;
    }
    (wishes, begun.elapsed())
}

/// Keeps a core busy.
fn hog(core: usize, is_done: &AtomicBool) {
    pin(core);
    while !is_done.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Sends, moves, receives, and prints what came of it. With `hogs`, so many other threads want the second core.
fn play(test: &str, frames: u64, urgency: Urgency, hogs: usize) {
    let Some(mut lab) = Lab::new(test) else { return };
    let (unmatched, policy) = (Unmatched::Groups(1024), PolicyKind::Hash);
    let drain = Duration::from_micros(200);
    let mut attached = lab.attach(&Options { unmatched, policy, drain, ..options() });
    attached.set_cores(lab.host(), &two_cores()).expect("the kernel obliges");
    let (near, far) = (lab.netns("near"), lab.netns("far"));
    let is_done = AtomicBool::new(false);
    let (seen, (wishes, time)) = inside(&near, || {
        let receiver = UdpSocket::bind((HERE, 0)).expect("the kernel obliges");
        let port = receiver.local_addr().expect("the kernel obliges").port();
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                enter(&far);
                pin(0);
                let wishes = send_and_move(&attached, port, frames, urgency);
                is_done.store(true, Ordering::Relaxed);
                wishes
            });
            (0..hogs).for_each(|_| drop(scope.spawn(|| hog(1, &is_done))));
            let seen = receive(&receiver, &is_done);
            (seen, sender.join().expect("the kernel obliges"))
        })
    });
    let moves: u32 = attached.units().iter().map(|unit| unit.moves).sum();
    let dropped: u64 = attached.units().iter().map(|unit| unit.dropped).sum();
    let mut waits: Vec<_> = attached
        .events()
        .expect("the kernel obliges")
        .filter(|event| event.kind == EventKind::Moved)
        .map(|event| event.waited)
        .collect();
    waits.sort();
    println!(
        "{frames} frames of {FLOWS} flows in {:.1} s; {wishes} wishes, {moves} moves ({:.0} a second), waited p50 {:?}, p99 {:?}; \
         {} received, {dropped} dropped, {} reordered",
        time.as_secs_f64(),
        f64::from(moves) / time.as_secs_f64(),
        waits.get(waits.len() / 2),
        waits.get(waits.len() * 99 / 100),
        seen.frames,
        seen.reordered,
    );
    assert_eq!(seen.reordered, 0, "{seen:?}");
    // How many come through a core that others want too, the machine decides.
    assert!(moves > 0 && seen.frames > 0);
    attached.detach(lab.host()).expect("the kernel obliges");
}

/// `SUIRO_ORDER_FRAMES` makes it longer.
fn frames(least: u64) -> u64 {
    std::env::var("SUIRO_ORDER_FRAMES").ok().and_then(|text| text.parse().ok()).unwrap_or(least)
}

#[test]
fn a_million_frames_keep_their_order_through_a_thousand_moves_a_second() {
    play("order", frames(1_000_000), Urgency::WhenDrained, 0);
}

#[test]
fn moves_away_from_a_core_that_is_always_behind_keep_the_order_too() {
    play("behind", frames(300_000), Urgency::DropToDrain, 2);
}
