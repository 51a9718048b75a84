/* SPDX-License-Identifier: Apache-2.0
 *
 * The stages of an interface's hook, and how a frame gets to the next one.
 *
 * All programs of one interface share one array. A stage that does not decide calls the next one; the call does not return if there is one.
 */
#ifndef SUIRO_STAGES_H
#define SUIRO_STAGES_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SUIRO_STAGES);
	__type(key, __u32);
	__type(value, __u32);
} stages SEC(".maps");

/* Hands the frame to the first stage that is there, `first` or a later one. Comes back when there is none. */
static __always_inline void run_stages(struct xdp_md *ctx, __u32 first)
{
	if (first <= SUIRO_STAGE_OFFLOAD)
		bpf_tail_call(ctx, &stages, SUIRO_STAGE_OFFLOAD);
	if (first <= SUIRO_STAGE_STEER)
		bpf_tail_call(ctx, &stages, SUIRO_STAGE_STEER);
	if (first <= SUIRO_STAGE_WORKER)
		bpf_tail_call(ctx, &stages, SUIRO_STAGE_WORKER);
}

#endif
