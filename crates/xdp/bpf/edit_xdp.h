/* SPDX-License-Identifier: Apache-2.0
 *
 * What a flow's program does to a frame at the XDP hook, where the tag lies in the frame and nobody else completes a checksum.
 *
 * The order is that of crates/offload/src/patch.rs: tag off, bytes and sums, TTL, tag on; then what a tunnel puts around it.
 */
#ifndef SUIRO_EDIT_XDP_H
#define SUIRO_EDIT_XDP_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "checksum.h"
#include "flow.h"
#include "offload.h"

#define EDIT_TAG 4

/* Where the next checksum is completed. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct summing);
} summings SEC(".maps");

/* The checksum field of a flow's transport, from its header; 0: it has none that a sender leaves open. */
static __always_inline __u32 edit_sum_in(const struct offload_flow *flow)
{
	return flow->key.nw_proto == FLOW_TCP ? 16 : flow->key.nw_proto == FLOW_UDP ? 6 : 0;
}

/* Completes the checksum of a frame of this host whose sender left that to a device; `tag` bytes lie before its type. */
static __always_inline void edit_finish(struct xdp_md *ctx, const struct offload_flow *flow, const struct flow_head *head, __u32 tag)
{
	__u32 zero = 0, in = edit_sum_in(flow), at = flow->l4_at, i;
	__u16 len = at == 34 ? flow_be16(head, 16) - 20 : flow_be16(head, 18), field;
	__u64 sum = (__u64)bpf_htons(flow->key.nw_proto) + bpf_htons(len);

	if (!in)
		return;
#pragma unroll
	for (i = 0; i < 4; i++)
		sum += (__u64)flow->key.nw_src[i] + flow->key.nw_dst[i];
	__builtin_memcpy(&field, head->bytes + (at == 34 ? 34 : 54) + (in == 16 ? 16 : 6), 2);
	if (field == fold(sum))
		finish_sum(ctx, bpf_map_lookup_elem(&summings, &zero), at + tag, len, flow->key.nw_proto);
}

/* RFC 1624: adds to the sum that a checksum stands for. */
static __always_inline void edit_add(__u16 *check, __u16 sum)
{
	__u32 total = (__u16)~*check + (__u32)sum;

	total = (total >> 16) + (total & 0xffff);
	*check = ~((total >> 16) + total);
}

/* The transport's checksum follows addresses and ports. */
static __always_inline int edit_transport(struct xdp_md *ctx, const struct offload_flow *flow)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u16 *check = data + (flow->sum_at & 0x7f);

	if ((void *)(check + 1) > end)
		return 0;
	if (flow->flags & OFFLOAD_ZERO_SUM && !*check)
		return 1;
	if (flow->key.nw_proto != FLOW_ICMP)
		edit_add(check, flow->pseudo_sum);
	edit_add(check, flow->ports_sum);
	if (flow->flags & OFFLOAD_ZERO_SUM && !*check)
		*check = 0xffff;
	return 1;
}

/* Bytes, sums and TTL of a frame without its tag. */
static __always_inline int edit_bytes(struct xdp_md *ctx, const struct offload_flow *flow)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 *word = data, i;
	__u8 *ip = data + 14;

#pragma unroll
	for (i = 0; i < OFFLOAD_WORDS; i++) {
		if (i >= flow->words || (void *)(word + i + 1) > end)
			break;
		word[i] = (word[i] & flow->keep[i]) | flow->put[i];
	}
	if ((void *)(ip + 20) > end)
		return 0;
	if (flow->l4_at == 34) {
		if (flow->ip_sum)
			edit_add((void *)(ip + 10), flow->ip_sum);
		if (flow->flags & OFFLOAD_DEC_TTL) {
			ip[8]--;
			edit_add((void *)(ip + 10), bpf_htons(0xfeff));
		}
	} else if (flow->flags & OFFLOAD_DEC_TTL) {
		ip[7]--;
	}
	return !flow->sum_at || edit_transport(ctx, flow);
}

/* The frame's first words: its addresses, and what lies behind them. */
static __always_inline __u32 *edit_first(struct xdp_md *ctx)
{
	__u32 *at = (void *)(long)ctx->data;

	return (void *)(at + 4) > (void *)(long)ctx->data_end ? 0 : at;
}

/* Moves the beginning of the frame by `bytes`, and its addresses with it. The first words then. */
static __always_inline __u32 *edit_move(struct xdp_md *ctx, int bytes)
{
	__u32 *at = edit_first(ctx), a, b, c;

	if (!at)
		return 0;
	a = at[0], b = at[1], c = at[2];
	if (bpf_xdp_adjust_head(ctx, bytes))
		return 0;
	at = edit_first(ctx);
	if (!at)
		return 0;
	at[0] = a, at[1] = b, at[2] = c;
	return at;
}

static __always_inline int edit_tag(struct xdp_md *ctx, __u16 tpid, __u16 tci)
{
	__u32 *at = edit_move(ctx, -EDIT_TAG);

	if (!at)
		return 0;
	at[3] = bpf_htonl((__u32)tpid << 16 | tci);
	return 1;
}

/* The ECN bits of a frame that began so. */
static __always_inline __u8 edit_ecn(const struct offload_flow *flow, const struct flow_head *head)
{
	return (flow->l4_at == 34 ? head->bytes[15] : head->bytes[15] >> 4) & 3;
}

/* Puts a tunnel's headers around the frame, whose own checksums are complete: VXLAN over IPv4 (RFC 7348), ECN copied (RFC 6040). */
static __always_inline int edit_outside(struct xdp_md *ctx, const struct offload_flow *flow, __u8 ecn)
{
	__u16 udp_len = bpf_xdp_get_buff_len(ctx) + 16, ip_len = bpf_htons(udp_len + 20), ds = bpf_htons(ecn);
	__u32 zero = 0, *word, i;
	__u16 *half;

	if (bpf_xdp_adjust_head(ctx, -OFFLOAD_OUTSIDE_BYTES))
		return 0;
	word = (void *)(long)ctx->data;
	half = (void *)word;
	if ((void *)(half + OFFLOAD_OUTSIDE_BYTES / 2) > (void *)(long)ctx->data_end)
		return 0;
#pragma unroll
	for (i = 0; i < OFFLOAD_OUTSIDE_BYTES / 4; i++)
		word[i] = flow->outside[i];
	__builtin_memcpy(half + 24, &flow->outside[12], 2);
	half[7] |= ds;
	half[8] = ip_len;
	half[12] = ~fold((__u64)flow->outside_ip_sum + ip_len + ds);
	half[19] = bpf_htons(udp_len);
	if (!(flow->flags & OFFLOAD_OUTSIDE_SUM))
		return 1;
	half[20] = fold((__u64)flow->outside_pseudo_sum + bpf_htons(udp_len));
	return finish_sum(ctx, bpf_map_lookup_elem(&summings, &zero), 34, udp_len, FLOW_UDP);
}

/* Does all of it; 0: it cannot. */
static __always_inline int edit(struct xdp_md *ctx, const struct offload_flow *flow)
{
	__u16 tag = flow->key.dl_vlan;

	if (!flow->words && !(flow->flags & (OFFLOAD_DEC_TTL | OFFLOAD_POP_VLAN | OFFLOAD_PUSH_VLAN)))
		return 1;
	if (tag && !edit_move(ctx, EDIT_TAG))
		return 0;
	if (!edit_bytes(ctx, flow))
		return 0;
	if (flow->flags & OFFLOAD_PUSH_VLAN)
		return edit_tag(ctx, flow->tag_tpid, flow->tag_tci);
	if (tag && !(flow->flags & OFFLOAD_POP_VLAN))
		return edit_tag(ctx, FLOW_8021Q, tag & ~FLOW_TAGGED);
	return 1;
}

#endif
