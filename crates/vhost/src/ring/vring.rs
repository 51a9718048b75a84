//! A ring of either layout.

use super::chains::Chains;
use super::config::{Base, VringConfig};
use super::distance::{Distance, Reach};
use super::fill::SHORTEST;
use super::packed::Packed;
use super::split::Split;
use super::{Places, Queue, Used};
use crate::call::Call;
use crate::fault::Fault;
use crate::features::Features;
use crate::log::DirtyLog;
use crate::memory::GuestMemory;
use crate::sys::{self, Past};
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A ring in service.
pub struct Vring {
    pub(super) layout: Layout,
    pub(super) features: Features,
    places: Places,
    pub(super) memory: Arc<GuestMemory>,
    kick: Option<Arc<OwnedFd>>,
    call: Option<Arc<Call>>,
    pub(super) log: Option<Arc<DirtyLog>>,
    /// How often any guest's memory was found withdrawn, when ours was last found whole.
    hits: u32,
    /// The driver was asked to notify.
    armed: bool,
    /// Taken or filled, to be given back.
    pub(super) used: Vec<Used>,
    /// As a destination: buffers read ahead of need.
    pub(super) room: Chains,
    /// … of which so many were filled.
    pub(super) filled: usize,
    /// Bytes of each buffer that are worth asking for when it is read.
    pub(super) usual: usize,
    /// … and how far away its driver is.
    pub(super) distance: Distance,
    /// Frames were so long last time that they went backwards, or would have to a near driver.
    pub(super) went_backwards: bool,
}

/// Which layout; the same six questions to both.
pub(super) enum Layout {
    Split(Split),
    Packed(Packed),
}

/// `each!(self.layout, layout => expression)`: the expression for whichever layout it is.
macro_rules! each {
    ($of:expr, $layout:ident => $do:expr) => {
        match $of {
            Layout::Split($layout) => $do,
            Layout::Packed($layout) => $do,
        }
    };
}

impl Vring {
    /// Looks at the ring where the front-end says it is, and goes on from its base.
    ///
    /// # Errors
    /// Size, addresses or inflight region make no sense.
    pub fn new(config: VringConfig) -> Result<Self, Fault> {
        let VringConfig { features, size, desc, driver, device, base, memory, .. } = config;
        let VringConfig { log_used_at, kick, call, inflight, record, log, .. } = config;
        let places = Places { size, desc, driver, device, log_used_at };
        let layout = match base {
            Base::Split(next) => {
                Layout::Split(Split::new(&places, next, features, &memory, inflight)?)
            }
            Base::Packed { .. } => {
                Layout::Packed(Packed::new(&places, base, features, &memory, (inflight, record))?)
            }
        };
        let (room, filled) = (Chains::default(), 0);
        let used = Vec::with_capacity(usize::from(size.min(256)));
        let mut ring = Self {
            layout,
            features,
            places,
            memory,
            kick,
            call,
            log,
            hits: 0,
            armed: false,
            used,
            room,
            filled,
            usual: SHORTEST,
            distance: Distance::default(),
            went_backwards: false,
        };
        ring.disarm();
        // Whoever served it before may have died between an index and its notification.
        ring.notify();
        Ok(ring)
    }

    /// Takes up to `max` frames that the driver sends, and fewer when they are large; their buffers stay taken until [`Vring::give_back`].
    ///
    /// # Errors
    /// The driver broke the rules; nothing more may be done with this ring.
    #[inline]
    pub fn take(&mut self, max: usize, chains: &mut Chains) -> Result<usize, Fault> {
        chains.reset(&self.memory);
        chains.expect(self.features.asked_of_sent());
        let count = each!(&mut self.layout, layout => layout.fetch(max, Queue::Transmit, chains));
        // First: what was read from memory that is gone may have been anything.
        self.check_memory()?;
        let count = count?;
        if count == 0 {
            return Ok(0);
        }
        if self.armed {
            self.disarm();
        }
        chains.begin();
        self.note_taken(chains);
        Ok(count)
    }

    /// Notes what is to be given back. In order, one note stands for all of it, with the number of the last (VIRTIO 1.2 §2.7.9, §2.8.9),
    /// unless someone else is to hear of each.
    #[inline]
    fn note_taken(&mut self, chains: &Chains) {
        let together = self.features.contains(Features::IN_ORDER)
            && !each!(&self.layout, layout => layout.has_inflight());
        match chains.buffers_from(0).last().filter(|_| together) {
            Some(last) => {
                let places = chains.marks().map(|mark| mark.places).sum();
                self.used.push(Used { id: last.mark.id, places, len: 0 });
            }
            None => self.used.extend(chains.marks().map(|mark| Used::of(mark, 0))),
        }
    }

    /// Gives everything taken back, in order, and tells the driver if it wants to know.
    #[inline]
    pub fn give_back(&mut self) {
        self.publish();
    }

    /// Makes everything filled (or taken) known to the driver: entries, one index, one fence, one look whether it wants to be notified.
    #[inline]
    pub fn publish(&mut self) {
        if self.used.is_empty() {
            return;
        }
        each!(&mut self.layout, layout => layout.publish(&self.used));
        self.used.clear();
        self.log_ring();
        // The index must be visible before we look whether the driver sleeps: VIRTIO 1.2 §2.7.7.2 and §2.8.21.
        sys::full_fence();
        if each!(&mut self.layout, layout => layout.wants_call()) {
            self.notify();
        }
    }

    /// Asks the driver to notify; false when buffers came meanwhile, or when it has no file to notify by.
    pub fn arm(&mut self) -> bool {
        if self.kick.is_none() {
            return false;
        }
        each!(&mut self.layout, layout => layout.set_notifications(true));
        self.armed = true;
        self.log_ring();
        // The request must be visible before we look a last time: VIRTIO 1.2 §2.7.10.
        sys::full_fence();
        if self.waiting() == 0 {
            return true;
        }
        self.disarm();
        false
    }

    /// Asks the driver not to notify.
    pub fn disarm(&mut self) {
        each!(&mut self.layout, layout => layout.set_notifications(false));
        self.armed = false;
        self.log_ring();
    }

    /// Where it would go on.
    pub fn base(&self) -> Base {
        let unused = self.room.unused(self.filled);
        each!(&self.layout, layout => layout.base(unused))
    }

    /// Descriptors.
    pub fn size(&self) -> u16 {
        self.places.size
    }

    /// Whether the driver's core was found to share a cache with ours, by what its lines cost when long frames were last written to it; nothing before there were any, and on processors that gain nothing by knowing it.
    pub fn reach(&self) -> Option<Reach> {
        self.distance.reach().filter(|_| Past::here().is_some())
    }

    /// Takes the driver for one that is far away, until it is looked at next. For tests, which have none.
    pub fn take_for_far(&mut self) {
        self.distance = Distance::far();
    }

    /// What driver and device agreed on.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Buffers that the driver has made available and we have not used; 1 stands for any number in a packed ring, which keeps no count.
    pub fn waiting(&self) -> u16 {
        let ahead = self.room.len() - self.filled;
        each!(&self.layout, layout => layout.waiting()).saturating_add(ahead as u16)
    }

    pub(crate) fn kick(&self) -> Option<&Arc<OwnedFd>> {
        self.kick.as_ref()
    }

    pub(crate) fn set_kick(&mut self, kick: Option<Arc<OwnedFd>>) -> Option<Arc<OwnedFd>> {
        std::mem::replace(&mut self.kick, kick)
    }

    pub(crate) fn set_call(&mut self, call: Option<Arc<Call>>) -> Option<Arc<Call>> {
        std::mem::replace(&mut self.call, call)
    }

    pub(crate) fn set_log(&mut self, log: Option<Arc<DirtyLog>>, used_at: Option<u64>) {
        (self.log, self.places.log_used_at) = (log, used_at);
        self.log_ring();
    }

    pub(crate) fn replace_memory(&mut self, memory: &Arc<GuestMemory>) -> Result<(), Fault> {
        let unused = self.room.unused(self.filled);
        each!(&mut self.layout, layout => {
            layout.rewind(unused);
            layout.place(&self.places, memory)
        })?;
        self.room.forget();
        self.filled = 0;
        (self.memory, self.hits) = (Arc::clone(memory), 0);
        Ok(())
    }

    /// # Errors
    /// Some of the memory was taken away.
    #[inline]
    pub(super) fn check_memory(&mut self) -> Result<(), Fault> {
        let hits = sys::hits();
        if hits != self.hits {
            return self.look_for_hit(hits);
        }
        Ok(())
    }

    /// Some guest's memory was taken away: this one's?
    #[cold]
    fn look_for_hit(&mut self, hits: u32) -> Result<(), Fault> {
        if let Some(fault) = self.memory.fault() {
            return Err(fault);
        }
        self.hits = hits;
        Ok(())
    }

    fn notify(&self) {
        if let Some(call) = &self.call {
            call.signal();
        }
    }

    /// Marks the ring's own words. All that we may write, rather than what we wrote: a few pages, and only while a guest migrates.
    #[inline]
    fn log_ring(&self) {
        if let (Some(log), Some(used_at)) = (&self.log, self.places.log_used_at) {
            match &self.layout {
                Layout::Split(split) => split.log(log, used_at),
                Layout::Packed(packed) => packed.log(log),
            }
        }
    }
}

impl fmt::Debug for Vring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vring")
            .field("size", &self.size())
            .field("base", &self.base())
            .finish_non_exhaustive()
    }
}
