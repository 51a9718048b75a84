//! Packets on their way to a controller: which it gets, how much of each, and by which of its connections (OpenFlow 1.3.5 §7.3.2, §7.4.1).

use super::Peer;
use crate::agent::channel::Kind;
use crate::switch::translate::oxm_end;
use crate::switch::{Listener, PacketInEvent};
use flow::PacketInReason as Why;
use openflow::{Match, Message, OxmField, PacketIn, PacketInReason, TableId};
use std::sync::atomic::Ordering::Relaxed;
use wire::Field;

/// Bytes of a frame that fit a packet-in of 65535 bytes beside its header and match.
const LONGEST_PACKET_IN: usize = 65_535 - 128;

impl Peer {
    /// A packet-in that no entry asked for is only for versions that demand it; in the others an entry would have asked.
    pub(super) fn wants_packet_in(&self, event: &PacketInEvent<'_>) -> bool {
        self.channel.wants(Kind::PacketIn, self.reason_of(event).wire())
            && (!event.is_unasked() || self.version.sends_misses_to_controller())
            && (event.why.reason != Why::SilentMiss || !self.version.has_table_miss_entries())
    }

    /// Tells the controller of a packet, by the connection that its flow's packets take.
    pub(super) fn packet_in(&self, event: &PacketInEvent<'_>) {
        let reason = self.reason_of(event);
        if !self.wants_packet_in(event) {
            return;
        }
        let (buffer_id, data) = self.shown(event);
        let message = || {
            Message::PacketIn(PacketIn {
                buffer_id,
                total_len: event.total_len.min(u16::MAX.into()) as u16,
                reason,
                table: TableId(event.why.table),
                cookie: event.why.cookie,
                fields: pipeline_fields(event),
                data: data.to_vec(),
            })
        };
        match self.channel.carrier(event.in_port, event.data) {
            Some(auxiliary) => auxiliary.send_packet_in(message),
            None => self.send_packet_in(message),
        }
    }

    fn send_packet_in(&self, message: impl FnOnce() -> Message) {
        if self.outbox.packet_in(|out| {
            let xid = self.next_xid.fetch_add(1, Relaxed);
            self.encode(xid, &message(), out);
        }) {
            self.packet_ins.fetch_add(1, Relaxed);
        }
    }

    /// Bytes that the peer is to get of the frame, 0xffff (`OFPCML_NO_BUFFER`) for all: what the output action said, and without one the
    /// connection's miss-send-length (OpenFlow 1.3.5 §7.3.2).
    pub(super) fn limit(&self, event: &PacketInEvent<'_>) -> u16 {
        match event.why.reason {
            Why::InvalidTtl => self.miss_send_len(),
            Why::NoMatch if event.is_unasked() => self.miss_send_len(),
            Why::NoMatch | Why::SilentMiss | Why::Action => event.why.max_len,
        }
    }

    /// Why the peer gets a packet, in its version's words: 1.0 has no table-miss entries, and what an entry sends is an action there.
    fn reason_of(&self, event: &PacketInEvent<'_>) -> PacketInReason {
        match event.why.reason {
            Why::NoMatch if !event.is_unasked() && !self.version.has_table_miss_entries() => {
                PacketInReason::Action
            }
            Why::NoMatch => PacketInReason::NoMatch,
            Why::SilentMiss | Why::Action => PacketInReason::Action,
            Why::InvalidTtl => PacketInReason::InvalidTtl,
        }
    }

    /// What the peer gets: the beginning of a frame that is kept, any other in full.
    pub(super) fn shown<'a>(&self, event: &PacketInEvent<'a>) -> (Option<u32>, &'a [u8]) {
        let buffer_id = event.buffer_id.filter(|_| self.wants_buffer(event));
        let most = match buffer_id {
            Some(_) => usize::from(self.limit(event)).min(LONGEST_PACKET_IN),
            None => LONGEST_PACKET_IN,
        };
        (buffer_id, &event.data[..event.data.len().min(most)])
    }
}

/// What a packet-in's match says: the ingress port always, the others where they are not 0 (OpenFlow 1.3.5 §7.4.1).
fn pipeline_fields(event: &PacketInEvent<'_>) -> Match {
    let always = Match::default().with(OxmField::InPort, event.in_port.into());
    let others = [(OxmField::Metadata, event.metadata), (OxmField::TunnelId, event.tunnel_id)];
    let present = others.into_iter().filter(|(_, value)| *value != 0);
    let mut found = present.fold(always, |fields, (field, value)| fields.with(field, value.into()));
    for (place, end) in [(Field::TunSrc, event.tun_src), (Field::TunDst, event.tun_dst)] {
        found.0.extend(end.map(|end| oxm_end(place, Some(end))));
    }
    found
}
