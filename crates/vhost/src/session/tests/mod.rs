//! Conversations over a socket pair with the protocol crate's own front-end, and with bytes that no front-end would send.

mod doors;
mod hostile;
mod messages;
mod rings;

use super::attachment::Attachment;
use super::conversation::{Conversation, End};
use super::trouble::Trouble;
use crate::{Features, SlotState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::io::IoSlice;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use vhost_protocol::VhostUserMemoryRegionInfo as Region;
use vhost_protocol::vhost_user::message::{FrontendReq, VhostUserHeaderFlag};
use vhost_protocol::vhost_user::{
    Frontend, VhostUserFrontend, VhostUserProtocolFeatures as Protocol,
};
use vhost_protocol::{VhostBackend, VringConfigData};
use vmm_sys_util::eventfd::EventFd;

/// Longest that anything here may take. Chosen: far above what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where the front-end has its guest's memory.
const USER: u64 = 0x7f00_0000_0000;
const BYTES: u64 = 1 << 20;

/// A front-end in conversation with a session.
struct Rig {
    attachment: Arc<Attachment>,
    frontend: Frontend,
    /// The same connection, for bytes.
    raw: UnixStream,
    thread: JoinHandle<Result<End, Trouble>>,
    memory: Memory,
}

/// A guest's memory with a name that no other test's has.
struct Memory {
    file: OwnedFd,
    name: String,
}

impl Memory {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("suiro-test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let file = rustix::fs::memfd_create(&*name, MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, BYTES).unwrap();
        Self { file, name }
    }

    /// One region, at guest address 0.
    fn region(&self) -> Region {
        self.region_at(0, BYTES)
    }

    fn region_at(&self, guest: u64, bytes: u64) -> Region {
        region_of(guest, bytes, self.file.as_raw_fd())
    }

    /// How often this process has it mapped.
    fn mappings(&self) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.contains(&format!("/memfd:{} ", self.name))).count()
    }

    /// How many file descriptors this process has of it.
    fn descriptors(&self) -> usize {
        let ends = format!("/memfd:{} (deleted)", self.name);
        let links = std::fs::read_dir("/proc/self/fd").unwrap();
        let link =
            |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_link(entry.ok()?.path()).ok();
        links.filter_map(link).filter(|link| link.as_os_str() == &*ends).count()
    }
}

impl Rig {
    fn new() -> Self {
        Self::with(1, PATIENCE)
    }

    fn with(pairs: u16, patience: Duration) -> Self {
        Self::on(Attachment::new(pairs, 0, None, None).unwrap(), patience)
    }

    /// A connection of a port that is there.
    fn on(attachment: Arc<Attachment>, patience: Duration) -> Self {
        let (near, far) = UnixStream::pair().unwrap();
        let theirs = attachment.clone();
        let run = move || Conversation::new(near, theirs, patience)?.run();
        let raw = far.try_clone().unwrap();
        raw.set_read_timeout(Some(PATIENCE)).unwrap();
        let frontend = Frontend::from_stream(far, 256);
        Self { attachment, frontend, raw, thread: std::thread::spawn(run), memory: Memory::new() }
    }

    /// Agrees on everything but the status, and waits for an answer to every message from now on.
    fn agreed(pairs: u16, features: Features, protocol: Protocol) -> Self {
        Self::with(pairs, PATIENCE).agree(features, protocol)
    }

    fn agree(mut self, features: Features, protocol: Protocol) -> Self {
        let rig = &mut self;
        rig.frontend.set_owner().unwrap();
        let offered = Features::from_bits_retain(rig.frontend.get_features().unwrap());
        assert!(offered.contains(features));
        rig.frontend.get_protocol_features().unwrap();
        rig.frontend.set_protocol_features(protocol | Protocol::REPLY_ACK | Protocol::MQ).unwrap();
        let features = features | Features::VERSION_1 | Features::PROTOCOL_FEATURES;
        rig.frontend.set_features(features.bits()).unwrap();
        rig.frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
        self
    }

    /// A driver with split rings and memory.
    fn driver() -> Self {
        let rig = Self::agreed(1, Features::empty(), Protocol::empty());
        rig.frontend.set_mem_table(&[rig.memory.region()]).unwrap();
        rig
    }

    /// Says everything about a ring but that it is enabled.
    fn describe(&self, index: usize) {
        self.describe_at(index, 0);
    }

    fn describe_at(&self, index: usize, base: u16) {
        self.frontend.set_vring_num(index, 256).unwrap();
        self.frontend.set_vring_base(index, base).unwrap();
        self.frontend.set_vring_addr(index, &addresses(index)).unwrap();
        let event = event();
        self.frontend.set_vring_call(index, &event).unwrap();
        self.frontend.set_vring_kick(index, &event).unwrap();
    }

    fn start(&mut self, index: usize) {
        self.describe(index);
        self.frontend.set_vring_enable(index, true).unwrap();
    }

    fn is_running(&self, index: usize) -> bool {
        matches!(self.attachment.look().slots[index], SlotState::Running { .. })
    }

    /// Sends a message as bytes.
    fn send(&mut self, request: FrontendReq, body: &[u8]) {
        self.send_with(request as u32, 1, body);
    }

    fn send_with(&mut self, request: u32, flags: u32, body: &[u8]) {
        let words = [request, flags, body.len() as u32].map(u32::to_ne_bytes).concat();
        self.raw.write_all(&[&words[..], body].concat()).unwrap();
    }

    /// Sends a message with files.
    fn send_files(&self, request: FrontendReq, body: &[u8], files: &[BorrowedFd<'_>]) {
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(40))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(files)));
        let header = [request as u32, 1, body.len() as u32].map(u32::to_ne_bytes).concat();
        let message = [IoSlice::new(&header), IoSlice::new(body)];
        rustix::net::sendmsg(&self.raw, &message, &mut control, SendFlags::empty()).unwrap();
    }

    /// Sends a message as bytes; returns the number that answers it.
    fn ask(&mut self, request: FrontendReq, flags: u32, body: &[u8]) -> u64 {
        self.send_with(request as u32, flags, body);
        let mut reply = [0; 20];
        self.raw.read_exact(&mut reply).unwrap();
        assert_eq!(reply[..12], [request as u32, 5, 8].map(u32::to_ne_bytes).concat()[..]);
        u64::from_ne_bytes(reply[12..].try_into().unwrap())
    }

    /// What ended the conversation, in words.
    fn trouble(self) -> String {
        self.thread.join().unwrap().unwrap_err().chain()
    }

    /// Closes the connection and waits for the session to notice.
    fn part(self) -> (Arc<Attachment>, Memory) {
        drop((self.frontend, self.raw));
        assert_eq!(self.thread.join().unwrap().unwrap(), End::Closed { heard: true });
        (self.attachment, self.memory)
    }
}

fn region_of(guest: u64, bytes: u64, file: i32) -> Region {
    Region {
        guest_phys_addr: guest,
        memory_size: bytes,
        userspace_addr: USER + guest,
        mmap_offset: guest,
        mmap_handle: file,
    }
}

fn addresses(index: usize) -> VringConfigData {
    let at = USER + index as u64 * 0x10000;
    VringConfigData {
        queue_max_size: 256,
        queue_size: 256,
        flags: 0,
        desc_table_addr: at,
        used_ring_addr: at + 0x4000,
        avail_ring_addr: at + 0x2000,
        log_addr: None,
    }
}

/// Waits until `check` likes what the attachment shows.
#[track_caller]
fn until(attachment: &Attachment, what: &str, check: impl Fn(&Attachment) -> bool) {
    let start = std::time::Instant::now();
    while !check(attachment) {
        let left = PATIENCE
            .checked_sub(start.elapsed())
            .unwrap_or_else(|| panic!("waited in vain until {what}: {:?}", attachment.look()));
        let mut fds = [PollFd::from_borrowed_fd(attachment.news(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::try_from(left).unwrap())).unwrap();
        attachment.heard_news();
    }
}

/// How many file descriptors this process has of an eventfd; the kernel numbers them (proc(5), `fdinfo`).
fn descriptors_of(event: &EventFd) -> usize {
    let id =
        |text: String| text.lines().find(|line| line.starts_with("eventfd-id")).map(str::to_owned);
    let of = |path: String| std::fs::read_to_string(path).ok().and_then(id);
    let wanted = of(format!("/proc/self/fdinfo/{}", event.as_raw_fd())).unwrap();
    let all = std::fs::read_dir("/proc/self/fdinfo").unwrap();
    let is_it = |entry: &std::fs::DirEntry| {
        of(entry.path().display().to_string()).as_ref() == Some(&wanted)
    };
    all.filter(|entry| entry.as_ref().is_ok_and(is_it)).count()
}

fn event() -> EventFd {
    EventFd::new(libc::EFD_CLOEXEC).unwrap()
}
