//! `vxlan`: another host, by VXLAN over this one's own network.

use super::sealing::SealCore;
use super::shared;
use super::tunnel::{Addresses, FlowId, Forwarding, Remote, TunnelKey};
use crate::key::{Form, Key, KeyFault, stands_for};
use crate::{Dscp, IfName, KeyPath, Mac, Netns};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use utoipa::ToSchema;

/// A tunnel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Vxlan {
    /// Addresses of the other end, or the end that rules choose.
    pub remote: Remote,
    /// VNI, or the tunnel id of each frame.
    pub key: TunnelKey,
    /// Addresses of this end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<Addresses>,
    /// How a flow shows outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    /// Network namespace that the tunnel goes out from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<Netns>,
    /// UDP port of both ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_port: Option<u16>,
    /// DSCP outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Dscp>,
    /// TTL or hop limit outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u8>,
    /// Whether the MSS that TCP offers is lowered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_clamp: Option<bool>,
    /// Whether the outer UDP header has a checksum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outer_checksum: Option<bool>,
    /// Path of tunnel packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarding: Option<Forwarding>,
    /// File of the keys that the tunnel is encrypted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypt: Option<KeyPath>,
    /// Core that encrypts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal_core: Option<SealCore>,
    /// Receive queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u16>,
    /// MAC address that controllers see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
}

/// Keys of a tunnel.
pub const KEYS: &[Key] = &[
    Key::new(
        "remote",
        Form::Text(stands_for::<Remote>),
        "ADDRESS[,ADDRESS]|flow",
        "Address of the other end, and others that it sends from; flow: each frame's tun_dst, which rules set",
    )
    .needed(
        "a tunnel needs the address of its other end",
        "add remote = \"192.0.2.2\", or remote = \"flow\"",
    ),
    Key::new(
        "key",
        Form::TextOrNumber(stands_for::<TunnelKey>),
        "VNI|flow",
        "VNI, 0 to 16777215; flow: each frame's tunnel id, for rules to match and set",
    )
    .needed("a tunnel needs its VNI", "add key = 7"),
    Key::new(
        "local",
        Form::Text(stands_for::<Addresses>),
        "ADDRESS[,ADDRESS]",
        "Address of this end, or several that flows spread over; the one of the route when left out",
    ),
    Key::new(
        "flow_id",
        Form::Word(FlowId::WORDS),
        "WHAT",
        "How a flow shows outside: by one of several local addresses, the DSCP inside, or the whole ToS byte, without ECN; by its source port alone when left out",
    ),
    Key::new(
        "netns",
        Form::Text(stands_for::<Netns>),
        "NETNS",
        "Network namespace that the tunnel goes out from; the node's own when left out",
    ),
    Key::new(
        "udp_port",
        Form::Number(1..=u16::MAX as u64),
        "PORT",
        "UDP port of both ends; 4789 when left out",
    ),
    Key::new(
        "dscp",
        Form::TextOrNumber(stands_for::<Dscp>),
        "0..63|uniform",
        "DSCP outside, or uniform for the inner packet's; 0 when left out",
    ),
    Key::new(
        "ttl",
        Form::Number(1..=u8::MAX as u64),
        "NUMBER",
        "TTL or hop limit outside; 64 when left out",
    ),
    Key::new(
        "mss_clamp",
        Form::Flag,
        "",
        "Lower the MSS that TCP offers, both ways, to what the path carries",
    ),
    Key::new(
        "outer_checksum",
        Form::OnOff,
        "on|off",
        "Checksum of the outer UDP header; off: none is sent, nor asked for over IPv6",
    ),
    Key::new(
        "forwarding",
        Form::Word(Forwarding::WORDS),
        "kernel|own",
        "Path of tunnel packets, own: straight to a suiro TAP, bypassing the kernel; kernel when left out",
    ),
    Key::new(
        "encrypt",
        Form::Text(stands_for::<KeyPath>),
        "FILE",
        "File of the keys to encrypt with (ESP, AES-GCM), absolute path; not encrypted when left out",
    ),
    Key::new(
        "seal_core",
        Form::TextOrNumber(stands_for::<SealCore>),
        "CORE|auto|with-forwarding",
        "Core for a thread that encrypts, or auto for one that is free; with-forwarding when left out",
    )
    .only_with("encrypt")
    .live(),
    shared::QUEUES,
    Key::new(
        "mac",
        Form::Text(stands_for::<Mac>),
        "MAC",
        "MAC address that controllers see; one made from datapath id and number when left out",
    ),
];

impl Vxlan {
    /// Everything in which the tunnel's keys contradict each other.
    pub fn check(&self) -> Vec<KeyFault> {
        let mut faults = Vec::new();
        self.check_ends(&mut faults);
        self.check_flows(&mut faults);
        self.check_packets(&mut faults);
        faults
    }

    fn check_ends(&self, faults: &mut Vec<KeyFault>) {
        let addresses = self.remote.addresses();
        if addresses.is_some_and(|all| all.iter().any(IpAddr::is_unspecified)) {
            let nobody = "0.0.0.0 and :: are no host's addresses";
            let some = "add remote = \"192.0.2.2\", or remote = \"flow\"";
            faults.push(KeyFault::new("remote", nobody, some));
        }
        let is_v4 = |addresses: &[IpAddr]| addresses[0].is_ipv4();
        let local = self.local.as_ref().map(Addresses::get);
        let families = local.map(is_v4).zip(addresses.map(is_v4));
        if families.is_some_and(|(local, remote)| local != remote) {
            let differ = "the tunnel's ends have addresses of two families";
            let alike = "give both ends IPv4 addresses, or both IPv6";
            faults.push(KeyFault::new("local", differ, alike));
        }
        let remote_zone = addresses.map(|_| self.remote.zone());
        if local.is_some() && remote_zone.is_some_and(|zone| zone != self.local_zone()) {
            let differ =
                "one end's addresses count on one link alone, and the other's not on the same";
            let alike = "give both ends addresses of one link (fe80::1%eth0), or neither";
            faults.push(KeyFault::new("local", differ, alike));
        }
    }

    fn local_zone(&self) -> Option<&IfName> {
        self.local.as_ref()?.zone()
    }

    /// The interface on whose link alone the ends' addresses count.
    pub fn zone(&self) -> Option<&IfName> {
        self.remote.zone().or_else(|| self.local_zone())
    }

    fn check_flows(&self, faults: &mut Vec<KeyFault>) {
        let locals = self.local.as_ref().map_or(0, |local| local.get().len());
        if self.flow_id == Some(FlowId::Underlay) && locals < 2 {
            let few = "flow_id underlay tells flows apart by this end's addresses, and there are not several";
            let several =
                "add local = \"192.0.2.1,192.0.2.3\", and name them as the remote of the other end";
            faults.push(KeyFault::new("flow_id", few, several));
        }
        let is_shown = matches!(self.flow_id, Some(FlowId::Dscp | FlowId::Tos));
        if is_shown && locals > 1 {
            let many = "several addresses of this end tell flows apart, and so would flow_id";
            let one = "choose flow_id = \"underlay\", or one address";
            faults.push(KeyFault::new("local", many, one));
        }
        if is_shown && self.dscp.is_some() {
            let taken = "the DSCP outside is the flow's identity, so that it cannot be another";
            faults.push(KeyFault::new("dscp", taken, "remove dscp, or flow_id"));
        }
    }

    fn check_packets(&self, faults: &mut Vec<KeyFault>) {
        let is_flow_based = self.remote.addresses().is_none();
        if is_flow_based && self.encrypt.is_some() {
            let many =
                "a key is shared with one other end, and this tunnel has as many as rules name";
            let each = "give each end an encrypted port of its own, or remove encrypt";
            faults.push(KeyFault::new("encrypt", many, each));
        }
        let is_own = self.forwarding == Some(Forwarding::Own);
        if is_own && (is_flow_based || self.key.vni().is_none()) {
            let one = "suiro's own forwarding is for tunnels with one other end and one VNI, and rules choose this one's";
            let kernel = "remove forwarding, or give remote an address and key a VNI";
            faults.push(KeyFault::new("forwarding", one, kernel));
        }
        if is_own && self.zone().is_some() {
            let link = "the kernel's routes, which suiro's own forwarding follows, say nothing of addresses of one link";
            let kernel = "remove forwarding, or give both ends addresses that routes lead to";
            faults.push(KeyFault::new("forwarding", link, kernel));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys with a fault of a tunnel to `remote` with these other keys.
    fn faults(remote: &str, more: &[(&str, &str)]) -> Vec<String> {
        let mut keys = crate::Keys::new();
        keys.extend([("remote".to_owned(), remote.into()), ("key".to_owned(), "flow".into())]);
        keys.extend(more.iter().map(|&(key, value)| (key.to_owned(), value.into())));
        let tunnel: Vxlan = serde_json::from_value(keys.into()).unwrap();
        tunnel.check().into_iter().map(|fault| fault.key).collect()
    }

    #[test]
    fn an_end_that_rules_choose_is_not_encrypted() {
        assert_eq!(faults("flow", &[]), [""; 0]);
        assert_eq!(faults("flow", &[("local", "2001:db8::1")]), [""; 0]);
        assert_eq!(faults("flow", &[("encrypt", "/etc/suiro/keys")]), ["encrypt"]);
        assert_eq!(faults("flow", &[("forwarding", "own")]), ["forwarding"]);
        assert_eq!(faults("0.0.0.0", &[]), ["remote"]);
        assert_eq!(faults("2001:db8::2", &[("local", "192.0.2.1")]), ["local"]);
        let on = |interface| format!("fe80::1%{interface}");
        assert_eq!(faults("fe80::2%eth0", &[("local", &on("eth0"))]), [""; 0]);
        assert_eq!(faults("fe80::2%eth0", &[("local", &on("eth1"))]), ["local"]);
        assert_eq!(faults("fe80::2%eth0", &[("local", "2001:db8::1")]), ["local"]);
        assert_eq!(faults("2001:db8::2", &[("local", &on("eth0"))]), ["local"]);
        assert_eq!(faults("flow", &[("local", &on("eth0"))]), [""; 0]);
        assert_eq!(faults("fe80::2%eth0", &[("forwarding", "own")]), ["forwarding", "forwarding"]);
    }

    #[test]
    fn an_identity_that_cannot_be_shown_is_refused() {
        let (end, two) = ("192.0.2.2", ("local", "192.0.2.1,192.0.2.3"));
        assert_eq!(faults(end, &[two, ("dscp", "46")]), [""; 0]);
        assert_eq!(faults(end, &[two, ("flow_id", "underlay")]), [""; 0]);
        assert_eq!(faults(end, &[("flow_id", "tos")]), [""; 0]);
        assert_eq!(faults(end, &[("local", "192.0.2.1"), ("flow_id", "underlay")]), ["flow_id"]);
        assert_eq!(
            faults(end, &[two, ("flow_id", "dscp"), ("dscp", "uniform")]),
            ["local", "dscp"]
        );
    }
}
