//! Tokens: from a file, standard input or the environment; never from the command line, which everybody on the host can read.

use crate::failure::Failure;
use api::{Fault, Token};
use std::io::Read;
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
