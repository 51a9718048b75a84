//! Tunnels that are not encrypted, seen outside: over IPv4 and IPv6, with the id of the frame inside.

use crate::capture::tshark;
use crate::tunnels::{hosts, reaches, tunnel};
use acceptance::{Background, Place, privileged, sh, suiro, until};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::process::Command;

/// Outside, both pings and both answers are the same packets at both ends, from and to these addresses.
fn is_seen_at_both_ends(place: &Place, source: &str, ends: [&str; 2]) {
    let file = place.path("outside.pcapng");
    let mut command = Command::new(suiro());
    command.arg("--api").arg(place.socket()).args(["capture", "-m", "icmp", "-w"]).arg(&file);
    command.args(["r-sw1:tun0:outside", "r-sw2:tun0:outside"]);
    let captures = || place.http("GET", "/v1/captures", "").1;
    let capture = Background::start(&mut command);
    until("the capture runs", || captures() != "[]");
    reaches(place, "r1", &[]);
    let said = capture.end(Signal::INT);
    until("the node ends it", || captures() == "[]");
    assert!(said.starts_with("8 frames matched, 8 written, 0 lost"), "{said}");

    let fields = ["frame.packet_id", "frame.interface_name", source, "udp.dstport", "vxlan.vni"];
    let rows = tshark(&file, "icmp", &[&fields[..], &["icmp.type", "frame.comment"]].concat());
    let mut ways = BTreeMap::<&str, Vec<&[String]>>::new();
    for row in &rows {
        ways.entry(&row[0]).or_default().push(&row[1..]);
    }
    assert_eq!(ways.len(), 4, "{rows:?}");
    for way in ways.values() {
        let request = way[0][4] == "8";
        let points = if request { [1, 2] } else { [2, 1] };
        let points = points.map(|host| format!("r-sw{host}:tun0:outside"));
        assert_eq!([&way[0][0], &way[1][0]], [&points[0], &points[1]]);
        for seen in way {
            assert_eq!(seen[2..4], ["4789", "7"], "{seen:?}");
            assert!(seen[1].starts_with(ends[usize::from(!request)]), "{seen:?}");
            assert!(seen[5].contains("outer=made") && !seen[5].contains("esp="), "{seen:?}");
        }
    }
    let all = Command::new("tshark").arg("-V").arg("-r").arg(&file).output().unwrap();
    assert!(!String::from_utf8_lossy(&all.stdout).contains("Malformed"));
}

#[test]
fn a_plain_tunnels_packets_are_the_same_at_both_ends_over_ipv4_and_ipv6() {
    if !privileged() {
        return;
    }
    let place = hosts();
    reaches(&place, "r1", &[]);
    is_seen_at_both_ends(&place, "ip.src", ["192.0.2.1", "192.0.2.2"]);
    for (host, other) in [("1", "2"), ("2", "1")] {
        let address = format!("2001:db8::{host}/64");
        let netns = place.guest(&format!("h{host}"));
        sh(&["ip", "-n", &netns, "addr", "add", &address, "dev", "u", "nodad"]);
        let (switch, remote) = (format!("r-sw{host}"), format!("2001:db8::{other}"));
        place.suiro(&["port", "del", &switch, "tun0"]);
        tunnel(&place, &switch, "tun0", host, &["--remote", &remote, "--key", "7"]);
    }
    reaches(&place, "r1", &[]);
    is_seen_at_both_ends(&place, "ipv6.src", ["2001:db8::1", "2001:db8::2"]);
}
