//! What lies behind the ports by which a packet leaves: queues, and a tunnel's outside.

use api::WhyWait;
use datapath::{PortAt, Way};
use flow::{Asked, PortNo};
use port::{Ends, Outside};
use std::net::IpAddr;
use wire::tunnel::Vxlan;
use wire::{Field, ip_proto};

/// Whoever knows the node's ports.
pub trait Beyond {
    /// The queue that a frame waits in there; `None` where frames do not wait.
    fn wait(&self, at: PortAt, queue: u32) -> Option<WhyWait>;

    /// Where the packets of a tunnel go, those to `end` of one without an end of its own.
    fn outside(&self, at: PortAt, end: Option<IpAddr>) -> Option<Outside>;

    /// The port of a switch by which packets come in that leave by this interface, seen from a tunnel.
    fn entrance(&self, tunnel: PortAt, outside: &Outside) -> Option<PortAt>;

    /// The way of a packet that comes in there.
    fn follow(&self, at: PortAt, frame: Asked) -> Way;
}

/// The end that a frame's rules chose.
pub fn end(frame: &Asked, ends: &Ends) -> Option<IpAddr> {
    ends.address(frame.key.get(Field::TunDst) as u16)
}

/// A tunnel's other end, and the VNI, in words.
pub fn words(outside: &Outside, frame: &Asked) -> String {
    let vni = outside.vni.unwrap_or_else(|| frame.key.get(Field::TunnelId) as u32);
    format!("vxlan {vni} to {}, UDP port {}", outside.to, outside.port)
}

/// The packet around a frame, as it comes in by a port of the switch below. What flows spread over is open: the source port, and the DS field.
pub fn outer(outside: &Outside, in_port: PortNo, frame: &Asked) -> Option<Asked> {
    let headers = outside.hop.as_ref().ok()?.headers;
    let payload = Vxlan::LEN + frame.bytes().len();
    let mut bytes = vec![0; headers.len() + payload];
    headers.write(&mut bytes, (0, 0), payload, None);
    let mut outer = Asked::whole(&bytes, in_port);
    outer.frame_len = 14 + outside.overhead + frame.frame_len;
    debug_assert_eq!(outer.key.get(Field::IpProto) as u8, ip_proto::UDP);
    for field in [Field::TpSrc, Field::IpDscp, Field::IpEcn] {
        outer.known.set(field, 0);
    }
    Some(outer)
}
