/* SPDX-License-Identifier: Apache-2.0
 *
 * Checksums that a sender on this host left to a device that there is not.
 *
 * A veth hands over frames as they were sent: of TCP and UDP with the sum of the pseudo-header where
 * the checksum belongs, and a mark beside the frame (CHECKSUM_PARTIAL). A frame that passes keeps the
 * mark. One that goes to another core loses it, and its receiver would take it for damaged. So the
 * program finishes the checksum of every frame that looks so.
 *
 * Nothing is guessed: a complete checksum that equals the sum of the pseudo-header by chance is
 * finished to the number that it was. (A frame damaged on its way escapes its receiver's check that
 * way once in 65536 times, beside the once that any does: only interfaces whose frames may come from
 * this host are asked, steer_config.may_be_unfinished.) crates/wire/src/partial.rs is the same for ports.
 *
 * Of a tunnel both sums may be open, but never the outer one over an open inner one: the inner one is
 * finished first. The kernel finishes what it is about to cut into fragments.
 */
#ifndef SUIRO_CHECKSUM_H
#define SUIRO_CHECKSUM_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "dissect.h"

/* Bytes summed at once: as many as bpf_csum_diff() took before Linux 6.13. */
#define SUM_CHUNK 512
/* Of the longest IP packet. */
#define SUM_STEPS (65536 / SUM_CHUNK)

/* Where the next checksum is made: too large for the stack. */
struct summing {
	__u32 sum; /* in the order of the frame's bytes */
	__u32 reserved;
	__u8 chunk[SUM_CHUNK + 4];
};

/* In one's complement, where 2^16 is 1. */
static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum >> 32) + (__u32)sum;
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return (sum >> 16) + (sum & 0xffff);
}

/* RFC 9293 section 3.1, RFC 8200 section 8.1; `addresses` are four words, in IPv4 every second one 0. */
static __always_inline __u16 pseudo_header(const __u64 *addresses, const struct packet_sum *sum)
{
	__u64 total = (__u64)sum->proto + sum->len;
	int i;

#pragma unroll
	for (i = 0; i < 4; i++)
		total += (addresses[i] >> 32) + (__u32)addresses[i];
	return fold(total);
}

static __always_inline int is_unfinished(const __u64 *addresses, const struct packet_sum *sum)
{
	return sum->len && sum->check == pseudo_header(addresses, sum);
}

/* What bpf_loop() takes along. */
struct sum_walk {
	struct xdp_md *ctx;
	struct summing *summing;
	__u32 at;
	__u32 len;
};

/* The next bytes; 1 ends the walk. */
static long sum_chunk(__u32 step, void *context)
{
	const struct sum_walk *walk = context;
	struct summing *summing = walk->summing;
	__u32 done = step * SUM_CHUNK, size = walk->len - done;

	if (done >= walk->len)
		return 1;
	if (size > SUM_CHUNK)
		size = SUM_CHUNK;
	/* 1 to SUM_CHUNK still, said so that the verifier of Linux 6.1 sees both bounds in the register that is used. */
	asm volatile("" : "+r"(size));
	size = ((size - 1) & (SUM_CHUNK - 1)) + 1;
	if (bpf_xdp_load_bytes(walk->ctx, walk->at + done, summing->chunk, size))
		return 1;
	/* Whole words: behind the last byte are zeroes. */
	summing->chunk[size] = summing->chunk[size + 1] = summing->chunk[size + 2] = 0;
	summing->sum = bpf_csum_diff(0, 0, (void *)summing->chunk, (size + 3) & ~3U, summing->sum);
	return 0;
}

/* The sum of so many bytes of the frame, into `summing`; 0: there are not so many. */
static __noinline int sum_bytes(struct xdp_md *ctx, struct summing *summing, __u32 at, __u32 len)
{
	struct sum_walk walk = { ctx, summing, at, len };

	if (!summing || at + len > bpf_xdp_get_buff_len(ctx))
		return 0;
	summing->sum = 0;
	bpf_loop(SUM_STEPS, sum_chunk, &walk, 0);
	return 1;
}

/* Finishes one checksum. Its field holds the sum of the pseudo-header, so the sum of all is that of the bytes alone. */
static __noinline int finish_sum(struct xdp_md *ctx, struct summing *summing, __u32 at, __u32 len, __u32 proto)
{
	__u16 check;

	if (!summing || !sum_bytes(ctx, summing, at, len))
		return 0;
	check = ~fold(summing->sum);
	/* 0 would say "no checksum" in UDP; 0xffff is the same number, and right in TCP too. */
	if (!check)
		check = 0xffff;
	return !bpf_xdp_store_bytes(ctx, at + (proto == PROTO_TCP ? 16 : 6), &check, sizeof(check));
}

/* Finishes all that a frame on its way to another core has open; whether there was any. Never refuses. */
static __always_inline int finish_sums(struct xdp_md *ctx, const struct packet *packet, struct summing *summing)
{
	const struct packet_sum *outer = &packet->sums[0], *inner = &packet->sums[1];
	int is_any = 0;

	if (is_unfinished(packet->words, inner))
		is_any |= finish_sum(ctx, summing, inner->at, inner->len, inner->proto);
	if (is_unfinished(packet->words + 6, outer))
		is_any |= finish_sum(ctx, summing, outer->at, outer->len, outer->proto);
	return is_any;
}

/* UDP ports behind which the kernel's own devices put frames that the dissector does not look into. */
#define PORT_GENEVE 6081
#define PORT_VXLAN_LINUX 8472

/*
 * Whether a checksum may be open that is not found: SCTP's, which is a CRC; one in a tunnel (or a tunnel
 * in a tunnel) that is not looked into; one that is counted with another address than the header's.
 */
static __always_inline int may_hide_sum(const struct packet *packet, __u16 vxlan_port)
{
	__u8 proto = packet->words[5] >> 40;
	__u16 port = packet->words[4];

	if (proto == PROTO_UDP)
		return port == vxlan_port || port == PORT_GENEVE || port == PORT_VXLAN_LINUX || packet->is_routed;
	return proto == PROTO_SCTP || proto == PROTO_GRE || proto == PROTO_IPIP || proto == PROTO_IPV6 ||
	       packet->is_routed;
}

#endif
