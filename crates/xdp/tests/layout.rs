//! The Rust mirror of `abi.h` against the object's BTF (linux/btf.h), which clang wrote from the same header.

mod btf;

use btf::{Btf, Layout};
use std::mem::offset_of;
use xdp::{
    BURST_MAX, Burst, EXITS_MAX, OBJECT, QUEUES_MAX, SLOT_BYTES, Slot, Stage, TRANSMIT_OBJECT,
    Verdict, VerdictCount,
};

#[test]
fn verdict_count_is_laid_out_as_in_the_program() {
    let fields = vec![
        ("frames".into(), offset_of!(VerdictCount, frames)),
        ("bytes".into(), offset_of!(VerdictCount, bytes)),
    ];
    let mirror = Layout { size: size_of::<VerdictCount>(), fields };
    assert_eq!(Btf::of(OBJECT).layout_of("verdict_count"), mirror);
}

#[test]
fn a_burst_is_laid_out_as_in_the_program() {
    let named = |fields: &[(&str, usize)]| -> Vec<(String, usize)> {
        fields.iter().map(|&(name, at)| (name.to_owned(), at)).collect()
    };
    let btf = Btf::of(TRANSMIT_OBJECT);
    let slot = [
        ("exit", offset_of!(Slot, exit)),
        ("len", offset_of!(Slot, len)),
        ("bytes", offset_of!(Slot, bytes)),
    ];
    assert_eq!(btf.layout_of("slot"), Layout { size: size_of::<Slot>(), fields: named(&slot) });
    let burst = [
        ("run", offset_of!(Burst, run)),
        ("flushed", offset_of!(Burst, flushed)),
        ("sent", offset_of!(Burst, sent)),
        ("error", offset_of!(Burst, error)),
        ("cpu", offset_of!(Burst, cpu)),
        ("reserved", offset_of!(Burst, reserved)),
        ("slots", offset_of!(Burst, slots)),
    ];
    assert_eq!(btf.layout_of("burst"), Layout { size: size_of::<Burst>(), fields: named(&burst) });
}

#[test]
fn constants_are_those_of_the_header() {
    let header = include_str!("../bpf/abi.h");
    let define = |name: &str| -> u32 {
        let line =
            header.lines().find(|line| line.split_whitespace().nth(1) == Some(name)).unwrap();
        line.split_whitespace().nth(2).unwrap().parse().unwrap()
    };
    assert_eq!(define("SUIRO_QUEUES_MAX"), QUEUES_MAX);
    assert_eq!(define("SUIRO_VERDICT_WORKER"), Verdict::Worker as u32);
    assert_eq!(define("SUIRO_VERDICT_PASS"), Verdict::Pass as u32);
    assert_eq!(define("SUIRO_VERDICT_NO_SOCKET"), Verdict::NoSocket as u32);
    assert_eq!(define("SUIRO_STAGE_OFFLOAD"), Stage::Offload as u32);
    assert_eq!(define("SUIRO_STAGE_STEER"), Stage::Steer as u32);
    assert_eq!(define("SUIRO_STAGE_WORKER"), Stage::Worker as u32);
    assert_eq!(define("SUIRO_BURST_MAX") as usize, BURST_MAX);
    assert_eq!(define("SUIRO_SLOT_BYTES") as usize, SLOT_BYTES);
    assert_eq!(define("SUIRO_EXITS_MAX"), EXITS_MAX);
    assert_eq!(define("SUIRO_VERDICTS") as usize, Verdict::ALL.len());
}
