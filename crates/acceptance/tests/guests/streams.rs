//! Many frames at a time: TCP whose every byte is compared, TCP and UDP by iperf3, in both directions.

use crate::Suite;
use crate::rig::{JUMBO, Link, Machine, Rig};
use serde_json::Value;

/// Links that streams run over: alike ends of each kind, and ends that differ.
const LINKS: [Link; 5] = [Link(0, 0), Link(1, 1), Link(2, 2), Link(0, 1), Link(1, 2)];

/// Fetches the other machine's file by HTTP; what arrived must be what it holds.
#[track_caller]
pub fn fetch(rig: &Rig, machine: Machine, from: &str) {
    let said = rig.run(machine, &format!("wget -q -O - http://{from}/file | md5sum"));
    assert_eq!(
        said.split_whitespace().next(),
        Some(rig.checksum.as_str()),
        "from {from}\n{}",
        rig.lab.log()
    );
}

/// Which way a stream goes, seen from the machine that asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From `a` to `b`.
    There,
    /// From `b` to `a`.
    Back,
}

impl Way {
    const BOTH: [Self; 2] = [Self::There, Self::Back];

    fn option(self) -> &'static str {
        if self == Self::Back { "-R" } else { "" }
    }
}

/// Runs iperf3 from `a` to `b` with these options; returns its report's end.
#[track_caller]
pub fn iperf(rig: &mut Rig, to: &str, way: Way, options: &str) -> Value {
    let port = rig.port();
    serve_iperf(rig, Machine::B, port);
    let command = format!("iperf3 -c {to} -p {port} -J -i 0 {options} {}", way.option());
    let report: Value = serde_json::from_str(&rig.run(Machine::A, &command)).unwrap();
    report["end"].clone()
}

/// Starts an iperf3 that serves one client on this port, and waits until it listens.
pub fn serve_iperf(rig: &Rig, machine: Machine, port: u16) {
    let start = format!("iperf3 -s -1 -p {port} >/tmp/iperf 2>&1 &");
    rig.run(
        machine,
        &format!("{start} until netstat -ltn | grep -q :{port}; do usleep 10000; done"),
    );
}

fn tcp(rig: &mut Rig, link: Link, way: Way) {
    let end = iperf(rig, &link.address(Machine::B), way, "-n 16M");
    let received = end["sum_received"]["bytes"].as_u64().unwrap();
    let [rate, again] = [&end["sum_received"]["bits_per_second"], &end["sum_sent"]["retransmits"]];
    println!(
        "  TCP eth{} eth{} {way:?}: {:.2} Gbit/s, {again} retransmits",
        link.0,
        link.1,
        rate.as_f64().unwrap() / 1e9
    );
    // iperf3 counts until the sender has sent all; what lies in buffers then, a window of 6 MiB at most, arrives uncounted.
    assert!(received >= 10 << 20, "{end}");
}

/// 40 Mbit/s for a second; a machine's own queues may lose some on a host that is busy otherwise, but not many.
fn udp(rig: &mut Rig, link: Link, way: Way, size: u16) {
    let end = iperf(rig, &link.address(Machine::B), way, &format!("-u -b 40M -t 1 -l {size}"));
    let [lost, packets] = ["lost_packets", "packets"].map(|key| end["sum"][key].as_u64().unwrap());
    println!("  UDP eth{} eth{} {way:?} {size} B: {lost} of {packets} lost", link.0, link.1);
    assert!(packets > 100 && lost * 10 < packets, "{end}");
}

pub fn cases(suite: &mut Suite) {
    suite.case("streams::every_byte_of_tcp_arrives_between_all_kinds_of_interfaces", |rig| {
        for link in Link::all() {
            fetch(rig, Machine::A, &link.address(Machine::B));
            fetch(rig, Machine::B, &link.address(Machine::A));
        }
    });
    suite.case("streams::iperf3_sends_tcp_both_ways", |rig| {
        for (link, way) in LINKS.into_iter().flat_map(|link| Way::BOTH.map(|way| (link, way))) {
            tcp(rig, link, way);
        }
    });
    suite.case("streams::iperf3_sends_udp_both_ways", |rig| {
        for (link, way) in LINKS.into_iter().flat_map(|link| Way::BOTH.map(|way| (link, way))) {
            udp(rig, link, way, 1400);
        }
    });
    suite.case("streams::at_an_mtu_of_9000", |rig| {
        for link in [Link(0, 0), Link(1, 1)] {
            rig.set_mtu(link, JUMBO);
            fetch(rig, Machine::A, &link.address(Machine::B));
            for way in Way::BOTH {
                tcp(rig, link, way);
                udp(rig, link, way, 8900);
            }
            rig.set_mtu(link, 1500);
        }
    });
    suite.case("streams::several_at_a_time_use_every_queue", |rig| {
        let link = Link(1, 1);
        let before = Machine::ALL.map(|machine| queue_packets(rig, machine));
        // A machine sends by the queue of the processor that it sends on: both in turn, at both ends.
        for processor in ["0,0", "1,1"] {
            let more = format!("-A {processor} -P 16 -n 8M");
            let end = iperf(rig, &link.address(Machine::B), Way::There, &more);
            // iperf3 ends when everything was sent; what has arrived by then depends on the machine.
            assert!(end["sum_sent"]["bytes"].as_u64().unwrap() >= 8 << 20, "{end}");
        }
        for (machine, before) in Machine::ALL.into_iter().zip(before) {
            let after = queue_packets(rig, machine);
            println!("  {machine:?}: {before:?} to {after:?} received by queue");
            assert!(
                before.iter().zip(&after).all(|(before, after)| after > before),
                "{machine:?}: {before:?} {after:?}"
            );
        }
    });
}

/// Packets received by each queue of `eth1`.
fn queue_packets(rig: &Rig, machine: Machine) -> Vec<u64> {
    let text = rig.run(machine, "ethtool -S eth1");
    let queue = |line: &str| {
        let (name, value) = line.trim().split_once(": ")?;
        let queue = name.strip_prefix("rx_queue_")?.strip_suffix("_packets")?;
        queue.parse::<u16>().is_ok().then(|| value.parse().unwrap())
    };
    text.lines().filter_map(queue).collect()
}
