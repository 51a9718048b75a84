/* SPDX-License-Identifier: Apache-2.0
 *
 * A frame to its unit's core, and the unit to another core when it may (order.h).
 *
 * The unit's state is one word, its route and the number of frames that took it. A frame is counted
 * and learns its route in one atomic operation; the route is changed by one that fails if any frame
 * was counted since it was seen that none is under way.
 */
#ifndef SUIRO_ROUTE_H
#define SUIRO_ROUTE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "order.h"
#include "passage.h"

/* A queue with more than the kernel takes at twice is behind: what waits in it is worth dropping frames for. */
#define BEHIND_FRAMES 16

/* The frame stays on this core, where its unit is. */
static __always_inline int stay(struct passage *passage, __u32 number)
{
	note_done(number, passage->cpu, quiet_of(passage->cpu), 1, passage->bytes);
	return pass(STEER_STAYED, passage->bytes);
}

static __always_inline __u64 epoch_of(const struct passage *passage, __u32 core)
{
	__u32 key = passage->config->slot * STEER_CPUS + core;
	struct steer_clock *clock = bpf_map_lookup_elem(&clocks, &key);

	return clock ? volatile_read(clock->epoch) : 0;
}

/*
 * For an urgent move away from a core that is behind, the ordinary frames that wait in its queue are
 * dropped, and no new ones enter until its thread has come to the end of it and slept: that is what it
 * has in hand, a batch. A thread that never slept would be through only with two windows of frames
 * more (trace.bpf.c), behind all that waits.
 */
static __always_inline void hush(const struct passage *passage, struct steer_ring *ring, __u32 core, __u64 until_ns)
{
	if (ring->hush_ns)
		return;
	ring->hush_epoch = epoch_of(passage, core);
	volatile_read(ring->purge) = volatile_read(ring->sent);
	compiler_barrier();
	volatile_read(ring->hush_ns) = until_ns;
}

static __always_inline int is_hushed(const struct passage *passage, struct steer_ring *ring, __u32 core)
{
	__u64 until = volatile_read(ring->hush_ns);

	if (!until)
		return 0;
	compiler_barrier();
	if (epoch_of(passage, core) < ring->hush_epoch + EPOCHS_NEEDED && bpf_ktime_get_ns() < until)
		return 1;
	volatile_read(ring->hush_ns) = 0;
	return 0;
}

/*
 * Whether the queue has room. The last eighth is for priority flows; half of it is also for the later
 * pieces of a datagram, whose first ones would have come in vain.
 */
static __always_inline int has_room(struct steer_ring *ring, const struct steer_unit *unit, __u32 limit, int is_later_piece)
{
	if (!(unit->flags & STEER_IS_PRIORITY))
		limit -= limit / (is_later_piece ? 16 : 8);
	if (volatile_read(ring->sent) - ring->left_seen < limit)
		return 1;
	/* The receiver's line is read only when it matters. */
	ring->left_seen = volatile_read(ring->left);
	return volatile_read(ring->sent) - ring->left_seen < limit;
}

/* A frame of the unit is dropped, and with it what is to come of its datagram. */
static __always_inline int refuse(const struct passage *passage, struct steer_unit *unit, __u32 number, __u32 verdict)
{
	forget_fragments(&passage->bench->packet, number);
	return drop(verdict, unit, passage->bytes);
}

/* Counts a frame of the unit, with the route `next` if nobody changed `state` meanwhile; the route that it is counted with. */
static __always_inline __u32 count_in(struct steer_unit *unit, __u64 state, __u64 next)
{
	__u64 seen = next;

	if (state == next)
		seen = __sync_fetch_and_add(&unit->state, 1);
	else if (__sync_val_compare_and_swap(&unit->state, state, next + 1) != state)
		seen = __sync_fetch_and_add(&unit->state, 1);
	return seen >> STEER_SENT_BITS;
}

/* Puts the unit's number in front of the frame; 0 if the driver has left no room. */
static __always_inline int put_label(struct xdp_md *ctx, __u32 unit, __u32 tag)
{
	struct label *label;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*label)))
		return 0;
	label = (void *)(long)ctx->data_meta;
	if ((void *)(label + 1) > (void *)(long)ctx->data)
		return 0;
	label->unit = unit;
	label->tag = tag;
	return 1;
}

/* The frame, labelled and counted, through the queue of its core. */
static __always_inline int send(struct xdp_md *ctx, const struct passage *passage, __u32 core)
{
	struct steer_ring *ring = bpf_map_lookup_elem(&rings, &core);

	if (!ring)
		return pass(STEER_ODD, passage->bytes);
	/* Only now: a frame that stays has its mark still, and must not be finished. */
	if (passage->config->may_be_unfinished &&
	    finish_sums(ctx, &passage->bench->packet, &passage->bench->summing))
		count(STEER_SUMMED, passage->bytes);
	__sync_fetch_and_add(&ring->sent, 1);
	count(STEER_SENT, passage->bytes);
	return ENDED(XDP_REDIRECT, STEER_SENT);
}

/* Another core moved the unit while this one looked: the frame is counted there, so it goes there. */
static __always_inline int follow(struct xdp_md *ctx, struct passage *passage, __u32 number, __u32 route, int is_labelled)
{
	__u32 core = route & ~STEER_LOCAL;

	if (core == passage->cpu && route & STEER_LOCAL) {
		if (is_labelled)
			bpf_xdp_adjust_meta(ctx, sizeof(struct label));
		return stay(passage, number);
	}
	if (!is_labelled && !put_label(ctx, number, passage->config->tag))
		return pass(STEER_NO_META, passage->bytes);
	bpf_redirect_map(&queues, core, XDP_PASS);
	return send(ctx, passage, core);
}

/*
 * The frame goes along the route of `next`, which is the unit's from now on, unless another core was
 * faster. All that can refuse the frame does so before it is counted.
 */
static __always_inline int go(struct xdp_md *ctx, struct passage *passage, struct steer_unit *unit, __u32 number,
			      __u64 state, __u64 next)
{
	__u32 route = next >> STEER_SENT_BITS, core = route & ~STEER_LOCAL, seen;
	struct steer_ring *ring;

	if (core == passage->cpu && route & STEER_LOCAL) {
		seen = count_in(unit, state, next);
		return seen == route ? stay(passage, number) : follow(ctx, passage, number, seen, 0);
	}
	ring = bpf_map_lookup_elem(&rings, &core);
	if (!ring)
		return pass(STEER_ODD, passage->bytes);
	if (is_hushed(passage, ring, core) && !(unit->flags & STEER_IS_PRIORITY))
		return refuse(passage, unit, number, STEER_DRAINING);
	if (!has_room(ring, unit, passage->config->queue, !!(passage->bench->packet.words[5] & STEER_FRAG_LATER))) {
		__sync_fetch_and_add(&ring->refused, 1);
		return refuse(passage, unit, number, STEER_QUEUE_FULL);
	}
	if (bpf_redirect_map(&queues, core, XDP_PASS) != XDP_REDIRECT)
		return pass(STEER_NO_QUEUE, passage->bytes);
	if (!put_label(ctx, number, passage->config->tag))
		return pass(STEER_NO_META, passage->bytes);
	seen = count_in(unit, state, next);
	return seen == route ? send(ctx, passage, core) : follow(ctx, passage, number, seen, 1);
}

/* The unit's frames go elsewhere from this one on. */
static __always_inline void note_moved(const struct passage *passage, struct steer_unit *unit, __u32 number,
				       __u16 from, __u16 to, __u8 reason)
{
	__u64 now = bpf_ktime_get_ns();

	unit->moved_ns = now;
	unit->moves++;
	/* None: nobody decided, the interface's own core has changed. */
	if (reason)
		unit->reason = reason;
	tell(passage, STEER_EVENT_MOVED, number, from, to, reason, now - unit->wanted_ns);
}

static __always_inline int is_behind(const struct steer_ring *ring)
{
	return volatile_read(ring->sent) - volatile_read(ring->left) > BEHIND_FRAMES;
}

/* An urgent move that cannot be made yet: the unit's frames wait no longer than they must. */
static __always_inline int hurry(struct xdp_md *ctx, struct passage *passage, struct steer_unit *unit, __u32 number,
				 __u64 state, __u32 wanted)
{
	__u32 route = state >> STEER_SENT_BITS, from = route & ~STEER_LOCAL;
	struct steer_ring *ring = route & STEER_LOCAL ? 0 : bpf_map_lookup_elem(&rings, &from);
	__u64 end = unit->wanted_ns + passage->config->drain_ns + passage->config->give_up_ns;
	__s64 waited = bpf_ktime_get_ns() - unit->wanted_ns, drain = passage->config->drain_ns;

	if (ring && is_behind(ring))
		drain = 0;
	if (waited < drain)
		return go(ctx, passage, unit, number, state, state);
	if ((__s64)(end - unit->wanted_ns) > waited) {
		if (ring && is_behind(ring))
			hush(passage, ring, from, end);
		return refuse(passage, unit, number, STEER_DRAINING);
	}
	/* The old core does not come to rest: the flow keeps its order, and stays. */
	if (__sync_val_compare_and_swap(&unit->wanted, wanted, (__u32)unit->reason << STEER_REASON_SHIFT | from) == wanted)
		tell(passage, STEER_EVENT_GIVEN_UP, number, from, wanted, wanted >> STEER_REASON_SHIFT, waited);
	return go(ctx, passage, unit, number, state, state);
}

/* A unit whose route is not the wanted one: it moves if it may, else its frames go where they went. */
static __always_inline int move(struct xdp_md *ctx, struct passage *passage, struct steer_unit *unit, __u32 number,
				__u64 state, __u32 wanted, __u32 route)
{
	__u32 old = state >> STEER_SENT_BITS, from = old & ~STEER_LOCAL, to = route & ~STEER_LOCAL;
	__u64 next = (state & SENT_MASK) | (__u64)route << STEER_SENT_BITS;
	int action;

	/* It stayed on its core, whose frames come in on another one now: they go to it by its queue. */
	if (from == to && old & STEER_LOCAL)
		return go(ctx, passage, unit, number, state, next);
	if (old != STEER_ROUTE_NONE && !is_through(number, state, passage->config->slot))
		return wanted & STEER_URGENT ? hurry(ctx, passage, unit, number, state, wanted) :
					       go(ctx, passage, unit, number, state, state);
	action = go(ctx, passage, unit, number, state, next);
	if (old != STEER_ROUTE_NONE && from != to && volatile_read(unit->state) >> STEER_SENT_BITS == route)
		note_moved(passage, unit, number, from, to, wanted >> STEER_REASON_SHIFT);
	return action;
}

#endif
