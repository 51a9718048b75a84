//! Lists of actions that nobody thought of: drawn at random, the same in every run, sent as packet-outs.
//!
//! A packet-out's list is executed in its order and needs no match that promises headers, so an action without its header comes up
//! too, a set-field of another protocol than the frame's among them, and does nothing.

use crate::fields::ROWS;
use crate::harness::{Bench, Suite, output};
use crate::oracle::{Frame, Framing, Sample, act};
use openflow::{Action, Oxm, OxmField, PortNo};

/// Lists of each case.
const LISTS: usize = 12;
/// Most actions of a list. Six of the longest push fit in the room that a frame's head has.
const LONGEST: u64 = 6;

/// The cases.
pub fn cases(suite: &mut Suite) {
    for framing in Framing::ALL {
        for sample in Sample::ALL {
            let name = format!("random_actions::{}::{}", sample.name(), framing.name());
            let seed = (framing as u64) << 8 | sample as u64;
            suite.case(name, move |bench| {
                let mut draw = Draw(0x9e37_79b9_7f4a_7c15 ^ seed);
                for _ in 0..LISTS {
                    one(bench, &mut draw, &framing.around(sample));
                }
            });
        }
    }
}

fn one(bench: &mut Bench, draw: &mut Draw, frame: &Frame) {
    let mut wanted = frame.clone();
    let mut actions = Vec::new();
    let mut lives = true;
    for _ in 0..=draw.below(LONGEST) {
        let action = draw.action(&wanted);
        lives = lives && act(&mut wanted, &action).is_ok();
        actions.push(action);
    }
    actions.push(output(3));
    let shown = format!("{actions:?}");
    let outcome = bench.packet_out(PortNo::CONTROLLER, actions, &frame.bytes());
    let found: Vec<_> = outcome.frames.iter().map(|(port, bytes)| (*port, &bytes[..])).collect();
    let bytes = wanted.bytes();
    let expected: Vec<_> = lives.then_some((3, &bytes[..])).into_iter().collect();
    assert_eq!(found, expected, "{shown} on {:02x?}", frame.bytes());
}

/// A sequence of numbers (xorshift, Marsaglia 2003).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 32) % limit
    }

    fn action(&mut self, frame: &Frame) -> Action {
        match self.below(18) {
            0 => Action::PushVlan(if self.below(2) == 0 { 0x8100 } else { 0x88a8 }),
            1 => Action::PopVlan,
            2 => Action::PushMpls(if self.below(2) == 0 { 0x8847 } else { 0x8848 }),
            3 => Action::PopMpls(below_shim(frame)),
            4 => Action::PushPbb(0x88e7),
            5 => Action::PopPbb,
            6 => Action::CopyTtlOut,
            7 => Action::CopyTtlIn,
            8 => Action::SetMplsTtl(self.next() as u8),
            9 => Action::DecMplsTtl,
            10 => Action::SetNwTtl(self.next() as u8),
            11 => Action::DecNwTtl,
            _ => self.set_field(),
        }
    }

    /// Of a field that does not say what follows it: then the same headers are there afterwards.
    fn set_field(&mut self) -> Action {
        loop {
            let row = ROWS[self.below(ROWS.len() as u64) as usize];
            let says_what_follows = matches!(
                row.field,
                OxmField::EthType | OxmField::IpProto | OxmField::MplsBos | OxmField::Icmpv6Type
            );
            let is_in_frame = row.settable && row.field != OxmField::TunnelId;
            if !is_in_frame || says_what_follows {
                continue;
            }
            let value = u128::from(self.next()) << 64 | u128::from(self.next());
            let tag = if row.field == OxmField::VlanVid { 0x1000 } else { 0 };
            return Action::SetField(Oxm::exact(row.field, value & row.full() | tag));
        }
    }
}

/// The type of what is below the first shim, if there is one.
fn below_shim(frame: &Frame) -> u16 {
    if frame.shims.len() > 1 { frame.mpls_type } else { frame.payload.eth_type() }
}
