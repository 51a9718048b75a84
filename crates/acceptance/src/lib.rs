//! # acceptance: suiro from outside, as its users meet it
//!
//! **Question answered**: what do the tests of the built binary share?
//!
//! * [`suiro()`]: the binary under test.
//! * [`Place`]: a directory and a network namespace for one node. [`Lab`]: a place with guests that have addresses.
//! * [`Background`], [`Controller`], [`Ofctl`], [`Speaker`], [`Pings`]: who talks to the node and through it.
//!
//! The tests link no crate of the node: they know its command line, its API and its sockets. So they can run against any
//! binary that `SUIRO` names: another version's, or an installed package's.
//!
//! Every value here ends what it started when it is dropped, also by a panic.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod background;
mod binary;
mod controller;
mod frames;
mod lab;
mod ofctl;
mod ping;
mod place;
mod speaker;
mod tshark;

pub use background::Background;
pub use binary::suiro;
pub use controller::{Controller, python};
pub use frames::{inside, received, send_datagrams};
pub use lab::{Kind, Lab, at_once};
pub use ofctl::Ofctl;
pub use ping::Pings;
pub use place::{Place, Said, Then, privileged, request, sh, until, until_within};
pub use speaker::{Speaker, encode};
pub use tshark::tshark;
