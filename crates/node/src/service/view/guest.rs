//! The guest of a vhost-user port as it is shown.

use api::{FrontEndErrorView, FrontEndView, MemoryView, RingView, VhostUser};
use port::GuestFacts;
use std::collections::HashMap;
use vhost::{
    Connection, Features, LastTrouble, Look, Reach, RegionFacts, Report, RingReport, SlotState,
};

/// What is known of a port that is open, whose link the switch was told is up or not; `cores` says who serves which receive queue.
pub(in crate::service) fn view_guest(
    spec: &VhostUser,
    (GuestFacts { look, is_ready }, link_up): (GuestFacts, bool),
    cores: &HashMap<usize, usize>,
) -> FrontEndView {
    let Look { connection, trouble, report, slots, .. } = look;
    let Report { features, protocol, memory, rings } = report;
    let waits_for = match &connection {
        Connection::Waiting(why) => Some(why.clone()),
        Connection::Connected { heard: false, .. } => Some("the front-end's first message".into()),
        Connection::Connected { heard: true, .. } => None,
    };
    let connected_s = match connection {
        Connection::Waiting(_) => None,
        Connection::Connected { since, .. } => Some(since.elapsed().as_secs()),
    };
    let state = match (connected_s, link_up && is_ready) {
        (None, _) => "waiting",
        (Some(_), false) => "connected",
        (Some(_), true) => "ready",
    };
    let slots = slots.into_iter().enumerate();
    FrontEndView {
        socket: spec.socket.clone(),
        server: spec.is_server(),
        state: state.into(),
        waits_for,
        connected_s,
        last_error: trouble.map(view_trouble),
        ring_kind: ring_kind(features),
        features: features.names().map(Into::into).collect(),
        protocol_features: protocol.iter_names().map(|(name, _)| name.into()).collect(),
        memory: memory.iter().map(view_region).collect(),
        rings: slots
            .map(|(index, slot)| view_ring(index, &slot, rings.get(index), cores))
            .collect(),
    }
}

fn view_trouble(LastTrouble { cause, remedy, count }: LastTrouble) -> FrontEndErrorView {
    FrontEndErrorView { cause, remedy: remedy.into(), count }
}

fn ring_kind(features: Features) -> Option<String> {
    let kind = if features.contains(Features::RING_PACKED) { "packed" } else { "split" };
    (!features.is_empty()).then(|| kind.into())
}

fn view_region(region: &RegionFacts) -> MemoryView {
    MemoryView { guest_address: region.guest, bytes: region.size, withdrawn: region.withdrawn }
}

/// Even rings are the driver's receive queues: suiro sends by them (VIRTIO 1.2 §5.1.2).
fn view_ring(
    index: usize,
    slot: &SlotState,
    said: Option<&RingReport>,
    cores: &HashMap<usize, usize>,
) -> RingView {
    let (pair, sends) = (index / 2, index.is_multiple_of(2));
    let said_size = said.map_or(0, |said| said.size);
    let reach = match slot {
        SlotState::Running { reach: Some(Reach::Near), .. } => Some("near".into()),
        SlotState::Running { reach: Some(Reach::Far), .. } => Some("far".into()),
        _ => None,
    };
    let (state, size, available, why) = match slot {
        SlotState::Idle => {
            ("idle", said_size, 0, said.and_then(|said| said.waits_for).map(Into::into))
        }
        SlotState::Disabled => ("disabled", said_size, 0, None),
        SlotState::Running { size, waiting, .. } => ("running", *size, *waiting, None),
        SlotState::Faulted(fault) => ("stopped", said_size, 0, Some(fault.to_string())),
    };
    RingView {
        pair,
        direction: if sends { "tx" } else { "rx" }.into(),
        core: if sends { None } else { cores.get(&pair).copied() },
        enabled: said.is_some_and(|said| said.enabled),
        state: state.into(),
        size,
        available,
        reach,
        why,
    }
}
