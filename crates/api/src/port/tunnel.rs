//! Words of a tunnel: its ends, its key, and how flows show outside.

use crate::{BadText, IfName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Most addresses of one end: a tunnel has no more ways to send.
const ADDRESSES_MAX: usize = 32;
/// The highest VNI: 24 bits (RFC 7348 §5).
const VNI_MAX: u32 = (1 << 24) - 1;

text_type! {
    /// The addresses of a tunnel's end: one, or several of one family with commas between them; those of one link with its interface.
    Addresses(OfEnd), "the address of a tunnel's end", "an IP address, or up to 32 different ones of one family with commas between them, such as \"192.0.2.1,192.0.2.3\"; those of a link alone with its interface, \"fe80::1%eth0\"", "192.0.2.1",
    |text| {
        let zoned = text.split(',').map(zoned).collect::<Option<Vec<(IpAddr, Option<IfName>)>>>()?;
        let (addresses, zones): (Vec<_>, Vec<_>) = zoned.into_iter().unzip();
        let is_one_link = zones.iter().all(|zone| *zone == zones[0]);
        let is_one_family = addresses.iter().all(|address| address.is_ipv4() == addresses[0].is_ipv4());
        let mut different = addresses.clone();
        different.sort_unstable();
        different.dedup();
        let is_good = is_one_link && is_one_family && different.len() == addresses.len() && different.len() <= ADDRESSES_MAX;
        is_good.then(|| OfEnd { addresses, zone: zones.into_iter().next().flatten() })
    }
}

/// What [`Addresses`] are.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct OfEnd {
    addresses: Vec<IpAddr>,
    /// The interface on whose link alone they count (RFC 4007), by name or index.
    zone: Option<IfName>,
}

/// An address, with its zone if, and only if, it counts on one link alone.
fn zoned(text: &str) -> Option<(IpAddr, Option<IfName>)> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone.parse().ok()?)),
        None => (text, None),
    };
    let address = address.parse().ok()?;
    let is_on_link = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    (is_on_link == zone.is_some()).then_some((address, zone))
}

impl Addresses {
    /// All of them: one at least.
    pub fn get(&self) -> &[IpAddr] {
        &self.0.addresses
    }

    /// The interface on whose link alone they count.
    pub fn zone(&self) -> Option<&IfName> {
        self.0.zone.as_ref()
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zone = self.0.zone.as_ref().map_or_else(String::new, |zone| format!("%{zone}"));
        let texts: Vec<_> =
            self.0.addresses.iter().map(|address| format!("{address}{zone}")).collect();
        f.write_str(&texts.join(","))
    }
}

text_type! {
    /// A tunnel's other end: its addresses, or `flow`: each frame's own, in its OpenFlow field `tun_dst`.
    Remote(Option<Addresses>), "a tunnel's other end", "an IP address, up to 32 different ones of one family with commas between them, those of a link alone with its interface (\"fe80::1%eth0\"), or \"flow\" for the end that rules choose for each frame", "192.0.2.2",
    |text| match text {
        FLOW => Some(None),
        text => text.parse().ok().map(Some),
    }
}

impl Remote {
    /// The addresses; none of a tunnel whose frames have ends of their own.
    pub fn addresses(&self) -> Option<&[IpAddr]> {
        self.0.as_ref().map(Addresses::get)
    }

    /// The interface on whose link alone they count.
    pub fn zone(&self) -> Option<&IfName> {
        self.0.as_ref()?.zone()
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(addresses) => addresses.fmt(f),
            None => f.write_str(FLOW),
        }
    }
}

/// A tunnel's key: one VNI, or `flow`: each frame's own, in its OpenFlow field `tunnel_id`.
///
/// Read from a number or a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum TunnelKey {
    /// This VNI.
    Vni(u32),
    /// Each frame's own.
    Flow,
}

/// The word for each frame's own key or end.
const FLOW: &str = "flow";

impl TunnelKey {
    /// The VNI that all frames have.
    pub fn vni(self) -> Option<u32> {
        match self {
            Self::Vni(vni) => Some(vni),
            Self::Flow => None,
        }
    }
}

impl FromStr for TunnelKey {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let plain = || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = || text.parse().ok().filter(|vni| plain() && *vni <= VNI_MAX);
        let key = if text == FLOW { Some(Self::Flow) } else { number().map(Self::Vni) };
        key.ok_or_else(|| BadText {
            given: text.into(),
            what: "a tunnel's key",
            form: "a VNI from 0 to 16777215, or \"flow\" for the tunnel id of each frame",
        })
    }
}

impl fmt::Display for TunnelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vni(vni) => vni.fmt(f),
            Self::Flow => f.write_str(FLOW),
        }
    }
}

/// Both forms that a number or a word may have in JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Written {
    Number(u64),
    Text(String),
}

impl Written {
    /// As text.
    pub(super) fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

impl TryFrom<Written> for TunnelKey {
    type Error = BadText;

    fn try_from(written: Written) -> Result<Self, BadText> {
        written.text().parse()
    }
}

impl From<TunnelKey> for Written {
    fn from(key: TunnelKey) -> Self {
        match key {
            TunnelKey::Vni(vni) => Self::Number(vni.into()),
            TunnelKey::Flow => Self::Text(FLOW.into()),
        }
    }
}

impl ToSchema for TunnelKey {}

impl PartialSchema for TunnelKey {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(VNI_MAX))
            .description(Some("the VNI of every frame"));
        let word = ObjectBuilder::new()
            .schema_type(Type::String)
            .examples([FLOW])
            .description(Some("`flow` for the tunnel id of each frame, or a number as text"));
        OneOfBuilder::new().item(number).item(word).into()
    }
}

/// How a flow shows outside of its tunnel, beside the UDP source port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowId {
    /// By this end's addresses, one for each group of flows.
    Underlay,
    /// By the DSCP of the packet inside.
    Dscp,
    /// By the whole ToS byte of the packet inside: the paper's flow control field. No ECN.
    Tos,
}

impl FlowId {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["underlay", "dscp", "tos"];
}

/// Who carries a tunnel's packets between its port and the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Forwarding {
    /// The kernel, by UDP sockets.
    Kernel,
    /// suiro itself, where the kernel's routes lead to a TAP of one of its switches.
    Own,
}

impl Forwarding {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["kernel", "own"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_vni_or_flow_as_a_number_or_as_text() {
        for (text, key) in [
            ("0", TunnelKey::Vni(0)),
            ("16777215", TunnelKey::Vni(VNI_MAX)),
            ("flow", TunnelKey::Flow),
        ] {
            assert_eq!(text.parse(), Ok(key));
            assert_eq!(key.to_string(), text);
            let json = serde_json::to_string(&key).unwrap();
            assert_eq!(serde_json::from_str::<TunnelKey>(&json).unwrap(), key, "{json}");
        }
        assert_eq!(serde_json::to_string(&TunnelKey::Vni(7)).unwrap(), "7");
        for text in ["", "16777216", "+1", "-1", "Flow", "7 "] {
            assert!(text.parse::<TunnelKey>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn addresses_are_different_ones_of_one_family() {
        for text in [
            "192.0.2.1",
            "192.0.2.1,192.0.2.3",
            "2001:db8::1,2001:db8::2",
            "fe80::1%eth0",
            "fe80::1%7,fe80::2%7",
        ] {
            assert_eq!(text.parse::<Addresses>().unwrap().to_string(), text);
        }
        let many: Vec<_> = (0..=32).map(|last| format!("192.0.2.{last}")).collect();
        assert!(many[..32].join(",").parse::<Addresses>().is_ok());
        for text in [
            "",
            "192.0.2.1,",
            "192.0.2.1,2001:db8::1",
            "192.0.2.1,192.0.2.1",
            "fe80::1",
            "fe80::1%",
            "fe80::1%eth0,fe80::2%eth1",
            "fe80::1%eth0,2001:db8::1",
            "2001:db8::1%eth0",
            "192.0.2.1%eth0",
            &many.join(","),
        ] {
            assert!(text.parse::<Addresses>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_end_is_addresses_or_flow() {
        for text in ["flow", "192.0.2.1", "2001:db8::1,2001:db8::2"] {
            let remote: Remote = text.parse().unwrap();
            assert_eq!(
                (remote.to_string().as_str(), remote.addresses().is_none()),
                (text, text == FLOW)
            );
        }
        assert!("flow,192.0.2.1".parse::<Remote>().is_err());
    }
}
