//! Loading a program whose verification takes long enough to be disturbed.

use aya::programs::ProgramError;
use std::io::ErrorKind;

/// Attempts, as libbpf makes them; aya makes two of each.
const ATTEMPTS: u32 = 5;

/// Loads a program. Linux breaks a verification off (`EAGAIN`) when the thread that loads has a signal to see to, also when its process was stopped or
/// frozen for a moment: then it begins anew, up to five times.
///
/// # Errors
/// What the kernel said last.
pub fn verified(load: impl FnMut() -> Result<(), ProgramError>) -> Result<(), ProgramError> {
    anew_while(
        load,
        |error| matches!(error, ProgramError::LoadError { io_error, .. } if io_error.kind() == ErrorKind::WouldBlock),
    )
}

fn anew_while<E>(
    mut load: impl FnMut() -> Result<(), E>,
    is_disturbed: impl Fn(&E) -> bool,
) -> Result<(), E> {
    for _ in 1..ATTEMPTS {
        match load() {
            Err(error) if is_disturbed(&error) => {}
            done => return done,
        }
    }
    load()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many attempts are made where the first `disturbed` are broken off and the next says `last`, and what comes out.
    fn attempts(disturbed: u32, last: Result<(), &'static str>) -> (u32, Result<(), &'static str>) {
        let mut made = 0;
        let load = || {
            made += 1;
            if made <= disturbed { Err("disturbed") } else { last }
        };
        let said = anew_while(load, |&error| error == "disturbed");
        (made, said)
    }

    #[test]
    fn only_what_was_broken_off_begins_anew_and_not_for_ever() {
        assert_eq!(attempts(0, Ok(())), (1, Ok(())));
        assert_eq!(attempts(3, Ok(())), (4, Ok(())));
        assert_eq!(attempts(2, Err("wrong")), (3, Err("wrong")));
        assert_eq!(attempts(9, Ok(())), (ATTEMPTS, Err("disturbed")));
    }
}
