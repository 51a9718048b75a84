//! Actions and instructions, printed as `ovs-ofctl dump-flows` prints them.

use super::place::print_place;
use super::ports::{Name, print_port};
use super::value;
use crate::action::{Action, Instruction};
use crate::ids::{MeterId, PortNo};
use crate::oxm::{Oxm, OxmField};

/// Actions with commas between them; `drop` for none.
pub fn print_actions(actions: &[Action], name: Name<'_>) -> String {
    if actions.is_empty() {
        return "drop".to_owned();
    }
    let mut printed = Vec::with_capacity(actions.len());
    let mut rest = actions;
    while let [action, after @ ..] = rest {
        rest = after;
        let modify = after.first().filter(|_| *action == Action::EnsureVlan).and_then(modify_vlan);
        if modify.is_some() {
            rest = &after[1..];
        }
        printed.push(modify.unwrap_or_else(|| print_action(action, name)));
    }
    printed.join(",")
}

/// 1.0's action that ends in this set-field of an untagged packet's new tag.
fn modify_vlan(set: &Action) -> Option<String> {
    let Action::SetField(Oxm::Known { field, value, mask: None }) = set else { return None };
    match field {
        OxmField::VlanVid => Some(format!("mod_vlan_vid:{}", value & 0xfff)),
        OxmField::VlanPcp => Some(format!("mod_vlan_pcp:{value}")),
        _ => None,
    }
}

/// Instructions as the `actions=` of a flow: applied actions stand as they are; `drop` for none.
pub fn print_instructions(instructions: &[Instruction], name: Name<'_>) -> String {
    let parts: Vec<String> =
        instructions.iter().filter_map(|i| print_instruction(i, name)).collect();
    if parts.is_empty() { "drop".to_owned() } else { parts.join(",") }
}

fn print_instruction(instruction: &Instruction, name: Name<'_>) -> Option<String> {
    Some(match instruction {
        Instruction::ApplyActions(actions) | Instruction::WriteActions(actions)
            if actions.is_empty() =>
        {
            return None;
        }
        Instruction::ApplyActions(actions) => print_actions(actions, name),
        Instruction::WriteActions(actions) => {
            format!("write_actions({})", print_actions(actions, name))
        }
        Instruction::ClearActions => "clear_actions".to_owned(),
        Instruction::GotoTable(table) => format!("goto_table:{}", table.0),
        Instruction::WriteMetadata { value, mask: u64::MAX } => {
            format!("write_metadata:{value:#x}")
        }
        Instruction::WriteMetadata { value, mask } => {
            format!("write_metadata:{value:#x}/{mask:#x}")
        }
        Instruction::Meter(id) => format!("meter:{}", print_meter_id(*id)),
        Instruction::Experimenter { experimenter, body } => print_experimenter(*experimenter, body),
    })
}

/// A meter's number, or the name of a reserved one.
pub(super) fn print_meter_id(id: MeterId) -> String {
    match id {
        MeterId::SLOWPATH => "slowpath".to_owned(),
        MeterId::CONTROLLER => "controller".to_owned(),
        MeterId::ALL => "all".to_owned(),
        MeterId(id) => id.to_string(),
    }
}

fn print_action(action: &Action, name: Name<'_>) -> String {
    match action {
        Action::Output { port, max_len } => print_output(*port, *max_len, name),
        Action::Group(id) => format!("group:{}", id.0),
        Action::SetQueue(queue) => format!("set_queue:{queue}"),
        Action::PushVlan(ether) => format!("push_vlan:0x{ether:04x}"),
        Action::EnsureVlan => "push_vlan:0x8100".to_owned(),
        Action::PopVlan => "pop_vlan".to_owned(),
        Action::PushMpls(ether) => format!("push_mpls:0x{ether:04x}"),
        Action::PopMpls(ether) => format!("pop_mpls:0x{ether:04x}"),
        Action::PushPbb(ether) => format!("push_pbb:0x{ether:04x}"),
        Action::PopPbb => "pop_pbb".to_owned(),
        Action::SetField(oxm) => print_set_field(oxm),
        Action::CopyTtlOut => "copy_ttl_out".to_owned(),
        Action::CopyTtlIn => "copy_ttl_in".to_owned(),
        Action::SetMplsTtl(ttl) => format!("set_mpls_ttl({ttl})"),
        Action::DecMplsTtl => "dec_mpls_ttl".to_owned(),
        Action::SetNwTtl(ttl) => format!("mod_nw_ttl:{ttl}"),
        Action::DecNwTtl => "dec_ttl".to_owned(),
        Action::Place(place) => print_place(*place),
        Action::Experimenter { experimenter, body } => print_experimenter(*experimenter, body),
    }
}

fn print_output(port: PortNo, max_len: u16, name: Name<'_>) -> String {
    match port {
        PortNo::CONTROLLER => format!("CONTROLLER:{max_len}"),
        PortNo::ANY => "output:ANY".to_owned(),
        _ => match super::ports::reserved_name(port) {
            Some(reserved) => reserved.to_owned(),
            None => format!("output:{}", print_port(port, name)),
        },
    }
}

fn print_set_field(oxm: &Oxm) -> String {
    match oxm {
        Oxm::Known { field, value, mask } => {
            format!("set_field:{}->{}", value::print(*field, *value, *mask), field.spec().name)
        }
        Oxm::Unknown(oxm) => {
            format!("set_field:{:?}->oxm_{:04x}_{}", oxm.body, oxm.class, oxm.number)
        }
    }
}

fn print_experimenter(experimenter: u32, body: &[u8]) -> String {
    let bytes: String = body.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("experimenter({experimenter:#x},{bytes})")
}
