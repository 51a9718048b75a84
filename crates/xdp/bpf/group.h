/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of a SO_REUSEPORT group: each datagram goes to one of them, or to nobody's.
 */
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"

#define UDP_HEADER 8

/* The group's sockets. The first is nobody's and keeps nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_REUSEPORT_SOCKARRAY);
	__uint(max_entries, TUNNEL_SOCKETS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* Datagrams that nobody owns. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} strays SEC(".maps");

/* Gives a datagram to the socket at a place; false if none is there. */
static __always_inline int give(struct sk_reuseport_md *md, __u32 place)
{
	return !bpf_sk_select_reuseport(md, &sockets, &place, 0);
}

/* Gives a datagram to nobody. Dropped it would be answered with "port unreachable", which kills other tunnels. */
static __always_inline void give_nobody(struct sk_reuseport_md *md, int is_stray)
{
	__u32 nobody = 0;
	__u64 *stray = bpf_map_lookup_elem(&strays, &nobody);

	if (stray && is_stray)
		++*stray;
	bpf_sk_select_reuseport(md, &sockets, &nobody, 0);
}
