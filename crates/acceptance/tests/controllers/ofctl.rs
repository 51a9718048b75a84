//! `ovs-ofctl -O OpenFlow13`, over TCP and over the management socket, against a switch whose guests talk.

use crate::{GUESTS, connect_all};
use acceptance::{Lab, Ofctl, inside, privileged, received, sh, until};
use std::net::UdpSocket;
use std::time::Duration;
use testbed::unbroken;

const TCP: u16 = 6654;

/// A switch with three guests that forwards by its rule, not by itself.
pub fn lab() -> Lab {
    let lab = Lab::running(&GUESTS);
    let listen = format!("ptcp:{TCP}:127.0.0.1");
    lab.suiro(&["switch", "add", "sw0", "--fail-mode", "secure", "--listen", &listen]);
    connect_all(&lab, "sw0");
    lab.suiro(&["flow", "add", "sw0", "priority=1,actions=NORMAL"]);
    assert!(lab.talk("g1", "g2") && lab.talk("g1", "g3"), "{}", lab.log());
    lab
}

/// Runs a check over each transport.
pub fn over_both(lab: &Lab, check: impl Fn(&Lab, &Ofctl<'_>)) {
    check(lab, &Ofctl::management(lab, "sw0"));
    check(lab, &Ofctl::tcp(lab, TCP));
}

#[test]
fn ovs_ofctl_blocks_unblocks_sets_ports_down_sends_and_watches_packets() {
    if !privileged() {
        return;
    }
    let lab = lab();
    over_both(&lab, |lab, ofctl| {
        a_drop_rule_blocks_until_it_is_deleted(lab, ofctl);
        a_port_set_down_is_dead_until_it_is_up(lab, ofctl);
        a_packet_out_arrives(lab, ofctl);
        a_monitor_receives_packet_ins(lab, ofctl);
        what_cannot_be_is_refused_by_its_code(lab, ofctl);
    });
}

pub fn a_drop_rule_blocks_until_it_is_deleted(lab: &Lab, ofctl: &Ofctl<'_>) {
    let (matching, to) = (format!("icmp,in_port=1,nw_dst={}", Lab::ip("g2")), "g2");
    ofctl.run("add-flow", &[&format!("priority=100,{matching},actions=drop")]);
    assert_eq!(lab.exchange("g1", to, 5), 0);
    assert_eq!(lab.exchange("g1", "g3", 5), 5, "only what the rule names is blocked");
    let dump = ofctl.run("dump-flows", &[&matching]);
    assert!(dump.contains("n_packets=5, n_bytes=490, priority=100"), "{dump}");
    ofctl.run("del-flows", &[&matching]);
    assert_eq!(lab.exchange("g1", to, 5), 5);
}

pub fn a_port_set_down_is_dead_until_it_is_up(lab: &Lab, ofctl: &Ofctl<'_>) {
    for (port, guest) in [("1", "g1"), ("2", "g2"), ("3", "g3")] {
        let other = if guest == "g1" { "g3" } else { "g1" };
        ofctl.run("mod-port", &[port, "down"]);
        assert!(lab.is_cut_off(guest, other) && lab.is_cut_off(other, guest), "port {port}");
        let shown = ofctl.run("show", &[]);
        assert!(shown.contains("PORT_DOWN"), "{shown}");
        ofctl.run("mod-port", &[port, "up"]);
        until("the port is up", || lab.exchange(other, guest, 1) == 1);
        assert_eq!(lab.exchange(guest, other, 5), 5, "port {port}");
    }
}

/// One UDP datagram from nobody to g2's port 5000, as hexadecimal digits; the kernel needs a right IPv4 checksum.
fn datagram(text: &[u8]) -> String {
    let mut ip =
        [0x45, 0, 0, 28 + text.len() as u8, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 77, 10, 0, 0, 2];
    let sum: u32 = ip.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let ethernet = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 77, 8, 0];
    let udp = [0x13, 0x88, 0x13, 0x88, 0, 8 + text.len() as u8, 0, 0];
    let frame = [&ethernet[..], &ip, &udp, text].concat();
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn a_packet_out_arrives(lab: &Lab, ofctl: &Ofctl<'_>) {
    let text = b"a datagram that a controller made";
    let packet = format!("in_port=controller packet={} actions=output:2", datagram(text));
    inside(&lab.guest("g2"), || {
        let socket = UdpSocket::bind("10.0.0.2:5000").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        ofctl.run("packet-out", &[&packet]);
        let mut found = [0; 100];
        let (length, from) =
            unbroken(|| socket.recv_from(&mut found)).expect("the datagram arrives");
        assert_eq!((&found[..length], from.ip().to_string().as_str()), (&text[..], "10.0.0.77"));
    });
}

fn a_monitor_receives_packet_ins(lab: &Lab, ofctl: &Ofctl<'_>) {
    ofctl.run("add-flow", &["priority=100,icmp,in_port=3,actions=CONTROLLER:65535"]);
    let monitor = ofctl.monitor();
    until("the monitor hears of a ping", || {
        lab.exchange("g3", "g2", 1);
        monitor.output().contains("OFPT_PACKET_IN")
    });
    let heard = monitor.output();
    for part in ["in_port=3", "(via action)", "icmp", "dl_src=02:00:00:00:00:03"] {
        assert!(heard.contains(part), "{part} is missing:\n{heard}");
    }
    ofctl.run("del-flows", &["icmp,in_port=3"]);
}

fn what_cannot_be_is_refused_by_its_code(lab: &Lab, ofctl: &Ofctl<'_>) {
    for (verb, rule, code) in [
        ("add-flow", "actions=output:4294967041", "OFPBAC_BAD_OUT_PORT"),
        ("add-flow", "actions=group:77", "OFPBAC_BAD_OUT_GROUP"),
        ("add-flow", "actions=meter:77", "OFPMMFC_UNKNOWN_METER"),
        ("add-group", "group_id=9,type=all,bucket=group:78", "OFPBAC_BAD_OUT_GROUP"),
    ] {
        let said = ofctl.says(verb, &[rule]);
        assert!(said.err.contains(code), "{verb} {rule}: {}{}", said.out, said.err);
    }
    assert_eq!(lab.exchange("g1", "g2", 2), 2);
}

/// A guest's cable is pulled and put back.
pub fn set_link(lab: &Lab, guest: &str, state: &str) {
    sh(&["ip", "-n", &lab.guest(guest), "link", "set", "eth0", state]);
}

/// Frames that reach each of g2 and g3 while `act` runs, once they have stopped coming.
pub fn reached(lab: &Lab, act: impl FnOnce()) -> (u64, u64) {
    let count = || (received(lab, "g2"), received(lab, "g3"));
    let before = count();
    act();
    let mut last = count();
    until("no frame is on its way", || {
        std::thread::sleep(Duration::from_millis(50));
        std::mem::replace(&mut last, count()) == last
    });
    (last.0 - before.0, last.1 - before.1)
}
