//! How many connections an address has at a time: nobody takes the room of others.
//!
//! A host of IPv6 has a whole network of addresses, so a network of 64 bits counts as one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// The connections that are there.
#[derive(Clone)]
pub struct Crowd {
    most: usize,
    there: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

/// One of them; its place is free again when this is dropped.
pub struct Place {
    of: IpAddr,
    crowd: Crowd,
}

impl Crowd {
    /// At most so many of each address.
    pub fn new(most: usize) -> Self {
        Self { most, there: Arc::default() }
    }

    /// A place for one more of that address.
    pub fn enter(&self, address: IpAddr) -> Option<Place> {
        let of = network(address);
        let mut there = self.there.lock().unwrap_or_else(PoisonError::into_inner);
        let count = there.entry(of).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Place { of, crowd: self.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut there = self.crowd.there.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = there.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                there.remove(&self.of);
            }
        }
    }
}

/// The network that counts as one caller.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_fills_its_own_room_and_leaves_nothing_behind() {
        let crowd = Crowd::new(2);
        let at = |text: &str| crowd.enter(text.parse().unwrap());
        let held = [at("192.0.2.1").unwrap(), at("::ffff:192.0.2.1").unwrap()];
        assert!(at("192.0.2.1").is_none() && at("192.0.2.2").is_some());
        let six = [at("2001:db8::1").unwrap(), at("2001:db8::2").unwrap()];
        assert!(at("2001:db8::3").is_none() && at("2001:db8:0:1::1").is_some());
        drop((held, six));
        assert!(crowd.there.lock().unwrap().is_empty());
    }
}
