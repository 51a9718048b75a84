//! The mirror against the objects' BTF and against the header.

use super::abi::{
    self, Packet, PacketSum, SteerClock, SteerConfig, SteerCore, SteerCount, SteerDone, SteerEntry,
    SteerEvent, SteerLine, SteerLook, SteerMask, SteerMasks, SteerPlaced, SteerReceived, SteerRing,
    SteerShown, SteerShownCount, SteerTable, SteerTableCore, SteerThread, SteerUnit,
};
use super::{OBJECTS, Steered};
use crate::btf::{Btf, Layout};
use crate::mirror::Mirror;
use place::Reason;

const STEER: usize = 0;
const TRACE: usize = 1;
const DISSECT: usize = 2;

fn same<T: Mirror>(object: usize) {
    let fields = T::FIELDS.iter().map(|&(name, at)| (name.to_owned(), at)).collect();
    let mirror = Layout { size: size_of::<T>(), fields };
    assert_eq!(Btf::of(OBJECTS[object]).layout_of(T::NAME), mirror, "{}", T::NAME);
}

#[test]
fn structs_are_laid_out_as_in_the_programs() {
    same::<SteerConfig>(STEER);
    same::<SteerMask>(STEER);
    same::<SteerMasks>(STEER);
    same::<SteerEntry>(STEER);
    same::<SteerLine>(STEER);
    same::<SteerUnit>(STEER);
    same::<SteerDone>(STEER);
    same::<SteerRing>(STEER);
    same::<SteerReceived>(STEER);
    same::<SteerCount>(STEER);
    same::<SteerEvent>(STEER);
    same::<SteerLook>(STEER);
    same::<SteerShown>(STEER);
    same::<SteerShownCount>(STEER);
    same::<SteerTableCore>(STEER);
    same::<SteerTable>(STEER);
    same::<SteerPlaced>(STEER);
    same::<SteerCore>(TRACE);
    same::<SteerClock>(TRACE);
    same::<SteerThread>(TRACE);
    same::<Packet>(DISSECT);
    same::<PacketSum>(DISSECT);
}

/// A number of the header; `#define NAME NUMBER`.
fn define(name: &str) -> u64 {
    let header = include_str!("../../bpf/abi.h");
    let line = header.lines().find(|line| line.split_whitespace().nth(1) == Some(name));
    let text = line.expect(name).split_whitespace().nth(2).expect(name);
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).expect(name),
        None => text.parse().expect(name),
    }
}

#[test]
fn numbers_are_those_of_the_header() {
    let numbers: [(&str, u64); 43] = [
        ("STEER_WORDS", abi::WORDS as u64),
        ("STEER_FLOW_WORDS", abi::FLOW_WORDS as u64),
        ("STEER_FLOW_WORD5", place::steering::FLOW_WORD5),
        ("STEER_MASKS", abi::MASKS as u64),
        ("STEER_PINNED", abi::PINNED as u64),
        ("STEER_CORES", abi::CORES as u64),
        ("STEER_SLOTS", abi::SLOTS.into()),
        ("STEER_CPUS", abi::CPUS.into()),
        ("STEER_GROUPS_MAX", abi::GROUPS_MAX.into()),
        ("STEER_FCF_FIRST", abi::FCF_FIRST.into()),
        ("STEER_ENTRY_FIRST", abi::ENTRY_FIRST.into()),
        ("STEER_ENTRIES", abi::ENTRIES_MAX.into()),
        ("STEER_PLACES", abi::PLACES as u64),
        ("STEER_PLACE_LEFT", abi::PLACE_LEFT.into()),
        ("STEER_SHAPE_ALL", abi::SHAPE_ALL.into()),
        ("STEER_SHAPE_FLOW", abi::SHAPE_FLOW.into()),
        ("STEER_SHAPE_IPV4", abi::SHAPE_IPV4.into()),
        ("STEER_IPV4_WORDS", abi::IPV4_WORDS.len() as u64),
        ("STEER_TUNNEL", place::steering::TUNNEL.into()),
        ("STEER_VLAN", place::steering::VLAN.into()),
        ("STEER_POLICY_HASH", abi::POLICY_HASH.into()),
        ("STEER_POLICY_VSE", abi::POLICY_VSE.into()),
        ("STEER_IS_PRIORITY", abi::IS_PRIORITY.into()),
        ("STEER_WANTS_OWN", abi::WANTS_OWN.into()),
        ("STEER_BY_HASH", abi::BY_HASH.into()),
        ("STEER_SENT_BITS", abi::SENT_BITS.into()),
        ("STEER_LOCAL", abi::LOCAL.into()),
        ("STEER_ROUTE_NONE", abi::ROUTE_NONE.into()),
        ("STEER_UNDECIDED", abi::UNDECIDED.into()),
        ("STEER_URGENT", abi::URGENT.into()),
        ("STEER_REASON_SHIFT", abi::REASON_SHIFT.into()),
        ("STEER_COMING", abi::COMING.into()),
        ("STEER_GOING", abi::GOING.into()),
        ("STEER_EVENT_PLACED", abi::EVENT_PLACED.into()),
        ("STEER_EVENT_MOVED", abi::EVENT_MOVED.into()),
        ("STEER_EVENT_GIVEN_UP", abi::EVENT_GIVEN_UP.into()),
        ("STEER_BEFORE", abi::BEFORE.into()),
        ("STEER_AFTER", abi::AFTER.into()),
        ("STEER_DROPPED", abi::DROPPED.into()),
        ("STEER_SIDES", abi::SIDES as u64),
        ("STEER_SHOWN_MAX", abi::SHOWN_MAX.into()),
        ("STEER_TIMES", abi::TIMES as u64),
        ("STEER_COUNTS", abi::COUNTS.into()),
    ];
    for (name, number) in numbers {
        assert_eq!(define(name), number, "{name}");
    }
    assert_eq!(define("STEER_UNITS"), u64::from(abi::ENTRY_FIRST + abi::ENTRIES_MAX));
    assert_eq!(define("STEER_NO_CLOCK"), u64::from(abi::NO_CLOCK));
    assert_eq!(define("STEER_NO_UNIT"), u64::from(abi::NO_UNIT));
}

#[test]
fn what_became_of_frames_and_reasons_have_the_headers_numbers() {
    let names = [
        "MISSED",
        "NOT_IP",
        "STAYED",
        "SENT",
        "QUEUE_FULL",
        "DRAINING",
        "NO_QUEUE",
        "NO_META",
        "ODD",
        "UNSUMMED",
        "PIECE",
        "FRAG_FOLLOWED",
        "FRAG_ORPHAN",
        "SUMMED",
        "UNKNOWN",
    ];
    for (name, what) in names.iter().zip(Steered::ALL) {
        assert_eq!(define(&format!("STEER_{name}")), what as u64, "{name}");
    }
    let reasons = [
        ("FIXED", Reason::Fixed),
        ("HASH", Reason::Hash),
        ("LEAST_LOADED", Reason::LeastLoaded),
        ("PRIORITY", Reason::Priority),
        ("OWN_CORE", Reason::OwnCore),
        ("OWN_CORE_WANTED", Reason::OwnCoreWanted),
        ("ABOVE_THRESHOLD", Reason::AboveThreshold),
        ("NO_CORE", Reason::NoCore),
    ];
    for (name, reason) in reasons {
        assert_eq!(define(&format!("STEER_REASON_{name}")), u64::from(reason.code()), "{name}");
    }
    assert_eq!(place::CORES_MAX, abi::CORES);
    assert_eq!(place::PINNED_MAX, abi::PINNED);
}
