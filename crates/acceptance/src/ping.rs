//! Pings that run beside the test and tell exactly which ones were lost.

use crate::{Background, Lab, until};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::process::Command;

/// Twenty pings a second from one guest to another.
pub struct Pings(Background);

impl Pings {
    /// Starts them; the first answer is here when this returns.
    pub fn start(lab: &Lab, from: &str, to: &str) -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &lab.guest(from)]);
        command.args(["ping", "-i", "0.05", &Lab::ip(to)]);
        let pings = Self(Background::start(&mut command));
        until("the first ping is answered", || !pings.answered().is_empty());
        pings
    }

    fn answered(&self) -> BTreeSet<u64> {
        answered(&self.0.output())
    }

    /// Waits for an answer to a ping that was not sent yet.
    pub fn pass(&self) {
        let before = self.answered().last().copied().unwrap_or(0);
        // Two on: the one after `before` may have been on its way.
        let passed = |last: &u64| *last >= before + 2;
        until("pings pass", || self.answered().last().is_some_and(passed));
    }

    /// Ends them; none but one still on its way, at the very end, may be without its answer.
    #[track_caller]
    pub fn end_without_loss(self) {
        self.pass();
        let output = self.0.end(Signal::INT);
        let answered = answered(&output);
        let (first, last) = (*answered.first().unwrap(), *answered.last().unwrap());
        let lost: Vec<_> = (first..=last).filter(|sequence| !answered.contains(sequence)).collect();
        assert!(lost.is_empty(), "pings {lost:?} of {last} were lost");
    }
}

fn answered(output: &str) -> BTreeSet<u64> {
    let sequence = |line: &str| {
        let (_, rest) =
            line.split_once("bytes from ").and_then(|_| line.split_once("icmp_seq="))?;
        rest.split(' ').next()?.parse().ok()
    };
    output.lines().filter_map(sequence).collect()
}
