// SPDX-License-Identifier: Apache-2.0
/*
 * The last stage: an interface that is a port of a switch.
 *
 * Each frame goes to the worker that polls its queue. One whose queue has no socket is dropped and
 * counted, never left to the host: it belongs to the switch, also after a kill. A full socket is
 * counted by the socket itself (XDP_STATISTICS).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "verdicts.h"

/* The first interface of every namespace; the kernel runs frames of BPF_PROG_TEST_RUN as if received there. */
#define LOOPBACK 1

/* The AF_XDP socket of each rx queue. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, SUIRO_QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

SEC(SUIRO_XDP_SECTION)
int suiro_worker(struct xdp_md *ctx)
{
	int action = bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_DROP);

	/* One that no wire carried asks whether there is a socket (src/hook/orphan.rs), and goes nowhere: the socket's frames are counted exactly. */
	if (action == XDP_REDIRECT && ctx->ingress_ifindex == LOOPBACK)
		return action;
	count(ctx, action == XDP_REDIRECT ? SUIRO_VERDICT_WORKER : SUIRO_VERDICT_NO_SOCKET);
	return action;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
