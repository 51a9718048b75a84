//! Where all packets of a port go, whatever is in them, as it was found out last: each batch asks, and the answer is the same as long as the snapshot is.

use crate::action::PortNo;
use crate::store::RecordId;

/// What is known of all packets of a port: the entry that every one finds, and the port by which they leave as they are, if they do; `None` if either depends on the
/// packet or cannot be told.
pub(crate) type Known = Option<(RecordId, Option<PortNo>)>;

/// Ports of which it is kept. Chosen: more than a worker has in most hosts; of others it is found out again.
pub(super) const PLACES: usize = 128;

/// One port of one snapshot; no snapshot has serial 0.
#[derive(Clone, Copy, Default)]
struct Way {
    serial: u64,
    in_port: PortNo,
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
    /// What is known of a port of the snapshot with this serial; `find` finds it out.
    #[inline]
    pub fn of(&mut self, serial: u64, in_port: PortNo, find: impl FnOnce() -> Known) -> Known {
        let way = &mut self.0[place(serial, in_port)];
        if (way.serial, way.in_port) != (serial, in_port) {
            *way = Way { serial, in_port, known: find() };
        }
        way.known
    }
}

/// The place of a port of a snapshot: ports of one switch follow one another, and switches' serials are far apart or close together, as it happens.
#[inline]
pub(super) fn place(serial: u64, in_port: PortNo) -> usize {
    (serial as usize).wrapping_add(in_port as usize) % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_out_once_for_each_snapshot_and_port() {
        let (mut ways, mut asked) = (Ways::default(), Vec::new());
        let known = |serial: u64, port: u32| Some((RecordId(port), Some(serial as u32)));
        for _ in 0..3 {
            for (serial, port) in [(1, 0), (1, 1), (2, 1)] {
                let found = ways.of(serial, port, || {
                    asked.push((serial, port));
                    known(serial, port)
                });
                assert_eq!(found, known(serial, port));
            }
        }
        assert_eq!(asked, [(1, 0), (1, 1), (2, 1)]);
        // Two that share a place take turns.
        assert_eq!(ways.of(2, 0, || None), None);
        assert_eq!(ways.of(1, 1, || known(7, 7)), known(7, 7), "forgotten meanwhile");
    }
}
