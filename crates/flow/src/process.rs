//! A batch of packets through a switch.

use crate::action::Action;
use crate::cache::Cache;
use crate::packet::{Packet, Sink};
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// Packets worked on together; longer slices are cut.
pub const BATCH: usize = 32;

/// Sends every packet through the tables; each verdict goes to `sink`.
pub fn process(_snapshot: &Snapshot, _cache: &mut Cache, _packets: &mut [Packet<'_>], _now: Nanos, _sink: &mut impl Sink) {}

/// Applies an action list to one packet (packet-out).
pub fn execute(_snapshot: &Snapshot, _cache: &mut Cache, _actions: &[Action], _packet: &mut Packet<'_>, _now: Nanos, _sink: &mut impl Sink) {}
