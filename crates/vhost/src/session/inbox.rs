//! Waiting for whole messages, so that nobody reads what is not there yet.
//!
//! The protocol crate reads a header and a body with blocking calls, and takes a body that comes in two pieces for a damaged one. So a
//! message is read only once the socket holds all of it: its header is looked at (`MSG_PEEK`), and the bytes that wait are counted
//! (`SIOCINQ`, unix(7)). Readiness is edge-triggered: half a message keeps no thread awake.
//!
//! Its files are looked at, too: when the kernel cannot hand over all of them, the crate would read on for ever.

use super::trouble::Trouble;
use rustix::event::{Timespec, epoll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use vhost_protocol::vhost_user::message::{FrontendReq, MAX_ATTACHED_FD_ENTRIES, MAX_MSG_SIZE};

/// The header before each message: `request` 0..4, `flags` 4..8, `size` 8..12, host byte order ("Message Specification").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) request: FrontendReq,
    flags: u32,
    pub(super) size: usize,
}

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 0b11;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;

impl Header {
    pub(super) const LEN: usize = 12;

    /// Of a request; a reply to a request of ours cannot come, as we make none.
    fn read(bytes: [u8; Self::LEN]) -> Result<Self, Trouble> {
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let (request, flags, size) = (word(0), word(4), word(8) as usize);
        if flags & !NEED_REPLY != VERSION || size > MAX_MSG_SIZE {
            return Err(Trouble::NotVhostUser);
        }
        let request = FrontendReq::try_from(request).map_err(|()| Trouble::Unknown(request))?;
        Ok(Self { request, flags, size })
    }

    /// The header of a reply with `size` bytes to this request.
    pub(super) fn reply(self, size: usize) -> [u8; Self::LEN] {
        let words = [self.request as u32, (self.flags & VERSION_MASK) | REPLY, size as u32];
        let mut bytes = [0; Self::LEN];
        bytes
            .chunks_exact_mut(4)
            .zip(words)
            .for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_ne_bytes()));
        bytes
    }

    /// Whether the front-end waits for an answer, if that was agreed on (`REPLY_ACK`).
    pub(super) fn needs_reply(self) -> bool {
        self.flags & NEED_REPLY != 0
    }
}

/// What ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// The socket holds a whole message with this header.
    Message(Header),
    /// The front-end closed the connection after its last message.
    Closed,
    /// Somebody on our side rang the bell.
    Bell,
}

/// Most files that one call can send (`SCM_MAX_FD`, unix(7)).
const FILES_MAX: usize = 253;

fn count_files(message: RecvAncillaryMessage<'_>) -> usize {
    match message {
        RecvAncillaryMessage::ScmRights(files) => files.count(),
        _ => 0,
    }
}

const SOCKET: u64 = 0;
const BELL: u64 = 1;

/// A connection's receiving side.
pub(super) struct Inbox {
    socket: UnixStream,
    epoll: OwnedFd,
    hung_up: bool,
    /// How long half a message may wait for its rest.
    patience: Duration,
    half_since: Option<Instant>,
}

impl Inbox {
    /// Watches a connection and the bell.
    pub(super) fn new(
        socket: UnixStream,
        bell: BorrowedFd<'_>,
        patience: Duration,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let edges = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(&epoll, &socket, epoll::EventData::new_u64(SOCKET), edges)?;
        epoll::add(&epoll, bell, epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)?;
        Ok(Self { socket, epoll, hung_up: false, patience, half_since: None })
    }

    /// Waits for a message, the end, or the bell.
    pub(super) fn next(&mut self) -> Result<Arrival, Trouble> {
        loop {
            let waiting = rustix::io::ioctl_fionread(&self.socket)
                .map_err(Trouble::system("count what came"))? as usize;
            if let Some(header) = self.whole(waiting)? {
                self.half_since = None;
                return Ok(Arrival::Message(header));
            }
            match (self.hung_up, waiting) {
                (true, 0) => return Ok(Arrival::Closed),
                (true, have) => return Err(Trouble::Half { have }),
                (false, _) => {}
            }
            if self.wait(waiting)? {
                return Ok(Arrival::Bell);
            }
        }
    }

    /// The header of the first message, if all of it is there.
    fn whole(&self, waiting: usize) -> Result<Option<Header>, Trouble> {
        if waiting < Header::LEN {
            return Ok(None);
        }
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let mut bytes = [0; Header::LEN];
        let (got, _) = rustix::net::recv(&self.socket, &mut bytes[..], flags)
            .map_err(Trouble::system("look at a message"))?;
        if got < Header::LEN {
            // Only a header cut in two by a file descriptor does that.
            return Err(Trouble::NotVhostUser);
        }
        let header = Header::read(bytes)?;
        if waiting - Header::LEN < header.size {
            return Ok(None);
        }
        self.check_files(header)?;
        Ok(Some(header))
    }

    /// Whether the files that came with the first message can be taken: this takes and closes them once.
    fn check_files(&self, header: Header) -> Result<(), Trouble> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let mut byte = [0];
        let got = rustix::net::recvmsg(
            &self.socket,
            &mut [IoSliceMut::new(&mut byte)],
            &mut control,
            flags,
        )
        .map_err(Trouble::system("look at a message"))?;
        let files: usize = control.drain().map(count_files).sum();
        if files > MAX_ATTACHED_FD_ENTRIES {
            return Err(Trouble::Message {
                request: header.request,
                why: "more files than any message has",
            });
        }
        if got.flags.contains(ReturnFlags::CTRUNC) {
            let source = io::Error::from_raw_os_error(libc::EMFILE);
            return Err(Trouble::System { step: "take the files of a message", source });
        }
        Ok(())
    }

    /// Waits until something changes; whether the bell rang.
    fn wait(&mut self, waiting: usize) -> Result<bool, Trouble> {
        let limit = self.limit(waiting)?;
        let nothing = epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(SOCKET),
        };
        let mut events = [nothing; 2];
        // Interrupted by a signal: nothing changed, and the caller looks again.
        let count = epoll::wait(&self.epoll, &mut events, limit.as_ref()).unwrap_or(0);
        let mut rang = false;
        for event in &events[..count] {
            let flags = event.flags;
            match event.data.u64() {
                BELL => rang = true,
                _ => {
                    self.hung_up |= flags.intersects(
                        epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR,
                    )
                }
            }
        }
        Ok(rang)
    }

    /// How long to wait: for ever, or for what is left of the patience with half a message.
    fn limit(&mut self, waiting: usize) -> Result<Option<Timespec>, Trouble> {
        if waiting == 0 {
            self.half_since = None;
            return Ok(None);
        }
        let since = *self.half_since.get_or_insert_with(Instant::now);
        let left =
            self.patience.checked_sub(since.elapsed()).ok_or(Trouble::Half { have: waiting })?;
        Ok(Timespec::try_from(left).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    fn inbox(patience: Duration) -> (UnixStream, OwnedFd, Inbox) {
        let (near, far) = UnixStream::pair().unwrap();
        let bell = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
        let inbox = Inbox::new(near, bell.as_fd(), patience).unwrap();
        (far, bell, inbox)
    }

    fn message(request: u32, flags: u32, body: &[u8]) -> Vec<u8> {
        let words = [request, flags, body.len() as u32];
        [words.map(u32::to_ne_bytes).concat(), body.to_vec()].concat()
    }

    #[test]
    fn a_message_is_told_once_all_of_it_is_there() {
        let (mut far, bell, mut inbox) = inbox(Duration::MAX);
        let bytes = message(FrontendReq::SET_VRING_NUM as u32, 9, &[0; 8]);
        far.write_all(&bytes[..15]).unwrap();
        rustix::io::write(&bell, &1_u64.to_ne_bytes()).unwrap();
        assert_eq!(inbox.next().unwrap(), Arrival::Bell);
        far.write_all(&bytes[15..]).unwrap();
        let Arrival::Message(header) = inbox.next().unwrap() else {
            panic!("a whole message waits")
        };
        assert_eq!(
            (header.request, header.size, header.needs_reply()),
            (FrontendReq::SET_VRING_NUM, 8, true)
        );
    }

    #[test]
    fn half_a_message_is_waited_for_as_long_as_patience_lasts() {
        let (mut far, _bell, mut inbox) = inbox(Duration::ZERO);
        far.write_all(&[1, 0, 0]).unwrap();
        assert!(matches!(inbox.next(), Err(Trouble::Half { have: 3 })));
    }

    #[test]
    fn the_last_message_is_heard_before_the_end() {
        let (mut far, _bell, mut inbox) = inbox(Duration::MAX);
        far.write_all(&message(FrontendReq::GET_FEATURES as u32, 1, &[])).unwrap();
        drop(far);
        assert!(matches!(inbox.next(), Ok(Arrival::Message(_))));
        let mut bytes = [0; Header::LEN];
        rustix::net::recv(&inbox.socket, &mut bytes[..], RecvFlags::empty()).unwrap();
        assert!(matches!(inbox.next(), Ok(Arrival::Closed)));
    }

    #[test]
    fn what_is_no_message_is_told_from_one_that_we_do_not_know() {
        for (bytes, known) in [
            (message(1, 0, &[]), false),
            (message(1, 5, &[]), false),
            (message(999, 1, &[]), true),
            (b"GET / HTTP/1.1\r\n\r\n".to_vec(), false),
        ] {
            let (mut far, _bell, mut inbox) = inbox(Duration::MAX);
            far.write_all(&bytes).unwrap();
            match inbox.next() {
                Err(Trouble::Unknown(999)) => assert!(known),
                Err(Trouble::NotVhostUser) => assert!(!known),
                other => panic!("{other:?}"),
            }
        }
    }
}
