//! OpenFlow's values ↔ the tables' own, and the tables' refusals as OpenFlow errors: the one place that maps each.
//!
//! Nothing here knows a protocol version: versions differ in the codec, below.

mod action;
mod end;
mod entry;
mod fault;
mod group;
mod matching;
mod port;

pub use action::{actions, instructions, output, oxm_instructions};
pub use end::{Naming, oxm_end};
pub(crate) use entry::flag_bits;
pub use entry::{filter, flow_mod, flow_mod_of, flow_removed, flow_stats, seconds};
pub(crate) use fault::no_number;
pub use fault::{action_fault, flow_mod_fault, group_fault, meter_fault};
pub use group::{group_change, group_stats, meter_change, meter_stats};
pub use matching::{KeyMask, field, key_mask, oxm_match};
pub use port::{port_desc, port_state};
