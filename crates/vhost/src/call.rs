//! How a driver is told that something happened, without ever waiting for it.
//!
//! The eventfd is the front-end's, and so are its flags: writing to one whose counter is full waits for a reader, unless `O_NONBLOCK` is set, which
//! the front-end can take away again between our looking and our writing, on the file description that we share. A worker that waits there waits
//! for ever, and every guest on it with it. `RWF_NOWAIT` is refused for eventfds (they have no `write_iter`), and no descriptor of our own can
//! be had. So nothing here writes: the kernel itself signals the eventfd when an operation of ours completes, as KVM and vhost do
//! (`eventfd_signal`), which waits for nothing. By io_uring that costs 1325 cycles (measured, TSC of a Zen 4, nobody waiting), by asynchronous
//! I/O 1950, where io_uring is not allowed; write(2), for comparison, 670.
//!
//! What is not an eventfd (a pipe, a socket, a file that some program serves) is refused when it arrives.

use crate::sys::{Aio, Uring};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A front-end's eventfd, for signalling.
pub struct Call(Way);

enum Way {
    Uring(Uring),
    Aio(Aio),
}

impl Call {
    /// Of an eventfd.
    ///
    /// # Errors
    /// It is none ([`io::ErrorKind::InvalidInput`]), or the system has no way to signal it.
    pub fn new(event: OwnedFd) -> io::Result<Self> {
        if !is_eventfd(event.as_fd())? {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is no eventfd"));
        }
        match Uring::new(event.as_fd()) {
            Ok(ring) => Ok(Self(Way::Uring(ring))),
            Err(_) => Self::without_uring(event),
        }
    }

    fn without_uring(event: OwnedFd) -> io::Result<Self> {
        Ok(Self(Way::Aio(Aio::new(event)?)))
    }

    /// Adds 1; what does not fit is told already. Waits for nobody.
    #[inline]
    pub fn signal(&self) {
        match &self.0 {
            Way::Uring(ring) => ring.signal(),
            Way::Aio(aio) => aio.signal(),
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Way::Uring(_) => "Call by io_uring",
            Way::Aio(_) => "Call by asynchronous I/O",
        })
    }
}

/// Whether a file is an eventfd (proc(5), `fdinfo`): a front-end may hand us anything that it can open.
///
/// # Errors
/// `/proc` cannot be read.
pub(crate) fn is_eventfd(file: BorrowedFd<'_>) -> io::Result<bool> {
    let facts = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    Ok(facts.lines().any(|line| line.starts_with("eventfd-count:")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    /// One that waits when it is full, and as full as it can be for a writer.
    fn full() -> OwnedFd {
        let event = eventfd(0, EventfdFlags::empty()).unwrap();
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        event
    }

    fn read(event: &OwnedFd) -> u64 {
        let mut count = [0; 8];
        rustix::io::read(event, &mut count).unwrap();
        u64::from_ne_bytes(count)
    }

    fn both(event: &OwnedFd) -> [Call; 2] {
        let copy = || event.try_clone().unwrap();
        [Call::new(copy()).unwrap(), Call::without_uring(copy()).unwrap()]
    }

    #[test]
    fn each_signal_counts_one() {
        let event = eventfd(0, EventfdFlags::empty()).unwrap();
        for call in both(&event) {
            (0..1000).for_each(|_| call.signal());
            assert_eq!(read(&event), 1000, "{call:?}");
        }
    }

    #[test]
    fn a_full_counter_that_waits_for_its_reader_holds_up_nobody() {
        let event = full();
        for call in both(&event) {
            (0..1000).for_each(|_| call.signal());
        }
        assert_eq!(read(&event), u64::MAX, "the kernel's own mark for an overflow");
    }

    #[test]
    fn what_is_no_eventfd_is_refused() {
        let (pipe, _reader) = rustix::pipe::pipe().map(|(read, write)| (write, read)).unwrap();
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        for file in [pipe, socket.into(), file.into()] {
            assert_eq!(Call::new(file).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
