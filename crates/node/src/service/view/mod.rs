//! What the API shows. Plain data; the command line reads the same types back.

mod guest;
mod node;
mod port;
mod switch;
mod workers;

pub use guest::{GuestErrorView, GuestView, MemoryView, RingView};
pub use node::{NodeView, StoreView};
pub use port::{
    ForwardingView, PortCountersView, PortQueueView, PortView, QueueView, SaView, SealingView,
};
pub use switch::{ConnectionView, EndpointView, SwitchView, TroubleView};
pub use workers::{CacheView, PortLoadView, WorkerView, WorkersView};

use super::plan::Origin;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wire::DropReason;

/// Frames lost for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct DropView {
    /// The reason; the users' guide explains each.
    pub reason: String,
    /// How many.
    pub frames: u64,
}

fn view_drops(drops: &[(DropReason, u64)]) -> Vec<DropView> {
    drops
        .iter()
        .map(|&(reason, frames)| DropView { reason: reason.name().into(), frames })
        .collect()
}

fn origin_word(origin: Origin) -> &'static str {
    match origin {
        Origin::File => "file",
        Origin::Api => "api",
    }
}
