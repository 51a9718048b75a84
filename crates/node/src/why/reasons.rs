//! What each reason of a loss means on a packet's way, and what can be done.

use wire::DropReason;

/// Cause and remedy.
pub fn said(reason: DropReason) -> (&'static str, &'static str) {
    use DropReason as R;
    match reason {
        R::NoMatch => (
            "no rule of the table matches; only a rule of priority 0 sends such packets on",
            "add a rule, or one of priority 0 to a controller or to NORMAL",
        ),
        R::ByRule => (
            "the rules that it finds send it nowhere",
            "add a rule of higher priority, or give that rule an output",
        ),
        R::Runt => ("it is shorter than an Ethernet header", "look at who sends it"),
        R::TooBig => (
            "it is longer than the MTU of the port that it leaves by",
            "raise the MTU there, or send smaller packets",
        ),
        R::TtlExpired => (
            "its TTL runs out: a rule decrements it and it is 1 or 0",
            "look for a loop, or let the sender begin with more; rules without dec_ttl do not count hops",
        ),
        R::BadEdit => (
            "an action has no room for a header, or meets one that is not whole",
            "look at the packet's headers and the rule's actions",
        ),
        R::BadOffload => ("its offload state contradicts it", "look at who sends it"),
        R::NoPort => (
            "a rule sends it to a port that the switch does not have",
            "add the port, or change the rule: suiro port list",
        ),
        R::PortDown => (
            "the port is down",
            "bring it up, or see why it has no link: suiro port show SWITCH PORT",
        ),
        R::PortNoReceive => (
            "the port is told to receive nothing (no-receive)",
            "take that back as it was set, by a controller's port-mod: ovs-ofctl mod-port SWITCH PORT receive",
        ),
        R::PortNoForward => (
            "the port is told to send nothing (no-forward)",
            "take that back as it was set, by a controller's port-mod: ovs-ofctl mod-port SWITCH PORT forward",
        ),
        R::Meter => (
            "a meter is over its rate now",
            "wait, or raise the meter's rate or burst: suiro meter list SWITCH",
        ),
        R::NoBucket => (
            "the group does not exist, or none of its buckets is usable: the ports and groups that they watch are down",
            "bring a watched port up, or change the group: suiro group list SWITCH",
        ),
        R::VlinkLoop => ("it goes round among switches", "look for a loop of links"),
        R::Fragment => (
            "it is a fragment, and the switch drops fragments",
            "let the controller set the switch to take fragments",
        ),
        R::ReservedAddress => (
            "no bridge forwards its destination (01:80:c2:00:00:0x)",
            "forward it by a rule with an output, if it is wanted",
        ),
        R::NoDestination => (
            "it would leave by the port that it came in by, or there is no other",
            "use the action in_port to send it back; a station that moved is found again when it speaks",
        ),
        R::Storm => (
            "it would be flooded, and its port has flooded more than it may (storm control)",
            "end the storm, or raise the bound: suiro switch mod SWITCH --max-flood-copies-per-s RATE",
        ),
        R::TooManyCopies => (
            "it makes more copies than are allowed",
            "look for a loop of links, or raise the bound: suiro switch mod SWITCH --max-copies-per-s RATE",
        ),
        R::TunnelId => ("the tunnel id that a rule chose is too long", "use 24 bits"),
        R::TunnelEnd => {
            ("no rule says where the tunnel leads", "set tun_dst, or give the port a remote")
        }
        _ => ("see the guide", "suiro capture drops shows such frames"),
    }
}
