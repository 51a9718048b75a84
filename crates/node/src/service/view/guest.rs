//! The guest of a vhost-user port as it is shown.

use crate::spec::{PortSpec, SocketPath};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::ToSchema;
use vhost::{
    Attachment, Connection, Features, LastTrouble, Look, Reach, RegionFacts, Report, RingReport,
    SlotState,
};

/// The guest of a vhost-user port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GuestView {
    /// The socket shared with its front-end.
    pub socket: SocketPath,
    /// Whether suiro listens on it.
    pub server: bool,
    /// `waiting` for a front-end, `connected`, or `ready`: the driver takes frames, and the switch sends it some.
    pub state: String,
    /// Why there is no front-end, if there is none.
    pub waits_for: Option<String>,
    /// Seconds since the front-end connected.
    pub connected_s: Option<u64>,
    /// Why the last connection was given up, if one ever was.
    pub last_error: Option<GuestErrorView>,
    /// `split` or `packed`, once driver and suiro have agreed.
    pub ring_kind: Option<String>,
    /// Features that driver and suiro agreed on.
    pub features: Vec<String>,
    /// Features that front-end and suiro agreed on.
    pub protocol_features: Vec<String>,
    /// The guest's memory, largest region first.
    pub memory: Vec<MemoryView>,
    /// Rings: two for each queue pair.
    pub rings: Vec<RingView>,
}

/// Why a connection was given up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GuestErrorView {
    /// What happened.
    pub cause: String,
    /// What to do.
    pub remedy: String,
    /// How many connections were given up since the port was opened.
    pub count: u64,
}

/// A region of a guest's memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MemoryView {
    /// First guest physical address.
    pub guest_address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Whether the front-end took it away while it was in use.
    pub withdrawn: bool,
}

/// A ring.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RingView {
    /// Its queue pair.
    pub pair: usize,
    /// `tx`: suiro sends to the guest by it; `rx`: the guest sends.
    pub direction: String,
    /// The core that serves it; of `tx` rings any may.
    pub core: Option<usize>,
    /// Whether the driver enabled it.
    pub enabled: bool,
    /// `running`, `idle`, `disabled` (what the guest sends is discarded) or `stopped`.
    pub state: String,
    /// Descriptors; 0 before the front-end said it.
    pub size: u16,
    /// Buffers of the driver that suiro has not taken yet: frames of an `rx` ring, room in a `tx` ring.
    pub available: u16,
    /// Of `tx` rings, once long frames went by them, on processors where it matters: `near` if the guest's core was found to share a cache with suiro's, `far` if not; what is long goes to it through memory then.
    pub reach: Option<String>,
    /// What an idle ring waits for, or why it was stopped.
    pub why: Option<String>,
}

impl GuestView {
    /// What is known of a port that is open, whose link the switch was told is up or not; `cores` says who serves which receive queue.
    pub(in crate::service) fn of(
        spec: &PortSpec,
        (attachment, link_up): (&Attachment, bool),
        cores: &HashMap<usize, usize>,
    ) -> Option<Self> {
        let Look { connection, trouble, report, slots } = attachment.look();
        let Report { features, protocol, memory, rings } = report;
        let waits_for = match &connection {
            Connection::Waiting(why) => Some(why.clone()),
            Connection::Connected { heard: false, .. } => {
                Some("the front-end's first message".into())
            }
            Connection::Connected { heard: true, .. } => None,
        };
        let connected_s = match connection {
            Connection::Waiting(_) => None,
            Connection::Connected { since, .. } => Some(since.elapsed().as_secs()),
        };
        let state = match (connected_s, link_up && attachment.is_ready()) {
            (None, _) => "waiting",
            (Some(_), false) => "connected",
            (Some(_), true) => "ready",
        };
        let slots = slots.into_iter().enumerate();
        Some(Self {
            socket: spec.socket.clone()?,
            server: spec.server == Some(true),
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
        })
    }
}

fn view_trouble(LastTrouble { cause, remedy, count }: LastTrouble) -> GuestErrorView {
    GuestErrorView { cause, remedy: remedy.into(), count }
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
