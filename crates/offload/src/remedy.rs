//! What can be done about each reason, and the page that lists them.

use crate::declined::{
    CardReason, Declined, EditKind, FlowReason, MoveReason, PolicyReason, PortReason,
};
use flow::Nanos;
use wire::Field;

impl Declined {
    /// What a user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Flow(reason) => of_flow(reason),
            Self::Port(reason) => of_port(reason),
            Self::Card(reason) => of_card(reason),
            Self::Policy(reason) => of_policy(reason),
            Self::Move(reason) => of_move(reason),
        }
    }

    /// One of each, with values as they may be.
    pub fn every() -> Vec<Self> {
        let flow = [
            FlowReason::NoSuchFlow,
            FlowReason::Dropped,
            FlowReason::ToController,
            FlowReason::SeveralExits,
            FlowReason::DependsOn(Field::TcpFlags),
            FlowReason::Edits(EditKind::Set(Field::IpEcn)),
            FlowReason::Edits(EditKind::SetTtl),
            FlowReason::Edits(EditKind::CopyTtl),
            FlowReason::Edits(EditKind::DecTtlTwice),
            FlowReason::Edits(EditKind::Mpls),
            FlowReason::Edits(EditKind::Pbb),
            FlowReason::Edits(EditKind::TwoTags),
            FlowReason::Edits(EditKind::Tunnel),
            FlowReason::Edits(EditKind::Outside),
            FlowReason::Edits(EditKind::TwoTunnels),
            FlowReason::LearnsMac,
            FlowReason::MeterRemarks,
            FlowReason::Limits,
            FlowReason::Lengths,
            FlowReason::Guaranteed,
            FlowReason::Encrypted,
            FlowReason::Captured,
        ];
        let port = [
            PortReason::NoHook { kind: "tap" },
            PortReason::GenericHook,
            PortReason::ExitTakesNoFrames,
            PortReason::SeveralQueues { queues: 4 },
            PortReason::SameNamespace,
            PortReason::OwnQueues,
            PortReason::SocketPasses,
            PortReason::OtherKind,
            PortReason::CutsSegments,
            PortReason::Mtu { needs: 1550, has: 1500 },
            PortReason::ThroughKernel,
            PortReason::NoWay,
            PortReason::Down,
            PortReason::Gone,
        ];
        let card = [
            CardReason::Key(Field::IpDscp),
            CardReason::Action(EditKind::Tunnel),
            CardReason::Full { slots: 16_384 },
            CardReason::Refused { words: "Operation not supported".into(), errno: 95 },
            CardReason::Gone,
        ];
        let policy = [
            PolicyReason::Off,
            PolicyReason::Never,
            PolicyReason::NotSeen,
            PolicyReason::BelowThreshold { what: "rate", is: 1_000_000, needs: 50_000_000 },
            PolicyReason::CostsMore { by_ns: 70_000 },
            PolicyReason::NotYetWorth { spent_ns: 8000, needs_ns: 20_000 },
            PolicyReason::BetterFlows,
            PolicyReason::TenantsSlots { has: 100 },
            PolicyReason::Cooling { until: Nanos(0) },
        ];
        let moves = [
            MoveReason::NeverQuiet,
            MoveReason::OrderUnknown,
            MoveReason::Steered,
            MoveReason::RulesChange,
            MoveReason::Adopting,
            MoveReason::Measuring,
            MoveReason::Busy,
        ];
        let flow = flow.into_iter().map(Self::Flow).chain(port.into_iter().map(Self::Port));
        let rest = policy.into_iter().map(Self::Policy).chain(moves.into_iter().map(Self::Move));
        flow.chain(card.into_iter().map(Self::Card)).chain(rest).collect()
    }

    /// What it is about.
    const fn heading(&self) -> &'static str {
        match self {
            Self::Flow(_) => "What the tables do with it",
            Self::Port(_) => "The ports on its way",
            Self::Card(_) => "The rung itself",
            Self::Policy(_) => "The policies",
            Self::Move(_) => "The move",
        }
    }

    /// The reference page, in Markdown.
    pub fn page() -> String {
        let mut page = String::from(
            "# Why a flow stays on the worker\n\n\
             This page lists the reasons that `suiro offload why` and `suiro flow list --rungs` give. It is made from the code: numbers and names in \
             the reasons are examples.\n",
        );
        let mut heading = "";
        for declined in Self::every() {
            if declined.heading() != heading {
                heading = declined.heading();
                page += &format!("\n## {heading}\n\n| reason | what to do |\n|---|---|\n");
            }
            page += &format!("| {declined} | {} |\n", declined.remedy());
        }
        page
    }
}

fn of_flow(reason: &FlowReason) -> &'static str {
    match reason {
        FlowReason::NoSuchFlow => {
            "Nothing: such frames are few. Fragments end with a larger MTU or path MTU discovery."
        }
        FlowReason::Dropped => "Nothing, if the rules mean it.",
        FlowReason::ToController => "Let the controller add a rule for the flow.",
        FlowReason::SeveralExits => {
            "Let it leave by one port: mirrors and floods are the worker's."
        }
        FlowReason::DependsOn(_) => "Match on what the whole flow has in common.",
        FlowReason::Edits(EditKind::Tunnel) => {
            "Give the tunnel an other end over IPv4, of its own (--remote, --key)."
        }
        FlowReason::Edits(_) => "Leave the edit out, or to the guest.",
        FlowReason::LearnsMac => "Wait: the next frame on the worker teaches it.",
        FlowReason::MeterRemarks => "Use a band that drops.",
        FlowReason::Limits => {
            "Let it pass one meter, of at most four bands, before its first output."
        }
        FlowReason::Lengths => "Push or pop the tag in the last table, without a group or meter.",
        FlowReason::Guaranteed => {
            "Give its queue no min_rate: the port's rate and a max_rate leave with it."
        }
        FlowReason::Encrypted => "Nothing: who encrypts is the worker.",
        FlowReason::Captured => "End the capture.",
    }
}

fn of_port(reason: &PortReason) -> &'static str {
    match reason {
        PortReason::NoHook { .. } => {
            "Use a port of kind af_packet on a veth, where the guest is a container."
        }
        PortReason::GenericHook => "Use an interface whose driver has XDP.",
        PortReason::ExitTakesNoFrames => {
            "Use a veth whose other end is in the guest's network namespace; for af_xdp, switch GRO on there: ethtool -K INTERFACE gro on."
        }
        PortReason::SeveralQueues { .. } => "Make the interface, or the port, with one queue.",
        PortReason::SameNamespace => "Move its other end into the guest's network namespace.",
        PortReason::OwnQueues => "Use a veth or a TAP.",
        PortReason::SocketPasses => {
            "Give the interface an MTU of 1770 at most; `suiro port show` says why bursts leave by the socket."
        }
        PortReason::OtherKind => "Give both ports the same kind.",
        PortReason::CutsSegments => "Use the rung tc.",
        PortReason::Mtu { .. } => "Raise the exit's MTU.",
        PortReason::ThroughKernel => "Make the tunnel's port with --forwarding own.",
        PortReason::NoWay => "See what `suiro port show` says of the tunnel's port.",
        PortReason::Down => "Set the interface up.",
        PortReason::Gone => "Nothing: it leaves again when the port is back.",
    }
}

fn of_card(reason: &CardReason) -> &'static str {
    match reason {
        CardReason::Action(EditKind::Tunnel) => "Give all ports on its way the kind af_xdp.",
        CardReason::Key(_) | CardReason::Action(_) => "Name another rung in the policy.",
        CardReason::Full { .. } => "Let fewer flows leave, by policies.",
        CardReason::Refused { .. } => "See what the kernel says: suiro doctor.",
        CardReason::Gone => "See the log.",
    }
}

fn of_policy(reason: &PolicyReason) -> &'static str {
    match reason {
        PolicyReason::Off => "suiro offload on",
        PolicyReason::Never => "Change the policy: suiro offload policy list.",
        PolicyReason::NotSeen => "Wait: workers show one frame in 64.",
        PolicyReason::BelowThreshold { .. } => "Nothing, if the policy means it.",
        PolicyReason::CostsMore { .. } => {
            "Nothing: it is cheaper here. A policy with --when first moves it all the same."
        }
        PolicyReason::NotYetWorth { .. } => "Wait.",
        PolicyReason::BetterFlows | PolicyReason::TenantsSlots { .. } => {
            "Let fewer flows leave, by policies."
        }
        PolicyReason::Cooling { .. } => {
            "Wait: 1 s after the first fall, twice as long after each more, 64 s at most."
        }
    }
}

fn of_move(reason: &MoveReason) -> &'static str {
    match reason {
        MoveReason::NeverQuiet => {
            "Wait: it is tried again. A worker that keeps up is quiet often enough."
        }
        MoveReason::OrderUnknown => "Name another rung in the policy.",
        MoveReason::Steered => {
            "Steer the switch no more (`suiro steer detach switch:NAME`): it leaves at once."
        }
        MoveReason::RulesChange
        | MoveReason::Adopting
        | MoveReason::Measuring
        | MoveReason::Busy => "Nothing: it is tried again at once.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_repository_is_the_one_that_is_made() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/offload-reasons.md");
        if std::env::var_os("SUIRO_UPDATE").is_some() {
            std::fs::write(path, Declined::page()).expect("the repository is writable");
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(
            kept,
            Declined::page(),
            "run this test with SUIRO_UPDATE=1 and review the change"
        );
    }

    #[test]
    fn no_reason_is_said_twice() {
        let mut reasons: Vec<String> = Declined::every().iter().map(ToString::to_string).collect();
        let count = reasons.len();
        reasons.sort();
        reasons.dedup();
        assert_eq!(reasons.len(), count);
    }
}
