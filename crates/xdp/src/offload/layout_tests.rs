//! The mirror against the object's BTF and against the header.

use super::abi::{self, OffloadFlow, OffloadKey, OffloadLimit, OffloadPort};
use super::tc::OBJECT;
use crate::btf::{Btf, Layout};
use crate::mirror::Mirror;

fn same<T: Mirror>() {
    let fields = T::FIELDS.iter().map(|&(name, at)| (name.to_owned(), at)).collect();
    let mirror = Layout { size: size_of::<T>(), fields };
    assert_eq!(Btf::of(OBJECT).layout_of(T::NAME), mirror, "{}", T::NAME);
}

#[test]
fn structs_are_laid_out_as_in_the_programs() {
    same::<OffloadKey>();
    same::<OffloadFlow>();
    same::<OffloadPort>();
    same::<OffloadLimit>();
}

#[test]
fn numbers_are_those_of_the_header() {
    let header = include_str!("../../bpf/offload.h");
    let define = |name: &str| -> u32 {
        let line = header.lines().find(|line| line.split_whitespace().nth(1) == Some(name));
        let number = line.expect(name).split_whitespace().nth(2).expect(name);
        let hex = number.strip_prefix("0x").map(|hex| u32::from_str_radix(hex, 16));
        hex.unwrap_or_else(|| number.parse()).expect(name)
    };
    let numbers = [
        ("OFFLOAD_FLOWS", abi::FLOWS),
        ("OFFLOAD_PORTS", abi::PORTS),
        ("OFFLOAD_LIMITS", abi::LIMITS),
        ("OFFLOAD_LIMITS_EACH", abi::LIMITS_EACH as u32),
        ("OFFLOAD_HEAD", abi::HEAD as u32),
        ("OFFLOAD_WORDS", abi::WORDS as u32),
        ("OFFLOAD_GENERATION_SHIFT", abi::GENERATION_SHIFT),
        ("OFFLOAD_IS_TCP", abi::IS_TCP),
        ("OFFLOAD_DEC_TTL", abi::DEC_TTL),
        ("OFFLOAD_POP_VLAN", abi::POP_VLAN),
        ("OFFLOAD_PUSH_VLAN", abi::PUSH_VLAN),
        ("OFFLOAD_ZERO_SUM", abi::ZERO_SUM),
        ("OFFLOAD_OUTSIDE", abi::OUTSIDE),
        ("OFFLOAD_OUTSIDE_SUM", abi::OUTSIDE_SUM),
        ("OFFLOAD_OUTSIDE_TAG", abi::OUTSIDE_TAG),
        ("OFFLOAD_INSIDE", abi::INSIDE),
        ("OFFLOAD_IN_TUNNEL", abi::IN_TUNNEL),
        ("OFFLOAD_PORT_TC", abi::PORT_TC),
        ("OFFLOAD_PORT_XDP", abi::PORT_XDP),
    ];
    for (name, value) in numbers {
        assert_eq!(define(name), value, "{name}");
    }
}
