use super::*;
use crate::action::Instructions;
use wire::{Key, ip_proto};

/// Fields of a match, exactly.
type Fields = [(Field, u128)];

/// The match on these fields.
fn matching(fields: &Fields) -> (Key, Key) {
    let (mut key, mut mask) = (Key::default(), Key::default());
    for &(field, value) in fields {
        key.set(field, value);
        mask.set(field, field.full());
    }
    (key, mask)
}

const IPV4: (Field, u128) = (Field::EthType, 0x0800);
const IPV6: (Field, u128) = (Field::EthType, 0x86dd);
const MPLS: (Field, u128) = (Field::EthType, 0x8847);
const TAGGED: (Field, u128) = (Field::VlanVid, 0x1005);

fn set(field: Field, value: u128) -> Action {
    Action::SetField { field, of: None, value, mask: field.full() }
}

fn set_of(field: Field, of: Transport, value: u128) -> Action {
    Action::SetField { field, of: Some(of), value, mask: field.full() }
}

fn check(fields: &Fields, instructions: &Instructions) -> Result<(), ActionError> {
    // Of each there is number 1.
    let exists = |id: u32| id == 1;
    let (key, mask) = matching(fields);
    let change = FlowMod { key, mask, instructions: instructions.clone(), ..FlowMod::default() };
    validate(&change, exists, exists)?;
    let change = FlowMod { may_miss_headers: true, ..change };
    assert_eq!(validate(&change, exists, exists), Ok(()), "what promises more is taken too");
    Ok(())
}

fn apply(fields: &Fields, actions: &[Action]) -> Result<(), ActionError> {
    check(fields, &Instructions { apply: actions.to_vec(), ..Instructions::default() })
}

fn write(fields: &Fields, actions: &[Action]) -> Result<(), ActionError> {
    check(fields, &Instructions { write: actions.to_vec(), ..Instructions::default() })
}

#[test]
fn arguments_out_of_range_are_refused_with_their_error() {
    let cases = [
        (Action::Output(Output::Port(0)), ActionError::BadOutPort(Output::Port(0))),
        (
            Action::Output(Output::Port(MAX_PORT + 1)),
            ActionError::BadOutPort(Output::Port(MAX_PORT + 1)),
        ),
        (Action::Output(Output::Table), ActionError::BadOutPort(Output::Table)),
        (Action::Group(2), ActionError::BadOutGroup(2)),
        (Action::SetQueue(u32::MAX), ActionError::BadQueue(u32::MAX)),
        (Action::PushVlan(0x0800), ActionError::BadArgument(Action::PushVlan(0x0800))),
        (Action::PushMpls(0x8100), ActionError::BadArgument(Action::PushMpls(0x8100))),
        (Action::PushPbb(0x8847), ActionError::BadArgument(Action::PushPbb(0x8847))),
        (set(Field::InPort, 1), ActionError::BadSetType(Field::InPort)),
        (set(Field::Metadata, 1), ActionError::BadSetType(Field::Metadata)),
        (set(Field::Ipv6Exthdr, 1), ActionError::BadSetType(Field::Ipv6Exthdr)),
        (set(Field::EthDst, 1 << 48), ActionError::BadSetArgument(Field::EthDst)),
        (
            Action::SetField { field: Field::EthDst, of: None, value: 2, mask: 1 },
            ActionError::BadSetArgument(Field::EthDst),
        ),
        (
            Action::SetField { field: Field::EthDst, of: None, value: 0, mask: 0 },
            ActionError::BadSetArgument(Field::EthDst),
        ),
        (set(Field::VlanVid, 5), ActionError::BadSetArgument(Field::VlanVid)),
        (set(Field::TpDst, 5), ActionError::BadSetType(Field::TpDst)),
        (set_of(Field::TpDst, Transport::Icmpv4, 5), ActionError::BadSetType(Field::TpDst)),
        (set_of(Field::EthDst, Transport::Tcp, 5), ActionError::BadSetType(Field::EthDst)),
    ];
    for (action, error) in cases {
        assert_eq!(apply(&[TAGGED], &[action]), Err(error), "{action:?}");
        assert_eq!(write(&[TAGGED], &[action]), Err(error), "{action:?}");
    }
}

#[test]
fn every_reserved_port_that_a_flow_may_use_is_accepted() {
    let outputs = [
        Output::Port(MAX_PORT),
        Output::InPort,
        Output::All,
        Output::Flood,
        Output::Normal,
        Output::Controller { max_len: 0 },
        Output::Local,
    ];
    let actions: Vec<Action> =
        outputs.into_iter().map(Action::Output).chain([Action::Group(1)]).collect();
    assert_eq!(apply(&[], &actions), Ok(()));
    let everything: Vec<Action> =
        actions.into_iter().chain([Action::Output(Output::Table)]).collect();
    assert_eq!(validate_packet_out(&everything[..7], |_| false), Ok(()));
    assert_eq!(validate_packet_out(&everything[8..], |_| false), Ok(()));
}

#[test]
fn an_action_whose_header_is_not_promised_is_inconsistent() {
    let udp = (Field::IpProto, u128::from(ip_proto::UDP));
    let tcp = (Field::IpProto, u128::from(ip_proto::TCP));
    let icmp6 = (Field::IpProto, u128::from(ip_proto::ICMPV6));
    let solicitation = (Field::IcmpType, 135);
    // An action, a match that promises its header, and one that does not.
    let cases: &[(Action, &Fields, &Fields)] = &[
        (Action::PopVlan, &[TAGGED], &[(Field::VlanVid, 0)]),
        (set(Field::VlanVid, 0x1001), &[TAGGED], &[]),
        (set(Field::VlanPcp, 1), &[TAGGED], &[]),
        (Action::PopMpls(0x0800), &[MPLS], &[IPV4]),
        (Action::SetMplsTtl(1), &[MPLS], &[]),
        (Action::DecMplsTtl, &[MPLS], &[IPV4]),
        (Action::CopyTtlIn, &[MPLS], &[(Field::EthType, 0x0806)]),
        (Action::CopyTtlOut, &[IPV4], &[]),
        (set(Field::MplsLabel, 1), &[MPLS], &[]),
        (Action::PopPbb, &[(Field::EthType, 0x88e7)], &[MPLS]),
        (set(Field::PbbIsid, 1), &[(Field::EthType, 0x88e7)], &[]),
        (Action::DecNwTtl, &[IPV6], &[MPLS]),
        (Action::SetNwTtl(9), &[IPV4], &[]),
        (set(Field::IpDscp, 1), &[IPV4], &[]),
        (set(Field::Ipv4Src, 1), &[IPV4], &[IPV6]),
        (set(Field::Ipv6Dst, 1), &[IPV6], &[IPV4]),
        (set(Field::ArpOp, 1), &[(Field::EthType, 0x0806)], &[IPV4]),
        (set_of(Field::TpDst, Transport::Udp, 1), &[IPV4, udp], &[IPV4]),
        (set_of(Field::TpDst, Transport::Udp, 1), &[IPV6, udp], &[udp]),
        (set_of(Field::TpDst, Transport::Udp, 1), &[IPV6, udp], &[IPV6, tcp]),
        (set_of(Field::IcmpType, Transport::Icmpv6, 1), &[IPV6, icmp6], &[IPV4, icmp6]),
        (set(Field::Ipv6NdSll, 1), &[IPV6, icmp6, solicitation], &[IPV6, icmp6]),
        (set(Field::Ipv6NdTarget, 1), &[IPV6, icmp6, solicitation], &[IPV6]),
    ];
    for (action, promised, missing) in cases {
        assert_eq!(apply(promised, &[*action]), Ok(()), "{action:?}");
        assert_eq!(
            apply(missing, &[*action]),
            Err(ActionError::MatchInconsistent(*action)),
            "{action:?}"
        );
        assert_eq!(
            write(missing, &[*action]),
            Err(ActionError::MatchInconsistent(*action)),
            "{action:?}"
        );
    }
}

#[test]
fn a_header_that_an_action_pushed_is_there_and_one_it_hid_is_not() {
    let relabelled = [Action::PushMpls(0x8847), set(Field::MplsLabel, 7), Action::CopyTtlOut];
    assert_eq!(apply(&[IPV4], &relabelled), Ok(()));
    let hidden = [Action::PushMpls(0x8847), Action::DecNwTtl];
    assert_eq!(apply(&[IPV4], &hidden), Err(ActionError::MatchInconsistent(Action::DecNwTtl)));
    assert_eq!(apply(&[], &[Action::PushVlan(0x88a8), set(Field::VlanVid, 0x1fff)]), Ok(()));
    assert_eq!(
        apply(&[], &[Action::PushPbb(0x88e7), set(Field::PbbIsid, 1), Action::PushVlan(0x8100)]),
        Ok(())
    );
}

#[test]
fn behind_a_popped_header_everything_may_be() {
    let uncovered =
        [Action::PopMpls(0x0800), set_of(Field::TpDst, Transport::Tcp, 80), Action::DecNwTtl];
    assert_eq!(apply(&[MPLS], &uncovered), Ok(()));
    let other_type = [Action::PopMpls(0x86dd), set(Field::Ipv4Src, 1)];
    assert_eq!(
        apply(&[MPLS], &other_type),
        Err(ActionError::MatchInconsistent(set(Field::Ipv4Src, 1)))
    );
    assert_eq!(apply(&[TAGGED], &[Action::PopVlan, Action::PopVlan]), Ok(()));
    let pbb = (Field::EthType, 0x88e7);
    let echo = set_of(Field::IcmpType, Transport::Icmpv4, 8);
    assert_eq!(apply(&[pbb], &[Action::PopPbb, echo, set(Field::Ipv6NdTarget, 1)]), Ok(()));
}

#[test]
fn a_write_is_checked_in_the_order_of_execution() {
    assert_eq!(write(&[], &[set(Field::VlanVid, 0x1001), Action::PushVlan(0x8100)]), Ok(()));
}

#[test]
fn an_unknown_meter_and_an_endless_list_are_refused() {
    let metered = |meter| Instructions { meter: Some(meter), ..Instructions::default() };
    assert_eq!(check(&[], &metered(1)), Ok(()));
    assert_eq!(check(&[], &metered(2)), Err(ActionError::UnknownMeter(2)));
    let endless = vec![Action::Output(Output::Flood); MAX_ACTIONS + 1];
    assert_eq!(apply(&[], &endless), Err(ActionError::TooMany));
    assert_eq!(write(&[], &endless), Err(ActionError::TooMany));
}

#[test]
fn actions_that_may_miss_their_headers_need_no_promise() {
    let instructions = Instructions {
        apply: vec![
            Action::PopVlan,
            set(Field::Ipv4Src, 1),
            set_of(Field::TpDst, Transport::Tcp, 80),
        ],
        ..Instructions::default()
    };
    let strict = FlowMod { instructions, ..FlowMod::default() };
    let lenient = FlowMod { may_miss_headers: true, ..strict.clone() };
    let refused = ActionError::MatchInconsistent(Action::PopVlan);
    assert_eq!(validate(&strict, |_| false, |_| false), Err(refused));
    assert_eq!(validate(&lenient, |_| false, |_| false), Ok(()));
}
