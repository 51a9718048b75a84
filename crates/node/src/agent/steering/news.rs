//! What one session is told unasked.

use super::{Facts, Permit};
use crate::agent::peer::Peer;
use openflow::steering::{Events, HostAbilities, HostInfo, Message, Vm, VmReason, VmStatus};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Tells a peer of the host's news as long as it is kept.
pub struct Teller(#[expect(dead_code, reason = "dropping it ends the task")] JoinSet<()>);

impl Teller {
    /// Tells of these events: what is there at once, then changes. Nothing when there are none.
    pub fn start(permit: &Permit, peer: &Arc<Peer>, events: Events) -> Self {
        let mut tasks = JoinSet::new();
        if !events.is_empty() {
            tasks.spawn(tell(permit.clone(), peer.clone(), events));
        }
        Self(tasks)
    }
}

async fn tell(permit: Permit, peer: Arc<Peer>, events: Events) {
    let mut seen = permit.desk.watch();
    let mut told: Option<Arc<Facts>> = None;
    while seen.changed().await.is_ok() {
        let Some(now) = seen.borrow_and_update().clone() else { continue };
        for message in news(told.as_deref(), &now, events) {
            let message = match message {
                Message::HostInfo(host) => Message::HostInfo(shown(host, permit.may_program)),
                other => other,
            };
            peer.tell(&openflow::Message::Experimenter(message.encode()));
        }
        told = Some(now);
    }
}

/// The host as a controller is told of it.
pub(super) fn shown(mut host: HostInfo, may_program: bool) -> HostInfo {
    host.abilities.set(HostAbilities::PROGRAM, may_program);
    host
}

/// What to say of the host to one who knows `before`: the host first, then machines that are gone, then the others.
fn news(before: Option<&Facts>, now: &Facts, events: Events) -> Vec<Message> {
    let mut messages = Vec::new();
    if events.contains(Events::HOST) && before.is_none_or(|before| before.host != now.host) {
        messages.push(Message::HostInfo(now.host.clone()));
    }
    if events.contains(Events::VMS) {
        let known = before.map_or(&[][..], |before| &before.vms);
        let status = |reason, vm: &Vm| Message::VmStatus(VmStatus { reason, vm: vm.clone() });
        let gone = known.iter().filter(|vm| of_name(&now.vms, vm).is_none());
        messages.extend(gone.map(|vm| status(VmReason::Deleted, vm)));
        messages.extend(now.vms.iter().filter_map(|vm| match of_name(known, vm) {
            None => Some(status(VmReason::Added, vm)),
            Some(before) if before != vm => Some(status(VmReason::Modified, vm)),
            Some(_) => None,
        }));
    }
    messages
}

fn of_name<'a>(vms: &'a [Vm], like: &Vm) -> Option<&'a Vm> {
    vms.iter().find(|vm| vm.name == like.name)
}
