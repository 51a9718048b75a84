//! From frames to datagrams.

use super::destinations::{Destination, Destinations};
use super::outgoing::Outgoing;
use super::path::Path;
use super::security::{SEALED_MOST, Sealer};
use super::seen::{Marks, Seen};
use super::senders::Senders;
use super::tell::Teller;
use crate::bypass::Datagrams;
use crate::drops::{Drops, Watch};
use crate::frame::{Sent, TxFrame};
use crate::gather::{Parts, gather, is_scattered, reason};
use crate::plain::{self, Room};
use crate::queue::{TxQueue, send_each};
use crate::sys::datagram::{self, Address};
use crate::vxlan::tunnel::Tunnel;
use arrayvec::ArrayVec;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;
use wire::tunnel::{Dscp, Vxlan, entropy, outer_ds};
use wire::{BATCH, DropReason, Gso, Offload, checksum, mss};

/// Datagrams in one call (Linux `UDP_MAX_SEGMENTS` was 64 until 6.9).
const RUN_MAX: usize = 64;
/// Bytes in one call: a UDP datagram's most, less an IPv6 header that some paths count.
const RUN_BYTES: usize = 65_535 - 8 - 40;

/// 24 bits (RFC 7348 §5).
const VNI_MAX: u32 = (1 << 24) - 1;

/// One worker's way out.
pub(super) struct VxlanTx {
    senders: Arc<Senders>,
    to: Address,
    /// Its VNI, if there is one for all frames.
    vni: Option<u32>,
    /// Of the frames in hand.
    header: [u8; Vxlan::LEN],
    dscp: Dscp,
    ttl: u8,
    path: Arc<Path>,
    /// Of a port whose frames have ends of their own: where they are. What is above is of the frames in hand.
    destinations: Option<Destinations>,
    /// Whether the offers of TCP are lowered to what the path carries.
    clamps: bool,
    /// Tells the senders of frames that are too long.
    teller: Teller,
    /// Of an encrypted port: what its datagrams go through.
    sealer: Option<Sealer>,
    /// Who sees what leaves as it is outside.
    watch: Option<Watch>,
    /// Datagrams that leave together.
    run: Run,
}

/// Datagrams of one length, but for the last.
#[derive(Default)]
struct Run {
    bytes: Outgoing,
    /// Length of the first.
    segment: usize,
    count: usize,
    /// Whether one was shorter, so that none may follow.
    is_closed: bool,
    /// Which socket sends it, and under which DS field.
    flow: usize,
    ds: u8,
    /// Whether its datagrams leave one by one and hold one frame: they have no checksums, and the kernel cuts none such.
    is_apart: bool,
}

/// What frames have in common that leave as the datagrams of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Way {
    len: usize,
    gso: Gso,
    /// Bytes that encryption adds at most.
    sealed: usize,
    /// Which socket sends them, and under which DS field.
    flow: usize,
    ds: u8,
    /// Of a port with no VNI of its own, the frames' tunnel id; else 0.
    vni: u32,
    /// Of a port with no other end of its own, the frames'; else 0.
    end: u16,
}

impl Way {
    /// How many such frames fit into one run; a large one fills its own.
    fn most(self) -> usize {
        let fit = RUN_MAX.min(RUN_BYTES / (Vxlan::LEN + self.len + self.sealed));
        if self.gso == Gso::None { fit.max(1) } else { 1 }
    }
}

impl VxlanTx {
    pub(super) fn new(
        senders: Arc<Senders>,
        tunnel: &Tunnel,
        path: Arc<Path>,
        teller: Teller,
    ) -> Self {
        let to = Address::new(SocketAddr::new(tunnel.remote, tunnel.port));
        let &Tunnel { vni, dscp, ttl, mss_clamp: clamps, .. } = tunnel;
        let header = Vxlan { vni: vni.unwrap_or(0) }.emit();
        let (sealer, run) = (None, Run { is_apart: !tunnel.checksum, ..Run::default() });
        let (destinations, watch) = (None, None);
        Self {
            senders,
            to,
            vni,
            header,
            dscp,
            ttl,
            path,
            destinations,
            clamps,
            teller,
            sealer,
            watch,
            run,
        }
    }

    /// The same of a port whose frames have ends of their own.
    pub(super) fn with_destinations(self, destinations: Option<Destinations>) -> Self {
        Self { destinations, ..self }
    }

    /// The same of an encrypted port.
    pub(super) fn behind(self, sealer: Option<Sealer>, remote: IpAddr) -> Self {
        match sealer {
            None => self,
            Some(_) => {
                let to = Address::new(SocketAddr::new(remote, esp::udp::PORT));
                Self { sealer, to, ..self }
            }
        }
    }

    /// Sends a frame; one that the path does not take is answered.
    fn send(&mut self, frame: &TxFrame<'_>, way: Way) -> Result<(), DropReason> {
        let is_simple = way.gso == Gso::None && frame.offload.checksum.is_none();
        let is_clamped = self.clamps && mss::is_syn(frame.head);
        let is_bare = self.sealer.is_none() && self.watch.is_none();
        let may_lie = is_simple && !is_clamped && is_bare && !is_scattered(frame);
        let sent = match may_lie && self.senders.socket(way.flow).is_some() {
            true => self.send_parts(frame, way),
            false => self.send_run(&[*frame], way),
        };
        if sent == Err(DropReason::TooBig) {
            self.teller.tell(frame, &self.header, &self.path, Instant::now());
        }
        sent
    }

    /// Sends frames that go the same way and fit into one run.
    fn send_alike(&mut self, frames: &[TxFrame<'_>], way: Way, drops: &mut Drops) -> Sent {
        if let Err(reason) = self.choose_vni(way).and_then(|()| self.choose_end(way)) {
            frames.iter().for_each(|frame| drops.lose(reason, frame));
            return Sent::default();
        }
        let may_run = frames.len() > 1 && !self.run.is_apart;
        if may_run && self.send_run(frames, way).is_ok() {
            let mut sent = Sent::default();
            frames.iter().for_each(|frame| sent.count(frame.len()));
            return sent;
        }
        send_each(frames, drops, |frame| self.send(frame, way))
    }

    /// Sends frames that go the same way together, and in order. Of frames that fit into one run, all or none.
    fn send_run(&mut self, frames: &[TxFrame<'_>], way: Way) -> Result<(), DropReason> {
        (self.run.flow, self.run.ds) = (way.flow, way.ds);
        let longest = self.path.longest();
        let gathered = frames.iter().try_for_each(|frame| plain::send(frame, longest, self));
        let sent = gathered.and_then(|()| self.flush());
        // What is left of a frame that cannot be sent must not leave with the next one.
        self.run.clear();
        sent
    }

    fn way(&self, frame: &TxFrame<'_>) -> Way {
        let vni = self.vni.map_or(frame.tunnel_id, |_| 0);
        let end = self.destinations.as_ref().map_or(0, |_| frame.tun_dst);
        // Equal flows of two tenants go two ways.
        let flow = entropy(frame.head).wrapping_add(vni) as usize % self.senders.flows();
        let ds = outer_ds(frame.head, self.dscp);
        let sealed = if self.sealer.is_some() { SEALED_MOST } else { 0 };
        Way { len: frame.len(), gso: frame.offload.gso, sealed, flow, ds, vni, end }
    }

    /// Brings the header to the VNI of frames that are sent next.
    fn choose_vni(&mut self, way: Way) -> Result<(), DropReason> {
        if self.vni.is_some() {
            return Ok(());
        }
        if way.vni > VNI_MAX {
            return Err(DropReason::TunnelId);
        }
        self.header = Vxlan { vni: way.vni }.emit();
        Ok(())
    }

    /// Brings address and path to the end of frames that are sent next.
    fn choose_end(&mut self, way: Way) -> Result<(), DropReason> {
        if let Some(destinations) = &mut self.destinations {
            let Destination { to, senders, path } = destinations.find(way.end)?.clone();
            (self.to, self.senders, self.path) = (to, senders, path);
        }
        Ok(())
    }

    /// Sends a frame that needs nothing done, from where it lies.
    fn send_parts(&mut self, frame: &TxFrame<'_>, way: Way) -> Result<(), DropReason> {
        if way.len > self.path.longest() {
            return Err(DropReason::TooBig);
        }
        let Some(socket) = self.senders.socket(way.flow) else {
            return self.send_run(&[*frame], way);
        };
        let parts: Parts<'_> = gather(&self.header, frame);
        let sent = datagram::send(socket, &self.to, &parts, None, way.ds);
        sent.map_err(|error| reason(&error))
    }

    /// Sends the run.
    fn flush(&mut self) -> Result<(), DropReason> {
        if self.run.count == 0 {
            return Ok(());
        }
        let seen = self.seen();
        let run = &mut self.run;
        let &mut Run { segment, count, flow, ds, is_apart, .. } = run;
        let bytes = run.bytes.bytes();
        let sent = match &mut self.sealer {
            Some(sealer) => {
                sealer.send((bytes, segment), (&self.senders, &self.to), flow, (ds, seen))
            }
            None => {
                seen.iter().for_each(|seen| seen.show_run(bytes, segment));
                let datagrams = Datagrams { bytes, segment, count, ds };
                self.senders.send((flow, &self.to), datagrams, is_apart)
            }
        };
        run.clear();
        sent
    }
}

impl VxlanTx {
    /// Who sees the run as it is outside, if anybody.
    fn seen(&self) -> Option<Seen> {
        let watch = self.watch.clone()?;
        let mut from = self.senders.local(self.run.flow).ok()?;
        if from.ip().is_unspecified() {
            from.set_ip(self.path.source().ok()?);
        }
        let marks = Marks { ds: self.run.ds, ttl: self.ttl, is_sent: true };
        Seen::new(watch, [from, self.to.peer()], marks)
    }
}

impl Run {
    /// Forgets its datagrams.
    fn clear(&mut self) {
        self.bytes.clear();
        (self.count, self.is_closed) = (0, false);
    }
}

impl TxQueue for VxlanTx {
    fn wants_tunnel_ids(&self) -> bool {
        self.vni.is_none() || self.destinations.is_some()
    }

    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent {
        self.watch = drops.watcher();
        let mut sent = Sent::default();
        for batch in frames.chunks(BATCH) {
            let ways: ArrayVec<Way, BATCH> = batch.iter().map(|frame| self.way(frame)).collect();
            let mut left = u64::MAX >> (BATCH - batch.len());
            while left != 0 {
                let (first, together) = (left.trailing_zeros() as usize, alike(&ways, left));
                left &= !together;
                let run = batch.iter().enumerate().filter(|(at, _)| together >> at & 1 == 1);
                let run: ArrayVec<TxFrame<'_>, BATCH> = run.map(|(_, frame)| *frame).collect();
                sent.add(self.send_alike(&run, ways[first], drops));
            }
        }
        sent
    }
}

const _: () = assert!(BATCH == u64::BITS as usize); // a bit for each frame

/// Of the frames that are left, as bits, those that leave in one run with the first of them: none passes another frame of its flow.
fn alike(ways: &[Way], left: u64) -> u64 {
    let mut left = (0..ways.len()).filter(|at| left >> at & 1 == 1).peekable();
    let Some(way) = left.peek().map(|first| ways[*first]) else { return 0 };
    let may_follow = left.take_while(|at| ways[*at] == way || ways[*at].flow != way.flow);
    let together = may_follow.filter(|at| ways[*at] == way).take(way.most());
    together.fold(0, |together, at| together | 1 << at)
}

/// Segments gather in a run.
impl Room for VxlanTx {
    fn fits(&mut self, _: usize) -> bool {
        true
    }

    fn put(
        &mut self,
        len: usize,
        Offload { checksum, .. }: Offload,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), DropReason> {
        let whole = Vxlan::LEN + len;
        let run = &self.run;
        let is_full = run.is_closed || run.count == RUN_MAX || run.bytes.len() + whole > RUN_BYTES;
        if run.count > 0 && (is_full || whole > run.segment) {
            self.flush()?;
        }
        let run = &mut self.run;
        if run.count == 0 {
            run.segment = whole;
        }
        run.is_closed = whole < run.segment;
        run.count += 1;
        let (header, frame) = run.bytes.append(whole).split_at_mut(Vxlan::LEN);
        header.copy_from_slice(&self.header);
        fill(frame);
        if self.clamps {
            self.path.clamp(frame, checksum.is_some());
        }
        match checksum {
            Some(partial) => checksum::complete(frame, partial).map_err(|_| DropReason::BadOffload),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn way() -> impl Strategy<Value = Way> {
        let gso = prop_oneof![4 => Just(Gso::None), 1 => Just(Gso::TcpV4)];
        (prop_oneof![Just(60), Just(1400)], gso, 0usize..3, 0u8..2, 7u32..9).prop_map(
            |(len, gso, flow, ds, vni)| Way { len, gso, sealed: 0, flow, ds, vni, end: 0 },
        )
    }

    proptest! {
        #[test]
        fn every_frame_leaves_once_with_its_like_and_in_the_order_of_its_flow(ways in vec(way(), 1..=BATCH)) {
            let mut left = u64::MAX >> (BATCH - ways.len());
            let mut order = Vec::new();
            while left != 0 {
                let run = alike(&ways, left);
                prop_assert!(run != 0 && run & !left == 0);
                left &= !run;
                let run: Vec<usize> = (0..ways.len()).filter(|at| run >> at & 1 == 1).collect();
                let way = ways[run[0]];
                prop_assert!(run.len() <= way.most() && run.iter().all(|at| ways[*at] == way));
                order.extend(run);
            }
            prop_assert_eq!(order.len(), ways.len());
            for flow in 0..3 {
                let of_flow: Vec<usize> = order.iter().copied().filter(|at| ways[*at].flow == flow).collect();
                prop_assert!(of_flow.is_sorted());
            }
        }
    }
}
