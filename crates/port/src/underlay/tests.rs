//! Two namespaces joined by a veth: `a` whose tables are followed, `b` the host that answers or the gateway.

use super::*;
use std::collections::HashSet;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];
/// Behind the gateway.
const FAR: IpAddr = v4(198, 51, 100, 7);

const fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

/// The namespaces `su-underlay-<test>-<pid>-a` and `-b`, removed at the end, also of a panic. `eth0` is 10.0.0.1/24 and fd00::1/64 in
/// the one, .2 and ::2 in the other.
struct Lab {
    prefix: String,
}

impl Lab {
    /// `None` when the user asked to skip.
    fn new(test: &str) -> Option<Self> {
        if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
            eprintln!("skipped: SUIRO_SKIP_PRIVILEGED=1");
            return None;
        }
        assert!(
            rustix::process::geteuid().is_root(),
            "this test makes network namespaces: run it as root, or set SUIRO_SKIP_PRIVILEGED=1 to skip it"
        );
        let lab = Self { prefix: format!("su-underlay-{test}-{}", std::process::id()) };
        for place in ["a", "b"] {
            run(&format!("ip netns add {}", lab.netns(place)));
            lab.ip(place, "link set lo up");
            // Else a link-local address, from which neighbours are asked for, is tentative at first.
            lab.set(place, "ipv6/conf/default/accept_dad", "0");
            lab.set(place, "ipv6/conf/all/accept_dad", "0");
        }
        let b = lab.netns("b");
        lab.ip(
            "a",
            &format!(
                "link add eth0 address {} type veth peer name eth0 address {} netns {b}",
                text(A),
                text(B)
            ),
        );
        for (place, host) in [("a", 1), ("b", 2)] {
            lab.ip(place, "link set eth0 up");
            lab.ip(place, &format!("addr add 10.0.0.{host}/24 dev eth0"));
            lab.ip(place, &format!("addr add fd00::{host}/64 dev eth0 nodad"));
            // A doubtful neighbour is asked after this many seconds, usually 5.
            lab.set(place, "ipv4/neigh/eth0/delay_first_probe_time", "1");
            lab.set(place, "ipv6/neigh/eth0/delay_first_probe_time", "1");
        }
        Some(lab)
    }

    fn netns(&self, place: &str) -> String {
        format!("{}-{place}", self.prefix)
    }

    fn ip(&self, place: &str, arguments: &str) -> String {
        run(&format!("ip -n {} {arguments}", self.netns(place)))
    }

    /// Does `work` in a namespace.
    fn inside<R: Send>(&self, place: &str, work: impl FnOnce() -> R + Send) -> R {
        let netns = NetnsRef::Name(self.netns(place));
        Netns::open(Some(&netns)).and_then(|netns| netns.run(work)).expect("root may enter")
    }

    /// Sets what `/proc/sys/net` has in a namespace.
    fn set(&self, place: &str, name: &str, value: &str) {
        self.inside(place, || fs::write(format!("/proc/sys/net/{name}"), value))
            .expect("a setting");
    }

    fn underlay(&self) -> Arc<Underlay> {
        Underlay::new(Some(&NetnsRef::Name(self.netns("a")))).expect("root may enter")
    }

    /// The state of `b` in `a`'s table of neighbours.
    fn state(&self, address: &str) -> String {
        let line = self.ip("a", &format!("neigh show {address} dev eth0"));
        line.split_whitespace().last().unwrap_or_default().to_owned()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for place in ["a", "b"] {
            let _ = Command::new("ip").args(["netns", "del", &self.netns(place)]).status();
        }
    }
}

/// Runs a command line; its output, or a panic with what it said.
fn run(line: &str) -> String {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a program");
    let output = Command::new(program).args(words).output().expect(line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Waits until it is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Changes something in `a`, and waits for an answer.
fn answers(lab: &Lab, watched: &Watched, change: &str, fits: impl Fn(&Answer) -> bool) {
    lab.ip("a", change);
    eventually(change, || fits(&watched.next_hop()));
}

fn hop(watched: &Watched) -> NextHop {
    watched.next_hop().as_ref().as_ref().expect("a next hop").clone()
}

fn why(watched: &Watched) -> String {
    watched.next_hop().as_ref().as_ref().expect_err("no next hop").to_string()
}

#[test]
fn a_neighbour_is_found_and_confirmed_once_it_is_used() {
    let Some(lab) = Lab::new("used") else { return };
    let underlay = lab.underlay();
    for (remote, own) in [("10.0.0.2", "10.0.0.1"), ("fd00::2", "fd00::1")] {
        let watched = underlay.watch(remote.parse().unwrap(), None);
        assert_eq!(why(&watched), format!("{remote} on eth0 has not answered (neighbour none)"));
        eventually("an answer", || {
            watched.used();
            watched.next_hop().is_ok()
        });
        let hop = hop(&watched);
        assert_eq!((hop.mac, hop.from_mac, hop.mtu), (B, A, 1500));
        assert_eq!((hop.source.to_string(), hop.interface > 1), (own.into(), true));

        lab.ip("a", &format!("neigh replace {remote} lladdr {} dev eth0 nud stale", text(B)));
        assert_eq!(lab.state(remote), "STALE");
        eventually("it is asked again", || {
            watched.used();
            lab.state(remote) != "STALE"
        });
        eventually("it is confirmed", || lab.state(remote) == "REACHABLE");
        assert_eq!(hop, self::hop(&watched));

        lab.ip("a", &format!("neigh del {remote} dev eth0"));
        eventually("it is lost", || watched.next_hop().is_err());
    }
    let nobody = underlay.watch(v4(10, 0, 0, 9), None);
    eventually("it is looked for in vain", || {
        nobody.used();
        ["incomplete)", "failed)"].iter().any(|state| why(&nobody).ends_with(state))
    });
}

#[test]
fn a_permanent_neighbour_stays_one_although_it_is_used() {
    let Some(lab) = Lab::new("permanent") else { return };
    let underlay = lab.underlay();
    lab.ip("a", &format!("neigh replace 10.0.0.2 lladdr {} dev eth0", text([2; 6])));
    let (permanent, other) =
        (underlay.watch(v4(10, 0, 0, 2), None), underlay.watch([0xfd; 16].into(), None));
    lab.ip("a", "-6 route add default via fd00::2");
    // Both are looked at in the same turn.
    eventually("a turn", || {
        permanent.used();
        other.used();
        other.next_hop().is_ok()
    });
    assert_eq!((lab.state("10.0.0.2").as_str(), hop(&permanent).mac), ("PERMANENT", [2; 6]));
}

#[test]
fn what_changes_on_the_way_is_seen() {
    let Some(lab) = Lab::new("changes") else { return };
    let underlay = lab.underlay();
    let neighbour = |host: u8, mac| {
        lab.ip("a", &format!("neigh replace 10.0.0.{host} lladdr {} dev eth0", text(mac)));
    };
    neighbour(2, B);
    neighbour(3, [2, 3, 3, 3, 3, 3]);
    let watched = underlay.watch(FAR, None);
    assert!(
        why(&watched).starts_with("no route to 198.51.100.7: Network is unreachable"),
        "{}",
        why(&watched)
    );
    let seen = |change: &str, fits: &dyn Fn(&NextHop) -> bool| {
        answers(&lab, &watched, change, |answer| answer.as_ref().is_ok_and(fits));
    };
    seen("route add 198.51.100.0/24 via 10.0.0.2", &|hop| hop.mac == B && hop.mtu == 1500);
    seen("route replace 198.51.100.0/24 via 10.0.0.3", &|hop| hop.mac == [2, 3, 3, 3, 3, 3]);
    seen("neigh replace 10.0.0.3 lladdr 02:04:04:04:04:04 dev eth0", &|hop| hop.mac[5] == 4);
    seen("route replace 198.51.100.0/24 via 10.0.0.3 mtu 1400", &|hop| hop.mtu == 1400);
    seen("link set eth0 mtu 1350", &|hop| hop.mtu == 1350);
    // The kernel forgets all neighbours then.
    answers(&lab, &watched, "link set eth0 address 02:00:00:00:00:aa", Result::is_err);
    neighbour(2, B);
    let again = "neigh replace 10.0.0.3 lladdr 02:04:04:04:04:04 dev eth0";
    seen(again, &|hop| hop.from_mac[5] == 0xaa);
    lab.ip("a", "addr add 10.0.0.11/24 dev eth0");
    let source = "route replace 198.51.100.0/24 via 10.0.0.2 src 10.0.0.11";
    seen(source, &|hop| hop.mac == B && hop.source == v4(10, 0, 0, 11));
    lab.ip("a", "route add 198.51.100.0/24 via 10.0.0.3 table 100");
    seen("rule add to 198.51.100.0/24 table 100", &|hop| hop.mac[5] == 4);
    seen("rule del to 198.51.100.0/24 table 100", &|hop| hop.mac == B);
    answers(&lab, &watched, "link set eth0 down", Result::is_err);
}

#[test]
fn a_route_that_goes_is_seen_every_time() {
    let Some(lab) = Lab::new("goes") else { return };
    let underlay = lab.underlay();
    lab.ip("a", &format!("neigh replace 10.0.0.2 lladdr {} dev eth0", text(B)));
    let watched = underlay.watch(FAR, None);
    // The kernel announces this before it is done.
    for _ in 0..50 {
        answers(&lab, &watched, "route add 198.51.100.0/24 via 10.0.0.2", Result::is_ok);
        answers(&lab, &watched, "route del 198.51.100.0/24", Result::is_err);
    }
}

#[test]
fn a_source_that_was_asked_for_is_used_if_it_is_ours() {
    let Some(lab) = Lab::new("source") else { return };
    let underlay = lab.underlay();
    lab.ip("a", &format!("neigh replace 10.0.0.2 lladdr {} dev eth0", text(B)));
    let (remote, source) = (v4(10, 0, 0, 2), v4(10, 0, 0, 11));
    let watched = underlay.watch(remote, Some(source));
    assert!(
        why(&watched).starts_with("no route to 10.0.0.2 from 10.0.0.11: "),
        "{}",
        why(&watched)
    );
    answers(&lab, &watched, "addr add 10.0.0.11/24 dev eth0", Result::is_ok);
    assert_eq!(hop(&watched).source, source);
    answers(&lab, &watched, "addr del 10.0.0.11/24 dev eth0", Result::is_err);
    assert!(underlay.watch(remote, Some([0xfd; 16].into())).next_hop().is_err());
}

#[test]
fn a_way_that_is_none_of_ethernet_is_refused_in_words() {
    let Some(lab) = Lab::new("refused") else { return };
    let underlay = lab.underlay();
    let refused = |remote: &str, words: &str| {
        let why = why(&underlay.watch(remote.parse().unwrap(), None));
        assert!(why.starts_with(words), "{why}");
    };
    refused("10.0.0.1", "the route to 10.0.0.1 is local");
    refused("10.0.0.255", "the route to 10.0.0.255 is broadcast");
    refused("fd00::1", "the route to fd00::1 is local");
    lab.ip("a", "route add blackhole 203.0.113.0/24");
    refused("203.0.113.1", "no route to 203.0.113.1: ");
    lab.ip("a", "tuntap add tun0 mode tun");
    lab.ip("a", "link set tun0 up");
    lab.ip("a", "route add 203.0.114.0/24 dev tun0");
    refused("203.0.114.1", "interface tun0 has no Ethernet address");
}

#[test]
fn a_path_mtu_that_a_router_told_is_seen() {
    let Some(lab) = Lab::new("pmtu") else { return };
    let underlay = lab.underlay();
    lab.set("b", "ipv4/ip_forward", "1");
    lab.ip("b", "link add narrow type veth peer name behind");
    lab.ip("b", "link set narrow mtu 1300 up");
    lab.ip("b", "link set behind up");
    lab.ip("b", "addr add 198.51.100.1/24 dev narrow");
    lab.ip("b", "neigh replace 198.51.100.7 lladdr 02:07:07:07:07:07 dev narrow");
    lab.ip("a", "route add 198.51.100.0/24 via 10.0.0.2");
    let watched = underlay.watch(FAR, None);
    let socket = lab.inside("a", || UdpSocket::bind("0.0.0.0:0")).unwrap();
    eventually("what the router told", || {
        watched.used();
        // Refused once the kernel knows.
        let _ = socket.send_to(&[0; 1400], (FAR, 4789));
        watched.next_hop().as_ref().as_ref().is_ok_and(|hop| hop.mtu == 1300)
    });
}

#[test]
fn ipv6_goes_through_a_gateway_and_ipv4_through_one_of_ipv6() {
    let Some(lab) = Lab::new("v6") else { return };
    let underlay = lab.underlay();
    lab.ip("a", &format!("neigh replace fd00::2 lladdr {} dev eth0", text(B)));
    let far: IpAddr = "fd77::7".parse().unwrap();
    let watched = underlay.watch(far, None);
    assert!(why(&watched).starts_with("no route to fd77::7: "), "{}", why(&watched));
    answers(&lab, &watched, "-6 route add fd77::/64 via fd00::2 mtu 1400", Result::is_ok);
    let hop = hop(&watched);
    assert_eq!((hop.mac, hop.source.to_string(), hop.mtu), (B, "fd00::1".into(), 1400));
    let replaced = "-6 route replace fd77::/64 via fd00::2";
    answers(&lab, &watched, replaced, |answer| answer.as_ref().is_ok_and(|hop| hop.mtu == 1500));
    lab.set("a", "ipv6/conf/eth0/mtu", "1450");
    eventually("what a router would advertise", || {
        watched.used();
        watched.next_hop().as_ref().as_ref().is_ok_and(|hop| hop.mtu == 1450)
    });
    lab.ip("a", "route add 198.51.100.0/24 via inet6 fd00::2 dev eth0");
    let other = self::hop(&underlay.watch(FAR, None));
    assert_eq!((other.mac, other.source, other.mtu), (B, v4(10, 0, 0, 1), 1500));
}

#[test]
fn own_addresses_come_and_go() {
    let Some(lab) = Lab::new("own") else { return };
    let underlay = lab.underlay();
    for own in ["127.0.0.1", "10.0.0.1", "fd00::1", "::1"] {
        assert!(underlay.is_own(own.parse().unwrap()), "{own}");
    }
    for (own, prefix) in [("10.0.0.11", "24"), ("fd00::11", "64")] {
        let address = own.parse().unwrap();
        assert!(!underlay.is_own(address));
        lab.ip("a", &format!("addr add {own}/{prefix} dev eth0"));
        eventually("an address", || underlay.is_own(address));
        lab.ip("a", &format!("addr del {own}/{prefix} dev eth0"));
        eventually("no address", || !underlay.is_own(address));
    }
    // Somebody else has it: it stays tentative.
    lab.set("a", "ipv6/conf/eth0/accept_dad", "1");
    lab.ip("a", "addr add fd00::2/64 dev eth0");
    eventually("a duplicate", || lab.ip("a", "-6 addr show dev eth0").contains("dadfailed"));
    assert!(
        !underlay.is_own("fd00::2".parse().unwrap()) && underlay.is_own("fd00::1".parse().unwrap())
    );
}

#[test]
fn the_thread_ends_with_the_last_who_asks() {
    let Some(lab) = Lab::new("ends") else { return };
    // Those of other tests come and go meanwhile.
    let threads = || -> HashSet<String> {
        let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        let is_ours = |comm: &String| comm.trim_end() == "suiro-underlay";
        let named = tasks
            .filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| is_ours(&comm)));
        named.map(|task| task.display().to_string()).collect()
    };
    let before = threads();
    let underlay = lab.underlay();
    let watched = underlay.watch(v4(10, 0, 0, 2), None);
    let shared = Arc::downgrade(&underlay.shared);
    let mut new = HashSet::new();
    eventually("a thread", || {
        new = &threads() - &before;
        !new.is_empty()
    });
    drop(underlay);
    assert!(shared.upgrade().is_some() && watched.next_hop().is_err());
    drop(watched);
    // With its descriptors.
    assert!(shared.upgrade().is_none());
    eventually("no thread", || threads().is_disjoint(&new));
}

#[test]
fn who_no_longer_asks_is_forgotten() {
    let Some(lab) = Lab::new("forgotten") else { return };
    let underlay = lab.underlay();
    let watched = underlay.watch(v4(10, 0, 0, 2), None);
    let watch = Arc::downgrade(&watched.watch);
    drop(watched);
    eventually("it is gone", || watch.strong_count() == 0);
    drop(watch);
    let again = underlay.watch(v4(10, 0, 0, 2), None);
    eventually("another is followed", || {
        again.used();
        again.next_hop().is_ok()
    });
}
