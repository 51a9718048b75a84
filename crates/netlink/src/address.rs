//! The addresses of a namespace.

use crate::codec::{
    NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, RTM_DELADDR, RTM_GETADDR, RTM_NEWADDR, Request,
    attributes, read_address, read_u32,
};
use crate::socket::Netlink;
use std::io;
use std::net::IpAddr;

/// `struct ifaddrmsg` (linux/if_addr.h): `family` 0, `prefixlen` 1, `flags` 2, `scope` 3, `index` 4..8.
const IFADDRMSG: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const IFA_F_NODAD: u8 = 0x02;
const IFA_F_OPTIMISTIC: u32 = 0x04;
const IFA_F_TENTATIVE: u32 = 0x40;

/// An address and the interface that has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceAddress {
    /// Index of the interface.
    pub interface: u32,
    /// This end's.
    pub address: IpAddr,
    /// Bits that its network has in common.
    pub prefix_len: u8,
}

impl Netlink {
    /// All addresses of the namespace that it answers to: not those that another host may turn out to have (RFC 4862 §5.4).
    ///
    /// One that changes meanwhile may be missing or not: news of it follows.
    pub fn addresses(&self) -> io::Result<Vec<IpAddr>> {
        Ok(self.interface_addresses()?.into_iter().map(|found| found.address).collect())
    }

    /// The addresses of [`Netlink::addresses`], each with its interface.
    pub fn interface_addresses(&self) -> io::Result<Vec<InterfaceAddress>> {
        let mut found = Vec::new();
        let request = Request::new(RTM_GETADDR, &[0; IFADDRMSG]).flagged(NLM_F_DUMP);
        self.ask(request, |message| {
            if message.kind == RTM_NEWADDR {
                found.extend(parse(message.body));
            }
        })?;
        Ok(found)
    }

    /// Gives an interface an address, without the wait for another host that may have it. One that it has already is kept.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn add_address(&self, at: InterfaceAddress) -> io::Result<()> {
        let request = changing(RTM_NEWADDR, at).flagged(NLM_F_CREATE | NLM_F_EXCL);
        match self.ask(request, |_| ()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            answered => answered,
        }
    }

    /// Takes an address from an interface.
    ///
    /// # Errors
    /// It does not have it, or the kernel refuses.
    pub fn del_address(&self, at: InterfaceAddress) -> io::Result<()> {
        self.ask(changing(RTM_DELADDR, at), |_| ())
    }
}

fn changing(
    kind: u16,
    InterfaceAddress { interface, address, prefix_len }: InterfaceAddress,
) -> Request {
    let (family, flags) = match address {
        IpAddr::V4(_) => (libc::AF_INET, 0),
        IpAddr::V6(_) => (libc::AF_INET6, IFA_F_NODAD),
    };
    let mut header = [0; IFADDRMSG];
    header[..3].copy_from_slice(&[family as u8, prefix_len, flags]);
    header[4..].copy_from_slice(&interface.to_ne_bytes());
    Request::new(kind, &header).address(IFA_LOCAL, address).address(IFA_ADDRESS, address)
}

/// The address in the body of an `RTM_NEWADDR`, if it may be used.
fn parse(body: &[u8]) -> Option<InterfaceAddress> {
    let (header, rest) = body.split_first_chunk::<IFADDRMSG>()?;
    let (mut local, mut address, mut flags) = (None, None, header[2].into());
    for (kind, value) in attributes(rest) {
        match kind {
            IFA_LOCAL => local = read_address(value),
            // Of a point-to-point interface it is the other end's, and `IFA_LOCAL` ours.
            IFA_ADDRESS => address = read_address(value),
            IFA_FLAGS => flags = read_u32(value).unwrap_or(flags),
            _ => {}
        }
    }
    let is_usable = flags & (IFA_F_TENTATIVE | IFA_F_OPTIMISTIC) != IFA_F_TENTATIVE;
    let address = local.or(address).filter(|_| is_usable)?;
    Some(InterfaceAddress { interface: read_u32(&header[4..])?, address, prefix_len: header[1] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(flags: u32, attributes: &[(u16, &[u8])]) -> Option<InterfaceAddress> {
        let request = Request::new(RTM_NEWADDR, &[2, 24, flags as u8, 0, 3, 0, 0, 0]);
        let request = attributes
            .iter()
            .fold(request, |request, (kind, value)| request.attribute(*kind, value));
        let bytes = request.attribute(IFA_FLAGS, &flags.to_ne_bytes()).finish(1);
        parse(&bytes[16..])
    }

    fn read(flags: u32, attributes: &[(u16, &[u8])]) -> Option<IpAddr> {
        parsed(flags, attributes).map(|found| found.address)
    }

    #[test]
    fn an_address_comes_with_its_interface_and_the_length_of_its_network() {
        let found = parsed(0, &[(IFA_LOCAL, &[10, 0, 0, 1])]).unwrap();
        assert_eq!((found.interface, found.prefix_len), (3, 24));
    }

    #[test]
    fn the_local_address_counts_and_a_tentative_one_does_not() {
        let (ours, theirs) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        assert_eq!(read(0x80, &[(IFA_ADDRESS, &theirs), (IFA_LOCAL, &ours)]), Some(ours.into()));
        let v6: &[u8] = &[0xfd; 16];
        assert_eq!(read(0x80, &[(IFA_ADDRESS, v6)]), Some([0xfd; 16].into()));
        assert_eq!(read(0x80 | IFA_F_TENTATIVE, &[(IFA_ADDRESS, v6)]), None);
        let optimistic = IFA_F_TENTATIVE | IFA_F_OPTIMISTIC;
        assert_eq!(read(optimistic, &[(IFA_ADDRESS, v6)]), Some([0xfd; 16].into()));
        assert_eq!(read(0, &[(IFA_ADDRESS, &[1, 2, 3])]), None);
    }

    proptest! {
        #[test]
        fn any_body_is_read_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..80)) {
            parse(&body);
        }
    }
}
