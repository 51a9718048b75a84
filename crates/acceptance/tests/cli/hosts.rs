//! One capture of several nodes: a packet has one id on all of them, and the file is in the order of time.

use acceptance::{Place, privileged, sh, until};
use std::collections::BTreeMap;
use std::process::Command;

/// A node with a switch of this name: a guest on a TAP, and one end of a wire to the other node.
fn node(switch: &str) -> Place {
    let mut place = Place::new(&["g"]);
    place.start();
    place.suiro(&["switch", "add", switch, "--fail-mode", "secure"]);
    let netns = place.guest("g");
    place.suiro(&["port", "add", switch, "g", "--type", "tap", "--netns", &netns]);
    place
}

/// The second half of the wire, and rules: what passes is rewritten.
fn join(place: &Place, switch: &str) {
    place.suiro(&["port", "add", switch, "u", "--type", "af_packet"]);
    let out = "priority=9,ip,in_port=g,actions=dec_ttl,mod_nw_tos:32,output:u";
    let back = "priority=9,ip,in_port=u,actions=dec_ttl,output:g";
    let arp = ["in_port=g,arp,actions=output:u", "in_port=u,arp,actions=output:g"];
    place.suiro(&["flow", "add", switch, out, back, arp[0], arp[1]]);
}

#[test]
fn one_command_captures_at_two_nodes_and_knows_each_packet_again() {
    if !privileged() {
        return;
    }
    let (one, two) = (node("a0"), node("b0"));
    let peer = ["type", "veth", "peer", "name", "u", "netns", &two.netns];
    sh(&[&["ip", "-n", &one.netns, "link", "add", "u"][..], &peer].concat());
    for (place, switch, address) in [(&one, "a0", "10.0.0.1/24"), (&two, "b0", "10.0.0.2/24")] {
        sh(&["ip", "-n", &place.netns, "link", "set", "u", "up"]);
        join(place, switch);
        place.address("g", "g", address);
    }
    until("the guests talk", || one.reaches("g", "10.0.0.2"));
    let ping = ["netns", "exec", &one.guest("g"), "ping", "-q", "-i", "0.01", "10.0.0.2"];
    let mut ping =
        Command::new("ip").args(ping).stdout(std::process::Stdio::null()).spawn().unwrap();
    let file = one.path("way.pcapng").display().to_string();
    let other = two.socket().display().to_string();
    let points = ["a0:g:rx", "a0:u:tx", "b0:u:rx", "b0:g:tx", "drops"];
    let own = one.socket().display().to_string();
    let nodes = ["--api", &own, "--api", &other];
    let capture = ["capture", "--filter", "icmp[icmptype] == icmp-echo"];
    let more = ["-w", &file, "--duration", "1s"];
    let said = one.says(&[&nodes[..], &capture, &points, &more].concat());
    ping.kill().unwrap();
    ping.wait().unwrap();
    assert!(said.err.contains(" 0 lost for want of room"), "{}", said.err);
    let fields = ["-T", "fields", "-e", "frame.packet_id", "-e", "frame.interface_name"];
    let rows = Command::new("tshark").args(["-r", &file]).args(fields).output().unwrap();
    let rows = String::from_utf8(rows.stdout).unwrap();
    let mut ways = BTreeMap::<&str, Vec<&str>>::new();
    for (id, point) in rows.lines().filter_map(|row| row.split_once('\t')) {
        ways.entry(id).or_default().push(point);
    }
    let whole = ways.values().filter(|way| **way == points[..4]).count();
    // The first and the last may have been under way when it began and ended.
    assert!(whole > 0 && whole + 2 >= ways.len(), "{whole} of {}:\n{rows}", ways.len());
    let listed = Command::new("capinfos").args(["-I", &file]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("drops@/"), "{listed}");
    let said = one.says(&[&nodes[..], &["status"]].concat());
    assert!(said.code == 2 && said.err.contains("several nodes are named"), "{}", said.err);
}
