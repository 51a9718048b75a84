//! How do host and guest talk?
//!
//! Over a virtio serial port of the guest, a Unix stream socket here. One request at a time: a line `<number> <seconds> <command>`.
//! Its answer: a line `<number> <status> <length>` and so many bytes of output (`init.sh` is the other end). The guest ends
//! commands that last longer than their seconds; a guest that does not even answer then has failed.

use crate::conversation::Conversation;
use anyhow::{Context, Result, ensure};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// What the guest may take beyond a command's seconds until it answers. Chosen: far above what a loaded machine needs.
const SLACK: Duration = Duration::from_secs(30);

/// Longest output that is accepted. Chosen: a test prints far less; a broken guest must not fill the host's memory.
const MAX_OUTPUT: usize = 16 << 20;

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Exit status as a shell gives it; 137 when it lasted too long.
    pub status: i32,
    /// Standard output and standard error.
    pub output: String,
}

/// The host's end.
pub struct Channel {
    conversation: Conversation,
    requests: u64,
}

impl Channel {
    /// Waits until the guest says that it is ready; returns what it said.
    pub fn open(stream: UnixStream, deadline: Instant) -> Result<(Self, String)> {
        let mut channel = Self { conversation: Conversation::new(stream), requests: 0 };
        let hello = channel.answer(deadline)?;
        Ok((channel, hello.output))
    }

    /// Runs one command for at most so long.
    pub fn ask(&mut self, command: &str, limit: Duration) -> Result<Said> {
        self.send(command, limit)?;
        self.answer(Instant::now() + limit + SLACK)
    }

    /// The request alone.
    pub(super) fn send(&mut self, command: &str, limit: Duration) -> Result<()> {
        ensure!(!command.contains('\n'), "a command for a guest is one line");
        self.requests += 1;
        let seconds = limit.as_secs().max(1);
        self.conversation.say(&format!("{} {seconds} {command}\n", self.requests))
    }

    fn answer(&mut self, deadline: Instant) -> Result<Said> {
        let line = self.conversation.take_until("\n", deadline)?;
        let (status, length) = head(&line, self.requests)?;
        Ok(Said { status, output: self.conversation.take(length, deadline)? })
    }
}

/// Status and length from an answer's first line, which must be that of request `number`.
fn head(line: &str, number: u64) -> Result<(i32, usize)> {
    let strange = || format!("the guest's answer to request {number} begins with {line:?}");
    let mut words = line.split_whitespace();
    let mut next = || words.next().with_context(strange);
    let (answered, status, length) = (next()?, next()?, next()?);
    ensure!(answered.parse() == Ok(number), strange());
    let length = length.parse().with_context(strange)?;
    ensure!(length <= MAX_OUTPUT, "{length} bytes of output; {MAX_OUTPUT} are accepted");
    Ok((status.parse().with_context(strange)?, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn an_output_may_look_like_an_answer() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let guest = std::thread::spawn(move || {
            there.write_all(b"0 0 6\n6.1.0\n").unwrap();
            let mut line = String::new();
            BufReader::new(there.try_clone().unwrap()).read_line(&mut line).unwrap();
            there.write_all(b"1 3 9\n1 0 2\nxyz").unwrap();
            line
        });
        let (mut channel, hello) = Channel::open(here, soon()).unwrap();
        assert_eq!(hello, "6.1.0\n");
        let said = channel.ask("echo a  'b'", Duration::from_secs(7)).unwrap();
        assert_eq!(said, Said { status: 3, output: "1 0 2\nxyz".into() });
        assert_eq!(guest.join().unwrap(), "1 7 echo a  'b'\n");
    }

    #[test]
    fn a_guest_that_hangs_up_or_answers_something_else_is_an_error() {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(b"0 0 0\n7 0 0\n").unwrap();
        let (mut channel, _) = Channel::open(here, soon()).unwrap();
        let error = channel.ask("true", Duration::from_secs(1)).unwrap_err();
        assert!(error.to_string().contains("answer to request 1 begins with \"7 0 0"), "{error}");
        drop(there);
        assert!(channel.ask("true", Duration::from_secs(1)).is_err());
    }
}
