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

#endif
