//! A hostile front-end: any messages in any order with any files, from the first byte or after a sound beginning. Nothing panics, the session ends
//! when the connection does, and of the files that came none stays open.
//!
//! Input: a byte that says how far the sound beginning goes, then messages: request, flags, files (2 bits each, up to 3), length of the body, body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Bytes of the guest's memory, which hold the input itself again and again.
const MEMORY: u64 = 1 << 16;
/// Messages of one session: all fit into the socket's buffer.
const MESSAGES: usize = 64;
/// The socket has room for no more.
const BODY: usize = 255;

fuzz_target!(|input: &[u8]| {
    let files = Files::of(input);
    let before = open_files();
    {
        let (near, far) = UnixStream::pair().expect("a socket pair");
        let mut script = Script(input);
        far.set_nonblocking(true).expect("ours");
        begin(&far, &files, script.byte());
        for _ in 0..MESSAGES {
            if script.0.is_empty() || !send(&far, &files, &mut script) {
                break;
            }
        }
        far.shutdown(Shutdown::Write).expect("connected");
        // What ended it is the front-end's business.
        let _ = vhost::converse(near, 2).expect("files are not scarce");
    }
    assert_eq!(open_files(), before, "a file of the front-end stayed open");
});

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc is mounted").count()
}

struct Files {
    memory: OwnedFd,
    event: OwnedFd,
    pipe: OwnedFd,
}

impl Files {
    fn of(input: &[u8]) -> Self {
        let memory = memfd_create("guest", MemfdFlags::CLOEXEC).expect("a memfd");
        let bytes: Vec<u8> = input.iter().copied().chain([0]).cycle().take(MEMORY as usize).collect();
        rustix::io::write(&memory, &bytes).expect("room in memory");
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
        let (pipe, _) = rustix::pipe::pipe().expect("a pipe");
        Self { memory, event, pipe }
    }

    /// By two bits: none, memory, an event, something that is neither.
    fn chosen(&self, bits: u8) -> Option<BorrowedFd<'_>> {
        match bits & 3 {
            0 => None,
            1 => Some(self.memory.as_fd()),
            2 => Some(self.event.as_fd()),
            _ => Some(self.pipe.as_fd()),
        }
    }
}

struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}

/// One message of the script; false when the socket takes no more.
fn send(far: &UnixStream, files: &Files, script: &mut Script<'_>) -> bool {
    let (request, flags, chosen, len) = (script.byte(), script.byte(), script.byte(), script.byte());
    let body = script.bytes(usize::from(len).min(BODY));
    // Mostly a header that passes: version 1, a known request.
    let flags = if flags < 200 { 1 | u32::from(flags & 8) } else { flags.into() };
    let request = if request < 240 { u32::from(request % 46) } else { request.into() };
    let said = if flags & 0x10 == 0 { body.len() as u32 } else { len.into() };
    let fds: Vec<_> = (0..3).filter_map(|at| files.chosen(chosen >> (2 * at))).collect();
    write(far, [request, flags, said], body, &fds)
}

fn write(far: &UnixStream, header: [u32; 3], body: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
    let header = header.map(u32::to_ne_bytes).concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    rustix::net::sendmsg(far, &[IoSlice::new(&header), IoSlice::new(body)], &mut control, SendFlags::empty()).is_ok()
}

/// The messages of a front-end that starts a pair of rings; the first `count` of them.
fn begin(far: &UnixStream, files: &Files, count: u8) {
    let (memory, event) = ([files.memory.as_fd()], [files.event.as_fd()]);
    let word = |value: u64| value.to_ne_bytes().to_vec();
    let pair = |index: u32, value: u32| [index, value].map(u32::to_ne_bytes).concat();
    let mut messages: Vec<(u32, Vec<u8>, &[BorrowedFd<'_>])> = vec![
        (1, vec![], &[]),
        // VERSION_1, PROTOCOL_FEATURES; by another count also RING_PACKED.
        (2, word(0x1_4000_0000 | u64::from(count >> 7) << 34), &[]),
        // MQ, LOG_SHMFD, RARP, REPLY_ACK, MTU, INFLIGHT_SHMFD, RESET_DEVICE, CONFIGURE_MEM_SLOTS; STATUS by another count.
        (16, word(0xb01f | u64::from(count >> 6 & 1) << 16), &[]),
        (5, [vec![1, 0, 0, 0, 0, 0, 0, 0], word(0), word(MEMORY), word(MEMORY), word(0)].concat(), &memory),
    ];
    for ring in 0..2_u32 {
        let at = MEMORY + u64::from(ring) * 0x4000;
        let addresses = [pair(ring, 0), word(at), word(at + 0x2000), word(at + 0x1000), word(0)].concat();
        messages.push((8, pair(ring, 64), &[]));
        messages.push((9, addresses, &[]));
        messages.push((12, word(ring.into()), &event));
        messages.push((13, word(ring.into()), &event));
        messages.push((18, pair(ring, 1), &[]));
    }
    for (request, body, fds) in messages.into_iter().take(usize::from(count & 0x3f)) {
        write(far, [request, 1, body.len() as u32], &body, fds);
    }
}
