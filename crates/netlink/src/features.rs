//! XDP features of an interface's driver: generic netlink's family `netdev` (linux/netdev.h, Linux 6.3).

use crate::generic::Family;
use std::io;

const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;

/// `NETDEV_XDP_ACT_…`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XdpFeatures(u64);

impl XdpFeatures {
    /// From the kernel's bits.
    pub const fn of(bits: u64) -> Self {
        Self(bits)
    }

    /// `NETDEV_XDP_ACT_BASIC`.
    pub const BASIC: u64 = 1;
    /// `NETDEV_XDP_ACT_REDIRECT`.
    pub const REDIRECT: u64 = 2;
    /// `NETDEV_XDP_ACT_NDO_XMIT`.
    pub const TRANSMIT: u64 = 4;

    /// True of a driver that runs programs.
    pub fn runs_programs(self) -> bool {
        self.0 & Self::BASIC != 0
    }

    /// True of a driver that runs programs which may redirect.
    pub fn can_redirect(self) -> bool {
        let both = Self::BASIC | Self::REDIRECT;
        self.0 & both == both
    }

    /// True of a driver that sends redirected frames now: a veth does while its other end has GRO or a program.
    pub fn takes_frames(self) -> bool {
        self.0 & Self::TRANSMIT != 0
    }
}

/// The family `netdev` in the namespace that it was opened in.
pub struct Netdev(Family);

impl Netdev {
    /// `None` where the kernel is too old.
    ///
    /// # Errors
    /// No socket, or the kernel does not answer.
    pub fn open() -> io::Result<Option<Self>> {
        Ok(Family::open("netdev")?.map(Self))
    }

    /// The features of the interface of that index now.
    ///
    /// # Errors
    /// There is no such interface, or the kernel does not answer.
    pub fn xdp_features(&self, index: u32) -> io::Result<Option<XdpFeatures>> {
        let request = self.0.request(NETDEV_CMD_DEV_GET);
        let request = request.attribute(NETDEV_A_DEV_IFINDEX, &index.to_ne_bytes());
        let features = self.0.first(request, NETDEV_A_DEV_XDP_FEATURES, read_u64)?;
        Ok(features.map(XdpFeatures))
    }
}

/// The features of the interface of that index, in the calling thread's namespace; `None` where the kernel is too old to tell.
pub fn xdp_features(index: u32) -> io::Result<Option<XdpFeatures>> {
    Netdev::open()?.map_or(Ok(None), |netdev| netdev.xdp_features(index))
}

fn read_u64(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}
