//! The private copy of a frame's first bytes, which is all that is parsed and edited.
//!
//! The rest of the frame (the *body*) stays where it came from until tx copies it once. Headers are pushed into the
//! room in front, so an edit moves at most the bytes before it, never the body.

/// Bytes free before the frame when it arrives: room for pushed tags, labels, I-TAGs and tunnel headers.
pub const HEADROOM: usize = 128;

/// Most bytes of a frame that are copied to private memory at rx (design.md §2).
pub const HEAD_MAX: usize = 256;

/// A push needed more room than [`HEADROOM`] leaves, or an edit reached past the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

/// Private header bytes: `bytes[start..end]` is the frame's beginning.
///
/// No larger than its content, so that what else belongs to a frame finds room on the cache line of `start` and `end`; whoever keeps
/// heads aligns them.
#[derive(Clone)]
#[repr(C, align(4))]
pub struct Head {
    bytes: [u8; HEADROOM + HEAD_MAX],
    start: u16,
    end: u16,
}

impl Default for Head {
    fn default() -> Self {
        Self { bytes: [0; HEADROOM + HEAD_MAX], start: HEADROOM as u16, end: HEADROOM as u16 }
    }
}

impl Head {
    /// The area that rx fills; call [`Head::set_len`] afterwards.
    #[inline]
    pub fn area(&mut self) -> &mut [u8; HEAD_MAX] {
        let (_, area) =
            self.bytes.split_last_chunk_mut().expect("HEAD_MAX bytes lie after HEADROOM");
        area
    }

    /// Declares the first `len` bytes of [`Head::area`] to be the frame's beginning.
    ///
    /// # Panics
    /// When `len` exceeds [`HEAD_MAX`]: a bug of the port.
    #[inline]
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= HEAD_MAX, "head of {len} bytes");
        self.start = HEADROOM as u16;
        self.end = (HEADROOM + len) as u16;
    }

    /// A head holding a copy of `frame`'s first [`HEAD_MAX`] bytes.
    pub fn copy_of(frame: &[u8]) -> Self {
        let mut head = Self::default();
        let len = frame.len().min(HEAD_MAX);
        head.area()[..len].copy_from_slice(&frame[..len]);
        head.set_len(len);
        head
    }

    /// Copies only the bytes in use from `other`: what a copy-on-write needs, not all 384.
    #[inline]
    pub fn copy_from(&mut self, other: &Head) {
        let used = other.start as usize..other.end as usize;
        self.bytes[used.clone()].copy_from_slice(&other.bytes[used]);
        (self.start, self.end) = (other.start, other.end);
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start as usize..self.end as usize]
    }

    /// The bytes, for edits in place.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start as usize..self.end as usize]
    }

    /// Opens a gap of `count` bytes at offset `at` by moving the bytes before it forwards; the gap's content is undefined.
    ///
    /// # Errors
    /// [`NoRoom`] when the headroom is used up or `at` lies past the head; nothing changed then.
    #[inline]
    pub fn open(&mut self, at: usize, count: usize) -> Result<&mut [u8], NoRoom> {
        let start = self.start as usize;
        if count > start || at > self.end as usize - start {
            return Err(NoRoom);
        }
        self.bytes.copy_within(start..start + at, start - count);
        self.start -= count as u16;
        let gap = start - count + at;
        Ok(&mut self.bytes[gap..gap + count])
    }

    /// Removes `count` bytes at offset `at` by moving the bytes before them backwards.
    ///
    /// # Errors
    /// [`NoRoom`] when they do not lie inside the head; nothing changed then.
    #[inline]
    pub fn close(&mut self, at: usize, count: usize) -> Result<(), NoRoom> {
        let start = self.start as usize;
        if at + count > self.end as usize - start {
            return Err(NoRoom);
        }
        self.bytes.copy_within(start..start + at, start + count);
        self.start += count as u16;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_then_close_gives_the_same_bytes() {
        let frame: Vec<u8> = (0..100).collect();
        let mut head = Head::copy_of(&frame);
        head.open(12, 4).unwrap().copy_from_slice(&[0x81, 0, 0, 7]);
        assert_eq!(
            &head.bytes()[..18],
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x81, 0, 0, 7, 12, 13]
        );
        head.close(12, 4).unwrap();
        assert_eq!(head.bytes(), frame);
    }

    #[test]
    fn edits_outside_the_head_are_refused() {
        let mut head = Head::copy_of(&[0; 20]);
        assert_eq!(head.close(18, 4), Err(NoRoom));
        assert_eq!(head.open(21, 4).err(), Some(NoRoom));
        assert_eq!(head.open(0, HEADROOM + 1).err(), Some(NoRoom));
    }
}
