//! The list of cases and their run.

use super::bench::Bench;
use super::node::Node;
use acceptance::privileged;
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use std::sync::Arc;

/// Cases at a time unless the user says otherwise. Chosen: a case mostly waits for the node, which has one worker.
const THREADS: usize = 4;

/// All cases, by name.
#[derive(Default)]
pub struct Suite {
    node: Arc<Node>,
    trials: Vec<Trial>,
}

impl Suite {
    /// A case on a switch without entries, groups, meters. Counters and learned addresses may be left from another case.
    pub fn case(
        &mut self,
        name: impl Into<String>,
        test: impl FnOnce(&mut Bench) + Send + 'static,
    ) {
        self.on_node(name, |node| {
            let mut bench = node.take();
            test(&mut bench);
            node.give_back(bench);
        });
    }

    /// A case on a switch that was never used, removed afterwards.
    pub fn fresh(
        &mut self,
        name: impl Into<String>,
        test: impl FnOnce(&mut Bench) + Send + 'static,
    ) {
        self.on_node(name, |node| {
            let mut bench = Bench::make(node);
            test(&mut bench);
            bench.remove(node);
        });
    }

    /// A case that needs no switch.
    pub fn plain(&mut self, name: impl Into<String>, test: impl FnOnce() + Send + 'static) {
        self.trials.push(Trial::test(name, || {
            test();
            Ok(())
        }));
    }

    /// A case that makes what it needs.
    pub fn on_node(&mut self, name: impl Into<String>, test: impl FnOnce(&Node) + Send + 'static) {
        let node = self.node.clone();
        self.trials.push(Trial::test(name, move || {
            if privileged() {
                test(&node);
            }
            Ok(())
        }));
    }

    /// The names so far.
    pub fn names(&self) -> Vec<String> {
        self.trials.iter().map(|trial| trial.name().to_owned()).collect()
    }

    /// Does what the command line asks for. The node ends with the last case.
    pub fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        arguments.test_threads.get_or_insert(THREADS);
        let Self { node, trials } = self;
        let conclusion = libtest_mimic::run(&arguments, trials);
        drop(node);
        conclusion.exit_code()
    }
}
