//! Runs actions over one packet.
//!
//! [`Run`] is one packet on its way through a switch. The tables hand it the instructions of the entries that match;
//! it edits the packet and tells the [`Sink`] where it goes. Its rules:
//!
//! * **One trail.** A packet ends either in outputs and packet-ins, at least one, or in exactly one loss with a reason
//!   ([`Sink::lose`]). A copy that is lost while another one left is told in the same way.
//! * **Late outputs.** An output is told when the packet is about to change, or at the end. So neighbouring outputs
//!   become one call, and the last one is marked [`Then::Done`] exactly when it came from the original packet and
//!   nothing touches that again: the sink then need not copy.
//! * **Late groups.** A group at the end of a program works on the packet itself; only groups and buckets with
//!   something after them work on copies, which live on the stack.
//! * **Bounded.** A packet makes at most [`MAX_COPIES`] copies and one per port of the switch, and beyond [`FREE_COPIES`] and two per
//!   port only as many as its sink has left ([`Sink::more_copies`]); then it stops with [`DropReason::TooManyCopies`]. Groups nest at most [`MAX_CHAIN`](crate::limits::MAX_CHAIN) deep.

mod edit;
mod groups;
mod hash;
mod leave;
mod leaving;
mod linear;
mod normal;
mod outputs;
mod packet_out;
#[cfg(test)]
mod tests;

pub(crate) use edit::edit;
pub(crate) use hash::{HASHED, flow_hash};
pub(crate) use leave::Leaves;
pub(crate) use leaving::Leaving;
pub(crate) use linear::{LinearProgram, leave};
pub(crate) use normal::{is_group_address, is_reserved_address};
pub(crate) use packet_out::{Tables, packet_out};

use crate::action::{Action, Output};
use crate::action_set::ActionSet;
use crate::group::GroupTable;
use crate::mac::MacTable;
use crate::meter::{MeterTable, MeterVerdict};
use crate::packet::{Packet, PacketInReason, Sink, Then};
use crate::ports::PortTable;
use crate::time::Nanos;
use outputs::Pending;
use std::ops::ControlFlow;
use wire::{DropReason, EditError, Field};

/// Copies one packet may make, beyond one for each port of the switch. Chosen: four times what a full mirror of a
/// large switch needs, and a worker is done with them in well under a millisecond.
pub(crate) const MAX_COPIES: u32 = 1024;
/// Those that it may make without asking, beyond two for each port of the switch: a bucket of a group, and what it sends.
const FREE_COPIES: u32 = 64;

/// Copies that one packet may make in a switch of so many ports: without asking, and beside those.
fn copies(ports: u32) -> [u32; 2] {
    let most = MAX_COPIES + ports;
    let free = most.min(FREE_COPIES + 2 * ports);
    [free, most - free]
}

/// `max_len` that asks for the whole packet (`OFPCML_NO_BUFFER`).
pub(crate) const WHOLE: u16 = 0xffff;

/// Cookie that means "no entry" (OpenFlow 1.3.5 §7.4.1).
pub(crate) const NO_COOKIE: u64 = u64::MAX;

/// What actions need to know of their switch.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a> {
    pub ports: &'a PortTable,
    pub groups: &'a GroupTable,
    pub meters: &'a MeterTable,
    pub macs: &'a MacTable,
    /// Copies a second that floods of one port may cause.
    pub flood_copies_per_s: Option<u32>,
    /// A packet whose TTL runs out goes to the controller.
    pub invalid_ttl_to_controller: bool,
    /// A controller of OpenFlow 1.0 listens, which knows no table-miss entries.
    pub for_v10: bool,
    pub now: Nanos,
}

/// The entry that actions come from, as a packet-in names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    pub table: u8,
    pub cookie: u64,
    /// The entry is a table-miss entry: matches everything, priority 0.
    pub miss: bool,
}

impl Origin {
    /// A packet-out: no entry.
    pub const PACKET_OUT: Origin = Origin { table: 0, cookie: NO_COOKIE, miss: false };
}

/// What has become of a packet and its copies so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trail {
    /// A verdict was told.
    told: bool,
    /// Why the last copy that was lost was lost.
    lost: Option<DropReason>,
    /// Copies left.
    budget: u32,
    /// Copies that may be made beside those, if the sink has them left.
    rest: u32,
}

/// One packet on its way through a switch.
pub(crate) struct Run<'r, 'h, S> {
    env: &'r Env<'r>,
    index: usize,
    /// The packet as it is now.
    packet: &'r mut Packet<'h>,
    sink: &'r mut S,
    trail: Trail,
    pending: Pending<'r>,
    /// A group that is run when it is known whether anything follows it, and the entry that named it.
    group: Option<(u32, Origin)>,
    origin: Origin,
    kind: Kind,
    /// Groups around these actions.
    depth: u8,
    /// Nothing cut the program short.
    alive: bool,
}

/// Whose head a [`Run`] works on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The packet of the batch.
    Original,
    /// A copy on the stack: gone when the run ends.
    Copy,
}

impl<'r, 'h, S: Sink> Run<'r, 'h, S> {
    /// A packet at the start of its way; `index` is its place in the batch.
    pub fn new(
        env: &'r Env<'r>,
        index: usize,
        packet: &'r mut Packet<'h>,
        sink: &'r mut S,
    ) -> Self {
        let [budget, rest] = copies(env.ports.len() as u32);
        Self {
            env,
            index,
            packet,
            sink,
            trail: Trail { told: false, lost: None, budget, rest },
            pending: Pending::default(),
            group: None,
            origin: Origin::PACKET_OUT,
            kind: Kind::Original,
            depth: 0,
            alive: true,
        }
    }

    /// The packet as it is now, for the next table to look at.
    pub fn packet(&self) -> &Packet<'h> {
        self.packet
    }

    /// What follows comes from this entry.
    pub fn enter(&mut self, origin: Origin) {
        self.origin = origin;
    }

    /// `OFPIT_METER`. An absent meter lets the packet pass: its entries are about to go with it.
    pub fn meter(&mut self, id: u32) -> ControlFlow<()> {
        match self.env.meters.pass(id, self.packet.frame_len, self.env.now) {
            MeterVerdict::Pass => ControlFlow::Continue(()),
            MeterVerdict::Drop => self.stop(DropReason::Meter),
            MeterVerdict::Remark(level) => self.remark(level),
        }
    }

    /// `OFPIT_APPLY_ACTIONS`. Breaks when the packet's way ends here; then only [`Run::finish`] is left to call.
    pub fn apply(&mut self, actions: &[Action]) -> ControlFlow<()> {
        actions.iter().try_for_each(|action| self.step(action))
    }

    /// `OFPIT_WRITE_METADATA`.
    pub fn write_metadata(&mut self, value: u64, mask: u64) -> ControlFlow<()> {
        let before = self.packet.key.get(Field::Metadata) as u64;
        let after = before & !mask | value & mask;
        if after != before {
            self.run_waiting_group()?; // a packet-in from its buckets must not show what is written only now
            self.packet.key.set(Field::Metadata, u128::from(after)); // outputs that wait do not show it at all
        }
        ControlFlow::Continue(())
    }

    /// Ends the packet's way without more actions, for this reason unless it already left somewhere.
    pub fn stop(&mut self, reason: DropReason) -> ControlFlow<()> {
        self.trail.lost = Some(reason);
        self.alive = false;
        ControlFlow::Break(())
    }

    /// Executes the action set and tells the verdict.
    pub fn finish(self, set: &ActionSet) -> Trail {
        self.finish_with(set.program())
    }

    /// Executes `program`, which is an action set in its order of execution, and tells the verdict.
    pub fn finish_with(mut self, program: &[Action]) -> Trail {
        if self.alive {
            self.origin.miss = false; // only an apply-actions list of a table-miss entry is a table miss
            let _cut_or_not = self.apply(program);
        }
        self.run_last_group();
        self.flush(self.last());
        if self.kind == Kind::Original {
            self.settle();
        }
        self.trail
    }

    fn step(&mut self, action: &Action) -> ControlFlow<()> {
        match *action {
            Action::Output(output) => self.output(output),
            Action::Group(id) => {
                self.run_waiting_group()?;
                self.group = Some((id, self.origin));
                ControlFlow::Continue(())
            }
            Action::SetQueue(queue) => self.set_queue(queue),
            _ => self.edit(action),
        }
    }

    fn output(&mut self, output: Output) -> ControlFlow<()> {
        self.run_waiting_group()?;
        match output {
            Output::Controller { max_len } => self.send_to_controller(max_len),
            // Only a packet-out may send through the tables, and it takes care of that itself.
            Output::Table => self.lose(DropReason::NoPort),
            _ => {
                let leaves = self.env.leaves(self.packet, output);
                self.send(leaves)
            }
        }
    }

    fn set_queue(&mut self, queue: u32) -> ControlFlow<()> {
        if queue != self.packet.queue {
            self.touch()?;
            self.packet.queue = queue;
        }
        ControlFlow::Continue(())
    }

    fn edit(&mut self, action: &Action) -> ControlFlow<()> {
        self.touch()?;
        match edit::edit(self.packet, action) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.cannot_edit(error),
        }
    }

    fn cannot_edit(&mut self, error: EditError) -> ControlFlow<()> {
        match error {
            // A header that is not there is not edited: the match did not promise it.
            EditError::NotPresent => ControlFlow::Continue(()),
            EditError::TtlExpired => self.ttl_expired(),
            EditError::NoRoom | EditError::Malformed => self.stop(DropReason::BadEdit),
        }
    }

    fn ttl_expired(&mut self) -> ControlFlow<()> {
        if !self.env.invalid_ttl_to_controller {
            return self.stop(DropReason::TtlExpired);
        }
        self.packet_in(PacketInReason::InvalidTtl, WHOLE)?;
        self.alive = false;
        ControlFlow::Break(())
    }

    fn remark(&mut self, level: u8) -> ControlFlow<()> {
        let before = self.packet.key.get(Field::IpDscp) as u8;
        match crate::meter::remarked(before, level) {
            after if after == before => ControlFlow::Continue(()),
            after => self.edit(&Action::SetField {
                field: Field::IpDscp,
                of: None,
                value: u128::from(after),
                mask: Field::IpDscp.full(),
            }),
        }
    }

    /// The packet is about to change: what was to be told of it as it is must be told now.
    fn touch(&mut self) -> ControlFlow<()> {
        self.run_waiting_group()?;
        self.flush(Then::More);
        ControlFlow::Continue(())
    }

    /// One copy goes nowhere; the program goes on.
    fn lose(&mut self, reason: DropReason) -> ControlFlow<()> {
        self.trail.lost = Some(reason);
        ControlFlow::Continue(())
    }

    /// Accounts for `copies` more.
    fn spend(&mut self, copies: usize) -> ControlFlow<()> {
        match self.trail.budget.checked_sub(copies as u32) {
            Some(left) => {
                self.trail.budget = left;
                ControlFlow::Continue(())
            }
            None if self.ask_for(copies as u32) => self.spend(copies),
            None => {
                self.trail.budget = 0;
                self.stop(DropReason::TooManyCopies)
            }
        }
    }

    /// Asks for more copies, until so many may be made. Returns whether they may.
    #[cold]
    fn ask_for(&mut self, copies: u32) -> bool {
        while self.trail.budget < copies {
            let more = self.sink.more_copies(self.index).min(self.trail.rest);
            if more == 0 {
                return false;
            }
            self.trail.rest -= more;
            self.trail.budget += more;
        }
        true
    }

    /// What the last output says: a copy on the stack is gone afterwards, so the sink must keep its own.
    fn last(&self) -> Then {
        match self.kind {
            Kind::Original => Then::Done,
            Kind::Copy => Then::More,
        }
    }

    fn settle(&mut self) {
        let dropped = (!self.trail.told).then_some(DropReason::ByRule);
        if let Some(reason) = self.trail.lost.or(dropped) {
            self.sink.lose(self.index, self.packet, reason);
        }
    }
}
