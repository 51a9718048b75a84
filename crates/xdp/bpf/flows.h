/* SPDX-License-Identifier: Apache-2.0
 *
 * The flows of a host, and how a key leads to one.
 */
#ifndef SUIRO_FLOWS_H
#define SUIRO_FLOWS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "limit.h"
#include "offload.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OFFLOAD_FLOWS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, struct offload_key);
	__type(value, __u32);
} keys SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OFFLOAD_FLOWS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct offload_flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OFFLOAD_PORTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, __u32);
	__type(value, struct offload_port);
} ports SEC(".maps");

/* The port of this copy of the program, written by the loader. */
const volatile __u32 PORT = 0;

static __always_inline struct offload_port *this_port(void)
{
	__u32 port = PORT;

	return bpf_map_lookup_elem(&ports, &port);
}

/* Counts a frame, and asks its limits; false: one refuses it. */
static __always_inline int flow_admit(struct offload_flow *flow, __u64 bytes)
{
	int admitted = !flow->limits[0] || limits_take(flow, bytes);

	__sync_fetch_and_add(&flow->frames, 1);
	__sync_fetch_and_add(&flow->bytes, bytes);
	flow->used_ns = bpf_ktime_get_coarse_ns();
	if (!admitted) {
		__sync_fetch_and_add(&flow->limited, 1);
		__sync_fetch_and_add(&flow->limited_bytes, bytes);
	}
	return admitted;
}

#endif
