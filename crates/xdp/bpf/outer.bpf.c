// SPDX-License-Identifier: Apache-2.0
/*
 * What a packet socket cannot tell the kernel of a frame, told on the frame's way out (tcx egress), before anyone cuts it or measures its length:
 * that its outer VLAN tag is beside it, where a veth counts it as no byte of the frame; and that a large segment is in a tunnel. suiro says so where
 * a frame's time to leave would be, which its workers may without privilege, on a socket with a mark; both end here.
 *
 * Without this program such a frame reaches nobody as another: a tagged one has the VID 4095 (IEEE 802.1Q, table 9-2: never in a frame), and a
 * segment in a tunnel cannot be cut.
 *
 * A TAP has no such place for words, and needs none: what enters by it and is large, and yet GRE or IP in IP outside, is a segment in a tunnel
 * (suiro_inner, tcx ingress). Linux has no mark for those.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"

#define ETHERNET 14
#define TCI 14
#define TPID_8021Q 0x8100
#define TPID_8021AD 0x88a8
/* Next program at the hook. */
#define NEXT (-1)
/* Of Linux 6.3; older headers do not have them. */
#define DECAP_IPV4 (1ULL << 7)
#define DECAP_IPV6 (1ULL << 8)

/* Takes the tunnel's headers off as bytes, and puts them on again as headers: so the kernel knows where the packet inside begins. */
static __always_inline int wrap(struct __sk_buff *skb, __u32 what, __u32 len)
{
	__u64 off = BPF_F_ADJ_ROOM_FIXED_GSO, on = BPF_F_ADJ_ROOM_FIXED_GSO;
	__u8 bytes[OUTER_BYTES];

	if (len < 1 || len > OUTER_BYTES)
		return 0;
	/* Said in the register that is used. */
	asm volatile("" : "+r"(len));
	if (len < 1 || len > OUTER_BYTES)
		return 0;
	if (bpf_skb_load_bytes(skb, ETHERNET, bytes, len))
		return 0;
	if (!(what & OUTER_V6) != !(what & OUTER_INNER_V6))
		off |= what & OUTER_INNER_V6 ? DECAP_IPV6 : DECAP_IPV4;
	on |= what & OUTER_V6 ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 : BPF_F_ADJ_ROOM_ENCAP_L3_IPV4;
	on |= what & OUTER_GRE ? BPF_F_ADJ_ROOM_ENCAP_L4_GRE : 0;
	on |= what & OUTER_UDP ? BPF_F_ADJ_ROOM_ENCAP_L4_UDP : 0;
	on |= what & OUTER_ETHERNET ? BPF_F_ADJ_ROOM_ENCAP_L2(ETHERNET) | BPF_F_ADJ_ROOM_ENCAP_L2_ETH : 0;
	if (bpf_skb_adjust_room(skb, -(__s32)len, BPF_ADJ_ROOM_MAC, off) ||
	    bpf_skb_adjust_room(skb, len, BPF_ADJ_ROOM_MAC, on))
		return 0;
	return !bpf_skb_store_bytes(skb, ETHERNET, bytes, len, 0);
}

/* The inner tag in its place, the outer one beside the frame. */
static __always_inline int tag(struct __sk_buff *skb, __u32 what, __u32 outer, __u32 inner)
{
	__u16 tci = bpf_htons(inner);

	if (bpf_skb_store_bytes(skb, TCI, &tci, sizeof(tci), 0))
		return 0;
	return !bpf_skb_vlan_push(skb, bpf_htons(what & OUTER_TAG ? TPID_8021Q : TPID_8021AD), outer);
}

SEC("classifier")
int suiro_outer(struct __sk_buff *skb)
{
	__u64 told = skb->tstamp;
	__u32 what = told >> 48, high = told >> 16 & 0xffff, low = told & 0xffff;
	int done = 0;

	if (skb->mark != OUTER_MARK)
		return NEXT;
	skb->mark = 0;
	skb->tstamp = 0;
	if (!told)
		return NEXT;
	if (what & OUTER_TUNNEL)
		done = wrap(skb, what, low);
	else if (what & (OUTER_TAG | OUTER_PROVIDER_TAG))
		done = tag(skb, what, high, low);
	return done ? NEXT : TC_ACT_SHOT;
}

/* Bytes of an IP header without options. */
#define IPV4 20
#define IPV6 40
#define PROTO_IPIP 4
#define PROTO_IPV6 41
#define PROTO_GRE 47
/* GRE: the key is there; checksum, routing, sequence number or version are not (RFC 2784, RFC 2890). */
#define GRE_KEY 0x20
#define GRE_UNUSUAL 0xd0
#define GRE_ETHERNET 0x6558

/* What is behind the GRE header at `at`. */
static __always_inline __u32 in_gre(struct __sk_buff *skb, __u32 at, __u32 *len)
{
	__u8 gre[4];
	__u16 kind;

	if (bpf_skb_load_bytes(skb, at, gre, sizeof(gre)) || gre[0] & GRE_UNUSUAL || gre[1] & 0x7)
		return 0;
	*len += gre[0] & GRE_KEY ? 8 : 4;
	kind = gre[2] << 8 | gre[3];
	if (kind == GRE_ETHERNET) {
		*len += ETHERNET;
		if (bpf_skb_load_bytes(skb, ETHERNET + *len - sizeof(kind), &kind, sizeof(kind)))
			return 0;
		kind = bpf_ntohs(kind);
		return OUTER_GRE | OUTER_ETHERNET | (kind == 0x86dd ? OUTER_INNER_V6 : 0);
	}
	return OUTER_GRE | (kind == 0x86dd ? OUTER_INNER_V6 : 0);
}

/* The tunnel that a large frame is in, and the length of its headers; 0 for none. */
static __always_inline __u32 tunnel(struct __sk_buff *skb, __u32 *len)
{
	__u8 ip[10], proto;
	__u32 what = 0;

	if (bpf_skb_load_bytes(skb, ETHERNET, ip, sizeof(ip)))
		return 0;
	if (ip[0] >> 4 == 6) {
		what = OUTER_V6;
		proto = ip[6];
		*len = IPV6;
	} else {
		proto = ip[0] == 0x45 ? ip[9] : 0;
		*len = IPV4;
	}
	switch (proto) {
	case PROTO_IPIP:
		return OUTER_TUNNEL | what;
	case PROTO_IPV6:
		return OUTER_TUNNEL | what | OUTER_INNER_V6;
	case PROTO_GRE:
		proto = in_gre(skb, ETHERNET + *len, len);
		return proto ? OUTER_TUNNEL | what | proto : 0;
	}
	return 0;
}

SEC("classifier")
int suiro_inner(struct __sk_buff *skb)
{
	__u32 what, len = 0;

	if (!skb->gso_size || (skb->protocol != bpf_htons(0x0800) && skb->protocol != bpf_htons(0x86dd)))
		return NEXT;
	what = tunnel(skb, &len);
	return !what || wrap(skb, what, len) ? NEXT : TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
