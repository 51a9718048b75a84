//! Faucet, the release that PyPI has, runs a switch as its only controller: VLANs, ACLs, routing between VLANs in both families, a
//! change of its configuration, a link that goes and comes.
//!
//! Guests g1 and g2 are in VLAN `office` (10.0.1.0/24, fd00:1::/64), g3 and g4 in `lab` (10.0.2.0/24, fd00:2::/64), all untagged.
//! Besides they all have an address in 10.0.0.0/24, which no router knows: there a guest reaches those of its own VLAN only.

use crate::ofctl::set_link;
use acceptance::{Controller, Kind, Lab, Ofctl, inside, privileged, sh, until};
use std::io::ErrorKind;
use std::iter;
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};
use testbed::unbroken;

const GUESTS: [(&str, Kind); 4] =
    [("g1", Kind::Tap), ("g2", Kind::AfPacket), ("g3", Kind::AfXdp), ("g4", Kind::Tap)];
const CONFIGURATION: &str = include_str!("programs/faucet.yaml");
/// The port that the ACL closes, and one that it leaves open.
const CLOSED: u16 = 9999;
const OPEN: u16 = 9998;

/// How long Faucet may take to find a next hop.
const PATIENCE: Duration = Duration::from_secs(60);

/// VLAN of a guest as its addresses tell it, and its own number.
fn numbers(guest: &str) -> (u8, u8) {
    let number = guest[1..].parse().unwrap();
    (if number < 3 { 1 } else { 2 }, number)
}

fn v4(guest: &str) -> String {
    let (vlan, number) = numbers(guest);
    format!("10.0.{vlan}.{number}")
}

fn v6(guest: &str) -> String {
    let (vlan, number) = numbers(guest);
    format!("fd00:{vlan}::{number}")
}

/// The addresses of a guest in both families.
fn addresses(guest: &str) -> [String; 2] {
    [v4(guest), v6(guest)]
}

/// Addresses and default routes of both families, through Faucet's gateways.
fn join(lab: &Lab, guest: &str) {
    let (netns, (vlan, _)) = (lab.guest(guest), numbers(guest));
    let enable = "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6";
    sh(&["ip", "netns", "exec", &netns, "sh", "-c", enable]);
    lab.address(guest, "eth0", &format!("{}/24", v4(guest)));
    // Without duplicate address detection the address may be used at once.
    let address = format!("{}/64", v6(guest));
    sh(&["ip", "-n", &netns, "addr", "add", &address, "dev", "eth0", "nodad"]);
    for gateway in [format!("10.0.{vlan}.254"), format!("fd00:{vlan}::fe")] {
        sh(&["ip", "-n", &netns, "route", "add", "default", "via", &gateway]);
    }
}

/// A switch that does nothing by itself, its guests, and Faucet in charge of it as `hardware`.
fn under_faucet(hardware: &str) -> (Lab, Controller) {
    let guests = GUESTS.map(|(guest, _)| guest);
    let lab = Lab::running(&guests);
    let configuration = CONFIGURATION.replace("Open vSwitch", hardware);
    std::fs::write(lab.path("faucet.yaml"), configuration).unwrap();
    let controller = format!("tcp:{}", Controller::ADDRESS);
    lab.suiro(&["switch", "add", "sw0", "--dpid", "1", "--fail-mode", "secure"]);
    for (guest, kind) in GUESTS {
        lab.connect("sw0", guest, kind);
        join(&lab, guest);
    }
    assert!(lab.is_cut_off("g1", "g2"), "nobody has told the switch to forward");
    let faucet = Controller::start_faucet(&lab);
    lab.suiro(&["switch", "mod", "sw0", "--controller", &controller]);
    until("Faucet has configured the switch", || {
        faucet.output().contains("Configuring VLAN lab vid:200") && lab.talk("g1", "g2")
    });
    (lab, faucet)
}

#[track_caller]
/// Faucet looks for its next hops at its own pace, so a first answer may take a while.
fn assert_reaches(lab: &Lab, faucet: &Controller, from: &str, to: &str) {
    let deadline = Instant::now() + PATIENCE;
    let mut tries = iter::repeat_with(|| lab.reaches(from, to));
    assert!(
        tries.find(|&reached| reached || Instant::now() > deadline) == Some(true),
        "{from} does not reach {to}\n{}\n{}",
        faucet.output(),
        lab.log()
    );
}

#[test]
fn faucet_separates_vlans_routes_between_them_filters_and_follows_links() {
    if !privileged() {
        return;
    }
    let (lab, faucet) = under_faucet("Open vSwitch");
    vlans_are_separate(&lab, &faucet);
    gateways_route(&lab, &faucet);
    closed_is(&lab, CLOSED, OPEN);

    let turned = CONFIGURATION.replace(&CLOSED.to_string(), &OPEN.to_string());
    std::fs::write(lab.path("faucet.yaml"), turned).unwrap();
    faucet.reload();
    until("the switch has the new ACL", || {
        let flows = lab.json(&["flow", "list", "sw0", &format!("udp,tp_dst={OPEN}")]);
        !flows.as_array().unwrap().is_empty()
    });
    assert_reaches(&lab, &faucet, "g1", &v4("g2"));
    closed_is(&lab, OPEN, CLOSED);

    set_link(&lab, "g2", "down");
    until("Faucet hears of the link", || faucet.output().contains("Port 2 (2) down"));
    assert_reaches(&lab, &faucet, "g4", &v4("g1"));
    set_link(&lab, "g2", "up");
    until("g2 is back", || lab.talk("g1", "g2"));
    let said = faucet.output();
    assert!(!said.contains("OFError"), "Faucet was refused something:\n{said}");
}

#[test]
fn faucet_with_table_features_separates_and_routes_too() {
    if !privileged() {
        return;
    }
    let (lab, faucet) = under_faucet("GenericTFM");
    vlans_are_separate(&lab, &faucet);
    gateways_route(&lab, &faucet);
    closed_is(&lab, CLOSED, OPEN);
    // Faucet has named the tables that it uses, and had the others removed (OpenFlow 1.3.5 §7.3.5.5.1).
    let tables = Ofctl::management(&lab, "sw0").run("dump-table-features", &[]);
    let names = ["port_acl", "vlan", "eth_src", "ipv4_fib", "ipv6_fib", "eth_dst", "flood"];
    for name in names {
        assert!(tables.contains(&format!("(\"{name}\")")), "{name} is missing:\n{tables}");
    }
    assert!(!tables.contains("(\"table"), "one is left that Faucet did not name:\n{tables}");
    let said = faucet.output();
    assert!(!said.contains("OFError"), "Faucet was refused something:\n{said}");
}

fn vlans_are_separate(lab: &Lab, faucet: &Controller) {
    for (from, to) in [("g1", "g2"), ("g2", "g1"), ("g3", "g4"), ("g4", "g3")] {
        assert_reaches(lab, faucet, from, &Lab::ip(to));
        assert_reaches(lab, faucet, from, &v6(to));
    }
    for (from, to) in [("g1", "g3"), ("g2", "g4"), ("g4", "g1")] {
        assert!(lab.is_cut_off(from, to), "{from} reaches {to} across VLANs");
    }
}

fn gateways_route(lab: &Lab, faucet: &Controller) {
    for (from, to) in [("g1", "g3"), ("g2", "g4"), ("g3", "g2"), ("g4", "g1")] {
        for address in addresses(to) {
            assert_reaches(lab, faucet, from, &address);
        }
    }
}

/// Datagrams from g1 to `closed` are dropped and to `open` arrive, in both families, within the VLAN and routed; from g2 all arrive.
fn closed_is(lab: &Lab, closed: u16, open: u16) {
    for to in ["g2", "g3"].into_iter().flat_map(addresses) {
        let guest = if to.contains(":1:") || to.starts_with("10.0.1.") { "g2" } else { "g3" };
        assert!(!arrives(lab, "g1", guest, &to, [closed, open]), "{to} port {closed}");
    }
    for to in addresses("g1") {
        assert!(arrives(lab, "g2", "g1", &to, [closed, open]), "{to} port {closed}");
    }
}

/// Whether a datagram arrives at the first port, one sent later having arrived at the second.
fn arrives(lab: &Lab, from: &str, to: &str, address: &str, ports: [u16; 2]) -> bool {
    let address: IpAddr = address.parse().unwrap();
    let sockets =
        inside(&lab.guest(to), || ports.map(|port| UdpSocket::bind((address, port)).unwrap()));
    sockets[1].set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    inside(&lab.guest(from), || {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let sender = UdpSocket::bind(any).unwrap();
        for port in ports {
            sender.send_to(b"hello", (address, port)).unwrap();
        }
    });
    let mut bytes = [0; 9];
    assert_eq!(
        unbroken(|| sockets[1].recv(&mut bytes)).expect("the open port gets its datagram"),
        5
    );
    sockets[0].set_nonblocking(true).unwrap();
    match sockets[0].recv(&mut bytes) {
        Ok(length) => length == 5,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}
