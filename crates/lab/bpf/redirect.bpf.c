// SPDX-License-Identifier: Apache-2.0
/*
 * A plain redirect to one interface: what the kernel itself costs where a rung looks up, edits, counts and limits besides.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} exits SEC(".maps");

SEC("xdp")
int redirect(struct xdp_md *context)
{
	return bpf_redirect_map(&exits, 0, XDP_DROP);
}
