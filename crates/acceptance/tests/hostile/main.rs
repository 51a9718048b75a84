//! Everything that a hostile guest, peer or neighbour on the host may do: each gives an error that names thing, step and remedy,
//! while two guests of another switch talk on without losing a single ping.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod bystanders;
mod controllers;
mod files;
mod garbage;
mod interfaces;
mod neighbours;
mod peers;
mod requests;
mod rights;
mod seen;

use bystanders::Bystanders;
