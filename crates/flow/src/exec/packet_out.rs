//! A packet from the controller, with the one output that nothing else may use: through the tables.

use super::{Run, Trail};
use crate::action::{Action, Output};
use crate::action_set::ActionSet;
use crate::packet::Sink;
use std::ops::ControlFlow;

/// The tables, as a packet-out calls them: sends the packet through and finishes its run.
pub(crate) trait Tables<S> {
    fn walk(&mut self, run: Run<'_, '_, S>) -> Trail;
}

/// Applies a packet-out's actions. `OFPP_TABLE` as the last action takes the packet itself, before that a copy.
pub(crate) fn packet_out<S: Sink>(
    mut run: Run<'_, '_, S>,
    actions: &[Action],
    tables: &mut impl Tables<S>,
) -> Trail {
    let mut rest = actions;
    while let Some((action, after)) = rest.split_first() {
        rest = after;
        let flow = match action {
            Action::Output(Output::Table) if rest.is_empty() && run.can_hand_over() => {
                return tables.walk(run);
            }
            Action::Output(Output::Table) => run.walk_copy(tables),
            action => run.apply(std::slice::from_ref(action)),
        };
        if flow.is_break() {
            break;
        }
    }
    run.finish(&ActionSet::default())
}

impl<S: Sink> Run<'_, '_, S> {
    /// Whether nothing waits that would have to come before the tables.
    fn can_hand_over(&mut self) -> bool {
        self.run_waiting_group().is_continue()
    }

    fn walk_copy(&mut self, tables: &mut impl Tables<S>) -> ControlFlow<()> {
        self.touch()?;
        self.spend(1)?;
        self.fork(|copy| tables.walk(copy));
        ControlFlow::Continue(())
    }
}
