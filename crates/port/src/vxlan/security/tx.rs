//! From datagrams to sealed ones.

use super::Security;
use super::stage::Run;
use crate::bypass::Datagrams;
use crate::sys::datagram::Address;
use crate::vxlan::outgoing::Outgoing;
use crate::vxlan::seen::Seen;
use crate::vxlan::senders::Senders;
use esp::{HEADER, ICV, sealed_len};
use std::sync::Arc;
use wire::DropReason;

/// Bytes in one call: a UDP datagram's most, less an IPv6 header that some paths count.
const RUN_BYTES: usize = 65_535 - 8 - 40;

/// Bytes that sealing adds to a VXLAN packet at most: ESP's header, IPv6 and UDP inside, padding and trailer, ICV.
pub(in crate::vxlan) const SEALED_MOST: usize = HEADER + 48 + 3 + 2 + ICV;

/// One worker's.
pub(in crate::vxlan) struct Sealer {
    security: Arc<Security>,
    /// Sealed and not sent yet.
    bytes: Outgoing,
    /// Length of the first of them.
    segment: usize,
    count: usize,
}

impl Sealer {
    pub(in crate::vxlan) fn new(security: Arc<Security>) -> Self {
        Self { security, bytes: Outgoing::default(), segment: 0, count: 0 }
    }

    /// Has the VXLAN packets in `run`, each of `segment` bytes but for the last, sealed and sent: by the port's stage, or here.
    pub(in crate::vxlan) fn send(
        &mut self,
        (run, segment): (&[u8], usize),
        (senders, to): (&Senders, &Address),
        flow: usize,
        (ds, seen): (u8, Option<Seen>),
    ) -> Result<(), DropReason> {
        let stage = self.security.stage.load();
        let of = || Run { segment, flow, to: *to, ds, len: run.len(), seen: seen.clone() };
        let put = stage.as_deref().and_then(|stage| stage.put(of(), run));
        drop(stage);
        put.unwrap_or_else(|| self.seal((run, segment), (senders, to), flow, (ds, seen)))
    }

    /// Seals them and sends them: together, as far as they fit.
    pub(super) fn seal(
        &mut self,
        (run, segment): (&[u8], usize),
        (senders, to): (&Senders, &Address),
        flow: usize,
        (ds, seen): (u8, Option<Seen>),
    ) -> Result<(), DropReason> {
        // What is left of a frame that could not be sent must not leave with the next one.
        self.clear();
        let sas = self.security.sas.load();
        let sender = self.security.sender_of(&sas, flow).ok_or(DropReason::EspExhausted)?;
        drop(sas);
        let envelope = self.security.envelope;
        for vxlan in run.chunks(segment.max(1)) {
            let payload = envelope.len() + vxlan.len();
            let whole = sealed_len(payload);
            if self.count > 0 && self.bytes.len() + whole > RUN_BYTES {
                self.flush(senders, (flow, to), ds)?;
            }
            let packet = self.bytes.append(whole);
            packet[HEADER + envelope.len()..HEADER + payload].copy_from_slice(vxlan);
            envelope.write(&mut packet[HEADER..HEADER + payload], flow as u16, ds);
            let sealed = sender.outbound.seal(packet, payload, envelope.next_header());
            sealed.map_err(|_| DropReason::EspExhausted)?;
            if let Some(seen) = &seen {
                seen.show(packet, vxlan);
            }
            if self.count == 0 {
                self.segment = whole;
            }
            self.count += 1;
        }
        self.flush(senders, (flow, to), ds)
    }

    fn flush(
        &mut self,
        senders: &Senders,
        way: (usize, &Address),
        ds: u8,
    ) -> Result<(), DropReason> {
        let (bytes, segment, count) = (self.bytes.bytes(), self.segment, self.count);
        let sent =
            senders.send(way, Datagrams { bytes, segment, count, ds }, self.security.is_apart);
        self.clear();
        sent
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }
}
