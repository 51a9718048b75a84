/* SPDX-License-Identifier: Apache-2.0
 *
 * What the XDP program and user space share: map values, key ranges and names.
 * Fixed-width integers, explicit reserved fields; mirrored by src/abi.rs, which a test
 * compares with this file's BTF.
 */
#ifndef SUIRO_ABI_H
#define SUIRO_ABI_H

/* Most rx queues of one interface; the loader shrinks the map to what the interface has. */
#define SUIRO_QUEUES_MAX 256

/* The stages of an interface, in the order that frames meet them: the key of map `stages`. */
#define SUIRO_STAGE_OFFLOAD 0 /* flows that never reach a worker */
#define SUIRO_STAGE_STEER 1 /* frames of the host's stack, each on the core of its flow */
#define SUIRO_STAGE_WORKER 2 /* the port of a switch */
#define SUIRO_STAGES 3

/* Frames in several pieces, which kernels before 5.18 do not have. All programs of one interface are alike in that. */
#ifdef SUIRO_WHOLE_FRAMES
#define SUIRO_XDP_SECTION "xdp"
#else
#define SUIRO_XDP_SECTION "xdp.frags"
#endif

/* What became of a frame: the key of map `verdicts`. */
#define SUIRO_VERDICT_WORKER 0 /* redirected to the AF_XDP socket of its queue */
#define SUIRO_VERDICT_PASS 1 /* no stage took it: left to the kernel */
#define SUIRO_VERDICT_NO_SOCKET 2 /* no socket on its queue: dropped */
#define SUIRO_VERDICTS 3

/* The value of map `verdicts`, one per CPU. */
struct verdict_count {
	__u64 frames;
	__u64 bytes;
};

/* Frames of a burst: the kernel takes so many pages from its allocator at once, however few are used. */
#define SUIRO_BURST_MAX 64
/* Longest frame of a burst: with the numbers before it, half a page. */
#define SUIRO_SLOT_BYTES 2040
/* Interfaces that bursts can leave by. */
#define SUIRO_EXITS_MAX 4096

/* A frame of a burst, written by user space. */
struct slot {
	__u32 exit; /* key of map `exits` */
	__u32 len;
	__u8 bytes[SUIRO_SLOT_BYTES];
};

/* The value of map `bursts`. User space zeroes the numbers before each burst. */
struct burst {
	__u32 run; /* frames filled so far */
	__u32 flushed; /* frames handed to a driver */
	__u32 sent; /* frames that it took */
	__u32 error; /* errno of the last refusal */
	__u32 cpu; /* where the burst runs */
	__u32 reserved;
	struct slot slots[SUIRO_BURST_MAX];
};

/* ---- Steering: steer.bpf.c (one for each interface) and trace.bpf.c (one for the host) ---- */

/* The flow key: words of 64 bits, host order, the first named highest.
 *
 *   0, 1   nw_src: IPv6, or IPv4 in the low 32 bits of word 1
 *   2, 3   nw_dst
 *   4      tun_id 32 (STEER_TUNNEL and the VNI), tp_src 16, tp_dst 16 (ESP: the SPI in both)
 *   5      dl_type 16, nw_proto 8, nw_tos 8, dl_vlan 16 (STEER_VLAN and the id), outer_tos 8, ip_frag 8
 *   6, 7   tun_src: of the outermost IP header, in a tunnel or not
 *   8, 9   tun_dst
 *   10     dl_src 48, 16 spare
 *   11     dl_dst 48, 16 spare
 *
 * In a tunnel, all but tun_* and outer_tos are the inner headers'.
 */
#define STEER_WORDS 12
/* Words of the key that tell one flow from another: addresses, ports, tunnel, and STEER_FLOW_WORD5. */
#define STEER_FLOW_WORDS 6
#define STEER_FLOW_WORD5 0xffffff0000000000
#define STEER_TUNNEL 0x1000000
#define STEER_VLAN 0x1000
#define STEER_FRAG_ANY 1
#define STEER_FRAG_LATER 2

/* Masks that the wildcard entries of one interface may have. */
#define STEER_MASKS 32
/* Guests known by id on one core; as place::PINNED_MAX. */
#define STEER_PINNED 16
/* Cores of the core table; as place::CORES_MAX. */
#define STEER_CORES 128
/* Interfaces steered at a time on one host. */
#define STEER_SLOTS 64
/* Processors that the clocks of one interface have room for. */
#define STEER_CPUS 512
/* Most flow groups of an interface. */
#define STEER_GROUPS_MAX 1024
/* Units of an interface: first the groups, then one for each value of the flow control field, then the entries'. */
#define STEER_FCF_FIRST 1024
#define STEER_ENTRY_FIRST 1280
#define STEER_UNITS 132352
/* Wildcard and exact entries together. */
#define STEER_ENTRIES 131072
/* Entries that one line of their index has places for: as many as a cache line. */
#define STEER_PLACES 8
/* Bytes of the ring of events. */
#define STEER_EVENT_BYTES 262144

/* What became of a frame: the key of map `steered`. */
#define STEER_MISSED 0 /* passed: no entry matches, and the interface leaves such frames alone */
#define STEER_NOT_IP 1 /* passed: no IP, nothing to tell flows apart by */
#define STEER_STAYED 2 /* passed: its core is the one that it came in on */
#define STEER_SENT 3 /* sent to another core */
#define STEER_QUEUE_FULL 4 /* dropped: its core's queue is full */
#define STEER_DRAINING 5 /* dropped: for an urgent move whose old core had not finished */
#define STEER_NO_QUEUE 6 /* passed: its core has no queue */
#define STEER_NO_META 7 /* passed: the driver has no room for the unit's number */
#define STEER_ODD 8 /* passed: a map lacks what it must have */
#define STEER_UNSUMMED 9 /* passed: an unfinished checksum may be where the program does not look */
#define STEER_PIECE 10 /* dropped: a fragment of a datagram of which one was dropped before */
#define STEER_VERDICTS 11
/* Counted beside the verdict. */
#define STEER_FRAG_FOLLOWED 11 /* a later fragment went with its first one */
#define STEER_FRAG_ORPHAN 12 /* a later fragment whose first one was not seen */
#define STEER_SUMMED 13 /* its checksum was finished for another core */
#define STEER_UNKNOWN 14 /* on the target core: a frame without a unit's number */
#define STEER_COUNTS 15

/* Numbers of place::Reason that the programs write. */
#define STEER_REASON_FIXED 1
#define STEER_REASON_HASH 2
#define STEER_REASON_LEAST_LOADED 3
#define STEER_REASON_PRIORITY 4
#define STEER_REASON_OWN_CORE 5
#define STEER_REASON_OWN_CORE_WANTED 6
#define STEER_REASON_ABOVE_THRESHOLD 7
#define STEER_REASON_NO_CORE 8

/* steer_config.policy */
#define STEER_POLICY_HASH 0
#define STEER_POLICY_VSE 1

/* Bits of steer_unit.flags */
#define STEER_IS_PRIORITY 1
#define STEER_WANTS_OWN 2
#define STEER_BY_HASH 4 /* placed by hash, whatever the interface's policy */

/* steer_unit.state: where the unit's frames go (12 bits), and how many went (52 bits). */
#define STEER_SENT_BITS 52
/* The route's low 11 bits name a core; with STEER_LOCAL its frames stay on it, else they go through its queue. */
#define STEER_LOCAL 0x800
#define STEER_ROUTE_NONE 0x7ff
/* steer_unit.wanted: core 16 bits, reason 8 bits, then STEER_URGENT; a core of STEER_UNDECIDED is still to be chosen. */
#define STEER_UNDECIDED 0xffff
#define STEER_URGENT 0x1000000
#define STEER_REASON_SHIFT 16

/* The value of map `config`. */
struct steer_config {
	__u32 slot; /* of the host's tables */
	__u32 groups; /* a power of two; 0: frames that no entry matches stay */
	__u32 policy;
	__u32 is_fcf; /* 1: the outermost ToS byte holds the flow control field */
	__u32 vxlan_port;
	__u32 queue; /* frames that may wait for one core */
	__u32 drain_ns; /* an urgent move drops frames after so long */
	__u32 give_up_ns; /* and is given up after so much longer */
	__u32 exact; /* entries of map `exact` */
	__u32 masks; /* which of map `masks` to read */
	__u32 change; /* generation of the change of entries that is under way */
	__u32 tag; /* of frames on their way to a core */
	__u32 ifindex; /* for the next owner of the pins */
	__u32 may_be_unfinished; /* 1: senders on this host leave checksums to a device */
	__u32 last_line; /* of map `lines`, which has a power of two */
	__u32 table; /* which of map `tables` to read */
	__u64 secrets[STEER_WORDS + 1]; /* of the hash */
};

/* One mask of the wildcard entries. */
struct steer_mask {
	__u64 words[STEER_WORDS];
	__u32 id; /* 0..STEER_MASKS, for its life */
	__u32 priority; /* highest of its entries */
	__u32 shape; /* which words are looked at, and hashed: STEER_SHAPE_... */
	__u32 reserved;
};
#define STEER_SHAPE_ALL 0
#define STEER_SHAPE_FLOW 1 /* those that tell flows apart */
#define STEER_SHAPE_IPV4 2 /* of those, without the upper halves of IPv6 addresses: 1, 3, 4 and 5 */
#define STEER_IPV4_WORDS 4

/* The value of map `masks`, which has two: user space fills one while the program reads the other. */
struct steer_masks {
	__u32 len;
	__u32 reserved;
	struct steer_mask masks[STEER_MASKS]; /* by falling priority */
};

/* The value of map `entries`, by unit, less STEER_ENTRY_FIRST. What tells flows apart is in its first cache line. */
struct steer_entry {
	__u32 mask; /* its id; ~0 of exact entries */
	__u32 unit;
	__u32 priority;
	__u32 change; /* STEER_COMING, STEER_GOING or 0 */
	__u64 words[STEER_WORDS]; /* what the key must be, masked */
	__u64 reserved[2];
};
/* The value of map `lines`, by hash of the masked words (index.h). A place is 0, or the hash's upper half and the unit below it. */
struct steer_line {
	__u64 places[STEER_PLACES];
};
/* A place whose entry is gone. */
#define STEER_PLACE_LEFT 0xffffffff
/* An entry is new, or about to go: a flow changes to its other unit when that loses no order. */
#define STEER_COMING 1
#define STEER_GOING 2

/* The value of map `units`: written by the receiving cores, `wanted` and what is beside it by user space too. */
struct steer_unit {
	__u64 state;
	__u32 wanted;
	__u32 flags;
	__u64 wanted_ns; /* when, on the monotonic clock */
	__u64 moved_ns; /* when it went to the core where it is */
	__u64 dropped; /* frames: queue full, or draining */
	__u32 moves;
	__u32 table; /* generation of the core table that was asked last */
	__u32 latch; /* generation of the last change of entries that its flows may follow */
	__u32 hash; /* that it was placed by */
	__u16 vm; /* 0: not known */
	__u8 reason;
	__u8 reserved[5];
};

/* The value of map `done`: written by the core where the unit is. */
struct steer_done {
	__u64 frames; /* that reached the core */
	__u64 bytes;
	__u64 mark; /* then: steer_clock.epoch, or steer_core.quiet if the frame was on its core already */
	__u64 is_local;
	__u64 core; /* whose mark it is */
	__u64 reserved[3];
};

/* The value of map `rings`, by core: frames on their way to it. Two lines: senders', receiver's. */
struct steer_ring {
	__u64 sent;
	__u64 left_seen; /* senders' copy of `left` */
	__u64 refused; /* frames that found it full */
	__u64 hush_ns; /* until then no ordinary frame enters; 0: all do */
	__u64 hush_epoch; /* steer_clock.epoch when that began */
	__u64 reserved[3];
	__u64 left;
	__u64 purge; /* ordinary frames up to this one (counted as `left`) are dropped: an urgent move waits behind them */
	__u64 reserved_2[6];
};

/* The value of map `received`, one per CPU: what this interface's frames did to this core. */
struct steer_received {
	__u64 arrived; /* frames that the driver received here */
	__u64 frames; /* frames that the stack got here */
	__u64 bytes;
	__u64 mark; /* steer_core.quiet at the last frame that no entry matched */
	__u32 latch; /* as of a unit: for those frames */
	__u32 reserved;
};

/* The value of map `steered`, one per CPU. */
struct steer_count {
	__u64 frames;
	__u64 bytes;
};

/* The key of map `fragments`: a datagram in pieces. */
struct steer_fragment {
	__u64 src[2];
	__u64 dst[2];
	__u32 tunnel;
	__u32 id;
	__u32 proto;
	__u32 reserved;
};

/* What the ring of events carries. */
#define STEER_EVENT_PLACED 1
#define STEER_EVENT_MOVED 2
#define STEER_EVENT_GIVEN_UP 3
struct steer_event {
	__u64 at_ns;
	__u64 waited_ns; /* from the wish to the move */
	__u32 kind;
	__u32 unit;
	__u16 from;
	__u16 to;
	__u8 reason;
	__u8 reserved[3];
	__u64 words[STEER_WORDS]; /* key of the frame */
};

/* Who looks at frames: the value of map `look`. */
struct steer_look {
	__u32 bytes; /* of each frame that are shown; 0: nobody looks */
	__u32 is_gone; /* 1: the interface is steered no more; for who looks still */
};

/* Where a frame is seen: steer_shown.side. */
#define STEER_BEFORE 0 /* as it came */
#define STEER_AFTER 1 /* to the stack, or to the next stage: on the core where that is */
#define STEER_DROPPED 2
#define STEER_SIDES 3

/* Bytes of the ring of frames, and most of one frame in it. */
#define STEER_FRAMES_BYTES 1048576
#define STEER_SHOWN_MAX 1984

/* What the ring of frames carries, before the frame's first bytes. */
struct steer_shown {
	__u64 at_ns;
	__u32 len; /* of the frame */
	__u32 kept; /* bytes of it that follow */
	__u32 unit; /* STEER_NO_UNIT if it is of none, or that is not known yet */
	__u32 queue; /* of the interface; before only */
	__u16 cpu; /* where it is seen */
	__u16 to; /* core of its unit; STEER_UNDECIDED if there is none */
	__u8 side;
	__u8 verdict; /* STEER_MISSED, ...; of no meaning before */
	__u8 flags; /* of its unit */
	__u8 reason; /* of its unit */
};
#define STEER_NO_UNIT 0xffffffff

/* The value of map `shown`; key: core * STEER_SIDES + side. Only its core writes it. */
struct steer_shown_count {
	__u64 frames; /* for which there was a record */
	__u64 lost; /* for which there was no room */
	__u64 ns; /* that it took */
};

/* One core of the core table; see place::Core. */
struct steer_table_core {
	__u32 load; /* all stages, parts per million */
	__u32 measured; /* steer_placed.units that `load` shows */
	__u16 id;
	__u8 role; /* STEER_ROLE_... */
	__u8 is_pinned;
	__u16 pinned[STEER_PINNED]; /* 0: none */
};
#define STEER_ROLE_ALLOWED 0
#define STEER_ROLE_RESERVED 1
#define STEER_ROLE_EXCLUDED 2

/* The value of map `tables`, which has two, as `masks`. */
struct steer_table {
	__u32 len;
	__u32 generation;
	__u32 threshold;
	__u32 priority_threshold;
	__u32 allowed; /* cores whose role is STEER_ROLE_ALLOWED */
	__u32 reserved;
	struct steer_table_core cores[STEER_CORES];
};

/* The value of map `placed`, by core. */
struct steer_placed {
	__u32 units; /* that were ever placed there */
	__u32 reserved;
};

/* What a core's time goes to. */
#define STEER_TIME_IDLE 0
#define STEER_TIME_DRIVER 1 /* receive soft interrupts */
#define STEER_TIME_PACKET 2 /* queues of frames sent here */
#define STEER_TIME_VHOST 3
#define STEER_TIME_GUEST 4
#define STEER_TIME_OTHER 5
#define STEER_TIMES 6

/* The value of map `cores`, by core. */
struct steer_core {
	__u64 quiet; /* times that the receive soft interrupt had nothing left */
	__u32 is_raised; /* it was asked for and has not begun */
	__u32 is_running;
	__u64 since_ns; /* the time since then is not in `ns` yet */
	__u32 stage; /* that it belongs to: STEER_TIME_... */
	__u32 outer; /* stage that a running soft interrupt interrupts */
	__u64 ns[STEER_TIMES];
	__u64 softirqs; /* receive soft interrupts */
	__u64 switches; /* of threads */
	__u64 reserved[4];
};

/* The value of map `clocks`: one queue of one interface on one core; key: slot * STEER_CPUS + core. */
struct steer_clock {
	__u64 epoch;
	__u64 quiet; /* steer_core.quiet must be this when the epoch counts */
	__u64 frames; /* taken out of the queue */
	__u64 armed_frames; /* of a window of a queue that never sleeps */
	__u64 window_ns;
	__u32 is_armed;
	__u32 reserved[5];
};

/* The value of map `threads`, by thread id. */
struct steer_thread {
	__u32 stage; /* STEER_TIME_... */
	__u32 clock; /* key of map `clocks`; STEER_NO_CLOCK if none */
};
#define STEER_NO_CLOCK 0xffffffff
#define STEER_THREADS 4096

/* ---- Tunnels: tunnel.bpf.c, one for each group of sockets ---- */

/* Ports of one group. */
#define TUNNEL_PORTS_MAX 16384
/* Their sockets, and the one that is nobody's. */
#define TUNNEL_SOCKETS_MAX 65536

/* In place of a VNI, whose bits are 24: whatever no other port has of this sender. */
#define TUNNEL_ANY_VNI 0x1000000

/* SPIs of all encrypted ports of one group: spi.bpf.c. */
#define TUNNEL_SPIS_MAX 65536

/* The key of map `owners`. */
struct tunnel_key {
	__u32 vni; /* host order, or TUNNEL_ANY_VNI */
	__u32 remote[4]; /* the sender: IPv6, or IPv4 mapped into it; network order; 0: whoever sends */
};

/* The value of map `owners`. */
struct tunnel_owner {
	__u32 first; /* its sockets in map `sockets` */
	__u32 sockets;
};

/* ---- Frames of which a packet socket cannot say all: outer.bpf.c ---- */

/* The mark of their socket. What to do with each, from bit 48 on, and numbers stand where a frame's time to leave would be. */
#define OUTER_MARK 0x5e6f7472
/* Two tags, from bit 16 on the outer one's TCI, which goes beside the frame, below it the inner one's, 802.1Q. */
#define OUTER_PROVIDER_TAG 0x01 /* the outer one is 802.1ad */
#define OUTER_TAG 0x02 /* the outer one is 802.1Q */
/* That many bytes behind the Ethernet header are a tunnel's. Which: IP's version outside and inside, what is between, whether a frame is in it. */
#define OUTER_TUNNEL 0x04
#define OUTER_V6 0x08
#define OUTER_INNER_V6 0x10
#define OUTER_GRE 0x20
#define OUTER_UDP 0x40
#define OUTER_ETHERNET 0x80
/* Most bytes of a tunnel's headers: IPv6, GRE with key, Ethernet, and room for Geneve's options. */
#define OUTER_BYTES 128

#endif
