/* SPDX-License-Identifier: Apache-2.0
 *
 * When may a unit go to another core? When none of its frames is on its way through the old one.
 *
 * A frame that was sent to core X is (a) in X's queue, or (b) was taken out of it and is in X's
 * network stack: held back to be merged with others (GRO), or in a backlog that X's next receive
 * soft interrupt works off. Behind that, it is in a queue that all cores fill in the order of their
 * calls (a socket's, a guest's ring, a device's), and cannot be overtaken any more.
 *
 *   (a) ends when as many frames reached X's program as were sent: `done.frames == sent`. The sent
 *       ones are counted in the same word as the route, so that a frame is counted with the route it
 *       takes, and a route is changed only if the count is what was compared.
 *   (b) ends when the queue's thread has handed over all it held (steer_clock.epoch), and X's receive
 *       soft interrupt has had nothing left since (steer_core.quiet). trace.bpf.c keeps both.
 *
 * A frame that stayed on the core it came in on is in (b) at once, without the thread.
 */
#ifndef SUIRO_ORDER_H
#define SUIRO_ORDER_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "clocks.h"

#define SENT_MASK ((1ULL << STEER_SENT_BITS) - 1)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STEER_UNITS);
	__type(key, __u32);
	__type(value, struct steer_unit);
} units SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STEER_UNITS);
	__type(key, __u32);
	__type(value, struct steer_done);
} done SEC(".maps");

/* The number of times that the core's soft interrupt had nothing left. */
static __always_inline __u64 quiet_of(__u32 core)
{
	struct steer_core *that = bpf_map_lookup_elem(&cores, &core);

	return that ? volatile_read(that->quiet) : 0;
}

/* Whether all frames that `state` counts are through its core's stack. */
static __always_inline int is_through(__u32 unit, __u64 state, __u32 slot)
{
	struct steer_done *last = bpf_map_lookup_elem(&done, &unit);
	__u32 core = state >> STEER_SENT_BITS & ~STEER_LOCAL, key;
	struct steer_clock *clock;

	if (!last || volatile_read(last->frames) != (state & SENT_MASK))
		return 0;
	if (!(state & SENT_MASK))
		return 1;
	if (last->is_local)
		return quiet_of(core) > volatile_read(last->mark);
	key = slot * STEER_CPUS + core;
	clock = bpf_map_lookup_elem(&clocks, &key);
	/* The epoch first: what must be quiet is written before it. */
	if (!clock || volatile_read(clock->epoch) < volatile_read(last->mark) + EPOCHS_NEEDED)
		return 0;
	compiler_barrier();
	return quiet_of(core) >= volatile_read(clock->quiet);
}

/*
 * A frame of the unit reached this core through its queue, and was dropped there: nothing of it is in the stack. What is noted of
 * another core or way was through before the unit came here, and must not be compared with this core's numbers.
 */
static __always_inline void note_gone(__u32 unit, __u32 cpu)
{
	struct steer_done *last = bpf_map_lookup_elem(&done, &unit);

	if (!last)
		return;
	if (last->is_local || last->core != cpu) {
		last->is_local = 0;
		last->core = cpu;
		volatile_read(last->mark) = 0;
	}
	compiler_barrier();
	volatile_read(last->frames) = (last->frames + 1) & SENT_MASK;
}

/* A frame of the unit is in this core's stack. Only its core writes this. */
static __always_inline void note_done(__u32 unit, __u32 cpu, __u64 mark, __u64 is_local, __u64 bytes)
{
	struct steer_done *last = bpf_map_lookup_elem(&done, &unit);

	if (!last)
		return;
	last->bytes += bytes;
	last->is_local = is_local;
	last->core = cpu;
	volatile_read(last->mark) = mark;
	compiler_barrier();
	volatile_read(last->frames) = (last->frames + 1) & SENT_MASK;
}

#endif
