//! The older way to have the kernel signal an eventfd: asynchronous I/O that is complete when it was submitted (io_submit(2), `IOCB_FLAG_RESFD`).
//!
//! For machines on which io_uring is not allowed. The operation writes nothing to `/dev/null`. Completions are taken by moving the head of the ring
//! that the kernel maps at the context's address, as libaio does; there is room for at least two.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

const PWRITE: u16 = 1;
const RESFD: u32 = 1;

/// `struct iocb`, little endian.
#[repr(C)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event: u32,
}

const _: () = assert!(size_of::<Iocb>() == 64 && cfg!(target_endian = "little"));

/// The beginning of what is at a context's address (`struct aio_ring`): `id` 0, `nr` 4, `head` 8, `tail` 12, `magic` 16.
const HEAD: usize = 8;
const TAIL: usize = 12;
const MAGIC: usize = 16;
const THE_MAGIC: u32 = 0xa10a_10a1;

/// A context for one eventfd.
pub(crate) struct Aio {
    context: libc::c_ulong,
    nothing: OwnedFd,
    event: OwnedFd,
}

impl Aio {
    /// `event` must be an eventfd.
    ///
    /// # Errors
    /// The kernel has none, or `fs.aio-max-nr` is used up.
    pub(crate) fn new(event: OwnedFd) -> io::Result<Self> {
        let nothing = std::fs::OpenOptions::new().write(true).open("/dev/null")?.into();
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word.
        if unsafe { libc::syscall(libc::SYS_io_setup, 1, &raw mut context) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let aio = Self { context, nothing, event };
        if aio.word(MAGIC).load(Acquire) != THE_MAGIC {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(aio)
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        let start = std::ptr::with_exposed_provenance_mut::<u8>(self.context as usize);
        // SAFETY: the kernel mapped a page or more there until `io_destroy`, and its first words are those named above.
        unsafe { AtomicU32::from_ptr(start.wrapping_add(offset).cast()) }
    }

    /// Adds 1 to the eventfd.
    pub(crate) fn signal(&self) {
        let mut request = Iocb {
            data: 0,
            key: 0,
            rw_flags: 0,
            opcode: PWRITE,
            priority: 0,
            file: self.nothing.as_raw_fd() as u32,
            buffer: self.word(HEAD).as_ptr().expose_provenance() as u64,
            bytes: 0,
            offset: 0,
            reserved: 0,
            flags: RESFD,
            event: self.event.as_raw_fd() as u32,
        };
        let mut list = [&raw mut request];
        // Refused only for want of memory for one request, which the kernel does not refuse.
        // SAFETY: one request, whose buffer has no bytes; it is complete when the call returns.
        let _ = unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1, list.as_mut_ptr()) };
        self.word(HEAD).store(self.word(TAIL).load(Acquire), Release);
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and nothing of it is used after this.
        let destroyed = unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
        debug_assert_eq!(destroyed, 0, "a context of ours can be destroyed");
    }
}
