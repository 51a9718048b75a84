//! Whether instructions can be executed at all: the checks of OpenFlow 1.3.5 §7.2.4 and §7.2.5 that need no codec.
//!
//! A set-field or a pop needs a header; the match, or an action before, must promise it (`OFPBAC_MATCH_INCONSISTENT`).
//! What a header promises follows the list from action to action ([`promise`]). Behind a popped header lies something
//! that no match can name, so there everything is accepted and an edit of what is absent does nothing. A bucket's
//! packets are unknown, so its actions are checked for their arguments only.

mod promise;
#[cfg(test)]
mod tests;

use crate::action::{Action, ActionError, Output, Transport};
use crate::action_set::ActionSet;
use crate::flow_mod::FlowMod;
use crate::limits::{MAX_ACTIONS, MAX_GROUP, MAX_PORT};
use promise::{Promise, REVEALED};
use wire::{Field, VLAN_PRESENT, eth_type};

/// `OFPQ_ALL`, which no packet can go to.
const ALL_QUEUES: u32 = 0xffff_ffff;

/// Checks the instructions of an entry that `change` adds or modifies.
///
/// A port need not exist: it may be plugged in later, and until then packets to it are dropped. Groups and meters must.
///
/// # Errors
/// The first action that cannot be.
pub fn validate(
    change: &FlowMod,
    group_exists: impl Fn(u32) -> bool,
    meter_exists: impl Fn(u32) -> bool,
) -> Result<(), ActionError> {
    let instructions = &change.instructions;
    if let Some(meter) = instructions.meter.filter(|&meter| !meter_exists(meter)) {
        return Err(ActionError::UnknownMeter(meter));
    }
    let mut promise = match change.may_miss_headers {
        true => REVEALED,
        false => Promise::of(&change.key, &change.mask),
    };
    check_list(&instructions.apply, &mut promise, &group_exists, Caller::Table)?;
    check_length(&instructions.write)?;
    instructions
        .write
        .iter()
        .try_for_each(|action| check_argument(action, &group_exists, Caller::Table))?;
    let set = ActionSet::of(&instructions.write);
    set.program().iter().try_for_each(|action| promise.admit(action))
}

/// Checks a packet-out's actions: nothing is known of its frame but what the actions make of it.
///
/// # Errors
/// The first action that cannot be.
pub fn validate_packet_out(
    actions: &[Action],
    group_exists: impl Fn(u32) -> bool,
) -> Result<(), ActionError> {
    check_length(actions)?;
    actions.iter().try_for_each(|action| check_argument(action, &group_exists, Caller::PacketOut))
}

/// Checks the actions of a bucket.
pub(crate) fn validate_bucket(
    actions: &[Action],
    group_exists: impl Fn(u32) -> bool,
) -> Result<(), ActionError> {
    check_length(actions)?;
    actions.iter().try_for_each(|action| check_argument(action, &group_exists, Caller::Table))
}

/// Who executes the actions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    Table,
    PacketOut,
}

fn check_list(
    actions: &[Action],
    promise: &mut Promise,
    group_exists: &impl Fn(u32) -> bool,
    caller: Caller,
) -> Result<(), ActionError> {
    check_length(actions)?;
    actions.iter().try_for_each(|action| {
        check_argument(action, group_exists, caller)?;
        promise.admit(action)
    })
}

fn check_length(actions: &[Action]) -> Result<(), ActionError> {
    if actions.len() > MAX_ACTIONS { Err(ActionError::TooMany) } else { Ok(()) }
}

/// Checks what an action says, apart from the packets it is for.
fn check_argument(
    action: &Action,
    group_exists: &impl Fn(u32) -> bool,
    caller: Caller,
) -> Result<(), ActionError> {
    match *action {
        Action::Output(output) => check_output(output, caller),
        Action::Group(id) if id > MAX_GROUP || !group_exists(id) => {
            Err(ActionError::BadOutGroup(id))
        }
        Action::SetQueue(ALL_QUEUES) => Err(ActionError::BadQueue(ALL_QUEUES)),
        Action::PushVlan(tpid) if !eth_type::is_vlan(tpid) => {
            Err(ActionError::BadArgument(*action))
        }
        Action::PushMpls(shim) if !eth_type::is_mpls(shim) => {
            Err(ActionError::BadArgument(*action))
        }
        Action::PushPbb(tag) if tag != eth_type::PBB => Err(ActionError::BadArgument(*action)),
        Action::SetField { field, of, value, mask } => check_set(field, of, value, mask),
        _ => Ok(()),
    }
}

fn check_output(output: Output, caller: Caller) -> Result<(), ActionError> {
    match output {
        Output::Port(0) => Err(ActionError::BadOutPort(output)),
        Output::Port(port) if port > MAX_PORT => Err(ActionError::BadOutPort(output)),
        Output::Table if caller != Caller::PacketOut => Err(ActionError::BadOutPort(output)),
        _ => Ok(()),
    }
}

fn check_set(
    field: Field,
    of: Option<Transport>,
    value: u128,
    mask: u128,
) -> Result<(), ActionError> {
    let present = u128::from(VLAN_PRESENT);
    let shared_by = Transport::with(field);
    let says_whose = of.map_or(shared_by.is_empty(), |transport| shared_by.contains(&transport));
    match field {
        _ if !field.is_settable() || !says_whose => Err(ActionError::BadSetType(field)),
        _ if mask == 0 || (mask | value) & !field.full() != 0 || value & !mask != 0 => {
            Err(ActionError::BadSetArgument(field))
        }
        // Only a pop removes a tag.
        Field::VlanVid if mask & present != 0 && value & present == 0 => {
            Err(ActionError::BadSetArgument(field))
        }
        _ => Ok(()),
    }
}
