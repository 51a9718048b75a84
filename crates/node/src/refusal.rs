//! Why the node does not do what it was asked: a fault for people and its kind for programs.

use api::Fault;
use std::fmt;

/// Kinds of refusal. The API maps each to one HTTP status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// What was asked about is not there.
    NotFound,
    /// It contradicts something that is there.
    Conflict,
    /// Whoever asks may not.
    Forbidden,
    /// It can never be right.
    Invalid,
    /// The host, or the switch's tables, do not allow it now.
    Impossible,
    /// It is in force, but not on disk.
    NotSaved,
}

/// A request refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Its kind.
    pub why: Why,
    /// For people. Boxed: refusals are rare and results are many.
    pub fault: Box<Fault>,
    /// What else is wrong, where all of it was found at once.
    pub others: Vec<Fault>,
}

impl Refusal {
    /// A refusal of this kind.
    pub fn new(why: Why, fault: Fault) -> Self {
        Self { why, fault: Box::new(fault), others: Vec::new() }
    }

    /// A refusal for all of these faults, if there is one.
    ///
    /// # Errors
    /// There is.
    pub fn of_all(why: Why, mut faults: Vec<Fault>) -> Result<(), Self> {
        if faults.is_empty() {
            return Ok(());
        }
        let others = faults.split_off(1);
        faults.pop().map_or(Ok(()), |first| Err(Self { others, ..Self::new(why, first) }))
    }

    /// All that is wrong.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        std::iter::once(&*self.fault).chain(&self.others)
    }

    /// There is no such switch.
    pub fn no_switch(name: &str) -> Self {
        let remedy = "list the switches with: suiro switch list";
        Self::new(
            Why::NotFound,
            Fault::new(
                format!("switch {name}"),
                "find it",
                "there is no switch of that name",
                remedy,
            ),
        )
    }

    /// There is no such port.
    pub fn no_port(switch: &str, name: &str) -> Self {
        let thing = format!("port {name} of switch {switch}");
        let remedy = format!("list its ports with: suiro port list {switch}");
        Self::new(
            Why::NotFound,
            Fault::new(thing, "find it", "the switch has no port of that name or number", remedy),
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)?;
        self.others.iter().try_for_each(|other| write!(f, "\n{other}"))
    }
}

impl std::error::Error for Refusal {}
