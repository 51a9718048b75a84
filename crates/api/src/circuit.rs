//! Circuits that a part declares: which of its ports are joined with another node's, so that the node can prove that they are.
//!
//! The frames' way is made of ports and rules as any other. A circuit says what is to be proved: probes leave by the switch `K`
//! with the odd tunnel id beside the path's even one, and come by it. The circuit's port has no link before both ways are proved.
//!
//! ```toml
//! [[circuit]]
//! link = "a"
//! port = "red.demo.s1:p2"
//! id = 90210
//! near = "t1"
//! far = "o1"
//! mtu = 1500
//! ```

use crate::Peer;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The step of the faults that say why a circuit's port has no link.
pub const PROVE: &str = "prove it";

/// One end of a circuit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CircuitSpec {
    /// The link of the slice that it carries; `guest.port` for a guest that is on another node than its switch, `_ctl.node` for the control
    /// network, `_out.external` for an outside network.
    pub link: String,
    /// The user switch's port that it ends at, or `K`'s where a guest is the end. It has a link while the circuit is proved. None where an
    /// outside network is the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub port: Option<Peer>,
    /// Tunnel id of its path, even; the odd one above it is the probes'. Both ends have the same.
    pub id: u32,
    /// This node.
    pub near: String,
    /// The node of the other end.
    pub far: String,
    /// Bytes behind the Ethernet header that it carries, beside two tags.
    pub mtu: u16,
}

impl CircuitSpec {
    /// What its keys say wrong: cause and remedy.
    pub fn fault(&self) -> Option<(String, &'static str)> {
        if self.id & 1 == 1 || self.id >= 1 << 24 {
            let cause = format!("id {} is not an even number below 16777216", self.id);
            return Some((cause, "choose another id: the odd one above it is its probes'"));
        }
        (self.near == self.far).then(|| {
            let cause = format!("both its ends are {}", self.near);
            (cause, "name this node as near, and the node of the other end as far")
        })
    }

    /// The tunnel id of its probes (domain's design: even ids carry frames, odd ones probes).
    pub fn probe_id(&self) -> u32 {
        self.id | 1
    }

    /// The address that probes of a path have as destination where they enter and leave `K`: rules tell paths apart by it. Probes that
    /// come by an id that no rule knows have path 0's.
    pub fn probe_address(id: u32) -> [u8; 6] {
        let [_, a, b, c] = id.to_be_bytes();
        [0x02, b's', b'u', a, b, c]
    }
}

/// How a circuit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitState {
    /// A way is not good. Its port has no link.
    Down,
    /// Nothing is wrong, and not enough is known yet. Its port has no link.
    Proving,
    /// It was up, and loses frames now. Its port keeps its link, as that of a bad cable does.
    Lossy,
    /// Both ways are good.
    Up,
}

impl CircuitState {
    /// The word that users read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Proving => "proving",
            Self::Lossy => "lossy",
            Self::Up => "up",
        }
    }

    /// Whether its port has a link.
    pub fn has_link(self) -> bool {
        matches!(self, Self::Lossy | Self::Up)
    }
}

/// One way of a circuit, as the end says at which it arrives.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct WayView {
    /// Probes that were judged: the last ones.
    pub probes: u32,
    /// How many of them are lost.
    pub lost: u32,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// One end of a circuit, as it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CircuitView {
    /// The part that declares it; `file` is the configuration file.
    pub part: String,
    /// As it is wanted.
    pub spec: CircuitSpec,
    /// How it is.
    pub state: CircuitState,
    /// Since when, in nanoseconds since 1970.
    pub since_ns: u64,
    /// The way to the far node; nothing is known of it while nothing comes from there.
    pub there: WayView,
    /// The way from the far node.
    pub back: WayView,
    /// There and back, smoothed, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<u64>,
}

impl CircuitView {
    /// What is wrong: each way that is not good, with its cause.
    pub fn why(&self) -> String {
        let CircuitSpec { near, far, .. } = &self.spec;
        let ways = [(near, far, &self.there), (far, near, &self.back)];
        let wrong = ways.into_iter().filter_map(|(from, to, way)| {
            way.why.as_ref().map(|why| format!("{from} → {to}: {why}"))
        });
        wrong.collect::<Vec<_>>().join("; ")
    }
}

/// Probes that come to a node where their link has no end: they pass by on their way, or it leads astray.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct StrayView {
    /// The part of the link that they are of.
    pub part: String,
    /// That link.
    pub link: String,
    /// The node that sends them.
    pub from: String,
    /// Whether they are as long as a frame of the link may be.
    pub long: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_two_paths_differ_in_id_and_address() {
        let circuit = |id| CircuitSpec {
            link: "a".into(),
            port: "s1:p2".parse().ok(),
            id,
            near: "t1".into(),
            far: "o1".into(),
            mtu: 1500,
        };
        assert_eq!((circuit(90210).probe_id(), circuit(90212).probe_id()), (90211, 90213));
        assert_eq!(CircuitSpec::probe_address(90210), [2, b's', b'u', 0x01, 0x60, 0x62]);
        assert_ne!(CircuitSpec::probe_address(90210), CircuitSpec::probe_address(90212));
    }
}
