/* SPDX-License-Identifier: Apache-2.0
 *
 * How far each core is with the frames that it got: written by trace.bpf.c, read by order.h.
 */
#ifndef SUIRO_CLOCKS_H
#define SUIRO_CLOCKS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"

/* The thread of a queue slept: it had handed over all. Once it worked on and handed over all that is
 * older than one window: the first of two windows may have begun after the frame. */
#define EPOCH_SLEPT 2
#define EPOCH_WINDOW 1
#define EPOCHS_NEEDED 2

#define volatile_read(object) (*(volatile typeof(object) *)&(object))
#define compiler_barrier() asm volatile("" ::: "memory")

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STEER_CPUS);
	__type(key, __u32);
	__type(value, struct steer_core);
} cores SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STEER_SLOTS * STEER_CPUS);
	__type(key, __u32);
	__type(value, struct steer_clock);
} clocks SEC(".maps");

#endif
