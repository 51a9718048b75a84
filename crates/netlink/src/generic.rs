//! Families of generic netlink: found by name, asked by command (linux/genetlink.h).
//!
//! The messages have a header of 4 bytes (`cmd`, `version`, 2 reserved) before their attributes.

use crate::codec::{Request, attributes, read_u16, terminated};
use crate::socket::Netlink;
use rustix::net::netlink;
use std::io;

/// The family that tells the numbers of all others.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const VERSION: u8 = 1;
const HEADER: usize = 4;

/// A family of the kernel's, and the socket to ask it by.
pub struct Family {
    netlink: Netlink,
    id: u16,
}

impl Family {
    /// Finds the family of that name, in the calling thread's namespace; `None` where the kernel has none.
    pub fn open(name: &str) -> io::Result<Option<Self>> {
        let control = Self { netlink: Netlink::of(Some(netlink::GENERIC))?, id: GENL_ID_CTRL };
        let named = control.request(CTRL_CMD_GETFAMILY);
        let named = named.attribute(CTRL_ATTR_FAMILY_NAME, &terminated(name));
        match control.first(named, CTRL_ATTR_FAMILY_ID, read_u16) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            id => Ok(id?.map(|id| Self { netlink: control.netlink, id })),
        }
    }

    /// A message that begins with this command.
    pub(crate) fn request(&self, command: u8) -> Request {
        Request::new(self.id, &[command, VERSION, 0, 0])
    }

    /// Sends a request and hands the attributes of every answer to `take`.
    pub(crate) fn ask(&self, request: Request, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        self.netlink.ask(request, |message| take(message.body.get(HEADER..).unwrap_or_default()))
    }

    /// The first attribute of this kind in the answers.
    pub(crate) fn first<T>(
        &self,
        request: Request,
        kind: u16,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let mut found = None;
        self.ask(request, |answer| {
            let value =
                attributes(answer).find_map(|(of, value)| (of == kind).then(|| read(value))?);
            found = found.take().or(value);
        })?;
        Ok(found)
    }
}
