//! Offloads of an interface by name, as `ethtool -k` shows them: generic netlink's family `ethtool` (linux/ethtool_netlink.h, Linux 5.7).

use crate::codec::{Request, attributes, terminated, text};
use crate::generic::Family;
use crate::link::nested;
use std::io;

const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
const FEATURES_HEADER: u16 = 1;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const HEADER_DEV_INDEX: u16 = 1;
const BITSET_BITS: u16 = 3;
const BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// Reads and sets the offloads of interfaces; belongs to the namespace it was made in.
pub struct Offloads(Family);

/// The offloads of one interface that are on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OffloadState {
    /// Asked for, by the driver's default or by the user.
    wanted: Vec<String>,
    /// In force.
    active: Vec<String>,
}

impl OffloadState {
    /// Those of `names` that were asked for.
    pub fn wanted(&self, names: &[&str]) -> Vec<String> {
        self.wanted.iter().filter(|name| names.contains(&&***name)).cloned().collect()
    }

    /// Those of `names` that are in force.
    pub fn active(&self, names: &[&str]) -> Vec<String> {
        self.active.iter().filter(|name| names.contains(&&***name)).cloned().collect()
    }
}

impl Offloads {
    /// In the calling thread's namespace.
    ///
    /// # Errors
    /// `Unsupported` for a kernel without this family.
    pub fn new() -> io::Result<Self> {
        Family::open("ethtool")?.map(Self).ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// The offloads of the interface of that index.
    pub fn state(&self, index: u32) -> io::Result<OffloadState> {
        let mut state = OffloadState::default();
        self.0.ask(self.request(FEATURES_GET, index), |answer| {
            for (kind, bits) in attributes(answer) {
                match kind {
                    FEATURES_WANTED => state.wanted = names(bits),
                    FEATURES_ACTIVE => state.active = names(bits),
                    _ => {}
                }
            }
        })?;
        Ok(state)
    }

    /// Asks for these offloads, or for none of them; what the driver has fixed stays. Needs `CAP_NET_ADMIN`.
    pub fn set<S: AsRef<str>>(&self, index: u32, names: &[S], on: bool) -> io::Result<()> {
        let bit = |request: Request, name: &S| {
            request.nested(BITS_BIT, |bit| {
                let named = bit.attribute(BIT_NAME, &terminated(name.as_ref()));
                if on { named.attribute(BIT_VALUE, &[]) } else { named }
            })
        };
        let request = self.request(FEATURES_SET, index).nested(FEATURES_WANTED, |set| {
            set.nested(BITSET_BITS, |bits| names.iter().fold(bits, bit))
        });
        self.0.ask(request, |_| ())
    }

    fn request(&self, command: u8, index: u32) -> Request {
        let index = index.to_ne_bytes();
        let request = self.0.request(command);
        request.nested(FEATURES_HEADER, |header| header.attribute(HEADER_DEV_INDEX, &index))
    }
}

/// Names in a bit set without a mask: each bit in it is on.
fn names(set: &[u8]) -> Vec<String> {
    let bits = nested(set, BITSET_BITS).unwrap_or_default();
    let bits = attributes(bits).filter(|&(kind, _)| kind == BITS_BIT);
    bits.filter_map(|(_, bit)| nested(bit, BIT_NAME).map(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_loopback_interface_has_offloads_that_are_fixed_on() {
        let state = Offloads::new().unwrap().state(1).unwrap();
        assert_eq!(state.active(&["loopback", "no-such"]), ["loopback"]);
        assert!(state.wanted(&["loopback"]).is_empty(), "nobody can ask for it");
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let error = Offloads::new().unwrap().state(0x7fff_ffff).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }

    proptest! {
        #[test]
        fn any_bit_set_is_read_without_a_panic(set in prop::collection::vec(any::<u8>(), 0..100)) {
            names(&set);
        }
    }
}
