//! Rules that a packet finds or nearly finds, in words.

use super::words;
use api::{Cookie, WhyDifference, WhyNear, WhyRule};
use flow::NearMiss;
use openflow::text;
use port::Ends;
use wire::{Field, Key};

/// A rule.
pub fn rule(entry: &flow::FlowStats, ends: &Ends, name: text::Name<'_>) -> WhyRule {
    let told = crate::switch::translate::flow_stats(entry, ends);
    WhyRule {
        priority: told.priority,
        cookie: Cookie::new(told.cookie),
        matching: text::print_match(&told.fields, name),
        actions: text::print_instructions(&told.instructions, name),
        packets: told.packet_count,
    }
}

/// A rule that a packet of this key nearly finds.
pub fn near(miss: &NearMiss, key: &Key, ends: &Ends, name: text::Name<'_>) -> WhyNear {
    let port = |port: u32| text::print_port(openflow::PortNo(port), name);
    let end = |field: Field, number: u128, mask: u128| match field {
        Field::TunSrc | Field::TunDst => {
            ends.address(number as u16).map_or_else(|| "no tunnel".into(), |end| end.to_string())
        }
        _ => words::value(field, number, mask, port),
    };
    let differs = miss.differs.iter().map(|&(field, _)| WhyDifference {
        field: words::name(field).into(),
        packet: end(field, key.get(field), field.full()),
        rule: end(field, miss.entry.key.get(field), miss.entry.mask.get(field)),
    });
    WhyNear { rule: rule(&miss.entry, ends, name), differs: differs.collect() }
}
