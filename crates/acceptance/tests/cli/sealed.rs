//! Encrypted tunnels as their user makes them: two hosts, keys in files, a restart, a change of keys, and what is refused.

use acceptance::{Place, privileged, sh, until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{Permissions, set_permissions, write};
use std::os::unix::fs::PermissionsExt;

/// Two hosts' namespaces, joined, a guest on each, and one node with the switches of both.
fn hosts() -> Place {
    let mut place = Place::new(&["h1", "h2", "g1", "g2"]);
    let [h1, h2] = ["h1", "h2"].map(|host| place.guest(host));
    sh(&["ip", "-n", &h1, "link", "add", "u", "type", "veth", "peer", "name", "u", "netns", &h2]);
    place.start();
    for host in ["1", "2"] {
        let (netns, switch) = (place.guest(&format!("h{host}")), format!("sw{host}"));
        sh(&["ip", "-n", &netns, "addr", "add", &format!("192.0.2.{host}/24"), "dev", "u"]);
        sh(&["ip", "-n", &netns, "link", "set", "u", "up"]);
        let guest = place.guest(&format!("g{host}"));
        place.suiro(&["switch", "add", &switch]);
        let tap = ["--interface", "eth0", "--netns", &guest, "--mtu", "1400"];
        place.suiro(&[&["port", "add", &switch, "guest", "--type", "tap"][..], &tap].concat());
        place.address(&format!("g{host}"), "eth0", &format!("10.0.0.{host}/24"));
    }
    place
}

/// Writes both ends' files: each of these numbers is a pair of SAs, with what else its table says.
pub fn keys(place: &Place, pairs: &[(u32, &str)]) {
    for (host, out, back) in [("1", "out", "in"), ("2", "in", "out")] {
        let table = |(number, more): &(u32, &str)| {
            let key = |salt: u32| format!("{:08x}", number << 8 | salt).repeat(9);
            let (one, two) = (0x1000 + number, 0x2000 + number);
            format!(
                "[[sa]]\nspi_{out} = {one}\nspi_{back} = {two}\nkey_{out} = \"{}\"\nkey_{back} = \"{}\"\n{more}\n",
                key(1),
                key(2)
            )
        };
        let path = place.path(&format!("keys{host}"));
        write(&path, pairs.iter().map(table).collect::<String>()).unwrap();
        set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }
}

/// The tunnel's end on a host.
fn tunnel(place: &Place, host: &str) -> Vec<String> {
    let remote = if host == "1" { "192.0.2.2" } else { "192.0.2.1" };
    let file = place.path(&format!("keys{host}")).display().to_string();
    let netns = place.guest(&format!("h{host}"));
    let words = ["port", "add", &format!("sw{host}"), "tun0", "--type", "vxlan", "--netns", &netns];
    let more = ["--remote", remote, "--key", "7", "--encrypt", &file];
    words.iter().chain(&more).map(ToString::to_string).collect()
}

fn ping(place: &Place) {
    let netns = place.guest("g1");
    sh(&["ip", "netns", "exec", &netns, "ping", "-c", "3", "-i", "0.1", "-W", "5", "10.0.0.2"]);
}

/// The SAs of the end on host 1: direction, SPI, packets.
fn sas(place: &Place) -> Vec<(String, u64, u64)> {
    let shown = place.json(&["port", "show", "sw1", "tun0"]);
    let number = |value: &Value| value.as_u64().unwrap();
    let sa = |sa: &Value| {
        (sa["direction"].as_str().unwrap().into(), number(&sa["spi"]), number(&sa["packets"]))
    };
    shown["sas"].as_array().unwrap().iter().map(sa).collect()
}

#[test]
fn guests_talk_over_an_encrypted_tunnel_also_after_a_crash_and_while_keys_change() {
    if !privileged() {
        return;
    }
    let mut place = hosts();
    keys(&place, &[(1, "")]);
    for host in ["1", "2"] {
        let words = tunnel(&place, host);
        let made = place.suiro(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(made.contains("esp transport mode, SAs: 1 out, 1 in"), "{made}");
    }
    ping(&place);
    let shown = place.suiro(&["port", "show", "sw1", "tun0"]);
    for words in
        ["SA out 0x00001001", "SA in  0x00002001", "refused: 0 replayed", "MTU         1408"]
    {
        assert!(shown.contains(words), "{shown}");
    }
    assert!(!shown.contains("0000010100000101") && !place.log().contains("0000010100000101"));
    let before = sas(&place);
    assert!(before.iter().all(|(_, _, packets)| *packets >= 3), "{before:?}");
    place.end(Signal::KILL);
    place.start();
    until("the tunnels are back", || place.log().matches("port tun0 of switch").count() >= 4);
    ping(&place);
    // New keys: received by both first, by a command or a signal; then sent with; then the old ones go.
    for pairs in [
        &[(1, ""), (2, "receive_only = true")][..],
        &[(1, "receive_only = true"), (2, "")],
        &[(2, "")],
    ] {
        keys(&place, pairs);
        place.suiro(&["port", "mod", "sw1", "tun0", "--rekey"]);
        place.signal(Signal::HUP);
        let last = format!("{} in", pairs.len());
        let has_read = || {
            place.json(&["port", "show", "sw2", "tun0"])["mode"].as_str().unwrap().contains(&last)
        };
        until("the other end has read its keys", has_read);
        ping(&place);
    }
    until("SIGHUP is done", || place.log().matches("the configuration is read again").count() == 3);
    ping(&place);
    let after = sas(&place);
    let ends: Vec<_> = after.iter().map(|(direction, spi, _)| (&**direction, *spi)).collect();
    assert_eq!(ends, [("out", 0x1002), ("in", 0x2002)]);
    assert!(after.iter().all(|(_, _, packets)| *packets >= 3), "{after:?}");
    let drops = &place.json(&["port", "show", "sw1", "tun0"])["counters"]["rx_drops"];
    assert_eq!(drops.as_array().unwrap().len(), 0, "{drops}");
}

#[test]
fn keys_that_others_may_read_and_files_that_are_wrong_are_refused_with_their_remedy() {
    if !privileged() {
        return;
    }
    let place = hosts();
    keys(&place, &[(1, "")]);
    let words = tunnel(&place, "1");
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let file = place.path("keys1");
    let refused = |cause: &str, remedy: &str| {
        let said = place.says(&words);
        assert!(
            said.code == 1 && said.err.contains(cause) && said.err.contains(remedy),
            "{}",
            said.err
        );
    };
    set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    refused("others may read or write it (mode 640)", "chmod 600");
    set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    write(&file, "[[sa]]\nspi_in = 7\n").unwrap();
    refused("line 2: `spi_in` is no SPI", "choose a number from 256");
    std::fs::remove_file(&file).unwrap();
    refused("No such file", "");
    let relative = place.says(&["port", "add", "sw1", "t", "--type", "vxlan", "--encrypt", "keys"]);
    assert!(relative.code == 2 && relative.err.contains("absolute path"), "{}", relative.err);
    let on_a_tap = place.says(&["port", "add", "sw1", "t", "--type", "tap", "--encrypt", "/k"]);
    assert!(
        on_a_tap.err.contains("`encrypt` means nothing on a port of type tap"),
        "{}",
        on_a_tap.err
    );
}
