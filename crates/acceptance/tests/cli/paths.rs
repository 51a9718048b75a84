//! Guests with an MTU of 1500 on two hosts between which, behind a router, the path takes less: real TCP finds its way.

use acceptance::{Place, privileged, sh, until};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Bytes each way: far more than fit in buffers on the way.
const BYTES: usize = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// Host `h1` – router `m1` – router `m2` – host `h2`, with guests `a` and `b`. The MTU is 1400 between the routers, which alone know it.
fn hosts(is_v6: bool, options: &[&str]) -> Place {
    let mut place = Place::new(&["h1", "m1", "m2", "h2", "a", "b"]);
    link(
        &place,
        ("h1", "2001:db8:1::1/64", "192.0.2.1/24"),
        ("m1", "2001:db8:1::f/64", "192.0.2.254/24"),
        "1500",
    );
    link(
        &place,
        ("m1", "2001:db8:2::1/64", "203.0.113.1/24"),
        ("m2", "2001:db8:2::2/64", "203.0.113.2/24"),
        "1400",
    );
    link(
        &place,
        ("m2", "2001:db8:3::f/64", "198.51.100.254/24"),
        ("h2", "2001:db8:3::1/64", "198.51.100.1/24"),
        "1500",
    );
    for (place_name, via) in [
        ("h1", ["2001:db8:1::f", "192.0.2.254"]),
        ("m1", ["2001:db8:2::2", "203.0.113.2"]),
        ("m2", ["2001:db8:2::1", "203.0.113.1"]),
        ("h2", ["2001:db8:3::f", "198.51.100.254"]),
    ] {
        let netns = place.guest(place_name);
        via.iter().for_each(|via| sh(&["ip", "-n", &netns, "route", "add", "default", "via", via]));
    }
    place.start();
    let remotes =
        if is_v6 { ["2001:db8:3::1", "2001:db8:1::1"] } else { ["198.51.100.1", "192.0.2.1"] };
    for (host, guest, remote) in [("h1", "a", remotes[0]), ("h2", "b", remotes[1])] {
        place.suiro(&["switch", "add", host]);
        let tap = ["--interface", "eth0", "--netns", &place.guest(guest)];
        place.suiro(&[&["port", "add", host, "guest", "--type", "tap"][..], &tap].concat());
        let tunnel = ["--remote", remote, "--key", "7", "--netns", &place.guest(host)];
        let add = ["port", "add", host, "tun0", "--type", "vxlan"];
        place.suiro(&[&add[..], &tunnel, options].concat());
    }
    for (guest, host) in [("a", "1"), ("b", "2")] {
        address(&place, guest, "eth0", &format!("fd00::{host}/64"));
        address(&place, guest, "eth0", &format!("10.0.0.{host}/24"));
    }
    place
}

/// Joins two places by a veth, whose ends are named after each other.
fn link(place: &Place, one: (&str, &str, &str), two: (&str, &str, &str), mtu: &str) {
    let [first, second] = [one.0, two.0].map(|name| place.guest(name));
    let veth = ["type", "veth", "peer", "name", one.0, "mtu", mtu, "netns", &second];
    sh(&[&["ip", "-n", &first, "link", "add", two.0, "mtu", mtu][..], &veth].concat());
    for ((here, v6, v4), there) in [(one, two.0), (two, one.0)] {
        let forward =
            "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding";
        if here.starts_with('m') {
            sh(&["ip", "netns", "exec", &place.guest(here), "sh", "-c", forward]);
        }
        sh(&["ip", "-n", &place.guest(here), "link", "set", there, "up"]);
        address(place, here, there, v6);
        address(place, here, there, v4);
    }
}

fn address(place: &Place, name: &str, interface: &str, address: &str) {
    let nodad: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
    let add = ["ip", "-n", &place.guest(name), "addr", "add", address, "dev", interface];
    sh(&[&add[..], nodad].concat());
}

/// Does something in a guest's namespace.
pub fn inside<T: Send>(place: &Place, name: &str, work: impl FnOnce() -> T + Send) -> T {
    within(&place.guest(name), work)
}

/// Does something in a namespace.
pub fn within<T: Send>(netns: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = File::open(format!("/run/netns/{netns}")).unwrap();
    let enter = || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    };
    thread::scope(|scope| scope.spawn(enter).join().unwrap())
}

/// Sends bytes both ways between two guests by their kernels' TCP; all must arrive.
pub fn transfer(place: &Place, [from, to]: [&str; 2], address: &str, bytes: usize) {
    let address: IpAddr = address.parse().unwrap();
    let listener = inside(place, to, || TcpListener::bind(SocketAddr::new(address, 0)).unwrap());
    let there = listener.local_addr().unwrap();
    let near = inside(place, from, || TcpStream::connect_timeout(&there, PATIENCE).unwrap());
    exchange(&near, &listener.accept().unwrap().0, bytes);
}

/// Sends bytes both ways between two ends; all must arrive.
pub fn exchange(near: &TcpStream, far: &TcpStream, bytes: usize) {
    for (from, to) in [(near, far), (far, near)] {
        [from, to].iter().for_each(|end| {
            end.set_read_timeout(Some(PATIENCE)).unwrap();
            end.set_write_timeout(Some(PATIENCE)).unwrap();
        });
        thread::scope(|scope| {
            let mut from = from;
            scope.spawn(move || from.write_all(&vec![7; bytes]).unwrap());
            let mut to = to.take(bytes as u64);
            assert_eq!(std::io::copy(&mut to, &mut std::io::sink()).unwrap(), bytes as u64);
        });
    }
}

/// What `ip route get` says of the way to an address.
fn route(place: &Place, guest: &str, address: &str) -> String {
    let get = ["-n", &place.guest(guest), "route", "get", address];
    String::from_utf8(Command::new("ip").args(get).output().unwrap().stdout).unwrap()
}

/// Waits until the node shows that the path carries so much.
fn shows(place: &Place, host: &str, fits: &str) {
    let line = format!("MTU         {fits}");
    until("the node knows the path", || {
        place.suiro(&["port", "show", host, "tun0"]).contains(&line)
    });
}

#[test]
fn tcp_between_guests_learns_of_a_small_mtu_in_the_middle_of_the_underlay() {
    if !privileged() {
        return;
    }
    for (is_v6, fits) in [(false, "1350"), (true, "1330")] {
        for [near, far] in [["10.0.0.1", "10.0.0.2"], ["fd00::1", "fd00::2"]] {
            let place = hosts(is_v6, &[]);
            transfer(&place, ["a", "b"], far, BYTES);
            for (guest, other) in [("a", far), ("b", near)] {
                let learnt = route(&place, guest, other);
                assert!(learnt.contains(&format!("mtu {fits}")), "{guest}: {learnt}");
            }
            shows(&place, "h1", fits);
        }
    }
}

#[test]
fn packets_without_df_are_fragmented_by_their_sender_once_it_is_told() {
    if !privileged() {
        return;
    }
    let place = hosts(false, &[]);
    let ping = ["ping", "-c", "10", "-i", "0.1", "-W", "5", "-M", "dont", "-s", "1472", "10.0.0.2"];
    sh(&[&["ip", "netns", "exec", &place.guest("a")][..], &ping].concat());
}

#[test]
fn tcp_between_guests_that_get_no_icmp_is_clamped_to_the_path() {
    if !privileged() {
        return;
    }
    for (address, filter) in [("10.0.0.2", "icmp"), ("fd00::2", "icmp6,icmp_type=2")] {
        let place = hosts(false, &["--mss-clamp"]);
        for host in ["h1", "h2"] {
            place.suiro(&["flow", "add", host, &format!("priority=9,{filter},actions=drop")]);
        }
        // What the hosts know of the path they have learnt from traffic before.
        for (host, other) in [("h1", "198.51.100.1"), ("h2", "192.0.2.1")] {
            let netns = place.guest(host);
            let ping = ["ping", "-c", "2", "-i", "0.1", "-W", "5", "-s", "1472", "-M", "do", other];
            let _ = Command::new("ip").args(["netns", "exec", &netns]).args(ping).output().unwrap();
        }
        ["h1", "h2"].iter().for_each(|host| shows(&place, host, "1350"));
        transfer(&place, ["a", "b"], address, BYTES);
        let shown = place.json(&["port", "show", "h1", "tun0"]);
        assert_eq!(shown["counters"]["tx_drops"], serde_json::json!([]), "{shown}");
    }
}
