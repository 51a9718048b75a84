//! Changing flow entries, and what follows from it: the journal, flow-removed, publication.

use crate::journal::{Change, FlowEntry, FlowId};
use crate::switch::buffers::Kept;
use crate::switch::listener::Event;
use crate::switch::portions::{Change as UnderWay, PORTION};
use crate::switch::translate::{self, flag_bits};
use crate::switch::{Control, Emission, Switch};
use flow::{Action, Counted, EntryId, FlowCommand, FlowFilter, FlowStats, Nanos, Output, Removed};
use openflow::{ErrorCode, Fault, FlowMod, FlowModCommand};

impl Switch {
    /// Makes or begins what one message wants; the frame under its buffer id is to follow it. Ids that are no good refuse the message, and a refused
    /// message leaves the frame where it is.
    pub(super) fn begin_message(
        &self,
        control: &mut Control,
        change: &FlowMod,
        now: Nanos,
    ) -> Result<(Option<UnderWay>, Option<Kept>), Fault> {
        change.check()?;
        // §7.3.4.1: not meaningful for a delete.
        let is_delete =
            matches!(change.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
        let buffer = change.buffer_id.filter(|_| !is_delete);
        buffer.map_or(Ok(()), |id| self.check_buffer(id))?;
        let mut wanted = self.named(control, |share| translate::flow_mod(change, share))?;
        if change.version.modify_adds_what_it_misses() && !is_there(control, &wanted, now) {
            wanted.command = FlowCommand::Add;
        }
        let under_way = self.begin(control, wanted, now)?;
        // Another controller may just have used it: then it is on its way already.
        Ok((under_way, buffer.and_then(|id| self.take_buffer(id).ok())))
    }

    /// Sends kept frames through the tables as they are now (§7.3.4.1: as a packet-out to `OFPP_TABLE` after the change).
    pub(super) fn release(&self, control: &mut Control, frames: Vec<Kept>) {
        if frames.is_empty() {
            return;
        }
        self.publish_locked(control);
        for Kept { frame, in_port } in frames {
            let (frame, offload) = frame.into_sendable();
            let actions = vec![Action::Output(Output::Table)];
            self.plane.packet_out(Emission { in_port, frame, offload, actions });
        }
    }

    /// Removes kept frames that have timed out; whether entries have, too ([`Switch::expire`]). Cheap while nothing has; call it a few times a second.
    pub fn tick(&self) -> bool {
        self.expire_buffers();
        let is_due = {
            let (now, mut control) = (self.now(), self.control());
            let weight = control.pipeline.weight();
            control.account.settle(weight);
            control.pipeline.next_expiry().is_some_and(|due| due <= now)
        };
        if is_due {
            // An entry whose frames go past the workers is in use.
            self.plane.refresh();
        }
        is_due
    }

    /// Removes a portion of the entries that have timed out; whether there are more.
    pub fn expire(&self) -> bool {
        let (now, mut control) = (self.now(), self.control());
        let removed = control.pipeline.expire_some(PORTION, now);
        self.after_removal(&mut control, &removed);
        control.pipeline.next_expiry().is_some_and(|due| due <= now)
    }

    pub(super) fn add(
        &self,
        control: &mut Control,
        change: flow::FlowMod,
        now: Nanos,
    ) -> Result<(), Fault> {
        make_room(control, &change, now)?;
        control.pipeline.flow_mod(&change, now).map_err(translate::flow_mod_fault)?;
        self.touch(control);
        self.record_add(control, change);
        Ok(())
    }

    fn record_add(&self, control: &Control, change: flow::FlowMod) {
        self.record(control, || {
            let id = FlowId {
                table: change.table.unwrap_or_default(),
                priority: change.priority,
                key: change.key.masked(&change.mask),
                mask: change.mask,
            };
            let entry = FlowEntry {
                cookie: change.cookie,
                idle_timeout_s: change.idle_timeout_s,
                hard_timeout_s: change.hard_timeout_s,
                flags: flag_bits(change.flags).bits(),
                age_ns: change.age_ns,
                idle_ns: change.idle_ns,
                counted: change.counted,
                note: change.note,
                instructions: change.instructions,
            };
            Change::FlowSet(id, entry)
        });
    }

    /// Records entries as they are now.
    pub(super) fn record_modified(&self, control: &Control, entries: &[EntryId], now: Nanos) {
        for entry in entries.iter().filter_map(|&name| control.pipeline.entry(name, now)) {
            self.record(control, || set(&entry));
        }
    }

    /// Records that entries went.
    pub(crate) fn after_removal(&self, control: &mut Control, removed: &[Removed]) {
        if removed.is_empty() {
            return;
        }
        self.touch(control);
        for gone in removed {
            self.record(control, || Change::FlowGone(flow_id(&gone.flow)));
        }
    }

    /// Tells of the entries that went and that no worker uses any more: their counters are final.
    pub(crate) fn tell_departed(&self, control: &mut Control) {
        let anybody = self.listeners.any(|_| true);
        for gone in control.pipeline.departed().into_iter().filter(|_| anybody) {
            self.listeners.tell(Event::FlowRemoved(&translate::flow_removed(&gone, &self.ends)));
        }
    }
}

/// Takes room for an entry that is added. One that replaces another with as many actions needs none.
fn make_room(control: &mut Control, change: &flow::FlowMod, now: Nanos) -> Result<(), Fault> {
    if change.command != FlowCommand::Add || control.takes(1 + change.instructions.weight()) {
        return Ok(());
    }
    let same =
        flow::FlowMod { command: FlowCommand::ModifyStrict, cookie_mask: 0, ..change.clone() };
    let there = covered(control, &same, &modified(&same), now).next();
    match there.filter(|there| there.instructions.weight() >= change.instructions.weight()) {
        Some(_) => Ok(()),
        None => Err(Fault::new(
            ErrorCode::FlowModFailedTableFull,
            "the node's memory has no room for more entries of this switch",
        )),
    }
}

/// Whether the entries that a modify is about exist; of any other command, true.
fn is_there(control: &Control, change: &flow::FlowMod, now: Nanos) -> bool {
    match change.command {
        FlowCommand::Modify | FlowCommand::ModifyStrict => {
            covered(control, change, &modified(change), now).next().is_some()
        }
        FlowCommand::Add | FlowCommand::Delete | FlowCommand::DeleteStrict => true,
    }
}

/// The entries that a modify is about are among these.
fn modified(change: &flow::FlowMod) -> FlowFilter {
    FlowFilter {
        table: change.table,
        key: change.key,
        mask: change.mask,
        cookie: change.cookie,
        cookie_mask: change.cookie_mask,
        out_port: None,
        out_group: None,
    }
}

/// The entries that a modify is about, of those that `filter` finds.
fn covered<'a>(
    control: &'a Control,
    change: &'a flow::FlowMod,
    filter: &'a FlowFilter,
    now: Nanos,
) -> impl Iterator<Item = FlowStats> + 'a {
    let strict = change.command == FlowCommand::ModifyStrict;
    let is_same =
        |entry: &FlowStats| entry.mask == change.mask && entry.priority == change.priority;
    control.pipeline.flows(filter, now).filter(move |entry| !strict || is_same(entry))
}

/// Which entry it is.
pub(crate) fn flow_id(entry: &FlowStats) -> FlowId {
    FlowId { table: entry.table, priority: entry.priority, key: entry.key, mask: entry.mask }
}

/// The change that an entry as it is now came about by.
pub(crate) fn set(entry: &FlowStats) -> Change {
    let kept = FlowEntry {
        cookie: entry.cookie,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        flags: flag_bits(entry.flags).bits(),
        age_ns: entry.age_ns,
        idle_ns: entry.idle_ns,
        counted: Counted { packets: entry.packets, bytes: entry.bytes },
        note: entry.note,
        instructions: (*entry.instructions).clone(),
    };
    Change::FlowSet(flow_id(entry), kept)
}
