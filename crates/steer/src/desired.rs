//! What steering was asked for: what a restart must bring back, and who is told of changes.

use crate::rule::Rule;
use api::steer::{InterfaceSpec, PolicySpec, VmSpec};
use std::collections::BTreeMap;

/// All of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Desired {
    /// How cores are chosen.
    pub policy: PolicySpec,
    /// Interfaces, by name.
    pub interfaces: BTreeMap<String, InterfaceSpec>,
    /// Declared machines, by name.
    pub vms: BTreeMap<String, VmSpec>,
    /// Rules, each with its interface; `None` is all of them.
    pub rules: Vec<(Option<String>, Rule)>,
}

/// One change that took effect.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The policy is this now.
    Policy(&'a PolicySpec),
    /// An interface is wanted, or (`None`) no more.
    Interface(&'a str, Option<&'a InterfaceSpec>),
    /// A machine is declared, or no more.
    Vm(&'a str, Option<&'a VmSpec>),
    /// A rule is wanted, or no more.
    Rule {
        /// Its interface; `None` is all of them.
        on: Option<&'a str>,
        /// The rule.
        rule: &'a Rule,
        /// Whether it is wanted.
        wanted: bool,
    },
}

/// Keeps what steering was asked for.
pub trait Journal: Send {
    /// Notes a change. Never waits.
    fn note(&mut self, change: Change<'_>);
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Journal for Discard {
    fn note(&mut self, _: Change<'_>) {}
}
