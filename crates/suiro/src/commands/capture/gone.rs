//! Notices that whoever reads a capture has gone, also while no frame comes that could not be written.
//!
//! So a capture ends with the ssh connection, the Wireshark or the `head` that it was for.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use std::io;
use std::os::fd::OwnedFd;

/// Ends the capture in order, as SIGTERM does, once nobody reads that pipe or socket. Files always have a reader.
///
/// # Errors
/// The system refuses a thread.
pub fn watch(output: OwnedFd) -> io::Result<()> {
    let watcher = std::thread::Builder::new().name("suiro-reader".into());
    watcher.spawn(move || {
        if wait(&output).is_ok() {
            // Ourselves: we are there.
            let _ = kill_process(getpid(), Signal::TERM);
        }
    })?;
    Ok(())
}

/// Waits for the end of whoever reads; nothing else is asked for, so nothing else ends the wait.
fn wait(output: &OwnedFd) -> Result<(), Errno> {
    loop {
        let mut polled = [PollFd::new(output, PollFlags::empty())];
        match poll(&mut polled, None) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
            Ok(_) if polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
                return Ok(());
            }
            Ok(_) => return Err(Errno::INVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;

    #[test]
    fn a_reader_that_goes_is_noticed_while_nothing_is_written() {
        let (reader, writer) = pipe().unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| wait(&writer));
            drop(reader);
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
    }
}
