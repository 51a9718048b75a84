//! The ovs-ofctl syntax for flows, groups and meters, read and printed (ovs-ofctl(8), ovs-fields(7), ovs-actions(7)).
//!
//! What OpenFlow 1.3 has is read; what only Open vSwitch has (registers, `learn`, `ct`, ...) is refused by name. Beyond
//! ovs-ofctl, `copy_ttl_in`, `copy_ttl_out`, `push_pbb`, `pop_pbb`, `pbb_isid`, `in_phy_port` and `ipv6_exthdr` are read
//! too, and `apply_actions(...)`; and of steering the fields `fcf`, `vm_id` and `ip_frag`, of which flows may have `fcf` alone, and the action `place(core=auto|N|hash[,priority][,own])`, which [`parse_place`] reads.
//!
//! Printing is that of `ovs-ofctl -O OpenFlow13` 3.1, byte for byte, and what is printed reads back as the same value.
//! Reading gives fields in the order of their numbers, so that prerequisites come first, and instructions in the order
//! of their execution.
//!
//! Ports may be named: reading takes a [`Resolve`], printing a [`Name`].

mod actions;
mod actions_print;
mod error;
mod fields;
mod flow;
mod flow_print;
mod group;
mod match_print;
mod meter;
mod obeyed;
mod place;
mod ports;
mod scan;
mod value;
mod vlan;

pub use actions::parse_actions;
pub use actions_print::{print_actions, print_instructions};
pub use error::TextError;
pub use flow::{parse_filter, parse_flow};
pub use flow_print::{print_aggregate, print_flow, print_flow_mod};
pub use group::{parse_group, print_group, print_group_stats};
pub use match_print::print_match;
pub use meter::{parse_meter, print_meter, print_meter_stats};
pub use place::{parse_place, print_place};
pub use ports::{Name, Resolve, no_names, no_ports, parse_port, print_port};

#[cfg(test)]
mod tests;
