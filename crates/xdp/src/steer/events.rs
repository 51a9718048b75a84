//! What the program did, as it did it.

use super::SteerError;
use super::abi::{EVENT_GIVEN_UP, EVENT_MOVED, EVENT_PLACED, SteerEvent};
use super::attached::Attached;
use crate::sys::steer::Record;
use aya::maps::{MapData, RingBuf};
use place::steering::FlowKey;
use place::{CoreId, Reason, UnitId};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Something that happened to a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// When, on the monotonic clock.
    pub at: Duration,
    /// The unit.
    pub unit: UnitId,
    /// Where its frames went, or came in.
    pub from: CoreId,
    /// Where they go, or were wanted.
    pub to: CoreId,
    /// Why.
    pub reason: Option<Reason>,
    /// From the wish to the first frame on the new core.
    pub waited: Duration,
    /// FlowKey of the frame.
    pub key: FlowKey,
}

/// What can happen to a unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EventKind {
    /// The program chose a core for it.
    Placed,
    /// Its frames go to another core from this one on.
    Moved,
    /// An urgent move was given up: the old core did not finish.
    GivenUp,
}

/// The events of one interface, to be read by one owner.
pub struct Events {
    ring: RingBuf<MapData>,
}

impl Attached {
    /// The interface's events since it was attached that nobody read; when more come than the ring holds, the newer ones are lost.
    ///
    /// # Errors
    /// The ring cannot be opened.
    pub fn events(&self) -> Result<Events, SteerError> {
        let map = self.maps.map("events")?;
        let ring = RingBuf::try_from(map).map_err(|_| self.maps.other_version("events"))?;
        Ok(Events { ring })
    }
}

impl AsFd for Events {
    /// Readable when there is an event.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

impl Iterator for Events {
    type Item = Event;

    /// The next event that is there; does not wait.
    fn next(&mut self) -> Option<Event> {
        loop {
            let item = self.ring.next()?;
            if let Some(event) = SteerEvent::read(&item).and_then(|raw| event(&raw)) {
                return Some(event);
            }
        }
    }
}

fn event(raw: &SteerEvent) -> Option<Event> {
    Some(Event {
        kind: match raw.kind {
            EVENT_PLACED => EventKind::Placed,
            EVENT_MOVED => EventKind::Moved,
            EVENT_GIVEN_UP => EventKind::GivenUp,
            _ => return None,
        },
        at: Duration::from_nanos(raw.at_ns),
        unit: UnitId(raw.unit),
        from: CoreId(raw.from),
        to: CoreId(raw.to),
        reason: Reason::from_code(raw.reason),
        waited: Duration::from_nanos(raw.waited_ns),
        key: FlowKey(raw.words),
    })
}
