//! `suiro top`: switches, ports with rates, their queues, drops by reason, and what each core does.

mod page;
mod queues;
mod rates;

pub use page::fitted;

use crate::args::TopArgs;
use crate::commands::{Context, out};
use crate::failure::Failure;
use api::{PortView, SwitchView, WorkersView};
use rates::Rates;
use std::io::IsTerminal;
use std::time::Duration;

/// Everything at one moment.
pub struct Look {
    switches: Vec<SwitchView>,
    ports: Vec<PortView>,
    workers: WorkersView,
}

/// Homes the cursor and clears to the end: no flicker, and the last page stays when the program ends.
pub const HOME: &str = "\x1b[H\x1b[J";

/// Looks until interrupted, or once.
pub fn run(context: &Context, args: &TopArgs) -> Result<(), Failure> {
    let mut before = look(context)?;
    loop {
        std::thread::sleep(Duration::from_secs(args.interval.into()));
        let now = look(context)?;
        let rates = Rates::between(&before, &now);
        if context.json {
            out(&(serde_json::to_string(&rates).expect("rates are plain data") + "\n"))?;
        } else if args.once {
            out(&page::whole(&rates))?;
        } else if std::io::stdout().is_terminal() {
            out(&format!("{HOME}{}", page::fitting(&rates)))?;
        } else {
            out(&(page::whole(&rates) + "\n"))?;
        }
        if args.once {
            return Ok(());
        }
        before = now;
    }
}

fn look(context: &Context) -> Result<Look, Failure> {
    Ok(Look {
        switches: context.client.get("/v1/switches")?,
        ports: context.client.get("/v1/ports")?,
        workers: context.client.get("/v1/workers")?,
    })
}
