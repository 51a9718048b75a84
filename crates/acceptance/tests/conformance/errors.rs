//! Every error of OpenFlow 1.3.5 §7.4.4: what provokes it, or why suiro never sends it.
//!
//! The rows make the cases `errors::OFP…` and `docs/reference/openflow-errors.md`, which [`document`] keeps honest.

mod actions;
mod document;
mod full;
mod instructions;
mod matches;
mod modifications;
mod requests;

use crate::harness::{Answer, Bench, Suite};
use openflow::{ErrorCode, FlowMod, Instruction, Match, Message, TableId, Version};

/// One error.
pub struct Row {
    code: ErrorCode,
    /// When suiro sends it, or why it does not.
    when: &'static str,
    proof: Proof,
}

/// How it is known.
pub enum Proof {
    /// The case provokes it.
    Case(fn(&mut Bench, ErrorCode)),
    /// Another case does.
    Other(&'static str),
    /// It cannot occur.
    Never,
}

const fn sent(code: ErrorCode, when: &'static str, provoke: fn(&mut Bench, ErrorCode)) -> Row {
    Row { code, when, proof: Proof::Case(provoke) }
}

const fn elsewhere(code: ErrorCode, when: &'static str, test: &'static str) -> Row {
    Row { code, when, proof: Proof::Other(test) }
}

const fn never(code: ErrorCode, why: &'static str) -> Row {
    Row { code, when: why, proof: Proof::Never }
}

/// Why no code that ends in `EPERM` is sent, but one.
const PERMITTED: &str = "who may connect may do everything; a slave is told OFPBRC_IS_SLAVE";

/// All rows, by type and code.
fn rows() -> Vec<Row> {
    let tables = [
        requests::rows(),
        actions::rows(),
        instructions::rows(),
        matches::rows(),
        modifications::rows(),
    ];
    let mut rows: Vec<Row> = tables.into_iter().flatten().collect();
    rows.sort_by_key(|row| row.code.numbers());
    rows
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    for row in rows() {
        if let Proof::Case(provoke) = row.proof {
            let name =
                format!("errors::{}_{}", TYPES[usize::from(row.code.numbers().0)], row.code.name());
            suite.case(name, move |bench| provoke(bench, row.code));
        }
    }
    full::cases(suite);
    requests::hello(suite);
    suite.plain("errors::every_code_of_the_specification_has_its_row", || {
        let codes: Vec<ErrorCode> = rows().iter().map(|row| row.code).collect();
        assert_eq!(codes, ErrorCode::ALL);
    });
    suite.plain("errors::the_document_says_the_same", document::check);
}

/// `OFPET_*`, by number, as case names begin: codes' names are not unique without.
const TYPES: [&str; 14] = [
    "hello_failed",
    "bad_request",
    "bad_action",
    "bad_instruction",
    "bad_match",
    "flow_mod_failed",
    "group_mod_failed",
    "port_mod_failed",
    "table_mod_failed",
    "queue_op_failed",
    "switch_config_failed",
    "role_request_failed",
    "meter_mod_failed",
    "table_features_failed",
];

/// Each of these is refused by this code.
#[track_caller]
fn refuse(bench: &mut Bench, code: ErrorCode, requests: impl IntoIterator<Item = Message>) {
    for request in requests {
        bench.session.refuse(&request, code);
    }
}

/// Likewise for messages whose bytes no value has.
#[track_caller]
fn refuse_bytes(bench: &mut Bench, code: ErrorCode, messages: impl IntoIterator<Item = Vec<u8>>) {
    for bytes in messages {
        assert_eq!(bench.session.try_bytes(bytes.clone()), Answer::Refused(code), "{bytes:02x?}");
    }
}

/// A message of 1.3 of this type.
fn raw(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    let mut bytes = vec![Version::V1_3.wire(), kind];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

fn encoded(message: &Message) -> Vec<u8> {
    message.encode(Version::V1_3, 0).unwrap()
}

/// An entry with these instructions and match.
fn entry(fields: Match, instructions: Vec<Instruction>) -> FlowMod {
    FlowMod { table: TableId(1), fields, instructions, ..FlowMod::default() }
}

/// A flow-mod whose instructions are these bytes.
fn with_instructions(bytes: &[u8]) -> Vec<u8> {
    let head = encoded(&Message::FlowMod(entry(Match::default(), vec![])));
    raw(head[1], &[&head[8..], bytes].concat())
}

/// A flow-mod whose match, without the padding that it needs, is these bytes.
fn with_match(bytes: &[u8]) -> Vec<u8> {
    let head = encoded(&Message::FlowMod(entry(Match::default(), vec![])));
    let padding = vec![0; bytes.len().next_multiple_of(8) - bytes.len()];
    raw(head[1], &[&head[8..head.len() - 8], bytes, &padding].concat())
}

/// A flow-mod that applies the action of these bytes.
fn with_action(action: &[u8]) -> Vec<u8> {
    let length = (8 + action.len()) as u16;
    let [high, low] = length.to_be_bytes();
    with_instructions(&[&[0, 4, high, low, 0, 0, 0, 0], action].concat())
}

/// A message with another value at a place.
fn patched(message: &Message, at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = encoded(message);
    bytes[at..at + value.len()].copy_from_slice(value);
    bytes
}
