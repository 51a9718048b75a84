//! What is true now, gathered for the API.

mod guest;
mod node;
mod port;
mod switch;
mod workers;

use api::DropView;
use wire::DropReason;

fn view_drops(drops: &[(DropReason, u64)]) -> Vec<DropView> {
    drops
        .iter()
        .map(|&(reason, frames)| DropView { reason: reason.name().into(), frames })
        .collect()
}
