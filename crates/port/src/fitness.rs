//! Interfaces that cannot be ports: without Ethernet, or somebody else's.

use netlink::Link;

/// Masters that leave a member's frames alone: routing by another table is the host's business.
const HARMLESS_MASTERS: [&str; 1] = ["vrf"];
/// Kinds that take frames from the interface they stand on before anybody else sees them.
const TAKERS: [&str; 4] = ["macvlan", "macvtap", "ipvlan", "ipvtap"];

/// How a port has its frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Receives {
    /// By packet sockets, which are told of a VLAN tag beside a frame.
    ByPacketSocket,
    /// By XDP, which is not.
    ByXdp,
}

/// Returns the reason why an interface cannot be a port. `links` are all interfaces of its namespace.
pub(crate) fn why_not(link: &Link, links: &[Link], by: Receives) -> Option<String> {
    if link.is_loopback {
        return Some("a loopback interface receives what it sends".into());
    }
    if !link.is_ethernet {
        return Some("it is no Ethernet interface: its frames have no MAC addresses".into());
    }
    // XDP does not see the tags that the interface below has taken out of frames.
    if by == Receives::ByXdp && TAKERS.contains(&link.kind.as_str()) {
        return Some(format!(
            "a {} has VLAN tags beside its frames, where AF_XDP loses them",
            link.kind
        ));
    }
    let named = |index: u32| links.iter().find(|other| other.index == index);
    if let Some(master) = link.master.and_then(named)
        && !HARMLESS_MASTERS.contains(&master.kind.as_str())
    {
        let (kind, name) = (&master.kind, &master.name);
        return Some(format!("it is a member of the {kind} {name}, which has its frames, too"));
    }
    let taker = links
        .iter()
        .find(|other| other.lower == Some(link.index) && TAKERS.contains(&other.kind.as_str()))?;
    Some(format!("the {} {} stands on it and has its frames, too", taker.kind, taker.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet(index: u32, kind: &str) -> Link {
        let (name, kind) = (format!("if{index}"), kind.to_owned());
        Link { index, name, kind, is_ethernet: true, ..Link::default() }
    }

    fn refused(link: &Link, others: &[Link], by: Receives) -> Option<String> {
        let links: Vec<_> = others.iter().chain([link]).cloned().collect();
        why_not(link, &links, by)
    }

    #[test]
    fn what_has_no_ethernet_or_hears_itself_is_no_port() {
        for by in [Receives::ByPacketSocket, Receives::ByXdp] {
            assert_eq!(refused(&ethernet(2, "veth"), &[], by), None);
            let tun = Link { is_ethernet: false, ..ethernet(2, "tun") };
            assert!(refused(&tun, &[], by).unwrap().contains("no Ethernet"));
            let lo = Link { is_loopback: true, ..ethernet(1, "") };
            assert!(refused(&lo, &[], by).unwrap().contains("loopback"));
        }
    }

    #[test]
    fn a_member_of_another_interface_is_no_port_unless_that_only_routes() {
        for (master, is_refused) in
            [("bridge", true), ("bond", true), ("openvswitch", true), ("vrf", false)]
        {
            let member = Link { master: Some(9), ..ethernet(2, "veth") };
            let why = refused(&member, &[ethernet(9, master)], Receives::ByPacketSocket);
            assert_eq!(why.is_some(), is_refused, "{master}: {why:?}");
            assert!(why.is_none_or(|why| why.contains(&format!("the {master} if9"))));
        }
    }

    #[test]
    fn what_a_macvlan_stands_on_is_no_port_and_a_macvlan_none_for_xdp() {
        let above = |kind| Link { lower: Some(2), ..ethernet(5, kind) };
        for kind in TAKERS {
            assert!(refused(&ethernet(2, ""), &[above(kind)], Receives::ByPacketSocket).is_some());
            assert!(refused(&above(kind), &[], Receives::ByXdp).unwrap().contains("VLAN tags"));
            assert_eq!(refused(&above(kind), &[], Receives::ByPacketSocket), None);
        }
        assert_eq!(refused(&ethernet(2, ""), &[above("vxlan")], Receives::ByXdp), None);
    }
}
