//! The Rust mirror of `bpf/offload.h`: same names, same order. A test compares every struct with the object's BTF, and every number with the
//! header.

use crate::mirror::{Mirror, mirrors};

pub(crate) const FLOWS: u32 = 16_384;
pub(crate) const PORTS: u32 = 1024;
pub(crate) const LIMITS: u32 = 4096;
pub(crate) const LIMITS_EACH: usize = 4;
pub(crate) const SHAPES_EACH: usize = 2;
pub(crate) const HEAD: usize = 64;
pub(crate) const WORDS: usize = 16;

pub(crate) const RUNG: u64 = 1 << 63;
pub(crate) const WANTED: u64 = 1 << 62;
pub(crate) const GENERATION_SHIFT: u32 = 52;
pub(crate) const GIVEN: u64 = (1 << GENERATION_SHIFT) - 1;

pub(crate) const IS_TCP: u32 = 1;
pub(crate) const DEC_TTL: u32 = 2;
pub(crate) const POP_VLAN: u32 = 4;
pub(crate) const PUSH_VLAN: u32 = 8;
pub(crate) const ZERO_SUM: u32 = 16;
pub(crate) const OUTSIDE: u32 = 32;
pub(crate) const OUTSIDE_SUM: u32 = 64;
pub(crate) const OUTSIDE_TAG: u32 = 128;
pub(crate) const INSIDE: u32 = 256;

pub(crate) const IN_TUNNEL: u32 = 0x100_0000;

pub(crate) const OUTSIDE_BYTES: usize = 50;
pub(crate) const OUTSIDE_WORDS: usize = 13;

pub(crate) const KILOBITS: u64 = 0;
pub(crate) const FRAMES: u64 = 1;
pub(crate) const BITS: u64 = 2;

pub(crate) const PORT_TC: u32 = 1;
pub(crate) const PORT_XDP: u32 = 2;

mirrors! {
    /// `struct offload_key`.
    OffloadKey = "offload_key" {
        /// Place in map `ports`.
        port: u32,
        /// What it came in: its VNI and [`IN_TUNNEL`]; 0: it came by itself.
        tunnel: u32,
        /// Pcp 3, present 1, vid 12; 0: untagged.
        dl_vlan: u16,
        /// Ethernet type.
        dl_type: u16,
        /// Destination.
        dl_dst: [u8; 6],
        /// Source.
        dl_src: [u8; 6],
        /// IPv4: the first 4 bytes, others 0.
        nw_src: [u8; 16],
        /// Likewise.
        nw_dst: [u8; 16],
        /// ICMP: type.
        tp_src: u16,
        /// ICMP: code.
        tp_dst: u16,
        /// IP protocol.
        nw_proto: u8,
        /// DSCP.
        nw_dscp: u8,
        /// Zero.
        reserved: u16,
    }
    /// `struct offload_flow`.
    OffloadFlow = "offload_flow" {
        /// Side, wanted side, generation, given.
        gate: u64,
        /// Of those given, how many the worker has sent or dropped.
        done: u64,
        /// That the rung took.
        frames: u64,
        /// Theirs.
        bytes: u64,
        /// Of those frames, refused by a limit.
        limited: u64,
        /// Theirs.
        limited_bytes: u64,
        /// When the last one came.
        used_ns: u64,
        /// Zero.
        reserved: u64,
        /// Bits of the head that stay.
        keep: [u32; WORDS],
        /// Bits that replace the others.
        put: [u32; WORDS],
        /// Interface index.
        exit: u32,
        /// Longest frame, or segment of one, without its tag.
        max_len: u32,
        /// Bits.
        flags: u32,
        /// Of the head, the last that changes included.
        words: u16,
        /// Where the transport header begins.
        l4_at: u16,
        /// Zero.
        reserved_1: u16,
        /// Where the transport checksum is; 0: it stays.
        sum_at: u16,
        /// Of the tag to push.
        tag_tci: u16,
        /// Its type.
        tag_tpid: u16,
        /// To add to the IPv4 header's sum, as it lies in a frame.
        ip_sum: u16,
        /// To the pseudo-header's.
        pseudo_sum: u16,
        /// To the transport's.
        ports_sum: u16,
        /// Zero.
        reserved_2: u16,
        /// Places in map `limits`, plus 1.
        limits: [u32; LIMITS_EACH],
        /// What leads to it.
        key: OffloadKey,
        /// Places in map `limits`, plus 1.
        shapes: [u32; SHAPES_EACH],
        /// A tunnel's headers.
        outside: [u32; OUTSIDE_WORDS],
        /// Of their IPv4 header, as it lies in a frame.
        outside_ip_sum: u16,
        /// Of UDP's pseudo-header, without the length.
        outside_pseudo_sum: u16,
        /// Of their tag.
        outside_tci: u16,
        /// Its type.
        outside_tpid: u16,
        /// Zero.
        reserved_4: u32,
    }
    /// `struct offload_port`.
    OffloadPort = "offload_port" {
        /// Frames that the socket's filter let through.
        seq: u64,
        /// Frames for a worker that there is not.
        orphans: u64,
        /// How many flows it has.
        flows: u32,
        /// Whose port it is; 0: nobody's.
        ifindex: u32,
        /// The interface's namespace, by inode.
        netns: u64,
        /// Which rung it is on.
        rung: u32,
        /// How many of its flows come in tunnels.
        inside: u32,
        /// Zero.
        reserved: [u64; 3],
    }
    /// `struct offload_limit`.
    OffloadLimit = "offload_limit" {
        /// When the bucket is full again.
        full_at: u64,
        /// How far ahead that may be.
        burst: u64,
        /// So many a second.
        rate: u64,
        /// Of these.
        unit: u64,
        /// Time for which it was full.
        idle: u64,
        /// Of the frames refused, those that others were faster than.
        given_up: u64,
        /// Frames that it dropped.
        refused: u64,
        /// Theirs.
        refused_bytes: u64,
    }
}
