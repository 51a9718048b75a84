//! Vectored writes of parts that may lie in a guest's memory, of which no `&[u8]` can be made.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use vhost::GuestSlice;

/// A part of a vectored write: an address and a length, laid out as `iovec`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Part<'a> {
    iovec: libc::iovec,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Part<'a> {
    /// Memory that no one else writes.
    pub(crate) fn private(bytes: &'a [u8]) -> Self {
        let iovec =
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        Self { iovec, bytes: PhantomData }
    }

    /// A guest's memory: the kernel copies what it finds there.
    pub(crate) fn guest(slice: GuestSlice<'a>) -> Self {
        let iovec = libc::iovec { iov_base: slice.as_ptr().as_ptr().cast(), iov_len: slice.len() };
        Self { iovec, bytes: PhantomData }
    }
}

/// Writes the parts as one.
pub(crate) fn write(file: impl AsFd, parts: &[Part<'_>]) -> io::Result<usize> {
    let (fd, count) = (file.as_fd().as_raw_fd(), parts.len() as libc::c_int);
    // SAFETY: each part is memory that its borrow keeps mapped; the kernel only reads it (a page that is gone is an error, no signal).
    let written = unsafe { libc::writev(fd, parts.as_ptr().cast(), count) };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}
