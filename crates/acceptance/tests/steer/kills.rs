//! The node is killed while frames flow.

use crate::{Host, privileged, until};
use rustix::net::sockopt::socket_incoming_cpu;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testbed::unbroken;

/// Between two datagrams of the stream.
const PACE: Duration = Duration::from_micros(100);

/// What became of a stream of numbered datagrams.
#[derive(Debug, Default)]
struct Stream {
    sent: u64,
    received: u64,
    out_of_order: u64,
    /// Received on another core than the one asked for.
    elsewhere: u64,
}

/// Ends the stream, also when what happens meanwhile fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends numbered datagrams to port 5001 while `meanwhile` does its work; counts what arrives, and where.
fn stream(host: &Host, core: u32, meanwhile: impl FnOnce()) -> Stream {
    let (receiver, sender) = host.pair(5001);
    receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut sent: u64 = 0;
            while !ended.load(Ordering::Relaxed) {
                sender.send(&sent.to_be_bytes()).unwrap();
                sent += 1;
                std::thread::sleep(PACE);
            }
            sent
        });
        let receiving = scope.spawn(|| {
            let mut stream = Stream::default();
            let mut next = 0;
            let mut buffer = [0; 8];
            // The timeout comes when the sender has ended.
            while unbroken(|| receiver.recv(&mut buffer)).is_ok() {
                let number = u64::from_be_bytes(buffer);
                stream.out_of_order += u64::from(number < next);
                next = number + 1;
                stream.received += 1;
                stream.elsewhere += u64::from(socket_incoming_cpu(&receiver).unwrap() != core);
            }
            stream
        });
        let end = EndOnDrop(&ended);
        meanwhile();
        drop(end);
        let sent = sending.join().unwrap();
        Stream { sent, ..receiving.join().unwrap() }
    })
}

#[test]
fn kill_9_of_the_node_harms_no_frame_and_its_successor_takes_steering_up_again() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1"]);
    host.suiro(&["steer", "policy", "set", "--moves", "off"]);
    host.suiro(&["steer", "flow", "add", "udp,tp_dst=5001,actions=place(core=1)"]);
    host.cores_of(5001, 10);
    let stream = stream(&host, 1, || {
        std::thread::sleep(Duration::from_millis(200));
        host.kill_node();
        assert!(host.has_program("g1"), "steering goes on");
        std::thread::sleep(Duration::from_millis(200));
        let said = host.suiro(&["steer", "attach", "g1"]);
        assert!(said.contains("taken up from an earlier node"), "{said}");
        std::thread::sleep(Duration::from_millis(200));
    });
    println!("{stream:?}");
    assert!(stream.sent > 1000);
    assert_eq!(stream.received, stream.sent, "none lost");
    assert_eq!((stream.out_of_order, stream.elsewhere), (0, 0));
    let flows = host.json(&["steer", "flow", "dump"]);
    let frames = flows[0]["frames"].as_u64().unwrap();
    assert!(frames >= stream.sent, "counters go on over the kill: {flows}");
    assert_eq!(host.json(&["steer", "policy", "show"])["moves"], false, "the policy is back");
    host.suiro(&["steer", "detach", "--all"]);
    assert!(!host.has_program("g1") && !host.pins("g1").exists());
}

#[test]
fn what_a_killed_node_steered_can_be_detached_by_the_next_one() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1"]);
    host.kill_node();
    // Its state is lost too: the pins alone tell.
    std::fs::remove_dir_all(host.lab.path("run/state")).unwrap();
    let said = host.says(&["steer", "detach", "g1"]);
    assert_eq!(said.code, 3, "no node: {}", said.err);
    assert!(said.err.contains("suiro steer attach"), "{}", said.err);
    host.suiro(&["steer", "attach", "g1"]);
    host.suiro(&["steer", "detach", "g1"]);
    assert!(!host.has_program("g1") && !host.pins("g1").exists());
    until("the node is gone", || host.node().is_none());
}

#[test]
fn an_interface_that_is_made_anew_is_steered_again() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1"]);
    let netns = host.lab.netns.clone();
    acceptance::sh(&["ip", "-n", &netns, "link", "del", "g1"]);
    until("the interface has a fault", || host.interface()["fault"].is_object());
    let fault = host.interface()["fault"].clone();
    assert!(fault["remedy"].as_str().unwrap().contains("ip link"), "{fault}");
    host.lab.cable("g1");
    until("it is steered again", || host.interface()["fault"].is_null());
    assert!(host.has_program("g1"));
}
