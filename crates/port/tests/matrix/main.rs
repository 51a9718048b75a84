//! From each kind of port to each: what guests send, plain and behind more than one header, small and large, arrives byte by byte.
//!
//! The frames are made by hand, as a guest's kernel leaves them: the innermost checksum to do, large ones whole. What arrives is brought to what
//! it would be on a wire, and compared with frames that were built one by one.

mod cells;
mod ends;
#[path = "../lab/mod.rs"]
mod lab;

use api::PortKind;
use cells::{Around, Cell, on_wire};
use ends::{Guest, KINDS, Place};
use lab::Lab;
use port::Drops;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);

/// Whether a guest can be made to send the cell's frame: a kernel takes no large one from us that is in a UDP tunnel, or behind shims.
fn can_send(guest: &Guest, cell: Cell) -> bool {
    let is_large = cell.is_large && !cell.around.is_plain() && cell.around != Around::Gre;
    matches!(guest, Guest::Driver(_)) || !is_large
}

/// Sends a cell's frame from one guest to another.
fn exchange(cell: Cell, from: &mut Place, to: &mut Place) -> Result<(), String> {
    let (frame, offload) = cell.sent();
    let wanted = cell.wanted();
    let (mut came, mut drops) = (Vec::new(), Drops::default());
    from.guest.send(&frame, offload);
    let begin = Instant::now();
    while came.len() < wanted.len() && drops.is_empty() && begin.elapsed() < PATIENCE {
        from.forward(&mut to.port, &mut drops);
        for (frame, offload) in to.guest.receive() {
            came.extend(on_wire(&frame, &offload));
        }
    }
    let at = format!("{} to {}, {cell:?}", from.kind.word(), to.kind.word());
    if came.len() != wanted.len() {
        let lost: Vec<_> = drops.iter().collect();
        return Err(format!("{at}: {} of {} frames, lost {lost:?}", came.len(), wanted.len()));
    }
    let differs = came.iter().zip(&wanted).enumerate().find(|(_, (came, wanted))| came != wanted);
    differs.map_or(Ok(()), |(index, (came, wanted))| {
        let same = came.iter().zip(wanted).take_while(|(one, other)| one == other).count();
        let lens = (came.len(), wanted.len());
        Err(format!("{at}: frame {index} differs from byte {same} on, bytes {lens:?}"))
    })
}

/// All cells from one kind to every kind.
fn carries(test: &str, kind: PortKind) {
    let Some(lab) = Lab::new(test) else { return };
    for side in ["a", "b"] {
        lab.exec(side, "sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut from = Place::new(&lab, kind, "a", folder.path());
    let mut to = KINDS.map(|kind| Place::new(&lab, kind, "b", folder.path()));
    let mut wrong = Vec::new();
    for to in &mut to {
        let cells = Cell::all().filter(|&cell| can_send(&from.guest, cell)).collect::<Vec<_>>();
        wrong.extend(cells.into_iter().filter_map(|cell| exchange(cell, &mut from, to).err()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_that_a_guest_on_a_tap_sends_arrives_by_every_kind_of_port() {
    carries("mt", PortKind::Tap);
}

#[test]
fn all_that_a_guest_on_af_packet_sends_arrives_by_every_kind_of_port() {
    carries("mp", PortKind::AfPacket);
}

#[test]
fn all_that_a_guest_on_af_xdp_sends_arrives_by_every_kind_of_port() {
    carries("mx", PortKind::AfXdp);
}

#[test]
fn all_that_a_driver_on_vhost_user_sends_arrives_by_every_kind_of_port() {
    carries("mv", PortKind::VhostUser);
}

#[test]
fn all_that_comes_by_a_tunnel_arrives_by_every_kind_of_port() {
    carries("mu", PortKind::Vxlan);
}

/// A guest between its TAP and one more guest: what it hands on, its kernel must know for what it is.
#[test]
fn a_guest_on_a_tap_hands_on_large_segments_in_gre_whole() {
    let Some(lab) = Lab::new("mg") else { return };
    for side in ["a", "b"] {
        lab.exec(side, "sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
    }
    let mut tap = port::open(&lab.on(PortKind::Tap, "tap", "b"), 1).expect("a TAP");
    lab.ip("b", &format!("link add x type veth peer name y netns {}", lab.netns("a")));
    lab.ip("a", "link set y up");
    lab.ip("b", "link set x up");
    lab.exec("b", "tc qdisc add dev tap clsact");
    let all = "tc filter add dev tap ingress u32 match u32 0 0";
    lab.exec("b", &format!("{all} action mirred egress redirect dev x"));
    let spec = lab.on(PortKind::AfPacket, "y", "a");
    let mut other = Guest::Kernel(port::open(&spec, 1).expect("a packet socket"));
    let count = || -> u64 {
        let text = lab.exec("a", "cat /sys/class/net/y/statistics/rx_packets");
        text.trim().parse().expect("a number")
    };
    for is_v6 in [false, true] {
        let cell = Cell { around: Around::Gre, is_v6, is_tcp: true, is_large: true };
        let ((frame, offload), wanted) = (cell.sent(), cell.wanted());
        let begin = Instant::now();
        // The first ones come cut, until the program is there that says what they are.
        loop {
            let (before, mut came) = (count(), Vec::new());
            ends::send(&mut tap, &frame, offload);
            while came.len() < wanted.len() && begin.elapsed() < PATIENCE {
                let received = other.receive().into_iter();
                came.extend(received.flat_map(|(frame, offload)| on_wire(&frame, &offload)));
            }
            assert_eq!(came, wanted);
            match count() - before {
                1 => break,
                frames => assert!(begin.elapsed() < PATIENCE, "still {frames} frames"),
            }
        }
    }
}
