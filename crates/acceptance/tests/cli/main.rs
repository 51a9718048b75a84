//! The command line and the node, by the built binary, in network namespaces.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod again;
mod capture;
mod captured;
mod cards;
mod changes;
mod circuit;
mod client;
mod counters;
mod events;
mod forwarding;
mod golden;
mod guest;
mod hosts;
mod life;
mod messages;
mod metrics;
mod moves;
mod offload;
mod outside;
mod ovs;
mod package;
mod pair;
mod parts;
mod paths;
mod queues;
mod readers;
mod refusals;
mod restarts;
mod samples;
mod sealed;
mod sealing;
mod slices;
mod steered;
mod storms;
mod takeover;
mod tenants;
mod tunnels;
mod version;
mod way;
mod why;
