//! Waiting with a timeout, on a machine that may be stopped for a moment.

use std::io::{ErrorKind, Result};

/// What a call of the kernel says in the end. A wait with a timeout is broken off (`EINTR`) when its process was stopped or frozen and goes on,
/// even if nobody handles a signal (signal(7), "Interruption of system calls and library functions by stop signals"); then it begins anew.
pub fn unbroken<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
