//! A stream socket to a program that answers, read piece by piece with a deadline.

use anyhow::{Context, Result, bail, ensure};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// This end of it.
pub struct Conversation {
    stream: UnixStream,
    /// Bytes that have arrived and were not taken yet.
    bytes: Vec<u8>,
}

impl Conversation {
    /// Begins one.
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, bytes: Vec::new() }
    }

    /// Says something.
    pub fn say(&mut self, text: &str) -> Result<()> {
        self.stream.write_all(text.as_bytes()).context("the other end takes nothing")
    }

    /// Takes everything up to and including `end`.
    pub fn take_until(&mut self, end: &str, deadline: Instant) -> Result<String> {
        let mut seen = 0;
        loop {
            let found =
                self.bytes[seen..].windows(end.len()).position(|part| part == end.as_bytes());
            if let Some(position) = found {
                return self.take(seen + position + end.len(), deadline);
            }
            seen = (self.bytes.len() + 1).saturating_sub(end.len());
            self.receive(deadline)?;
        }
    }

    /// Takes so many bytes.
    pub fn take(&mut self, length: usize, deadline: Instant) -> Result<String> {
        while self.bytes.len() < length {
            self.receive(deadline)?;
        }
        let taken: Vec<u8> = self.bytes.drain(..length).collect();
        Ok(String::from_utf8_lossy(&taken).into_owned())
    }

    fn receive(&mut self, deadline: Instant) -> Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        ensure!(!left.is_zero(), "no answer in time");
        self.stream.set_read_timeout(Some(left))?;
        let mut chunk = [0; 65_536];
        match self.stream.read(&mut chunk) {
            Ok(0) => bail!("the other end hung up"),
            Ok(length) => self.bytes.extend_from_slice(&chunk[..length]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error).context("reading the answer failed"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_awaited_may_come_in_any_pieces_and_the_rest_stays() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let writer = std::thread::spawn(move || {
            b"one\ntest> two".iter().for_each(|byte| there.write_all(&[*byte]).unwrap());
        });
        let (mut conversation, soon) =
            (Conversation::new(here), Instant::now() + Duration::from_secs(10));
        assert_eq!(conversation.take_until("test> ", soon).unwrap(), "one\ntest> ");
        assert_eq!(conversation.take(2, soon).unwrap(), "tw");
        writer.join().unwrap();
        assert!(conversation.take_until("test> ", soon).is_err(), "hung up");
    }

    #[test]
    fn a_deadline_that_has_passed_is_an_error() {
        let (here, _there) = UnixStream::pair().unwrap();
        let error = Conversation::new(here).take(1, Instant::now()).unwrap_err();
        assert_eq!(error.to_string(), "no answer in time");
    }
}
