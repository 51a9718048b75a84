//! Tunnels that suiro forwards itself, past the kernel: two hosts whose network cards are a switch's, with the host's own address on a TAP of it.

use crate::paths::transfer;
use crate::sealed::keys;
use acceptance::{Place, privileged, sh, until};
use rustix::process::Signal;
use serde_json::Value;

/// Two hosts' namespaces, each with a switch that has the card `u` and the TAP `host0`, and a switch with a guest; one node has all of them.
fn hosts() -> Place {
    let mut place = Place::new(&["h1", "h2", "g1", "g2"]);
    for netns in ["h1", "h2", "g1", "g2"] {
        let quiet = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6";
        let on = "echo 0 >/proc/sys/net/ipv6/conf/default/disable_ipv6";
        let word = if netns.starts_with('h') { on } else { quiet };
        sh(&["ip", "netns", "exec", &place.guest(netns), "sh", "-c", word]);
    }
    let [h1, h2] = ["h1", "h2"].map(|host| place.guest(host));
    sh(&["ip", "-n", &h1, "link", "add", "u", "type", "veth", "peer", "name", "u", "netns", &h2]);
    for host in [&h1, &h2] {
        sh(&["ip", "-n", host, "link", "set", "u", "up"]);
    }
    place.start();
    for host in ["1", "2"] {
        let [netns, guest] = ["h", "g"].map(|kind| place.guest(&format!("{kind}{host}")));
        let [wan, switch] = ["wan", "sw"].map(|name| format!("{name}{host}"));
        place.suiro(&["switch", "add", &wan]);
        let card = ["--type", "af_xdp", "--interface", "u", "--netns", &netns];
        place.suiro(&[&["port", "add", &wan, "card"][..], &card].concat());
        host_tap(&place, host);
        place.suiro(&["switch", "add", &switch]);
        let tap = ["--type", "tap", "--interface", "eth0", "--netns", &guest, "--mtu", "1370"];
        place.suiro(&[&["port", "add", &switch, "guest"][..], &tap].concat());
        place.address(&format!("g{host}"), "eth0", &format!("10.0.0.{host}/24"));
    }
    place
}

/// The host's own way in and out, with its addresses.
fn host_tap(place: &Place, host: &str) {
    let (netns, name) = (place.guest(&format!("h{host}")), format!("h{host}"));
    let tap = ["--type", "tap", "--interface", "host0", "--netns", &netns];
    place.suiro(&[&["port", "add", &format!("wan{host}"), "host"][..], &tap].concat());
    place.address(&name, "host0", &format!("192.0.2.{host}/24"));
    let v6 = format!("2001:db8::{host}/64");
    sh(&["ip", "-n", &netns, "addr", "add", &v6, "dev", "host0", "nodad"]);
}

fn tunnel(place: &Place, host: &str, remote: &str, options: &[&str]) -> String {
    let netns = place.guest(&format!("h{host}"));
    let (switch, remote) =
        (format!("sw{host}"), format!("{remote}{}", 3 - host.parse::<u8>().unwrap()));
    let add = ["port", "add", &switch, "tun0", "--type", "vxlan", "--netns", &netns];
    let ends = ["--remote", &remote, "--key", "7"];
    place.suiro(&[&add[..], &ends, options].concat())
}

fn ping(place: &Place, options: &[&str]) {
    let ping = ["ip", "netns", "exec", &place.guest("g1"), "ping", "-q", "-i", "0.01", "-W", "5"];
    sh(&[&ping[..], options, &["10.0.0.2"]].concat());
}

/// Packets that went past the kernel and through it, and why they go through it now.
fn forwarding(place: &Place, host: &str) -> (u64, u64, Option<String>) {
    let shown = place.json(&["port", "show", &format!("sw{host}"), "tun0"]);
    let Value::Object(own) = &shown["forwarding"] else { panic!("{shown}") };
    let count = |key: &str| own[key].as_u64().unwrap();
    (count("past"), count("through"), own["hindrance"].as_str().map(ToOwned::to_owned))
}

/// Packets that the kernel of a host and its TAP gave each other.
fn by_the_kernel(place: &Place, host: &str) -> u64 {
    let netns = place.guest(&format!("h{host}"));
    let words = ["-n", &netns, "-s", "-j", "link", "show", "host0"];
    let output = std::process::Command::new("ip").args(words).output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packets = |way: &str| shown[0]["stats64"][way]["packets"].as_u64().unwrap();
    packets("rx") + packets("tx")
}

/// Guests talk, in frames of all sizes and in a stream, of which the kernel sees next to nothing.
fn talk(place: &Place) {
    ping(place, &["-c", "5"]);
    let before = by_the_kernel(place, "1") + by_the_kernel(place, "2");
    ping(place, &["-c", "100"]);
    ping(place, &["-c", "20", "-s", "1300", "-M", "do"]);
    // Beyond the guest's MTU: fragments inside.
    ping(place, &["-c", "20", "-s", "4000"]);
    transfer(place, ["g1", "g2"], "10.0.0.2", 8 << 20);
    transfer(place, ["g2", "g1"], "10.0.0.1", 8 << 20);
    let seen = by_the_kernel(place, "1") + by_the_kernel(place, "2") - before;
    assert!(seen < 100, "the kernel saw {seen} of them");
    for host in ["1", "2"] {
        let (past, through, hindrance) = forwarding(place, host);
        assert!(past > 3000 && through < 50, "host {host}: {past} past, {through} through");
        assert_eq!(hindrance, None);
    }
}

#[test]
fn guests_talk_past_the_kernel_over_ipv4_and_ipv6_with_and_without_checksums_and_encrypted() {
    if !privileged() {
        return;
    }
    let mut place = hosts();
    keys(&place, &[(1, ""), (2, "")]);
    let ways: [(&str, &[&str]); 3] = [
        ("192.0.2.", &[]),
        ("192.0.2.", &["--outer-checksum", "off", "--queues", "3"]),
        ("2001:db8::", &[]),
    ];
    for (remote, options) in ways {
        for host in ["1", "2"] {
            let made = tunnel(&place, host, remote, &[&["--forwarding", "own"], options].concat());
            assert!(made.contains("vni 7, past the kernel"), "{made}");
        }
        talk(&place);
        for switch in ["sw1", "sw2"] {
            place.suiro(&["port", "del", switch, "tun0"]);
        }
    }
    for host in ["1", "2"] {
        let file = place.path(&format!("keys{host}")).display().to_string();
        tunnel(&place, host, "192.0.2.", &["--forwarding", "own", "--encrypt", &file]);
    }
    talk(&place);
    place.end(Signal::KILL);
    place.start();
    until("all ports are back", || place.log().matches("open, vxlan").count() >= 10);
    talk(&place);
    let shown = place.suiro(&["port", "show", "sw1", "tun0"]);
    assert!(shown.contains("packets sent past the kernel"), "{shown}");
}

#[test]
fn the_other_end_may_go_through_its_kernel_which_verifies_what_it_gets() {
    if !privileged() {
        return;
    }
    for remote in ["192.0.2.", "2001:db8::"] {
        let place = hosts();
        tunnel(&place, "1", remote, &["--forwarding", "own"]);
        tunnel(&place, "2", remote, &["--forwarding", "kernel"]);
        ping(&place, &["-c", "20"]);
        ping(&place, &["-c", "20", "-s", "4000"]);
        transfer(&place, ["g1", "g2"], "10.0.0.2", 4 << 20);
        transfer(&place, ["g2", "g1"], "10.0.0.1", 4 << 20);
        let (past, through, _) = forwarding(&place, "1");
        assert!(past > 1000 && through < 50, "{past} past, {through} through");
        assert!(by_the_kernel(&place, "2") > 1000);
    }
}

#[test]
fn what_only_the_kernel_can_do_it_does_and_the_user_is_told() {
    if !privileged() {
        return;
    }
    let place = hosts();
    let h1 = place.guest("h1");
    let made = tunnel(&place, "1", "192.0.2.", &["--forwarding", "own"]);
    assert!(
        made.contains("packets go through the kernel: 192.0.2.2 on host0 has not answered"),
        "{made}"
    );
    tunnel(&place, "2", "192.0.2.", &["--forwarding", "own"]);
    until("the guests reach each other", || place.reaches("g1", "10.0.0.2"));
    until("the neighbour is known", || forwarding(&place, "1").2.is_none());
    // The host's own traffic still is the kernel's.
    sh(&["ip", "netns", "exec", &h1, "ping", "-q", "-c", "2", "-i", "0.1", "-W", "5", "192.0.2.2"]);
    // A path that takes less: the guest is told, as without this.
    sh(&["ip", "-n", &h1, "route", "change", "192.0.2.0/24", "dev", "host0", "mtu", "1300"]);
    let too_long = [
        "netns",
        "exec",
        &place.guest("g1"),
        "ping",
        "-c",
        "3",
        "-i",
        "0.1",
        "-W",
        "5",
        "-M",
        "do",
        "-s",
        "1300",
        "10.0.0.2",
    ];
    until("the guest is told of the path", || {
        let output = std::process::Command::new("ip").args(too_long).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("mtu = 1250")
            || String::from_utf8_lossy(&output.stderr).contains("mtu=1250")
    });
    ping(&place, &["-c", "20", "-s", "1200", "-M", "do"]);
    // A route by an interface that is none of ours, and back.
    sh(&["ip", "-n", &h1, "link", "add", "other", "type", "veth", "peer", "name", "end"]);
    sh(&["ip", "-n", &h1, "link", "set", "other", "up"]);
    let neighbour = ["neigh", "add", "192.0.2.2", "lladdr", "02:00:00:00:00:09", "dev", "other"];
    sh(&[&["ip", "-n", &h1][..], &neighbour].concat());
    sh(&["ip", "-n", &h1, "route", "add", "192.0.2.2/32", "dev", "other"]);
    let words = |wanted: &str| forwarding(&place, "1").2.is_some_and(|why| why.contains(wanted));
    until("the other way is seen", || words("leaves by other, which is no TAP of a switch here"));
    sh(&["ip", "-n", &h1, "link", "del", "other"]);
    until("the way is free again", || forwarding(&place, "1").2.is_none());
    ping(&place, &["-c", "5"]);
    // Without the TAP there is no way at all; with it the old one.
    place.suiro(&["port", "del", "wan1", "host"]);
    until("the way is gone", || forwarding(&place, "1").2.is_some());
    host_tap(&place, "1");
    until("the way is there again", || {
        let told = place.reaches("g1", "10.0.0.2");
        told && forwarding(&place, "1").2.is_none()
    });
    let before = forwarding(&place, "1");
    ping(&place, &["-c", "50"]);
    let after = forwarding(&place, "1");
    assert!(after.0 >= before.0 + 50 && after.1 == before.1, "{before:?}, {after:?}");
    let refused = place.says(&[
        "port",
        "add",
        "sw1",
        "tun1",
        "--type",
        "vxlan",
        "--remote",
        "flow",
        "--key",
        "flow",
        "--forwarding",
        "own",
    ]);
    assert!(
        refused.code == 1 && refused.err.contains("one other end and one VNI"),
        "{}",
        refused.err
    );
}
