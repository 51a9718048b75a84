//! What the tests with live traffic share: a node's place with guests that have addresses, and who talks to them.
//!
//! Every value here ends what it started when it is dropped, also by a panic.

#[path = "../cli/place.rs"]
mod place;

mod background;
mod controller;
mod frames;
mod lab;
mod ofctl;
mod ping;
mod speaker;

pub use background::Background;
pub use controller::{Controller, python};
pub use frames::{inside, received, send_datagrams};
pub use lab::{Kind, Lab};
pub use ofctl::Ofctl;
pub use ping::{Pings, at_once};
pub use place::{Said, privileged, sh, until, until_within};
pub use speaker::{Speaker, encode};
