//! Bytes from a peer, cut into messages where they lie.

use crate::agent::end::End;
use crate::agent::tap::Tap;
use openflow::{BadFrame, next_frame};
use std::ops::Range;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes asked of the kernel at a time. Chosen: a turn's worth of flow-mods in one system call.
const READ: usize = 64 * 1024;

/// What was read and is not yet consumed. It holds less than one message and [`READ`] bytes, because reading goes on only when no
/// whole message is left.
pub struct Input<R> {
    read: R,
    bytes: Vec<u8>,
    /// Everything before is consumed.
    at: usize,
    /// Shows messages to captures.
    tap: Option<Arc<Tap>>,
}

impl<R: AsyncRead + Unpin> Input<R> {
    /// An empty input.
    pub fn new(read: R) -> Self {
        Self { read, bytes: Vec::new(), at: 0, tap: None }
    }

    /// The same, of a session that captures may hear.
    pub fn tapped(read: R, tap: Arc<Tap>) -> Self {
        Self { tap: Some(tap), ..Self::new(read) }
    }

    /// What captures hear the session by.
    pub fn tap(&self) -> Option<&Tap> {
        self.tap.as_deref()
    }

    /// Consumes the next whole message; its bytes stay at [`Input::frame`] until [`Input::fill`].
    ///
    /// # Errors
    /// The stream cannot be cut any more.
    pub fn next_frame(&mut self) -> Result<Option<Range<usize>>, BadFrame> {
        let found = next_frame(self.rest())?.map(|frame| self.at..self.at + frame.len());
        if let Some(frame) = &found {
            self.at = frame.end;
            self.tap().inspect(|tap| tap.came(self.frame(frame)));
        }
        Ok(found)
    }

    /// A message found earlier.
    pub fn frame(&self, frame: &Range<usize>) -> &[u8] {
        &self.bytes[frame.clone()]
    }

    /// What is not consumed.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Forgets what is consumed and waits for more. Cancelling loses nothing.
    ///
    /// # Errors
    /// The peer closed the connection, or it broke.
    pub async fn fill(&mut self) -> Result<(), End> {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.reserve(READ);
        match self.read.read_buf(&mut self.bytes).await? {
            0 => Err(End::Closed),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_cut_wherever_reads_end() {
        let message = |xid: u8| [4, 2, 0, 8, 0, 0, 0, xid];
        let (first, second) = (message(1), message(2));
        let (a, b) = second.split_at(3);
        let mut input = Input::new([&first[..], a].concat().chain_with(b));
        input.fill().await.unwrap();
        let frame = input.next_frame().unwrap().unwrap();
        assert_eq!(input.frame(&frame), first);
        assert!(input.next_frame().unwrap().is_none());
        input.fill().await.unwrap();
        let frame = input.next_frame().unwrap().unwrap();
        assert_eq!(input.frame(&frame), second);
        assert!(matches!(input.fill().await, Err(End::Closed)));
    }

    trait ChainWith {
        fn chain_with(self, rest: &[u8]) -> impl AsyncRead + Unpin;
    }

    impl ChainWith for Vec<u8> {
        fn chain_with(self, rest: &[u8]) -> impl AsyncRead + Unpin {
            io_of(self).chain(io_of(rest.to_vec()))
        }
    }

    fn io_of(bytes: Vec<u8>) -> std::io::Cursor<Vec<u8>> {
        std::io::Cursor::new(bytes)
    }
}
