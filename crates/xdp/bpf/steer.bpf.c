// SPDX-License-Identifier: Apache-2.0
/*
 * VS-extend's flow table outside the driver: each frame of an interface to the core of its unit.
 *
 * suiro_steer runs where the driver receives: what is in the frame (dissect.h), which unit it
 * belongs to (classify.h), on which core that is, or will be from now on (place.h), whether the
 * unit may go there yet (order.h). suiro_arrive runs on the core that a frame was sent to.
 *
 * Frames that nothing here wants go to the next stage of the hook (stages.h), or pass to the kernel where they came in. The only frames ever
 * dropped are those whose core has no room for them, those of an urgent move, and the fragments
 * whose datagram lost one of them so.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "classify.h"
#include "dissect.h"
#include "order.h"
#include "passage.h"
#include "place.h"
#include "route.h"
#include "shown.h"
#include "stages.h"

/* What a group is placed by is the group, not the flow that came first. */
static __always_inline __u32 hash_of(const struct passage *passage, __u32 number)
{
	__u32 groups = passage->config->groups;

	if (number >= STEER_FCF_FIRST || !groups)
		return flow_hash(passage->bench, passage->config);
	return (((__u64)number << 32) / groups);
}

/* Chooses a core for a unit that has none; the core that its frames go to now. */
static __always_inline __u16 decide(struct passage *passage, struct steer_unit *unit, __u32 number)
{
	__u32 zero = 0, active, undecided, route = unit->state >> STEER_SENT_BITS;
	/* Who stays, stays where its frames come in. */
	__u16 here = route == STEER_ROUTE_NONE || route & STEER_LOCAL ? passage->cpu : route, core;
	struct choice *choice = bpf_map_lookup_elem(&choices, &zero);
	struct steer_table *table;

	if (!choice)
		return here;
	active = passage->config->table;
	table = bpf_map_lookup_elem(&tables, &active);
	if (!table || (route != STEER_ROUTE_NONE && unit->table == table->generation))
		return here;
	unit->table = table->generation;
	choice->hash = unit->hash = hash_of(passage, number);
	choice->vm = unit->vm;
	choice->is_priority = !!(unit->flags & STEER_IS_PRIORITY);
	choice->wants_own = !!(unit->flags & STEER_WANTS_OWN);
	choice->policy = unit->flags & STEER_BY_HASH ? STEER_POLICY_HASH : passage->config->policy;
	core = place(choice, table, here);
	unit->reason = choice->reason;
	if (choice->reason == STEER_REASON_ABOVE_THRESHOLD || choice->reason == STEER_REASON_NO_CORE)
		return core;
	undecided = unit->wanted;
	if ((undecided & STEER_UNDECIDED) != STEER_UNDECIDED)
		return undecided & STEER_UNDECIDED;
	unit->wanted_ns = bpf_ktime_get_ns();
	if (__sync_val_compare_and_swap(&unit->wanted, undecided,
					(__u32)choice->reason << STEER_REASON_SHIFT | core) == undecided)
		tell(passage, STEER_EVENT_PLACED, number, here, core, choice->reason, 0);
	return core;
}

static __always_inline int steer(struct xdp_md *ctx, struct passage *passage, __u32 number)
{
	struct steer_unit *unit = bpf_map_lookup_elem(&units, &number);
	__u32 wanted, core, route;
	__u64 state;

	if (!unit)
		return pass(STEER_ODD, passage->bytes);
	wanted = volatile_read(unit->wanted);
	core = wanted & STEER_UNDECIDED;
	if (core == STEER_UNDECIDED)
		core = decide(passage, unit, number);
	route = core == passage->cpu ? core | STEER_LOCAL : core;
	state = volatile_read(unit->state);
	if (state >> STEER_SENT_BITS == route)
		return go(ctx, passage, unit, number, state, state);
	return move(ctx, passage, unit, number, state, wanted, route);
}

/* No verdict: it was shown already. */
#define IS_SHOWN 0xff

/* The next stage has it, or the kernel's stack on this core where there is none. */
static __always_inline int hand_on(struct xdp_md *ctx, __u32 verdict, __u32 bytes)
{
	count(verdict, bytes);
	/* Before the call of a stage, which does not come back. */
	show(ctx, STEER_AFTER, verdict, NO_UNIT);
	run_stages(ctx, SUIRO_STAGE_WORKER);
	note_received(bytes);
	return ENDED(XDP_PASS, IS_SHOWN);
}

/* A frame that no entry matches stays; remembered, for the entry that may come. */
static __always_inline int miss(struct xdp_md *ctx, const struct passage *passage)
{
	struct steer_received *here = this_core();

	if (here)
		here->mark = quiet_of(passage->cpu);
	return hand_on(ctx, STEER_MISSED, passage->bytes);
}

/* ARP is steered where an entry names it: no group takes it. */
static __always_inline int is_named_arp(const struct passage *passage)
{
	if (!passage->bench->packet.is_arp)
		return 0;
	classify(passage->bench, passage->config);
	return anew(passage->bench->found.priority_new) != 0;
}

/* Whether a flow that has an entry now may leave the frames without one: they are all of this core. */
static __always_inline int may_leave_missed(const struct passage *passage)
{
	struct steer_received *here = this_core();
	__u32 change = passage->config->change;

	if (!here)
		return 0;
	if (here->latch != change && quiet_of(passage->cpu) > here->mark)
		here->latch = change;
	return here->latch == change;
}

/* Likewise a unit. What was seen once holds for the change: a flow never goes back. */
static __always_inline int may_leave(const struct passage *passage, __u32 number)
{
	struct steer_unit *unit = bpf_map_lookup_elem(&units, &number);
	__u32 change = passage->config->change;

	if (!unit)
		return 1;
	if (unit->latch != change && is_through(number, volatile_read(unit->state), passage->config->slot))
		unit->latch = change;
	return unit->latch == change;
}

/* The one of a frame's two units that it goes with. */
static __always_inline __u32 unit_of(const struct passage *passage)
{
	__u32 old = passage->bench->found.unit_old, new = passage->bench->found.unit_new;

	if (old == new)
		return new;
	if (old == NO_UNIT)
		return may_leave_missed(passage) ? new : old;
	return may_leave(passage, old) ? new : old;
}

/* The unit of a later fragment's first one. */
static __always_inline __u32 unit_of_fragment(const struct packet *packet, __u32 bytes)
{
	struct steer_fragment key;
	__u32 *unit;

	fragment_key(packet, &key);
	unit = bpf_map_lookup_elem(&fragments, &key);
	count(unit ? STEER_FRAG_FOLLOWED : STEER_FRAG_ORPHAN, bytes);
	return unit ? *unit : NO_UNIT;
}

/* A piece whose datagram cannot be put together any more. */
static __always_inline int drop_piece(struct bench *bench, __u32 number, __u32 bytes)
{
	struct steer_unit *unit = bpf_map_lookup_elem(&units, &number);

	bench->unit = number;
	return unit ? drop(STEER_PIECE, unit, bytes) : pass(STEER_ODD, bytes);
}

static __always_inline int steer_frame(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct passage passage = {};
	struct steer_received *here = this_core();
	__u32 zero = 0, number = NO_UNIT;

	passage.bytes = end - data;
	passage.config = bpf_map_lookup_elem(&config, &zero);
	passage.bench = bpf_map_lookup_elem(&benches, &zero);
	passage.cpu = bpf_get_smp_processor_id();
	if (!passage.config || !passage.bench || !here)
		return hand_on(ctx, STEER_ODD, passage.bytes);
	here->arrived++;
	passage.bench->unit = NO_UNIT;
	dissect(&passage.bench->packet, data, end, passage.config->vxlan_port);
	if (!passage.bench->packet.is_ip && !is_named_arp(&passage))
		return hand_on(ctx, STEER_NOT_IP, passage.bytes);
	if (passage.bench->packet.words[5] & STEER_FRAG_LATER)
		number = unit_of_fragment(&passage.bench->packet, passage.bytes);
	if (number == NO_UNIT && passage.config->may_be_unfinished &&
	    may_hide_sum(&passage.bench->packet, passage.config->vxlan_port)) {
		classify(passage.bench, passage.config);
		number = passage.bench->found.unit_new == NO_UNIT ? HANDED_ON : STAYS;
		remember_fragments(&passage.bench->packet, number);
	}
	if (number == HANDED_ON)
		return hand_on(ctx, STEER_UNSUMMED, passage.bytes);
	if (number == STAYS)
		return pass(STEER_UNSUMMED, passage.bytes);
	if (number != NO_UNIT && number & IS_LOST)
		return drop_piece(passage.bench, number & ~IS_LOST, passage.bytes);
	if (number == NO_UNIT) {
		classify(passage.bench, passage.config);
		number = unit_of(&passage);
		remember_fragments(&passage.bench->packet, number);
	}
	if (number == NO_UNIT)
		return miss(ctx, &passage);
	passage.bench->unit = number;
	return steer(ctx, &passage, number);
}

/* What was sent to another core is shown there. */
static __always_inline void show_end(struct xdp_md *ctx, int ended)
{
	__u32 zero = 0, action = ACTION_OF(ended);
	const struct bench *bench;

	if (action == XDP_REDIRECT || VERDICT_OF(ended) == IS_SHOWN || !looked_at())
		return;
	bench = bpf_map_lookup_elem(&benches, &zero);
	show(ctx, action == XDP_DROP ? STEER_DROPPED : STEER_AFTER, VERDICT_OF(ended), bench ? bench->unit : NO_UNIT);
}

SEC("xdp.frags")
int suiro_steer(struct xdp_md *ctx)
{
	int ended;

	show(ctx, STEER_BEFORE, 0, NO_UNIT);
	ended = steer_frame(ctx);
	show_end(ctx, ended);
	return ACTION_OF(ended);
}

/* Whether the unit's frames are dropped for another unit's urgent move. */
static __always_inline int is_ordinary(const struct steer_unit *unit)
{
	return unit && !(unit->flags & STEER_IS_PRIORITY);
}

static __always_inline int arrive_frame(struct xdp_md *ctx, __u32 *unit)
{
	__u32 bytes = ctx->data_end - ctx->data, zero = 0, cpu = bpf_get_smp_processor_id(), key;
	const struct steer_config *known = bpf_map_lookup_elem(&config, &zero);
	struct steer_ring *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct label *label = (void *)(long)ctx->data_meta;
	struct steer_unit *owner;
	struct steer_clock *clock;
	int is_purged = 0;

	/* Only the queue's thread writes this. */
	if (ring) {
		volatile_read(ring->left) = ring->left + 1;
		is_purged = ring->left <= volatile_read(ring->purge);
	}
	if ((void *)(label + 1) > (void *)(long)ctx->data)
		return pass(STEER_UNKNOWN, bytes);
	key = label->unit;
	if (!known || label->tag != known->tag || bpf_xdp_adjust_meta(ctx, sizeof(*label)))
		return pass(STEER_UNKNOWN, bytes);
	*unit = key;
	if (is_purged) {
		owner = bpf_map_lookup_elem(&units, unit);
		if (is_ordinary(owner)) {
			note_gone(*unit, cpu);
			return drop(STEER_DRAINING, owner, bytes);
		}
	}
	key = known->slot * STEER_CPUS + cpu;
	clock = bpf_map_lookup_elem(&clocks, &key);
	note_done(*unit, cpu, clock ? volatile_read(clock->epoch) : 0, 0, bytes);
	note_received(bytes);
	/* Counted where it was sent. */
	return ENDED(XDP_PASS, STEER_SENT);
}

SEC("xdp.frags/cpumap")
int suiro_arrive(struct xdp_md *ctx)
{
	__u32 unit = NO_UNIT;
	int ended = arrive_frame(ctx, &unit);

	show(ctx, ACTION_OF(ended) == XDP_DROP ? STEER_DROPPED : STEER_AFTER, VERDICT_OF(ended), unit);
	return ACTION_OF(ended);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
