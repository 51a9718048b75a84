//! Actions and instructions, read.

use super::error::TextError;
use super::fields::{Context, needs, nw_tos};
use super::place::place;
use super::ports::{Resolve, known_port, port};
use super::scan::{Item, Span, items};
use super::value;
use crate::action::{Action, Instruction};
use crate::check::Knowledge;
use crate::error::{ErrorCode, Fault};
use crate::ids::{GroupId, MeterId, PortNo, TableId, WHOLE_PACKET};
use crate::matching::Match;
use crate::oxm::{Oxm, OxmField, VLAN_PRESENT};

const PRESENT: u128 = VLAN_PRESENT as u128;

/// Reads a list of actions, as a packet-out takes it. `drop` or nothing is the empty list.
///
/// # Errors
/// What is wrong, where, and what to write instead.
pub fn parse_actions(text: &str, resolve: Resolve<'_>) -> Result<Vec<Action>, TextError> {
    let mut sequence = Sequence::unconditional(resolve);
    sequence.allow_table = true;
    sequence.read(Span::whole(text))
}

/// Actions of a group's bucket: nothing is known about the packets that reach it.
pub(super) fn parse_bucket_actions(
    words: &[Item<'_>],
    resolve: Resolve<'_>,
) -> Result<Vec<Action>, TextError> {
    Sequence::unconditional(resolve).read_items(words)
}

/// The instructions of a flow with this match.
pub(super) fn parse_instructions(
    text: Span<'_>,
    fields: &Match,
    resolve: Resolve<'_>,
) -> Result<Vec<Instruction>, TextError> {
    let words = items(text)?;
    if is_drop(&words)? {
        return Ok(Vec::new());
    }
    let mut instructions = Slots::default();
    let mut apply = Sequence::of(fields, resolve);
    for item in &words {
        if !instructions.read(item, fields, resolve)? {
            apply.read_item(item)?;
        }
    }
    instructions.apply.extend(apply.actions);
    Ok(instructions.into_list())
}

/// Whether the list is `drop` or empty; `drop` among others is an error.
fn is_drop(words: &[Item<'_>]) -> Result<bool, TextError> {
    match words.iter().find(|item| item.is("drop")) {
        Some(item) if words.len() > 1 => {
            Err(item.whole.error("drop beside other actions", "write drop alone"))
        }
        Some(item) => item.bare().map(|()| true),
        None => Ok(words.is_empty()),
    }
}

/// One place per kind of instruction, because a flow has each at most once.
#[derive(Default)]
struct Slots {
    meter: Option<Instruction>,
    apply: Vec<Action>,
    clear: Option<Instruction>,
    write: Option<Instruction>,
    metadata: Option<Instruction>,
    goto: Option<Instruction>,
}

impl Slots {
    /// Reads `item` if it is an instruction other than plain actions.
    fn read(
        &mut self,
        item: &Item<'_>,
        fields: &Match,
        resolve: Resolve<'_>,
    ) -> Result<bool, TextError> {
        let actions = |value: Span<'_>| Sequence::of(fields, resolve).read(value);
        let (slot, instruction) = match item.key.text.to_ascii_lowercase().as_str() {
            "meter" => (&mut self.meter, Instruction::Meter(meter(item.required()?)?)),
            "goto_table" => {
                let table = TableId(value::small(item.required()?, TableId::MAX.0)?);
                (&mut self.goto, Instruction::GotoTable(table))
            }
            "clear_actions" => (&mut self.clear, item.bare().map(|()| Instruction::ClearActions)?),
            "write_actions" => (&mut self.write, Instruction::WriteActions(actions(item.value)?)),
            "write_metadata" => (&mut self.metadata, write_metadata(item.required()?)?),
            "apply_actions" => {
                self.apply.extend(actions(item.value)?);
                return Ok(true);
            }
            _ => return Ok(false),
        };
        match slot.replace(instruction) {
            None => Ok(true),
            Some(_) => Err(item.whole.error("an instruction twice", "write each instruction once")),
        }
    }

    /// In order of execution (OpenFlow 1.3.5 §5.9).
    fn into_list(self) -> Vec<Instruction> {
        let filled = |list: &Vec<Action>| !list.is_empty();
        let apply = Some(self.apply).filter(filled).map(Instruction::ApplyActions);
        let write = self
            .write
            .filter(|write| !matches!(write, Instruction::WriteActions(list) if list.is_empty()));
        [self.meter, apply, self.clear, write, self.metadata, self.goto]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// A meter that packets can pass: neither 0 nor a reserved one.
fn meter(word: Span<'_>) -> Result<MeterId, TextError> {
    match value::small(word, MeterId::MAX.0)? {
        0 => Err(word.error("no meter has this number", "meters are numbered from 1")),
        id => Ok(MeterId(id)),
    }
}

fn write_metadata(word: Span<'_>) -> Result<Instruction, TextError> {
    let (value, mask) = value::masked(OxmField::Metadata, word)?;
    Ok(Instruction::WriteMetadata {
        value: value as u64,
        mask: mask.map_or(u64::MAX, |mask| mask as u64),
    })
}

/// A list of actions while it is read, with what is known of the packets at its end.
struct Sequence<'a> {
    actions: Vec<Action>,
    knowledge: Knowledge,
    context: Context,
    /// Whether the packets certainly have a VLAN tag: `mod_vlan_vid` pushes one where they have not.
    tagged: bool,
    /// Whether `TABLE` is a place to send to: only in packet-outs.
    allow_table: bool,
    resolve: Resolve<'a>,
}

impl<'a> Sequence<'a> {
    fn of(fields: &Match, resolve: Resolve<'a>) -> Self {
        let tagged = fields.satisfies(crate::oxm::Prerequisite::Vlan);
        let (knowledge, context) = (Knowledge::of(fields), Context::of(fields));
        Self { actions: Vec::new(), knowledge, context, tagged, allow_table: false, resolve }
    }

    fn unconditional(resolve: Resolve<'a>) -> Self {
        Self { knowledge: Knowledge::Nothing, ..Self::of(&Match::default(), resolve) }
    }

    fn read(self, text: Span<'_>) -> Result<Vec<Action>, TextError> {
        self.read_items(&items(text)?)
    }

    fn read_items(mut self, words: &[Item<'_>]) -> Result<Vec<Action>, TextError> {
        if !is_drop(words)? {
            words.iter().try_for_each(|item| self.read_item(item))?;
        }
        Ok(self.actions)
    }

    fn read_item(&mut self, item: &Item<'_>) -> Result<(), TextError> {
        if ["mod_vlan_vid", "set_vlan_vid", "mod_vlan_pcp", "set_vlan_pcp"]
            .iter()
            .any(|name| item.is(name))
        {
            return self.modify_vlan(item);
        }
        let action = match simple(item)? {
            Some(action) => action,
            None => self.set_field(item)?.map_or_else(|| self.output(item), Ok)?,
        };
        self.push(action, item)
    }

    /// Judges and adds an action.
    fn push(&mut self, action: Action, item: &Item<'_>) -> Result<(), TextError> {
        let to_table = matches!(action, Action::Output { port: PortNo::TABLE, .. });
        if !(to_table && self.allow_table) {
            self.knowledge.check_action(&action).map_err(|fault| refused(item, &action, fault))?;
        }
        self.knowledge.learn(&action);
        match action {
            Action::PushVlan(_) => self.tagged = true,
            Action::PopVlan => self.tagged = false,
            _ => {}
        }
        self.actions.push(action);
        Ok(())
    }

    /// 1.0's VLAN actions: they add a tag where there is none.
    fn modify_vlan(&mut self, item: &Item<'_>) -> Result<(), TextError> {
        let word = item.required()?;
        let oxm = match item.key.text.to_ascii_lowercase().ends_with("vid") {
            true => {
                Oxm::exact(OxmField::VlanVid, PRESENT | u128::from(value::number(word, 0xfff)?))
            }
            false => Oxm::exact(OxmField::VlanPcp, u128::from(value::number(word, 7)?)),
        };
        if !self.tagged {
            self.push(Action::PushVlan(0x8100), item)?;
        }
        self.push(Action::SetField(oxm), item)
    }

    /// `set_field` and 1.0's actions for single fields.
    fn set_field(&self, item: &Item<'_>) -> Result<Option<Action>, TextError> {
        let key = item.key.text.to_ascii_lowercase();
        if key == "set_field" {
            return self.set_any(item).map(Some);
        }
        if key == "mod_nw_tos" {
            return nw_tos(item.required()?).map(|oxm| Some(Action::SetField(oxm)));
        }
        let Some(name) = SETTERS.iter().find(|(action, _)| *action == key).map(|(_, field)| *field)
        else {
            return Ok(None);
        };
        let field = self.context.field(name).ok_or_else(|| {
            item.whole.error(
                "no protocol says which ports are meant",
                "match tcp, udp or sctp, or write set_field",
            )
        })?;
        let word = item.required()?;
        match value::masked(field, word)? {
            (value, None) => Ok(Some(Action::SetField(Oxm::exact(field, value)))),
            _ => Err(word.error("this action takes no mask", "write set_field:VALUE/MASK->FIELD")),
        }
    }

    /// `set_field:VALUE[/MASK]->FIELD`.
    fn set_any(&self, item: &Item<'_>) -> Result<Action, TextError> {
        let arrow = || item.whole.error("no field is named", "write set_field:VALUE->FIELD");
        let (word, name) = item.required()?.split("->").ok_or_else(arrow)?;
        let (word, name) = (word.trim(), name.trim());
        if name.text.eq_ignore_ascii_case("nw_tos") {
            return nw_tos(word).map(Action::SetField);
        }
        let field = self.context.field(name.text);
        let field = field.ok_or_else(|| {
            name.error("not a field of OpenFlow 1.3", "see ovs-fields(7) for the names")
        })?;
        let (value, mask) = value::masked(field, word)?;
        match mask {
            Some(0) => Err(word.error("a mask that sets nothing", "leave the action out")),
            Some(mask) => Ok(Action::SetField(Oxm::masked(field, value, mask))),
            None => Ok(Action::SetField(Oxm::exact(field, value))),
        }
    }

    /// `output:PORT`, `controller...`, or a port alone.
    fn output(&self, item: &Item<'_>) -> Result<Action, TextError> {
        if item.is("output") {
            return port(item.required()?, self.resolve).map(Action::output);
        }
        if item.is("controller") {
            return controller(item.value);
        }
        match known_port(item.key.text, self.resolve) {
            Some(port) => item.bare().map(|()| Action::output(port)),
            None => Err(item.whole.error("not an action of OpenFlow 1.3", instead(item.key.text))),
        }
    }
}

/// What does here what an action of Open vSwitch's own does there.
fn instead(name: &str) -> &'static str {
    match name.split('(').next().unwrap_or(name) {
        "resubmit" => "write goto_table:TABLE, a later one",
        "enqueue" => "write set_queue:QUEUE,output:PORT",
        "move" | "load" | "set_tunnel" => {
            "write set_field:VALUE->FIELD, with a value; registers there are none"
        }
        "ct" | "learn" | "nat" => {
            "suiro keeps no state of connections: have a controller write the rules"
        }
        "conjunction" | "multipath" | "bundle" | "sample" | "clone" | "note" | "fin_timeout"
        | "check_pkt_larger" => {
            "it is Open vSwitch's own; docs/how-to/coming-from-open-vswitch.md has what there is instead"
        }
        _ => "see ovs-actions(7); ports are output:PORT",
    }
}

/// 1.0's actions that set one field, and the field's name.
const SETTERS: &[(&str, &str)] = &[
    ("mod_dl_src", "eth_src"),
    ("mod_dl_dst", "eth_dst"),
    ("mod_nw_src", "ip_src"),
    ("mod_nw_dst", "ip_dst"),
    ("mod_nw_ecn", "nw_ecn"),
    ("mod_tp_src", "tp_src"),
    ("mod_tp_dst", "tp_dst"),
    ("set_mpls_label", "mpls_label"),
    ("set_mpls_tc", "mpls_tc"),
    ("set_tunnel", "tun_id"),
    ("set_tunnel64", "tun_id"),
];

/// Actions whose meaning depends on nothing but their argument.
fn simple(item: &Item<'_>) -> Result<Option<Action>, TextError> {
    let bare = |action: Action| item.bare().map(|()| action);
    let ether = || value::small(item.required()?, u16::MAX);
    let ttl = || value::small(item.required()?, u8::MAX);
    Ok(Some(match item.key.text.to_ascii_lowercase().as_str() {
        "group" => Action::Group(GroupId(value::small(item.required()?, GroupId::MAX.0)?)),
        "set_queue" => Action::SetQueue(value::small(item.required()?, u32::MAX)?),
        "push_vlan" => Action::PushVlan(ether()?),
        "pop_vlan" | "strip_vlan" => bare(Action::PopVlan)?,
        "push_mpls" => Action::PushMpls(ether()?),
        "pop_mpls" => Action::PopMpls(ether()?),
        "push_pbb" => Action::PushPbb(ether()?),
        "pop_pbb" => bare(Action::PopPbb)?,
        "copy_ttl_out" => bare(Action::CopyTtlOut)?,
        "copy_ttl_in" => bare(Action::CopyTtlIn)?,
        "set_mpls_ttl" => Action::SetMplsTtl(ttl()?),
        "dec_mpls_ttl" => bare(Action::DecMplsTtl)?,
        "mod_nw_ttl" | "set_nw_ttl" => Action::SetNwTtl(ttl()?),
        "dec_ttl" | "dec_nw_ttl" => bare(Action::DecNwTtl)?,
        "place" => Action::Place(place(item.required()?)?),
        _ => return Ok(None),
    }))
}

/// `controller`, `controller:LEN` or `controller(max_len=LEN)`; what only Open vSwitch has is refused.
fn controller(argument: Span<'_>) -> Result<Action, TextError> {
    let mut max_len = WHOLE_PACKET;
    if value::integer(argument.text).is_some() {
        max_len = value::small(argument, u16::MAX)?;
    } else {
        for item in items(argument)? {
            match item.key.text {
                "max_len" => max_len = value::small(item.required()?, u16::MAX)?,
                "reason" if item.value.text == "action" => {}
                "id" if item.value.text == "0" => {}
                _ => {
                    return Err(item
                        .whole
                        .error("not in OpenFlow 1.3", "write controller(max_len=BYTES)"));
                }
            }
        }
    }
    Ok(Action::Output { port: PortNo::CONTROLLER, max_len })
}

fn refused(item: &Item<'_>, action: &Action, fault: Fault) -> TextError {
    let remedy = match (fault.code, action) {
        (ErrorCode::BadActionMatchInconsistent, Action::SetField(Oxm::Known { field, .. })) => {
            needs(field.spec().prerequisite)
        }
        (ErrorCode::BadActionBadExpType, Action::Place(_)) => "write suiro steer flow add",
        (ErrorCode::BadActionBadSetArgument, _) => {
            "a VLAN id needs 0x1000 added, or mod_vlan_vid:ID"
        }
        (ErrorCode::BadActionBadSetType, _) => "set a header field",
        (ErrorCode::BadActionBadOutPort, _) => "send to a port of the switch",
        (ErrorCode::BadActionBadArgument, _) => {
            "VLAN tags have 0x8100 or 0x88a8, MPLS labels 0x8847 or 0x8848, I-TAGs 0x88e7"
        }
        _ => "see ovs-actions(7)",
    };
    item.whole.error(fault.what, remedy)
}
