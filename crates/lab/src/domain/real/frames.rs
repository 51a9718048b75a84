//! Frames of which tenants' networks are full and which a network in between likes to eat or to change.

/// Every frame has it, so that the kernel's own frames are told apart, and so that a search on the underlay finds it.
pub const MARK: &[u8; 16] = b"suiro-tenant-own";
/// Addresses of the two ends: also found by the search.
pub const ENDS: [[u8; 6]; 2] =
    [[0x02, 0x7e, 0x7e, 0x7e, 0x7e, 1], [0x02, 0x7e, 0x7e, 0x7e, 0x7e, 2]];

/// Frames of one kind.
pub struct Kind {
    /// What they are.
    pub name: &'static str,
    /// The frames, as the end with that index sends them.
    pub frames: Vec<Vec<u8>>,
}

/// All kinds, as one end sends them over a link of that MTU; of VLANs each, or one of 64.
pub fn kinds(end: usize, mtu: usize, short: bool) -> Vec<Kind> {
    let (own, other) = (ENDS[end], ENDS[1 - end]);
    let to = |to: [u8; 6], tags: &[u8], rest: &[u8]| frame(to, own, tags, rest);
    let vlans = (1..=4094_u16).step_by(if short { 64 } else { 1 });
    let tagged = vlans.map(|vlan| to(other, &tag(0x8100, vlan), &[0x08, 0]));
    let priorities =
        (0..8_u16).map(|priority| to(other, &tag(0x8100, priority << 13 | 7), &[0x08, 0]));
    let double = |outer: u16| {
        let both = [tag(outer, 100), tag(0x8100, 200)].concat();
        to(other, &both, &[0x08, 0])
    };
    let triple = [tag(0x88a8, 1), tag(0x8100, 2), tag(0x8100, 3)].concat();
    let link = |last: u8, rest: &[u8]| to([1, 0x80, 0xc2, 0, 0, last], &[], rest);
    // An LLC frame (IEEE 802.3): length, then DSAP, SSAP and control of spanning tree (IEEE 802.1D).
    let stp = link(0, &[0, 38, 0x42, 0x42, 3, 0, 0, 0, 0, 0]);
    let lacp = link(2, &[0x88, 0x09, 1, 1]);
    let lldp = link(0x0e, &[0x88, 0xcc, 2, 7, 4]);
    let pause = link(1, &[0x88, 0x08, 0, 1, 0, 0]);
    let eapol = link(3, &[0x88, 0x8e, 1, 0, 0, 0]);
    let groups = (0..=0x2f).map(|last| link(last, &[0x88, 0xb5]));
    let cdp = to([1, 0, 0x0c, 0xcc, 0xcc, 0xcc], &[], &[0, 60, 0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0]);
    let others = [[0xff; 6], [0x33, 0x33, 0, 0, 0, 1], [1, 0, 0x5e, 0, 0, 251]];
    let many = others.into_iter().map(|group| to(group, &[], &[0x88, 0xb5]));
    // RFC 3032: a label stack of two; IEEE 802.1Q 9.7: an I-TAG.
    let mpls = to(other, &[], &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]);
    let pbb = to(other, &[], &[0x88, 0xe7, 0, 0x01, 0x60, 0x62]);
    let sized = |len: usize, tags: &[u8]| {
        let mut frame = to(other, tags, &[0x88, 0xb5]);
        (frame.len()..len).for_each(|at| frame.push(at as u8));
        frame
    };
    let kind = |name, frames: Vec<Vec<u8>>| Kind { name, frames };
    vec![
        kind("VLAN tags", tagged.collect()),
        kind("priorities", priorities.collect()),
        kind("QinQ", vec![double(0x88a8), double(0x8100), to(other, &triple, &[0x08, 0])]),
        kind("spanning tree, LACP, LLDP", vec![stp, lacp, lldp, pause, eapol]),
        kind("group addresses", groups.chain([cdp]).chain(many).collect()),
        kind("MPLS, PBB", vec![mpls, pbb]),
        kind(
            "full size",
            vec![sized(mtu + 14, &[]), sized(mtu + 18, &tag(0x8100, 9)), sized(60, &[])],
        ),
    ]
}

fn tag(kind: u16, value: u16) -> Vec<u8> {
    [kind.to_be_bytes(), value.to_be_bytes()].concat()
}

/// Addresses, tags, what comes behind them, the mark; at least as long as Ethernet's shortest frame without its checksum.
fn frame(to: [u8; 6], from: [u8; 6], tags: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut frame = [&to[..], &from, tags, rest, MARK].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_frame_is_its_own_has_the_mark_and_fits() {
        let all: Vec<Vec<u8>> =
            kinds(0, 1500, false).into_iter().flat_map(|kind| kind.frames).collect();
        assert!(all.iter().all(|frame| frame.windows(16).any(|some| some == MARK)));
        assert!(all.iter().all(|frame| (60..=1518).contains(&frame.len())));
        assert!(all.iter().collect::<BTreeSet<_>>().len() + 2 >= all.len(), "two are sent twice");
    }
}
