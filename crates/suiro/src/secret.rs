//! Tokens and passwords: from a file, standard input or the environment; never from the command line, which everybody on the host can read.

use crate::failure::Failure;
use api::{Fault, Token};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{IsTerminal, Read};
use std::path::Path;

/// The variable of a token to join by.
#[cfg(feature = "node")]
pub const JOIN: &str = "SUIRO_JOIN_TOKEN";
/// The variable of a user's token.
pub const USER: &str = "SUIRO_TOKEN";

/// The token of that file (`-`: standard input), or else of that variable, if there is one.
pub fn token(file: Option<&Path>, variable: &str) -> Result<Option<Token>, Failure> {
    let (text, from) = match file {
        Some(file) => (read(file)?, file.display().to_string()),
        None => match std::env::var(variable) {
            Ok(text) => (text, variable.to_owned()),
            Err(_) => return Ok(None),
        },
    };
    text.parse().map(Some).map_err(|error: api::BadText| {
        let remedy = format!("write {}", error.form);
        Failure::Usage(Fault::new(from, "read the token in it", error.to_string(), remedy))
    })
}

/// A password: asked for twice at a terminal, which shows nothing of it; else the first line of standard input.
pub fn password(user: &str) -> Result<String, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return line();
    }
    let before = tcgetattr(&stdin).map_err(std::io::Error::from)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &silent).map_err(std::io::Error::from)?;
    let ask = |words: &str| {
        eprint!("{words} of {user}: ");
        let given = line();
        eprintln!();
        given
    };
    let given = ask("password").and_then(|first| Ok((first, ask("again, the password")?)));
    tcsetattr(&stdin, OptionalActions::Now, &before).map_err(std::io::Error::from)?;
    let (first, second) = given?;
    if first == second {
        return Ok(first);
    }
    let (cause, remedy) = ("the two are not the same", "type it again");
    Err(Failure::Usage(Fault::new("password", "read it", cause, remedy)))
}

/// A line of standard input without its end.
fn line() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_line(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|error| {
        let remedy = "name the file that the token was written to, readable for you";
        let thing = file.display().to_string();
        Failure::Usage(Fault::new(thing, "read a token", error.to_string(), remedy))
    })
}
