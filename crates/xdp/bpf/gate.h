/* SPDX-License-Identifier: Apache-2.0
 *
 * Which side a frame of a flow goes to, so that none passes another.
 *
 * Up: the first frame that finds the rung wanted and all that was given done. Down: at once. One word, changed as a whole.
 *
 * Down, too, for a frame that must wait for a greatest rate: a queue is the worker's. The wish stands, so the flow is up again when nothing waits.
 */
#ifndef SUIRO_GATE_H
#define SUIRO_GATE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "offload.h"

/* Two cores that receive one flow may change its word at once: measured 1 in 10^6, chosen far above. */
#define GATE_TRIES 8

/* The word after this frame. */
static __always_inline __u64 gate_next(__u64 gate, __u64 done, int may_leave)
{
	if (gate & OFFLOAD_RUNG)
		return gate & OFFLOAD_WANTED && may_leave ? gate : (gate & ~OFFLOAD_RUNG) + 1;
	if (gate & OFFLOAD_WANTED && (gate & OFFLOAD_GIVEN) == done && may_leave)
		return gate | OFFLOAD_RUNG;
	return gate + 1;
}

/* True: by the rung. Else the worker gets it, counted first in `seq`, then in the gate. `may_leave`: it need not wait. */
static __always_inline int gate_pass(struct offload_flow *flow, __u64 *seq, int may_leave)
{
	int try;

	for (try = 0; try < GATE_TRIES; try++) {
		__u64 done = *(volatile __u64 *)&flow->done, gate = *(volatile __u64 *)&flow->gate;
		__u64 next = gate_next(gate, done, may_leave);
		int is_rung = !!(next & OFFLOAD_RUNG);

		if (next == gate)
			return 1;
		if (!is_rung)
			__sync_fetch_and_add(seq, 1);
		if (__sync_val_compare_and_swap(&flow->gate, gate, next) == gate)
			return is_rung;
		if (!is_rung)
			__sync_fetch_and_add(seq, -1);
	}
	__sync_fetch_and_add(seq, 1);
	__sync_fetch_and_add(&flow->gate, 1);
	return 0;
}

/* No worker is there: nothing of the flow is under way, and none can wait. True: by the rung, where it is or shall be; else nobody gets the frame. */
static __always_inline int gate_pass_alone(struct offload_flow *flow, int may_leave)
{
	__u64 gate = *(volatile __u64 *)&flow->gate;

	if (!may_leave || !(gate & (OFFLOAD_RUNG | OFFLOAD_WANTED)))
		return 0;
	if (!(gate & OFFLOAD_RUNG))
		__sync_fetch_and_or(&flow->gate, OFFLOAD_RUNG);
	return 1;
}

#endif
