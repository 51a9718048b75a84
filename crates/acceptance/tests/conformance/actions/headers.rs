//! Headers pushed and popped (§5.12.1, §7.2.5.3 to §7.2.5.6): VLAN, MPLS, PBB, on every framing.

use super::{Place, becomes_what_the_oracle_says, headers_of};
use crate::harness::Suite;
use crate::oracle::{Frame, Framing, Sample};
use openflow::{Action, Oxm, OxmField};

/// Samples to push and pop around.
const SAMPLES: [Sample; 5] =
    [Sample::Arp, Sample::Ipv4Tcp, Sample::Ipv6Tcp, Sample::Ipv4Sctp, Sample::Ipv6Solicit];

/// The cases.
pub fn cases(suite: &mut Suite) {
    for framing in Framing::ALL {
        for sample in SAMPLES {
            let frame = framing.around(sample);
            for (name, actions) in lists(&frame) {
                for &place in Place::of(&actions) {
                    let (frame, actions) = (frame.clone(), actions.clone());
                    let full =
                        format!("{name}::{}::{}::{}", sample.name(), framing.name(), place.name());
                    suite.case(full, move |bench| {
                        let fields = headers_of(&frame);
                        becomes_what_the_oracle_says(bench, place, fields, &actions, &frame);
                    });
                }
            }
        }
    }
}

/// What this frame's headers allow, by name.
fn lists(frame: &Frame) -> Vec<(&'static str, Vec<Action>)> {
    let mut found = vec![
        ("push_vlan::0x8100", vec![Action::PushVlan(0x8100)]),
        ("push_vlan::0x88a8", vec![Action::PushVlan(0x88a8)]),
        (
            "push_vlan::then_set_vid_and_pcp",
            vec![
                Action::PushVlan(0x8100),
                set(OxmField::VlanVid, 0x1abc),
                set(OxmField::VlanPcp, 6),
            ],
        ),
        (
            "push_vlan::qinq",
            vec![
                Action::PushVlan(0x8100),
                set(OxmField::VlanVid, 0x1007),
                Action::PushVlan(0x88a8),
                set(OxmField::VlanVid, 0x1008),
            ],
        ),
        ("push_vlan::then_pop", vec![Action::PushVlan(0x8100), Action::PopVlan]),
        ("push_mpls::0x8847", vec![Action::PushMpls(0x8847)]),
        ("push_mpls::0x8848", vec![Action::PushMpls(0x8848)]),
        (
            "push_mpls::then_set_label_and_class",
            vec![
                Action::PushMpls(0x8847),
                set(OxmField::MplsLabel, 0xabcde),
                set(OxmField::MplsTc, 5),
                Action::SetMplsTtl(17),
            ],
        ),
        (
            "push_mpls::twice",
            vec![
                Action::PushMpls(0x8847),
                set(OxmField::MplsLabel, 16),
                Action::PushMpls(0x8847),
                set(OxmField::MplsLabel, 17),
            ],
        ),
        ("push_mpls::then_pop", vec![Action::PushMpls(0x8847), Action::PopMpls(frame.eth_type())]),
        ("push_pbb::0x88e7", vec![Action::PushPbb(0x88e7)]),
        (
            "push_pbb::then_set_isid_and_addresses",
            vec![
                Action::PushPbb(0x88e7),
                set(OxmField::PbbIsid, 0xabcdef),
                set(OxmField::EthDst, 0x0200_00bb_0001),
                set(OxmField::EthSrc, 0x0200_00bb_0002),
            ],
        ),
        (
            "push_pbb::then_b_tag",
            vec![Action::PushPbb(0x88e7), Action::PushVlan(0x88a8), set(OxmField::VlanVid, 0x1123)],
        ),
        ("push_pbb::then_pop", vec![Action::PushPbb(0x88e7), Action::PopPbb]),
    ];
    if frame.get(OxmField::VlanVid).is_some() {
        found.push(("pop_vlan::outermost", vec![Action::PopVlan]));
        let other = set(OxmField::VlanVid, 0x1055);
        found.push(("pop_vlan::then_push", vec![Action::PopVlan, Action::PushVlan(0x8100), other]));
    }
    if frame.tags.len() == 2 {
        found.push(("pop_vlan::both", vec![Action::PopVlan, Action::PopVlan]));
    }
    if let Some(below) = below_shim(frame) {
        found.push(("pop_mpls::outermost", vec![Action::PopMpls(below)]));
        let mut last = vec![Action::PopMpls(below), Action::PushMpls(0x8848)];
        last.push(set(OxmField::MplsLabel, 77));
        found.push(("pop_mpls::then_push", last));
    }
    if frame.shims.len() == 2 {
        let both = vec![Action::PopMpls(0x8847), Action::PopMpls(frame.payload.eth_type())];
        found.push(("pop_mpls::both", both));
    }
    if frame.get(OxmField::PbbIsid).is_some() {
        found.push(("pop_pbb::outermost", vec![Action::PopPbb]));
    }
    found
}

fn set(field: OxmField, value: u128) -> Action {
    Action::SetField(Oxm::exact(field, value))
}

/// The type of what is below the first shim.
fn below_shim(frame: &Frame) -> Option<u16> {
    match frame.shims.len() {
        0 => None,
        1 => Some(frame.payload.eth_type()),
        _ => Some(frame.mpls_type),
    }
}
