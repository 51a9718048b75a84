//! Cutting a large frame into segments.

use crate::checksum::BadOffload;
use crate::{Offload, PartialChecksum};
use std::ops::Range;

/// How a large frame is cut.
#[derive(Clone, Copy, Debug)]
pub struct Segments<'a> {
    headers: &'a [u8],
    count: usize,
}

/// Plans the segmentation of a frame of `total_len` bytes that begins with `head`.
///
/// # Errors
/// [`BadOffload`] when the offload state contradicts the headers.
pub fn plan<'a>(
    head: &'a [u8],
    total_len: usize,
    offload: &Offload,
) -> Result<Segments<'a>, BadOffload> {
    let _ = (total_len, offload, head);
    Err(BadOffload)
}

impl Segments<'_> {
    /// Segments.
    pub fn count(&self) -> usize {
        self.count
    }
    /// Bytes of headers in front of each segment's payload.
    pub fn header_len(&self) -> usize {
        self.headers.len()
    }
    /// The bytes of the whole frame that are segment `index`'s payload.
    pub fn payload(&self, index: usize) -> Range<usize> {
        let _ = index;
        0..0
    }
    /// Writes segment `index`'s headers into the first [`Segments::header_len`] bytes of `out`.
    pub fn write_headers(&self, index: usize, out: &mut [u8]) {
        let _ = (index, out);
    }
    /// The checksum that [`crate::checksum::complete`] must finish in every segment.
    pub fn checksum(&self) -> PartialChecksum {
        PartialChecksum { start: 0, offset: 0 }
    }
}
