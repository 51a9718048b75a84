//! This terminal, lent to a program elsewhere: every key goes there, and what it writes comes here. However that ends, the terminal is as it was before.

use crate::failure::Failure;
use api::Fault;
use api::exec::Window;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Read, Write, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// `^]`, by which one leaves, as with telnet and virsh.
const LEAVE: u8 = 0x1d;

/// Lends the terminal to what `run` runs.
///
/// # Errors
/// There is no terminal, or the program ends with a status.
pub fn attach(run: impl FnOnce(Keys, Window) -> Result<u8, Failure>) -> Result<(), Failure> {
    let window = size().filter(|_| stdin().is_terminal() && stdout().is_terminal());
    let window = window.ok_or_else(|| {
        let (cause, remedy) = (
            "input and output are not a terminal",
            "run the program without one: suiro slice exec SLICE GUEST -- PROGRAM",
        );
        Failure::Usage(Fault::new("terminal", "lend it to a guest", cause, remedy))
    })?;
    let has_left = Arc::new(AtomicBool::new(false));
    let lent = Lent::new()?;
    let ended = run(Keys(has_left.clone()), window);
    drop(lent);
    // Who has left hears no more of it.
    if has_left.load(Relaxed) {
        return Ok(writeln!(stdout())?);
    }
    match ended? {
        0 => Ok(()),
        status => Err(Failure::Ended(status)),
    }
}

/// How large the terminal is.
pub fn size() -> Option<Window> {
    let size = tcgetwinsize(stdout()).ok()?;
    Some(Window { rows: size.ws_row, columns: size.ws_col })
}

/// The terminal in raw mode: no key means anything here.
struct Lent(Termios);

impl Lent {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // A terminal that has gone needs no mode.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.0);
    }
}

/// What is typed, until somebody leaves.
pub struct Keys(Arc<AtomicBool>);

impl Read for Keys {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.0.load(Relaxed) {
            return Ok(0);
        }
        let read = stdin().read(bytes)?;
        let typed = until_left(&bytes[..read]);
        if typed < read {
            self.0.store(true, Relaxed);
        }
        Ok(typed)
    }
}

/// How much was typed before somebody left.
fn until_left(typed: &[u8]) -> usize {
    typed.iter().position(|byte| *byte == LEAVE).unwrap_or(typed.len())
}

#[cfg(test)]
mod tests {
    use super::until_left;

    #[test]
    fn what_is_typed_behind_the_key_that_leaves_is_not_sent() {
        assert_eq!(until_left(b"ls\r"), 3);
        assert_eq!(until_left(b"ls\x1dxx"), 2);
        assert_eq!(until_left(b""), 0);
    }
}
