//! Where all packets of a port go, whatever is in them, as it was found out last: each batch asks, and the answer is the same as long as
//! table 0, the ports and the settings are.

use crate::action::PortNo;
use crate::resolve::Plain;

/// What is known of all packets of a port; `None` if the entry that they find depends on the packet or cannot be told.
pub(crate) type Known = Option<Plain>;

/// Ports of which it is kept. Chosen: more than a worker has in most hosts; of others it is found out again.
pub(super) const PLACES: usize = 128;

/// A port of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    pub switch: u32,
    pub in_port: PortNo,
}

impl Place {
    /// Where it is kept: ports of one switch follow one another, and switches are far apart.
    #[inline]
    pub(super) fn at(self) -> usize {
        (self.switch as usize).wrapping_mul(37).wrapping_add(self.in_port as usize) % PLACES
    }
}

/// One port at one version, which is never 0.
#[derive(Clone, Copy, Default)]
struct Way {
    place: Place,
    version: u64,
    known: Known,
}

/// What is known, by port.
pub(crate) struct Ways(Box<[Way; PLACES]>);

impl Default for Ways {
    fn default() -> Self {
        Self(Box::new([Way::default(); PLACES]))
    }
}

impl Ways {
    /// What is known of a port whose tables have this version; `find` finds it out.
    #[inline]
    pub fn of(&mut self, place: Place, version: u64, find: impl FnOnce() -> Known) -> Known {
        let way = &mut self.0[place.at()];
        if (way.version, way.place) != (version, place) {
            *way = Way { place, version, known: find() };
        }
        way.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RecordId;

    #[test]
    fn it_is_found_out_once_for_each_version_and_port() {
        let (mut ways, mut asked) = (Ways::default(), Vec::new());
        let known = |version: u64, port: u32| {
            Some(Plain { entry: RecordId(port), port: Some(version as u32) })
        };
        let place = |in_port| Place { switch: 3, in_port };
        for _ in 0..3 {
            for (version, port) in [(1, 0), (1, 1), (7, 2)] {
                let found = ways.of(place(port), version, || {
                    asked.push((version, port));
                    known(version, port)
                });
                assert_eq!(found, known(version, port));
            }
        }
        assert_eq!(asked, [(1, 0), (1, 1), (7, 2)]);
        assert_eq!(ways.of(place(2), 8, || None), None, "a new version");
        // Two that share a place take turns.
        let other = place(2 + PLACES as u32);
        assert_eq!(ways.of(other, 8, || known(7, 7)), known(7, 7));
        assert_eq!(ways.of(place(2), 8, || known(9, 9)), known(9, 9), "forgotten meanwhile");
    }
}
