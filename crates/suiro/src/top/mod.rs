//! `suiro top`: switches, ports with rates, their queues, drops by reason, bounds that somebody hits, what each core does, and which rung takes the frames.

pub mod flow;
mod live;
mod page;
mod queues;
mod rates;
mod rungs;
mod view;

pub use live::{Watched, watch};

use crate::args::TopArgs;
use crate::bounds;
use crate::commands::Context;
use crate::failure::Failure;
use api::{BoundHit, NodeView, OffloadView, PortView, SwitchView, WorkersView};
use rates::Rates;

/// Everything at one moment.
pub struct Look {
    switches: Vec<SwitchView>,
    ports: Vec<PortView>,
    workers: WorkersView,
    offload: OffloadView,
    bounds: Vec<BoundHit>,
    now_ns: u64,
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
        let node: NodeView = context.client.get("/v1/node")?;
        Ok(Look {
            switches: context.client.get("/v1/switches")?,
            ports: context.client.get("/v1/ports")?,
            workers: context.client.get("/v1/workers")?,
            offload: context.client.get("/v1/offload")?,
            bounds: node.bounds,
            now_ns: bounds::now_ns(),
        })
    }

    fn between(before: &Look, now: &Look) -> Rates {
        Rates::between(before, now)
    }

    fn page(rates: &Rates, order: &str) -> String {
        page::whole(rates, order)
    }
}
