//! # serve: what all HTTP servers of suiro share
//!
//! **Question answered**: how are bodies and queries read, and what does every error look like?
//!
//! The node's local API and the domain's controller both are servers of HTTP/1.1 with JSON. What each serves is its own; how errors
//! look, and how bodies are read and streamed, is written here once.
//!
//! * [`server`]: connections, as many as may be; [`crowd`]: who goes when there are more; [`bodies`]: what all of them send together; [`hit`]: who hears of what is too much.
//! * [`error`]: an error on its way out: a status, and the body of [`api::ErrorBody`].
//! * [`extract`]: bodies and queries whose errors are answered like every other.
//! * [`stream`]: bodies that are sent as they come about.
//! * [`upgrade`]: connections that leave HTTP.
//! * [`feed`]: what happened, in one order, for whoever listens; [`events`]: the same as server-sent events.

pub mod bodies;
pub mod crowd;
pub mod error;
pub mod events;
pub mod extract;
pub mod feed;
pub mod hit;
pub mod server;
pub mod stream;
pub mod upgrade;
