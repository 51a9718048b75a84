//! # Checking the host
//!
//! **Question answered**: what that suiro needs does this host have, what not, what works all the same, and what is the fix?
//!
//! Needs no node and changes nothing. Everything is read below a root directory, so that tests can make up a host; what only the kernel
//! itself can say (capabilities, what a driver's XDP can do) is handed in.

mod host;
mod interface;
mod kernel;

use crate::host::privilege;
use serde::Serialize;
use std::path::Path;

/// How a thing is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// It works, but less well.
    Limited,
    /// Something does not work.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub thing: String,
    /// How it is.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What does not work, and what works all the same; empty when all does.
    pub means: String,
    /// The fix; empty when nothing is wrong.
    pub remedy: String,
}

impl Finding {
    fn ok(thing: impl Into<String>, found: impl Into<String>) -> Self {
        let (thing, found) = (thing.into(), found.into());
        Self { thing, state: State::Ok, found, means: String::new(), remedy: String::new() }
    }

    fn limited(
        thing: impl Into<String>,
        found: impl Into<String>,
        means: &str,
        remedy: impl Into<String>,
    ) -> Self {
        let (means, remedy) = (means.into(), remedy.into());
        Self { state: State::Limited, means, remedy, ..Self::ok(thing, found) }
    }

    fn missing(
        thing: impl Into<String>,
        found: impl Into<String>,
        means: &str,
        remedy: impl Into<String>,
    ) -> Self {
        Self { state: State::Missing, ..Self::limited(thing, found, means, remedy) }
    }
}

/// Looks at the host and at these interfaces; without any at all that have hardware, or, where none has, at all but the loopback.
pub fn examine(interfaces: &[String]) -> Vec<Finding> {
    let root = Path::new("/");
    let mut findings = kernel::examine(root);
    findings.push(privileges());
    findings.extend(host::examine(root));
    let names = if interfaces.is_empty() { interface::usual(root) } else { interfaces.to_vec() };
    findings.extend(
        names.iter().flat_map(|name| interface::examine(root, name, interface::Xdp::of(name))),
    );
    findings
}

fn privileges() -> Finding {
    let missing = privilege::missing();
    if missing.is_empty() {
        return Finding::ok("privileges", "all that suiro uses");
    }
    let list: Vec<_> = missing.iter().map(|(cap, purpose)| format!("{cap} ({purpose})")).collect();
    let means = "a node started like this cannot do what stands in brackets";
    Finding::missing(
        "privileges",
        format!("missing: {}", list.join(", ")),
        means,
        "run as root, or give the service these capabilities",
    )
}

#[cfg(test)]
mod tests;
