//! One packet's way over two hosts in one file: a virtual machine, its switch, a link, the operator's switch, an encrypted tunnel, the other host, a
//! guest there.

use crate::capture::tshark;
use crate::sealed::keys;
use acceptance::{Background, Place, privileged, sh, suiro, until};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;
use testbed::driver::frontend::{Listener, Shape};
use testbed::driver::plain::PlainGuest;
use wire::build::{Frame, Ipv4};

const PATIENCE: Duration = Duration::from_secs(20);
/// Pings, and answers.
const PINGS: u16 = 100;
const MACHINE: [u8; 6] = [2, 0, 0, 0, 0, 5];
const GUEST: &str = "02:00:00:00:00:09";

/// Host `a` with a virtual machine on the user's switch `u0` and the operator's `k0`, host `b` with `k1` and a guest on a TAP.
struct Hosts {
    a: Place,
    b: Place,
    machine: PlainGuest,
}

fn hosts() -> Hosts {
    let (mut a, mut b) = (Place::new(&[]), Place::new(&["g"]));
    sh(&[
        "ip", "-n", &a.netns, "link", "add", "u", "type", "veth", "peer", "name", "u", "netns",
        &b.netns,
    ]);
    keys(&a, &[(1, "")]);
    for (host, address) in [(&mut a, "192.0.2.1/24"), (&mut b, "192.0.2.2/24")] {
        sh(&["ip", "-n", &host.netns, "addr", "add", address, "dev", "u"]);
        sh(&["ip", "-n", &host.netns, "link", "set", "u", "up"]);
        host.start();
    }
    let (socket, listener) = (a.path("vm1.sock"), Listener::bind(&a.path("vm1.sock")).unwrap());
    for switch in ["u0", "k0"] {
        a.suiro(&["switch", "add", switch, "--fail-mode", "secure"]);
    }
    b.suiro(&["switch", "add", "k1", "--fail-mode", "secure"]);
    let socket = socket.display().to_string();
    a.suiro(&["port", "add", "u0", "vm1", "--type", "vhost-user", "--socket", &socket]);
    a.suiro(&["port", "add", "u0", "a", "--type", "vlink", "--peer", "k0:u"]);
    a.suiro(&["port", "add", "k0", "u", "--type", "vlink", "--peer", "u0:a"]);
    for (host, switch, remote, file) in
        [(&a, "k0", "192.0.2.2", "keys1"), (&b, "k1", "192.0.2.1", "keys2")]
    {
        let file = a.path(file).display().to_string();
        let tunnel = ["--type", "vxlan", "--remote", remote, "--key", "7", "--encrypt", &file];
        host.suiro(&[&["port", "add", switch, "tun0"][..], &tunnel].concat());
    }
    let netns = b.guest("g");
    b.suiro(&[
        "port",
        "add",
        "k1",
        "tap1",
        "--type",
        "tap",
        "--interface",
        "eth0",
        "--netns",
        &netns,
    ]);
    sh(&["ip", "-n", &netns, "link", "set", "eth0", "address", GUEST]);
    b.address("g", "eth0", "10.2.0.1/24");
    let machine = "02:00:00:00:00:77";
    sh(&["ip", "-n", &netns, "neigh", "add", "10.2.0.5", "lladdr", machine, "dev", "eth0"]);
    let there = "mod_nw_src:10.2.0.5,mod_nw_tos:32,dec_ttl";
    let here = "mod_nw_dst:10.0.0.5,mod_dl_dst:02:00:00:00:00:05,dec_ttl";
    a.suiro(&[
        "flow",
        "add",
        "u0",
        &format!("cookie=0x2a,priority=9,icmp,in_port=vm1,actions={there},output:a"),
        &format!("priority=9,icmp,in_port=a,actions={here},output:vm1"),
    ]);
    a.suiro(&[
        "flow",
        "add",
        "k0",
        "in_port=u,actions=output:tun0",
        "in_port=tun0,actions=output:u",
    ]);
    let there = format!("mod_nw_dst:10.2.0.1,mod_dl_dst:{GUEST},dec_ttl");
    b.suiro(&[
        "flow",
        "add",
        "k1",
        &format!("icmp,in_port=tun0,actions={there},output:tap1"),
        "icmp,in_port=tap1,actions=mod_nw_src:10.1.0.9,output:tun0",
    ]);
    let machine =
        PlainGuest::connect(listener.accept(PATIENCE).unwrap(), Shape::default()).unwrap();
    until("the machine is ready", || {
        a.json(&["port", "show", "u0", "vm1"])["guest"]["state"] == "ready"
    });
    Hosts { a, b, machine }
}

/// A ping from the machine, to an address that is another one's in truth.
fn ping(number: u16) -> Vec<u8> {
    let [src, dst] = [[10, 0, 0, 5], [10, 1, 0, 9]].map(Into::into);
    let [high, low] = number.to_be_bytes();
    Frame::ethernet([2, 0, 0, 0, 0, 0x66], MACHINE)
        .ipv4(Ipv4 { src, dst, ..Ipv4::default() })
        .icmp_with(8, 0, [0, 7, high, low])
        .payload(&[low; 56])
        .finish()
}

#[test]
fn one_packet_is_one_id_from_a_virtual_machine_over_an_encrypted_tunnel_to_a_guest_of_another_host()
{
    if !privileged() {
        return;
    }
    let Hosts { a, b, mut machine } = hosts();
    let file = a.path("way.pcapng");
    let name = file.display().to_string();
    let points = ["u0:vm1", "u0:a", "k0:u", "k0:tun0", "k0:tun0:outside"];
    let points = [&points[..], &["k1:tun0:outside", "k1:tun0", "k1:tap1"]].concat();
    let capture = Background::start(
        Command::new(suiro())
            .arg("--api")
            .arg(a.socket())
            .arg("--api")
            .arg(b.socket())
            .arg("capture")
            .args(&points)
            .args(["-m", "icmp", "--events", "-w", &name]),
    );
    let runs = |place: &Place| place.http("GET", "/v1/captures", "").1 != "[]";
    until("both capture", || runs(&a) && runs(&b));
    for number in 0..PINGS {
        machine.send(&ping(number), PATIENCE).unwrap();
        let answer = machine.receive(PATIENCE).unwrap().expect("an answer");
        assert_eq!(answer.bytes[40..42], number.to_be_bytes(), "{:x?}", answer.bytes);
    }
    let said = capture.end(Signal::INT);
    assert!(said.contains(" 0 lost for want of room"), "{said}");
    let fields =
        ["frame.packet_id", "frame.interface_name", "frame.comment", "ip.src", "ip.dst", "ip.ttl"];
    let mut ways = BTreeMap::<String, Vec<Vec<String>>>::new();
    for row in tshark(&file, "frame.packet_id", &fields) {
        ways.entry(row[0].clone()).or_default().push(row[1..].to_vec());
    }
    assert_eq!(ways.len(), 2 * usize::from(PINGS), "an id for each ping, and for each answer");
    let is_ping = |way: &&Vec<Vec<String>>| way[0][0] == "u0:vm1";
    let pings: Vec<_> = ways.values().filter(is_ping).collect();
    assert_eq!(pings.len(), usize::from(PINGS));
    for way in &pings {
        let names: Vec<&str> = way.iter().map(|seen| &*seen[0]).collect();
        assert_eq!(names, points, "{way:#?}");
        let [src, dst, ttl] = [2, 3, 4].map(|at| [0, 1, 2, 3, 6, 7].map(|seen| &*way[seen][at]));
        assert_eq!(src, ["10.0.0.5", "10.2.0.5", "10.2.0.5", "10.2.0.5", "10.2.0.5", "10.2.0.5"]);
        assert_eq!(dst, ["10.1.0.9", "10.1.0.9", "10.1.0.9", "10.1.0.9", "10.1.0.9", "10.2.0.1"]);
        assert_eq!(ttl, ["64", "63", "63", "63", "63", "62"]);
        for (seen, place) in [(&way[4], "switch=k0"), (&way[5], "switch=k1")] {
            assert_eq!((&*seen[2], &*seen[3]), ("192.0.2.1", "192.0.2.2"));
            assert!(seen[1].contains(place) && seen[1].contains("outer=made esp=0x"), "{seen:?}");
        }
        // What each switch does with what comes in.
        for (at, words) in
            [(0, "table=0 cookie=0x2a rung="), (0, "us to=a"), (2, "to=tun0"), (6, "to=tap1")]
        {
            assert!(way[at][1].contains(words), "{words}: {:?}", way[at]);
        }
        // One packet outside: the same SPI and sequence number at both ends.
        let esp = |seen: &[String]| seen[1].split("esp=").nth(1).unwrap().to_owned();
        assert_eq!(esp(&way[4]), esp(&way[5]));
    }
    for row in tshark(
        &file,
        "frame.interface_name contains \"outside\"",
        &["udp.dstport", "_ws.col.Protocol"],
    ) {
        assert_eq!((&*row[0], &*row[1]), ("4500", "ESP"), "{row:?}");
    }
    let all = Command::new("tshark").arg("-V").arg("-r").arg(&file).output().unwrap();
    assert!(all.status.success(), "{}", String::from_utf8_lossy(&all.stderr));
    assert!(!String::from_utf8_lossy(&all.stdout).contains("Malformed"));
    let interfaces = Command::new("capinfos").arg("-I").arg(&file).output().unwrap();
    let interfaces = String::from_utf8(interfaces.stdout).unwrap();
    assert_eq!(interfaces.matches("Name = ").count(), points.len(), "{interfaces}");
}
