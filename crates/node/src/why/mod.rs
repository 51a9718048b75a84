//! Why a packet goes where it goes: from what a user asks to a frame, and from the datapath's answer to words.

mod beyond;
mod near;
mod question;
mod reasons;
mod story;
mod watch;
mod words;

pub use beyond::Beyond;
pub use question::read;
pub use story::{Place, Places, tell};
pub use words::name;
