//! A TAP's side entrance.

use super::Place;
use crate::mailbox::{Bells, Mailbox};
use crossbeam_queue::ArrayQueue;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use wire::Offload;
use xdp::offload::Passage;

/// Of an interface, in its namespace.
pub(super) type Index = u32;

/// Frames that wait at a queue. Chosen: eight rounds of a worker's, each frame perhaps 64 KiB.
const ROOM: usize = 512;
/// Buffers that are kept for the next frames.
const SPARE: usize = 256;
/// Longer ones are not kept.
const KEPT: usize = 1 << 16;

/// A frame on its way in.
pub(crate) struct Injected {
    /// All of it.
    pub(crate) bytes: Vec<u8>,
    /// What is still to be done to it.
    pub(crate) offload: Offload,
}

/// The entrance, of which its port and all tunnels know.
pub struct Door {
    /// One for each receiving queue of the TAP.
    lanes: Box<[Arc<Mailbox<Injected>>]>,
    /// Made for the first frame: most TAPs never see one.
    spare: OnceLock<ArrayQueue<Vec<u8>>>,
    /// The TAP's MAC address, as a number.
    mac: AtomicU64,
    /// What entered and left the lanes.
    passage: Arc<Passage>,
}

impl Door {
    /// Of a TAP with so many queues.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub(crate) fn new(queues: usize, mac: [u8; 6], bells: &Bells) -> io::Result<Arc<Self>> {
        let lane = |_| Mailbox::new(ROOM, bells.clone()).map(Arc::new);
        let lanes = (0..queues).map(lane).collect::<io::Result<_>>()?;
        let (spare, mac) = (OnceLock::new(), number(mac).into());
        Ok(Arc::new(Self { lanes, spare, mac, passage: Arc::new(Passage::new(queues)) }))
    }

    /// What a receiving queue looks into.
    pub(crate) fn lane(&self, queue: usize) -> &Arc<Mailbox<Injected>> {
        &self.lanes[queue]
    }

    /// Has a frame come in, with others of its flow in order; false if there is no room.
    pub(crate) fn inject(&self, flow: usize, frame: Injected) -> bool {
        let lane = flow % self.lanes.len();
        self.passage.enter(lane);
        let refused = self.lanes[lane].push(frame);
        let taken = refused.map_err(|frame| {
            self.give_back(frame.bytes);
            self.passage.leave(lane, 1);
        });
        taken.is_ok()
    }

    /// What entered and left the lanes.
    pub fn passage(&self) -> &Arc<Passage> {
        &self.passage
    }

    /// An empty buffer.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        self.spare.get().and_then(ArrayQueue::pop).unwrap_or_default()
    }

    /// For the next frame.
    pub(crate) fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        if buffer.capacity() <= KEPT {
            let _ = self.spare.get_or_init(|| ArrayQueue::new(SPARE)).push(buffer);
        }
    }

    pub(crate) fn set_mac(&self, mac: [u8; 6]) {
        self.mac.store(number(mac), Relaxed);
    }

    /// Whether the kernel takes frames to this MAC address for the host's.
    pub fn is_mac(&self, mac: [u8; 6]) -> bool {
        self.mac.load(Relaxed) == number(mac)
    }
}

fn number([a, b, c, d, e, f]: [u8; 6]) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// Keeps a door open; closes it when dropped.
pub(crate) struct DoorKeeper {
    pub(crate) door: Arc<Door>,
    place: Arc<Place>,
    index: Index,
}

impl DoorKeeper {
    /// Opens it to the tunnels of its namespace.
    pub(crate) fn new(place: Arc<Place>, index: Index, door: Arc<Door>) -> Self {
        place.change_doors(|doors| drop(doors.insert(index, door.clone())));
        Self { door, place, index }
    }
}

impl Drop for DoorKeeper {
    fn drop(&mut self) {
        // A port that was made anew may have the interface already.
        let is_ours = |door: &Arc<Door>| Arc::ptr_eq(door, &self.door);
        self.place.change_doors(|doors| {
            if doors.get(&self.index).is_some_and(is_ours) {
                doors.remove(&self.index);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u8) -> Injected {
        Injected { bytes: vec![number], offload: Offload::default() }
    }

    #[test]
    fn flows_keep_to_their_lanes_and_what_finds_no_room_is_refused() {
        let door = Door::new(2, [2; 6], &Bells::default()).unwrap();
        assert!((0..4).all(|flow| door.inject(flow.into(), frame(flow))));
        let lane = |lane| -> Vec<u8> {
            std::iter::from_fn(|| door.lane(lane).pop()).map(|frame| frame.bytes[0]).collect()
        };
        assert_eq!((lane(0), lane(1)), (vec![0, 2], vec![1, 3]));
        assert_eq!((0..2000).filter(|_| door.inject(7, frame(1))).count(), ROOM);
        assert!(door.is_mac([2; 6]) && !door.is_mac([2, 2, 2, 2, 2, 3]));
    }

    #[test]
    fn a_door_is_there_while_somebody_keeps_it() {
        let place = Arc::new(Place::default());
        let door = Door::new(1, [2; 6], &Bells::default()).unwrap();
        let keeper = DoorKeeper::new(place.clone(), 7, door.clone());
        assert!(Arc::ptr_eq(&place.door(7).unwrap(), &door) && place.door(8).is_none());
        drop(keeper);
        assert!(place.door(7).is_none());
    }
}
