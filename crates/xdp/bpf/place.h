/* SPDX-License-Identifier: Apache-2.0
 *
 * Which core an undecided unit goes to: crates/place, line by line (vse.rs, hash.rs). A test
 * compares the two on random core tables.
 */
#ifndef SUIRO_PLACE_H
#define SUIRO_PLACE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"

/* The host's core tables: user space fills one while the programs read the other. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct steer_table);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steer_host);
} host SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STEER_CPUS);
	__type(key, __u32);
	__type(value, struct steer_placed);
} placed SEC(".maps");

/* place::Facts; and of place::Decision what the walk has found so far. */
struct choice {
	const struct steer_table *table;
	__u32 hash;
	__u32 policy;
	__u16 vm; /* 0: not known */
	__u8 is_priority;
	__u8 wants_own;
	__u8 is_any_above;
	__u8 has_free;
	__u8 has_own;
	__u8 reason;
	__u32 free_score;
	__u32 own_score;
	__u16 free_core;
	__u16 own_core;
	__u32 skip; /* hash: allowed cores before the one that is meant */
};

#define SCORE_MAX 0x3fffffff

static __always_inline __u32 score(const struct choice *choice, const struct steer_table_core *core)
{
	__u32 id = core->id;
	const struct steer_placed *since = bpf_map_lookup_elem(&placed, &id);
	__u64 units = core->placed;
	__u64 expected;

	if (since && since->generation == choice->table->generation)
		units += since->units;
	expected = core->load + units * choice->table->unit_cost;
	if (expected > SCORE_MAX)
		expected = SCORE_MAX;
	return expected * 2 + (choice->is_priority && core->role != STEER_ROLE_RESERVED);
}

static __always_inline int is_own(const struct choice *choice, const struct steer_table_core *core)
{
	__u32 found = 0;
	int i;

	/* Without branches: the verifier would follow each way through all of them. Only 0 - 1 has the highest bit. */
#pragma unroll
	for (i = 0; i < STEER_PINNED; i++)
		found |= (__u32)(core->pinned[i] ^ choice->vm) - 1;
	return choice->vm && found >> 31;
}

static __always_inline void see(struct choice *choice, const struct steer_table_core *core)
{
	const struct steer_table *table = choice->table;
	__u32 this;

	if (core->role == STEER_ROLE_EXCLUDED)
		return;
	if (core->is_pinned) {
		if (!is_own(choice, core))
			return;
		this = score(choice, core);
		if (!choice->has_own || this < choice->own_score) {
			choice->has_own = 1;
			choice->own_score = this;
			choice->own_core = core->id;
		}
		return;
	}
	if (core->role == STEER_ROLE_RESERVED && !choice->is_priority)
		return;
	if (core->load > (choice->is_priority ? table->priority_threshold : table->threshold)) {
		choice->is_any_above = 1;
		return;
	}
	this = score(choice, core);
	if (!choice->has_free || this < choice->free_score) {
		choice->has_free = 1;
		choice->free_score = this;
		choice->free_core = core->id;
	}
}

/* One step of the walk, for bpf_loop(); 1 ends it. */
static long walk(__u32 at, void *context)
{
	struct choice *choice = context;
	const struct steer_table_core *core;

	if (at >= STEER_CORES)
		return 1;
	core = &choice->table->cores[at];
	if (choice->policy == STEER_POLICY_VSE) {
		see(choice, core);
		return 0;
	}
	if (core->role != STEER_ROLE_ALLOWED)
		return 0;
	if (choice->skip--)
		return 0;
	choice->has_free = 1;
	choice->free_core = core->id;
	return 1;
}

static __always_inline __u16 answer(struct choice *choice, __u16 core, __u8 reason)
{
	choice->reason = reason;
	return core;
}

/* The core, `rx` if it stays there; the reason is in `choice`. */
static __always_inline __u16 place(struct choice *choice, __u16 rx)
{
	__u32 cores = choice->table->len;

	choice->skip = (__u64)choice->hash * choice->table->allowed >> 32;
	bpf_loop(cores < STEER_CORES ? cores : STEER_CORES, walk, choice, 0);
	if (choice->policy != STEER_POLICY_VSE)
		return choice->has_free ? answer(choice, choice->free_core, STEER_REASON_HASH) :
					  answer(choice, rx, STEER_REASON_NO_CORE);
	if (choice->wants_own && choice->has_own)
		return answer(choice, choice->own_core, STEER_REASON_OWN_CORE_WANTED);
	if (choice->has_free)
		return answer(choice, choice->free_core,
			      choice->is_priority ? STEER_REASON_PRIORITY : STEER_REASON_LEAST_LOADED);
	if (!choice->is_priority && choice->has_own)
		return answer(choice, choice->own_core, STEER_REASON_OWN_CORE);
	return answer(choice, rx, choice->is_any_above ? STEER_REASON_ABOVE_THRESHOLD : STEER_REASON_NO_CORE);
}

/* Remembers that a unit came to `core` since its load was measured. */
static __always_inline void note_placed(__u32 core, __u32 generation)
{
	struct steer_placed *since = bpf_map_lookup_elem(&placed, &core);

	if (!since)
		return;
	/* Two cores may do this at once; what they lose is one unit's expected cost, until the next measurement. */
	if (since->generation != generation) {
		since->generation = generation;
		since->units = 0;
	}
	__sync_fetch_and_add(&since->units, 1);
}

#endif
