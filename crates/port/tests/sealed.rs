//! Encrypted tunnels: what comes out, what an attacker on the way can do, and how keys change.

#[path = "sealed/checksum.rs"]
mod checksum;
mod lab;
#[path = "sealed/stage.rs"]
mod stage;

use api::PortSpec;
use lab::{Lab, datagram, with};
use port::{Body, BodyAt, Drops, OpenError, OpenPort, Opener, RxBatch, SaFacts, TxFrame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use std::fs::{Permissions, set_permissions, write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use wire::build::{Frame, Ipv4, Tcp};
use wire::tunnel::Vxlan;
use wire::{DropReason, Gso, Offload};

/// Addresses of the ends `s` and `b`, both families.
const ENDS: [[&str; 2]; 2] = [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]];

/// Two hosts, joined by a veth with an MTU of 1500, their ledgers and their files of keys.
struct Hosts {
    lab: Lab,
    home: tempfile::TempDir,
}

/// A pair of SAs as the end `s` has it: the number that both its SPIs and keys come from, and what else its table says.
type Pair<'a> = (u32, &'a str);

impl Hosts {
    fn new(test: &str) -> Option<Self> {
        let lab = Lab::new(test)?;
        lab.veth("b");
        for (at, place, interface) in [(0, "s", "portb"), (1, "b", "eth0")] {
            lab.ip(place, &format!("addr add {}/24 dev {interface}", ENDS[0][at]));
            lab.ip(place, &format!("addr add {}/64 dev {interface} nodad", ENDS[1][at]));
            lab.ip(place, &format!("link set {interface} up"));
        }
        Some(Self { lab, home: tempfile::tempdir().expect("a directory") })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Writes the keys of both ends: what one sends with, the other receives with.
    fn keys(&self, pairs: &[Pair<'_>]) {
        for place in ["s", "b"] {
            self.keys_of(place, pairs);
        }
    }

    fn keys_of(&self, place: &str, pairs: &[Pair<'_>]) {
        let (out, back) = if place == "s" { ("out", "in") } else { ("in", "out") };
        let table = |(number, more): &Pair<'_>| {
            let key = |salt: u32| format!("{:08x}", number << 8 | salt).repeat(5);
            let (one, two) = (0x1000 + number, 0x2000 + number);
            format!(
                "[[sa]]\nspi_{out} = {one}\nspi_{back} = {two}\nkey_{out} = \"{}\"\nkey_{back} = \"{}\"\n{more}\n",
                key(1),
                key(2)
            )
        };
        let path = self.path(place);
        write(&path, pairs.iter().map(table).collect::<String>()).expect("written");
        set_permissions(path, Permissions::from_mode(0o600)).expect("its own");
    }

    fn spec(&self, place: &str, family: usize) -> PortSpec {
        let [near, far] = ENDS[family];
        let (local, remote) = if place == "s" { (near, far) } else { (far, near) };
        let tunnel = self.lab.tunnel(place, remote, 7);
        with(&tunnel, json!({"local": local, "encrypt": self.path(place)}))
    }

    fn opener(&self, place: &str) -> Opener {
        Opener::new(1).with_ledger(self.path(&format!("ledger-{place}")))
    }

    fn end(&self, place: &str) -> OpenPort {
        self.opener(place).open(&self.spec(place, 0)).expect("a tunnel")
    }

    fn inside<T: Send>(&self, place: &str, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| self.lab.inside(scope, place, work).join().expect("done"))
    }

    /// A socket of `b` that gets what `s` sends to ESP's port, before there is another end.
    fn tap(&self) -> UdpSocket {
        let socket = self.inside("b", || UdpSocket::bind(("192.0.2.2", 4500)).expect("a socket"));
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        socket
    }

    /// A socket of `s` that says to `b` what it likes.
    fn attacker(&self) -> UdpSocket {
        self.inside("s", || UdpSocket::bind(("192.0.2.1", 0)).expect("a socket"))
    }
}

fn esp(socket: &UdpSocket, datagram: &[u8]) {
    let to: SocketAddr = "192.0.2.2:4500".parse().expect("an address");
    socket.send_to(datagram, to).expect("sent");
}

/// Frames and drops of all queues, until there are so many of both.
fn received(port: &mut OpenPort, count: usize) -> (Vec<Vec<u8>>, Vec<(DropReason, u64)>) {
    let (mut frames, mut drops, mut batch) = (Vec::new(), Drops::default(), RxBatch::default());
    while frames.len() as u64 + drops.iter().map(|(_, count)| count).sum::<u64>() < count as u64 {
        let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
        // What waits in a queue already is told by no descriptor.
        if !port.rx.iter_mut().any(|rx| !rx.arm()) {
            let watched =
                port.rx.iter().map(|rx| PollFd::from_borrowed_fd(rx.readiness(), PollFlags::IN));
            let mut fds: Vec<_> = watched.collect();
            let ready = poll(&mut fds, Some(&patience)).expect("poll");
            assert_ne!(ready, 0, "{} of {count} came, {:?}", frames.len(), drops);
        }
        for rx in &mut port.rx {
            batch.clear();
            rx.rx(&mut batch, &mut drops).expect("the sockets work");
            for slot in batch.frames() {
                let mut bytes = slot.head.bytes().to_vec();
                if let BodyAt::Port { at, len } = slot.body {
                    rx.body(at, len).append_to(&mut bytes);
                }
                frames.push(bytes);
            }
            rx.release();
        }
    }
    (frames, drops.iter().collect())
}

fn send(port: &mut OpenPort, frame: &[u8], offload: Offload) -> Vec<(DropReason, u64)> {
    let mut drops = Drops::default();
    let (head, body) = frame.split_at(frame.len().min(wire::HEAD_MAX));
    port.tx[0].tx(
        &[TxFrame { head, body: Body::private(body), offload, tunnel_id: 0, tun_dst: 0 }],
        &mut drops,
    );
    drops.iter().collect()
}

fn sent(port: &mut OpenPort, frame: &[u8]) {
    assert_eq!(send(port, frame, Offload::default()), []);
}

fn udp(port: u16, len: usize) -> Vec<u8> {
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default());
    frame.udp(port, 2).payload(&vec![0x5a; len]).finish()
}

fn facts(port: &OpenPort) -> Vec<SaFacts> {
    port.control.details().expect("a tunnel").read().sas
}

#[test]
fn a_frame_comes_out_as_it_went_in_by_either_mode_and_family() {
    let Some(hosts) = Hosts::new("esp") else { return };
    // What 1500 leaves: IP, UDP, 16 of ESP's header, UDP, VXLAN, Ethernet, 2 of the trailer, 16 of the ICV; a multiple of 4 is encrypted.
    let cases = [
        ("", 0, 1408),
        ("", 1, 1388),
        ("mode = \"tunnel\"", 0, 1388),
        ("mode = \"tunnel\"\nesn = false", 1, 1348),
    ];
    for (more, family, mtu) in cases {
        hosts.keys(&[(family as u32 + 10 * more.len() as u32, more)]);
        let [mut near, mut far] = ["s", "b"]
            .map(|place| hosts.opener(place).open(&hosts.spec(place, family)).expect("a tunnel"));
        assert_eq!(near.facts.mtu, mtu, "{more}");
        for len in [0, 1, 2, 3, 200, 300, mtu as usize - 28] {
            sent(&mut near, &udp(1, len));
            assert_eq!(received(&mut far, 1), (vec![udp(1, len)], vec![]), "{len} bytes");
            sent(&mut far, &udp(2, len));
            assert_eq!(received(&mut near, 1).0, [udp(2, len)]);
        }
        let long = udp(1, mtu as usize - 27);
        assert_eq!(send(&mut near, &long, Offload::default()), [(DropReason::TooBig, 1)]);
        hosts.lab.close("s", near);
        hosts.lab.close("b", far);
    }
}

#[test]
fn a_large_segment_crosses_in_sealed_pieces_and_comes_out_whole() {
    let Some(hosts) = Hosts::new("espcut") else { return };
    hosts.keys(&[(1, "")]);
    let (mut near, mut far) = (hosts.end("s"), hosts.end("b"));
    let payload: Vec<u8> = (0..60_000).map(|at| (at % 251) as u8).collect();
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).tcp(Tcp::default());
    let (frame, checksum) = frame.payload(&payload).finish_partial().expect("TCP has a checksum");
    let offload =
        Offload { checksum: Some(checksum), gso: Gso::TcpV4, gso_size: 1350, ..Offload::default() };
    assert_eq!(send(&mut near, &frame, offload), []);
    let (frames, drops) = received(&mut far, 1);
    assert_eq!((frames.len(), drops), (1, vec![]));
    assert_eq!(frames[0], frame);
    assert_eq!(facts(&near)[0].packets, 45);
}

#[test]
fn nothing_of_a_frame_can_be_read_on_the_way() {
    let Some(hosts) = Hosts::new("espsee") else { return };
    hosts.keys(&[(1, "")]);
    let tap = hosts.tap();
    let mut near = hosts.end("s");
    let mut seen = Vec::new();
    for _ in 0..2 {
        sent(&mut near, &udp(1, 200));
        let mut bytes = [0; 2048];
        let (len, _) = datagram(&tap, &mut bytes);
        assert_eq!(bytes[..8], [0, 0, 0x10, 1, 0, 0, 0, seen.len() as u8 + 1]);
        assert!(!bytes[..len].windows(4).any(|window| window == [0x5a; 4]));
        seen.push(bytes[16..len].to_vec());
    }
    assert_ne!(seen[0], seen[1], "the same frame twice is not the same packet");
}

#[test]
fn what_is_replayed_changed_or_made_up_is_dropped_and_counted() {
    let Some(hosts) = Hosts::new("espbad") else { return };
    hosts.keys(&[(1, "")]);
    let tap = hosts.tap();
    let mut near = hosts.end("s");
    let mut datagrams = Vec::new();
    for number in 0..40 {
        sent(&mut near, &udp(1, number));
        let mut bytes = [0; 2048];
        let (len, _) = datagram(&tap, &mut bytes);
        datagrams.push(bytes[..len].to_vec());
    }
    hosts.lab.close("b", tap);
    let (mut far, attacker) = (hosts.end("b"), hosts.attacker());
    // Reordered: all of them come in. Each a second time: none.
    datagrams.iter().rev().for_each(|datagram| esp(&attacker, datagram));
    let (frames, drops) = received(&mut far, 40);
    assert_eq!((frames, drops), ((0..40).rev().map(|len| udp(1, len)).collect(), vec![]));
    datagrams.iter().for_each(|datagram| esp(&attacker, datagram));
    assert_eq!(received(&mut far, 40).1, [(DropReason::EspReplay, 40)]);
    // A new one, with each of its bytes changed in turn: a wrong SPI finds nobody, a wrong sequence number or anything else no ICV.
    sent(&mut near, &udp(1, 41));
    let fresh = received(&mut far, 1);
    assert_eq!(fresh.0, [udp(1, 41)]);
    let mut ahead = datagrams[0].clone();
    ahead[7] = 200;
    for at in 8..ahead.len() {
        let mut broken = ahead.clone();
        broken[at] ^= 0x40;
        esp(&attacker, &broken);
    }
    let count = ahead.len() - 8;
    assert_eq!(received(&mut far, count).1, [(DropReason::EspIcv, count as u64)]);
    esp(&attacker, &datagrams[0][..33]);
    assert_eq!(received(&mut far, 1).1, [(DropReason::EspMalformed, 1)]);
    // IKE, a keepalive, nonsense: nobody's.
    for stray in [&[0; 28][..], &[0xff], &[1, 2, 3], &[0x99; 60]] {
        esp(&attacker, stray);
    }
    sent(&mut near, &udp(1, 42));
    assert_eq!(received(&mut far, 1), (vec![udp(1, 42)], vec![]));
    let notes = far.control.facts().expect("facts").notes;
    assert!(
        notes.iter().any(|note| note.starts_with("3 datagrams came to UDP port 4500")),
        "{notes:?}"
    );
    let sa = facts(&far).remove(1);
    assert_eq!((sa.spi, sa.packets, sa.replayed, sa.bad_icv), (0x1001, 42, 40, count as u64));
}

#[test]
fn what_comes_unencrypted_is_dropped_and_counted() {
    let Some(hosts) = Hosts::new("esppl") else { return };
    hosts.keys(&[(1, "")]);
    let (mut near, mut far) = (hosts.end("s"), hosts.end("b"));
    let attacker = hosts.attacker();
    let plain = [&Vxlan { vni: 7 }.emit()[..], &udp(1, 20)].concat();
    attacker.send_to(&plain, ("192.0.2.2", 4789)).expect("sent");
    assert_eq!(received(&mut far, 1), (vec![], vec![(DropReason::Plaintext, 1)]));
    sent(&mut near, &udp(1, 20));
    assert_eq!(received(&mut far, 1).0.len(), 1);
}

#[test]
fn several_sas_share_the_flows_and_each_has_its_queue() {
    let Some(hosts) = Hosts::new("espmany") else { return };
    hosts.keys(&[(1, ""), (2, ""), (3, ""), (4, "")]);
    let (mut near, mut far) = (hosts.end("s"), hosts.end("b"));
    assert_eq!(far.rx.len(), 5, "four, and the one for what comes unencrypted");
    (0..256).for_each(|port| sent(&mut near, &udp(port, 20)));
    let (mut frames, mut queues) = (0, Vec::new());
    for rx in &mut far.rx {
        let (mut batch, mut drops, before) = (RxBatch::default(), Drops::default(), frames);
        while rx.rx(&mut batch, &mut drops).expect("the sockets work") > 0 {
            frames += batch.frames().len();
            batch.clear();
            rx.release();
        }
        assert!(drops.is_empty());
        queues.push(frames - before);
    }
    assert_eq!(frames, 256);
    let counts: Vec<_> = facts(&far)[4..].iter().map(|sa| sa.packets as usize).collect();
    assert_eq!(queues, [&counts[..], &[0]].concat(), "each queue has its SA's packets");
    assert!(counts.iter().all(|count| (20..110).contains(count)), "{counts:?}");
    // The same flow stays with its SA.
    (0..5).for_each(|_| sent(&mut near, &udp(9, 20)));
    assert_eq!(received(&mut far, 5).0.len(), 5);
    let after: Vec<_> = facts(&far)[4..].iter().map(|sa| sa.packets as usize).collect();
    assert_eq!(counts.iter().zip(&after).filter(|(before, after)| before != after).count(), 1);
}

#[test]
fn keys_change_under_traffic_and_no_frame_is_lost() {
    let Some(hosts) = Hosts::new("esprot") else { return };
    let (old, new) = ((1, ""), (2, ""));
    let receiving = "receive_only = true";
    hosts.keys(&[old]);
    let (mut near, mut far) = (hosts.end("s"), hosts.end("b"));
    let reload = |port: &OpenPort| port.control.reload().expect("the keys are right");
    let mut number = 0;
    // As many as a socket holds are on their way at each step.
    let mut traffic =
        |near: &mut OpenPort, far: &mut OpenPort, change: &dyn Fn(&OpenPort, &OpenPort)| {
            for _ in 0..200 {
                number += 1;
                sent(near, &udp(number, 100));
                sent(far, &udp(number, 90));
            }
            change(near, far);
            for _ in 0..200 {
                number += 1;
                sent(near, &udp(number, 100));
                sent(far, &udp(number, 90));
            }
            for end in [near, far] {
                let (frames, drops) = received(end, 400);
                assert_eq!((frames.len(), drops), (400, vec![]));
            }
        };
    // New keys are received first at one end, then at the other; then each sends with them; then the old ones go.
    let steps: [(&str, &[Pair<'_>]); 6] = [
        ("s", &[old, (2, receiving)]),
        ("b", &[old, (2, receiving)]),
        ("s", &[(1, receiving), new]),
        ("b", &[(1, receiving), new]),
        ("s", &[new]),
        ("b", &[new]),
    ];
    for (place, pairs) in steps {
        traffic(&mut near, &mut far, &|near, far| {
            hosts.keys_of(place, pairs);
            reload(if place == "s" { near } else { far });
        });
    }
    for end in [&near, &far] {
        let spis: Vec<_> = facts(end).iter().map(|sa| sa.spi & 0xfff).collect();
        assert_eq!(spis, [2, 2]);
    }
    // A file that is wrong changes nothing.
    hosts.keys_of("s", &[(3, "mode = \"tunnel\"")]);
    let refused = near.control.reload().expect_err("another mode");
    assert!(refused.remedy().contains("same mode"), "{}", refused.remedy());
    traffic(&mut near, &mut far, &|_, _| {});
}

#[test]
fn an_end_that_is_restarted_goes_on_and_neither_repeats_nor_accepts_what_was() {
    let Some(hosts) = Hosts::new("espagain") else { return };
    hosts.keys(&[(1, "")]);
    let tap = hosts.tap();
    let mut near = hosts.end("s");
    sent(&mut near, &udp(1, 10));
    let mut old = [0; 2048];
    let (len, _) = datagram(&tap, &mut old);
    hosts.lab.close("b", tap);
    let mut far = hosts.end("b");
    sent(&mut near, &udp(1, 11));
    assert_eq!(received(&mut far, 1).0, [udp(1, 11)]);
    let before = facts(&near)[0].sequence;
    hosts.lab.close("s", near);
    let mut near = hosts.end("s");
    assert!(facts(&near)[0].sequence > before, "numbers go on");
    sent(&mut near, &udp(1, 12));
    assert_eq!(received(&mut far, 1), (vec![udp(1, 12)], vec![]));
    hosts.lab.close("b", far);
    let mut far = hosts.end("b");
    esp(&hosts.attacker(), &old[..len]);
    sent(&mut near, &udp(1, 13));
    let (frames, drops) = received(&mut far, 2);
    assert_eq!(frames, [udp(1, 13)]);
    assert!(matches!(drops[..], [(DropReason::EspReplay | DropReason::EspIcv, 1)]), "{drops:?}");
}

#[test]
fn keys_and_spis_have_one_owner_and_their_file_is_its_users_alone() {
    let Some(hosts) = Hosts::new("espown") else { return };
    hosts.keys(&[(1, "")]);
    let opener = hosts.opener("s");
    let spec = |vni| with(&hosts.spec("s", 0), json!({"key": vni}));
    let first = opener.open(&spec(7)).expect("a tunnel");
    let twice = opener.open(&spec(8)).map(drop).expect_err("the key is taken");
    let said = std::error::Error::source(&twice).expect("a cause").to_string();
    assert!(said.contains("another port sends with the same key"), "{said}");
    hosts.lab.close("s", first);
    let again = opener.open(&spec(8)).expect("it is free again");
    hosts.lab.close("s", again);
    set_permissions(hosts.path("s"), Permissions::from_mode(0o644)).expect("for all");
    let open = opener.open(&spec(7)).map(drop).expect_err("all can read the keys");
    assert!(
        matches!(open, OpenError::Keys { .. }) && open.remedy().starts_with("chmod 600"),
        "{open}"
    );
    hosts.keys(&[(1, "")]);
    let nowhere = port::open(&spec(7), 1).map(drop).expect_err("there is no ledger");
    assert_eq!(nowhere.step(), "read what was received with these keys");
}
