//! Any actions on any frame, from bytes: the program that they compile to does to the frame what the worker does, or leaves it as it is.
//!
//! Input: the number of actions and how many of them are in the first of two tables (a byte each), a byte that chooses a partial checksum
//! and where the second frame begins, four bytes for each action, then the frame whose flow is compiled. The second frame is the end of it,
//! and is run by the same program.

use super::play::{Left, pipeline, program, worker};
use flow::{Action, FlowMod, Instructions, Output, Transport};
use offload::{FlowProgram, Frame, apply};
use wire::{Field, Head, PartialChecksum, ip_proto, parse};

/// What rules may set, and bits of it.
const FIELDS: [(Field, u32); 12] = [
    (Field::EthDst, 48),
    (Field::EthSrc, 48),
    (Field::VlanVid, 12),
    (Field::VlanPcp, 3),
    (Field::IpDscp, 6),
    (Field::IpEcn, 2),
    (Field::Ipv4Src, 32),
    (Field::Ipv4Dst, 32),
    (Field::Ipv6Src, 128),
    (Field::Ipv6Dst, 128),
    (Field::TpSrc, 16),
    (Field::TpDst, 16),
];
const PRESENT: u128 = 0x1000;

/// Compiles what `input` says, and compares. Whether the program took a frame.
pub fn check(input: &[u8]) -> bool {
    let Some((&[count, first, how], rest)) = input.split_first_chunk() else { return false };
    let count = usize::from(count % 12).min(rest.len() / 4);
    let (actions, frames) = rest.split_at(4 * count);
    let actions: Vec<Action> = actions.chunks_exact(4).map(action).collect();
    let (first, second) = actions.split_at(usize::from(first).min(actions.len()));
    let Some(mut pipeline) = pipeline(&rules(first, second)) else { return false };
    let whole = frame(how, frames);
    let Ok(flow) = program(&mut pipeline, &whole) else { return false };
    let other = frame(how / 2, &frames[frames.len().min(usize::from(how) % 64)..]);
    let mut worker = |frame: &Frame| worker(&mut pipeline, frame);
    let first = is_taken(&flow, &whole, &mut worker);
    is_taken(&flow, &other, &mut worker) || first
}

fn is_taken(flow: &FlowProgram, frame: &Frame, worker: impl FnOnce(&Frame) -> Left) -> bool {
    let mut sent = frame.clone();
    if !apply(flow, &mut sent) {
        assert_eq!(&sent, frame, "what is the worker's is not touched");
        return false;
    }
    let growth = sent.bytes.len() as i64 - frame.bytes.len() as i64;
    assert_eq!(growth, i64::from(flow.growth), "{flow:?}");
    let left = Left(vec![(flow.exit.port, sent.bytes, sent.partial)]);
    assert_eq!(worker(frame), left, "{flow:?}\n{frame:?}");
    true
}

/// A frame, whose transport checksum is partial if that is asked and it has one.
fn frame(how: u8, bytes: &[u8]) -> Frame {
    let (key, layers) = parse(&Head::copy_of(bytes), 1);
    let offset = match key.get(Field::IpProto) as u8 {
        ip_proto::TCP => Some(16),
        ip_proto::UDP => Some(6),
        _ => None,
    };
    let partial = offset.filter(|_| how % 2 == 1 && layers.l4 != 0 && layers.payload != 0);
    let partial = partial.map(|offset| PartialChecksum { start: layers.l4, offset });
    Frame { bytes: bytes.to_vec(), in_port: 1, segment: None, partial }
}

/// The first table goes on to the second, which sends by port 2.
fn rules(first: &[Action], second: &[Action]) -> [FlowMod; 2] {
    let rule = |table, apply, goto| FlowMod {
        table: Some(table),
        instructions: Instructions { apply, goto, ..Instructions::default() },
        may_miss_headers: true,
        ..FlowMod::default()
    };
    let out = [second, &[Action::Output(Output::Port(2))]].concat();
    [rule(0, first.to_vec(), Some(1)), rule(1, out, None)]
}

fn action(bytes: &[u8]) -> Action {
    let [what, a, b, c] = *bytes else { unreachable!("chunks of four") };
    match what % 16 {
        0 => Action::PushVlan(if a % 4 == 0 { 0x88a8 } else { 0x8100 }),
        1 => Action::PopVlan,
        2 => Action::EnsureVlan,
        3 => Action::DecNwTtl,
        4 => Action::SetQueue(u32::from(a % 4)),
        5 => Action::SetNwTtl(a),
        _ => {
            let (field, bits) = FIELDS[usize::from(a) % FIELDS.len()];
            // A value of all widths from two bytes: a pattern, or a small number.
            let pattern = u128::from_be_bytes([b; 16]) ^ u128::from(c);
            let value = pattern & field.full() & u128::MAX >> (128 - bits);
            let is_tag = field == Field::VlanVid;
            let transports = !Transport::with(field).is_empty();
            let transport = if what & 0x10 == 0 { Transport::Tcp } else { Transport::Udp };
            Action::SetField {
                field,
                of: transports.then_some(transport),
                value: if is_tag { value | PRESENT } else { value },
                mask: match what & 0x20 != 0 && !is_tag {
                    true => u128::from_be_bytes([c; 16]).rotate_left(u32::from(b)) & field.full(),
                    false => field.full(),
                },
            }
        }
    }
}
