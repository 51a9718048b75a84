//! A tunnel with nothing left out: what its keys say, and what is usual where they say nothing.

use api::{FlowId, Forwarding};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use wire::tunnel::{Dscp, VXLAN_PORT, Vxlan};

/// A tunnel to one other end, or to those that rules choose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tunnel {
    /// The other end: where datagrams go. The unspecified address (`0.0.0.0` or `::`): of each frame the end that rules chose
    /// ([`crate::Ends`]), and received is what anyone sends and no other port has.
    pub(crate) remote: IpAddr,
    /// Its other addresses, from which datagrams come as well.
    pub(crate) from: Vec<IpAddr>,
    /// This end's addresses, over which flows spread; none: the one of the route.
    pub(crate) local: Vec<IpAddr>,
    /// The interface on whose link alone the ends' addresses count (RFC 4007 §11), by name or index: what is sent leaves by it.
    pub(crate) zone: Option<String>,
    /// VXLAN network identifier, 24 bits; `None`: of each frame its tunnel id, and received is whatever VNI no other port has.
    pub(crate) vni: Option<u32>,
    /// UDP port of both ends.
    pub(crate) port: u16,
    /// What becomes of the DSCP, and whether it identifies flows.
    pub(crate) dscp: Dscp,
    /// TTL or hop limit of the outer packet.
    pub(crate) ttl: u8,
    /// Whether TCP's offers are lowered, both ways, to segments that the path carries.
    pub(crate) mss_clamp: bool,
    /// Whether the outer UDP header has a checksum; without one none is asked for either.
    pub(crate) checksum: bool,
    /// Who carries its packets between the port and the switch that has the NIC.
    pub(crate) forwarding: Forwarding,
    /// The file of keys that it is encrypted with; `None`: it is not.
    pub(crate) encrypt: Option<PathBuf>,
}

impl From<&api::Vxlan> for Tunnel {
    fn from(keys: &api::Vxlan) -> Self {
        let local = keys.local.as_ref().map_or_else(Vec::new, |local| local.get().to_vec());
        let (remote, from) = match keys.remote.addresses().and_then(<[IpAddr]>::split_first) {
            Some((first, from)) => (*first, from),
            // Each frame's own, of the family of this end's addresses if it has any.
            None if local.first().is_some_and(IpAddr::is_ipv6) => {
                (Ipv6Addr::UNSPECIFIED.into(), &[][..])
            }
            None => (Ipv4Addr::UNSPECIFIED.into(), &[][..]),
        };
        let usual = Self::new(remote, 0);
        let dscp = || keys.dscp.as_ref().map_or(usual.dscp, api::Dscp::get);
        Self {
            from: from.to_vec(),
            local,
            vni: keys.key.vni(),
            port: keys.udp_port.unwrap_or(usual.port),
            dscp: match keys.flow_id {
                Some(FlowId::Dscp) => Dscp::Identity,
                Some(FlowId::Tos) => Dscp::WholeByte,
                Some(FlowId::Underlay) | None => dscp(),
            },
            ttl: keys.ttl.unwrap_or(usual.ttl),
            mss_clamp: keys.mss_clamp.unwrap_or(usual.mss_clamp),
            zone: keys.zone().map(ToString::to_string),
            checksum: keys.outer_checksum.unwrap_or(usual.checksum),
            forwarding: keys.forwarding.unwrap_or(usual.forwarding),
            encrypt: keys.encrypt.as_deref().map(PathBuf::from),
            ..usual
        }
    }
}

impl Tunnel {
    /// To that end, everything else as usual: UDP port 4789, DSCP 0 outside, TTL 64.
    pub(crate) fn new(remote: IpAddr, vni: u32) -> Self {
        Self {
            remote,
            from: Vec::new(),
            local: Vec::new(),
            zone: None,
            vni: Some(vni),
            port: VXLAN_PORT,
            dscp: Dscp::Pipe(0),
            ttl: 64,
            mss_clamp: false,
            checksum: true,
            forwarding: Forwarding::Kernel,
            encrypt: None,
        }
    }

    /// Whether each frame has an end of its own.
    pub(crate) fn is_flow_based(&self) -> bool {
        self.remote.is_unspecified()
    }

    /// The same tunnel for each family of addresses that it goes over, IPv4 first: that of its ends, and both where nothing tells.
    pub(crate) fn legs(&self) -> Vec<Self> {
        let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        let leg = |remote| Self { remote, ..self.clone() };
        match self.is_flow_based() && self.local.is_empty() {
            true => any.map(leg).into(),
            false => vec![self.clone()],
        }
    }

    /// Every address that datagrams come from.
    pub(crate) fn senders(&self) -> Vec<IpAddr> {
        [&[self.remote], &self.from[..]].concat()
    }

    /// Bytes of the headers around a frame: IP, UDP, VXLAN.
    pub(crate) fn overhead(&self) -> u32 {
        let ip = if self.remote.is_ipv4() { 20 } else { 40 };
        ip + 8 + Vxlan::LEN as u32
    }
}
