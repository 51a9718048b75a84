//! What every case uses: one node, a switch with guests, an OpenFlow session, and frames in and out.

mod bench;
mod guest;
mod node;
mod outcome;
mod session;
mod suite;

pub use acceptance::{Place, privileged, sh};
pub use bench::{Bench, HOST, Ports};
pub use node::Node;
pub use outcome::Outcome;
pub use session::{Answer, Session};
pub use suite::Suite;

use openflow::{Action, FlowMod, Instruction, Match, OxmField, PortNo};

/// A frame of an experimental type with this text, padded to the least that Ethernet carries.
pub fn plain_frame(text: &str) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 0xee, 2, 0, 0, 0, 0, 0xdd, 0x88, 0xb6];
    frame.extend_from_slice(text.as_bytes());
    frame.resize(frame.len().max(60), 0);
    frame
}

/// An entry of table 0.
pub fn entry(priority: u16, fields: Match, actions: Vec<Action>) -> FlowMod {
    let instructions = vec![Instruction::ApplyActions(actions)];
    FlowMod { priority, fields, instructions, ..FlowMod::default() }
}

/// An output to an ordinary port.
pub fn output(port: u32) -> Action {
    Action::output(PortNo(port))
}

/// The harness itself: what it says of frames is true.
pub fn cases(suite: &mut Suite) {
    suite.case("harness::a_frame_goes_where_the_entry_says_and_nowhere_else", |bench| {
        bench.add(&entry(1, Match::default(), vec![output(2)]));
        let frame = plain_frame("hello");
        bench.send(1, &frame).is_only(2, &frame);
    });
    suite.case("harness::a_frame_without_an_entry_is_dropped", |bench| {
        bench.send(1, &plain_frame("lost")).is_nothing();
    });
    suite.case("harness::a_vlan_tag_that_the_kernel_takes_off_is_put_back", |bench| {
        bench.add(&entry(1, Match::default(), vec![output(2), output(3)]));
        for tags in [&[0x81, 0, 0x20, 7][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]] {
            let mut frame = plain_frame("tagged");
            frame.splice(12..12, tags.iter().copied());
            bench.send(1, &frame).is_exactly(&[(2, &frame), (3, &frame)]);
        }
    });
    suite.case("harness::a_packet_in_is_seen", |bench| {
        bench.add(&entry(1, Match::default(), vec![Action::output(PortNo::CONTROLLER)]));
        let frame = plain_frame("up");
        let packet = bench.send(3, &frame).one_packet_in();
        assert_eq!(packet.data, frame);
        assert_eq!(packet.fields, Match::default().with(OxmField::InPort, 3));
    });
    suite.fresh("harness::a_fresh_switch_has_nothing_but_its_ports", |bench| {
        bench.send(2, &plain_frame("lost")).is_nothing();
    });
}
