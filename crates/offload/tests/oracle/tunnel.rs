//! Two switches, and between them a tunnel: what comes of a frame, the slow way.

use super::play::{Left, key_of, program, worker};
use flow::{Pipeline, PortNo};
use offload::{Declined, FlowProgram, Frame, Outside};
use proptest::prelude::*;
use std::net::Ipv4Addr;
use wire::tunnel::{Dscp, Outer, Vxlan, entropy, entropy_of, outer_ds, outer_dscp};
use wire::{Field, PartialChecksum, checksum};

/// Where packets come in at the underlay's switch, which sends them by port 2.
const INLET: PortNo = 1;

/// A tunnel whose source port tells flows apart.
#[derive(Clone, Copy, Debug)]
pub struct Tunnel {
    pub outer: Outer,
    pub vni: u32,
    pub dscp: Dscp,
}

pub fn a_tunnel() -> impl Strategy<Value = Tunnel> {
    let dscp = prop_oneof![
        Just(Dscp::Pipe(0)),
        Just(Dscp::Pipe(46)),
        Just(Dscp::Uniform),
        Just(Dscp::Identity),
        Just(Dscp::WholeByte)
    ];
    (any::<bool>(), 0u32..1 << 24, dscp, 2u8..=64).prop_map(|(checksum, vni, dscp, ttl)| {
        let [from, to] = [1, 2].map(|host| Ipv4Addr::new(192, 0, 2, host).into());
        let (mac, from_mac) = ([2, 0, 0, 0, 9, 2], [2, 0, 0, 0, 9, 1]);
        Tunnel { outer: Outer { mac, from_mac, from, to, port: 4789, ttl, checksum }, vni, dscp }
    })
}

impl Tunnel {
    /// What the tunnel's port makes of a frame that leaves by it.
    fn around(&self, mut frame: Frame) -> Frame {
        if let Some(open) = frame.partial {
            checksum::complete(&mut frame.bytes, open).expect("it is in the frame");
        }
        let (mut packet, open) = self.unfinished(&frame, None);
        if let Some(open) = open {
            checksum::complete(&mut packet, open).expect("it is in the frame");
        }
        Frame { bytes: packet, in_port: INLET, segment: None, partial: None }
    }

    /// The same without its checksum, with other ECN bits if they are given.
    pub fn unfinished(&self, frame: &Frame, ecn: Option<u8>) -> (Vec<u8>, Option<PartialChecksum>) {
        let (port, ds) =
            (40_000 + entropy(&frame.bytes) as u16 % 32, outer_ds(&frame.bytes, self.dscp));
        let ds = ecn.map_or(ds, |ecn| ds & 0xfc | ecn);
        let inner = [&Vxlan { vni: self.vni }.emit(), &frame.bytes[..]].concat();
        let mut packet = vec![0; self.outer.len()];
        let open = self.outer.write(&mut packet, (port, ds), inner.len(), None);
        packet.extend(inner);
        (packet, open.checksum)
    }

    /// The program of a flow of which a frame is known.
    pub fn program(
        &self,
        [inside, underlay]: [&mut Pipeline; 2],
        first: &Frame,
    ) -> Result<FlowProgram, Declined> {
        let flow = program(inside, first)?;
        let key = flow.key_out();
        let ds = outer_dscp(key.get(Field::IpDscp) as u8, self.dscp) << 2;
        let port = 40_000 + entropy_of(&key) as u16 % 32;
        let outside = Outside::new(&self.outer, (port, ds), self.vni)?;
        let mut packet = Vec::new();
        outside.put_on(&mut packet, 0);
        let packet = Frame { bytes: packet, in_port: INLET, segment: None, partial: None };
        assert_eq!(key_of(&packet), outside.key(INLET));
        flow.through(outside, program(underlay, &packet)?)
    }

    /// What both switches make of a frame.
    pub fn worker(&self, [inside, underlay]: [&mut Pipeline; 2], frame: &Frame) -> Left {
        let Left(left) = worker(inside, frame);
        let sent = left.into_iter().flat_map(|(_, bytes, partial)| {
            let packet = self.around(Frame { bytes, partial, ..frame.clone() });
            worker(underlay, &packet).0
        });
        Left(sent.collect())
    }
}
