//! Large TCP segments: whole to whoever takes them, cut and summed for whoever does not.

use crate::Suite;
use crate::rig::{Link, Machine, Rig, TAP, in_tap, set_tap_features, to_tap};
use crate::streams::fetch;
use crate::talk::add_vlan;
use acceptance::Background;
use std::fs;

/// The mean size of a frame beyond which many must have been larger than any MTU here. Chosen: twice a full frame of Ethernet.
const LARGE: u64 = 3000;

/// A full frame.
const FULL: u64 = 1514;

/// Frames and bytes that an interface has received.
#[derive(Clone, Copy, Debug)]
struct Received {
    frames: u64,
    bytes: u64,
}

impl Received {
    /// As the driver of a machine counted, before the machine's kernel joins anything.
    fn by_driver(rig: &Rig, machine: Machine, nic: usize) -> Self {
        let text = rig.run(machine, &format!("ethtool -S eth{nic}"));
        let sum = |end: &str| -> u64 {
            let values = text.lines().filter_map(|line| line.trim().split_once(": "));
            let ours =
                values.filter(|(name, _)| name.starts_with("rx_queue_") && name.ends_with(end));
            ours.map(|(_, value)| value.parse::<u64>().unwrap()).sum()
        };
        Self { frames: sum("_packets"), bytes: sum("_bytes") }
    }

    /// As the interface of the guest on a TAP counted.
    fn by_tap(rig: &Rig) -> Self {
        let output = in_tap(&rig.lab, "ip")
            .args(["-j", "-s", "link", "show", "dev", "eth0"])
            .output()
            .unwrap();
        let links: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let count = |key: &str| links[0]["stats64"]["rx"][key].as_u64().unwrap();
        Self { frames: count("packets"), bytes: count("bytes") }
    }

    /// The mean size of what came since.
    fn mean_until(self, later: Self) -> u64 {
        (later.bytes - self.bytes) / (later.frames - self.frames).max(1)
    }
}

/// Frames that were thrown away for a wrong checksum, by any protocol (`/proc/net/snmp`: a line of names, a line of values).
fn wrong_sums(snmp: &str) -> u64 {
    let lines: Vec<_> = snmp.lines().collect();
    let wrong = |pair: &[&str]| -> u64 {
        let mut names = pair[0].split(' ').zip(pair[1].split(' '));
        names
            .find(|(name, _)| *name == "InCsumErrors")
            .map_or(0, |(_, value)| value.parse().unwrap())
    };
    lines.chunks_exact(2).map(wrong).sum()
}

#[track_caller]
fn no_sum_was_wrong(rig: &Rig) {
    for machine in Machine::ALL {
        assert_eq!(wrong_sums(&rig.run(machine, "cat /proc/net/snmp")), 0, "{machine:?}");
    }
    let output = in_tap(&rig.lab, "cat").arg("/proc/net/snmp").output().unwrap();
    assert_eq!(wrong_sums(&String::from_utf8(output.stdout).unwrap()), 0, "{TAP}");
}

/// The mean size of the frames that `b` gets while it fetches `a`'s file over this link.
fn mean_over(rig: &Rig, link: Link) -> u64 {
    let before = Received::by_driver(rig, Machine::B, link.1);
    fetch(rig, Machine::B, &link.address(Machine::A));
    let mean = before.mean_until(Received::by_driver(rig, Machine::B, link.1));
    println!("  eth{} to eth{}: {mean} bytes a frame", link.0, link.1);
    mean
}

/// The mean size of the frames that `g3` gets while it fetches a machine's file.
fn mean_to_tap(rig: &Rig, machine: Machine, nic: usize) -> u64 {
    let before = Received::by_tap(rig);
    let from = format!("http://{}/file", to_tap(machine, nic)[0]);
    let output = in_tap(&rig.lab, "curl").args(["-s", "--max-time", "20", &from]).output().unwrap();
    assert!(output.status.success(), "{output:?}\n{}", rig.lab.log());
    let file = rig.lab.path("fetched");
    fs::write(&file, output.stdout).unwrap();
    let sum = in_tap(&rig.lab, "md5sum").arg(file).output().unwrap();
    assert!(String::from_utf8(sum.stdout).unwrap().starts_with(&rig.checksum));
    let mean = before.mean_until(Received::by_tap(rig));
    println!("  {machine:?} eth{nic} to {TAP}: {mean} bytes a frame");
    mean
}

pub fn cases(suite: &mut Suite) {
    suite.case("segments::large_ones_travel_whole_between_drivers_that_take_them", |rig| {
        for link in [Link(0, 0), Link(0, 1), Link(1, 0), Link(1, 1)] {
            assert!(mean_over(rig, link) > LARGE);
        }
        no_sum_was_wrong(rig);
    });
    suite.case("segments::large_ones_travel_whole_inside_a_vlan", |rig| {
        let [here, there] = ["10.2.9.1", "10.2.9.2"];
        add_vlan(rig, Machine::A, (0, 7), here);
        add_vlan(rig, Machine::B, (1, 7), there);
        let before = Received::by_driver(rig, Machine::B, 1);
        fetch(rig, Machine::B, here);
        assert!(before.mean_until(Received::by_driver(rig, Machine::B, 1)) > LARGE);
        Machine::ALL.iter().for_each(|&machine| drop(rig.run(machine, "ip link del v7")));
    });
    suite.case("segments::large_ones_are_cut_and_summed_for_a_driver_that_takes_none", |rig| {
        for link in [Link(0, 2), Link(1, 2)] {
            assert!(mean_over(rig, link) <= FULL);
        }
        no_sum_was_wrong(rig);
    });
    suite.case("segments::a_machine_that_cuts_and_sums_by_itself_is_left_alone", |rig| {
        let link = Link(0, 1);
        rig.run(Machine::A, "ethtool -K eth0 tx off tso off gso off");
        assert!(mean_over(rig, link) <= FULL);
        rig.run(Machine::A, "ethtool -K eth0 tx on tso on gso on");
        assert!(mean_over(rig, link) > LARGE);
        no_sum_was_wrong(rig);
    });
    suite.case("segments::large_ones_travel_whole_to_a_tap_and_from_it", |rig| {
        for nic in [0, 1] {
            assert!(mean_to_tap(rig, Machine::A, nic) > LARGE);
        }
        assert!(mean_to_tap(rig, Machine::A, 2) <= FULL, "its driver cuts");
        let server = serve_in_tap(rig);
        for (nic, whole) in [(0, true), (1, true), (2, false)] {
            let before = Received::by_driver(rig, Machine::B, nic);
            fetch(rig, Machine::B, &to_tap(Machine::B, nic)[1]);
            let mean = before.mean_until(Received::by_driver(rig, Machine::B, nic));
            println!("  {TAP} to eth{nic}: {mean} bytes a frame");
            assert!(if whole { mean > LARGE } else { mean <= FULL });
        }
        set_tap_features(&rig.lab, &["tx", "off", "tso", "off", "gso", "off"]);
        fetch(rig, Machine::B, &to_tap(Machine::B, 0)[1]);
        set_tap_features(&rig.lab, &["tx", "on", "tso", "on", "gso", "on"]);
        drop(server);
        no_sum_was_wrong(rig);
    });
}

/// The same file by HTTP in the namespace of the TAP.
fn serve_in_tap(rig: &Rig) -> Background {
    let directory = rig.lab.path("www");
    fs::create_dir_all(&directory).unwrap();
    fs::rename(rig.lab.path("fetched"), directory.join("file")).unwrap();
    let mut command = in_tap(&rig.lab, "busybox");
    let server = Background::start(command.args(["httpd", "-f", "-p", "80", "-h"]).arg(directory));
    acceptance::until("the server listens", || {
        let output = in_tap(&rig.lab, "ss").args(["-Hltn", "sport = 80"]).output().unwrap();
        !output.stdout.is_empty()
    });
    server
}
