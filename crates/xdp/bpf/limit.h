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

/* Time that the rate needs to give what the frame takes. */
static __always_inline __u64 limit_cost(const struct offload_limit *limit, __u64 bytes)
{
	__u64 rate = limit->rate;

	if (!rate)
		return 0;
	if (limit->unit == OFFLOAD_FRAMES)
		return LIMIT_SECOND / rate;
	return bytes * 8 * (limit->unit == OFFLOAD_BITS ? LIMIT_SECOND : LIMIT_SECOND / 1000) / rate;
}

static __always_inline int limit_take(struct offload_limit *limit, __u64 bytes)
{
	__u64 now = bpf_ktime_get_ns() * LIMIT_UNITS, cost = limit_cost(limit, bytes);
	int try;

	if (!limit->rate)
		return 1;
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

static __always_inline struct offload_limit *shape(const struct offload_flow *flow, int i)
{
	__u32 at = flow->shapes[i] - 1;

	return flow->shapes[i] ? bpf_map_lookup_elem(&limits, &at) : 0;
}

/* Whether a frame may leave now, as a worker asks (crates/datapath/src/shape/bucket.rs): each rate has something left, however little. */
static __always_inline int shapes_are_open(const struct offload_flow *flow)
{
	__u64 now;
	int i;

	if (!flow->shapes[0])
		return 1;
	now = bpf_ktime_get_ns() * LIMIT_UNITS;
#pragma unroll
	for (i = 0; i < OFFLOAD_SHAPES_EACH; i++) {
		struct offload_limit *limit = shape(flow, i);
		__u64 ahead;

		if (!limit)
			break;
		ahead = *(volatile __u64 *)&limit->full_at - now;
		if (ahead >= limit->burst && ahead <= limit->burst + LIMIT_SLACK)
			return 0;
	}
	return 1;
}

/* What a frame costs beyond what is left is taken from the time ahead, in which nobody sends. */
static __always_inline void shape_spend(struct offload_limit *limit, __u64 bytes, __u64 now)
{
	__u64 cost = limit_cost(limit, bytes);
	int try;

	for (try = 0; try < LIMIT_TRIES; try++) {
		__u64 full_at = *(volatile __u64 *)&limit->full_at, ahead = full_at - now, idle = 0;

		if (ahead > limit->burst + LIMIT_SLACK) {
			idle = -ahead;
			ahead = 0;
		}
		if (__sync_val_compare_and_swap(&limit->full_at, full_at, now + ahead + cost) == full_at) {
			if (idle)
				__sync_fetch_and_add(&limit->idle, idle);
			return;
		}
	}
	/* Others take all the time: the bucket is not idle. */
	__sync_fetch_and_add(&limit->full_at, cost);
}

static __always_inline void shapes_spend(const struct offload_flow *flow, __u64 bytes)
{
	__u64 now;
	int i;

	if (!flow->shapes[0])
		return;
	now = bpf_ktime_get_ns() * LIMIT_UNITS;
#pragma unroll
	for (i = 0; i < OFFLOAD_SHAPES_EACH; i++) {
		struct offload_limit *limit = shape(flow, i);

		if (!limit)
			break;
		shape_spend(limit, bytes, now);
	}
}

#endif
