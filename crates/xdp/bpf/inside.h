/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames that come inside a tunnel's packets: VXLAN (RFC 7348) over IPv4.
 *
 * The key is of what is inside, so a flow is found by one look. What is around it must be constants but for lengths, checksums, TTL,
 * identification and ECN, and nothing that the tunnel's port would look at more closely.
 */
#ifndef SUIRO_INSIDE_H
#define SUIRO_INSIDE_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "checksum.h"
#include "edit_xdp.h"
#include "flow.h"
#include "offload.h"

/* Halves of a packet's headers without its tag: what is not in the constants. */
#define INSIDE_TOTAL 8
#define INSIDE_UDP_LEN 19
#define INSIDE_UDP_SUM 20
#define INSIDE_VXLAN 21
#define INSIDE_VNI 23
#define INSIDE_HALVES (OFFLOAD_OUTSIDE_BYTES / 2)

/* A packet's headers as words, from behind its tag; 0: they are not there. What lies before its type is elsewhere if it has a tag. */
static __always_inline __u32 *inside_headers(struct xdp_md *ctx, __u32 tag)
{
	void *at = (void *)(long)ctx->data + tag;

	return at + OFFLOAD_OUTSIDE_BYTES > (void *)(long)ctx->data_end ? 0 : at;
}

/* Whether a packet with that tag seems to be of a tunnel; which, as in a key. */
static __always_inline int inside_tunnel(struct xdp_md *ctx, __u16 dl_vlan, __u32 *tunnel)
{
	__u16 *half = (void *)inside_headers(ctx, dl_vlan ? EDIT_TAG : 0);
	__u32 vni;

	if (!half || half[INSIDE_VXLAN] != bpf_htons(0x0800) || half[INSIDE_VXLAN + 1])
		return 0;
	vni = (__u32)bpf_ntohs(half[INSIDE_VNI]) << 16 | bpf_ntohs(half[INSIDE_VNI + 1]);
	*tunnel = OFFLOAD_IN_TUNNEL | vni >> 8;
	return !(vni & 0xff);
}

/* Whether the constants around the frame are the flow's. */
static __always_inline int inside_is(struct xdp_md *ctx, const struct offload_flow *flow, __u16 dl_vlan)
{
	__u32 *word = inside_headers(ctx, dl_vlan ? EDIT_TAG : 0), *first = edit_first(ctx), differ;
	const __u32 *is = flow->outside;
	__u16 tag = flow->flags & OFFLOAD_OUTSIDE_TAG ? flow->outside_tci | FLOW_TAGGED : 0;

	if (!word || !first || !(flow->flags & OFFLOAD_INSIDE) || tag != dl_vlan)
		return 0;
	/* Addresses; type, no options, DSCP; no fragment, UDP; addresses and ports. */
	differ = (first[0] ^ is[0]) | (first[1] ^ is[1]) | (first[2] ^ is[2]);
	differ |= (word[3] ^ is[3]) & bpf_htonl(0xfffffffc);
	differ |= (word[5] ^ is[5]) & bpf_htonl(0x3fff00ff);
	differ |= (word[6] ^ is[6]) & bpf_htonl(0x0000ffff);
	differ |= (word[7] ^ is[7]) | (word[8] ^ is[8]);
	differ |= (word[9] ^ is[9]) & bpf_htonl(0xffff0000);
	return !differ;
}

/* Whether the rest is as it must be: lengths that agree, right checksums, and ECN bits that change nothing inside (RFC 6040 section 4.2). */
static __always_inline int inside_fits(struct xdp_md *ctx, const struct offload_flow *flow, __u8 ecn, __u32 tag, __u32 may_be_open)
{
	__u32 *word = inside_headers(ctx, tag), zero = 0, i;
	struct summing *summing;
	__u16 *half = (void *)word, total, len, check, pseudo;
	__u64 sum = 0;
	__u8 outer;

	if (!half)
		return 0;
	total = bpf_ntohs(half[INSIDE_TOTAL]);
	len = bpf_ntohs(half[INSIDE_UDP_LEN]);
	outer = bpf_ntohs(half[7]) & 3;
#pragma unroll
	for (i = 7; i < 17; i++)
		sum += half[i];
	if (fold(sum) != 0xffff || total != len + 20U || total + 14 + tag != bpf_xdp_get_buff_len(ctx) || (outer && outer != ecn))
		return 0;
	check = half[INSIDE_UDP_SUM];
	pseudo = fold((__u64)flow->outside_pseudo_sum + bpf_htons(len));
	if (!check || (may_be_open && check == pseudo))
		return 1;
	summing = bpf_map_lookup_elem(&summings, &zero);
	if (!summing || !sum_bytes(ctx, summing, 34 + tag, len))
		return 0;
	return fold((__u64)summing->sum + pseudo) == 0xffff;
}

#endif
