//! An io_uring that does nothing but have the kernel signal an eventfd: the cheapest way to do that which cannot wait (Linux 5.4).
//!
//! A completion signals the eventfd registered with the ring, from inside the kernel, where adding to a counter that is full adds nothing
//! and waits for nobody. The operation is `IORING_OP_NOP`, which is complete when it was submitted. Offsets and sizes: io_uring_setup(2).

use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

/// `IORING_REGISTER_EVENTFD`, `IORING_FEAT_SINGLE_MMAP`, `IORING_OFF_SQES`.
const REGISTER_EVENTFD: libc::c_uint = 4;
const SINGLE_MMAP: u32 = 1;
const OFFSET_SQES: u64 = 0x1000_0000;
/// Bytes of a submission (`struct io_uring_sqe`), all zero for `IORING_OP_NOP`, and of a completion.
const SQE: usize = 64;
const CQE: usize = 16;

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    sq: SqOffsets,
    cq: CqOffsets,
}

/// `struct io_sqring_offsets`.
#[repr(C)]
#[derive(Default)]
struct SqOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: u32,
    user_addr: u64,
}

/// `struct io_cqring_offsets`.
#[repr(C)]
#[derive(Default)]
struct CqOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    overflow: u32,
    cqes: u32,
    flags: u32,
    reserved: u32,
    user_addr: u64,
}

const _: () = assert!(size_of::<Params>() == 120);

/// Pages shared with the kernel.
struct Pages {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the pages belong to no thread, and their words are atomics.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    fn map(ring: &OwnedFd, offset: u64, len: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let at = std::ptr::null_mut();
        // SAFETY: a new mapping where the kernel chooses touches no memory that anyone has.
        let start = unsafe { rustix::mm::mmap(at, len, protection, flags, ring, offset) }?;
        let start = NonNull::new(start.cast()).expect("mmap does not map page 0 unless told to");
        Ok(Self { start, len })
    }

    /// # Panics
    /// Outside, or misaligned: the kernel gave the offset.
    fn word(&self, offset: u32) -> &AtomicU32 {
        let offset = offset as usize;
        assert!(offset + 4 <= self.len && offset.is_multiple_of(4), "a word of the ring");
        let word = self.start.as_ptr().wrapping_add(offset).cast();
        // SAFETY: inside the pages and aligned; they stay mapped while `self` is borrowed, and the kernel's own accesses are atomic.
        unsafe { AtomicU32::from_ptr(word) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, whole; borrows of its words end before.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can be unmapped: {unmapped:?}");
    }
}

/// A ring tied to one eventfd, which it holds by itself.
pub(crate) struct Uring {
    ring: OwnedFd,
    words: Pages,
    _submissions: Pages,
    sq_tail: u32,
    cq_head: u32,
    cq_tail: u32,
}

impl Uring {
    /// # Errors
    /// The kernel has or allows no io_uring, or the file is no eventfd.
    pub(crate) fn new(event: BorrowedFd<'_>) -> io::Result<Self> {
        let mut params = Params::default();
        // SAFETY: `params` is a whole `struct io_uring_params` for the kernel to read and fill in.
        let made = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, &raw mut params) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that the kernel has just made for us; it is closed on exec.
        let ring = unsafe { OwnedFd::from_raw_fd(made as i32) };
        if params.features & SINGLE_MMAP == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (sq, cq) = (&params.sq, &params.cq);
        let sq_end = sq.array as usize + 4 * params.sq_entries as usize;
        let cq_end = cq.cqes as usize + CQE * params.cq_entries as usize;
        let words = Pages::map(&ring, 0, sq_end.max(cq_end))?;
        let submissions = Pages::map(&ring, OFFSET_SQES, SQE * params.sq_entries as usize)?;
        let (sq_tail, cq_head, cq_tail) = (sq.tail, cq.head, cq.tail);
        let file = event.as_raw_fd();
        // SAFETY: the argument is one file descriptor, which the kernel reads.
        let registered = unsafe {
            libc::syscall(
                libc::SYS_io_uring_register,
                ring.as_raw_fd(),
                REGISTER_EVENTFD,
                &raw const file,
                1,
            )
        };
        if registered < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { ring, words, _submissions: submissions, sq_tail, cq_head, cq_tail })
    }

    /// Adds 1 to the eventfd. Two that come together may count as one.
    #[inline]
    pub(crate) fn signal(&self) {
        self.words.word(self.sq_tail).fetch_add(1, Release);
        // Refused only for want of memory for one request, which the kernel does not refuse.
        while self.enter().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
        let done = self.words.word(self.cq_tail).load(Acquire);
        self.words.word(self.cq_head).store(done, Release);
    }

    fn enter(&self) -> io::Result<()> {
        let (ring, none) = (self.ring.as_raw_fd(), std::ptr::null::<libc::sigset_t>());
        // SAFETY: submits what is in the ring, a request without any pointer; no signal mask is given.
        let submitted =
            unsafe { libc::syscall(libc::SYS_io_uring_enter, ring, 1, 0, 0, none, 0_usize) };
        if submitted < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
