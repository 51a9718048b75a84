//! What a TAP was to give to the kernel, and is a tunnel's.

use super::{Door, Place};
use crate::drops::Drops;
use crate::frame::{Sent, TxFrame};
use crate::mailbox::{Bells, Mailbox};
use crate::queue::TX_MAX;
use crate::underlay::Underlay;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use wire::DropReason;
use wire::checksum::{append, fold};
use wire::tunnel::{Datagram, Vxlan};
use xdp::offload::Passage;

/// Runs that wait at a queue of a tunnel. Chosen: some milliseconds of a fast sender.
const ROOM: usize = 512;
/// Bytes of the longest run.
const RUN_BYTES: usize = 65_535;

/// Datagrams on their way to a tunnel.
pub(crate) struct Arrival {
    /// What is in them, one behind the other.
    pub(crate) bytes: Vec<u8>,
    /// Bytes of each but the last, which may be shorter; 0: it is one.
    pub(crate) segment: usize,
    /// Their DS field.
    pub(crate) ds: u8,
    /// Who sent them.
    pub(crate) from: IpAddr,
}

/// A receiving queue's.
pub(crate) struct Inbox {
    mail: Mailbox<Arrival>,
    /// What entered and left the tunnel's queues, of which this is one lane.
    passage: Arc<Passage>,
    lane: usize,
}

impl Inbox {
    /// One for each of so many queues.
    ///
    /// # Errors
    /// There are no more descriptors.
    fn all(queues: usize, bells: &Bells) -> io::Result<Vec<Arc<Self>>> {
        let passage = Arc::new(Passage::new(queues));
        let one = |lane| {
            let (mail, passage) = (Mailbox::new(ROOM, bells.clone())?, passage.clone());
            Ok(Arc::new(Self { mail, passage, lane }))
        };
        (0..queues).map(one).collect()
    }

    fn push(&self, arrival: Arrival) -> Result<(), Arrival> {
        self.passage.enter(self.lane);
        self.mail.push(arrival).inspect_err(|_| self.passage.leave(self.lane, 1))
    }

    /// The next one, which is under way until it is [done](Self::done).
    pub(crate) fn pop(&self) -> Option<Arrival> {
        self.mail.pop()
    }

    /// All that was in so many of them was sent or dropped.
    pub(crate) fn done(&self, arrivals: u64) {
        self.passage.leave(self.lane, arrivals);
    }

    /// Whether something waits.
    pub(crate) fn has_some(&self) -> bool {
        self.mail.has_some()
    }

    /// The reader goes; false if something waits.
    pub(crate) fn leave(&self) -> bool {
        self.mail.leave()
    }

    /// What entered and left all queues of the tunnel.
    pub(crate) fn passage(&self) -> &Arc<Passage> {
        &self.passage
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.mail.as_fd()
    }
}

/// What tells whose a datagram is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Whose {
    /// VXLAN: UDP port, VNI, sender.
    Vni(u16, u32, IpAddr),
    /// ESP in UDP: whether over IPv4, SPI.
    Spi(bool, u32),
}

/// All of a namespace.
#[derive(Clone, Default)]
pub(crate) struct Inboxes {
    of: HashMap<Whose, Lanes>,
}

#[derive(Clone)]
struct Lanes {
    inboxes: Arc<[Arc<Inbox>]>,
    underlay: Arc<Underlay>,
}

/// The datagrams that a tunnel asks for; no longer when this is dropped.
pub(crate) struct Claims {
    place: Arc<Place>,
    underlay: Arc<Underlay>,
    claimed: Vec<Whose>,
}

impl Claims {
    /// None yet.
    pub(crate) fn new(place: Arc<Place>, underlay: Arc<Underlay>) -> Self {
        Self { place, underlay, claimed: Vec::new() }
    }

    /// An inbox for each of so many receiving queues.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub(crate) fn inboxes(&self, queues: usize) -> io::Result<Vec<Arc<Inbox>>> {
        Inbox::all(queues, &self.place.bells)
    }

    /// Has these datagrams come to the inboxes, each flow to one of them.
    pub(crate) fn claim(&mut self, whose: Whose, inboxes: Arc<[Arc<Inbox>]>) {
        let lanes = Lanes { inboxes, underlay: self.underlay.clone() };
        self.place.change_inboxes(|all| drop(all.of.insert(whose, lanes.clone())));
        self.claimed.push(whose);
    }

    /// Gives back those that are not to be kept.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(Whose) -> bool) {
        let (kept, gone) = self.claimed.iter().partition::<Vec<Whose>, _>(|&&whose| is_kept(whose));
        if !gone.is_empty() {
            self.place.change_inboxes(|all| all.of.retain(|whose, _| !gone.contains(whose)));
        }
        self.claimed = kept;
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.keep(|_| false);
    }
}

/// One worker's eye on what leaves by a TAP.
pub(crate) struct Sorter {
    place: Arc<Place>,
    door: Arc<Door>,
    /// Datagrams that go on together.
    open: Option<Open>,
}

struct Open {
    inbox: Arc<Inbox>,
    whose: Whose,
    port: u16,
    arrival: Arrival,
    /// Bytes of the first; where one was shorter none follows.
    first: usize,
    is_closed: bool,
    /// As they came to the TAP.
    frames: Sent,
    /// Indices of the frames in the call, as bits.
    indices: u128,
}

impl Sorter {
    pub(crate) fn new(place: Arc<Place>, door: Arc<Door>) -> Self {
        Self { place, door, open: None }
    }

    /// Sends frames: those of tunnels to them, and each of the others with `send`.
    pub(crate) fn sort(
        &mut self,
        frames: &[TxFrame<'_>],
        drops: &mut Drops,
        mut send: impl FnMut(&TxFrame<'_>) -> Result<(), DropReason>,
    ) -> Sent {
        let inboxes = self.place.inboxes.load_full();
        let mut sent = Sent::default();
        for (index, frame) in frames.iter().enumerate() {
            if !inboxes.of.is_empty() && self.take(&inboxes, (frames, index), (&mut sent, drops)) {
                continue;
            }
            match send(frame) {
                Ok(()) => sent.count(frame.len()),
                Err(reason) => drops.lose(reason, frame),
            }
        }
        self.hand_over(frames, (&mut sent, drops));
        sent
    }

    /// Whether the frame at this index goes to a tunnel; else it is the kernel's.
    fn take(
        &mut self,
        inboxes: &Inboxes,
        (frames, index): (&[TxFrame<'_>], usize),
        (sent, drops): (&mut Sent, &mut Drops),
    ) -> bool {
        let (frame, left) = (&frames[index], frames.len() - index);
        let Some(datagram) = Datagram::find(frame.head, frame.len(), &frame.offload) else {
            return false;
        };
        let Some(whose) = whose(frame.head, &datagram) else { return false };
        let Some(lanes) = inboxes.of.get(&whose) else { return false };
        if !self.door.is_mac(datagram.mac) || !lanes.underlay.is_own(datagram.to) {
            return false;
        }
        let len = datagram.payload.len();
        if !self.open.as_ref().is_some_and(|open| open.takes(whose, &datagram)) {
            self.hand_over(frames, (sent, drops));
            self.open = Some(Open::new(whose, &datagram, lanes, left));
        }
        let Some(open) = &mut self.open else { return false };
        let at = open.arrival.bytes.len();
        copy(frame, &datagram, &mut open.arrival.bytes);
        if !is_right(&datagram, &open.arrival.bytes[at..]) {
            // The kernel counts it.
            open.arrival.bytes.truncate(at);
            return false;
        }
        open.add((frame, index), len, datagram.segment);
        true
    }

    /// Gives what is together to its tunnel: only then is it sent.
    fn hand_over(&mut self, frames: &[TxFrame<'_>], (sent, drops): (&mut Sent, &mut Drops)) {
        let Some(open) = self.open.take().filter(|open| open.frames.frames > 0) else { return };
        let Open { inbox, arrival, frames: count, indices, .. } = open;
        match inbox.push(arrival) {
            Ok(()) => sent.add(count),
            Err(_) => {
                let lost = frames.iter().enumerate().filter(|(at, _)| indices >> at & 1 == 1);
                lost.for_each(|(_, frame)| drops.lose(DropReason::TxFull, frame));
            }
        }
    }
}

impl Open {
    /// With memory for so many like it.
    fn new(whose: Whose, datagram: &Datagram, Lanes { inboxes, .. }: &Lanes, count: usize) -> Self {
        let (port, ds, from) = (datagram.ports.0, datagram.ds, datagram.from);
        let inbox = inboxes[usize::from(port) % inboxes.len()].clone();
        let bytes = Vec::with_capacity((count * datagram.payload.len()).min(RUN_BYTES));
        let arrival = Arrival { bytes, segment: 0, ds, from };
        let frames = Sent::default();
        Self { inbox, whose, port, arrival, first: 0, is_closed: false, frames, indices: 0 }
    }

    /// Whether a datagram may follow.
    fn takes(&self, whose: Whose, datagram: &Datagram) -> bool {
        let Self { arrival, first, .. } = self;
        let len = datagram.payload.len();
        let is_alike = (self.whose, self.port, arrival.ds, arrival.from)
            == (whose, datagram.ports.0, datagram.ds, datagram.from);
        let is_one = datagram.segment == 0 && len > 0;
        is_alike
            && is_one
            && !self.is_closed
            && len <= *first
            && arrival.bytes.len() + len <= RUN_BYTES
    }

    /// One more is there, or a large one, which comes first and alone.
    fn add(&mut self, (frame, index): (&TxFrame<'_>, usize), len: usize, segment: usize) {
        match self.frames.frames {
            0 => {
                self.first = len;
                self.is_closed = segment != 0;
                self.arrival.segment = segment;
            }
            _ => {
                self.arrival.segment = self.first;
                self.is_closed = len < self.first;
            }
        }
        self.frames.count(frame.len());
        self.indices |= 1 << index;
    }
}

const _: () = assert!(TX_MAX <= u128::BITS as usize); // a bit for each frame of a call

/// Whose a datagram says that it is.
fn whose(head: &[u8], datagram: &Datagram) -> Option<Whose> {
    let payload = head.get(datagram.payload.start..datagram.payload.end.min(head.len()))?;
    let port = datagram.ports.1;
    if port != esp::udp::PORT {
        return Vxlan::parse(payload).map(|header| Whose::Vni(port, header.vni, datagram.from));
    }
    // Four bytes of 0 are IKE's, and a keepalive is shorter (RFC 3948 §2.2, §2.3).
    let spi = esp::spi(payload).filter(|&spi| spi != 0)?;
    Some(Whose::Spi(datagram.from.is_ipv4(), spi))
}

/// Appends the payload.
fn copy(frame: &TxFrame<'_>, datagram: &Datagram, bytes: &mut Vec<u8>) {
    let (head, payload) = (frame.head, datagram.payload.clone());
    let in_head = &head[payload.start..payload.end.min(head.len()).max(payload.start)];
    bytes.extend_from_slice(in_head);
    let (at, len) = (bytes.len(), payload.len() - in_head.len());
    if len > 0 {
        bytes.resize(at + len, 0);
        frame.body.copy_to(payload.start.max(head.len()) - head.len(), &mut bytes[at..]);
    }
}

/// Whether UDP's checksum is right, if there is one.
fn is_right(datagram: &Datagram, payload: &[u8]) -> bool {
    datagram.sum.is_none_or(|before| fold(append(before, 0, payload)) == 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Body;
    use std::net::Ipv4Addr;
    use wire::build::{Frame, Ipv4};
    use wire::{HEAD_MAX, Offload};

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

    /// A tunnel of VNI 7 to [`SENDER`], whose address here is the loopback's.
    struct Bench {
        sorter: Sorter,
        inbox: Arc<Inbox>,
        _claims: Claims,
    }

    fn bench() -> Bench {
        let place = Arc::new(Place::default());
        let underlay = place.underlay(None).expect("the kernel tells its addresses");
        let mut claims = Claims::new(place.clone(), underlay);
        let inbox = claims.inboxes(1).unwrap().remove(0);
        claims.claim(Whose::Vni(4789, 7, SENDER.into()), [inbox.clone()].into());
        let sorter = Sorter::new(place.clone(), Door::new(1, MAC, &place.bells).unwrap());
        Bench { sorter, inbox, _claims: claims }
    }

    /// A tunnel's packet as it comes from the wire: `len` bytes behind the VXLAN header.
    fn packet(mac: [u8; 6], port: u16, vni: u32, len: usize) -> Vec<u8> {
        let ip = Ipv4 { src: SENDER, dst: Ipv4Addr::LOCALHOST, ..Ipv4::default() };
        let inside = [&Vxlan { vni }.emit()[..], &vec![len as u8; len]].concat();
        Frame::ethernet(mac, [2; 6]).ipv4(ip).udp(port, 4789).payload(&inside).finish()
    }

    impl Bench {
        /// Which frames are taken, and the runs that they make: how many bytes, and of each datagram.
        fn sort(&mut self, frames: &[Vec<u8>]) -> (Vec<bool>, Vec<(usize, usize)>) {
            let frames: Vec<TxFrame<'_>> = frames.iter().map(|bytes| as_sent(bytes)).collect();
            let mut drops = Drops::default();
            let mut given = Vec::new();
            let sent = self.sorter.sort(&frames, &mut drops, |frame| {
                given.push(frame.head.as_ptr());
                Ok(())
            });
            assert_eq!(sent.frames as usize, frames.len());
            let taken = frames.iter().map(|frame| !given.contains(&frame.head.as_ptr())).collect();
            let runs = std::iter::from_fn(|| self.inbox.pop());
            (taken, runs.map(|run| (run.bytes.len(), run.segment)).collect())
        }
    }

    fn as_sent(bytes: &[u8]) -> TxFrame<'_> {
        let (head, body) = bytes.split_at(bytes.len().min(HEAD_MAX));
        let (body, offload) = (Body::private(body), Offload::default());
        TxFrame { head, body, offload, tunnel_id: 0, tun_dst: 0 }
    }

    #[test]
    fn datagrams_of_one_flow_and_length_make_a_run_that_a_shorter_one_ends() {
        let mut bench = bench();
        let [a, b] = [5000, 5001].map(|port| move |len| packet(MAC, port, 7, len));
        let frames = [a(1000), a(1000), a(600), a(600), b(600), b(700), a(40)];
        let (taken, runs) = bench.sort(&frames);
        assert_eq!(taken, [true; 7]);
        assert_eq!(runs, [(1008 * 2 + 608, 1008), (608, 0), (608, 0), (708, 0), (48, 0)]);
        let many: Vec<_> = (0..64).map(|_| a(1400)).collect();
        let (_, runs) = bench.sort(&many);
        assert_eq!(runs, [(46 * 1408, 1408), (18 * 1408, 1408)], "no longer than a datagram");
    }

    #[test]
    fn what_is_not_plainly_the_tunnels_is_the_kernels() {
        let mut bench = bench();
        let right = packet(MAC, 5000, 7, 300);
        let mut damaged = right.clone();
        *damaged.last_mut().unwrap() ^= 1;
        let frames = [
            packet([2, 0, 0, 0, 0, 9], 5000, 7, 300),
            packet(MAC, 5000, 8, 300),
            damaged,
            right[..30].to_vec(),
            right,
        ];
        let (taken, runs) = bench.sort(&frames);
        assert_eq!(taken, [false, false, false, false, true]);
        assert_eq!(runs, [(308, 0)]);
    }

    #[test]
    fn a_full_inbox_loses_what_comes_and_nothing_else() {
        let mut bench = bench();
        let frame = packet(MAC, 5000, 7, 100);
        let mut drops = Drops::default();
        let mut sent = Sent::default();
        for _ in 0..ROOM + 3 {
            sent.add(bench.sorter.sort(&[as_sent(&frame)], &mut drops, |_| Ok(())));
        }
        let bytes = (ROOM * frame.len()) as u64;
        assert_eq!(sent, Sent { frames: ROOM as u64, bytes }, "what is lost was not sent");
        assert_eq!(drops.iter().collect::<Vec<_>>(), [(DropReason::TxFull, 3)]);
    }

    #[test]
    fn claims_end_with_who_made_them() {
        let mut bench = bench();
        let frame = packet(MAC, 5000, 7, 100);
        bench._claims.keep(|whose| whose != Whose::Vni(4789, 7, SENDER.into()));
        assert_eq!(bench.sort(&[frame]).0, [false]);
    }
}
