//! A controller's end of a connection, by OpenFlow 1.3.

use openflow::{Header, Hello, Message, Version, VersionSet, next_frame};
use std::io::{Read, Write};
use testbed::unbroken;

/// The bytes of a message.
pub fn encode(message: &Message, xid: u32) -> Vec<u8> {
    message.encode(Version::V1_3, xid).unwrap()
}

/// The controller's end, when hellos are exchanged.
pub struct Speaker<S> {
    /// The connection.
    pub stream: S,
    bytes: Vec<u8>,
}

impl<S: Read + Write> Speaker<S> {
    /// Says hello and waits for the switch's.
    pub fn greet(stream: S) -> Self {
        let mut speaker = Self { stream, bytes: Vec::new() };
        let versions = Some(VersionSet::of(&[Version::V1_3]));
        speaker.send(&Message::Hello(Hello { versions }));
        speaker.until(|frame| frame[1] == 0);
        speaker
    }

    /// Sends a message under transaction 1.
    pub fn send(&mut self, message: &Message) {
        self.stream.write_all(&encode(message, 1)).unwrap();
    }

    /// Sends a request, answers echo requests meanwhile, and returns the next message of the request's transaction.
    pub fn ask(&mut self, request: &Message) -> Message {
        self.send(request);
        self.next(|header, _| header.xid == 1)
    }

    /// The next message that is wanted; echo requests are answered meanwhile, all others passed over.
    pub fn next(&mut self, mut is_it: impl FnMut(&Header, &Message) -> bool) -> Message {
        loop {
            let mut found = None;
            self.until(|frame| {
                found = Message::decode(frame).ok();
                found.is_some()
            });
            let (header, message) = found.expect("a message was awaited");
            match message {
                Message::EchoRequest(data) => {
                    let reply = encode(&Message::EchoReply(data), header.xid);
                    self.stream.write_all(&reply).unwrap();
                }
                message if is_it(&header, &message) => return message,
                _ => {}
            }
        }
    }

    /// Reads messages until one is what is waited for.
    pub fn until(&mut self, mut is_it: impl FnMut(&[u8]) -> bool) {
        loop {
            let mut at = 0;
            while let Some(frame) = next_frame(&self.bytes[at..]).unwrap() {
                at += frame.len();
                if is_it(frame) {
                    self.bytes.drain(..at);
                    return;
                }
            }
            self.bytes.drain(..at);
            let mut chunk = [0; 65_536];
            let count = unbroken(|| self.stream.read(&mut chunk)).expect("the switch answers");
            assert!(count > 0, "the switch hung up");
            self.bytes.extend_from_slice(&chunk[..count]);
        }
    }
}
