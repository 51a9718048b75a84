//! Two hosts joined by tunnels, as their user makes them: tenants with the same addresses, a crash, and what is refused.

use acceptance::{Place, privileged, sh, until};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;

/// The hosts' namespaces `h1` and `h2`, joined, and one guest of each of two tenants on each. One node has the switches of both hosts: a
/// tunnel goes out from the namespace that it is told.
pub fn hosts() -> Place {
    let mut place = Place::new(&["h1", "h2", "r1", "r2", "b1", "b2"]);
    // Guests say nothing by themselves: what a port sent is what it was asked to.
    for guest in ["r1", "r2", "b1", "b2"] {
        let quiet = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6";
        sh(&["ip", "netns", "exec", &place.guest(guest), "sh", "-c", quiet]);
    }
    let [h1, h2] = ["h1", "h2"].map(|host| place.guest(host));
    sh(&["ip", "-n", &h1, "link", "add", "u", "type", "veth", "peer", "name", "u", "netns", &h2]);
    for (host, address) in [(&h1, "192.0.2.1/24"), (&h2, "192.0.2.2/24")] {
        sh(&["ip", "-n", host, "addr", "add", address, "dev", "u"]);
        sh(&["ip", "-n", host, "link", "set", "u", "up"]);
    }
    place.start();
    for (tenant, key, sums) in [("r", "7", "on"), ("b", "8", "off")] {
        for (host, remote) in [("1", "192.0.2.2"), ("2", "192.0.2.1")] {
            let (switch, guest) = (format!("{tenant}-sw{host}"), format!("{tenant}{host}"));
            place.suiro(&["switch", "add", &switch]);
            let tap = ["--interface", "eth0", "--netns", &place.guest(&guest), "--mtu", "1450"];
            place.suiro(&[&["port", "add", &switch, "guest", "--type", "tap"][..], &tap].concat());
            let options = ["--remote", remote, "--key", key, "--outer-checksum", sums];
            tunnel(&place, &switch, "tun0", host, &options);
            let address = format!("10.0.0.{host}/24");
            place.address(&guest, "eth0", &address);
        }
    }
    place
}

pub fn tunnel(place: &Place, switch: &str, name: &str, host: &str, options: &[&str]) -> String {
    let netns = place.guest(&format!("h{host}"));
    let add = ["port", "add", switch, name, "--type", "vxlan", "--netns", &netns];
    place.suiro(&[&add[..], options].concat())
}

pub fn reaches(place: &Place, guest: &str, options: &[&str]) {
    let ping =
        ["ip", "netns", "exec", &place.guest(guest), "ping", "-c", "2", "-i", "0.1", "-W", "5"];
    sh(&[&ping[..], options, &["10.0.0.2"]].concat());
}

/// Frames that a port sent.
fn sent(place: &Place, switch: &str, port: &str) -> Value {
    place.json(&["port", "show", switch, port])["counters"]["tx_frames"].clone()
}

#[test]
fn tenants_with_the_same_addresses_reach_their_own_guests_on_another_host() {
    if !privileged() {
        return;
    }
    let mut place = hosts();
    reaches(&place, "r1", &[]);
    assert_eq!(sent(&place, "b-sw2", "guest"), 0, "the other tenant saw nothing of it");
    reaches(&place, "b1", &["-s", "1400", "-M", "do"]);
    let shown = place.suiro(&["port", "show", "r-sw1", "tun0"]);
    for words in ["vxlan to 192.0.2.2, vni 7", "MTU         1450"] {
        assert!(shown.contains(words), "{shown}");
    }
    place.end(Signal::KILL);
    place.start();
    until("the tunnels are back", || place.log().matches("port tun0 of switch").count() >= 8);
    reaches(&place, "r1", &[]);
    reaches(&place, "b1", &[]);
    for switch in ["r-sw1", "r-sw2", "b-sw1", "b-sw2"] {
        place.suiro(&["port", "del", switch, "tun0"]);
    }
    let sockets =
        Command::new("ip").args(["netns", "exec", &place.guest("h1"), "ss", "-Hlun"]).output();
    assert_eq!(String::from_utf8_lossy(&sockets.unwrap().stdout), "", "no socket is left");
}

/// The state of a port's link and its notes.
fn link(place: &Place, switch: &str, port: &str) -> (bool, String) {
    let view = place.json(&["port", "show", switch, port]);
    (view["carrier"] == true, view["notes"].to_string())
}

#[test]
fn addresses_of_one_link_are_an_end_also_of_an_interface_that_is_made_anew() {
    if !privileged() {
        return;
    }
    let mut place = hosts();
    let [h1, h2] = ["h1", "h2"].map(|host| place.guest(host));
    let on_link = |netns: &str, address: &str| {
        sh(&["ip", "-n", netns, "addr", "add", address, "dev", "u", "nodad"]);
    };
    on_link(&h1, "fe80::1/64");
    on_link(&h2, "fe80::2/64");
    for (switch, host, remote) in [("r-sw1", "1", "fe80::2%u"), ("r-sw2", "2", "fe80::1%u")] {
        place.suiro(&["port", "del", switch, "tun0"]);
        tunnel(&place, switch, "tun0", host, &["--remote", remote, "--key", "7"]);
    }
    reaches(&place, "r1", &[]);
    let refused =
        place.says(&["port", "add", "r-sw1", "t", "--type", "vxlan", "--remote", "fe80::9"]);
    assert!(refused.err.contains("fe80::1%eth0"), "{}", refused.err);
    place.end(Signal::KILL);
    place.start();
    reaches(&place, "r1", &[]);
    sh(&["ip", "-n", &h1, "link", "del", "u"]);
    until("it has no link", || !link(&place, "r-sw1", "tun0").0);
    let (_, notes) = link(&place, "r-sw1", "tun0");
    assert!(notes.contains("packets leave by u, which is gone"), "{notes}");
    sh(&["ip", "-n", &h1, "link", "add", "u", "type", "veth", "peer", "name", "u", "netns", &h2]);
    for (netns, address) in [(&h1, "fe80::1/64"), (&h2, "fe80::2/64")] {
        on_link(netns, address);
        sh(&["ip", "-n", netns, "link", "set", "u", "up"]);
    }
    until("both ends have links", || {
        [("r-sw1", "tun0"), ("r-sw2", "tun0")]
            .iter()
            .all(|(switch, port)| link(&place, switch, port).0)
    });
    reaches(&place, "r1", &[]);
}

#[test]
fn a_tunnel_has_no_link_while_the_interface_of_its_route_has_none() {
    if !privileged() {
        return;
    }
    let place = hosts();
    let h2 = place.guest("h2");
    assert_eq!(link(&place, "r-sw1", "tun0"), (true, "[]".into()));
    sh(&["ip", "-n", &h2, "link", "set", "u", "down"]);
    until("the other end's card is off", || !link(&place, "r-sw1", "tun0").0);
    let (_, notes) = link(&place, "r-sw1", "tun0");
    assert!(notes.contains("packets leave by u, which has no carrier"), "{notes}");
    sh(&["ip", "-n", &h2, "link", "set", "u", "up"]);
    until("it is on again", || link(&place, "r-sw1", "tun0").0);
    reaches(&place, "r1", &[]);
}

#[test]
fn what_a_tunnel_cannot_have_is_refused_with_its_remedy() {
    if !privileged() {
        return;
    }
    let place = hosts();
    let refused = |switch: &str, options: &[&str]| {
        let netns = place.guest("h1");
        let add = ["port", "add", switch, "tun1", "--type", "vxlan", "--netns", &netns];
        let said = place.says(&[&add[..], options].concat());
        assert_eq!(said.code, 1, "{}", said.err);
        said.err
    };
    let same = refused("r-sw1", &["--remote", "192.0.2.2", "--key", "8"]);
    assert!(same.contains("another port has VNI 8 of 192.0.2.2"), "{same}");
    assert!(same.contains("choose another key, or delete the other port"), "{same}");
    let keyless = refused("r-sw1", &["--remote", "192.0.2.2"]);
    assert!(keyless.contains("a tunnel needs its VNI"), "{keyless}");
    let mixed =
        refused("r-sw1", &["--remote", "192.0.2.2", "--local", "2001:db8::1", "--key", "9"]);
    assert!(mixed.contains("addresses of two families"), "{mixed}");
    let far = tunnel(&place, "r-sw1", "tun1", "1", &["--remote", "203.0.113.9", "--key", "9"]);
    assert!(far.contains("note: no route to 203.0.113.9"), "{far}");
}
