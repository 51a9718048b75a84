//! What loads the contenders.

pub mod frames;
pub mod latency;
pub mod openflow;
pub mod request;
pub mod tcp;
