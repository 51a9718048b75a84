//! What the codecs of all versions share: a message's header and length, buffer numbers, and the cutting of long replies.

use crate::bytes::{Reader, Writer};
use crate::error::{EncodeError, ErrorCode, Fault};
use crate::ids::NO_BUFFER;
use crate::version::Version;

/// Begins a message: its header with length 0. Returns where it begins.
pub(crate) fn begin_onto(version: Version, kind: u8, xid: u32, out: &mut Writer) -> usize {
    let start = out.len();
    out.u8(version.wire());
    out.u8(kind);
    out.u16(0);
    out.u32(xid);
    start
}

/// Ends the message that begins at `start`: fills in its length.
pub(crate) fn finish_onto(start: usize, out: &mut Writer) -> Result<(), EncodeError> {
    let len = out.len() - start;
    if len > usize::from(u16::MAX) {
        return Err(EncodeError::TooLong { len });
    }
    out.patch_len(start + 2, start);
    Ok(())
}

/// Begins a message of its own.
pub(crate) fn begin(version: Version, kind: u8, xid: u32) -> Writer {
    let mut out = Writer::default();
    begin_onto(version, kind, xid, &mut out);
    out
}

/// Ends a message of its own.
pub(crate) fn finish(mut out: Writer) -> Result<Vec<u8>, EncodeError> {
    finish_onto(0, &mut out)?;
    Ok(out.0)
}

/// A whole structure from its numbers: `from_wire` knows them, or the answer is `code`.
pub(crate) fn known<N, T>(
    number: N,
    from_wire: impl Fn(N) -> Option<T>,
    code: ErrorCode,
) -> Result<T, Fault> {
    from_wire(number).ok_or(Fault::new(code, "a number that OpenFlow does not define"))
}

pub(crate) fn put_buffer(buffer: Option<u32>, out: &mut Writer) {
    out.u32(buffer.unwrap_or(NO_BUFFER));
}

pub(crate) fn take_buffer(input: &mut Reader<'_>) -> Result<Option<u32>, Fault> {
    input.u32().map(|id| (id != NO_BUFFER).then_some(id))
}

/// Takes structures until nothing is left. Every `take` must consume at least one byte or fail, so this ends.
pub(crate) fn take_list<'a, T>(
    mut input: Reader<'a>,
    mut take: impl FnMut(&mut Reader<'a>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut items = Vec::new();
    while !input.is_empty() {
        items.push(take(&mut input)?);
    }
    Ok(items)
}

/// A reply's encoded entries, one after the other, and where each ends: a reply may be cut there and nowhere else.
#[derive(Default)]
pub(crate) struct Entries {
    pub(crate) out: Writer,
    ends: Vec<usize>,
}

impl Entries {
    /// Entries that `put` writes.
    pub(crate) fn of<T>(items: &[T], put: impl Fn(&T, &mut Writer)) -> Self {
        let mut entries = Self::default();
        for item in items {
            put(item, &mut entries.out);
            entries.ends.push(entries.out.len());
        }
        entries
    }

    /// As few pieces of at most `room` bytes as hold the entries in order, at least one; `None` if an entry is longer.
    pub(crate) fn pieces(&self, room: usize) -> Option<Vec<&[u8]>> {
        let mut pieces = Vec::new();
        let (mut start, mut end) = (0, 0);
        for &next in &self.ends {
            if next - end > room {
                return None;
            }
            if next - start > room {
                pieces.push(&self.out.0[start..end]);
                start = end;
            }
            end = next;
        }
        pieces.push(&self.out.0[start..end]);
        Some(pieces)
    }
}
