//! The front-end of vhost-user: from a socket to two rings that a switch serves.
//!
//! The protocol itself is the rust-vmm project's `vhost` crate; this module decides what to ask for and in which order (the order of
//! QEMU: features, memory, rings, enable). One queue pair: ring 0 is the guest's receive queue, ring 1 its transmit queue
//! (VIRTIO 1.2 §5.1.2).

use super::places::{Buffers, Places};
use super::ring::{Areas, Direction, Kind, Ring};
use super::sys::{self, Memory, Pages};
use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vhost_protocol::vhost_user::message::{
    VhostUserHeaderFlag, VhostUserProtocolFeatures, VhostUserVirtioFeatures,
};
use vhost_protocol::vhost_user::{Frontend, VhostUserFrontend};
use vhost_protocol::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

/// Feature bits of VIRTIO 1.2 §5.1.3 and §6.
pub mod feature {
    /// The guest takes frames without checksum.
    pub const GUEST_CSUM: u64 = 1 << 1;
    /// The switch takes frames without checksum.
    pub const CSUM: u64 = 1;
    /// The guest takes large IPv4 TCP segments.
    pub const GUEST_TSO4: u64 = 1 << 7;
    /// The switch takes large IPv4 TCP segments.
    pub const HOST_TSO4: u64 = 1 << 11;
    /// A descriptor may stand for a table of them.
    pub const INDIRECT_DESC: u64 = 1 << 28;
    /// A frame may fill several receive buffers.
    pub const MRG_RXBUF: u64 = 1 << 15;
    /// The header has twelve bytes and is little endian.
    pub const VERSION_1: u64 = 1 << 32;
    /// Packed rings.
    pub const RING_PACKED: u64 = 1 << 34;
    /// Buffers are used in order.
    pub const IN_ORDER: u64 = 1 << 35;
}

/// Bytes of the virtio-net header with VERSION_1 (VIRTIO 1.2 §5.1.6).
pub const HEADER: usize = 12;

/// Rings of a device.
const RECEIVE: usize = 0;
const TRANSMIT: usize = 1;

/// The guest that a driver plays.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Layout of its rings.
    pub ring: Kind,
    /// Slots of each ring, a power of two.
    pub slots: u16,
    /// Bytes of the longest frame it sends.
    pub frame: usize,
    /// Bytes of a frame that one receive buffer takes.
    pub buffer: usize,
    /// Its memory.
    pub pages: Pages,
    /// Features that it insists on, besides VERSION_1 and those that the ring's kind implies.
    pub features: u64,
}

impl Default for Shape {
    /// Full-size Ethernet frames, split rings of 256, mergeable buffers, in order.
    fn default() -> Self {
        let features = feature::MRG_RXBUF | feature::IN_ORDER;
        let (ring, pages) = (Kind::Split, Pages::Plain);
        Self { ring, slots: 256, frame: 1518, buffer: 1536, pages, features }
    }
}

impl Shape {
    fn wanted(&self) -> u64 {
        let packed = if self.ring == Kind::Packed { feature::RING_PACKED } else { 0 };
        let protocol = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();
        self.features | packed | feature::VERSION_1 | protocol
    }
}

/// A socket that a switch connects to.
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Listens on a path, which must not exist.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn bind(path: &Path) -> Result<Self> {
        let socket = UnixListener::bind(path)
            .with_context(|| format!("{}: listening failed", path.display()))?;
        Ok(Self { socket, path: path.into() })
    }

    /// Waits for the switch.
    ///
    /// # Errors
    /// It does not come in time.
    pub fn accept(&self, patience: Duration) -> Result<UnixStream> {
        let deadline = Instant::now() + patience;
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match poll(&mut fds, Some(&Timespec::try_from(left)?)) {
                Ok(0) => bail!("{}: no switch connected in time", self.path.display()),
                Ok(_) => return Ok(self.socket.accept()?.0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// One direction of a guest's network device.
pub struct Queue {
    /// The ring.
    pub ring: Ring,
    /// Its buffers.
    pub buffers: Buffers,
    /// We tell the switch.
    kick: EventFd,
    /// It was not told yet of what was offered last.
    is_untold: bool,
    /// The switch tells us.
    call: EventFd,
}

impl Queue {
    /// Offers the next `count` slots. The switch has to be told afterwards: [`tell`].
    #[inline]
    pub fn offer(&mut self, count: u16) {
        self.ring.offer(count);
        self.is_untold = true;
    }

    /// Tells the switch to look.
    pub fn kick(&self) {
        // Only a counter at its limit refuses, and then the switch has been told often enough.
        let _ = self.kick.write(1);
    }

    /// Takes back what the switch has used, if fewer than `count` buffers are free.
    #[inline]
    pub fn reclaim_for(&mut self, count: u16) {
        if self.ring.free() < count {
            let returned = self.ring.returned(u16::MAX);
            self.ring.reclaim(returned);
        }
    }

    /// Waits until the switch tells of used buffers; notifications must have been asked for. Whether it did in time.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(&self, patience: Duration) -> Result<bool> {
        let mut fds = [PollFd::from_borrowed_fd(sys::descriptor(&self.call), PollFlags::IN)];
        let ready = poll(&mut fds, Some(&Timespec::try_from(patience)?))?;
        let _ = self.call.read();
        Ok(ready > 0)
    }
}

/// Tells the switch what was offered on these queues since it was told last, where it wants to know. All of a guest's queues, or of several guests', at once: a
/// fence waits until everything written has reached the switch, and each look afterwards may fetch a line from it. Whether it wanted to know of any.
#[inline]
pub fn tell<const N: usize>(queues: [&mut Queue; N]) -> bool {
    if !queues.iter().any(|queue| queue.is_untold) {
        return false;
    }
    sys::full_fence();
    let mut was_wanted = false;
    for queue in queues {
        if std::mem::take(&mut queue.is_untold) && queue.ring.wants_kick() {
            queue.kick();
            was_wanted = true;
        }
    }
    was_wanted
}

/// A guest's network device with one pair of queues, served by a switch until it is dropped.
pub struct Device {
    /// The guest's memory.
    pub memory: Arc<Memory>,
    /// To the switch.
    pub transmit: Queue,
    /// From the switch.
    pub receive: Queue,
    /// Slots of each ring.
    pub slots: u16,
    /// Bytes of the frames that its transmit buffers are described for.
    pub frame: usize,
    /// Where its receive and its transmit ring are in its memory.
    pub areas: [Areas; 2],
    /// The session; closing it takes the port down. Never read. None if this process plays the switch as well.
    frontend: Option<Frontend>,
}

impl Device {
    /// Makes the guest's memory and rings and hands them to the switch at the other end of `socket`.
    ///
    /// # Errors
    /// The step that failed, or the features that the switch lacks.
    pub fn connect(socket: UnixStream, shape: &Shape) -> Result<Self> {
        let raw = socket.try_clone()?;
        let mut frontend = Frontend::from_stream(socket, 2);
        negotiate(&mut frontend, shape)?;
        let places = Places::of(shape);
        let memory = places.memory(shape)?;
        frontend.set_mem_table(&[region(&memory)]).context("SET_MEM_TABLE failed")?;
        let mut start = |index: usize| -> Result<_> {
            // The ring is made first: it must say what it wants before the switch looks.
            let ring = Ring::new(shape.ring, &memory, places.areas[index], shape.slots);
            let session = Session { frontend: &mut frontend, raw: &raw, memory: &memory };
            let events = session
                .start(index, places.areas[index], shape)
                .with_context(|| format!("setting up ring {index} failed"))?;
            Ok((ring, events))
        };
        let rings = [start(RECEIVE)?, start(TRANSMIT)?];
        Ok(Self::with(shape, &places, memory, rings, Some(frontend)))
    }

    /// Hands the same memory and rings to a switch that comes after another one ended, however it did: what the first one had not used,
    /// the second is to use. As QEMU does, without a region for buffers in flight: our rings are in order.
    ///
    /// # Errors
    /// As for [`Device::connect`]; it may be tried again.
    pub fn reconnect(&mut self, socket: UnixStream, shape: &Shape) -> Result<()> {
        let raw = socket.try_clone()?;
        let mut frontend = Frontend::from_stream(socket, 2);
        negotiate(&mut frontend, shape)?;
        frontend.set_mem_table(&[region(&self.memory)]).context("SET_MEM_TABLE failed")?;
        for (index, queue) in [(RECEIVE, &mut self.receive), (TRANSMIT, &mut self.transmit)] {
            let session = Session { frontend: &mut frontend, raw: &raw, memory: &self.memory };
            let (kick, call) = session
                .start_at(queue.ring.base(), index, self.areas[index], shape)
                .with_context(|| format!("setting up ring {index} again failed"))?;
            (queue.kick, queue.call) = (kick, call);
            queue.kick();
        }
        self.frontend = Some(frontend);
        Ok(())
    }

    /// A guest that no switch serves: whoever has its memory may play one.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn alone(shape: &Shape) -> Result<Self> {
        let places = Places::of(shape);
        let memory = places.memory(shape)?;
        let start = |index: usize| -> Result<_> {
            let ring = Ring::new(shape.ring, &memory, places.areas[index], shape.slots);
            Ok((ring, (EventFd::new(EFD_NONBLOCK)?, EventFd::new(EFD_NONBLOCK)?)))
        };
        let rings = [start(RECEIVE)?, start(TRANSMIT)?];
        Ok(Self::with(shape, &places, memory, rings, None))
    }

    fn with(
        shape: &Shape,
        places: &Places,
        memory: Arc<Memory>,
        [receive, transmit]: [(Ring, (EventFd, EventFd)); 2],
        frontend: Option<Frontend>,
    ) -> Self {
        let queue = |(ring, (kick, call)), index: usize| {
            let buffers = places.buffers[index];
            Queue { ring, buffers, kick, is_untold: false, call }
        };
        let (mut receive, mut transmit) = (queue(receive, RECEIVE), queue(transmit, TRANSMIT));
        describe(&mut receive, shape.slots, shape.buffer, Direction::Receive);
        describe(&mut transmit, shape.slots, shape.frame, Direction::Transmit);
        receive.offer(shape.slots);
        tell([&mut receive]);
        let (slots, frame, areas) = (shape.slots, shape.frame, places.areas);
        Self { memory, transmit, receive, slots, frame, areas, frontend }
    }
}

/// Describes every buffer at its full length.
fn describe(queue: &mut Queue, slots: u16, frame: usize, direction: Direction) {
    for slot in 0..slots {
        let address = queue.buffers.header(slot) as u64;
        queue.ring.describe(slot, address, (HEADER + frame) as u32, direction);
    }
}

fn negotiate(frontend: &mut Frontend, shape: &Shape) -> Result<()> {
    let offered = frontend.get_features().context("GET_FEATURES failed")?;
    let wanted = shape.wanted();
    let missing = wanted & !offered;
    ensure!(missing == 0, "the switch lacks features {missing:#x}; it offers {offered:#x}");
    let protocol = VhostUserProtocolFeatures::REPLY_ACK;
    let known = frontend.get_protocol_features().context("GET_PROTOCOL_FEATURES failed")?;
    frontend.set_protocol_features(known & protocol).context("SET_PROTOCOL_FEATURES failed")?;
    // From here on the switch confirms each step, so that an error names the step.
    frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
    frontend.set_owner().context("SET_OWNER failed")?;
    frontend.set_features(wanted).context("SET_FEATURES failed")
}

fn region(memory: &Memory) -> VhostUserMemoryRegionInfo {
    VhostUserMemoryRegionInfo {
        guest_phys_addr: 0,
        memory_size: memory.bytes() as u64,
        userspace_addr: memory.user_address(),
        mmap_offset: 0,
        mmap_handle: memory.file().as_raw_fd(),
    }
}

struct Session<'a> {
    frontend: &'a mut Frontend,
    raw: &'a UnixStream,
    memory: &'a Memory,
}

impl Session<'_> {
    /// Tells the switch of an unused ring and starts it.
    fn start(self, index: usize, areas: Areas, shape: &Shape) -> Result<(EventFd, EventFd)> {
        self.start_at(Ring::first_base(shape.ring), index, areas, shape)
    }

    fn start_at(
        self,
        base: u32,
        index: usize,
        areas: Areas,
        shape: &Shape,
    ) -> Result<(EventFd, EventFd)> {
        let user = |offset: usize| self.memory.user_address() + offset as u64;
        let addresses = VringConfigData {
            queue_max_size: shape.slots,
            queue_size: shape.slots,
            flags: 0,
            desc_table_addr: user(areas.descriptors),
            used_ring_addr: user(areas.device),
            avail_ring_addr: user(areas.driver),
            log_addr: None,
        };
        let (kick, call) = (EventFd::new(EFD_NONBLOCK)?, EventFd::new(EFD_NONBLOCK)?);
        self.frontend.set_vring_num(index, shape.slots)?;
        self.set_base(index, base)?;
        self.frontend.set_vring_addr(index, &addresses)?;
        self.frontend.set_vring_call(index, &call)?;
        self.frontend.set_vring_kick(index, &kick)?;
        self.frontend.set_vring_enable(index, true)?;
        Ok((kick, call))
    }

    /// SET_VRING_BASE in full: the crate's call carries 16 bits, which is not enough for a packed ring's used index.
    fn set_base(&self, index: usize, base: u32) -> Result<()> {
        const SET_VRING_BASE: u32 = 10;
        const VERSION: u32 = 1;
        let message = [SET_VRING_BASE, VERSION, 8, index as u32, base];
        let bytes: Vec<u8> = message.iter().flat_map(|word| word.to_ne_bytes()).collect();
        (&*self.raw).write_all(&bytes).context("SET_VRING_BASE failed")
    }
}
