//! Which structs may be read from maps, and the two questions to the kernel that no library asks.

#![expect(
    unsafe_code,
    reason = "aya's `Pod` is an unsafe trait; membarrier(2) and ioctl(2) are bare"
)]

use super::abi::{OffloadFlow, OffloadKey, OffloadLimit, OffloadPort};
use crate::sys::mapped::pod;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

pod!(OffloadFlow, OffloadKey, OffloadLimit, OffloadPort);

/// `MEMBARRIER_CMD_GLOBAL` of linux/membarrier.h.
const GLOBAL: libc::c_int = 1;

/// Returns when every program that ran has ended: the kernel waits for one grace period (`synchronize_rcu`), some milliseconds.
///
/// # Errors
/// `EINVAL`: some processors run without a tick (`nohz_full`), and the kernel refuses.
pub(super) fn settle() -> io::Result<()> {
    // SAFETY: no pointers.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether nothing that a packet socket sent is under way still (`SIOCOUTQ`): the receiving stack has it all.
pub(super) fn is_sent(socket: BorrowedFd<'_>) -> bool {
    let mut waiting: libc::c_int = 0;
    // SAFETY: the kernel writes one `int` to `waiting`, which lives for the whole call.
    let asked = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut waiting) };
    asked == 0 && waiting == 0
}
