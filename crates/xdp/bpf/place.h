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
#include "clocks.h"

/* The interface's core tables: user space fills one while the program reads the other. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct steer_table);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STEER_CPUS);
	__type(key, __u32);
	__type(value, struct steer_placed);
} placed SEC(".maps");

/* place::Facts; and of place::Decision what the walk has found so far. */
struct choice {
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
	__u16 core; /* the answer */
	__u16 free_core;
	__u16 own_core;
	__u32 free_units; /* steer_placed.units of that core, as scored */
	__u32 own_units;
	__u32 skip; /* hash: allowed cores before the one that is meant */
};

/*
 * Where a core chooses. Not on its stack: before Linux 6.7 the verifier follows a callback of bpf_loop()
 * once only, takes what the stack holds at the first step for what it holds at every step, and cuts out
 * the branches that "cannot" be taken, here "there is one already, and it is better". What a map holds it never believes to know.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct choice);
} choices SEC(".maps");

/* What bpf_loop() takes along; nothing of it changes. */
struct walk {
	struct choice *choice;
	const struct steer_table *table;
};

/* place::vse::score: units that the load does not show yet, then the load, for a priority unit with the threshold where the core is not reserved; 20 bits each. */
#define UNITS_MAX 0x7ff
#define UNITS_SHIFT 21
/* Receiving cores that choose at once look again, so often. */
#define CLAIMS 3

/* Units that ever came to a core. */
static __always_inline __u32 units_of(const struct steer_table_core *core)
{
	__u32 id = core->id;
	const struct steer_placed *those = bpf_map_lookup_elem(&placed, &id);

	return those ? volatile_read(those->units) : core->measured;
}

static __always_inline __u32 score(const struct choice *choice, const struct steer_table *table,
				   const struct steer_table_core *core, __u32 units)
{
	__u32 unmeasured = units - core->measured;
	__u32 more = choice->is_priority && core->role != STEER_ROLE_RESERVED ? table->threshold + 1 : 0;

	if (unmeasured > UNITS_MAX)
		unmeasured = UNITS_MAX;
	return unmeasured << UNITS_SHIFT | (core->load + more);
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

static __always_inline void see(struct choice *choice, const struct steer_table *table,
				const struct steer_table_core *core)
{
	__u32 this, units;

	if (core->role == STEER_ROLE_EXCLUDED)
		return;
	if (core->is_pinned) {
		if (!is_own(choice, core))
			return;
		units = units_of(core);
		this = score(choice, table, core, units);
		if (!choice->has_own || this < choice->own_score) {
			choice->has_own = 1;
			choice->own_score = this;
			choice->own_core = core->id;
			choice->own_units = units;
		}
		return;
	}
	if (core->role == STEER_ROLE_RESERVED && !choice->is_priority)
		return;
	if (core->load > (choice->is_priority ? table->priority_threshold : table->threshold)) {
		choice->is_any_above = 1;
		return;
	}
	units = units_of(core);
	this = score(choice, table, core, units);
	if (!choice->has_free || this < choice->free_score) {
		choice->has_free = 1;
		choice->free_score = this;
		choice->free_core = core->id;
		choice->free_units = units;
	}
}

/* One step of the walk, for bpf_loop(); 1 ends it. */
static long see_core(__u32 at, void *context)
{
	const struct walk *walk = context;
	struct choice *choice = walk->choice;
	const struct steer_table_core *core;

	if (at >= STEER_CORES)
		return 1;
	core = &walk->table->cores[at];
	if (choice->policy == STEER_POLICY_VSE) {
		see(choice, walk->table, core);
		return 0;
	}
	if (core->role != STEER_ROLE_ALLOWED)
		return 0;
	if (choice->skip--)
		return 0;
	choice->has_free = 1;
	choice->free_core = core->id;
	choice->free_units = units_of(core);
	return 1;
}

/* A core that was chosen: the unit counts there from now on. 0: another unit came to it meanwhile. */
static __always_inline int claim(__u16 core, __u32 units)
{
	__u32 id = core;
	struct steer_placed *those = bpf_map_lookup_elem(&placed, &id);

	return !those || __sync_val_compare_and_swap(&those->units, units, units + 1) == units;
}

static __always_inline int take_free(struct choice *choice, __u8 reason)
{
	choice->core = choice->free_core;
	choice->reason = reason;
	return claim(choice->free_core, choice->free_units);
}

static __always_inline int take_own(struct choice *choice, __u8 reason)
{
	choice->core = choice->own_core;
	choice->reason = reason;
	return claim(choice->own_core, choice->own_units);
}

static __always_inline int stay_on(struct choice *choice, __u16 rx, __u8 reason)
{
	choice->core = rx;
	choice->reason = reason;
	return 1;
}

/* 0: to be done again. */
static __always_inline int choose(struct choice *choice, const struct steer_table *table, __u16 rx)
{
	struct walk walk = { choice, table };
	__u32 cores = table->len;

	choice->is_any_above = choice->has_free = choice->has_own = 0;
	choice->skip = (__u64)choice->hash * table->allowed >> 32;
	bpf_loop(cores < STEER_CORES ? cores : STEER_CORES, see_core, &walk, 0);
	if (choice->policy != STEER_POLICY_VSE)
		return choice->has_free ? take_free(choice, STEER_REASON_HASH) :
					  stay_on(choice, rx, STEER_REASON_NO_CORE);
	if (choice->wants_own && choice->has_own)
		return take_own(choice, STEER_REASON_OWN_CORE_WANTED);
	if (choice->has_free)
		return take_free(choice, choice->is_priority ? STEER_REASON_PRIORITY : STEER_REASON_LEAST_LOADED);
	if (!choice->is_priority && choice->has_own)
		return take_own(choice, STEER_REASON_OWN_CORE);
	return stay_on(choice, rx, choice->is_any_above ? STEER_REASON_ABOVE_THRESHOLD : STEER_REASON_NO_CORE);
}

/* The core, `rx` if it stays there; the reason is in `choice`. It counts as having come, also if another core decides the same unit first:
 * once too often, until the next measurements. */
static __always_inline __u16 place(struct choice *choice, const struct steer_table *table, __u16 rx)
{
	int i;

	/* Without a jump back: Linux 6.1 refuses one around a call. */
#pragma clang loop unroll(full)
	for (i = 0; i < CLAIMS; i++)
		if (choose(choice, table, rx))
			break;
	return choice->core;
}

#endif
