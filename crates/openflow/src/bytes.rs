//! Cursors over big-endian bytes: [`Reader`] never reads past its end, [`Writer`] patches lengths when they are known.

use crate::{ErrorCode, Fault};

/// Takes values off the front of a slice.
///
/// Each reader knows which error a missing byte means, because that depends on the structure being read: a short
/// action is `OFPBAC_BAD_LEN`, a short message `OFPBRC_BAD_LEN`.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    short: ErrorCode,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], short: ErrorCode) -> Self {
        Self { rest: bytes, short }
    }

    /// A reader of the next `len` bytes, where missing ones mean `short`.
    pub(crate) fn part(&mut self, len: usize, short: ErrorCode) -> Result<Reader<'a>, Fault> {
        Ok(Reader::new(self.take(len)?, short))
    }

    /// A reader of everything left, where missing bytes mean `short`.
    pub(crate) fn all(&mut self, short: ErrorCode) -> Reader<'a> {
        Reader::new(std::mem::take(&mut self.rest), short)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    /// The error of this structure's length.
    pub(crate) fn bad_len(&self, what: &'static str) -> Fault {
        Fault::new(self.short, what)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (head, rest) =
            self.rest.split_at_checked(len).ok_or(Fault::new(self.short, "ends too early"))?;
        self.rest = rest;
        Ok(head)
    }

    /// Checks that `len` bytes are left, before any of them is judged: what is too short has no contents to blame.
    pub(crate) fn need(&self, len: usize) -> Result<(), Fault> {
        if self.len() < len { Err(self.bad_len("ends too early")) } else { Ok(()) }
    }

    /// Everything left, as owned bytes.
    pub(crate) fn remaining(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rest).to_vec()
    }

    pub(crate) fn skip(&mut self, len: usize) -> Result<(), Fault> {
        self.take(len).map(drop)
    }

    /// A look at a 16-bit value `at` bytes ahead.
    pub(crate) fn peek_u16(&self, at: usize) -> Result<u16, Fault> {
        let mut ahead = self.clone();
        ahead.skip(at)?;
        ahead.u16()
    }

    /// An unsigned integer of `len` ≤ 16 bytes.
    pub(crate) fn uint(&mut self, len: usize) -> Result<u128, Fault> {
        Ok(self.take(len)?.iter().fold(0, |value, b| value << 8 | u128::from(*b)))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (head, rest) =
            self.rest.split_first_chunk().ok_or(Fault::new(self.short, "ends too early"))?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Fault> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_be_bytes)
    }
}

/// Appends big-endian values.
#[derive(Default, Debug)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_be_bytes());
    }

    /// The low `len` ≤ 16 bytes of `value`.
    pub(crate) fn uint(&mut self, value: u128, len: usize) {
        self.0.extend(&value.to_be_bytes()[16 - len..]);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    pub(crate) fn zeros(&mut self, len: usize) {
        self.0.resize(self.0.len() + len, 0);
    }

    /// `bytes` in a field of `len` bytes, cut or padded with zeros.
    pub(crate) fn fixed(&mut self, bytes: &[u8], len: usize) {
        let kept = bytes.len().min(len);
        self.bytes(&bytes[..kept]);
        self.zeros(len - kept);
    }

    /// Pads with zeros until the bytes since `start` are a multiple of 8.
    pub(crate) fn pad8(&mut self, start: usize) {
        let len = self.0.len() - start;
        self.zeros(len.next_multiple_of(8) - len);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes at `at` the count of bytes from `start` to the end. A count past 16 bits is cut: the message that
    /// contains it is longer still, and refused as a whole.
    pub(crate) fn patch_len(&mut self, at: usize, start: usize) {
        let len = (self.0.len() - start) as u16;
        self.0[at..at + 2].copy_from_slice(&len.to_be_bytes());
    }
}
