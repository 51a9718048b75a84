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

/* What became of a frame: the key of map `verdicts`. */
#define SUIRO_VERDICT_WORKER 0 /* redirected to the AF_XDP socket of its queue */
#define SUIRO_VERDICT_PASS 1 /* no socket on its queue: left to the kernel */
#define SUIRO_VERDICTS 2

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

#endif
