//! What is sent in each cell, and the frames that it must end as.

use wire::build::{Frame, Ipv4, Ipv6, Tcp};
use wire::checksum::complete;
use wire::segment::plan;
use wire::tunnel::Gre;
use wire::{Gso, HEAD_MAX, Offload};

pub const FROM: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const TO: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Payload of a segment in a tunnel or behind shims: with all headers it fits an MTU of 1500.
const SIZE: usize = 1200;
/// Bytes of a full-size IP packet, as segments are that have at most tags.
const FULL: usize = 1500;
/// Segments of a large frame, and the payload of one that is shorter.
const SEGMENTS: usize = 10;
const REST: usize = 345;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Around {
    Plain,
    Vlan,
    QinQ,
    Vxlan,
    Geneve,
    Gre,
    Mpls,
    Pbb,
}

impl Around {
    pub const ALL: [Self; 8] = [
        Self::Plain,
        Self::Vlan,
        Self::QinQ,
        Self::Vxlan,
        Self::Geneve,
        Self::Gre,
        Self::Mpls,
        Self::Pbb,
    ];

    /// Whether a kernel makes large frames so of one whose payload begins behind one IP header.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Plain | Self::Vlan | Self::QinQ)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    pub around: Around,
    pub is_v6: bool,
    pub is_tcp: bool,
    pub is_large: bool,
}

impl Cell {
    pub fn all() -> impl Iterator<Item = Self> {
        let bools = [false, true];
        Around::ALL.into_iter().flat_map(move |around| {
            (0..8).map(move |n: usize| Self {
                around,
                is_v6: bools[n & 1],
                is_tcp: bools[n >> 1 & 1],
                is_large: bools[n >> 2 & 1],
            })
        })
    }

    /// What a guest's kernel sends: one frame with its innermost checksum left to do.
    pub fn sent(self) -> (Vec<u8>, Offload) {
        let data = self.data();
        let (frame, partial) = self.frame(&data, 0).finish_partial().expect("a transport");
        let gso = match (self.is_large, self.is_tcp, self.is_v6) {
            (false, ..) => Gso::None,
            (_, false, _) => Gso::Udp,
            (.., false) => Gso::TcpV4,
            (.., true) => Gso::TcpV6,
        };
        let gso_size = if self.is_large { self.size() as u16 } else { 0 };
        (frame, Offload { checksum: Some(partial), gso, gso_size, ..Offload::default() })
    }

    /// What must arrive in the end, whatever it travelled as.
    pub fn wanted(self) -> Vec<Vec<u8>> {
        let data = self.data();
        let parts = data.chunks(self.size()).enumerate();
        parts.map(|(index, part)| self.frame(part, index).finish()).collect()
    }

    /// Payload of a segment.
    fn size(self) -> usize {
        let headers = if self.is_v6 { 40 } else { 20 } + if self.is_tcp { 20 } else { 8 };
        if self.around.is_plain() { FULL - headers } else { SIZE }
    }

    /// Bytes of which every position tells whether it is in its place.
    fn data(self) -> Vec<u8> {
        let len = if self.is_large { SEGMENTS * self.size() + REST } else { self.size() };
        (0..len).map(|at: usize| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    }

    /// The segment at `index` with these data.
    fn frame(self, data: &[u8], index: usize) -> Frame {
        let frame = self.enter(Frame::ethernet(TO, FROM), index);
        let frame = self.network(frame, index);
        let sequence = 1 + (index * self.size()) as u32;
        let frame = match self.is_tcp {
            true => frame.tcp(Tcp { sequence, ..Tcp::default() }),
            false => frame.udp(1000, 2000),
        };
        frame.payload(data)
    }

    fn network(self, frame: Frame, index: usize) -> Frame {
        match self.is_v6 {
            true => frame.ipv6(Ipv6::default()),
            false => frame.ipv4(Ipv4 { id: index as u16, ..Ipv4::default() }),
        }
    }

    /// Everything before the innermost IP header. A tunnel's outer packet is of the same version.
    fn enter(self, frame: Frame, index: usize) -> Frame {
        // Geneve: version 0, no options, an Ethernet frame, VNI 7 (RFC 8926 §3.4).
        const GENEVE: [u8; 8] = [0, 0, 0x65, 0x58, 0, 0, 7, 0];
        let inner = |frame: Frame| frame.inner_ethernet([6; 6], [8; 6]);
        match self.around {
            Around::Plain => frame,
            Around::Vlan => frame.vlan(0x8100, 5),
            Around::QinQ => frame.vlan(0x88a8, 6).vlan(0x8100, 5),
            Around::Vxlan => inner(self.network(frame, index).udp(30000, 4789).vxlan(7)),
            Around::Geneve => inner(self.network(frame, index).udp(30000, 6081).payload(&GENEVE)),
            Around::Gre => {
                let gre = Gre { protocol: 0x6558, key: Some(7), ..Gre::default() };
                inner(self.network(frame, index).gre(gre))
            }
            Around::Mpls => frame.mpls(7, 0, 64).mpls(8, 0, 64),
            Around::Pbb => frame.pbb(0, 7, TO, FROM),
        }
    }
}

/// The frames that a frame ends as on a wire.
pub fn on_wire(frame: &[u8], offload: &Offload) -> Vec<Vec<u8>> {
    if offload.gso == Gso::None {
        let mut frame = frame.to_vec();
        if let Some(partial) = offload.checksum {
            complete(&mut frame, partial).expect("the mark fits the frame");
        }
        return vec![frame];
    }
    let head = &frame[..frame.len().min(HEAD_MAX)];
    let segments = plan(head, frame.len(), offload).expect("the mark fits the frame");
    let one = |index| {
        let mut out = vec![0; segments.header_len()];
        segments.write_headers(index, &mut out);
        out.extend_from_slice(&frame[segments.payload(index)]);
        complete(&mut out, segments.checksum()).expect("a segment has its headers");
        out
    };
    (0..segments.count()).map(one).collect()
}
