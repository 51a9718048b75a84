//! What passes over a connection while a program runs in a guest, both ways: pieces, each with a head of five bytes.
//!
//! Head: `kind` 0, `len` 1..5 in network order; `len` bytes follow. An empty piece of [`INPUT`] or [`OUTPUT`] ends that stream.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The protocol that the connection is upgraded to.
pub const PROTOCOL: &str = "suiro-exec";
/// The protocol of a connection by which a node lets its controller ask: HTTP again, the other way round.
pub const STREAM: &str = "suiro-stream";
/// To the program: its standard input.
pub const INPUT: u8 = 0;
/// From the program: its standard output.
pub const OUTPUT: u8 = 1;
/// From the program: its standard error.
pub const ERRORS: u8 = 2;
/// The last piece: one byte, the status that it ended with; of one that a signal ended 128 and the signal.
pub const END: u8 = 3;
/// To the program: its terminal has another size now, as [`Window`] writes it.
pub const RESIZED: u8 = 4;
/// Bytes of a head.
pub const HEAD: usize = 5;
/// Most bytes of a piece.
pub const PIECE_MAX: usize = 64 << 10;

/// What to run in a guest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecRequest {
    /// Program and arguments.
    pub command: Vec<String>,
    /// The program's input and output are a terminal of this size; none: pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<Window>,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Lines.
    pub rows: u16,
    /// Characters of a line.
    pub columns: u16,
}

impl Window {
    /// As a piece of [`RESIZED`] has it: both in network order.
    pub fn piece(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.rows.to_be_bytes(), self.columns.to_be_bytes());
        [a, b, c, d]
    }

    /// What such a piece says.
    pub fn read(piece: &[u8]) -> Option<Self> {
        let [a, b, c, d] = *piece else { return None };
        Some(Self { rows: u16::from_be_bytes([a, b]), columns: u16::from_be_bytes([c, d]) })
    }
}

/// The head of a piece.
pub fn head(kind: u8, len: usize) -> [u8; HEAD] {
    let [a, b, c, d] = (len as u32).to_be_bytes();
    [kind, a, b, c, d]
}

/// Kind and length that a head says; none of a length that no piece has.
pub fn read_head([kind, a, b, c, d]: [u8; HEAD]) -> Option<(u8, usize)> {
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    (len <= PIECE_MAX).then_some((kind, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_is_written_and_a_piece_has_a_bound() {
        for len in [0, 1, PIECE_MAX] {
            assert_eq!(read_head(head(OUTPUT, len)), Some((OUTPUT, len)));
        }
        assert_eq!(read_head(head(INPUT, PIECE_MAX + 1)), None);
        assert_eq!(read_head([0xff; HEAD]), None);
    }

    #[test]
    fn a_size_is_read_as_it_is_written() {
        let window = Window { rows: 50, columns: 300 };
        assert_eq!(Window::read(&window.piece()), Some(window));
        assert_eq!(Window::read(&[0; 3]), None);
    }
}
