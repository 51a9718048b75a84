//! Past the kernel: a tunnel and the switch whose TAP is this host's way out hand each other packets directly.
//!
//! **Question answered**: where suiro has the NIC, and the host's own address is on a TAP of the switch that has it, who carries a tunnel's
//! packets between the tunnel's port and that switch?
//!
//! ```text
//!   guest ─ switch ─ tunnel port ─ UDP socket ─ routes, neighbours ─ TAP ─ switch ─ NIC
//!                        │                                            │
//!                        └───── outer headers put on, taken off ──────┘
//! ```
//!
//! The kernel does: each packet costs two system calls and its whole network stack. This module leaves it out, packet by packet, where it would do
//! nothing but put known headers on: the answer to "where to" is the kernel's own, kept in step ([`crate::underlay`]). Whatever has no such
//! answer (no neighbour yet, a route by another interface, a packet that the path does not take) goes to the socket as ever, and so does what
//! comes in and is not plainly a tunnel's. So the two ways do the same, and one may take the other's place at any time; packets of a flow that
//! are under way then may pass each other, once.
//!
//! What is left out with the kernel: its filter (nftables) and its statistics of these packets. A tunnel goes past it only where asked.
//!
//! * [`Doors`]: the node's; one [`Place`] for each namespace.
//! * [`Door`]: a TAP's side entrance. What is [`Injected`] there is received by its switch as if the kernel had sent it.
//! * [`Inboxes`]: which tunnel's queue gets what a TAP was to give to the kernel ([`Sorter`]).
//! * [`Outlet`]: a tunnel's way to a door.
//!
//! **Invariants**: a frame is in one place at a time, and every queue is bounded: what finds no room is dropped by who brings it, counted.
//! Who made an entry removes it when it goes (RAII); nothing is written to the kernel.

mod door;
mod inbox;
mod outlet;
mod wrapping;

pub use door::Door;
pub(crate) use door::{DoorKeeper, Injected};
pub(crate) use inbox::{Arrival, Claims, Inbox, Sorter, Whose};
pub(crate) use outlet::{Datagrams, Ends};
pub use outlet::{Outlet, OutletFacts};
pub(crate) use wrapping::Came;
pub use wrapping::{Wrapped, Wrapping};

use crate::mailbox::Bells;
use crate::netns::{Netns, NetnsRef};
use crate::underlay::Underlay;
use arc_swap::ArcSwap;
use door::Index;
use inbox::Inboxes;
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// All places of a node.
#[derive(Default)]
pub(crate) struct Doors {
    places: Mutex<HashMap<(u64, u64), Weak<Place>>>,
    bells: Bells,
}

/// What is in one namespace; there as long as somebody holds it.
#[derive(Default)]
pub(crate) struct Place {
    /// TAPs by the index of their interface.
    doors: ArcSwap<HashMap<Index, Arc<Door>>>,
    inboxes: ArcSwap<Inboxes>,
    /// Of the namespace's tunnels that go past the kernel.
    underlay: Mutex<Weak<Underlay>>,
    /// The node's.
    pub(crate) bells: Bells,
}

impl Doors {
    /// None yet; what comes through them rings these bells.
    pub(crate) fn new(bells: Bells) -> Self {
        Self { places: Mutex::default(), bells }
    }

    /// What the node's mailboxes ring.
    pub(crate) fn bells(&self) -> &Bells {
        &self.bells
    }

    /// The namespace's.
    ///
    /// # Errors
    /// It cannot be entered.
    pub(crate) fn place(&self, netns: &Netns) -> io::Result<Arc<Place>> {
        let file = netns.run(|| std::fs::metadata("/proc/thread-self/ns/net"))??;
        let mut places = lock(&self.places);
        places.retain(|_, place| place.strong_count() > 0);
        let place = places.entry((file.dev(), file.ino())).or_default();
        Ok(place.upgrade().unwrap_or_else(|| {
            let made = Arc::new(Place { bells: self.bells.clone(), ..Place::default() });
            *place = Arc::downgrade(&made);
            made
        }))
    }
}

impl Place {
    /// The namespace's tables, watched as long as somebody holds them.
    ///
    /// # Errors
    /// The kernel does not tell them.
    pub(crate) fn underlay(&self, netns: Option<&NetnsRef>) -> io::Result<Arc<Underlay>> {
        let mut known = lock(&self.underlay);
        if let Some(underlay) = known.upgrade() {
            return Ok(underlay);
        }
        let underlay = Underlay::new(netns)?;
        *known = Arc::downgrade(&underlay);
        Ok(underlay)
    }

    /// The TAP with this index, if it is a switch's.
    pub(crate) fn door(&self, index: Index) -> Option<Arc<Door>> {
        self.doors.load().get(&index).cloned()
    }

    /// Whether a door is one of the namespace's.
    pub(crate) fn has(&self, door: &Arc<Door>) -> bool {
        self.doors.load().values().any(|of| Arc::ptr_eq(of, door))
    }

    fn change_doors(&self, change: impl Fn(&mut HashMap<Index, Arc<Door>>)) {
        self.doors.rcu(|doors| changed(doors, &change));
    }

    fn change_inboxes(&self, change: impl Fn(&mut Inboxes)) {
        self.inboxes.rcu(|inboxes| changed(inboxes, &change));
    }
}

fn changed<T: Clone>(old: &Arc<T>, change: impl Fn(&mut T)) -> T {
    let mut new = T::clone(old);
    change(&mut new);
    new
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
