/* SPDX-License-Identifier: Apache-2.0 */
/* What the witness's program and its loader (src/experiments/reaction/witness.rs) share. */
#ifndef SUIRO_LAB_WITNESS_H
#define SUIRO_LAB_WITNESS_H

#include <linux/types.h>

/* TASK_COMM_LEN of sched.h: the name with its zero. */
#define WITNESS_NAME 16

/* The value of map `held`, per core. */
struct witness_core {
	__u64 ns;        /* that others' threads ran, without the one that runs now */
	__u64 since_ns;  /* another's thread runs since then; 0: none does. On the monotonic clock */
	char by[WITNESS_NAME]; /* the last of them */
};

#endif
