//! In which order switches come back at a start: so that they keep each other waiting the least.
//!
//! Ports open one after the other, and rules come back switch by switch. Whoever has few of them waits for nobody who has many.

use api::PortKind;

/// Rules that come back in a millisecond. Chosen: their order of magnitude, which is all that an order needs.
const RULES_IN_MS: u64 = 100;
/// Who has as many has many: they are not counted on.
pub const MANY_RULES: usize = 20_000;

/// Milliseconds, roughly, that a switch with these ports and so many rules takes to come back.
pub fn weight(ports: impl Iterator<Item = PortKind>, rules: usize) -> u64 {
    ports.map(opening_ms).sum::<u64>() + rules as u64 / RULES_IN_MS
}

/// Chosen: orders of magnitude. Programs of eBPF, and queues that the kernel waits for, cost.
fn opening_ms(kind: PortKind) -> u64 {
    match kind {
        PortKind::AfXdp => 100,
        PortKind::AfPacket => 20,
        PortKind::Tap | PortKind::VhostUser | PortKind::Vxlan => 2,
        PortKind::Vlink => 0,
    }
}

/// The lightest first; of those that weigh the same, the first.
///
/// # Errors
/// Those of `weight`.
pub fn lightest_first<T, E>(
    all: &[T],
    weight: impl Fn(&T) -> Result<u64, E>,
) -> Result<Vec<&T>, E> {
    let mut weighed: Vec<_> =
        all.iter().map(|one| Ok((weight(one)?, one))).collect::<Result<_, E>>()?;
    weighed.sort_by_key(|(weight, _)| *weight);
    Ok(weighed.into_iter().map(|(_, one)| one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn whoever_has_few_ports_and_rules_comes_back_first() {
        let switches = [
            ("a million rules", vec![PortKind::Tap], MANY_RULES),
            ("a hundred cards", vec![PortKind::AfPacket; 100], 0),
            ("links alone", vec![PortKind::Vlink; 50], 10),
            ("ten cards past the kernel", vec![PortKind::AfXdp; 10], 0),
            ("two guests", vec![PortKind::Tap; 2], 1),
            ("two others", vec![PortKind::VhostUser; 2], 1),
        ];
        let order = lightest_first(&switches, |(_, ports, rules)| {
            Ok::<_, Infallible>(weight(ports.iter().copied(), *rules))
        });
        let Ok(order) = order;
        let names: Vec<_> = order.iter().map(|(name, ..)| *name).collect();
        let expected = ["links alone", "two guests", "two others"];
        assert_eq!(names[..3], expected);
        assert_eq!(names[3..], ["a million rules", "ten cards past the kernel", "a hundred cards"]);
    }
}
