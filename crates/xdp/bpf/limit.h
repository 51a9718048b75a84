/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's token bucket (crates/flow/src/meter/bucket.rs), bit by bit, on the same word.
 */
#ifndef SUIRO_LIMIT_H
#define SUIRO_LIMIT_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "offload.h"

#define LIMIT_UNITS 1024ULL
#define LIMIT_SECOND (1000000000ULL * LIMIT_UNITS)
/* More than any frame can take, and than clocks can lie apart: further ahead is in fact long ago. */
#define LIMIT_SLACK (3600ULL * LIMIT_SECOND)
/* Measured: 2 of 12 million takers needed more. */
#define LIMIT_TRIES 8

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OFFLOAD_LIMITS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct offload_limit);
} limits SEC(".maps");

static __always_inline int limit_take(struct offload_limit *limit, __u64 bytes)
{
	__u64 now = bpf_ktime_get_ns() * LIMIT_UNITS, rate = limit->rate, cost;
	int try;

	if (!rate)
		return 1;
	cost = limit->is_frames ? LIMIT_SECOND / rate : bytes * 8 * (LIMIT_SECOND / 1000) / rate;
	for (try = 0; try < LIMIT_TRIES; try++) {
		__u64 full_at = *(volatile __u64 *)&limit->full_at, ahead = full_at - now, idle = 0;

		if (ahead > limit->burst + LIMIT_SLACK) {
			idle = -ahead;
			ahead = 0;
		}
		if (ahead > limit->burst)
			return 0;
		if (__sync_val_compare_and_swap(&limit->full_at, full_at, now + ahead + cost) == full_at) {
			if (idle)
				__sync_fetch_and_add(&limit->idle, idle);
			return 1;
		}
	}
	__sync_fetch_and_add(&limit->given_up, 1);
	return 0;
}

/* All bands of a flow's meter: each takes for itself, as on the worker; of those that refuse, the first one drops the frame. */
static __always_inline int limits_take(const struct offload_flow *flow, __u64 bytes)
{
	struct offload_limit *refuses = 0;
	int i;

#pragma unroll
	for (i = 0; i < OFFLOAD_LIMITS_EACH; i++) {
		__u32 at = flow->limits[i] - 1;
		struct offload_limit *limit;

		if (!flow->limits[i])
			break;
		limit = bpf_map_lookup_elem(&limits, &at);
		if (limit && !limit_take(limit, bytes) && !refuses)
			refuses = limit;
	}
	if (!refuses)
		return 1;
	__sync_fetch_and_add(&refuses->refused, 1);
	__sync_fetch_and_add(&refuses->refused_bytes, bytes);
	return 0;
}

#endif
