//! What [`Snapshot::resolve_plain`](crate::Snapshot) last said of all frames of a port.
//!
//! Each batch asks. The answer stays while table 0, the ports and the settings do.

use crate::action::PortNo;
use crate::resolve::Plain;

/// Ports of which it is kept. Chosen: more than a worker has in most hosts; of others it is found out again.
pub(super) const PLACES: usize = 128;

/// A port of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    pub switch: u32,
    pub in_port: PortNo,
}

impl Place {
    /// Slot of the port. Ports of one switch follow one another, and switches are far apart.
    #[inline]
    pub(super) fn slot(self) -> usize {
        (self.switch as usize).wrapping_mul(37).wrapping_add(self.in_port as usize) % PLACES
    }
}

/// The answer for one port at one version, which is never 0.
#[derive(Clone, Copy, Default)]
struct Memo {
    place: Place,
    version: u64,
    answer: Option<Plain>,
}

/// Answers by port.
pub(crate) struct PortMemo(Box<[Memo; PLACES]>);

impl Default for PortMemo {
    fn default() -> Self {
        Self(Box::new([Memo::default(); PLACES]))
    }
}

impl PortMemo {
    /// The answer for all frames of a port at this version of its tables; `resolve` finds it. `None` if it depends on the frame.
    #[inline]
    pub fn of(
        &mut self,
        place: Place,
        version: u64,
        resolve: impl FnOnce() -> Option<Plain>,
    ) -> Option<Plain> {
        let memo = &mut self.0[place.slot()];
        if (memo.version, memo.place) != (version, place) {
            *memo = Memo { place, version, answer: resolve() };
        }
        memo.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RecordId;

    #[test]
    fn it_is_found_out_once_for_each_version_and_port() {
        let (mut memo, mut asked) = (PortMemo::default(), Vec::new());
        let answer = |version: u64, port: u32| {
            Some(Plain { entry: RecordId(port), port: Some(version as u32) })
        };
        let place = |in_port| Place { switch: 3, in_port };
        for _ in 0..3 {
            for (version, port) in [(1, 0), (1, 1), (7, 2)] {
                let found = memo.of(place(port), version, || {
                    asked.push((version, port));
                    answer(version, port)
                });
                assert_eq!(found, answer(version, port));
            }
        }
        assert_eq!(asked, [(1, 0), (1, 1), (7, 2)]);
        assert_eq!(memo.of(place(2), 8, || None), None, "a new version");
        // Two that share a slot take turns.
        let other = place(2 + PLACES as u32);
        assert_eq!(memo.of(other, 8, || answer(7, 7)), answer(7, 7));
        assert_eq!(memo.of(place(2), 8, || answer(9, 9)), answer(9, 9), "forgotten meanwhile");
    }
}
