//! The one binary of suiro.
fn main() {}
