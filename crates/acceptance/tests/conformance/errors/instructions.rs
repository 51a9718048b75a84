//! `OFPET_BAD_INSTRUCTION`.

use super::{PERMITTED, Row, entry, never, refuse, refuse_bytes, sent, with_instructions};
use openflow::{ErrorCode as Code, Instruction, Match, Message, TableId};

fn with(instructions: Vec<Instruction>) -> Message {
    Message::FlowMod(entry(Match::default(), instructions))
}

/// The rows.
pub fn rows() -> Vec<Row> {
    vec![
        sent(
            Code::BadInstructionUnknownInst,
            "an instruction type that OpenFlow 1.3 does not define",
            |bench, code| {
                refuse_bytes(
                    bench,
                    code,
                    [0, 7].map(|kind| with_instructions(&[0, kind, 0, 8, 0, 0, 0, 0])),
                );
            },
        ),
        sent(
            Code::BadInstructionUnsupInst,
            "an instruction type twice in one entry",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    [with(vec![Instruction::ClearActions, Instruction::ClearActions])],
                );
            },
        ),
        sent(
            Code::BadInstructionBadTableId,
            "goto a table that is no later one or does not exist",
            |bench, code| {
                // The entry is in table 1.
                refuse(
                    bench,
                    code,
                    [0, 1, 254, 255]
                        .map(|table| with(vec![Instruction::GotoTable(TableId(table))])),
                );
            },
        ),
        never(Code::BadInstructionUnsupMetadata, "all 64 bits of metadata can be written"),
        never(Code::BadInstructionUnsupMetadataMask, "any mask can be"),
        sent(
            Code::BadInstructionBadExperimenter,
            "an experimenter's instruction",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    [with(vec![Instruction::Experimenter { experimenter: 9, body: vec![] }])],
                );
            },
        ),
        never(
            Code::BadInstructionBadExpType,
            "no experimenter's instructions are known, so none is of a wrong type",
        ),
        sent(
            Code::BadInstructionBadLen,
            "an instruction longer or shorter than its type, or past the end",
            |bench, code| {
                let short: [&[u8]; 4] = [
                    &[0, 1, 0, 4, 5, 0, 0, 0],
                    &[0, 1, 0, 16, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                    &[0, 2, 0, 8, 0, 0, 0, 0],
                    &[0, 1, 0, 16, 5, 0, 0, 0],
                ];
                refuse_bytes(bench, code, short.map(with_instructions));
            },
        ),
        never(Code::BadInstructionEperm, PERMITTED),
    ]
}
