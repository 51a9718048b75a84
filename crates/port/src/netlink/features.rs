//! What an interface's driver can do with XDP, as it says itself: generic netlink's family `netdev` (linux/netdev.h, Linux 6.3).
//!
//! The messages have a header of 4 bytes (`cmd`, `version`, 2 reserved) before their attributes.

use super::Netlink;
use super::codec::{Message, Request, attributes, read_u16};
use rustix::net::netlink;
use std::io;

/// The family that tells the numbers of all others.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const HEADER: usize = 4;

/// `NETDEV_XDP_ACT_…`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct XdpFeatures(u64);

impl XdpFeatures {
    const BASIC: u64 = 1;
    const REDIRECT: u64 = 2;

    /// The driver runs programs, and they may redirect.
    pub(crate) fn can_redirect(self) -> bool {
        let both = Self::BASIC | Self::REDIRECT;
        self.0 & both == both
    }
}

/// The features of the interface of that index, in the calling thread's namespace; `None` where the kernel is too old to tell.
pub(crate) fn xdp_features(index: u32) -> io::Result<Option<XdpFeatures>> {
    let netlink = Netlink::of(Some(netlink::GENERIC))?;
    let name = Request::new(GENL_ID_CTRL, &[CTRL_CMD_GETFAMILY, 1, 0, 0])
        .attribute(CTRL_ATTR_FAMILY_NAME, b"netdev\0");
    let family = match netlink.first(name, CTRL_ATTR_FAMILY_ID, read_u16) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        family => family?,
    };
    let Some(family) = family else { return Ok(None) };
    let device = Request::new(family, &[NETDEV_CMD_DEV_GET, 1, 0, 0])
        .attribute(NETDEV_A_DEV_IFINDEX, &index.to_ne_bytes());
    let features = netlink.first(device, NETDEV_A_DEV_XDP_FEATURES, read_u64)?;
    Ok(features.map(XdpFeatures))
}

impl Netlink {
    /// The first attribute of this kind in the answer to a request of generic netlink.
    fn first<T>(
        &self,
        request: Request,
        kind: u16,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let mut found = None;
        self.ask(request, |message: Message<'_>| {
            let mut all = attributes(message.body.get(HEADER..).unwrap_or_default());
            let value = all.find_map(|(of, value)| (of == kind).then(|| read(value))?);
            found = found.take().or(value);
        })?;
        Ok(found)
    }
}

fn read_u64(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}
