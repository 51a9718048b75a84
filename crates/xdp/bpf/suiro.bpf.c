// SPDX-License-Identifier: Apache-2.0
/*
 * The first program that sees a frame of a kernel-backed port.
 *
 * A frame runs through the stages in order until one decides: offload, steer, worker
 * (design.md section 2). A stage returns a verdict or NEXT. Only the worker stage exists;
 * the others go before it in suiro_ingress() and touch nothing else.
 *
 * Every exit counts its verdict. Frames that no stage wants pass to the kernel: they are
 * never lost here. A full socket is counted by the socket itself (XDP_STATISTICS).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"

#define NEXT (-1)

/* The AF_XDP socket of each rx queue. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, SUIRO_QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* Frames and bytes by verdict. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SUIRO_VERDICTS);
	__type(key, __u32);
	__type(value, struct verdict_count);
} verdicts SEC(".maps");

static __always_inline void count(struct xdp_md *ctx, __u32 verdict)
{
	struct verdict_count *counter = bpf_map_lookup_elem(&verdicts, &verdict);

	if (counter) {
		counter->frames++;
		counter->bytes += ctx->data_end - ctx->data;
	}
}

/* The frame goes to the worker that polls its queue, if one does. */
static __always_inline int stage_worker(struct xdp_md *ctx)
{
	int action = bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);

	if (action != XDP_REDIRECT)
		return NEXT;
	count(ctx, SUIRO_VERDICT_WORKER);
	return action;
}

SEC("xdp")
int suiro_ingress(struct xdp_md *ctx)
{
	int action = stage_worker(ctx);

	if (action != NEXT)
		return action;
	count(ctx, SUIRO_VERDICT_PASS);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
