//! Who wants a switch or a port, and so may change it.

use crate::refusal::{Refusal, Why};
use api::{Fault, PartName};
use std::fmt;

/// An owner.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Owner {
    /// The configuration file.
    File,
    /// The API, object by object.
    Api,
    /// A part, declared through the API.
    Part(PartName),
}

/// The configuration file's name among parts.
pub const FILE: &str = "file";
/// Where nobody's part can be: what is made object by object is told so.
pub const API: &str = "api";

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => FILE,
            Self::Api => API,
            Self::Part(name) => name,
        })
    }
}

impl Owner {
    /// Where its objects are declared, for messages.
    pub fn place(&self) -> String {
        match self {
            Self::File => "configuration file".into(),
            Self::Api => "made through the API".into(),
            Self::Part(name) => format!("part {name}"),
        }
    }

    /// The slice that it is, if it is one: its switches have controllers of their own.
    pub fn slice(&self) -> Option<&PartName> {
        match self {
            Self::Part(name) if name.is_a_slices() => Some(name),
            _ => None,
        }
    }

    /// Refuses to change one of its objects through the API.
    ///
    /// # Errors
    /// It is declared, in the file or a part, which alone changes it.
    pub fn must_be_api(&self, thing: &str, step: &str) -> Result<(), Refusal> {
        let (cause, remedy) = match self {
            Self::Api => return Ok(()),
            Self::File => (
                "it is declared in the configuration file".into(),
                "change it there, then: systemctl reload suiro (or send SIGHUP)".into(),
            ),
            Self::Part(name) => (
                format!("it is declared by part {name}"),
                format!("change the part's file, then: suiro apply -f FILE --part {name}"),
            ),
        };
        Err(Refusal::new(Why::Conflict, Fault::new(thing, step, cause, remedy)))
    }
}
