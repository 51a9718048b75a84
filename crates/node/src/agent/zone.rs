//! Addresses that count on one link only: which interface that is (RFC 4007 §11).

use api::IfName;
use netlink::Netlink;
use std::io;
use std::net::{SocketAddr, SocketAddrV6};

/// Returns the address with its zone, if it has one. The interface may come, go and come again under another index, so it is looked up
/// each time.
///
/// # Errors
/// There is no such interface.
pub fn on_link(address: SocketAddr, zone: Option<&IfName>) -> io::Result<SocketAddr> {
    match (address, zone) {
        (SocketAddr::V6(address), Some(zone)) => {
            let index = Netlink::new()?.zone(zone)?;
            Ok(SocketAddrV6::new(*address.ip(), address.port(), 0, index).into())
        }
        _ => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_an_interfaces_name_or_its_number() {
        let address = "[fe80::1]:6653".parse().unwrap();
        let scope = |zone: &str| match on_link(address, Some(&zone.parse().unwrap())) {
            Ok(SocketAddr::V6(address)) => Ok(address.scope_id()),
            Ok(other) => panic!("{other}"),
            Err(error) => Err(error.raw_os_error()),
        };
        assert_eq!(scope("lo"), Ok(1));
        assert_eq!(scope("77"), Ok(77));
        assert_eq!(scope("no-such-link0"), Err(Some(libc::ENODEV)));
        assert_eq!(on_link(address, None).unwrap(), address);
    }
}
