//! Terminals of programs in guests: a pair of ends, one of them the program's input and output (pty(7)).

use api::exec::Window;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Our end, which does not block, and the program's three.
pub(crate) fn open(window: Window) -> io::Result<(OwnedFd, [OwnedFd; 3])> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let own = openpt(flags)?;
    grantpt(&own)?;
    unlockpt(&own)?;
    resize(&own, window)?;
    // By the call, not by name: the host's /dev/pts may be another one.
    let input = ioctl_tiocgptpeer(&own, flags)?;
    let its = [input.try_clone()?, input.try_clone()?, input];
    rustix::io::ioctl_fionbio(&own, true)?;
    Ok((own, its))
}

/// Gives a terminal another size; its program gets SIGWINCH.
///
/// # Errors
/// It is no terminal any more.
pub fn resize(own: impl AsFd, window: Window) -> io::Result<()> {
    let Window { rows, columns } = window;
    Ok(tcsetwinsize(own, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?)
}
