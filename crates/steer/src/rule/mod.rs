//! # A steering rule
//!
//! **Question answered**: which frames does the operator mean, and where shall they be processed?
//!
//! Rules are written as `ovs-ofctl` writes flows. What OpenFlow has is read and printed by `openflow::text`; steering's own fields stand
//! beside it:
//!
//! | field | what it matches |
//! |---|---|
//! | `vm_id=N` | what is for that virtual machine: its declared addresses, else the flow control field of the underlay's header |
//! | `tun_src=A[/M]`, `tun_dst=A[/M]` | the underlay's addresses of a tunnelled frame, IPv4 or IPv6 |
//! | `ip_frag=no\|yes\|first\|later\|not_later` | fragments, as Open vSwitch names them |
//!
//! All other fields mean the headers inside a tunnel when there is one, as they do in Open vSwitch.
//!
//! The one action is `place(core=auto|N|hash[,priority][,own])`: see [`Placing`].
//!
//! Invariant: what is printed reads back as the same value, so the printed form is what the store keeps.

mod own;
mod parse;
mod placing;
mod print;

pub use own::{Frag, Own, Underlay};
pub use parse::{Filter, parse_filter, parse_rule};
pub use placing::Placing;

use openflow::Match;
use std::fmt;

/// Which frames, and where to process them. Two rules of the same priority and match are the same rule: they have one [`Rule::key`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The highest that matches wins.
    pub priority: u16,
    /// For whoever wrote it; 0 when not given.
    pub cookie: u64,
    /// What OpenFlow can say of the frames.
    pub fields: Match,
    /// What it cannot.
    pub own: Own,
    /// Where.
    pub placing: Placing,
}

impl Rule {
    /// Priority and match, as text: of two rules with the same one, the later replaces the earlier.
    pub fn key(&self) -> String {
        print::key(self)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print::rule(self))
    }
}

#[cfg(test)]
mod tests;
