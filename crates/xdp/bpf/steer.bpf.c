// SPDX-License-Identifier: Apache-2.0
/*
 * VS-extend's flow table outside the driver: each frame of an interface to the core of its unit.
 *
 * suiro_steer runs where the driver receives: what is in the frame (dissect.h), which unit it
 * belongs to (classify.h), on which core that is, or will be from now on (place.h), whether the
 * unit may go there yet (order.h). suiro_arrive runs on the core that a frame was sent to.
 *
 * Frames that nothing here wants pass to the kernel where they came in. The only frames ever
 * dropped are those whose core has no room for them, and those of an urgent move.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "classify.h"
#include "dissect.h"
#include "order.h"
#include "place.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steer_config);
} config SEC(".maps");

/* The queues: a kernel thread for each core that flows may be on. */
struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, STEER_CPUS);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STEER_CPUS);
	__type(key, __u32);
	__type(value, struct steer_ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steer_received);
} received SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STEER_COUNTS);
	__type(key, __u32);
	__type(value, struct steer_count);
} steered SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, STEER_EVENT_BYTES);
} events SEC(".maps");

/* What a frame takes along to its core. */
struct label {
	__u32 unit;
	__u32 tag;
};

/* A frame on its way through suiro_steer. */
struct passage {
	struct bench *bench;
	const struct steer_config *config;
	struct found found;
	__u32 hash;
	__u32 cpu;
	__u32 bytes;
};

static __always_inline void count(__u32 what, __u32 bytes)
{
	struct steer_count *counter = bpf_map_lookup_elem(&steered, &what);

	if (counter) {
		counter->frames++;
		counter->bytes += bytes;
	}
}

static __always_inline struct steer_received *this_core(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&received, &key);
}

/* The kernel's stack has it now, on this core. */
static __always_inline int pass(__u32 verdict, __u32 bytes)
{
	struct steer_received *here = this_core();

	if (here) {
		here->frames++;
		here->bytes += bytes;
	}
	count(verdict, bytes);
	return XDP_PASS;
}

static __always_inline int drop(__u32 verdict, struct steer_unit *unit, __u32 bytes)
{
	__sync_fetch_and_add(&unit->dropped, 1);
	count(verdict, bytes);
	return XDP_DROP;
}

/* Not inlined, for the object's type information to have the struct. */
static __noinline void set_words(struct steer_event *event, const struct bench *bench)
{
	int i;

	if (!event || !bench)
		return;
	for (i = 0; i < STEER_WORDS; i++)
		event->words[i] = bench->packet.words[i];
}

static __always_inline void tell(const struct passage *passage, __u32 kind, __u32 number, __u16 from, __u16 to,
				 __u8 reason, __u64 waited_ns)
{
	struct steer_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	/* A full ring: nobody reads, and the units tell what became of it. */
	if (!event)
		return;
	event->at_ns = bpf_ktime_get_ns();
	event->waited_ns = waited_ns;
	event->kind = kind;
	event->unit = number;
	event->from = from;
	event->to = to;
	event->reason = reason;
	event->reserved[0] = event->reserved[1] = event->reserved[2] = 0;
	set_words(event, passage->bench);
	bpf_ringbuf_submit(event, 0);
}

/* What a group is placed by is the group, not the flow that came first. */
static __always_inline __u32 hash_of(const struct passage *passage, __u32 number)
{
	__u32 groups = passage->config->groups;

	if (number >= STEER_FCF_FIRST || !groups)
		return passage->hash;
	return (((__u64)number << 32) / groups);
}

/* Chooses a core for a unit that has none; the core that its frames go to now. */
static __always_inline __u16 decide(struct passage *passage, struct steer_unit *unit, __u32 number)
{
	__u32 zero = 0, active, undecided, route = unit->state >> STEER_SENT_BITS;
	/* Who stays, stays where its frames come in. */
	__u16 here = route == STEER_ROUTE_NONE || route & STEER_LOCAL ? passage->cpu : route, core;
	struct steer_host *that = bpf_map_lookup_elem(&host, &zero);
	struct steer_table *table;
	struct choice choice = {};

	if (!that)
		return here;
	active = that->table;
	table = bpf_map_lookup_elem(&tables, &active);
	if (!table || (route != STEER_ROUTE_NONE && unit->table == table->generation))
		return here;
	unit->table = table->generation;
	choice.table = table;
	choice.hash = unit->hash = hash_of(passage, number);
	choice.vm = unit->vm;
	choice.is_priority = !!(unit->flags & STEER_IS_PRIORITY);
	choice.wants_own = !!(unit->flags & STEER_WANTS_OWN);
	choice.policy = unit->flags & STEER_BY_HASH ? STEER_POLICY_HASH : passage->config->policy;
	core = place(&choice, here);
	unit->reason = choice.reason;
	if (choice.reason == STEER_REASON_ABOVE_THRESHOLD || choice.reason == STEER_REASON_NO_CORE)
		return core;
	undecided = unit->wanted;
	if ((undecided & STEER_UNDECIDED) != STEER_UNDECIDED)
		return undecided & STEER_UNDECIDED;
	unit->wanted_ns = bpf_ktime_get_ns();
	if (__sync_val_compare_and_swap(&unit->wanted, undecided,
					(__u32)choice.reason << STEER_REASON_SHIFT | core) == undecided) {
		note_placed(core, table->generation);
		tell(passage, STEER_EVENT_PLACED, number, here, core, choice.reason, 0);
	}
	return core;
}

/* The frame stays on this core, where its unit is. */
static __always_inline int stay(struct passage *passage, __u32 number)
{
	note_done(number, quiet_of(passage->cpu), 1, passage->bytes);
	return pass(STEER_STAYED, passage->bytes);
}

/* Whether the queue has room; the last eighth is for priority flows. */
static __always_inline int has_room(struct steer_ring *ring, const struct steer_unit *unit, __u32 limit)
{
	if (!(unit->flags & STEER_IS_PRIORITY))
		limit -= limit / 8;
	if (volatile_read(ring->sent) - ring->left_seen < limit)
		return 1;
	/* The receiver's line is read only when it matters. */
	ring->left_seen = volatile_read(ring->left);
	return volatile_read(ring->sent) - ring->left_seen < limit;
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
static __always_inline int send(const struct passage *passage, __u32 core)
{
	struct steer_ring *ring = bpf_map_lookup_elem(&rings, &core);

	if (!ring)
		return pass(STEER_ODD, passage->bytes);
	__sync_fetch_and_add(&ring->sent, 1);
	count(STEER_SENT, passage->bytes);
	return XDP_REDIRECT;
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
	return send(passage, core);
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
	if (!has_room(ring, unit, passage->config->queue)) {
		__sync_fetch_and_add(&ring->refused, 1);
		return drop(STEER_QUEUE_FULL, unit, passage->bytes);
	}
	if (bpf_redirect_map(&queues, core, XDP_PASS) != XDP_REDIRECT)
		return pass(STEER_NO_QUEUE, passage->bytes);
	if (!put_label(ctx, number, passage->config->tag))
		return pass(STEER_NO_META, passage->bytes);
	seen = count_in(unit, state, next);
	return seen == route ? send(passage, core) : follow(ctx, passage, number, seen, 1);
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

/* An urgent move that cannot be made yet: the unit's frames wait no longer than they must. */
static __always_inline int hurry(struct xdp_md *ctx, struct passage *passage, struct steer_unit *unit, __u32 number,
				 __u64 state, __u32 wanted)
{
	__u32 from = state >> STEER_SENT_BITS & ~STEER_LOCAL;
	__s64 waited = bpf_ktime_get_ns() - unit->wanted_ns, drain = passage->config->drain_ns;

	if (waited < drain)
		return go(ctx, passage, unit, number, state, state);
	if (waited < drain + passage->config->give_up_ns)
		return drop(STEER_DRAINING, unit, passage->bytes);
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

/* A frame that no entry matches stays; remembered, for the entry that may come. */
static __always_inline int miss(const struct passage *passage)
{
	struct steer_received *here = this_core();

	if (here)
		here->mark = quiet_of(passage->cpu);
	return pass(STEER_MISSED, passage->bytes);
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
	__u32 old = passage->found.unit_old, new = passage->found.unit_new;

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

SEC("xdp.frags")
int suiro_steer(struct xdp_md *ctx)
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
		return pass(STEER_ODD, passage.bytes);
	here->arrived++;
	dissect(&passage.bench->packet, data, end, passage.config->vxlan_port);
	if (!passage.bench->packet.is_ip)
		return pass(STEER_NOT_IP, passage.bytes);
	if (passage.bench->packet.words[5] & STEER_FRAG_LATER)
		number = unit_of_fragment(&passage.bench->packet, passage.bytes);
	if (number == NO_UNIT) {
		passage.hash = classify(&passage.found, passage.bench, passage.config);
		number = unit_of(&passage);
		remember_fragments(&passage.bench->packet, number);
	}
	if (number == NO_UNIT)
		return miss(&passage);
	return steer(ctx, &passage, number);
}

SEC("xdp.frags/cpumap")
int suiro_arrive(struct xdp_md *ctx)
{
	__u32 bytes = ctx->data_end - ctx->data, zero = 0, cpu = bpf_get_smp_processor_id(), key;
	const struct steer_config *known = bpf_map_lookup_elem(&config, &zero);
	struct steer_ring *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct label *label = (void *)(long)ctx->data_meta;
	struct steer_clock *clock;
	__u32 unit;

	/* Only the queue's thread writes this. */
	if (ring)
		volatile_read(ring->left) = ring->left + 1;
	/* In generic mode the kernel forgets the metadata and keeps the bytes. */
	if ((void *)(label + 1) > (void *)(long)ctx->data) {
		if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*label)))
			return pass(STEER_UNKNOWN, bytes);
		label = (void *)(long)ctx->data_meta;
		if ((void *)(label + 1) > (void *)(long)ctx->data)
			return pass(STEER_UNKNOWN, bytes);
	}
	unit = label->unit;
	if (!known || label->tag != known->tag || bpf_xdp_adjust_meta(ctx, sizeof(*label)))
		return pass(STEER_UNKNOWN, bytes);
	key = known->slot * STEER_CPUS + cpu;
	clock = bpf_map_lookup_elem(&clocks, &key);
	note_done(unit, clock ? volatile_read(clock->epoch) : 0, 0, bytes);
	{
		struct steer_received *here = this_core();

		if (here) {
			here->frames++;
			here->bytes += bytes;
		}
	}
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
