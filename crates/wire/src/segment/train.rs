//! Segments of a UDP tunnel as the datagrams of one large UDP frame.
//!
//! A kernel that does not take a large frame in a tunnel takes one large UDP frame (USO), and cuts that into the tunnel's datagrams: the same
//! bytes as the segments, in one piece. Only of a tunnel with UDP checksums, for the kernel gives each datagram one.

use super::{Segments, is_plain_udp};
use crate::checksum::complete;
use crate::{Gso, HEAD_MAX, Offload, PartialChecksum};
use std::ops::Range;

const UDP: usize = 8;
/// Most datagrams in one frame (Linux `UDP_MAX_SEGMENTS` was 64 until 6.9).
const MOST: usize = 64;

/// How segments go together.
#[derive(Clone, Copy, Debug)]
pub struct Trains<'a> {
    segments: Segments<'a>,
    l4: usize,
    /// Segments in each but the last.
    most: usize,
}

impl Segments<'_> {
    /// The segments as large UDP frames; `None` when they are in no tunnel that can go so.
    pub fn trains(&self) -> Option<Trains<'_>> {
        let l4 = self.around.summed_udp().filter(|&l4| is_plain_udp(self.headers, l4 as u16))?;
        let trains = Trains { segments: *self, l4, most: 1 };
        let room = usize::from(u16::MAX) - trains.lead();
        let most = (room / trains.datagram(self.size)).min(MOST);
        (most > 1 && self.count > 1).then_some(Trains { most, ..trains })
    }
}

impl Trains<'_> {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.segments.count.div_ceil(self.most)
    }

    /// The segments in the one at `index`.
    fn range(&self, index: usize) -> Range<usize> {
        let first = index * self.most;
        first..(first + self.most).min(self.segments.count)
    }

    /// Bytes of the one at `index`.
    pub fn len(&self, index: usize) -> usize {
        let datagrams = self.range(index).map(|at| self.datagram(self.segments.payload(at).len()));
        self.lead() + datagrams.sum::<usize>()
    }

    /// Never: there are at least two segments.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// What is left to do to the one at `index`.
    pub fn offload(&self, index: usize) -> Offload {
        let checksum = Some(PartialChecksum { start: self.l4 as u16, offset: 6 });
        match self.range(index).len() {
            1 => Offload { checksum, ..Offload::default() },
            _ => {
                let gso_size = self.datagram(self.segments.size) as u16;
                Offload { checksum, gso: Gso::Udp, gso_size, ..Offload::default() }
            }
        }
    }

    /// Writes the one at `index`; `copy` fills a slice with the large frame's bytes from an offset on.
    ///
    /// # Panics
    /// When `out` does not have its length: a bug of the port.
    pub fn write(&self, index: usize, out: &mut [u8], copy: impl Fn(usize, &mut [u8])) {
        let (segments, lead) = (&self.segments, self.lead());
        let mut headers = [0; HEAD_MAX];
        let headers = &mut headers[..segments.header_len()];
        let mut at = lead;
        for segment in self.range(index) {
            let payload = segments.payload(segment);
            let datagram = &mut out[at..at + self.datagram(payload.len())];
            segments.write_headers(segment, headers);
            let (own, data) = datagram.split_at_mut(headers.len() - lead);
            own.copy_from_slice(&headers[lead..]);
            copy(payload.start, data);
            let PartialChecksum { start, offset } = segments.checksum();
            let inner = PartialChecksum { start: start - lead as u16, offset };
            complete(datagram, inner).expect("a segment has its headers");
            if at == lead {
                out[..lead].copy_from_slice(&headers[..lead]);
            }
            at += self.datagram(payload.len());
        }
        segments.around.write_train(out);
    }

    /// Bytes that all of them have in common.
    fn lead(&self) -> usize {
        self.l4 + UDP
    }

    /// Bytes of a datagram's content with so much of the payload.
    fn datagram(&self, payload: usize) -> usize {
        self.segments.header_len() - self.lead() + payload
    }
}

#[cfg(test)]
mod tests {
    use crate::build::{Frame, Ipv4, Tcp};
    use crate::checksum::complete;
    use crate::segment::plan;
    use crate::{Gso, Offload};

    /// TCP of so many bytes in VXLAN.
    fn tunnelled(payload: usize) -> (Vec<u8>, Offload) {
        let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).udp(30000, 4789);
        let frame = frame.vxlan(5).inner_ethernet([6; 6], [8; 6]);
        let tcp = frame.ipv4(Ipv4::default()).tcp(Tcp::default()).payload(&vec![7; payload]);
        let (frame, partial) = tcp.finish_partial().expect("there is a transport");
        (
            frame,
            Offload {
                checksum: Some(partial),
                gso: Gso::TcpV4,
                gso_size: 1000,
                ..Offload::default()
            },
        )
    }

    #[test]
    fn cut_as_udp_a_train_is_the_segments() {
        let (frame, offload) = tunnelled(61_100);
        let segments = plan(&frame, frame.len(), &offload).expect("it can be cut");
        let finish = |mut bytes: Vec<u8>, partial| {
            complete(&mut bytes, partial).expect("the headers are there");
            bytes
        };
        let wanted: Vec<Vec<u8>> = (0..segments.count())
            .map(|index| {
                let mut out = vec![0; segments.header_len()];
                segments.write_headers(index, &mut out);
                out.extend(&frame[segments.payload(index)]);
                finish(out, segments.checksum())
            })
            .collect();
        let trains = segments.trains().expect("it is a UDP tunnel with checksums");
        let mut got = Vec::new();
        for index in 0..trains.count() {
            let mut out = vec![0xee; trains.len(index)];
            trains.write(index, &mut out, |at, into| {
                into.copy_from_slice(&frame[at..at + into.len()])
            });
            let offload = trains.offload(index);
            if offload.gso == Gso::None {
                got.push(finish(out, offload.checksum.expect("a checksum")));
                continue;
            }
            let datagrams = plan(&out, out.len(), &offload).expect("the kernel can cut it");
            for index in 0..datagrams.count() {
                let mut one = vec![0; datagrams.header_len()];
                datagrams.write_headers(index, &mut one);
                one.extend(&out[datagrams.payload(index)]);
                got.push(finish(one, datagrams.checksum()));
            }
        }
        assert_eq!(trains.count(), 2);
        assert!(got == wanted, "{} and {} datagrams", got.len(), wanted.len());
    }
}
