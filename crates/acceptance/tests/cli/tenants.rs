//! Many tenants by one tunnel: two nodes, each with one switch whose rules tell the tenants apart by their VNIs.

use acceptance::{Place, privileged, sh, until};
use rustix::process::Signal;
use serde_json::Value;

/// The underlay's addresses of the two hosts.
const HOSTS: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
/// The tunnel's port.
const TUNNEL: &str = "9";

/// A host with a guest of each of two tenants, `r` and `b`, who both have the address 10.0.0.1, on the other host 10.0.0.2.
fn host() -> Place {
    let place = Place::new(&["r", "b"]);
    for netns in [place.guest("r"), place.guest("b"), place.netns.clone()] {
        // Guests say nothing by themselves: what a rule counted is what it was asked to.
        let quiet = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6";
        sh(&["ip", "netns", "exec", &netns, "sh", "-c", quiet]);
    }
    place
}

/// Two hosts, joined.
fn hosts() -> [Place; 2] {
    let hosts = [host(), host()];
    let [near, far] = [&hosts[0].netns, &hosts[1].netns];
    sh(&["ip", "-n", near, "link", "add", "u", "type", "veth", "peer", "name", "u", "netns", far]);
    for (host, address) in hosts.iter().zip(HOSTS) {
        sh(&["ip", "-n", &host.netns, "addr", "add", &format!("{address}/24"), "dev", "u"]);
        sh(&["ip", "-n", &host.netns, "link", "set", "u", "up"]);
    }
    hosts
}

/// Starts the host's node; its switch has the guests at ports 1 and 2, the tunnel at port 9, and a VNI for each tenant.
fn start(host: &mut Place, number: usize) {
    host.start();
    host.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    for (guest, port) in [("r", "1"), ("b", "2")] {
        let netns = host.guest(guest);
        let tap = ["--type", "tap", "--number", port, "--interface", "eth0", "--netns", &netns];
        host.suiro(&[&["port", "add", "sw0", guest][..], &tap, &["--mtu", "1450"]].concat());
        host.address(guest, "eth0", &format!("10.0.0.{}/24", number + 1));
    }
    let tunnel = ["--type", "vxlan", "--number", TUNNEL, "--key", "flow", "--remote"];
    let made =
        host.suiro(&[&["port", "add", "sw0", "tun0"][..], &tunnel, &[HOSTS[1 - number]]].concat());
    assert!(made.contains("vni of each flow"), "{made}");
    for (port, vni) in [("1", "7"), ("2", "8")] {
        rule(host, &format!("in_port={port},actions=set_field:{vni}->tun_id,output:{TUNNEL}"));
        rule(host, &format!("in_port={TUNNEL},tun_id={vni},actions=output:{port}"));
    }
}

fn rule(host: &Place, text: &str) {
    host.suiro(&["flow", "add", "sw0", text]);
}

/// Frames of the switch that met no rule.
fn unmatched(host: &Place) -> u64 {
    let view = host.json(&["switch", "show", "sw0"]);
    let drops = view["drops"].as_array().unwrap();
    let of = |drop: &Value| drop["frames"].as_u64().unwrap();
    drops.iter().find(|drop| drop["reason"] == "no_match").map_or(0, of)
}

/// Frames that a guest's port sent it.
fn got(host: &Place, guest: &str) -> u64 {
    host.json(&["port", "show", "sw0", guest])["counters"]["tx_frames"].as_u64().unwrap()
}

#[test]
fn rules_keep_tenants_with_the_same_addresses_apart_on_one_tunnel() {
    if !privileged() {
        return;
    }
    let [mut near, mut far] = hosts();
    start(&mut near, 0);
    start(&mut far, 1);
    assert!(near.reaches("r", "10.0.0.2"), "{}\n{}", near.log(), far.log());
    assert_eq!(got(&far, "b"), 0, "the other tenant saw nothing of it");
    let before = got(&far, "r");
    assert!(near.reaches("b", "10.0.0.2"));
    assert_eq!(got(&far, "r"), before);
    let list = near.suiro(&["flow", "list", "sw0"]);
    assert!(
        list.contains("tun_id=0x7,in_port=tun0") || list.contains("tun_id=0x7,in_port=9"),
        "{list}"
    );
    assert!(list.contains("set_field:0x7->tun_id"), "{list}");
    // A VNI that no rule of the other host knows.
    assert_eq!(unmatched(&far), 0);
    rule(&near, &format!("in_port=1,actions=set_field:9->tun_id,output:{TUNNEL}"));
    assert!(!near.reaches("r", "10.0.0.2"));
    assert!(unmatched(&far) > 0, "dropped with its reason");
    assert!(near.reaches("b", "10.0.0.2"), "the other tenant lost nothing");
}

#[test]
fn a_vni_from_a_stranger_is_nobodys_and_said_to_be() {
    if !privileged() {
        return;
    }
    let [near, mut far] = hosts();
    start(&mut far, 1);
    sh(&["ip", "-n", &near.netns, "addr", "add", "192.0.2.9/24", "dev", "u"]);
    let datagram = "bytes([8,0,0,0,0,0,7,0])+bytes(60)";
    let script = format!(
        "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.bind(('192.0.2.9',0))\ns.sendto({datagram},('192.0.2.2',4789))"
    );
    sh(&["ip", "netns", "exec", &near.netns, "python3", "-c", &script]);
    let notes = || far.suiro(&["port", "show", "sw0", "tun0"]);
    until("the stray is counted", || notes().contains("1 datagrams came to UDP port 4789"));
    assert_eq!(unmatched(&far), 0);
}

#[test]
fn linux_has_an_interface_for_each_vni_of_one_tunnel() {
    if !privileged() {
        return;
    }
    let [mut near, far] = hosts();
    start(&mut near, 0);
    for (guest, vni) in [("r", "7"), ("b", "8")] {
        let name = format!("vx{vni}");
        let add = ["ip", "-n", &far.netns, "link", "add", &name, "type", "vxlan", "id", vni];
        sh(&[&add[..], &["remote", HOSTS[0], "local", HOSTS[1], "dstport", "4789"]].concat());
        let netns = far.guest(guest);
        sh(&["ip", "-n", &far.netns, "link", "set", &name, "netns", &netns, "name", "eth0"]);
        far.address(guest, "eth0", "10.0.0.2/24");
        sh(&["ip", "-n", &netns, "link", "set", "eth0", "up"]);
    }
    for guest in ["r", "b"] {
        let before = [got(&near, "r"), got(&near, "b")];
        assert!(near.reaches(guest, "10.0.0.2"), "{guest}: {}", near.log());
        let other = usize::from(guest == "r");
        assert_eq!([got(&near, "r"), got(&near, "b")][other], before[other], "{guest}'s alone");
    }
}

#[test]
fn rules_choose_the_other_end_of_one_tunnel_and_know_who_sent_what_also_after_a_restart() {
    if !privileged() {
        return;
    }
    let [mut near, mut far] = hosts();
    for (number, host) in [&mut near, &mut far].into_iter().enumerate() {
        host.start();
        host.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
        let netns = host.guest("r");
        let tap = ["--type", "tap", "--number", "1", "--interface", "eth0", "--netns", &netns];
        host.suiro(&[&["port", "add", "sw0", "r"][..], &tap, &["--mtu", "1450"]].concat());
        host.address("r", "eth0", &format!("10.0.0.{}/24", number + 1));
        let tunnel = ["--type", "vxlan", "--number", TUNNEL, "--key", "flow", "--remote", "flow"];
        let made = host.suiro(&[&["port", "add", "sw0", "tun0"][..], &tunnel].concat());
        assert!(made.contains("vxlan to the end of each flow"), "{made}");
        let other = HOSTS[1 - number];
        let there = format!("set_field:7->tun_id,set_field:{other}->tun_dst,output:{TUNNEL}");
        rule(host, &format!("in_port=1,actions={there}"));
        rule(host, &format!("in_port={TUNNEL},tun_src={other},tun_id=7,actions=output:1"));
    }
    assert!(near.reaches("r", "10.0.0.2"), "{}\n{}", near.log(), far.log());
    far.end(Signal::KILL);
    far.start();
    assert!(near.reaches("r", "10.0.0.2"), "{}", far.log());
    let list = far.suiro(&["flow", "list", "sw0"]);
    for part in ["tun_id=0x7,tun_src=192.0.2.1", "set_field:192.0.2.1->tun_dst"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    // An address that no rule of the other host knows, and none at all.
    sh(&["ip", "-n", &near.netns, "addr", "add", "192.0.2.9/32", "dev", "u"]);
    let source = ["route", "change", "192.0.2.0/24", "dev", "u", "src", "192.0.2.9"];
    sh(&[&["ip", "-n", &near.netns][..], &source].concat());
    assert!(!near.reaches("r", "10.0.0.2"));
    assert!(unmatched(&far) > 0, "from a stranger");
    rule(&near, &format!("in_port=1,actions=set_field:7->tun_id,output:{TUNNEL}"));
    assert!(!near.reaches("r", "10.0.0.2"));
    let shown = near.json(&["port", "show", "sw0", "tun0"]).to_string();
    assert!(shown.contains("\"tunnel_end\""), "{shown}");
    let refused = near.says(&["flow", "add", "sw0", "tun_src=192.0.2.0/24,actions=drop"]).err;
    assert!(refused.contains("a tunnel address under a mask"), "{refused}");
    let sealed =
        ["port", "add", "sw0", "tun1", "--type", "vxlan", "--remote", "flow", "--key", "7"];
    let refused = near.says(&[&sealed[..], &["--encrypt", "/etc/suiro/keys"]].concat()).err;
    assert!(refused.contains("give each end an encrypted port of its own"), "{refused}");
}
