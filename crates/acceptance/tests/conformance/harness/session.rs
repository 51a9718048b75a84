//! A small OpenFlow controller: one connection that waits for answers and barriers, never for time.

use super::guest::PATIENCE;
use openflow::{
    ErrorCode, ErrorKind, ErrorMsg, HEADER_LEN, Hello, Message, MultipartReply, MultipartRequest,
    Part, Version, VersionSet, next_frame,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use testbed::unbroken;

/// What a switch answered to a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// No error until the barrier: it was done.
    Done,
    /// The error of this code.
    Refused(ErrorCode),
}

/// A connection to a switch's management socket.
pub struct Session {
    stream: UnixStream,
    version: Version,
    buffer: Vec<u8>,
    next_xid: u32,
    /// Messages that came while others were waited for, with their transaction.
    inbox: VecDeque<(u32, Message)>,
}

impl Session {
    /// Connects and agrees on a version.
    pub fn open(socket: &Path, version: Version) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut session =
            Self { stream, version, buffer: Vec::new(), next_xid: 1, inbox: VecDeque::new() };
        session.send(&Message::Hello(Hello { versions: Some(VersionSet::of(&[version])) }));
        session.wait(|message| matches!(message, Message::Hello(_)).then_some(()));
        session
    }

    /// Whether the switch is still there. It hangs up on who leaves its echo requests unanswered for long.
    pub fn is_open(&self) -> bool {
        let mut ends = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        poll(&mut ends, Some(&Timespec::default())).unwrap();
        !ends[0].revents().intersects(PollFlags::HUP | PollFlags::RDHUP)
    }

    /// Sends a message; returns its transaction.
    pub fn send(&mut self, message: &Message) -> u32 {
        let bytes = message.encode(self.version, 0).unwrap();
        self.send_bytes(bytes)
    }

    /// Sends the bytes of a whole message under a transaction of its own, which is returned.
    pub fn send_bytes(&mut self, mut bytes: Vec<u8>) -> u32 {
        let xid = self.next_xid;
        self.next_xid += 1;
        bytes[4..HEADER_LEN].copy_from_slice(&xid.to_be_bytes());
        self.stream.write_all(&bytes).unwrap();
        xid
    }

    /// Sends a message under this transaction.
    pub fn send_as(&mut self, xid: u32, message: &Message) {
        self.stream.write_all(&message.encode(self.version, xid).unwrap()).unwrap();
    }

    /// The next message of this transaction.
    pub fn answer(&mut self, xid: u32) -> Message {
        self.wait_for(|found, message| (found == xid).then(|| message.clone()))
    }

    /// The next message from the switch; echo requests are answered on the way.
    pub fn read(&mut self) -> (u32, Message) {
        loop {
            if let Some(frame) = next_frame(&self.buffer).unwrap() {
                let (header, message) = Message::decode(frame).unwrap();
                self.buffer.drain(..usize::from(header.length));
                match message {
                    Message::EchoRequest(data) => {
                        let reply = Message::EchoReply(data).encode(self.version, header.xid);
                        self.stream.write_all(&reply.unwrap()).unwrap();
                    }
                    message => return (header.xid, message),
                }
            } else {
                let mut chunk = [0; 1 << 14];
                let read = unbroken(|| self.stream.read(&mut chunk));
                match read.unwrap_or_else(|error| panic!("nothing more from the switch: {error}")) {
                    0 => panic!("the switch hung up; inbox: {:?}", self.inbox),
                    count => self.buffer.extend_from_slice(&chunk[..count]),
                }
            }
        }
    }

    /// The first message, come already or still to come, for which `wanted` has something.
    pub fn wait<T>(&mut self, mut wanted: impl FnMut(&Message) -> Option<T>) -> T {
        self.wait_for(|_, message| wanted(message))
    }

    fn wait_for<T>(&mut self, mut wanted: impl FnMut(u32, &Message) -> Option<T>) -> T {
        for (at, (xid, message)) in self.inbox.iter().enumerate() {
            if let Some(found) = wanted(*xid, message) {
                self.inbox.remove(at);
                return found;
            }
        }
        loop {
            let (xid, message) = self.read();
            if let Some(found) = wanted(xid, &message) {
                return found;
            }
            self.inbox.push_back((xid, message));
        }
    }

    /// Takes the messages that have come and for which `wanted` has something.
    pub fn take<T>(&mut self, mut wanted: impl FnMut(&Message) -> Option<T>) -> Vec<T> {
        let mut found = Vec::new();
        self.inbox.retain(|(_, message)| match wanted(message) {
            None => true,
            Some(value) => {
                found.push(value);
                false
            }
        });
        found
    }

    /// The answer to a request.
    pub fn ask(&mut self, request: &Message) -> Message {
        let xid = self.send(request);
        self.wait_for(|found, message| (found == xid).then(|| message.clone()))
    }

    /// Every part of the answer to a multipart request, in order; an error fails the case.
    #[track_caller]
    pub fn ask_parts(&mut self, request: &MultipartRequest) -> Vec<MultipartReply> {
        let xid = self.send(&Message::MultipartRequest(Part::last(request.clone())));
        let mut parts = Vec::new();
        loop {
            let message = self.wait_for(|found, message| (found == xid).then(|| message.clone()));
            let Message::MultipartReply(Part { more, body }) = message else {
                panic!("{request:?} was answered by {message:?}")
            };
            parts.push(body);
            if !more {
                return parts;
            }
        }
    }

    /// Waits until everything before is done.
    pub fn barrier(&mut self) {
        assert_eq!(self.ask(&Message::BarrierRequest), Message::BarrierReply);
    }

    /// What the switch says of a change.
    pub fn try_out(&mut self, change: &Message) -> Answer {
        let bytes = change.encode(self.version, 0).unwrap();
        self.try_bytes(bytes)
    }

    /// What the switch says of a change whose bytes no value has.
    pub fn try_bytes(&mut self, bytes: Vec<u8>) -> Answer {
        let xid = self.send_bytes(bytes);
        self.barrier();
        let of_it = |(found, message): &(u32, Message)| match message {
            Message::Error(error) if *found == xid => Some(error.clone()),
            _ => None,
        };
        let Some(at) = self.inbox.iter().position(|message| of_it(message).is_some()) else {
            return Answer::Done;
        };
        match of_it(&self.inbox.remove(at).unwrap()) {
            Some(ErrorMsg { kind: ErrorKind::Known(code), .. }) => Answer::Refused(code),
            other => panic!("an error that OpenFlow does not define: {other:?}"),
        }
    }

    /// A change that must be taken.
    #[track_caller]
    pub fn accept(&mut self, change: &Message) {
        assert_eq!(self.try_out(change), Answer::Done, "{change:?}");
    }

    /// A change that must be refused with this code.
    #[track_caller]
    pub fn refuse(&mut self, change: &Message, code: ErrorCode) {
        assert_eq!(self.try_out(change), Answer::Refused(code), "{change:?}");
    }

    /// Fails the case if an error waits that nobody asked about.
    #[track_caller]
    pub fn has_no_error(&mut self) {
        let errors = self.take(|message| match message {
            Message::Error(error) => Some(error.clone()),
            _ => None,
        });
        assert!(errors.is_empty(), "errors: {errors:?}");
    }
}
