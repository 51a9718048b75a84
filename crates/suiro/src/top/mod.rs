//! `suiro top`: switches, ports with rates, their queues, drops by reason, what each core does, and which rung takes the frames.

pub mod flow;
mod live;
mod page;
mod queues;
mod rates;
mod rungs;
mod view;

pub use live::{Watched, watch};

use crate::args::TopArgs;
use crate::commands::Context;
use crate::failure::Failure;
use api::{OffloadView, PortView, SwitchView, WorkersView};
use rates::Rates;

/// Everything at one moment.
pub struct Look {
    switches: Vec<SwitchView>,
    ports: Vec<PortView>,
    workers: WorkersView,
    offload: OffloadView,
}

/// Looks until interrupted, or once.
pub fn run(context: &Context, args: &TopArgs) -> Result<(), Failure> {
    watch::<Node>(context, args)
}

/// A node, watched.
struct Node;

impl Watched for Node {
    type Look = Look;
    type Rates = Rates;
    const ORDERS: &'static [&'static str] = page::ORDERS;

    fn look(context: &Context) -> Result<Look, Failure> {
        Ok(Look {
            switches: context.client.get("/v1/switches")?,
            ports: context.client.get("/v1/ports")?,
            workers: context.client.get("/v1/workers")?,
            offload: context.client.get("/v1/offload")?,
        })
    }

    fn between(before: &Look, now: &Look) -> Rates {
        Rates::between(before, now)
    }

    fn page(rates: &Rates, order: &str) -> String {
        page::whole(rates, order)
    }
}
