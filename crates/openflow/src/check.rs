//! What a switch must refuse before it looks at its tables: rules that hold for the message alone.
//!
//! Whether a table, port, group or meter exists is not known here; that is the switch's own check.

use crate::action::{Action, Instruction, NICIRA};
use crate::error::{ErrorCode, Fault};
use crate::flow_mod::{FlowMod, FlowModCommand, FlowModFlags};
use crate::group::{GroupMod, GroupModCommand, GroupType};
use crate::ids::{GroupId, MeterId, PortNo, TableId};
use crate::matching::{Match, is_no_end};
use crate::meter::{BandKind, MeterFlags, MeterMod, MeterModCommand};
use crate::oxm::{Oxm, OxmField, Prerequisite, SUIRO, VLAN_PRESENT};
use crate::packet::PacketOut;
use crate::v13::group_can_be_described;

impl FlowMod {
    /// Refuses unknown flags, a bad table, a bad match, and instructions that contradict it or each other.
    ///
    /// # Errors
    /// The error to answer with.
    pub fn check(&self) -> Result<(), Fault> {
        if !FlowModFlags::all().contains(self.flags) {
            return Err(Fault::new(
                ErrorCode::FlowModFailedBadFlags,
                "a flag that OpenFlow does not define",
            ));
        }
        let deletes = matches!(self.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
        if self.table == TableId::ALL && !deletes {
            return Err(Fault::new(
                ErrorCode::FlowModFailedBadTableId,
                "all tables, and not a deletion",
            ));
        }
        self.fields.check()?;
        if deletes {
            Ok(())
        } else {
            let knowledge = match self.version.demands_promised_headers() {
                true => Knowledge::of(&self.fields),
                false => Knowledge::Nothing,
            };
            check_instructions(&self.instructions, &knowledge, self.table)
        }
    }
}

fn check_instructions(
    instructions: &[Instruction],
    knowledge: &Knowledge,
    table: TableId,
) -> Result<(), Fault> {
    let mut seen = Vec::with_capacity(instructions.len());
    for instruction in instructions {
        let kind = std::mem::discriminant(instruction);
        if seen.contains(&kind) {
            return Err(Fault::new(ErrorCode::BadInstructionUnsupInst, "an instruction twice"));
        }
        seen.push(kind);
        check_instruction(instruction, table)?;
    }
    check_lists(instructions, knowledge.clone())
}

/// Actions as they are executed: those to apply first, then the action set in its own order (§5.9, §5.10).
fn check_lists(instructions: &[Instruction], mut knowledge: Knowledge) -> Result<(), Fault> {
    for instruction in instructions {
        if let Instruction::ApplyActions(actions) = instruction {
            knowledge.check_actions(actions)?;
        }
    }
    for instruction in instructions {
        if let Instruction::WriteActions(actions) = instruction {
            let mut set: Vec<&Action> = actions.iter().collect();
            set.sort_by_key(|action| rank_in_set(action));
            knowledge.check_actions(set)?;
        }
    }
    Ok(())
}

/// Steps of §5.10 as far as they matter here: headers are popped, then pushed, then changed.
fn rank_in_set(action: &Action) -> u8 {
    match action {
        Action::CopyTtlIn => 0,
        Action::PopVlan => 1,
        Action::PopPbb => 2,
        Action::PopMpls(_) => 3,
        Action::PushMpls(_) => 4,
        Action::PushPbb(_) => 5,
        Action::PushVlan(_) | Action::EnsureVlan => 6,
        _ => 7,
    }
}

fn check_instruction(instruction: &Instruction, table: TableId) -> Result<(), Fault> {
    match instruction {
        Instruction::GotoTable(next) if *next <= table || *next > TableId::MAX => Err(Fault::new(
            ErrorCode::BadInstructionBadTableId,
            "goto a table that is not a later one",
        )),
        Instruction::Meter(id) if id.0 == 0 || *id > MeterId::MAX => Err(Fault::new(
            ErrorCode::MeterModFailedInvalidMeter,
            "a meter number that no meter can have",
        )),
        Instruction::Experimenter { .. } => Err(Fault::new(
            ErrorCode::BadInstructionBadExperimenter,
            "an experimenter that suiro does not know",
        )),
        _ => Ok(()),
    }
}

impl GroupMod {
    /// Refuses numbers that no group can have, buckets that its type forbids, and bad actions.
    ///
    /// # Errors
    /// The error to answer with.
    pub fn check(&self) -> Result<(), Fault> {
        let deletes = self.command == GroupModCommand::Delete;
        if self.id > GroupId::MAX && !(deletes && self.id == GroupId::ALL) {
            return Err(Fault::new(
                ErrorCode::GroupModFailedInvalidGroup,
                "a number that no group can have",
            ));
        }
        if deletes {
            return Ok(());
        }
        if self.kind == GroupType::Indirect && self.buckets.len() != 1 {
            return Err(Fault::new(
                ErrorCode::GroupModFailedInvalidGroup,
                "an indirect group without its one bucket",
            ));
        }
        self.buckets
            .iter()
            .try_for_each(|bucket| Knowledge::Nothing.check_actions(&bucket.actions))?;
        if !group_can_be_described(&self.buckets) {
            return Err(Fault::new(
                ErrorCode::GroupModFailedOutOfBuckets,
                "more buckets and actions than one message can describe to controllers",
            ));
        }
        Ok(())
    }
}

impl MeterMod {
    /// Refuses numbers that no meter can have, flags that contradict each other, and bands that mean nothing.
    ///
    /// # Errors
    /// The error to answer with.
    pub fn check(&self) -> Result<(), Fault> {
        let deletes = self.command == MeterModCommand::Delete;
        let reserved = self.id == MeterId::CONTROLLER || self.id == MeterId::SLOWPATH;
        let allowed = self.id.0 != 0 && self.id <= MeterId::MAX
            || reserved
            || deletes && self.id == MeterId::ALL;
        if !allowed {
            return Err(Fault::new(
                ErrorCode::MeterModFailedInvalidMeter,
                "a number that no meter can have",
            ));
        }
        if deletes { Ok(()) } else { self.check_rates() }
    }

    fn check_rates(&self) -> Result<(), Fault> {
        let both = MeterFlags::KBPS | MeterFlags::PKTPS;
        if !MeterFlags::all().contains(self.flags) || self.flags.contains(both) {
            return Err(Fault::new(
                ErrorCode::MeterModFailedBadFlags,
                "kbps and pktps at once, or an unknown flag",
            ));
        }
        for band in &self.bands {
            if band.rate == 0 {
                return Err(Fault::new(ErrorCode::MeterModFailedBadRate, "a rate of 0"));
            }
            if matches!(band.kind, BandKind::Experimenter { .. }) {
                return Err(Fault::new(
                    ErrorCode::MeterModFailedBadBand,
                    "an experimenter that suiro does not know",
                ));
            }
        }
        Ok(())
    }
}

impl PacketOut {
    /// Refuses an ingress port that cannot be one, and bad actions.
    ///
    /// # Errors
    /// The error to answer with.
    pub fn check(&self) -> Result<(), Fault> {
        let named = matches!(self.in_port, PortNo::CONTROLLER | PortNo::LOCAL | PortNo::ANY);
        if !self.in_port.is_ordinary() && !named {
            return Err(Fault::new(
                ErrorCode::BadRequestBadPort,
                "an ingress port that cannot be one",
            ));
        }
        let table = Action::Output { port: PortNo::TABLE, max_len: 0 };
        let actions = self.actions.iter().filter(|action| !same_output(action, &table));
        actions.into_iter().try_for_each(|action| Knowledge::Nothing.check_action(action))
    }
}

fn same_output(a: &Action, b: &Action) -> bool {
    matches!((a, b), (Action::Output { port: a, .. }, Action::Output { port: b, .. }) if a == b)
}

/// What is certain about the packets that reach an action: §7.2.5 demands that a set-field's prerequisites are.
#[derive(Clone)]
pub(crate) enum Knowledge {
    /// Nothing, and nothing needs to be: packet-outs and group buckets.
    Nothing,
    /// These fields, as the match says and the actions before change it.
    Fields(Match),
}

impl Knowledge {
    pub(crate) fn of(fields: &Match) -> Self {
        Knowledge::Fields(fields.clone())
    }

    pub(crate) fn check_actions<'a>(
        &mut self,
        actions: impl IntoIterator<Item = &'a Action>,
    ) -> Result<(), Fault> {
        for action in actions {
            self.check_action(action)?;
            self.learn(action);
        }
        Ok(())
    }

    pub(crate) fn check_action(&self, action: &Action) -> Result<(), Fault> {
        match action {
            Action::Output { port, .. } => check_output(*port),
            Action::Group(id) if *id > GroupId::MAX => {
                Err(Fault::new(ErrorCode::BadActionBadOutGroup, "a number that no group can have"))
            }
            Action::PushVlan(tpid) => check_type(*tpid, &[0x8100, 0x88a8]),
            Action::PushMpls(tpid) => check_type(*tpid, &[0x8847, 0x8848]),
            Action::PushPbb(tpid) => check_type(*tpid, &[0x88e7]),
            Action::SetField(oxm) => self.check_set_field(oxm),
            Action::Place(_) => Err(Fault::new(
                ErrorCode::BadActionBadExpType,
                "place is for steering entries, and the tables of a switch are none",
            )),
            Action::Experimenter { experimenter: NICIRA | SUIRO, .. } => Err(Fault::new(
                ErrorCode::BadActionBadExpType,
                "an action of Nicira or suiro that this version does not know",
            )),
            Action::Experimenter { .. } => Err(Fault::new(
                ErrorCode::BadActionBadExperimenter,
                "an experimenter that suiro does not know",
            )),
            _ => Ok(()),
        }
    }

    fn check_set_field(&self, oxm: &Oxm) -> Result<(), Fault> {
        let Oxm::Known { field, value, mask } = oxm else {
            return Err(Fault::new(
                ErrorCode::BadActionBadSetType,
                "a field that suiro does not know",
            ));
        };
        if !field.spec().settable {
            return Err(Fault::new(ErrorCode::BadActionBadSetType, "a field that cannot be set"));
        }
        if value & !field.full() != 0
            || mask.is_some_and(|mask| value & !mask != 0 || mask & !field.full() != 0)
        {
            return Err(Fault::new(
                ErrorCode::BadActionBadSetArgument,
                "a value that the field cannot have",
            ));
        }
        if field.is_end() && (mask.is_some() || is_no_end(*field, *value)) {
            return Err(Fault::new(
                ErrorCode::BadActionBadSetArgument,
                "a tunnel address under a mask, or :: (0.0.0.0 says that there is no tunnel)",
            ));
        }
        if *field == OxmField::VlanVid
            && value & mask.unwrap_or(field.full()) & u128::from(VLAN_PRESENT) == 0
        {
            return Err(Fault::new(
                ErrorCode::BadActionBadSetArgument,
                "a VLAN id without the present bit 0x1000",
            ));
        }
        if !self.grants(field.spec().prerequisite) {
            return Err(Fault::new(
                ErrorCode::BadActionMatchInconsistent,
                "a set-field that the match does not allow",
            ));
        }
        Ok(())
    }

    fn grants(&self, prerequisite: Prerequisite) -> bool {
        match self {
            Knowledge::Nothing => true,
            Knowledge::Fields(fields) => fields.satisfies(prerequisite),
        }
    }

    /// What is certain after the action. After a header is popped whose content the match cannot have named, nothing is.
    pub(crate) fn learn(&mut self, action: &Action) {
        let Knowledge::Fields(fields) = self else { return };
        match action {
            Action::PushVlan(_) | Action::EnsureVlan => {
                know(fields, OxmField::VlanVid, u128::from(VLAN_PRESENT))
            }
            Action::PushMpls(ether) | Action::PushPbb(ether) => {
                know(fields, OxmField::EthType, u128::from(*ether))
            }
            Action::PopMpls(ether) if [0x8847, 0x8848].contains(ether) => {
                know(fields, OxmField::EthType, u128::from(*ether));
            }
            Action::PopMpls(_) | Action::PopPbb => *self = Knowledge::Nothing,
            Action::SetField(Oxm::Known { field, value, mask: None }) => {
                know(fields, *field, *value)
            }
            _ => {}
        }
    }
}

fn know(fields: &mut Match, field: OxmField, value: u128) {
    fields.0.retain(|oxm| oxm.field() != Some(field));
    fields.0.push(Oxm::exact(field, value));
}

fn check_output(port: PortNo) -> Result<(), Fault> {
    let reserved = [
        PortNo::IN_PORT,
        PortNo::NORMAL,
        PortNo::FLOOD,
        PortNo::ALL,
        PortNo::CONTROLLER,
        PortNo::LOCAL,
    ];
    if port.is_ordinary() || reserved.contains(&port) {
        return Ok(());
    }
    Err(Fault::new(ErrorCode::BadActionBadOutPort, "a port that nothing can be sent to"))
}

fn check_type(ether: u16, allowed: &[u16]) -> Result<(), Fault> {
    if allowed.contains(&ether) {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::BadActionBadArgument,
        "an Ethernet type that this header cannot have",
    ))
}
