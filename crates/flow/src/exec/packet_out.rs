//! A packet from the controller, with the one output that nothing else may use: through the tables.

use super::{Run, Trail};
use crate::action::{Action, Output};
use crate::action_set::ActionSet;
use crate::packet::{Sink, Then};
use std::ops::ControlFlow;

/// The tables, as a packet-out calls them.
pub(crate) trait Tables<S> {
    /// Sends the packet through the tables, from the first one, and finishes its run.
    fn walk(&mut self, run: Run<'_, '_, S>) -> Trail;
}

/// Applies a packet-out's actions. `OFPP_TABLE` as the last action takes the packet itself, before that a copy.
pub(crate) fn packet_out<S: Sink>(
    mut run: Run<'_, '_, S>,
    actions: &[Action],
    tables: &mut impl Tables<S>,
) -> Trail {
    let (last, others) = match actions.split_last() {
        Some((Action::Output(Output::Table), others)) => (true, others),
        _ => (false, actions),
    };
    let all_done = others.iter().try_for_each(|action| run.packet_out_step(action, tables));
    match all_done {
        ControlFlow::Continue(()) if last && run.run_waiting_group().is_continue() => {
            tables.walk(run)
        }
        _ => run.finish(&ActionSet::default()),
    }
}

impl<S: Sink> Run<'_, '_, S> {
    fn packet_out_step(&mut self, action: &Action, tables: &mut impl Tables<S>) -> ControlFlow<()> {
        if *action != Action::Output(Output::Table) {
            return self.step(action);
        }
        self.run_waiting_group()?;
        self.flush(Then::More);
        self.spend(1)?;
        self.fork(0, |copy| tables.walk(copy));
        ControlFlow::Continue(())
    }
}
