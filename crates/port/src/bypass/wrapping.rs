//! What a tunnel puts around the frames of one flow, as constants: for who forwards them past its port.
//!
//! Of a tunnel whose packets go past the kernel, everything outside is known before: addresses from routes and neighbours,
//! the source port from the flow. What is said here is what the port itself would do now.

use super::{Door, Outlet};
use offload::{Declined, FlowReason, OUTSIDE, Outside, PortReason};
use std::sync::Arc;
use wire::tunnel::{Dscp, entropy_of, outer_dscp};
use wire::{Field, Key, ip_proto};

/// Bytes of Ethernet's header, which MTUs do not count.
const ETHERNET: u32 = 14;

/// A tunnel's way past the kernel, for flows.
pub struct Wrapping {
    pub(crate) outlet: Arc<Outlet>,
    pub(crate) vni: u32,
    pub(crate) dscp: Dscp,
    /// Whether the first frames of a connection are changed.
    pub(crate) mss_clamp: bool,
}

/// What is put around a flow's frames, and where its packets go.
pub struct Wrapped {
    /// The headers.
    pub outside: Outside,
    /// Where the packets come in at the underlay's switch.
    pub door: Arc<Door>,
    /// Bytes of the longest frame that fits, with its Ethernet header and tags.
    pub longest: u32,
}

impl Wrapping {
    /// What is put around frames that have this key as they leave.
    ///
    /// # Errors
    /// There is no way now, or it is one that no rung knows.
    pub fn wrap(&self, key: &Key) -> Result<Wrapped, Declined> {
        if self.mss_clamp && key.get(Field::IpProto) as u8 == ip_proto::TCP {
            return Err(FlowReason::DependsOn(Field::TcpFlags).into());
        }
        let (outer, port, door, mtu) =
            self.outlet.headers(entropy_of(key)).ok_or(PortReason::NoWay)?;
        let ds = outer_dscp(key.get(Field::IpDscp) as u8, self.dscp) << 2;
        let outside = Outside::new(&outer, (port, ds), self.vni)?;
        let longest = (mtu + ETHERNET).saturating_sub(OUTSIDE as u32);
        Ok(Wrapped { outside, door, longest })
    }

    /// Frames of a flow with this key left past the port.
    pub fn went(&self, key: &Key, frames: u64) {
        self.outlet.went(entropy_of(key), frames);
    }
}
