//! A flow program as the words that the programs of the kernel run.

use super::abi::{
    DEC_TTL, GIVEN, HEAD, IN_TUNNEL, INSIDE, IS_TCP, LIMITS_EACH, OUTSIDE, OUTSIDE_BYTES,
    OUTSIDE_SUM, OUTSIDE_TAG, OUTSIDE_WORDS, OffloadFlow, OffloadKey, POP_VLAN, PUSH_VLAN,
    SHAPES_EACH, WORDS, ZERO_SUM,
};
use super::key;
use offload::{Around, Counts, FlowProgram, LimitId, Outside, Patch, Side, Tag};
use wire::{eth_type, ip_proto};

/// Ethernet header, without a tag.
const L3: u16 = 14;
const TAG: u32 = 4;
const _: () = assert!(HEAD == offload::PATCHED && WORDS * 4 == HEAD);
const _: () = assert!(OUTSIDE_BYTES == offload::OUTSIDE && OUTSIDE_WORDS * 4 >= OUTSIDE_BYTES);

/// A flow without a key, to which nothing is done. Nobody has found yet that nothing of it is under way: its first frames came before it was known here.
pub(super) const NOTHING: OffloadFlow = OffloadFlow {
    gate: 0,
    done: GIVEN,
    frames: 0,
    bytes: 0,
    limited: 0,
    limited_bytes: 0,
    used_ns: 0,
    reserved: 0,
    keep: [u32::MAX; WORDS],
    put: [0; WORDS],
    exit: 0,
    max_len: 0,
    flags: 0,
    words: 0,
    l4_at: 0,
    reserved_1: 0,
    sum_at: 0,
    tag_tci: 0,
    tag_tpid: 0,
    ip_sum: 0,
    pseudo_sum: 0,
    ports_sum: 0,
    reserved_2: 0,
    limits: [0; LIMITS_EACH],
    key: OffloadKey {
        port: 0,
        tunnel: 0,
        dl_vlan: 0,
        dl_type: 0,
        dl_dst: [0; 6],
        dl_src: [0; 6],
        nw_src: [0; 16],
        nw_dst: [0; 16],
        tp_src: 0,
        tp_dst: 0,
        nw_proto: 0,
        nw_dscp: 0,
        reserved: 0,
    },
    shapes: [0; SHAPES_EACH],
    outside: [0; OUTSIDE_WORDS],
    outside_ip_sum: 0,
    outside_pseudo_sum: 0,
    outside_tci: 0,
    outside_tpid: 0,
    reserved_4: 0,
};

/// The value of a flow that no frame has taken, at the worker's side: it comes in at the port of that place, and leaves by that interface.
pub(super) fn of(port: u32, flow: &FlowProgram, exit: u32) -> OffloadFlow {
    let (key, patch, outside) = (key::of(port, flow), &Patch::of(flow), flow.outside());
    let l4_at = L3 + if key.dl_type == eth_type::IPV6 { 40 } else { 20 };
    let changed = (0..HEAD).rev().find(|&at| patch.keep[at] != 0xff);
    let tag = patch.push.unwrap_or(Tag { tpid: 0, tci: 0 });
    let outside_tag = outside.and_then(|outside| outside.tag);
    OffloadFlow {
        keep: words(&patch.keep),
        put: words(&patch.put),
        exit,
        max_len: flow.max_len.saturating_sub(if key.dl_vlan == 0 { 0 } else { TAG }),
        flags: flags(&key, patch) | outside_flags(flow),
        words: changed.map_or(0, |at| at as u16 / 4 + 1),
        l4_at,
        sum_at: sum_at(&key, patch).map_or(0, |at| l4_at + at),
        tag_tci: tag.tci,
        tag_tpid: tag.tpid,
        ip_sum: patch.ip_sum.to_be(),
        pseudo_sum: patch.pseudo_sum.to_be(),
        ports_sum: patch.ports_sum.to_be(),
        limits: places(&flow.limits),
        key,
        shapes: places(&flow.shapes),
        outside: outside.map_or([0; OUTSIDE_WORDS], |outside| outside_words(&outside)),
        outside_ip_sum: outside.map_or(0, |outside| outside.ip_sum().to_be()),
        outside_pseudo_sum: outside.map_or(0, |outside| outside.pseudo_sum().to_be()),
        outside_tci: outside_tag.map_or(0, |tag| tag.tci),
        outside_tpid: outside_tag.map_or(0, |tag| tag.tpid),
        ..NOTHING
    }
}

fn outside_words(outside: &Outside) -> [u32; OUTSIDE_WORDS] {
    let byte = |at: usize| outside.head.get(at).copied().unwrap_or(0);
    std::array::from_fn(|word| u32::from_ne_bytes(std::array::from_fn(|at| byte(4 * word + at))))
}

/// The tunnel's headers that the words put around a frame, or take off.
pub(super) fn around(flow: &OffloadFlow) -> Option<Around> {
    let is = |bit| flow.flags & bit != 0;
    let tag = || Tag { tpid: flow.outside_tpid, tci: flow.outside_tci };
    let outside = Outside {
        head: std::array::from_fn(|at| flow.outside[at / 4].to_ne_bytes()[at % 4]),
        tag: is(OUTSIDE_TAG).then(tag),
        has_sum: is(OUTSIDE_SUM),
    };
    match () {
        () if is(OUTSIDE) => Some(Around::On(outside)),
        () if is(INSIDE) => Some(Around::Off { outside, vni: flow.key.tunnel & !IN_TUNNEL }),
        () => None,
    }
}

/// Places as a flow has them: each plus 1, 0 behind the last.
fn places<const N: usize>(limits: &[LimitId]) -> [u32; N] {
    std::array::from_fn(|at| limits.get(at).map_or(0, |limit| limit.0 + 1))
}

fn words(bytes: &[u8; HEAD]) -> [u32; WORDS] {
    let (words, _) = bytes.as_chunks();
    std::array::from_fn(|at| u32::from_ne_bytes(words[at]))
}

fn bytes(words: &[u32; WORDS]) -> [u8; HEAD] {
    std::array::from_fn(|at| words[at / 4].to_ne_bytes()[at % 4])
}

fn flags(key: &OffloadKey, patch: &Patch) -> u32 {
    let flag = |is: bool, bit: u32| if is { bit } else { 0 };
    flag(key.nw_proto == ip_proto::TCP, IS_TCP)
        | flag(patch.dec_ttl, DEC_TTL)
        | flag(patch.pop, POP_VLAN)
        | flag(patch.push.is_some(), PUSH_VLAN)
        | flag(key.nw_proto == ip_proto::UDP, ZERO_SUM)
}

fn outside_flags(flow: &FlowProgram) -> u32 {
    let flag = |is: bool, bit: u32| if is { bit } else { 0 };
    flow.outside().map_or(0, |outside| {
        let is_off = flow.approach.is_some();
        flag(is_off, INSIDE)
            | flag(!is_off, OUTSIDE)
            | flag(outside.has_sum, OUTSIDE_SUM)
            | flag(outside.tag.is_some(), OUTSIDE_TAG)
    })
}

/// Where in the transport header the sum is that changes, if one does. That of ICMP over IPv4 covers no addresses.
fn sum_at(key: &OffloadKey, patch: &Patch) -> Option<u16> {
    let pseudo = if key.nw_proto == ip_proto::ICMP { 0 } else { patch.pseudo_sum };
    if pseudo | patch.ports_sum == 0 {
        return None;
    }
    Some(match key.nw_proto {
        ip_proto::TCP => 16,
        ip_proto::UDP => 6,
        _ => 2,
    })
}

/// What the words do, as a patch again.
pub(super) fn patch(flow: &OffloadFlow) -> Patch {
    let is = |bit| flow.flags & bit != 0;
    Patch {
        keep: bytes(&flow.keep),
        put: bytes(&flow.put),
        ip_sum: u16::from_be(flow.ip_sum),
        pseudo_sum: u16::from_be(flow.pseudo_sum),
        ports_sum: u16::from_be(flow.ports_sum),
        dec_ttl: is(DEC_TTL),
        pop: is(POP_VLAN),
        push: is(PUSH_VLAN).then_some(Tag { tpid: flow.tag_tpid, tci: flow.tag_tci }),
    }
}

pub(super) fn counts(flow: &OffloadFlow) -> Counts {
    Counts {
        frames: flow.frames,
        bytes: flow.bytes,
        limited: flow.limited,
        limited_bytes: flow.limited_bytes,
        used: flow::Nanos(flow.used_ns),
    }
}

/// Of a gate.
pub(super) fn side(gate: u64) -> Side {
    if gate & super::abi::RUNG == 0 { Side::Worker } else { Side::Rung }
}
