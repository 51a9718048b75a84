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

/* The first bytes of a frame without its tag, of which `tag` bytes lie before its type. */
static __always_inline int load_head(struct xdp_md *ctx, struct flow_head *head, __u32 len, __u32 tag)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 *to = (void *)head->bytes, *from = data + tag;
	__u32 seen = len - tag, i;

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
		if (bpf_xdp_load_bytes(ctx, tag, head->bytes, seen))
			return 0;
		head->seen = seen;
	}
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (tag && data + 12 <= end) {
		to[0] = *(__u64 *)data;
		*(__u32 *)&to[1] = *(__u32 *)(data + 8);
	}
	return 1;
}

/* The flow of a frame in one piece. */
static __always_inline struct offload_flow *find(struct xdp_md *ctx, struct flow_head *head, __u32 len, __u32 *tag)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct offload_key key = { .port = PORT };
	__u32 *place;

	if (data + FLOW_LEAST > end || data + len != end)
		return 0;
	if (*(__u16 *)(data + 12) == bpf_htons(FLOW_8021Q)) {
		__u16 tci = bpf_ntohs(*(__u16 *)(data + 14));

		if (tci & FLOW_TAGGED)
			return 0;
		key.dl_vlan = tci | FLOW_TAGGED;
		*tag = EDIT_TAG;
	}
	if (!load_head(ctx, head, len, *tag) || !flow_key(head, &key))
		return 0;
	place = bpf_map_lookup_elem(&keys, &key);
	return place ? bpf_map_lookup_elem(&flows, place) : 0;
}

/* By the rung: out of the exit. */
static __always_inline int leave(struct xdp_md *ctx, struct offload_flow *flow, const struct flow_head *head, __u32 len, __u32 tag)
{
	if (!flow_admit(flow, len))
		return XDP_DROP;
	shapes_spend(flow, flow_wire_len(flow, head, len - tag, 0));
	if (MAY_BE_UNFINISHED)
		edit_finish(ctx, flow, head, tag);
	if (!edit(ctx, flow))
		return XDP_DROP;
	if (flow->flags & OFFLOAD_OUTSIDE && !edit_outside(ctx, flow, edit_ecn(flow, head)))
		return XDP_DROP;
	if (flow->flags & OFFLOAD_OUTSIDE_TAG && !edit_tag(ctx, flow->outside_tpid, flow->outside_tci))
		return XDP_DROP;
	return bpf_redirect(flow->exit, 0);
}

SEC(SUIRO_XDP_SECTION)
int suiro_offload(struct xdp_md *ctx)
{
	__u32 zero = 0, tag = 0, len = bpf_xdp_get_buff_len(ctx);
	__u64 *seq = bpf_map_lookup_elem(&handed, &zero);
	struct offload_port *port = this_port();
	struct flow_head head __attribute__((aligned(8))) = {};
	struct offload_flow *flow;
	__u32 queue = ctx->rx_queue_index;
	int may_leave;

	flow = seq && port && port->flows ? find(ctx, &head, len, &tag) : 0;
	if (!flow || !flow_fits(flow, &head, len - tag, 0)) {
		run_stages(ctx, SUIRO_STAGE_STEER);
		return XDP_PASS;
	}
	may_leave = shapes_are_open(flow);
	if (bpf_map_lookup_elem(&sockets, &queue)) {
		if (gate_pass(flow, seq, may_leave))
			return leave(ctx, flow, &head, len, tag);
		if (bpf_redirect_map(&sockets, queue, XDP_DROP) == XDP_REDIRECT)
			return XDP_REDIRECT;
	} else if (gate_pass_alone(flow, may_leave)) {
		return leave(ctx, flow, &head, len, tag);
	}
	__sync_fetch_and_add(&port->orphans, 1);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
