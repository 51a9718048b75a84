//! What an AF_XDP port switches off at an interface, and that it is as before afterwards.

mod lab;

use api::{PortKind, PortSpec, XdpMode};
use lab::{Lab, bytes, run, with};
use port::{Drops, Keep, OpenError, OpenPort, Opener, RxBatch, put_back};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;

const MODES: [XdpMode; 2] = [XdpMode::Native, XdpMode::Generic];

fn spec(lab: &Lab, xdp_mode: XdpMode) -> PortSpec {
    with(&lab.spec(PortKind::AfXdp, "a"), json!({"xdp_mode": xdp_mode}))
}

fn closed(port: OpenPort) {
    let OpenPort { rx, tx, control, .. } = port;
    drop((rx, tx));
    control.close(Keep::Nothing).expect("closes");
}

/// The MTU of the switch's end.
fn mtu(lab: &Lab) -> String {
    let shown = lab.ip("s", "link show porta");
    let words = shown.split(' ').skip_while(|&word| word != "mtu");
    words.skip(1).take(1).collect()
}

/// The offloads of both ends that suiro may touch, as `ethtool` shows them, and the MTU.
fn offloads(lab: &Lab) -> String {
    let shown = |place, interface| lab.exec(place, &format!("ethtool -k {interface}"));
    let both = shown("s", "porta") + &shown("a", "eth0");
    let touched = |line: &&str| {
        ["tx-vlan", "rx-vlan", "tcp-seg", "generic-"]
            .iter()
            .any(|word| line.trim_start().contains(word))
    };
    both.lines().filter(touched).chain([&*mtu(lab)]).collect::<Vec<_>>().join("\n")
}

/// The first frame whose bytes after the addresses begin so; frames of neighbour discovery may come before it.
fn wait_for_frame(port: &mut OpenPort, begin: &[u8]) {
    let (mut batch, patience) = (RxBatch::default(), Timespec { tv_sec: 5, tv_nsec: 0 });
    loop {
        let rx = port.rx[0].as_mut();
        let readable = &mut [PollFd::from_borrowed_fd(rx.readiness(), PollFlags::IN)];
        assert_ne!(poll(readable, Some(&patience)).expect("poll"), 0, "no frame with {begin:x?}");
        batch.clear();
        rx.rx(&mut batch, &mut Drops::default()).expect("the interface is there");
        let starts = |frame: Vec<u8>| frame.get(12..).is_some_and(|rest| rest.starts_with(begin));
        if batch.frames().iter().any(|slot| starts(bytes(slot, port.rx[0].as_ref()))) {
            return;
        }
    }
}

/// Has the guest put a tag beside each frame that it sends: `q` for 802.1Q, `ad` for 802.1ad.
fn tag(lab: &Lab, object: &Path, section: &str) {
    lab.exec("a", "tc qdisc replace dev eth0 clsact");
    lab.exec("a", "tc filter del dev eth0 egress");
    let program = format!("bpf da obj {} sec {section}", object.display());
    lab.exec("a", &format!("tc filter add dev eth0 egress {program}"));
}

#[test]
fn a_guests_vlan_tag_arrives_in_its_frame() {
    let Some(lab) = Lab::new("xdp-tags") else { return };
    lab.veth("a");
    lab.ip("a", "addr add 10.8.0.1/24 dev eth0");
    lab.ip("a", "neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev eth0");
    let home = tempfile::tempdir().expect("a directory");
    let object = home.path().join("push_tag.o");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lab/push_tag.bpf.c");
    let include = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    run(&format!("clang -O2 -target bpf -idirafter {include} -c {source} -o {}", object.display()));
    for mode in MODES {
        let mut port = port::open(&spec(&lab, mode), 1).expect("opens");
        for (section, tpid) in [("q", [0x81, 0]), ("ad", [0x88, 0xa8])] {
            tag(&lab, &object, section);
            std::thread::scope(|scope| {
                let send = || UdpSocket::bind("10.8.0.1:0")?.send_to(b"x", "10.8.0.2:9");
                lab.inside(scope, "a", send).join().expect("no panic").expect("sent")
            });
            wait_for_frame(&mut port, &[&tpid[..], &[0, 100, 8, 0]].concat());
        }
        closed(port);
    }
}

#[test]
fn offloads_are_as_before_when_the_port_is_gone() {
    let Some(lab) = Lab::new("xdp-back") else { return };
    lab.veth("a");
    lab.exec("a", "ethtool -K eth0 txvlan off tso off");
    let before = offloads(&lab);
    for mode in MODES {
        let port = port::open(&spec(&lab, mode), 1).expect("opens");
        assert_ne!(offloads(&lab), before, "{mode:?}: something is switched off");
        closed(port);
        assert_eq!(offloads(&lab), before, "{mode:?}");
        drop(port::open(&spec(&lab, mode), 1).expect("opens"));
        assert_eq!(offloads(&lab), before, "{mode:?}: also when nobody closes it");
    }
    let refused = spec(&lab, XdpMode::ZeroCopy);
    assert!(port::open(&refused, 1).is_err());
    assert_eq!(offloads(&lab), before, "also when the port is refused");
}

#[test]
fn a_veth_has_room_for_a_second_tag_while_it_is_a_port_and_nobody_is_told_a_larger_mtu() {
    let Some(lab) = Lab::new("xdp-room") else { return };
    lab.veth("a");
    let port = port::open(&spec(&lab, XdpMode::Native), 1).expect("opens");
    let told = |port: &OpenPort| port.control.facts().expect("facts").mtu;
    assert_eq!((told(&port), &*mtu(&lab)), (1500, "1504"));
    port.control.set_mtu(1600).expect("an MTU");
    assert_eq!((told(&port), &*mtu(&lab)), (1600, "1604"));
    closed(port);
    assert_eq!(mtu(&lab), "1600", "what was asked for stays");
    let port = port::open(&spec(&lab, XdpMode::Native), 1).expect("opens");
    lab.ip("s", "link set porta mtu 1400");
    assert_eq!(told(&port), 1400);
    closed(port);
    assert_eq!(mtu(&lab), "1400", "somebody else's stays");
}

#[test]
fn what_a_killed_process_switched_off_is_put_back_from_its_notes() {
    let Some(lab) = Lab::new("xdp-kill") else { return };
    lab.veth("a");
    let (home, before) = (tempfile::tempdir().expect("a directory"), offloads(&lab));
    let notes = home.path().join("offloads");
    let opener = Opener::new(1).with_offloads(notes.clone());
    let port = opener.open(&spec(&lab, XdpMode::Generic)).expect("opens");
    let during = offloads(&lab);
    let kept: Vec<_> = fs::read_dir(&notes).expect("notes").flatten().collect();
    let [note] = &kept[..] else { panic!("one port, one note: {kept:?}") };
    let text = fs::read_to_string(note.path()).expect("a note");
    closed(port);
    assert!(!note.path().exists(), "a port that closes leaves no note");
    // As the kill would have left it.
    lab.exec("s", "ethtool -K porta gro off");
    lab.ip("s", "link set porta mtu 1504");
    lab.exec("a", "ethtool -K eth0 txvlan off tx-vlan-stag-hw-insert off tso off gso off");
    assert_eq!(offloads(&lab), during);
    // The path is gone, as that of a process is; the namespace is not.
    fs::write(note.path(), text.replace(lab.netns("a"), "gone")).expect("a note");
    put_back(&notes).expect("put back");
    assert_eq!(offloads(&lab), before);
    assert!(!note.path().exists());
}

#[test]
fn a_port_takes_over_what_a_killed_process_switched_off_for_it_so_that_it_never_changes() {
    let Some(lab) = Lab::new("xdp-over") else { return };
    lab.veth("a");
    let (home, before) = (tempfile::tempdir().expect("a directory"), offloads(&lab));
    let notes = home.path().join("offloads");
    let opener = || Opener::new(1).with_offloads(notes.clone());
    let port = opener().open(&spec(&lab, XdpMode::Native)).expect("opens");
    let during = offloads(&lab);
    let note = fs::read_dir(&notes).expect("notes").flatten().next().expect("a note").path();
    let text = fs::read_to_string(&note).expect("a note");
    closed(port);
    // As the kill would have left it, with a note that was about to be written.
    lab.ip("s", "link set porta mtu 1504");
    lab.exec("a", "ethtool -K eth0 txvlan off tx-vlan-stag-hw-insert off");
    fs::write(&note, &text).expect("a note");
    fs::write(note.with_extension("new"), &text).expect("a note");
    let left = || {
        let shown = lab.exec("a", "ethtool -k eth0");
        let tags = shown.lines().filter(|line| line.starts_with("tx-vlan"));
        (tags.map(str::to_owned).collect::<Vec<_>>(), mtu(&lab))
    };
    let kept = left();
    let refused = opener().open(&spec(&lab, XdpMode::ZeroCopy)).err();
    assert!(refused.is_some() && left() == kept, "a port that is refused changes nothing of it");
    let next = opener();
    assert_eq!(left(), kept, "nothing is put back before the port is open");
    let port = next.open(&spec(&lab, XdpMode::Native)).expect("opens");
    assert_eq!((offloads(&lab), port.facts.mtu), (during.clone(), 1500));
    next.put_back_others().expect("put back");
    assert_eq!(offloads(&lab), during, "what an open port has is its own");
    closed(port);
    assert_eq!(offloads(&lab), before, "all that the first one had changed");
    assert!(!note.exists());
}

#[test]
fn tags_stay_in_frames_though_the_guest_switches_that_otherwise() {
    let Some(lab) = Lab::new("xdp-again") else { return };
    lab.veth("a");
    let port = port::open(&spec(&lab, XdpMode::Native), 1).expect("opens");
    let during = offloads(&lab);
    assert!(!port.control.has_news(), "nothing changed");
    lab.exec("a", "ethtool -K eth0 txvlan on");
    assert_ne!(offloads(&lab), during);
    assert!(port.control.has_news());
    assert_eq!(offloads(&lab), during);
    let notes = port.control.facts().expect("facts").notes;
    assert!(notes.iter().any(|note| note.contains("beside frames again")), "{notes:?}");
    assert!(!port.control.has_news(), "once");
    closed(port);
}

#[test]
fn a_veth_whose_other_end_nobody_can_reach_is_refused() {
    let Some(lab) = Lab::new("xdp-lost") else { return };
    let home = tempfile::tempdir().expect("a directory");
    let hidden = home.path().join("hidden");
    fs::write(&hidden, "").expect("a file");
    let name = format!("{}-hidden", lab.netns("a"));
    run(&format!("ip netns add {name}"));
    run(&format!("mount --bind /run/netns/{name} {}", hidden.display()));
    lab.ip("s", &format!("link add porta type veth peer name eth0 netns {name}"));
    run(&format!("ip netns del {name}"));
    let refused = port::open(&spec(&lab, XdpMode::Auto), 1).err();
    run(&format!("umount {}", hidden.display()));
    let Some(error @ OpenError::Tags { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("has no name and no process"), "{error}");
    assert!(error.remedy().contains("ip netns attach"), "{}", error.remedy());
}
