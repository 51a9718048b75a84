/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows past the worker: what the kernel's rungs (tc, xdp) and user space share. One definition for both hooks;
 * mirrored by src/offload/abi.rs, which a test compares with this file's BTF.
 *
 * A flow has a number, its place in map `flows`. Map `keys` leads to it from the bits of a frame that tell flows apart.
 * Programs never decide what becomes of a flow: user space writes that down as constants, and wishes; they follow.
 */
#ifndef SUIRO_OFFLOAD_H
#define SUIRO_OFFLOAD_H

/* Most flows on the kernel's rungs of a host. */
#define OFFLOAD_FLOWS 16384
/* Ports of a host that can have such flows. */
#define OFFLOAD_PORTS 1024
/* Limits of a host that such flows can have. */
#define OFFLOAD_LIMITS 4096
/* Limits that one frame passes. */
#define OFFLOAD_LIMITS_EACH 4

/* Greatest rates that a flow keeps: its queue's and its exit's. */
#define OFFLOAD_SHAPES_EACH 2

/* Bytes of a frame that a flow's program may change, in words of 32 bits. */
#define OFFLOAD_HEAD 64
#define OFFLOAD_WORDS 16

/* In offload_key.tunnel, with the VNI below it: the frame came inside a packet of VXLAN over IPv4, and the key is of what is inside. */
#define OFFLOAD_IN_TUNNEL 0x1000000

/* The key of map `keys`. Addresses as in the frame, numbers in host order. */
struct offload_key {
	__u32 port; /* place in map `ports` */
	__u32 tunnel; /* 0: the frame came by itself */
	__u16 dl_vlan; /* pcp 3, present 1, vid 12; 0: untagged */
	__u16 dl_type;
	__u8 dl_dst[6];
	__u8 dl_src[6];
	__u32 nw_src[4]; /* IPv4: the first, others 0 */
	__u32 nw_dst[4];
	__u16 tp_src; /* ICMP: type */
	__u16 tp_dst; /* ICMP: code */
	__u8 nw_proto;
	__u8 nw_dscp;
	__u16 reserved;
};

/* offload_flow.gate: where the flow's frames go (side), where they shall go (wanted), which count it is (generation, 10 bits), and how many
 * frames were given to the worker (given, 52 bits). Only the hook changes side and given. */
#define OFFLOAD_RUNG (1ULL << 63)
#define OFFLOAD_WANTED (1ULL << 62)
#define OFFLOAD_GENERATION_SHIFT 52
#define OFFLOAD_GIVEN ((1ULL << 52) - 1)

/* Bits of offload_flow.flags */
#define OFFLOAD_IS_TCP 1
#define OFFLOAD_DEC_TTL 2
#define OFFLOAD_POP_VLAN 4
#define OFFLOAD_PUSH_VLAN 8
#define OFFLOAD_ZERO_SUM 16 /* UDP over IPv4: checksum 0 means that there is none */
#define OFFLOAD_OUTSIDE 32 /* a tunnel's headers are put around it */
#define OFFLOAD_OUTSIDE_SUM 64 /* their UDP has a checksum */
#define OFFLOAD_OUTSIDE_TAG 128 /* they have a tag */
#define OFFLOAD_INSIDE 256 /* it comes with such headers, which are taken off */

/* Bytes of a tunnel's headers: Ethernet, IPv4, UDP, VXLAN; and words of 32 bits that they take. */
#define OFFLOAD_OUTSIDE_BYTES 50
#define OFFLOAD_OUTSIDE_WORDS 13

/* The value of map `flows`. */
struct offload_flow {
	/* Written by the hook; `wanted` of the gate and `done` by user space. */
	__u64 gate;
	__u64 done; /* of those given, how many the worker has sent or dropped; OFFLOAD_GIVEN: nobody has found out yet */
	__u64 frames; /* that the rung took, limited ones included; a large segment is one, as for the worker */
	__u64 bytes; /* of those as they came: Ethernet header and tag included, no FCS */
	__u64 limited; /* of those, frames that a limit refused */
	__u64 limited_bytes;
	__u64 used_ns; /* when the last one came, by the coarse monotonic clock */
	__u64 reserved;
	/* The flow's program, written before its key is. Head: word = word & keep | put. */
	__u32 keep[OFFLOAD_WORDS];
	__u32 put[OFFLOAD_WORDS];
	__u32 exit; /* interface index */
	__u32 max_len; /* of a frame, or of each segment of a large one, all headers but the tag included */
	__u32 flags;
	__u16 words; /* of the head, the last that changes included */
	__u16 l4_at; /* where the transport header begins */
	__u16 reserved_1;
	__u16 sum_at; /* where the transport checksum is; 0: nothing that it sums changes */
	__u16 tag_tci; /* of the tag to push */
	__u16 tag_tpid;
	/* What edits add to sums, as words lie in a frame. */
	__u16 ip_sum; /* IPv4 header; without the TTL */
	__u16 pseudo_sum;
	__u16 ports_sum;
	__u16 reserved_2;
	__u32 limits[OFFLOAD_LIMITS_EACH]; /* the bands of its meter: places in map `limits`, plus 1; 0: none, and none after it */
	struct offload_key key;
	__u32 shapes[OFFLOAD_SHAPES_EACH]; /* likewise: what a frame waits for at the worker, where one of them has nothing left */
	__u32 outside[OFFLOAD_OUTSIDE_WORDS]; /* a tunnel's headers; lengths, checksums and ECN are 0; of those that come, TTL and identification, too */
	__u16 outside_ip_sum; /* of their IPv4 header as it is here, as words lie in a frame */
	__u16 outside_pseudo_sum; /* of UDP's pseudo-header, without the length */
	__u16 outside_tci;
	__u16 outside_tpid;
	__u32 reserved_4;
};

/* offload_limit.unit */
#define OFFLOAD_KILOBITS 0
#define OFFLOAD_FRAMES 1
#define OFFLOAD_BITS 2

/* offload_port.rung: which hook its programs are at. */
#define OFFLOAD_PORT_TC 1
#define OFFLOAD_PORT_XDP 2

/* The value of map `ports`. */
struct offload_port {
	__u64 seq; /* tc: frames that the socket's filter let through, counted before any flow's `given` */
	__u64 orphans; /* frames for a worker that there is not */
	__u32 flows; /* how many the port has: without, none is looked for */
	__u32 ifindex; /* whose port it is; 0: nobody's */
	__u64 netns; /* the interface's namespace, by inode */
	__u32 rung; /* OFFLOAD_PORT_… */
	__u32 inside; /* how many of its flows come in tunnels */
	__u64 reserved[3];
};

/* The value of map `limits`. A token bucket in one word of virtual time, as the worker's (crates/flow/src/meter/bucket.rs), in the same units:
 * 1/1024 ns. */
struct offload_limit {
	__u64 full_at; /* when the bucket is full again */
	__u64 burst; /* how far ahead that may be */
	__u64 rate; /* so many a second, */
	__u64 unit; /* of OFFLOAD_… */
	__u64 idle; /* time for which it was full */
	__u64 given_up; /* of the frames refused, those that others were faster than */
	__u64 refused; /* frames that this one dropped: the first of a flow's that refuses does */
	__u64 refused_bytes;
};

#endif
