//! The Rust mirror of the steering part of `bpf/abi.h`: same names, same order. A test compares every struct with the objects' BTF, and
//! every number with the header.

use crate::mirror::{Mirror, mirrors};
pub(crate) use place::steering::{FLOW_WORDS, GROUPS_MAX, MASKS, WORDS};

pub(crate) const PINNED: usize = 16;
pub(crate) const CORES: usize = 128;
/// Interfaces steered at a time on one host.
pub const SLOTS: u32 = 64;
/// Processors that steering has room for.
pub const CPUS: u32 = 512;
pub(crate) const FCF_FIRST: u32 = 1024;
pub(crate) const FCF_UNITS: u32 = 256;
pub(crate) const ENTRY_FIRST: u32 = 1280;
/// Most entries of an interface.
pub const ENTRIES_MAX: u32 = 131_072;
/// Entries that a line of their index has places for.
pub(crate) const PLACES: usize = 8;
/// A place whose entry is gone.
pub(crate) const PLACE_LEFT: u32 = u32::MAX;
pub(crate) const SHAPE_ALL: u32 = 0;
pub(crate) const SHAPE_FLOW: u32 = 1;
pub(crate) const SHAPE_IPV4: u32 = 2;
/// Words that an entry of that shape is about.
pub(crate) const IPV4_WORDS: [usize; 4] = [1, 3, 4, 5];

pub(crate) const POLICY_HASH: u32 = 0;
pub(crate) const POLICY_VSE: u32 = 1;

pub(crate) const IS_PRIORITY: u32 = 1;
pub(crate) const WANTS_OWN: u32 = 2;
pub(crate) const BY_HASH: u32 = 4;

pub(crate) const SENT_BITS: u32 = 52;
pub(crate) const LOCAL: u32 = 0x800;
pub(crate) const ROUTE_NONE: u32 = 0x7ff;
pub(crate) const UNDECIDED: u32 = 0xffff;
pub(crate) const URGENT: u32 = 0x100_0000;
pub(crate) const REASON_SHIFT: u32 = 16;

pub(crate) const COMING: u32 = 1;
pub(crate) const GOING: u32 = 2;

pub(crate) const EVENT_PLACED: u32 = 1;
pub(crate) const EVENT_MOVED: u32 = 2;
pub(crate) const EVENT_GIVEN_UP: u32 = 3;

/// Where a frame is seen.
pub(crate) const BEFORE: u8 = 0;
pub(crate) const AFTER: u8 = 1;
pub(crate) const DROPPED: u8 = 2;
pub(crate) const SIDES: usize = 3;
/// Most bytes of a frame in the ring of frames.
pub(crate) const SHOWN_MAX: u32 = 1984;
pub(crate) const NO_UNIT: u32 = u32::MAX;

pub(crate) const TIMES: usize = 6;
pub(crate) const NO_CLOCK: u32 = u32::MAX;
pub(crate) const COUNTS: u32 = 15;

mirrors! {
    /// `struct steer_config`.
    SteerConfig = "steer_config" {
        /// Of the host's tables.
        slot: u32,
        /// A power of two; 0: frames that no entry matches stay.
        groups: u32,
        /// Policy.
        policy: u32,
        /// 1: the outermost ToS byte holds the flow control field.
        is_fcf: u32,
        /// Vxlan port.
        vxlan_port: u32,
        /// Frames that may wait for one core.
        queue: u32,
        /// An urgent move drops frames after so long.
        drain_ns: u32,
        /// And is given up after so much longer.
        give_up_ns: u32,
        /// Exact entries.
        exact: u32,
        /// Which of map `masks` to read.
        masks: u32,
        /// Generation of the change of entries that is under way.
        change: u32,
        /// Of frames on their way to a core.
        tag: u32,
        /// For the next owner of the pins.
        ifindex: u32,
        /// 1: senders on this host leave checksums to a device.
        may_be_unfinished: u32,
        /// Of map `lines`, which has a power of two.
        last_line: u32,
        /// Which of map `tables` to read.
        table: u32,
        /// Of the hash.
        secrets: [u64; WORDS + 1],
    }
    /// `struct steer_mask`.
    SteerMask = "steer_mask" {
        /// Words.
        words: [u64; WORDS],
        /// 0..MASKS, for its life.
        id: u32,
        /// Highest of its entries.
        priority: u32,
        /// Which words are looked at, and hashed.
        shape: u32,
        /// Zero.
        reserved: u32,
    }
    /// `struct steer_masks`.
    SteerMasks = "steer_masks" {
        /// Len.
        len: u32,
        /// Zero.
        reserved: u32,
        /// By falling priority.
        masks: [SteerMask; MASKS],
    }
    /// `struct steer_entry`.
    SteerEntry = "steer_entry" {
        /// Its id; ~0 of exact entries.
        mask: u32,
        /// Unit.
        unit: u32,
        /// Priority.
        priority: u32,
        /// COMING, GOING or 0.
        change: u32,
        /// What the key must be, masked.
        words: [u64; WORDS],
        /// Zero.
        reserved: [u64; 2],
    }
    /// `struct steer_line`.
    SteerLine = "steer_line" {
        /// By falling age.
        places: [u64; PLACES],
    }
    /// `struct steer_unit`.
    SteerUnit = "steer_unit" {
        /// State.
        state: u64,
        /// Wanted.
        wanted: u32,
        /// Flags.
        flags: u32,
        /// When, on the monotonic clock.
        wanted_ns: u64,
        /// When it went to the core where it is.
        moved_ns: u64,
        /// Frames: queue full, or draining.
        dropped: u64,
        /// Moves.
        moves: u32,
        /// Generation of the core table that was asked last.
        table: u32,
        /// Generation of the last change of entries that its flows may follow.
        latch: u32,
        /// That it was placed by.
        hash: u32,
        /// 0: not known.
        vm: u16,
        /// Reason.
        reason: u8,
        /// Zero.
        reserved: [u8; 5],
    }
    /// `struct steer_done`.
    SteerDone = "steer_done" {
        /// That reached the core.
        frames: u64,
        /// Bytes.
        bytes: u64,
        /// Then: steer_clock.epoch, or steer_core.quiet if the frame was on its core already.
        mark: u64,
        /// Is local.
        is_local: u64,
        /// Whose mark it is.
        core: u64,
        /// Zero.
        reserved: [u64; 3],
    }
    /// `struct steer_ring`.
    SteerRing = "steer_ring" {
        /// Sent.
        sent: u64,
        /// Senders' copy of `left`.
        left_seen: u64,
        /// Frames that found it full.
        refused: u64,
        /// Until then no ordinary frame enters; 0: all do.
        hush_ns: u64,
        /// `steer_clock.epoch` when that began.
        hush_epoch: u64,
        /// Zero.
        reserved: [u64; 3],
        /// Left.
        left: u64,
        /// Ordinary frames up to this one (counted as `left`) are dropped.
        purge: u64,
        /// Zero.
        reserved_2: [u64; 6],
    }
    /// `struct steer_received`.
    SteerReceived = "steer_received" {
        /// Frames that the driver received here.
        arrived: u64,
        /// Frames that the stack got here.
        frames: u64,
        /// Bytes.
        bytes: u64,
        /// Steer_core.quiet at the last frame that no entry matched.
        mark: u64,
        /// As of a unit: for those frames.
        latch: u32,
        /// Zero.
        reserved: u32,
    }
    /// `struct steer_count`.
    SteerCount = "steer_count" {
        /// Frames.
        frames: u64,
        /// Bytes.
        bytes: u64,
    }
    /// `struct steer_event`.
    SteerEvent = "steer_event" {
        /// At ns.
        at_ns: u64,
        /// From the wish to the move.
        waited_ns: u64,
        /// Kind.
        kind: u32,
        /// Unit.
        unit: u32,
        /// From.
        from: u16,
        /// To.
        to: u16,
        /// Reason.
        reason: u8,
        /// Zero.
        reserved: [u8; 3],
        /// FlowKey of the frame.
        words: [u64; WORDS],
    }
    /// `struct steer_look`.
    SteerLook = "steer_look" {
        /// Of each frame that are shown; 0: nobody looks.
        bytes: u32,
        /// 1: the interface is steered no more.
        is_gone: u32,
    }
    /// `struct steer_shown`.
    SteerShown = "steer_shown" {
        /// At ns.
        at_ns: u64,
        /// Of the frame.
        len: u32,
        /// Bytes of it that follow.
        kept: u32,
        /// `NO_UNIT` if it is of none, or that is not known yet.
        unit: u32,
        /// Of the interface; before only.
        queue: u32,
        /// Where it is seen.
        cpu: u16,
        /// Core of its unit; UNDECIDED if there is none.
        to: u16,
        /// BEFORE, AFTER or DROPPED.
        side: u8,
        /// Of no meaning before.
        verdict: u8,
        /// Of its unit.
        flags: u8,
        /// Of its unit.
        reason: u8,
    }
    /// `struct steer_shown_count`.
    SteerShownCount = "steer_shown_count" {
        /// For which there was a record.
        frames: u64,
        /// For which there was no room.
        lost: u64,
        /// That it took.
        ns: u64,
    }
    /// `struct steer_table_core`.
    SteerTableCore = "steer_table_core" {
        /// All stages, parts per million.
        load: u32,
        /// `SteerPlaced::units` that `load` shows.
        measured: u32,
        /// Id.
        id: u16,
        /// ROLE_...
        role: u8,
        /// Is pinned.
        is_pinned: u8,
        /// 0: none.
        pinned: [u16; PINNED],
    }
    /// `struct steer_table`.
    SteerTable = "steer_table" {
        /// Len.
        len: u32,
        /// Generation.
        generation: u32,
        /// Threshold.
        threshold: u32,
        /// Priority threshold.
        priority_threshold: u32,
        /// Cores whose role is ROLE_ALLOWED.
        allowed: u32,
        /// Zero.
        reserved: u32,
        /// Cores.
        cores: [SteerTableCore; CORES],
    }
    /// `struct steer_placed`.
    SteerPlaced = "steer_placed" {
        /// That were ever placed there.
        units: u32,
        /// Zero.
        reserved: u32,
    }
    /// `struct steer_core`.
    SteerCore = "steer_core" {
        /// Times that the receive soft interrupt had nothing left.
        quiet: u64,
        /// It was asked for and has not begun.
        is_raised: u32,
        /// Is running.
        is_running: u32,
        /// The time since then is not in `ns` yet.
        since_ns: u64,
        /// That it belongs to: TIME_...
        stage: u32,
        /// Stage that a running soft interrupt interrupts.
        outer: u32,
        /// Ns.
        ns: [u64; TIMES],
        /// Receive soft interrupts.
        softirqs: u64,
        /// Of threads.
        switches: u64,
        /// Zero.
        reserved: [u64; 4],
    }
    /// `struct steer_clock`.
    SteerClock = "steer_clock" {
        /// Epoch.
        epoch: u64,
        /// Steer_core.quiet must be this when the epoch counts.
        quiet: u64,
        /// Taken out of the queue.
        frames: u64,
        /// Of a window of a queue that never sleeps.
        armed_frames: u64,
        /// Window ns.
        window_ns: u64,
        /// Is armed.
        is_armed: u32,
        /// Zero.
        reserved: [u32; 5],
    }
    /// `struct steer_thread`.
    SteerThread = "steer_thread" {
        /// TIME_...
        stage: u32,
        /// FlowKey of map `clocks`; NO_CLOCK if none.
        clock: u32,
    }
    /// `struct packet_sum` of `dissect.h`.
    PacketSum = "packet_sum" {
        /// Where the transport header begins.
        at: u32,
        /// Bytes from there on; 0: no such checksum.
        len: u32,
        /// What it says, host order.
        check: u16,
        /// Protocol.
        proto: u8,
        /// Zero.
        reserved: u8,
    }
    /// `struct packet` of `dissect.h`.
    Packet = "packet" {
        /// The key.
        words: [u64; WORDS],
        /// Of the outermost transport header, and of the one in its tunnel.
        sums: [PacketSum; 2],
        /// Of the IP header that the key is of, if it is a fragment.
        fragment_id: u32,
        /// Of the IP header around a tunnel, likewise.
        outer_id: u32,
        /// There is an IP header.
        is_ip: u8,
        /// The outer packet is in pieces, and this is the first.
        is_outer_fragment: u8,
        /// Of the outer packet.
        outer_proto: u8,
        /// Of what comes next in an IP packet.
        proto: u8,
        /// What comes next is a transport header, and in this packet.
        is_found: u8,
        /// Of the IPv6 headers so far.
        frag: u8,
        /// Of what comes next behind Ethernet.
        eth_type: u16,
        /// Where the next header begins.
        at: u32,
        /// Bytes of the IP packet from there on.
        left: u32,
        /// An IPv6 routing header.
        is_routed: u8,
        /// ARP, for IPv4 over Ethernet.
        is_arp: u8,
        /// Zero.
        reserved: [u8; 6],
    }
}
