// SPDX-License-Identifier: Apache-2.0
/*
 * The rung xdp, stage `offload` of an interface's hook: flows between AF_XDP ports leave before a socket has them.
 *
 * A frame of a flow goes by the rung, or straight to the port's socket: the worker showed the flow, so no other stage wants it. All other frames
 * go to the next stage. Without a socket the node is dead: each flow goes where it was or shall be, and frames for the worker end here, counted.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "edit_xdp.h"
#include "flow.h"
#include "flows.h"
#include "gate.h"
#include "inside.h"
#include "offload.h"
#include "stages.h"

/* Whether frames come from this host, whose checksums may be open. */
const volatile __u32 MAY_BE_UNFINISHED = 0;

/* The worker stage's: the socket of each queue. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, SUIRO_QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* Frames that this copy of the program gave to the socket, counted before any flow's `given`. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} handed SEC(".maps");

/* Where a frame is in what came. */
struct place {
	__u32 at; /* bytes of a tunnel's headers before it */
	__u32 tag; /* bytes of its tag */
	__u32 len; /* of all that came */
	__u32 is_other; /* what is around it is not the flow's */
};

/* The first bytes of a frame without its tag. */
static __always_inline int load_head(struct xdp_md *ctx, struct flow_head *head, const struct place *place)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 at = place->at, skip = at + place->tag, seen = place->len - skip, i;
	__u64 *to = (void *)head->bytes, *from = data + skip;

	if ((void *)(from + FLOW_SEEN / 8) <= end) {
#pragma unroll
		for (i = 0; i < FLOW_SEEN / 8; i++)
			to[i] = from[i];
		head->seen = FLOW_SEEN;
	} else {
		if (seen > FLOW_SEEN || seen < 1)
			return 0;
		/* Said in the register that is used. */
		asm volatile("" : "+r"(seen));
		if (seen > FLOW_SEEN || seen < 1)
			return 0;
		if (bpf_xdp_load_bytes(ctx, skip, head->bytes, seen))
			return 0;
		head->seen = seen;
	}
	data = (void *)(long)ctx->data + at;
	end = (void *)(long)ctx->data_end;
	if (place->tag && data + 12 <= end) {
		to[0] = *(__u64 *)data;
		*(__u32 *)&to[1] = *(__u32 *)(data + 8);
	}
	return 1;
}

/* The tag of the frame at `at`, as in a key: 0 if there is none; whether it is one that flows may have. */
static __always_inline int read_tag(struct xdp_md *ctx, __u32 at, __u16 *dl_vlan)
{
	void *data = (void *)(long)ctx->data + at, *end = (void *)(long)ctx->data_end;
	__u16 tci;

	if (data + FLOW_LEAST > end)
		return 0;
	if (*(__u16 *)(data + 12) != bpf_htons(FLOW_8021Q))
		return 1;
	tci = bpf_ntohs(*(__u16 *)(data + 14));
	*dl_vlan = tci | FLOW_TAGGED;
	return !(tci & FLOW_TAGGED);
}

/* The flow of the frame in that place, whose key is all 0 but for port and tunnel. */
static __always_inline struct offload_flow *find(struct xdp_md *ctx, struct flow_head *head, struct place *place, struct offload_key *key)
{
	__u32 *found;

	if (!read_tag(ctx, place->at, &key->dl_vlan))
		return 0;
	place->tag = key->dl_vlan ? EDIT_TAG : 0;
	if (!load_head(ctx, head, place) || !flow_key(head, key))
		return 0;
	found = bpf_map_lookup_elem(&keys, key);
	return found ? bpf_map_lookup_elem(&flows, found) : 0;
}

/* The flow of a frame in one piece. */
static __always_inline struct offload_flow *find_flow(struct xdp_md *ctx, const struct offload_port *port, struct flow_head *head,
						      struct place *place)
{
	struct offload_key key = { .port = PORT };
	struct offload_flow *flow;
	__u16 tag = 0;
	int is_whole = (void *)(long)ctx->data + place->len == (void *)(long)ctx->data_end;

	/* Not known to the compiler: it would compare with the first of the two, of which the verifier knows no bound. */
	asm volatile("" : "+r"(is_whole));
	if (!is_whole)
		return 0;
	if (port->inside && read_tag(ctx, 0, &tag) && inside_tunnel(ctx, tag, &key.tunnel)) {
		place->at = OFFLOAD_OUTSIDE_BYTES + (tag ? EDIT_TAG : 0);
		flow = find(ctx, head, place, &key);
		if (flow) {
			place->is_other = !inside_is(ctx, flow, tag);
			return flow;
		}
		place->at = 0;
		__builtin_memset(&key, 0, sizeof(key));
		key.port = PORT;
	}
	return find(ctx, head, place, &key);
}

/* By the rung: out of the exit. */
static __always_inline int leave(struct xdp_md *ctx, struct offload_flow *flow, const struct flow_head *head, const struct place *place)
{
	__u32 tag = place->tag, len = place->len - place->at;

	if (!flow_admit(flow, len))
		return XDP_DROP;
	shapes_spend(flow, flow_wire_len(flow, head, len - tag, 0));
	if (place->at && bpf_xdp_adjust_head(ctx, place->at))
		return XDP_DROP;
	/* What a tunnel brings may come from any host. */
	if (MAY_BE_UNFINISHED || place->at)
		edit_finish(ctx, flow, head, tag);
	if (!edit(ctx, flow))
		return XDP_DROP;
	if (flow->flags & OFFLOAD_OUTSIDE && !edit_outside(ctx, flow, edit_ecn(flow, head)))
		return XDP_DROP;
	if (flow->flags & OFFLOAD_OUTSIDE_TAG && !place->at && !edit_tag(ctx, flow->outside_tpid, flow->outside_tci))
		return XDP_DROP;
	return bpf_redirect(flow->exit, 0);
}

/* Whether the flow's program does with the frame what the worker would. */
static __always_inline int fits(struct xdp_md *ctx, const struct offload_flow *flow, const struct flow_head *head, const struct place *place)
{
	return flow_fits(flow, head, place->len - place->at - place->tag, 0) &&
	       (!place->at || place->is_other || inside_fits(ctx, flow, edit_ecn(flow, head), place->at - OFFLOAD_OUTSIDE_BYTES, MAY_BE_UNFINISHED));
}

SEC(SUIRO_XDP_SECTION)
int suiro_offload(struct xdp_md *ctx)
{
	struct place place = { .len = bpf_xdp_get_buff_len(ctx) };
	__u32 zero = 0;
	__u64 *seq = bpf_map_lookup_elem(&handed, &zero);
	struct offload_port *port = this_port();
	struct flow_head head __attribute__((aligned(8))) = {};
	struct offload_flow *flow;
	__u32 queue = ctx->rx_queue_index;
	int may_leave;

	flow = seq && port && port->flows ? find_flow(ctx, port, &head, &place) : 0;
	if (!flow || !fits(ctx, flow, &head, &place)) {
		run_stages(ctx, SUIRO_STAGE_STEER);
		return XDP_PASS;
	}
	/* From elsewhere, or by another way, packets come in another order than before: all behind such a frame goes where it goes. */
	may_leave = !place.is_other && shapes_are_open(flow);
	if (bpf_map_lookup_elem(&sockets, &queue)) {
		if (gate_pass(flow, seq, may_leave))
			return leave(ctx, flow, &head, &place);
		if (bpf_redirect_map(&sockets, queue, XDP_DROP) == XDP_REDIRECT)
			return XDP_REDIRECT;
	} else if (gate_pass_alone(flow, may_leave)) {
		return leave(ctx, flow, &head, &place);
	}
	__sync_fetch_and_add(&port->orphans, 1);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
