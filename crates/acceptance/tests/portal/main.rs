//! The portal as its users meet it: a browser, a domain, nothing in between.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod browser;
mod doors;
mod lab;
mod story;
