//! Bursts of frames that leave as XDP frames, in one system call.

use crate::abi::{BURST_MAX, EXITS_MAX, SLOT_BYTES};
use crate::error::{AttachError, MapError, errno};
use crate::object;
use crate::sys::{BurstMemory, own_netns};
use aya::maps::{DevMapHash, Map};
use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::xdp::XdpLink;
use aya::programs::{BtfTracePoint, TestRun, TestRunAttrs, TestRunOptions, Xdp, XdpMode};
use aya::{Btf, Ebpf, EbpfError};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsFd;

pub(crate) static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/transmit.bpf.o"));
const TRANSMIT: &str = "suiro_transmit";
const SENT: &str = "suiro_sent";
const TRACEPOINT: &str = "xdp_devmap_xmit";
const BURSTS: &str = "bursts";
const EXITS: &str = "exits";
/// What the kernel fills a frame with before the program does: as long as the most frequent frame, so that its length is right already.
const BLANK: [u8; 60] = [0; 60];

/// An interface that bursts of one [`Transmitter`] can leave by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Exit(u32);

/// What became of a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The driver took so many of the frames; its ring was full for the others.
    Sent(u32),
    /// Not one frame left, and none will: the interface or its driver takes no XDP frames now.
    Refused(Errno),
}

/// The program that sends one worker's bursts, and the memory in which they wait.
pub struct Transmitter {
    memory: BurstMemory,
    /// Frames put since the last burst.
    len: usize,
    next_exit: u32,
    freed: Vec<Exit>,
    // Before `ebpf`: fields drop in order, and the programs must outlive their links.
    _sent: BtfTracePointLink,
    _anchor: Anchor,
    ebpf: Ebpf,
}

/// The program attached where no frame ever comes.
///
/// The kernel patches its XDP call sites for a program that was not called from one before, and waits some 25 ms for every core to notice
/// (`bpf_prog_change_xdp`, `synchronize_rcu`). Once attached somewhere, it is known, and a burst waits for nothing.
struct Anchor {
    _link: XdpLink,
    /// Keeps the namespace, and the loopback interface in it.
    _netns: File,
}

impl Transmitter {
    /// Loads the programs and makes them known to the kernel. Takes some tens of milliseconds.
    ///
    /// # Errors
    /// No permission; or a kernel without live frames (5.18) or without its own type information.
    pub fn new() -> Result<Self, AttachError> {
        let mut ebpf = object::load(OBJECT).map_err(load("load the transmitter's maps"))?;
        let map = ebpf.map(BURSTS).ok_or(AttachError::BrokenBuild)?;
        let Map::Array(bursts) = map else { return Err(AttachError::BrokenBuild) };
        let memory = BurstMemory::map(bursts.fd().as_fd())
            .map_err(|source| AttachError::Memory { source })?;
        let step = "load the transmitter";
        let program: &mut Xdp = program_mut(&mut ebpf, TRANSMIT)?;
        program.load().map_err(|error| load(step)(error.into()))?;
        let anchor = Anchor::new(program)?;
        let step = "count sent frames";
        let btf = Btf::from_sys_fs().map_err(|error| load(step)(error.into()))?;
        let counter: &mut BtfTracePoint = program_mut(&mut ebpf, SENT)?;
        counter.load(TRACEPOINT, &btf).map_err(|error| load(step)(error.into()))?;
        let attached = counter.attach().and_then(|id| counter.take_link(id));
        let sent = attached.map_err(|error| load(step)(error.into()))?;
        Ok(Self {
            memory,
            len: 0,
            next_exit: 0,
            freed: Vec::new(),
            _sent: sent,
            _anchor: anchor,
            ebpf,
        })
    }

    /// Lets bursts leave by the interface of that index in the calling thread's network namespace.
    ///
    /// # Errors
    /// The interface is gone, its driver knows no XDP frames, or there are [`EXITS_MAX`] exits.
    pub fn add_exit(&mut self, index: u32) -> Result<Exit, MapError> {
        let exit = self.freed.pop().unwrap_or(Exit(self.next_exit));
        if exit.0 >= EXITS_MAX {
            return Err(MapError::Full { map: EXITS });
        }
        let inserted = self.exits().and_then(|mut exits| {
            exits.insert(exit.0, index, None, 0).map_err(MapError::redirect(EXITS))
        });
        match inserted {
            Ok(()) => self.next_exit = self.next_exit.max(exit.0 + 1),
            Err(error) => {
                self.free(exit);
                return Err(error);
            }
        }
        Ok(exit)
    }

    /// No burst leaves by that interface any more.
    pub fn remove_exit(&mut self, exit: Exit) {
        // Refused only when the interface is gone: then the kernel has removed it.
        let _ = self
            .exits()
            .and_then(|mut exits| exits.remove(exit.0).map_err(MapError::access(EXITS)));
        self.free(exit);
    }

    /// A number that was never given out needs no remembering.
    fn free(&mut self, exit: Exit) {
        if exit.0 < self.next_exit {
            self.freed.push(exit);
        }
    }

    fn exits(&mut self) -> Result<DevMapHash<&mut aya::maps::MapData>, MapError> {
        let map = self.ebpf.map_mut(EXITS).ok_or(MapError::Missing { map: EXITS })?;
        DevMapHash::try_from(map).map_err(MapError::access(EXITS))
    }

    /// Forgets what was put and not sent.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Frames that can still be put.
    pub fn room(&self) -> usize {
        BURST_MAX - self.len
    }

    /// Puts a frame of `len` bytes, which `fill` writes or gives up; `None` when it does, without room, or when the frame is longer than
    /// [`SLOT_BYTES`] or shorter than an Ethernet header. Not sent before [`Transmitter::send`].
    pub fn put(
        &mut self,
        exit: Exit,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Option<()>,
    ) -> Option<()> {
        if !(14..=SLOT_BYTES).contains(&len) {
            return None;
        }
        let slot = self.memory.slots().get_mut(self.len)?;
        fill(&mut slot.bytes[..len])?;
        (slot.exit, slot.len) = (exit.0, len as u32);
        self.len += 1;
        Some(())
    }

    /// Sends what was put, within the call.
    pub fn send(&mut self) -> Outcome {
        let frames = std::mem::take(&mut self.len) as u32;
        // The kernel takes "no repetition" for one.
        if frames == 0 {
            return Outcome::Sent(0);
        }
        self.memory.reset();
        let options = TestRunOptions {
            data_in: Some(&BLANK),
            repeat: frames,
            attrs: TestRunAttrs::new().xdp_live_frames(frames),
            ..TestRunOptions::new()
        };
        let program: Option<&Xdp> =
            self.ebpf.program(TRANSMIT).and_then(|program| program.try_into().ok());
        let run = program.map(|program| program.test_run(options));
        let counted = self.memory.counted();
        match run {
            // Frames before a failure have left; the call fails for want of memory.
            Some(_) if counted.sent > 0 => Outcome::Sent(counted.sent),
            Some(Ok(_)) if counted.flushed > 0 && counted.error == 0 => Outcome::Sent(0),
            Some(Ok(_)) if counted.error > 0 => {
                Outcome::Refused(Errno::from_raw_os_error(counted.error as i32))
            }
            Some(Ok(_)) => Outcome::Refused(Errno::OPNOTSUPP),
            Some(Err(error)) => {
                Outcome::Refused(Errno::from_raw_os_error(errno(&error).unwrap_or(libc::ENOMEM)))
            }
            None => Outcome::Refused(Errno::NOSYS),
        }
    }
}

impl Anchor {
    /// On the loopback interface of a new namespace, which only the link and this value know.
    fn new(program: &mut Xdp) -> Result<Self, AttachError> {
        const LOOPBACK: u32 = 1;
        let attach = || {
            let netns = own_netns().map_err(|source| AttachError::Memory { source })?;
            let attached = program.attach_to_if_index(LOOPBACK, XdpMode::Skb);
            let link = attached.and_then(|id| program.take_link(id));
            let step = "attach the transmitter";
            let link =
                link.map_err(|error| AttachError::Load { step, source: Box::new(error.into()) })?;
            Ok(Self { _link: link, _netns: netns })
        };
        std::thread::scope(|scope| {
            scope.spawn(attach).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

fn load(step: &'static str) -> impl Fn(EbpfError) -> AttachError {
    move |source| AttachError::Load { step, source: Box::new(source) }
}

fn program_mut<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, AttachError>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program>,
{
    let program = ebpf.program_mut(name).ok_or(AttachError::BrokenBuild)?;
    program.try_into().map_err(|_| AttachError::BrokenBuild)
}
