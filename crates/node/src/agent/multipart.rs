//! Multipart requests: what is asked and the parts of the answer (OpenFlow 1.3.5 §7.3.5).
//!
//! An answer is an iterator of replies, each small enough to encode at once: a dump of a million entries is made while it is sent.

use crate::switch::Switch;
use openflow::{ErrorCode, Fault, FixedText, MultipartReply, MultipartRequest, SwitchDesc};
use std::sync::Arc;

/// The parts of an answer, at least one.
pub type Replies = Box<dyn Iterator<Item = MultipartReply> + Send>;

/// Entries per part of a flow dump. Chosen: about 32 KiB of ordinary entries; the codec cuts further where they are long.
const FLOWS: usize = 256;

/// Tables per part of the table features, of about 3 KiB each.
const TABLES: usize = 16;

/// The parts of the answer to one request.
///
/// # Errors
/// The OpenFlow error to answer with.
pub fn multipart(switch: &Arc<Switch>, request: MultipartRequest) -> Result<Replies, Fault> {
    use MultipartReply as Reply;
    use MultipartRequest as Ask;
    Ok(match request {
        Ask::Desc => one(Reply::Desc(description(switch))),
        Ask::Flow(request) => chunks(switch.flows(&request)?, FLOWS, Reply::Flow),
        Ask::Aggregate(request) => one(Reply::Aggregate(switch.aggregate(&request)?)),
        Ask::Table => one(Reply::Table(switch.table_stats())),
        Ask::PortStats(port) => one(Reply::PortStats(switch.port_stats(port)?)),
        Ask::Queue { port, queue } => one(Reply::Queue(switch.queue_stats(port, queue)?)),
        Ask::Group(id) => one(Reply::Group(switch.group_stats(id))),
        Ask::GroupDesc => one(Reply::GroupDesc(switch.groups())),
        Ask::GroupFeatures => one(Reply::GroupFeatures(switch.group_features())),
        Ask::Meter(id) => one(Reply::Meter(switch.meter_stats(id)?)),
        Ask::MeterConfig(id) => one(Reply::MeterConfig(switch.meters(id)?)),
        Ask::MeterFeatures => one(Reply::MeterFeatures(switch.meter_features())),
        Ask::TableFeatures(wanted) => {
            if !wanted.is_empty() {
                switch.set_table_features(&wanted)?;
            }
            chunks(switch.table_features(), TABLES, Reply::TableFeatures)
        }
        // `carry_out` tells the ports itself, and hands experimenters of ours to steering, which refuses others.
        Ask::PortDesc => one(Reply::PortDesc(switch.ports())),
        Ask::Experimenter(_) => {
            return Err(Fault::new(
                ErrorCode::BadRequestBadExperimenter,
                "an experimenter that suiro does not know",
            ));
        }
    })
}

fn one(reply: MultipartReply) -> Replies {
    Box::new(std::iter::once(reply))
}

/// `items` in portions; one empty portion if there are none, because every request has an answer.
fn chunks<T: Send + 'static>(
    mut items: impl Iterator<Item = T> + Send + 'static,
    size: usize,
    wrap: impl Fn(Vec<T>) -> MultipartReply + Send + 'static,
) -> Replies {
    let mut first = true;
    Box::new(std::iter::from_fn(move || {
        let portion: Vec<T> = items.by_ref().take(size).collect();
        let last = portion.is_empty() && !std::mem::take(&mut first);
        first = false;
        (!last).then(|| wrap(portion))
    }))
}

fn description(switch: &Switch) -> SwitchDesc {
    SwitchDesc {
        manufacturer: FixedText::from("suiro"),
        hardware: FixedText::from("virtual switch"),
        software: FixedText::from(concat!("suiro ", env!("CARGO_PKG_VERSION"))),
        serial_number: FixedText::from(format!("{:016x}", switch.datapath_id()).as_str()),
        datapath: FixedText::from(switch.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_found_is_still_an_answer_and_portions_end() {
        let sizes = |count: usize| -> Vec<usize> {
            let stats = std::iter::repeat_n(openflow::PortStats::default(), count);
            let size =
                |reply| if let MultipartReply::PortStats(list) = reply { list.len() } else { 0 };
            chunks(stats, 4, MultipartReply::PortStats).map(size).collect()
        };
        assert_eq!(sizes(0), [0]);
        assert_eq!(sizes(4), [4]);
        assert_eq!(sizes(9), [4, 4, 1]);
    }
}
