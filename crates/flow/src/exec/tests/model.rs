//! The slow obvious executor: every output makes its bytes at once, every bucket gets a clone, nothing waits.

use super::frame::Frame;
use super::recorder::{Sent, Step, Verdicts, origin};
use super::{LOCAL, Switch};
use crate::action::{Action, Output, PortNo, Transport};
use crate::exec::Origin;
use crate::group::{Bucket, GroupKind};
use crate::limits::MAX_CHAIN;
use crate::packet::{PacketIn, PacketInReason};
use std::collections::HashMap;
use wire::{DropReason, EditError};

/// What the model knows of a switch.
pub struct Model<'a> {
    pub switch: &'a Switch,
    pub groups: &'a [(u32, GroupKind, Vec<Bucket>)],
    pub in_port: PortNo,
    pub macs: HashMap<(u16, u64), PortNo>,
    verdicts: Verdicts,
    reason: Option<DropReason>,
}

/// The program of this packet or copy ends here.
struct Cut;

/// A packet or copy as it is now.
#[derive(Clone)]
struct State {
    frame: Frame,
    queue: u32,
    origin: Origin,
}

impl<'a> Model<'a> {
    pub fn new(
        switch: &'a Switch,
        groups: &'a [(u32, GroupKind, Vec<Bucket>)],
        in_port: PortNo,
    ) -> Self {
        let (macs, verdicts) = (HashMap::new(), Verdicts::default());
        Self { switch, groups, in_port, macs, verdicts, reason: None }
    }

    /// What becomes of a frame.
    pub fn walk(&mut self, frame: &Frame, steps: &[Step]) -> Verdicts {
        (self.verdicts, self.reason) = (Verdicts::default(), None);
        let mut state = State { frame: frame.clone(), queue: 0, origin: Origin::PACKET_OUT };
        let mut set = Vec::new();
        let all = steps.iter().enumerate().try_for_each(|(table, step)| {
            state.origin = origin(table, step.miss);
            self.list(&mut state, &step.apply, 0)?;
            set.extend(&step.write);
            Ok(())
        });
        state.origin.miss = false;
        let _cut_or_not = all.and_then(|()| self.list(&mut state, &in_order(&set), 0));
        match self.verdicts.sent.is_empty() && self.verdicts.told.is_empty() {
            true => self.verdicts.discarded = Some(self.reason.unwrap_or(DropReason::ByRule)),
            false => self.verdicts.lost = self.reason,
        }
        self.verdicts.clone()
    }

    fn list(&mut self, state: &mut State, actions: &[Action], depth: u8) -> Result<(), Cut> {
        for action in actions {
            match *action {
                Action::Output(output) => self.output(state, output),
                Action::Group(id) => self.group(state, id, depth),
                Action::SetQueue(queue) => state.queue = queue,
                _ => self.edit(state, action)?,
            }
        }
        Ok(())
    }

    fn edit(&mut self, state: &mut State, action: &Action) -> Result<(), Cut> {
        match state.frame.edit(action) {
            Ok(()) | Err(EditError::NotPresent) => return Ok(()),
            Err(EditError::TtlExpired) if self.switch.invalid_ttl_to_controller => {
                self.tell(state, PacketInReason::InvalidTtl, 0xffff);
            }
            Err(EditError::TtlExpired) => self.reason = Some(DropReason::TtlExpired),
            Err(EditError::NoRoom | EditError::Malformed) => {
                self.reason = Some(DropReason::BadEdit)
            }
        }
        Err(Cut)
    }

    fn output(&mut self, state: &State, output: Output) {
        match output {
            Output::Port(port) if port == self.in_port => {
                self.reason = Some(DropReason::NoDestination)
            }
            Output::Port(port) => self.send(state, port),
            Output::InPort => self.send(state, self.in_port),
            Output::Local if self.in_port == LOCAL => self.reason = Some(DropReason::NoDestination),
            Output::Local => self.send(state, LOCAL),
            Output::All => self.send_many(state, |_| true),
            Output::Flood => self.send_many(state, |port| port != 4),
            Output::Normal => self.normal(state),
            Output::Controller { max_len }
                if state.origin.miss && self.in_port == 7 && self.switch.for_v10 =>
            {
                self.tell(state, PacketInReason::SilentMiss, max_len)
            }
            Output::Controller { .. } if state.origin.miss && self.in_port == 7 => {
                self.reason = Some(DropReason::NoMatch);
            }
            Output::Controller { max_len } if state.origin.miss => {
                self.tell(state, PacketInReason::NoMatch, max_len)
            }
            Output::Controller { max_len } => self.tell(state, PacketInReason::Action, max_len),
            Output::Table => self.reason = Some(DropReason::NoPort),
        }
    }

    fn normal(&mut self, state: &State) {
        let Frame { dst, src, .. } = state.frame;
        let vlan = state.frame.vlan();
        if dst & !0xf == 0x0180_c200_0000 {
            self.reason = Some(DropReason::ReservedAddress);
            return;
        }
        if src >> 40 & 1 == 0 {
            self.macs.insert((vlan, src), self.in_port);
        }
        match self.macs.get(&(vlan, dst)) {
            Some(&port) if port == self.in_port => self.reason = Some(DropReason::NoDestination),
            Some(&port) if self.switch.ports.is_live(port) => self.send(state, port),
            _ => self.send_many(state, |port| port != 4),
        }
    }

    fn group(&mut self, state: &State, id: u32, depth: u8) {
        let found = self.groups.iter().find(|(other, ..)| *other == id && depth < MAX_CHAIN);
        let buckets = found.map_or(vec![], |(_, kind, buckets)| self.chosen(*kind, buckets));
        if buckets.is_empty() {
            self.reason = Some(DropReason::NoBucket);
        }
        for bucket in buckets {
            let mut copy = state.clone();
            copy.origin.miss = false;
            let _cut_or_not = self.list(&mut copy, &in_order(&bucket.actions), depth + 1);
        }
    }

    /// Select groups here have one bucket with a weight, and it is usable.
    fn chosen<'b>(&self, kind: GroupKind, buckets: &'b [Bucket]) -> Vec<&'b Bucket> {
        let mut chosen = buckets.iter().filter(|bucket| match kind {
            GroupKind::All | GroupKind::Indirect => true,
            GroupKind::Select => bucket.weight > 0,
            GroupKind::FastFailover => {
                bucket.watch_port.is_some_and(|port| self.switch.ports.is_live(port))
            }
        });
        if kind == GroupKind::All { chosen.collect() } else { chosen.next().into_iter().collect() }
    }

    fn send(&mut self, state: &State, port: PortNo) {
        let State { frame, queue, .. } = state;
        match port {
            1..=4 | 7 | LOCAL => {
                self.verdicts.sent.push(Sent { port, queue: *queue, bytes: frame.bytes() })
            }
            5 => self.reason = Some(DropReason::PortDown),
            6 => self.reason = Some(DropReason::PortNoForward),
            _ => self.reason = Some(DropReason::NoPort),
        }
    }

    fn send_many(&mut self, state: &State, which: impl Fn(PortNo) -> bool) {
        for port in [1, 2, 3, 4, 7, LOCAL] {
            if port != self.in_port && which(port) {
                self.send(state, port);
            }
        }
    }

    fn tell(&mut self, state: &State, reason: PacketInReason, max_len: u16) {
        let Origin { table, cookie, .. } = state.origin;
        self.verdicts.told.push((PacketIn { reason, table, cookie, max_len }, state.frame.bytes()));
    }
}

/// The order of execution of an action set, straight from the list in OpenFlow 1.3.5 §5.10: the last of each type.
fn in_order(written: &[Action]) -> Vec<Action> {
    type Step = fn(&Action) -> bool;
    let mut steps: Vec<Step> = vec![
        |action| matches!(action, Action::CopyTtlIn),
        |action| matches!(action, Action::PopVlan),
        |action| matches!(action, Action::PopMpls(_)),
        |action| matches!(action, Action::PushMpls(_)),
        |action| matches!(action, Action::PushVlan(_)),
        |action| matches!(action, Action::EnsureVlan),
        |action| matches!(action, Action::CopyTtlOut),
        |action| matches!(action, Action::DecMplsTtl),
        |action| matches!(action, Action::DecNwTtl),
        |action| matches!(action, Action::SetMplsTtl(_)),
        |action| matches!(action, Action::SetNwTtl(_)),
    ];
    let last = |which: &dyn Fn(&Action) -> bool| {
        written.iter().rev().find(|action| which(action)).copied()
    };
    let mut order: Vec<Action> = steps.drain(..).filter_map(|step| last(&step)).collect();
    for &field in wire::Field::ALL {
        let shared = Transport::with(field).iter().copied().map(Some);
        for whose in [None].into_iter().chain(shared) {
            order.extend(last(&|action| {
                matches!(action, Action::SetField { field: to, of, .. } if (*to, *of) == (field, whose))
            }));
        }
    }
    order.extend(last(&|action| matches!(action, Action::SetQueue(_))));
    let group = last(&|action| matches!(action, Action::Group(_)));
    order.extend(group.or_else(|| last(&|action| matches!(action, Action::Output(_)))));
    order
}
