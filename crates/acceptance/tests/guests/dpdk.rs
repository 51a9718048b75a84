//! testpmd's two virtio-user devices on one switch: every layout of virtqueues, every frame counted at both ends.

use crate::Suite;
use acceptance::{Lab, until};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testbed::testpmd::{PortStats, Testpmd, TestpmdSpec, VirtioUser};

/// The core that testpmd polls on; the node's worker has the other one.
const CORE: usize = 1;

/// Longest wait for frames. Chosen: far above what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Frames that `tx_first` sends from each port in a burst: few enough that a queue has room for all of them, in five buffers each.
const BURST: u64 = 32;

/// Bursts of a counted run.
const BURSTS: u64 = 4;

/// A switch that joins its two ports, and nothing else.
struct Patch {
    lab: Lab,
}

impl Patch {
    fn new() -> Self {
        let lab = Lab::running(&[]);
        lab.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
        let patch = Self { lab };
        for number in 0..2 {
            let (port, socket) = (format!("t{number}"), patch.socket(number));
            let words =
                ["port", "add", "sw0", &port, "--type", "vhost-user", "--queues", "2", "--socket"];
            patch.lab.suiro(&[&words[..], &[socket.to_str().unwrap()]].concat());
        }
        patch.lab.suiro(&[
            "flow",
            "add",
            "sw0",
            "in_port=t0,actions=output:t1",
            "in_port=t1,actions=output:t0",
        ]);
        patch
    }

    fn socket(&self, number: usize) -> PathBuf {
        self.lab.path(&format!("t{number}.sock"))
    }

    /// A testpmd whose two ports are on the switch, both ready.
    fn start(&self, change: impl Fn(VirtioUser) -> VirtioUser, options: &[&str]) -> Testpmd {
        let devices = [0, 1].map(|number| change(VirtioUser::new(&self.socket(number))));
        let spec = devices.iter().fold(TestpmdSpec::new("guests", CORE), TestpmdSpec::driver);
        let spec = options.iter().fold(spec, |spec, option| spec.option(option));
        let testpmd = Testpmd::start(&spec);
        let testpmd = testpmd.unwrap_or_else(|error| panic!("{error:#}\n{}", self.lab.log()));
        until("both ports are ready", || {
            [0, 1].iter().all(|&number| self.guest(number)["state"] == "ready")
        });
        testpmd
    }

    /// What the switch knows of a port's driver.
    fn guest(&self, number: usize) -> serde_json::Value {
        self.lab.json(&["port", "show", "sw0", &format!("t{number}")])["guest"].clone()
    }

    /// Both ports as they are shown, for errors.
    fn shown(&self) -> String {
        ["t0", "t1"].map(|port| self.lab.suiro(&["port", "show", "sw0", port])).concat()
    }

    /// Frames that the switch took from a port and gave to it.
    fn counted(&self, number: usize) -> [u64; 2] {
        let counters =
            self.lab.json(&["port", "show", "sw0", &format!("t{number}")])["counters"].clone();
        ["rx_frames", "tx_frames"].map(|key| counters[key].as_u64().unwrap())
    }
}

/// Sends bursts of frames of this size, at once in both directions; every one must come back before the next is sent.
fn exchange(patch: &Patch, testpmd: &mut Testpmd, size: &str) {
    let run = |testpmd: &mut Testpmd, command: &str| {
        testpmd.command(command).unwrap_or_else(|error| panic!("{error:#}\n{}", patch.lab.log()));
    };
    let before = [0, 1].map(|number| patch.counted(number));
    for command in ["clear port stats all", &format!("set txpkts {size}"), "set fwd rxonly"] {
        run(testpmd, command);
    }
    let bytes: u64 = size.split(',').map(|part| part.parse::<u64>().unwrap()).sum();
    for burst in 1..=BURSTS {
        run(testpmd, "start tx_first 1");
        let (frames, mut stats) = (burst * BURST, vec![]);
        let all = PortStats {
            rx_packets: frames,
            rx_bytes: frames * bytes,
            tx_packets: frames,
            ..PortStats::default()
        };
        let start = Instant::now();
        while stats != [all; 2] {
            stats = testpmd.stats().unwrap();
            assert!(
                start.elapsed() < PATIENCE,
                "frames of {size} bytes, burst {burst}: {stats:?}\n{}",
                patch.shown()
            );
        }
        run(testpmd, "stop");
    }
    let frames = BURSTS * BURST;
    let more = |number: usize| {
        let after = patch.counted(number);
        [0, 1].map(|way: usize| after[way] - before[number][way])
    };
    until("the switch has counted them", || [0, 1].map(more) == [[frames; 2]; 2]);
}

/// Lets bursts go round for as long as `rounds` looks take; returns how many frames each port received.
fn circulate(patch: &Patch, testpmd: &mut Testpmd, mode: &str) -> [u64; 2] {
    let mut run = |command: &str| {
        testpmd.command(command).unwrap_or_else(|error| panic!("{error:#}\n{}", patch.lab.log()))
    };
    run("clear port stats all");
    run(&format!("set fwd {mode}"));
    run("set txpkts 64");
    run("start tx_first 1");
    until("many frames went round", || {
        testpmd.stats().unwrap().iter().all(|port| port.rx_packets > 100_000)
    });
    // What is on its way comes home and stays there.
    testpmd.command("stop").unwrap();
    testpmd.command("set fwd rxonly").unwrap();
    testpmd.command("start").unwrap();
    let mut stats = Vec::new();
    until("all frames are home", || {
        stats = testpmd.stats().unwrap();
        stats[0].rx_packets == stats[1].tx_packets && stats[1].rx_packets == stats[0].tx_packets
    });
    testpmd.command("stop").unwrap();
    [stats[0].rx_packets, stats[1].rx_packets]
}

/// Every layout: packed, merged buffers, in order.
fn layouts() -> impl Iterator<Item = [bool; 3]> {
    (0..8).map(|bits| [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0])
}

pub fn cases(suite: &mut Suite) {
    suite.plain("dpdk::every_frame_passes_in_every_layout_of_virtqueues", || {
        let patch = Patch::new();
        for [packed, mergeable, in_order] in layouts() {
            let mut testpmd = patch.start(|device| VirtioUser { packed, mergeable, in_order, ..device }, &["--tx-offloads=0x8000"]);
            let guest = patch.guest(0);
            assert_eq!(guest["ring_kind"], if packed { "packed" } else { "split" });
            let has = |name: &str| guest["features"].as_array().unwrap().iter().any(|feature| feature == name);
            assert_eq!((has("MRG_RXBUF"), has("IN_ORDER")), (mergeable, in_order), "{guest}");
            ["64", "1514", "64,700,750"].iter().for_each(|size| exchange(&patch, &mut testpmd, size));
            let rounds = circulate(&patch, &mut testpmd, "io");
            println!("  packed {packed}, merged {mergeable}, in order {in_order}: {rounds:?} frames went round");
        }
    });
    suite.plain("dpdk::frames_of_9000_bytes_fill_several_buffers_and_come_from_several", || {
        let patch = Patch::new();
        for packed in [false, true] {
            let options = ["--tx-offloads=0x8000", "--rx-offloads=0x2000", "--max-pkt-len=9018"];
            let mut testpmd = patch.start(|device| VirtioUser { packed, ..device }, &options);
            exchange(&patch, &mut testpmd, "2000,2000,2000,2000,1000");
        }
    });
    suite.plain("dpdk::two_queue_pairs_and_frames_sent_back_by_the_driver", || {
        let patch = Patch::new();
        let options = ["--rxq=2", "--txq=2"];
        let mut testpmd = patch.start(|device| VirtioUser { queues: 2, ..device }, &options);
        let rounds = circulate(&patch, &mut testpmd, "macswap");
        println!("  {rounds:?} frames went round");
    });
    suite.plain("dpdk::a_testpmd_killed_in_full_flight_is_followed_by_the_next", || {
        let patch = Patch::new();
        for _ in 0..3 {
            let mut testpmd = patch.start(|device| device, &[]);
            exchange(&patch, &mut testpmd, "64");
            testpmd.command("set fwd txonly").unwrap();
            testpmd.command("start").unwrap();
            drop(testpmd);
            until("the ports wait", || {
                (0..2).all(|number| patch.lab.json(&["port", "show", "sw0", &format!("t{number}")])["guest"]["state"] == "waiting")
            });
        }
    });
}
