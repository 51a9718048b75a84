/* SPDX-License-Identifier: Apache-2.0 */
/* What the stage's program and its loader (src/experiments/stage) share. */
#ifndef SUIRO_LAB_STAGE_H
#define SUIRO_LAB_STAGE_H

#include <linux/types.h>

/* Bytes that are worked through at a time; what is left of a frame below that is not. */
#define STAGE_CHUNK 64

/* VMs are numbered from 1; 0 is everything else. */
#define STAGE_VMS 16
#define STAGE_OTHER 0

/* The value of map `config`. */
struct stage_config {
	__u32 rounds; /* of each chunk; 0 does no work */
	__u32 reserved;
};

/* The value of map `counts`, per core and VM. */
struct stage_count {
	__u64 frames;
	__u64 bytes; /* with Ethernet header, without FCS */
	__u64 ns;    /* inside the stage */
	__u64 mixed;
};

/* The value of map `homes`, by VM: where its frames are processed. */
struct stage_home {
	__u32 core;
	__u32 changes; /* of the core */
	__u64 since_ns; /* the first frame there, on the monotonic clock */
};

#endif
