//! Actions and instructions: OpenFlow's lists ↔ what the tables execute (OpenFlow 1.3.5 §5.9, §7.2.4, §7.2.5).
//!
//! Towards the tables the values were judged by `check` of the `openflow` crate, so nothing can be refused here: an action that the
//! tables do not have (an experimenter's) never arrives.
//!
//! What the tables have no use for travels beside the actions, as a [`Wording`]: statistics repeat it.

use super::end::{Naming, oxm_end};
use super::matching::{field, oxm_field, transport};
use flow::{Output, Wording};
use openflow::{Action, GroupId, Instruction, MeterId, Oxm, PortNo, TableId};
use port::{Ends, NoNumber, Share};
use wire::Field;

/// Where an output goes; `None` for [`PortNo::ANY`] and numbers that nothing has.
pub fn output(port: PortNo, max_len: u16) -> Option<Output> {
    Some(match port {
        PortNo::IN_PORT => Output::InPort,
        PortNo::TABLE => Output::Table,
        PortNo::NORMAL => Output::Normal,
        PortNo::FLOOD => Output::Flood,
        PortNo::ALL => Output::All,
        PortNo::CONTROLLER => Output::Controller { max_len },
        PortNo::LOCAL => Output::Local,
        port if port.is_ordinary() => Output::Port(port.0),
        _ => return None,
    })
}

/// The way back of [`output`].
pub fn port_and_len(output: Output) -> (PortNo, u16) {
    match output {
        Output::Port(port) => (PortNo(port), 0),
        Output::InPort => (PortNo::IN_PORT, 0),
        Output::All => (PortNo::ALL, 0),
        Output::Flood => (PortNo::FLOOD, 0),
        Output::Normal => (PortNo::NORMAL, 0),
        Output::Controller { max_len } => (PortNo::CONTROLLER, max_len),
        Output::Table => (PortNo::TABLE, 0),
        Output::Local => (PortNo::LOCAL, 0),
    }
}

/// An action list for the tables.
///
/// # Errors
/// No number is left for a tunnel's end.
pub fn actions(list: &[Action], share: &Share) -> Result<Vec<flow::Action>, NoNumber> {
    let mut found = Vec::with_capacity(list.len());
    for one in list {
        match one {
            Action::SetField(oxm) => {
                for part in oxm.parts() {
                    found.extend(set_field(part, share)?);
                }
            }
            other => found.extend(action(other)),
        }
    }
    Ok(found)
}

fn set_field(oxm: Oxm, share: &Share) -> Result<Option<flow::Action>, NoNumber> {
    let Oxm::Known { field: name, value, mask } = oxm else { return Ok(None) };
    let Some(place) = field(name) else { return Ok(None) };
    let value = match name.is_end() {
        true => Naming::Give(share).number(name, value)?.into(),
        false => value,
    };
    let (of, mask) = (transport(name), mask.unwrap_or(place.full()));
    Ok(Some(flow::Action::SetField { field: place, of, value, mask }))
}

fn action(action: &Action) -> Option<flow::Action> {
    use flow::Action as Out;
    Some(match action {
        Action::Output { port, max_len } => Out::Output(output(*port, *max_len)?),
        Action::Group(id) => Out::Group(id.0),
        Action::SetQueue(queue) => Out::SetQueue(*queue),
        Action::PushVlan(ether) => Out::PushVlan(*ether),
        Action::EnsureVlan => Out::EnsureVlan,
        Action::PopVlan => Out::PopVlan,
        Action::PushMpls(ether) => Out::PushMpls(*ether),
        Action::PopMpls(ether) => Out::PopMpls(*ether),
        Action::PushPbb(ether) => Out::PushPbb(*ether),
        Action::PopPbb => Out::PopPbb,
        Action::CopyTtlOut => Out::CopyTtlOut,
        Action::CopyTtlIn => Out::CopyTtlIn,
        Action::SetMplsTtl(ttl) => Out::SetMplsTtl(*ttl),
        Action::DecMplsTtl => Out::DecMplsTtl,
        Action::SetNwTtl(ttl) => Out::SetNwTtl(*ttl),
        Action::DecNwTtl => Out::DecNwTtl,
        Action::SetField(_) | Action::Place(_) | Action::Experimenter { .. } => return None,
    })
}

/// Instructions for the tables.
///
/// # Errors
/// No number is left for a tunnel's end.
pub fn instructions(list: &[Instruction], share: &Share) -> Result<flow::Instructions, NoNumber> {
    let mut found = flow::Instructions::default();
    for instruction in list {
        match instruction {
            Instruction::Meter(id) => found.meter = Some(id.0),
            Instruction::ApplyActions(list) => found.apply = actions(list, share)?,
            Instruction::ClearActions => found.clear = true,
            Instruction::WriteActions(list) => found.write = actions(list, share)?,
            Instruction::WriteMetadata { value, mask } => found.metadata = Some((*value, *mask)),
            Instruction::GotoTable(table) => found.goto = Some(table.0),
            Instruction::Experimenter { .. } => {}
        }
    }
    found.wording = wording(list);
    Ok(found)
}

/// What of the instructions changes no packet.
fn wording(list: &[Instruction]) -> Wording {
    let lists = |wanted: fn(&Instruction) -> Option<&Vec<Action>>| list.iter().find_map(wanted);
    let apply =
        lists(|one| if let Instruction::ApplyActions(list) = one { Some(list) } else { None });
    let write =
        lists(|one| if let Instruction::WriteActions(list) = one { Some(list) } else { None });
    let actions = [apply, write].into_iter().flatten().flatten();
    let mut max_len: Vec<u16> = actions.filter_map(unused_len).collect();
    max_len.truncate(max_len.iter().rposition(|len| *len != 0).map_or(0, |last| last + 1));
    Wording {
        max_len,
        empty_apply: apply.is_some_and(Vec::is_empty),
        empty_write: write.is_some_and(Vec::is_empty),
    }
}

/// The length that an output carries though it limits nothing: any but the controller's.
fn unused_len(action: &Action) -> Option<u16> {
    match action {
        Action::Output { port, max_len } if *port != PortNo::CONTROLLER => Some(*max_len),
        _ => None,
    }
}

/// The way back of [`instructions`], in order of execution.
pub fn oxm_instructions(found: &flow::Instructions, ends: &Ends) -> Vec<Instruction> {
    let mut list = Vec::with_capacity(2);
    let mut lens = found.wording.max_len.iter().copied();
    list.extend(found.meter.map(|id| Instruction::Meter(MeterId(id))));
    if !found.apply.is_empty() || found.wording.empty_apply {
        list.push(Instruction::ApplyActions(oxm_actions(&found.apply, &mut lens, ends)));
    }
    list.extend(found.clear.then_some(Instruction::ClearActions));
    if !found.write.is_empty() || found.wording.empty_write {
        list.push(Instruction::WriteActions(oxm_actions(&found.write, &mut lens, ends)));
    }
    list.extend(found.metadata.map(|(value, mask)| Instruction::WriteMetadata { value, mask }));
    list.extend(found.goto.map(|table| Instruction::GotoTable(TableId(table))));
    list
}

/// The way back of [`actions`]; a set-field that OpenFlow has no name for is left out. `lens` are those of [`Wording::max_len`].
fn oxm_actions(
    list: &[flow::Action],
    lens: &mut impl Iterator<Item = u16>,
    ends: &Ends,
) -> Vec<Action> {
    let worded = |mut action| {
        if let Action::Output { port, max_len } = &mut action
            && *port != PortNo::CONTROLLER
        {
            *max_len = lens.next().unwrap_or(0);
        }
        action
    };
    list.iter().filter_map(|action| oxm_action(action, ends)).map(worded).collect()
}

fn oxm_action(action: &flow::Action, ends: &Ends) -> Option<Action> {
    use flow::Action as In;
    Some(match *action {
        In::Output(output) => {
            let (port, max_len) = port_and_len(output);
            Action::Output { port, max_len }
        }
        In::Group(id) => Action::Group(GroupId(id)),
        In::SetQueue(queue) => Action::SetQueue(queue),
        In::PushVlan(ether) => Action::PushVlan(ether),
        In::EnsureVlan => Action::EnsureVlan,
        In::PopVlan => Action::PopVlan,
        In::PushMpls(ether) => Action::PushMpls(ether),
        In::PopMpls(ether) => Action::PopMpls(ether),
        In::PushPbb(ether) => Action::PushPbb(ether),
        In::PopPbb => Action::PopPbb,
        In::SetField { field: Field::TunDst, value, .. } => {
            Action::SetField(oxm_end(Field::TunDst, ends.address(value as u16)))
        }
        In::SetField { field: place, of, value, mask } => {
            let name = oxm_field(place, of)?;
            Action::SetField(Oxm::masked(name, value, mask))
        }
        In::CopyTtlOut => Action::CopyTtlOut,
        In::CopyTtlIn => Action::CopyTtlIn,
        In::SetMplsTtl(ttl) => Action::SetMplsTtl(ttl),
        In::DecMplsTtl => Action::DecMplsTtl,
        In::SetNwTtl(ttl) => Action::SetNwTtl(ttl),
        In::DecNwTtl => Action::DecNwTtl,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::OxmField;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
    use proptest::sample::select;
    use std::sync::Arc;

    /// There and back.
    fn round(list: &[Action]) -> Vec<Action> {
        let told = round_all(&[Instruction::ApplyActions(list.to_vec())]);
        let [Instruction::ApplyActions(told)] = &told[..] else { panic!("{told:?}") };
        told.clone()
    }

    fn round_all(list: &[Instruction]) -> Vec<Instruction> {
        let ends = Share::new(Arc::default());
        oxm_instructions(&instructions(list, &ends).unwrap(), &ends)
    }

    #[test]
    fn every_action_comes_back_as_it_was() {
        let set = |name, value| Action::SetField(Oxm::exact(name, value));
        let list = vec![
            Action::Output { port: PortNo::CONTROLLER, max_len: 128 },
            Action::output(PortNo(7)),
            Action::output(PortNo::IN_PORT),
            Action::output(PortNo::ALL),
            Action::output(PortNo::FLOOD),
            Action::output(PortNo::NORMAL),
            Action::output(PortNo::LOCAL),
            Action::Group(GroupId(9)),
            Action::SetQueue(2),
            set(OxmField::TcpDst, 80),
            set(OxmField::Ipv4Src, 0x0a00_0001),
            Action::PushVlan(0x8100),
            set(OxmField::VlanVid, 0x1005),
            Action::PopVlan,
            Action::EnsureVlan,
            Action::SetNwTtl(3),
            Action::DecNwTtl,
            Action::CopyTtlOut,
            Action::PushMpls(0x8847),
            set(OxmField::MplsLabel, 77),
            Action::SetMplsTtl(4),
            Action::DecMplsTtl,
            Action::CopyTtlIn,
            Action::PopMpls(0x0800),
            Action::PushPbb(0x88e7),
            set(OxmField::PbbIsid, 5),
            Action::PopPbb,
        ];
        assert_eq!(round(&list), list);
    }

    #[test]
    fn the_flow_control_field_is_set_as_its_two_parts() {
        let set = |oxm| Action::SetField(oxm);
        let whole = [set(Oxm::exact(OxmField::Fcf, 0x0b))];
        let parts = [Oxm::exact(OxmField::IpDscp, 2), Oxm::exact(OxmField::IpEcn, 3)].map(set);
        assert_eq!(round(&whole), parts);
        let bit = [set(Oxm::masked(OxmField::Fcf, 1, 1))];
        assert_eq!(round(&bit), [set(Oxm::masked(OxmField::IpEcn, 1, 1))]);
    }

    proptest! {
        #[test]
        fn every_output_comes_back_with_the_length_that_was_sent(
            apply in option::of(vec(an_output(), 0..6)),
            write in option::of(vec(an_output(), 0..6)),
        ) {
            let apply = apply.map(Instruction::ApplyActions);
            let list: Vec<_> =
                apply.into_iter().chain(write.map(Instruction::WriteActions)).collect();
            prop_assert_eq!(round_all(&list), list);
        }
    }

    fn an_output() -> impl Strategy<Value = Action> {
        let ports = [PortNo(7), PortNo::IN_PORT, PortNo::ALL, PortNo::CONTROLLER, PortNo::LOCAL];
        let max_len = prop_oneof![Just(0), any::<u16>()];
        (select(ports.to_vec()), max_len)
            .prop_map(|(port, max_len)| Action::Output { port, max_len })
    }

    #[test]
    fn instructions_come_back_in_order_of_execution() {
        let list = vec![
            Instruction::Meter(MeterId(3)),
            Instruction::ApplyActions(vec![Action::output(PortNo(1))]),
            Instruction::ClearActions,
            Instruction::WriteActions(vec![Action::Group(GroupId(1))]),
            Instruction::WriteMetadata { value: 5, mask: 7 },
            Instruction::GotoTable(TableId(4)),
        ];
        let mut shuffled = list.clone();
        shuffled.reverse();
        assert_eq!(round_all(&shuffled), list);
    }

    #[test]
    fn a_set_field_keeps_its_name_whatever_the_packets_are() {
        let fields = OxmField::of_tables().map(|(name, _)| name);
        for name in fields.filter(|name| name.spec().settable) {
            let list = vec![Action::SetField(Oxm::exact(name, 1))];
            assert_eq!(round(&list), list, "{name:?}");
        }
    }
}
