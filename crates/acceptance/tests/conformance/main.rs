//! OpenFlow's rules one by one, on real frames through real ports of one running node.
//!
//! A case is a row of a table more often than a function, so the test program names its cases itself: `cargo test -p suiro-acceptance --test
//! conformance -- --list` lists them, and a part of a name after `--` chooses among them. Every case has a
//! switch of its own while it runs ([`harness::Bench`]), programs it through an OpenFlow session and looks at the frames
//! that come out of its ports.
//!
//! What a frame must look like is computed by [`oracle`] from the RFCs and OpenFlow 1.3.5, and shares no line with suiro.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod actions;
mod buffers;
mod documented;
mod errors;
mod fields;
mod fragments;
mod groups;
mod harness;
mod instructions;
mod messages;
mod meters;
mod multiparts;
mod oracle;
mod ports;
mod queues;
mod rules;
mod v10;

use harness::Suite;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut suite = Suite::default();
    harness::cases(&mut suite);
    suite.plain("oracle::sums_give_known_answers", oracle::known_answers);
    fields::cases(&mut suite);
    actions::cases(&mut suite);
    instructions::cases(&mut suite);
    fragments::cases(&mut suite);
    ports::cases(&mut suite);
    queues::cases(&mut suite);
    rules::cases(&mut suite);
    buffers::cases(&mut suite);
    groups::cases(&mut suite);
    meters::cases(&mut suite);
    multiparts::cases(&mut suite);
    messages::cases(&mut suite);
    errors::cases(&mut suite);
    v10::cases(&mut suite);
    documented::cases(&mut suite);
    suite.run()
}
