// SPDX-License-Identifier: Apache-2.0
/*
 * The dissector alone: what suiro_steer would see in a frame. Run by user space only, to explain
 * and to test.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "dissect.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct packet);
} dissected SEC(".maps");

/* RFC 7348: the port that the kernel's own device listens on by default today. */
#define VXLAN_PORT 4789

SEC("xdp")
int suiro_dissect(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct packet *packet = bpf_map_lookup_elem(&dissected, &zero);

	if (packet)
		dissect(packet, (void *)(long)ctx->data, (void *)(long)ctx->data_end, VXLAN_PORT);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
