//! `suiro circuit`.

use super::Context;
use crate::args::CircuitCommand;
use crate::failure::Failure;
use crate::table::{Table, dash};
use api::CircuitView;

/// `suiro circuit`.
pub fn run(context: &Context, command: &CircuitCommand) -> Result<(), Failure> {
    match command {
        CircuitCommand::List => {
            let circuits: Vec<CircuitView> = context.client.get("/v1/circuits")?;
            context.print(&circuits, |circuits| listed(circuits))
        }
    }
}

fn listed(circuits: &[CircuitView]) -> String {
    let columns = ["LINK", "PART", "PORT", "ID", "FROM", "TO", "STATE", ">ROUND TRIP us", "WHY"];
    let mut table = Table::new(&columns);
    for view in circuits {
        let CircuitView { part, spec, state, round_trip_us, .. } = view;
        table.row(vec![
            spec.link.clone(),
            part.clone(),
            dash(spec.port.as_ref()),
            spec.id.to_string(),
            spec.near.clone(),
            spec.far.clone(),
            state.word().into(),
            dash(*round_trip_us),
            view.why(),
        ]);
    }
    table.to_string()
}
