//! Numbers of users and groups, wherever the host keeps them (getpwnam_r(3), nsswitch.conf(5)).

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// Bytes of an entry at first, and at most. Chosen: a user's is a line; a group names its members, of whom a directory has thousands.
const ENTRY: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 24;

/// The number of a user; `None`: there is none of that name.
pub(crate) fn user(name: &CStr) -> io::Result<Option<u32>> {
    look_up::<libc::passwd>(|entry, room, found| {
        let (at, len) = (room.as_mut_ptr().cast::<c_char>(), room.len());
        // SAFETY: `name` ends with a NUL; `entry`, `found` and the `len` bytes at `at` are ours to write for the call.
        unsafe { libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), at, len, found) }
    })
    .map(|found| found.map(|entry| entry.pw_uid))
}

/// The number of a group; `None`: there is none of that name.
pub(crate) fn group(name: &CStr) -> io::Result<Option<u32>> {
    look_up::<libc::group>(|entry, room, found| {
        let (at, len) = (room.as_mut_ptr().cast::<c_char>(), room.len());
        // SAFETY: `name` ends with a NUL; `entry`, `found` and the `len` bytes at `at` are ours to write for the call.
        unsafe { libc::getgrnam_r(name.as_ptr(), entry.as_mut_ptr(), at, len, found) }
    })
    .map(|found| found.map(|entry| entry.gr_gid))
}

/// Asks with more and more room. Pointers in the entry that comes back are void.
fn look_up<T: Copy>(
    ask: impl Fn(&mut MaybeUninit<T>, &mut [MaybeUninit<u8>], &mut *mut T) -> c_int,
) -> io::Result<Option<T>> {
    let mut size = *ENTRY.start();
    loop {
        let mut room = vec![MaybeUninit::uninit(); size];
        let (mut entry, mut found) = (MaybeUninit::uninit(), ptr::null_mut());
        match ask(&mut entry, &mut room, &mut found) {
            libc::ERANGE if size < *ENTRY.end() => size *= 4,
            libc::EINTR => {}
            // Of nobody some sources say 0, others one of these (getpwnam(3), "RETURN VALUE").
            0 | libc::ENOENT | libc::ESRCH if found.is_null() => return Ok(None),
            // SAFETY: 0 and a pointer mean that the entry was filled in.
            0 => return Ok(Some(unsafe { entry.assume_init() })),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_the_first_user_and_nobody_has_an_impossible_name() {
        assert_eq!(user(c"root").unwrap(), Some(0));
        assert_eq!(group(c"root").unwrap(), Some(0));
        assert_eq!(user(c"no:such").unwrap(), None);
        assert_eq!(group(c"no:such").unwrap(), None);
    }
}
