//! What a TAP was to give to the kernel, and is a tunnel's.

use super::{Door, Place};
use crate::mailbox::Mailbox;
use crate::queue::{Drops, Sent, TxFrame};
use crate::underlay::Underlay;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use wire::DropReason;
use wire::checksum::{append, fold};
use wire::tunnel::{Datagram, Vxlan};

/// Runs that wait at a queue of a tunnel. Chosen: some milliseconds of a fast sender.
const ROOM: usize = 1024;
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
pub(crate) type Inbox = Mailbox<Arrival>;

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

    /// An inbox for a receiving queue.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub(crate) fn inbox() -> io::Result<Arc<Inbox>> {
        Mailbox::new(ROOM).map(Arc::new)
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
    count: u64,
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
            let left = frames.len() - index;
            let is_taken = !inboxes.of.is_empty() && self.take(&inboxes, (frame, left), drops);
            match if is_taken { Ok(()) } else { send(frame) } {
                Ok(()) => sent.count(frame.len()),
                Err(reason) => drops.add(reason, 1),
            }
        }
        self.hand_over(drops);
        sent
    }

    /// Whether the frame, the first of so many, goes to a tunnel; else it is the kernel's.
    fn take(
        &mut self,
        inboxes: &Inboxes,
        (frame, left): (&TxFrame<'_>, usize),
        drops: &mut Drops,
    ) -> bool {
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
            self.hand_over(drops);
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
        open.add(len, datagram.segment);
        true
    }

    /// Gives what is together to its tunnel.
    fn hand_over(&mut self, drops: &mut Drops) {
        let Some(open) = self.open.take().filter(|open| open.count > 0) else { return };
        if open.inbox.push(open.arrival).is_err() {
            drops.add(DropReason::TxFull, open.count);
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
        Self { inbox, whose, port, arrival, first: 0, is_closed: false, count: 0 }
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
    fn add(&mut self, len: usize, segment: usize) {
        self.count += 1;
        match self.count {
            1 => {
                self.first = len;
                self.is_closed = segment != 0;
                self.arrival.segment = segment;
            }
            _ => {
                self.arrival.segment = self.first;
                self.is_closed = len < self.first;
            }
        }
    }
}

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
