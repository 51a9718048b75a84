//! The device as one front-end sees it: what was agreed on, the guest's memory, and rings, from which follows which rings run.
//!
//! Invariant: after each message a slot runs its ring exactly if the front-end has said all that the ring needs ([`RingSetup::missing`]),
//! has enabled it, and the driver is ready ([`Device::driver_is_ready`]). If only the enabling lacks, a transmit queue discards what its driver sends. Whatever changes what a running ring was made of stops it and starts it again where it was.
//! Nothing here touches a socket.

use super::attachment::{Attachment, Report, RingReport};
use super::ring_setup::{Addresses, RingSetup, Signal, read_base};
use super::trouble::Trouble;
use crate::call::is_eventfd;
use crate::{
    Call, DirtyLog, Fault, Features, GuestMemory, InflightMemory, Layout, RegionSpec, SlotState,
    Vring, VringConfig,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use vhost_protocol::vhost_user::VhostUserProtocolFeatures as Protocol;
use vhost_protocol::vhost_user::message::FrontendReq;

/// What we can do, and what we let pass: `CTRL_VQ` and `GUEST_ANNOUNCE` are the front-end's own doing, but it offers the driver only
/// what the back-end offers as well. MAC address, link state and control queue are the front-end's alone.
pub const OFFERED: Features = Features::VERSION_1
    .union(Features::PROTOCOL_FEATURES)
    .union(Features::LOG_ALL)
    .union(Features::MRG_RXBUF)
    .union(Features::INDIRECT_DESC)
    .union(Features::EVENT_IDX)
    .union(Features::IN_ORDER)
    .union(Features::RING_PACKED)
    .union(Features::MQ)
    .union(Features::MTU)
    .union(Features::CTRL_VQ)
    .union(Features::GUEST_ANNOUNCE)
    .union(OFFLOADS);

/// Checksums and segments that one side leaves to the other.
const OFFLOADS: Features = Features::CSUM
    .union(Features::GUEST_CSUM)
    .union(Features::HOST_TSO4)
    .union(Features::HOST_TSO6)
    .union(Features::HOST_ECN)
    .union(Features::HOST_USO)
    .union(Features::GUEST_TSO4)
    .union(Features::GUEST_TSO6)
    .union(Features::GUEST_ECN)
    .union(Features::GUEST_USO4)
    .union(Features::GUEST_USO6);

/// What the protocol itself can do. No `CONFIG`: front-ends of network devices make the configuration space themselves.
pub(super) const PROTOCOL: Protocol = Protocol::MQ
    .union(Protocol::LOG_SHMFD)
    .union(Protocol::RARP)
    .union(Protocol::REPLY_ACK)
    .union(Protocol::MTU)
    .union(Protocol::INFLIGHT_SHMFD)
    .union(Protocol::RESET_DEVICE)
    .union(Protocol::CONFIGURE_MEM_SLOTS)
    .union(Protocol::STATUS);

/// Regions of memory that a front-end may add. KVM's own bound: no guest has more.
pub(super) const SLOTS_MAX: usize = 509;

/// VIRTIO 1.2 §2.7: a ring's largest size.
const SIZE_MAX: u32 = 32_768;
/// VIRTIO 1.2 §2.1.
const DRIVER_OK: u8 = 4;
const DEVICE_NEEDS_RESET: u8 = 64;

/// What a ring can be ("Ring states").
#[derive(Clone, Copy, PartialEq, Eq)]
enum RingState {
    /// Not touched.
    Stopped,
    /// Started, and what the driver sends is discarded.
    Disabled,
    /// Started, and frames pass.
    Enabled,
}

/// One front-end's device.
pub(super) struct Device {
    attachment: Arc<Attachment>,
    features: Features,
    pub(super) protocol: Protocol,
    rings: Vec<RingSetup>,
    memory: Arc<GuestMemory>,
    /// Regions that were added again while they were there: QEMU before 8.1 adds and removes each one once for every queue pair.
    repeated: Vec<(u64, u64, u64)>,
    log: Option<Arc<DirtyLog>>,
    inflight: Option<InflightMemory>,
    status: u8,
}

impl Device {
    /// Of a front-end that has said nothing yet.
    pub(super) fn new(attachment: Arc<Attachment>) -> Self {
        let rings = attachment.slots().map(|_| RingSetup::default()).collect();
        let bound = attachment.guest_bounds.clone();
        let memory = bound.map_or_else(Arc::default, |bound| GuestMemory::bounded(bound).into());
        Self {
            attachment,
            features: Features::empty(),
            protocol: Protocol::empty(),
            rings,
            memory,
            repeated: Vec::new(),
            log: None,
            inflight: None,
            status: 0,
        }
    }

    /// The answer to `GET_QUEUE_NUM`: rings, "how many queues the back-end supports", and a queue is a virtqueue ("Multiple queue support").
    ///
    /// cloud-hypervisor refuses to start when it has more virtqueues than this, so with the number of pairs it could never use the last half of them.
    /// QEMU compares the number with its `queues=`, which are pairs, and so lets a user ask for too many; the rings that the port does not have are
    /// refused when they are set up, in words ([`Trouble::NoSuchRing`]). DPDK's back-end answers pairs and has 128 of them, so it meets neither.
    pub(super) fn ring_count(&self) -> u64 {
        self.rings.len() as u64
    }

    /// Whether what a request needs was agreed on.
    pub(super) fn require(&self, request: FrontendReq, needed: Protocol) -> Result<(), Trouble> {
        let why = "needs a protocol feature that was not agreed on";
        if self.protocol.contains(needed) { Ok(()) } else { Err(Trouble::Message { request, why }) }
    }

    pub(super) fn set_features(&mut self, bits: u64) -> Result<(), Trouble> {
        let features = Features::from_bits_retain(bits);
        if !OFFERED.contains(features) {
            return Err(Trouble::Features(features.difference(OFFERED)));
        }
        if !features.contains(Features::PROTOCOL_FEATURES) {
            // Such a front-end knows no SET_VRING_ENABLE ("Ring states").
            self.rings.iter_mut().for_each(|ring| ring.enabled = true);
        }
        self.features = features;
        self.restart_all()
    }

    pub(super) fn set_protocol_features(&mut self, bits: u64) -> Result<(), Trouble> {
        let why = "accepts what was not offered";
        let unknown = Trouble::Message { request: FrontendReq::SET_PROTOCOL_FEATURES, why };
        let features = Protocol::from_bits(bits)
            .filter(|&features| PROTOCOL.contains(features))
            .ok_or(unknown)?;
        self.protocol = features;
        self.settle_all()
    }

    // Memory.

    pub(super) fn set_memory(&mut self, regions: &[RegionSpec]) -> Result<(), Trouble> {
        self.repeated.clear();
        self.replace_memory(self.memory.anew(regions)?)
    }

    pub(super) fn add_region(&mut self, region: &RegionSpec) -> Result<(), Trouble> {
        let named = (region.guest, region.user, region.size);
        let is_there =
            self.memory.regions().any(|there| (there.guest, there.user, there.size) == named);
        if is_there && self.repeated.len() < SLOTS_MAX * self.rings.len() {
            self.repeated.push(named);
            return Ok(());
        }
        if self.memory.regions().count() >= SLOTS_MAX {
            let why = "more memory regions than GET_MAX_MEM_SLOTS said";
            return Err(Trouble::Message { request: FrontendReq::ADD_MEM_REG, why });
        }
        self.replace_memory(self.memory.with(region)?)
    }

    pub(super) fn remove_region(
        &mut self,
        guest: u64,
        user: u64,
        size: u64,
    ) -> Result<(), Trouble> {
        let repetition = self.repeated.iter().position(|&named| named == (guest, user, size));
        if let Some(repetition) = repetition {
            self.repeated.swap_remove(repetition);
            return Ok(());
        }
        self.replace_memory(self.memory.without(guest, user, size)?)
    }

    /// Rings that run go on with the new table; the old one is unmapped when the last of them has let go of it.
    fn replace_memory(&mut self, memory: Arc<GuestMemory>) -> Result<(), Trouble> {
        self.attachment.slots().for_each(|slot| slot.replace_memory(&memory));
        self.memory = memory;
        self.settle_all()
    }

    // Rings.

    pub(super) fn set_size(&mut self, index: u32, size: u32) -> Result<(), Trouble> {
        let why = "a ring has 1 to 32768 descriptors";
        let wrong = Trouble::Message { request: FrontendReq::SET_VRING_NUM, why };
        let size = u16::try_from(size)
            .ok()
            .filter(|&size| (1..=SIZE_MAX).contains(&size.into()))
            .ok_or(wrong)?;
        self.change(index, |ring| ring.size = size)
    }

    pub(super) fn set_addresses(
        &mut self,
        index: u32,
        addresses: Addresses,
    ) -> Result<(), Trouble> {
        self.change(index, |ring| ring.addresses = Some(addresses))
    }

    pub(super) fn set_base(&mut self, index: u32, base: u32) -> Result<(), Trouble> {
        let at = self.known(index)?;
        if self.attachment.slot(at).is_running() {
            let why = "the ring runs: GET_VRING_BASE stops it";
            return Err(Trouble::Message { request: FrontendReq::SET_VRING_BASE, why });
        }
        self.pause(at);
        (self.rings[at].base, self.rings[at].has_run) = (Some(base), false);
        self.settle(at)
    }

    /// Stops a ring; it needs a new kick to start again.
    pub(super) fn take_base(&mut self, index: u32) -> Result<u32, Trouble> {
        let at = self.known(index)?;
        self.pause(at);
        self.forget_record(at);
        let packed = self.is_packed();
        let ring = &mut self.rings[at];
        ring.kick = Signal::Unset;
        let base = read_base(ring.base, packed).bits();
        self.publish();
        Ok(base)
    }

    /// Nothing but an eventfd is watched: others could hold up whoever asks whether they are readable.
    pub(super) fn set_kick(&mut self, index: u32, fd: Option<OwnedFd>) -> Result<(), Trouble> {
        let is_event = |fd: &OwnedFd| is_eventfd(fd.as_fd());
        let ours = fd.as_ref().map_or(Ok(true), is_event);
        if !ours.map_err(Trouble::system("look at a file"))? {
            return Err(no_event(FrontendReq::SET_VRING_KICK));
        }
        self.change(index, |ring| ring.kick = fd.into())
    }

    /// A ring that runs takes it at once, and tells the driver once: something may have happened while the old one was in place.
    pub(super) fn set_call(&mut self, index: u32, fd: Option<OwnedFd>) -> Result<(), Trouble> {
        let at = self.known(index)?;
        self.rings[at].call = call(FrontendReq::SET_VRING_CALL, fd)?.into();
        self.attachment.slot(at).set_call(self.rings[at].call.event());
        self.settle(at)
    }

    pub(super) fn set_error(&mut self, index: u32, fd: Option<OwnedFd>) -> Result<(), Trouble> {
        let at = self.known(index)?;
        self.rings[at].error = call(FrontendReq::SET_VRING_ERR, fd)?;
        Ok(())
    }

    pub(super) fn set_enabled(&mut self, index: u32, enabled: bool) -> Result<(), Trouble> {
        let at = self.known(index)?;
        self.rings[at].enabled = enabled;
        self.settle(at)
    }

    // Status, MTU, address.

    pub(super) fn status(&self) -> u8 {
        let broken =
            self.attachment.slots().any(|slot| matches!(slot.state(), SlotState::Faulted(_)));
        if broken && self.status & DRIVER_OK != 0 {
            self.status | DEVICE_NEEDS_RESET
        } else {
            self.status
        }
    }

    pub(super) fn set_status(&mut self, status: u8) -> Result<(), Trouble> {
        self.status = status;
        let settled = self.settle_all();
        if status == 0 {
            // The driver's reset: it begins its rings anew.
            (0..self.rings.len()).for_each(|at| self.forget_record(at));
        }
        settled
    }

    /// The guest's MTU as the front-end tells it to the driver; whether the port takes it.
    pub(super) fn set_mtu(&mut self, mtu: u64) -> bool {
        let Ok(mtu) = u32::try_from(mtu) else { return false };
        let limit = self.attachment.mtu.load(Relaxed);
        let fits = (68..=65_535).contains(&mtu) && (limit == 0 || mtu <= limit);
        if fits {
            self.attachment.guest_mtu.store(mtu, Relaxed);
            self.publish();
        }
        fits
    }

    /// The guest moved here from another host: the switch shall learn its address anew.
    pub(super) fn announce(&self, mac: [u8; 6]) {
        self.attachment.announce(mac);
    }

    // Reset, migration, inflight.

    /// Stops every ring.
    pub(super) fn disable(&mut self) -> Result<(), Trouble> {
        self.rings.iter_mut().for_each(|ring| ring.enabled = false);
        self.settle_all()
    }

    /// As before the first message, but for what the connection agreed on and the memory, which the front-end keeps a record of.
    pub(super) fn reset(&mut self) {
        self.stop();
        (0..self.rings.len()).for_each(|at| self.forget_record(at));
        self.rings.iter_mut().for_each(|ring| *ring = RingSetup::default());
        self.status = 0;
        self.publish();
    }

    pub(super) fn set_log(
        &mut self,
        file: &OwnedFd,
        offset: u64,
        size: u64,
    ) -> Result<(), Trouble> {
        self.log = Some(DirtyLog::map(file, offset, size, &self.memory)?);
        self.restart_all()
    }

    /// Makes an inflight region; the front-end gives it back by [`Device::set_inflight`].
    pub(super) fn make_inflight(&self, queues: u16, size: u16) -> Result<InflightMemory, Trouble> {
        Ok(InflightMemory::create(self.layout(), self.plausible(queues)?, size)?)
    }

    pub(super) fn set_inflight(
        &mut self,
        (file, offset, len): (OwnedFd, u64, u64),
        (queues, size): (u16, u16),
    ) -> Result<(), Trouble> {
        let shape = (self.layout(), self.plausible(queues)?, size);
        self.inflight = Some(InflightMemory::adopt(file, offset, len, shape)?);
        Ok(())
    }

    /// The number of rings in an inflight region, no more than any device has.
    fn plausible(&self, queues: u16) -> Result<u16, Trouble> {
        let why = "more rings than a network device has";
        let wrong = Trouble::Message { request: FrontendReq::GET_INFLIGHT_FD, why };
        Some(queues).filter(|&queues| queues <= 1024).ok_or(wrong)
    }

    /// What a fault of a running ring brings: the front-end is told.
    pub(super) fn notice_faults(&mut self) {
        for (ring, slot) in self.rings.iter().zip(self.attachment.slots()) {
            if let (SlotState::Faulted(_), Some(error)) = (slot.state(), &ring.error) {
                error.signal();
            }
        }
        self.publish();
    }

    /// Every ring stops, and its memory is let go of.
    fn stop(&mut self) {
        (0..self.rings.len()).for_each(|at| self.pause(at));
    }

    fn layout(&self) -> Layout {
        if self.is_packed() { Layout::Packed } else { Layout::Split }
    }

    fn is_packed(&self) -> bool {
        self.features.contains(Features::RING_PACKED)
    }

    fn known(&self, index: u32) -> Result<usize, Trouble> {
        let at = index as usize;
        let pairs = (self.rings.len() / 2) as u16;
        if at < self.rings.len() { Ok(at) } else { Err(Trouble::NoSuchRing { index, pairs }) }
    }

    /// Changes what a ring is made of.
    fn change(&mut self, index: u32, change: impl FnOnce(&mut RingSetup)) -> Result<(), Trouble> {
        let at = self.known(index)?;
        self.pause(at);
        change(&mut self.rings[at]);
        self.settle(at)
    }

    fn restart_all(&mut self) -> Result<(), Trouble> {
        self.stop();
        self.settle_all()
    }

    fn settle_all(&mut self) -> Result<(), Trouble> {
        let settled = (0..self.rings.len()).try_for_each(|at| self.bring(at));
        self.publish();
        settled
    }

    fn settle(&mut self, at: usize) -> Result<(), Trouble> {
        let settled = self.bring(at);
        self.publish();
        settled
    }

    /// Starts or stops a ring if it must.
    fn bring(&mut self, at: usize) -> Result<(), Trouble> {
        let slot = self.attachment.slot(at);
        let wanted = self.wanted(at);
        match (wanted, slot.state()) {
            (RingState::Stopped, SlotState::Idle)
            | (RingState::Disabled, SlotState::Disabled)
            // A ring that broke stays so until it is stopped or disabled.
            | (RingState::Enabled, SlotState::Running { .. } | SlotState::Faulted(_)) => Ok(()),
            (RingState::Stopped, _) => {
                self.pause(at);
                Ok(())
            }
            (RingState::Disabled | RingState::Enabled, _) => {
                self.pause(at);
                self.start(at, wanted)
            }
        }
    }

    /// What a ring's state should be. A receive queue that is not enabled is as good as stopped: nothing may be put into it.
    fn wanted(&self, at: usize) -> RingState {
        let is_transmit = at % 2 == 1;
        match (self.lacks(at), self.rings[at].enabled) {
            (None, true) => RingState::Enabled,
            (None, false) if is_transmit => RingState::Disabled,
            _ => RingState::Stopped,
        }
    }

    /// What must come before a ring is there at all.
    fn lacks(&self, at: usize) -> Option<&'static str> {
        if let Some(what) = self.rings[at].missing() {
            return Some(what);
        }
        if !self.features.contains(Features::VERSION_1) {
            return Some("a driver of VIRTIO 1.0 or later (VERSION_1)");
        }
        (!self.driver_is_ready()).then_some("the driver to be ready (DRIVER_OK)")
    }

    /// What a ring waits for.
    fn missing(&self, at: usize) -> Option<&'static str> {
        self.lacks(at).or((!self.rings[at].enabled).then_some("to be enabled"))
    }

    fn driver_is_ready(&self) -> bool {
        !self.protocol.contains(Protocol::STATUS) || self.status & DRIVER_OK != 0
    }

    fn start(&mut self, at: usize, wanted: RingState) -> Result<(), Trouble> {
        let failed = |source: Fault| Trouble::Ring { index: at, source };
        let ring = &self.rings[at];
        let Some(Addresses { desc, driver, device, log }) = ring.addresses else { return Ok(()) };
        let logging = self.features.contains(Features::LOG_ALL);
        let base = read_base(ring.base, self.is_packed());
        let said = (!ring.has_run).then_some(base);
        let config = VringConfig {
            features: self.features,
            size: ring.size,
            desc,
            driver,
            device,
            base,
            log_used_at: log,
            memory: self.memory.clone(),
            kick: ring.kick.event(),
            call: ring.call.event(),
            inflight: self.inflight.as_ref().and_then(|inflight| inflight.ring(at as u16)),
            record: self.attachment.records().and_then(|records| records.ring(at as u16, said)),
            log: self.log.clone().filter(|_| logging),
        };
        let vring = Vring::new(config).map_err(failed)?;
        let slot = self.attachment.slot(at);
        let started = match wanted {
            RingState::Disabled => slot.start_disabled(vring),
            RingState::Stopped | RingState::Enabled => slot.start(vring),
        };
        started.map_err(Trouble::system("watch the ring's kick"))
    }

    /// Stops a ring and keeps where it was.
    fn pause(&mut self, at: usize) {
        if let Some(base) = self.attachment.slot(at).stop() {
            (self.rings[at].base, self.rings[at].has_run) = (Some(base.bits()), true);
        }
    }

    /// What the record says of a ring counts no longer.
    fn forget_record(&self, at: usize) {
        self.attachment.records().into_iter().for_each(|records| records.forget(at as u16));
    }

    /// Tells the world.
    fn publish(&self) {
        let rings = self.rings.iter().enumerate().map(|(at, ring)| RingReport {
            enabled: ring.enabled,
            size: ring.size,
            waits_for: self.missing(at),
        });
        self.attachment.publish(Report {
            features: self.features,
            protocol: self.protocol,
            memory: self.memory.regions().collect(),
            rings: rings.collect(),
        });
    }
}

fn call(request: FrontendReq, fd: Option<OwnedFd>) -> Result<Option<Call>, Trouble> {
    fd.map(Call::new).transpose().map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => no_event(request),
        _ => Trouble::system("prepare an eventfd")(error),
    })
}

fn no_event(request: FrontendReq) -> Trouble {
    Trouble::Message { request, why: "the file that came with it is no eventfd" }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop();
        self.attachment.guest_mtu.store(0, Relaxed);
        self.attachment.publish(Report::default());
    }
}
