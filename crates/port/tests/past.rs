//! Flows past the worker, at the kernel's hooks: none lost, none doubled, none passes another, and they outlive whoever moved them.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod lab;
#[path = "past/metered.rs"]
mod metered;
#[path = "past/world.rs"]
mod world;

use lab::Lab;
use offload::{Provider, Side};
use port::{Keep, OpenPort};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use world::{Seen, Under, World, played};
use xdp::offload::{TcPort, XdpPort};

/// Bursts of one run; `SUIRO_ORDER_FRAMES` asks for more.
fn bursts() -> u64 {
    let frames = std::env::var("SUIRO_ORDER_FRAMES").ok().and_then(|text| text.parse().ok());
    frames.unwrap_or(40_000_u64) / world::BURST
}

/// Ends the worker when it is dropped, also by a panic.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does `work` while a worker forwards between the ports.
fn forwarding<R>(ports: &mut [OpenPort; 2], work: impl FnOnce() -> R) -> R {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let ([left, right], stop) = (ports, Stop(&stop));
        let flag = stop.0;
        scope.spawn(move || lab::forward(left, right, flag));
        work()
    })
}

/// Frames in both directions while both flows go up and down by turns.
fn moved<P: Under>(world: &mut World<P>, turn: impl Fn(&mut World<P>) + Send) -> Seen {
    let mut ports = world.open();
    forwarding(&mut ports, || played(world, bursts(), turn))
}

fn in_order<P: Under>(name: &str, steered: bool) {
    let Some(mut world) = World::<P>::new(name) else { return };
    if steered {
        world.steer_receive();
    }
    let seen = moved(&mut world, World::turn);
    assert_eq!((seen.lost, seen.disordered), (0, 0), "{seen:?}");
    let frames: u64 = world.counts().iter().map(|counts| counts.frames).sum();
    assert!(world.ups > bursts() / 50 && frames > bursts(), "{} ups, {frames} frames", world.ups);
}

#[test]
fn moves_lose_and_reorder_nothing() {
    in_order::<TcPort>("past", false);
}

#[test]
fn moves_lose_and_reorder_nothing_where_receiving_is_steered() {
    in_order::<TcPort>("pastrps", true);
}

#[test]
fn moves_lose_and_reorder_nothing_on_xdp() {
    in_order::<XdpPort>("pastx", false);
}

#[test]
fn who_does_not_wait_until_frames_are_done_reorders() {
    reorders::<TcPort>("pastnot");
}

#[test]
fn who_does_not_wait_until_frames_are_done_reorders_on_xdp() {
    reorders::<XdpPort>("pastnotx");
}

fn reorders<P: Under>(name: &str) {
    let Some(mut world) = World::<P>::new(name) else { return };
    let seen = moved(&mut world, |world| {
        world.turn();
        world.claim_done();
    });
    assert_eq!(seen.lost, 0, "{seen:?}");
    assert!(seen.disordered > 0, "{seen:?}: the test of order cannot fail");
}

#[test]
fn large_segments_stay_whole_past_the_worker() {
    let Some(mut world) = World::<TcPort>::new("pasttcp") else { return };
    let mut ports = world.open();
    let (there, bytes) = (world.tcp_flow(5000), 8 << 20);
    forwarding(&mut ports, || {
        world.rung.want(there, Side::Rung).unwrap();
        stream(&world.lab, bytes);
    });
    world.rung.want(there, Side::Worker).unwrap();
    let counts = world.rung.remove(there);
    assert!(counts.frames > 0 && counts.bytes / counts.frames > 3000, "{counts:?}");
}

/// So many bytes from guest a to guest b, each in its place.
fn stream(lab: &Lab, bytes: usize) {
    thread::scope(|scope| {
        let (ready, listening) = channel();
        let receiver = lab.inside(scope, "b", move || {
            let listener = TcpListener::bind("10.9.0.2:5000").unwrap();
            ready.send(()).unwrap();
            let mut received = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
            received.iter().enumerate().filter(|&(at, &byte)| byte == at as u8).count()
        });
        listening.recv().unwrap();
        let sender = lab.inside(scope, "a", move || {
            let mut stream = bound_tcp("10.9.0.1:6000", "10.9.0.2:5000");
            stream.write_all(&(0..bytes).map(|at| at as u8).collect::<Vec<_>>()).unwrap();
        });
        sender.join().unwrap();
        assert_eq!(receiver.join().unwrap(), bytes);
    });
}

fn bound_tcp(from: &str, to: &str) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    use std::net::SocketAddr;
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&stream, &from.parse::<SocketAddr>().unwrap()).unwrap();
    connect(&stream, &to.parse::<SocketAddr>().unwrap()).unwrap();
    stream.into()
}

#[test]
fn flows_outlive_who_moved_them_and_are_taken_up_again() {
    outlive::<TcPort>("pastlife");
}

#[test]
fn flows_outlive_who_moved_them_and_are_taken_up_again_on_xdp() {
    outlive::<XdpPort>("pastlifx");
}

/// As a node does that stops.
fn stopped(OpenPort { rx, tx, control, .. }: OpenPort) {
    drop((rx, tx));
    control.close(Keep::Interface).unwrap();
}

fn outlive<P: Under>(name: &str) {
    let Some(mut world) = World::<P>::new(name) else { return };
    let mut ports = world.open();
    let seen = forwarding(&mut ports, || played(&mut world, 200, World::rise));
    assert_eq!((seen.lost, seen.disordered), (0, 0), "{seen:?}");
    let before = world.counts();
    assert!(world.are_up() && before[0].frames > 0);

    // Nobody is left who could receive a frame.
    ports.into_iter().for_each(stopped);
    world.forget();
    let seen = played(&mut world, 200, |_| ());
    assert_eq!((seen.lost, seen.disordered), (0, 0), "{seen:?}");

    let ports = world.open();
    assert_eq!(world.adopt(), 2);
    let after = world.counts();
    assert!(world.are_up());
    for (before, after) in before.iter().zip(&after) {
        assert!(after.frames >= before.frames + 200, "{before:?}, {after:?}");
    }
    drop(ports);
    world.purge();
}
