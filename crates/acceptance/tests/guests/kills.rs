//! Node, machines and drivers that end in the middle of traffic: what is left goes on, what comes back is served again.

use crate::Suite;
use crate::rig::{Link, Machine, NICS, Rig, in_tap, to_tap};
use crate::streams::{fetch, serve_iperf};
use crate::talk::ping;
use acceptance::{Background, until};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Longest wait for pings. Chosen: far above what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often each thing is killed.
const ROUNDS: usize = 3;

/// Twenty pings a second from `a` over a link, in the background.
struct Pings<'r> {
    rig: &'r Rig,
    link: Link,
    file: String,
}

impl<'r> Pings<'r> {
    fn start(rig: &'r Rig, link: Link) -> Self {
        let file = format!("/tmp/pings{}{}", link.0, link.1);
        let to = link.address(Machine::B);
        rig.run(Machine::A, &format!("ping -i 0.05 {to} >{file} 2>&1 & echo $! >{file}.pid"));
        let pings = Self { rig, link, file };
        pings.pass();
        pings
    }

    fn answered(&self) -> BTreeSet<u64> {
        let text = self.rig.run(Machine::A, &format!("cat {}", self.file));
        let sequence = |line: &str| line.split_once("seq=")?.1.split(' ').next()?.parse().ok();
        text.lines().filter_map(sequence).collect()
    }

    /// Waits for answers to pings that were not sent yet.
    fn pass(&self) {
        let before = self.answered().last().copied().unwrap_or(0);
        let start = Instant::now();
        while self.answered().last().is_none_or(|last| *last < before + 2) {
            assert!(start.elapsed() < PATIENCE, "no ping passes\n{}", self.ends());
        }
    }

    /// Both ends as the switch shows them, for errors.
    fn ends(&self) -> String {
        let end = |machine: Machine| {
            let port = machine.port(self.link.nic(machine));
            self.rig.lab.suiro(&["port", "show", "sw0", &port])
        };
        Machine::ALL.map(end).concat() + &self.rig.lab.log()
    }

    fn stop(self) {
        self.rig.run(Machine::A, &format!("kill $(cat {}.pid)", self.file));
    }

    /// Ends them; returns how many were lost.
    fn end(self) -> usize {
        self.pass();
        self.rig.run(Machine::A, &format!("kill $(cat {}.pid)", self.file));
        let answered = self.answered();
        let (first, last) = (answered.first().unwrap(), answered.last().unwrap());
        (last - first + 1) as usize - answered.len()
    }
}

fn open_files(rig: &Rig) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", rig.lab.pid())).unwrap().count()
}

pub fn cases(suite: &mut Suite) {
    suite.case("kills::a_node_that_was_killed_finds_its_machines_again", |rig| {
        node_comes_back(rig, &[Link(0, 0), Link(2, 2)]);
    });
    suite.case("kills::packed_virtqueues_outlive_a_node_that_was_killed", |rig| {
        node_comes_back(rig, &[Link(1, 1)]);
    });
    suite.case(
        "kills::a_driver_that_is_unloaded_under_traffic_is_served_again_when_it_comes_back",
        |rig| {
            let before = open_files(rig);
            for _ in 0..ROUNDS {
                let pings = [0, 1, 2].map(|nic| Pings::start(rig, Link(nic, nic)));
                rig.run(Machine::B, "rmmod virtio_net");
                until("the port sees it", || rig.shown(Machine::B, 0)["guest"]["state"] != "ready");
                rig.run(Machine::B, "modprobe virtio_net");
                rig.configure(Machine::B);
                pings.iter().for_each(Pings::pass);
                println!("  lost: {:?}", pings.map(Pings::end));
                fetch(rig, Machine::A, &Link(1, 1).address(Machine::B));
            }
            until("descriptors are freed", || open_files(rig) <= before);
        },
    );
    suite.case("kills::a_machine_that_was_killed_harms_no_other_and_is_served_again", |rig| {
        let before = open_files(rig);
        for round in 0..2 {
            let mut neighbours = in_tap(&rig.lab, "ping");
            neighbours.args(["-q", "-i", "0.02", &to_tap(Machine::A, 0)[0]]);
            let neighbours = Background::start(&mut neighbours);
            let pings =
                format!("ping -i 0.05 {} >/dev/null 2>&1 &", Link(0, 0).address(Machine::B));
            rig.run(Machine::A, &pings);
            rig.kill(Machine::B);
            until("its ports wait", || {
                (0..3).all(|nic| rig.shown(Machine::B, nic)["guest"]["state"] == "waiting")
            });
            let start = Instant::now();
            rig.boot_again(Machine::B);
            println!("  round {round}: reached {:.1?} after the kill", start.elapsed());
            Link::all().for_each(|link| ping(rig, Machine::A, &link.address(Machine::B), (1, 56)));
            rig.run(Machine::A, "killall ping");
            let said = neighbours.end(Signal::INT);
            // The last one may be on its way when ping is told to end.
            assert!(unanswered(&said) <= 1, "{said}");
            fetch(rig, Machine::A, &Link(1, 1).address(Machine::B));
        }
        until("descriptors are freed", || open_files(rig) <= before);
    });
    suite.case("kills::node_and_machine_at_once", |rig| {
        rig.lab.end(Signal::KILL);
        rig.kill(Machine::B);
        rig.lab.start();
        rig.boot_again(Machine::B);
        Link::all().for_each(|link| ping(rig, Machine::A, &link.address(Machine::B), (1, 56)));
    });
}

/// Packets that ping says were transmitted and not received.
fn unanswered(said: &str) -> u32 {
    let count = |after: &str| {
        let (before, _) = said.split_once(after).expect("ping says how many");
        before.rsplit([' ', '\n']).next().and_then(|count| count.parse().ok()).unwrap_or(0)
    };
    let (transmitted, received): (u32, u32) = (count(" packets transmitted"), count(" received"));
    assert!(received > 0, "{said}");
    transmitted - received
}

/// Kills the node under TCP over these links, several times: drivers are served again, connections live on.
fn node_comes_back(rig: &mut Rig, links: &[Link]) {
    let streams: Vec<_> = links.iter().map(|&link| begin_stream(rig, link)).collect();
    for round in 0..ROUNDS {
        rig.lab.end(Signal::KILL);
        rig.lab.start();
        let start = Instant::now();
        for machine in Machine::ALL {
            (0..NICS).for_each(|nic| rig.until_ready(machine, nic));
        }
        let ready = start.elapsed();
        links.iter().for_each(|&link| Pings::start(rig, link).stop());
        println!(
            "  round {round}: all ready after {ready:.0?}, all reached after {:.0?}",
            start.elapsed()
        );
    }
    streams.into_iter().for_each(|file| the_stream_ends_well(rig, &file));
    links.iter().for_each(|&link| fetch(rig, Machine::A, &link.address(Machine::B)));
}

/// Begins a TCP stream from `a` to `b` that lasts as long as the kills; returns the file of its report. It is connected then: begun under a kill, it would find no route.
fn begin_stream(rig: &mut Rig, link: Link) -> String {
    let port = rig.port();
    serve_iperf(rig, Machine::B, port);
    let (to, file) = (link.address(Machine::B), format!("/tmp/stream{port}"));
    rig.run(Machine::A, &format!("iperf3 -c {to} -p {port} -J -i 0 -b 20M -t 12 >{file} 2>&1 &"));
    let connected = format!("grep -ciE ':{port:04X} 01 ' /proc/net/tcp; true");
    until("the stream is connected", || rig.run(Machine::A, &connected).trim() != "0");
    file
}

fn the_stream_ends_well(rig: &Rig, file: &str) {
    let report = || {
        serde_json::from_str::<serde_json::Value>(&rig.run(Machine::A, &format!("cat {file}"))).ok()
    };
    until("the stream has ended", || report().is_some());
    let report = report().unwrap();
    assert!(report["error"].is_null(), "{}", report["error"]);
    let megabytes = report["end"]["sum_received"]["bytes"].as_u64().unwrap() >> 20;
    println!("  a stream over the kills brought {megabytes} MiB");
    assert!(megabytes > 5);
}
