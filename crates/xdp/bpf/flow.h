/* SPDX-License-Identifier: Apache-2.0
 *
 * Which flow a frame is of, from its first bytes.
 *
 * Only frames whose headers lie where constants can say so have a flow here: Ethernet, at most one tag, IPv4 without options or IPv6 without
 * extension headers, no fragments, TCP, UDP, ICMP. All others are the worker's.
 */
#ifndef SUIRO_FLOW_H
#define SUIRO_FLOW_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "offload.h"

/* Up to the end of TCP's fixed header over IPv6, with a tag: 14 + 4 + 40 + 20, rounded up. */
#define FLOW_SEEN 80
/* The shortest that has a flow: UDP over IPv4. */
#define FLOW_LEAST (14 + 20 + 8)

/* The only type of tag, and in a key: there is one. In a frame that bit is the drop bit, which a flow's frames have clear. */
#define FLOW_8021Q 0x8100
#define FLOW_TAGGED 0x1000

#define FLOW_IPV4 0x0800
#define FLOW_IPV6 0x86dd
#define FLOW_ICMP 1
#define FLOW_TCP 6
#define FLOW_UDP 17
#define FLOW_ICMPV6 58

/* The first bytes of a frame without its tag; what lies behind its end is 0. */
struct flow_head {
	__u8 bytes[FLOW_SEEN];
	__u32 seen; /* bytes of the frame in it */
};

static __always_inline __u16 flow_be16(const struct flow_head *head, __u32 at)
{
	return (__u16)head->bytes[at] << 8 | head->bytes[at + 1];
}

/* Ports, or type and code, of the header at `at`; whether the rung knows such headers, and it is there and inside the IP packet of `len` bytes more. */
static __always_inline int flow_transport(const struct flow_head *head, __u32 at, __u32 len, struct offload_key *key)
{
	const __u8 *bytes = head->bytes + at;
	__u32 need = key->nw_proto == FLOW_TCP ? 20 : key->nw_proto == FLOW_ICMPV6 ? 4 : 8;

	if (len < need || head->seen < at + need)
		return 0;
	switch (key->nw_proto) {
	case FLOW_TCP:
		if (bytes[12] < 0x50 || (bytes[12] >> 4) * 4U > len)
			return 0;
		/* fall through */
	case FLOW_UDP:
		key->tp_src = flow_be16(head, at);
		key->tp_dst = flow_be16(head, at + 2);
		return 1;
	case FLOW_ICMP:
		key->tp_src = bytes[0];
		key->tp_dst = bytes[1];
		return key->dl_type == FLOW_IPV4;
	case FLOW_ICMPV6:
		key->tp_src = bytes[0];
		key->tp_dst = bytes[1];
		/* Router and neighbour messages have more that tells them apart (RFC 4861). */
		return key->dl_type == FLOW_IPV6 && (bytes[0] < 133 || bytes[0] > 137);
	}
	return 0;
}

/* Fills a key that is all 0 but for its port and tag; whether the frame has a flow. */
static __always_inline int flow_key(const struct flow_head *head, struct offload_key *key)
{
	const __u8 *ip = head->bytes + 14;
	__u32 len;

	if (head->seen < FLOW_LEAST)
		return 0;
	__builtin_memcpy(key->dl_dst, head->bytes, 6);
	__builtin_memcpy(key->dl_src, head->bytes + 6, 6);
	key->dl_type = flow_be16(head, 12);
	if (key->dl_type == FLOW_IPV4) {
		if (ip[0] != 0x45 || flow_be16(head, 20) & 0x3fff)
			return 0;
		key->nw_dscp = ip[1] >> 2;
		key->nw_proto = ip[9];
		__builtin_memcpy(&key->nw_src[0], ip + 12, 4);
		__builtin_memcpy(&key->nw_dst[0], ip + 16, 4);
		len = flow_be16(head, 16);
		return len > 20 && flow_transport(head, 34, len - 20, key);
	}
	if (key->dl_type == FLOW_IPV6) {
		if (ip[0] >> 4 != 6)
			return 0;
		key->nw_dscp = (ip[0] & 0xf) << 2 | ip[1] >> 6;
		key->nw_proto = ip[6];
		__builtin_memcpy(key->nw_src, ip + 8, 16);
		__builtin_memcpy(key->nw_dst, ip + 24, 16);
		return flow_transport(head, 54, flow_be16(head, 18), key);
	}
	return 0;
}

/* Length of all headers: what each segment of a large one repeats. */
static __always_inline __u32 flow_headers(const struct offload_flow *flow, const struct flow_head *head)
{
	__u32 at = flow->l4_at;

	if (!(flow->flags & OFFLOAD_IS_TCP))
		return at + (flow->key.nw_proto == FLOW_ICMPV6 ? 4 : 8);
	return at == 34 ? at + (head->bytes[34 + 12] >> 4) * 4 : at + (head->bytes[54 + 12] >> 4) * 4;
}

/* Whether the flow's program can do with a frame what the worker would: it is not too long for the exit, and its TTL does not end here. */
static __always_inline int flow_fits(const struct offload_flow *flow, const struct flow_head *head, __u32 len, __u32 segment)
{
	__u32 headers = flow_headers(flow, head), longest = segment ? headers + segment : len;
	__u8 ttl = flow->l4_at == 34 ? head->bytes[22] : head->bytes[21];

	if (flow->flags & OFFLOAD_DEC_TTL && ttl < 2)
		return 0;
	return headers <= len && longest <= flow->max_len && head->seen >= flow->words * 4U;
}

/* Bytes that a frame, of `len` without its tag, puts on the wire at the exit: of a large one, each segment repeats the headers. */
static __always_inline __u64 flow_wire_len(const struct offload_flow *flow, const struct flow_head *head, __u32 len, __u32 segment)
{
	__u32 is_tagged = flow->flags & OFFLOAD_PUSH_VLAN || (flow->key.dl_vlan && !(flow->flags & OFFLOAD_POP_VLAN));
	__u64 headers = flow_headers(flow, head), tag = is_tagged ? 4 : 0, more = 0;

	/* Around large ones nothing is put. */
	if (flow->flags & OFFLOAD_OUTSIDE)
		return len + tag + OFFLOAD_OUTSIDE_BYTES + (flow->flags & OFFLOAD_OUTSIDE_TAG ? 4 : 0);
	if (segment && len > headers + segment)
		more = (len - headers - 1) / segment;
	return len + tag + more * (headers + tag);
}

#endif
