//! What a switch does while no controller is there, and who counts as one: see [`FailMode`] (OpenFlow 1.3.5 §6.3.2).
//!
//! Time is the plane's; [`Switch::watch_controllers`] is to be called a few times a second.

use crate::switch::listener::{Audience, Connection, Listener};
use crate::switch::tables::every_table;
use crate::switch::{Control, Switch, translate};
use api::{FailMode, Happening, News, Noun, Rules};
use flow::{FragMode, Miss, Nanos, SwitchConfig};
use openflow::{
    ErrorCode, Fault, FlowMod, FlowModCommand, FragmentMode, GroupId, GroupMod, GroupModCommand,
    GroupType, MeterFlags, MeterId, MeterMod, MeterModCommand, TableId,
};
use std::sync::Arc;
use std::time::Duration;

/// What happens without a controller, and what becomes of the rules then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailPolicy {
    /// What happens to packets.
    pub mode: FailMode,
    /// How long a standalone switch behaves as a secure one before it forwards by itself.
    pub after: Duration,
    /// The rules when a controller comes and none was there.
    pub on_reconnect: Rules,
    /// The rules when the switch begins to forward by itself after a controller was there.
    pub on_standalone: Rules,
    /// Copies a second that floods of one port may cause; none: no bound.
    pub flood_copies_per_s: Option<u32>,
    /// Copies a second beyond those that each frame may make.
    pub copies_per_s: Option<u32>,
}

impl FailPolicy {
    /// That mode at once, and the rules stay.
    pub fn of(mode: FailMode) -> Self {
        let (on_reconnect, on_standalone) = (Rules::Keep, Rules::Keep);
        let (flood_copies_per_s, copies_per_s, after) = Default::default();
        Self { mode, after, on_reconnect, on_standalone, flood_copies_per_s, copies_per_s }
    }
}

/// Where a switch stands with its controllers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attendance {
    pub policy: FailPolicy,
    /// It calls controllers or waits for them; a switch that does neither has nobody to wait for.
    expected: bool,
    /// It calls them.
    calls: bool,
    /// Since when none is there; nothing while one is.
    without_since: Option<Nanos>,
    /// One was there at some time.
    met: bool,
    /// The switch forwards by itself.
    alone: bool,
}

impl Attendance {
    /// Of a new switch.
    pub fn new(mode: FailMode) -> Self {
        Self {
            policy: FailPolicy::of(mode),
            expected: false,
            calls: false,
            without_since: Some(Nanos(0)),
            met: false,
            alone: mode == FailMode::Standalone,
        }
    }

    /// Whether the switch is to forward by itself.
    fn is_alone(&self, now: Nanos) -> bool {
        let waited = |since: Nanos| {
            !self.expected
                || u128::from(now.0.saturating_sub(since.0)) >= self.policy.after.as_nanos()
        };
        self.policy.mode == FailMode::Standalone && self.without_since.is_some_and(waited)
    }

    fn miss(&self, audience: Audience) -> Miss {
        match (self.alone, self.calls || self.met) {
            (false, _) if audience.takes_misses => Miss::Controller,
            (false, _) => Miss::Drop,
            (true, false) => Miss::Normal,
            (true, true) => Miss::Orphaned,
        }
    }
}

impl Control {
    /// Puts fail mode and fragment mode in force.
    pub(crate) fn configure(&mut self, audience: Audience) {
        self.pipeline.set_config(SwitchConfig {
            miss: self.attendance.miss(audience),
            fragments: if self.fragments == FragmentMode::Drop {
                FragMode::Drop
            } else {
                FragMode::Normal
            },
            invalid_ttl_to_controller: true,
            flood_copies_per_s: self.attendance.policy.flood_copies_per_s,
            copies_per_s: self.attendance.policy.copies_per_s,
        });
    }
}

impl Switch {
    /// A connection hears events from now on; a controller ends the switch's being on its own.
    pub fn join(&self, listener: Arc<dyn Listener>) {
        let mut control = self.control();
        // Before it hears of changes: what was is not its concern.
        if listener.is_controller() {
            self.controller_is_there(&mut control);
        }
        self.tell_controller(&listener.describe(), "connected");
        self.listeners.add(listener);
        self.listeners_changed();
        self.reconfigure(&mut control);
    }

    /// A connection is gone.
    pub fn leave(&self, id: u64) {
        let mut control = self.control();
        let gone = self.listeners.remove(id);
        gone.iter().for_each(|gone| self.tell_controller(&gone.describe(), "disconnected"));
        self.listeners_changed();
        self.look_for_controllers(&mut control);
    }

    /// A connection that stays wants other events, or has another role: it may take packets without a match, or no longer.
    pub fn audience_changed(&self) {
        self.reconfigure(&mut self.control());
    }

    /// A connection that is there has turned out to be a controller's.
    pub fn controllers_changed(&self, turned_out: &dyn Listener) {
        self.tell_controller(&turned_out.describe(), "connected");
        self.look_for_controllers(&mut self.control());
    }

    /// Tells what a controller's main connection does.
    pub(crate) fn tell_controller(&self, connection: &Connection, what: &str) {
        if connection.controller && connection.auxiliary == 0 {
            let text = format!("{what}, OpenFlow {}, role {}", connection.version, connection.role);
            self.tell((Noun::Controller, &connection.peer), Happening::State, text);
        }
    }

    /// Lets a standalone switch forward by itself when it has waited long enough for a controller.
    pub fn watch_controllers(&self) {
        let mut control = self.control();
        if control.attendance.is_alone(self.now()) != control.attendance.alone {
            self.look_for_controllers(&mut control);
        }
    }

    #[cfg(test)]
    pub(crate) fn audience(&self) -> Audience {
        self.listeners.audience()
    }

    /// Whether a controller is connected now.
    pub fn has_controller(&self) -> bool {
        self.listeners.any_controller()
    }

    /// Whether the switch forwards by itself what it would ask a controller about.
    pub fn is_alone(&self) -> bool {
        self.control().attendance.alone
    }

    /// What happens without a controller.
    pub fn fail_policy(&self) -> FailPolicy {
        self.control().attendance.policy
    }

    /// Changes what happens without a controller.
    pub fn set_fail_policy(&self, policy: FailPolicy) {
        let mut control = self.control();
        control.attendance.policy = policy;
        self.look_for_controllers(&mut control);
    }

    /// Whether it calls controllers or waits for them. While none of them is there, a standalone switch does by itself what it would ask
    /// them about; one that nobody controls is left to its rules, whoever wrote them.
    pub fn expect_controllers(&self, calls: bool, listens: bool) {
        let mut control = self.control();
        let now = self.now();
        let attendance = &mut control.attendance;
        (attendance.expected, attendance.calls) = (calls || listens, calls);
        attendance.without_since = attendance.without_since.map(|_| now);
        self.look_for_controllers(&mut control);
    }

    fn look_for_controllers(&self, control: &mut Control) {
        if self.listeners.any_controller() {
            return self.controller_is_there(control);
        }
        let now = self.now();
        control.attendance.without_since.get_or_insert(now);
        let was_alone = control.attendance.alone;
        control.attendance.alone = control.attendance.is_alone(now);
        if control.attendance.alone && !was_alone && control.attendance.met {
            tracing::warn!(switch = self.name, "no controller: forwarding as a learning switch");
            let text = "no controller: forwarding by itself";
            self.feed.tell(News::of_switch(&self.name, Happening::State, text));
            self.flush(control, control.attendance.policy.on_standalone);
        }
        self.reconfigure(control);
    }

    fn controller_is_there(&self, control: &mut Control) {
        let is_first = control.attendance.without_since.take().is_some();
        (control.attendance.alone, control.attendance.met) = (false, true);
        if is_first {
            self.flush(control, control.attendance.policy.on_reconnect);
        }
        self.reconfigure(control);
    }

    /// Removes every flow, group and meter and brings every table back, if that is what `rules` says.
    fn flush(&self, control: &mut Control, rules: Rules) {
        if rules == Rules::Keep {
            return;
        }
        let now = self.now();
        let flows =
            FlowMod { command: FlowModCommand::Delete, table: TableId::ALL, ..FlowMod::default() };
        let (command, id) = (GroupModCommand::Delete, GroupId::ALL);
        let groups = GroupMod { command, kind: GroupType::All, id, buckets: Vec::new() };
        let (command, id) = (MeterModCommand::Delete, MeterId::ALL);
        let meters = MeterMod { command, flags: MeterFlags::empty(), id, bands: Vec::new() };
        let flushed = translate::flow_mod(&flows, &self.ends)
            .and_then(|flows| self.apply(control, flows, now))
            .and_then(|()| self.apply_group(control, &groups, now))
            .and_then(|()| self.apply_meter(control, &meters, now));
        self.set_tables(control, every_table(&self.limits));
        match flushed {
            Ok(()) => tracing::info!(switch = self.name, "flows, groups and meters are flushed"),
            Err(fault) => tracing::error!(switch = self.name, %fault, "rules could not be flushed"),
        }
    }

    /// What happens to fragments.
    pub fn fragments(&self) -> FragmentMode {
        self.control().fragments
    }

    /// Changes what happens to fragments.
    ///
    /// # Errors
    /// `OFPSCFC_BAD_FLAGS`: suiro does not reassemble.
    pub fn set_fragments(&self, fragments: FragmentMode) -> Result<(), Fault> {
        if fragments == FragmentMode::Reassemble {
            return Err(Fault::new(
                ErrorCode::SwitchConfigFailedBadFlags,
                "suiro does not reassemble fragments",
            ));
        }
        let mut control = self.control();
        control.fragments = fragments;
        self.reconfigure(&mut control);
        Ok(())
    }

    fn reconfigure(&self, control: &mut Control) {
        control.configure(self.listeners.audience());
        self.touch(control);
    }
}
