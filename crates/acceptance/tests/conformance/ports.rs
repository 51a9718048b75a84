//! The same edits on every kind of port: what a kernel interface may do with tags and short frames changes nothing; and the local port.

mod local;

use crate::harness::{Bench, Node, Ports, Suite, entry, output};
use crate::oracle::{Frame, Framing, Sample, act};
use openflow::{Action, Match, Oxm, OxmField, PortNo};

/// The cases.
pub fn cases(suite: &mut Suite) {
    local::cases(suite);
    for kind in [Ports::AfPacket, Ports::AfXdp] {
        for framing in Framing::ALL {
            let name = format!("ports::{}::{}", kind.name(), framing.name());
            suite.on_node(name, move |node: &Node| {
                let mut bench = Bench::on(node, kind);
                for sample in [Sample::Arp, Sample::Ipv4Tcp, Sample::Ipv6Udp] {
                    let frame = framing.around(sample);
                    passes(&mut bench, &frame);
                    edits(&mut bench, &frame);
                }
                bench.remove(node);
            });
        }
    }
}

/// To one port, to all, back, and to the controller, as it came.
fn passes(bench: &mut Bench, frame: &Frame) {
    let bytes = frame.bytes();
    bench.add(&entry(1, Match::default().with(OxmField::InPort, 1), vec![output(3)]));
    bench.add(&entry(
        1,
        Match::default().with(OxmField::InPort, 2),
        vec![Action::output(PortNo::ALL), Action::output(PortNo::IN_PORT)],
    ));
    bench.add(&entry(
        1,
        Match::default().with(OxmField::InPort, 3),
        vec![Action::output(PortNo::CONTROLLER)],
    ));
    bench.send(1, &bytes).is_only(3, &bytes);
    bench.send(2, &bytes).is_exactly(&[1, 2, 3, 4].map(|port| (port, &bytes)));
    assert_eq!(bench.send(3, &bytes).one_packet_in().data, bytes);
    bench.clear();
}

/// A tag, a shim and an I-TAG pushed, an address set.
fn edits(bench: &mut Bench, frame: &Frame) {
    let address = Action::SetField(Oxm::exact(OxmField::EthDst, 0x0200_0000_4242));
    let pushes = [Action::PushVlan(0x88a8), Action::PushMpls(0x8847), Action::PushPbb(0x88e7)];
    for push in pushes {
        let actions = [push, address.clone()];
        bench.add(&entry(1, Match::default(), [&actions[..], &[output(4)]].concat()));
        let mut wanted = frame.clone();
        for action in &actions {
            act(&mut wanted, action).unwrap();
        }
        bench.send(1, &frame.bytes()).is_only(4, &wanted.bytes());
    }
    bench.clear();
}
