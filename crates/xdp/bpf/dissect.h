/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in a frame: its flow key (abi.h), from the first bytes of a frame that anybody may have made.
 *
 * Nothing here fails. A header that is cut short or contradicts itself ends the key at the layer
 * before it. Every read is of bytes between `at` and `end`; an IP packet's own length only ever
 * takes bytes away, so that padding is not taken for a header. One level of VXLAN is looked into
 * (RFC 7348); the key is then the inner headers', and tun_* and outer_tos stay the outer ones'.
 *
 * How far the dissector is, it keeps in the packet, in a map's memory, and reads it anew at each
 * layer: the verifier then knows no more of it than its type, and need not follow every way through
 * the layers above. The one helper used, bpf_loop(), is all that user space must supply to compile
 * the same text, which the fuzz target does.
 */
#ifndef SUIRO_DISSECT_H
#define SUIRO_DISSECT_H

#include "abi.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the readers of network order below are for little-endian machines"
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define ETH_IPV4 0x0800
#define ETH_ARP 0x0806
#define ETH_VLAN 0x8100
#define ETH_QINQ 0x88a8
#define ETH_IPV6 0x86dd
/* IEEE 802.3: smaller is a length. OpenFlow 1.0 has a name for "no Ethernet type". */
#define ETH_TYPE_MIN 0x0600
#define ETH_NO_TYPE 0x05ff

#define PROTO_HOP_BY_HOP 0
#define PROTO_IPIP 4
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_IPV6 41
#define PROTO_ROUTING 43
#define PROTO_FRAGMENT 44
#define PROTO_GRE 47
#define PROTO_ESP 50
#define PROTO_AUTH 51
#define PROTO_DESTINATION 60
#define PROTO_SCTP 132

/* RFC 8200 section 4.1 names five in an order that senders should keep; one may come twice. */
#define EXTENSIONS_MAX 6
/* Tags that are looked behind. */
#define TAGS_MAX 2
/* Where a header may begin. Whoever puts more in front of it is not steered by it. */
#define HEADERS_MAX 1023

/* The checksum of a whole TCP segment or UDP datagram. */
struct packet_sum {
	__u32 at; /* where the transport header begins */
	__u32 len; /* bytes from there on; 0: no such checksum */
	__u16 check; /* what it says, host order */
	__u8 proto;
	__u8 reserved;
};

/* What the dissector finds, and how far it is. */
struct packet {
	__u64 words[STEER_WORDS];
	struct packet_sum sums[2]; /* of the outermost transport header, and of the one in its tunnel */
	__u32 fragment_id; /* of the IP header that the key is of, if it says STEER_FRAG_ANY */
	__u32 outer_id; /* of the IP header around a tunnel, likewise */
	__u8 is_ip;
	__u8 is_outer_fragment; /* the outer packet is in pieces, and this is the first */
	__u8 outer_proto;
	__u8 proto; /* of what comes next in an IP packet */
	__u8 is_found; /* what comes next is a transport header, and in this packet */
	__u8 frag; /* of the IPv6 headers so far */
	__u16 eth_type; /* of what comes next behind Ethernet */
	__u32 at; /* where the next header begins */
	__u32 left; /* bytes of the IP packet from there on */
	__u8 is_routed; /* an IPv6 routing header: the packet's destination is not where it goes */
	__u8 is_arp; /* for IPv4 over Ethernet */
	__u8 reserved[6];
};

/* A frame, and what is found in it. */
struct view {
	const __u8 *data;
	const __u8 *end;
	struct packet *packet;
};

/* Read from memory, whatever the compiler knows. */
#define anew(object) (*(volatile typeof(object) *)&(object))

/* Network order, at any alignment: the processors that run XDP take it. */
static __always_inline __u16 be16(const __u8 *at)
{
	return __builtin_bswap16(*(const __u16 *)at);
}

static __always_inline __u32 be32(const __u8 *at)
{
	return __builtin_bswap32(*(const __u32 *)at);
}

static __always_inline __u64 be64(const __u8 *at)
{
	return __builtin_bswap64(*(const __u64 *)at);
}

/* The next bytes, taken; null if there are not so many. */
static __always_inline const __u8 *take(const struct view *view, __u32 len)
{
	__u32 at = anew(view->packet->at);
	const __u8 *header = view->data + at;

	if (at > HEADERS_MAX || header + len > view->end)
		return 0;
	anew(view->packet->at) = at + len;
	return header;
}

/* RFC 791's and RFC 8200's own length: what lies behind it is no header. */
static __always_inline int take_left(struct packet *packet, __u32 len)
{
	__u32 left = anew(packet->left);

	if (left < len)
		return 0;
	packet->left = left - len;
	return 1;
}

static __always_inline void ethernet(const struct view *view)
{
	__u64 *words = view->packet->words;
	const __u8 *header = take(view, 14);
	__u16 type, vlan = 0;
	int tag;

	view->packet->eth_type = 0;
	if (!header)
		return;
	words[11] = be64(header) & ~0xffffULL;
	words[10] = ((__u64)be32(header + 6) << 16 | be16(header + 10)) << 16;
	type = be16(header + 12);
	for (tag = 0; tag < TAGS_MAX; tag++) {
		if (type != ETH_VLAN && type != ETH_QINQ)
			break;
		header = take(view, 4);
		if (!header)
			break;
		if (tag == 0)
			vlan = STEER_VLAN | (be16(header) & 0xfff);
		type = be16(header + 2);
	}
	if (type < ETH_TYPE_MIN)
		type = ETH_NO_TYPE;
	words[5] = (__u64)type << 48 | (__u64)vlan << 16 | (words[5] & 0xff00);
	anew(view->packet->eth_type) = type;
}

static __always_inline void set_ip(struct packet *packet, __u8 proto, __u8 tos, __u8 frag)
{
	packet->is_ip = 1;
	packet->words[5] |= (__u64)proto << 40 | (__u64)tos << 32 | frag;
}

/* RFC 791. */
static __always_inline void ipv4(const struct view *view)
{
	const __u8 *header = take(view, 20);
	struct packet *packet = view->packet;
	__u32 len, total, fragment;
	__u8 frag = 0;

	if (!header)
		return;
	len = (header[0] & 0xf) * 4;
	total = be16(header + 2);
	if (header[0] >> 4 != 4 || len < 20 || total < len)
		return;
	fragment = be16(header + 6) & 0x3fff;
	if (fragment)
		frag = STEER_FRAG_ANY;
	if (fragment & 0x1fff)
		frag |= STEER_FRAG_LATER;
	if (len > 20 && !take(view, len - 20))
		return;
	packet->fragment_id = be16(header + 4);
	packet->words[0] = packet->words[2] = 0;
	packet->words[1] = be32(header + 12);
	packet->words[3] = be32(header + 16);
	set_ip(packet, header[9], header[1], frag);
	packet->proto = header[9];
	packet->left = total - len;
	packet->is_found = !(frag & STEER_FRAG_LATER);
}

static __always_inline int is_extension(__u8 proto)
{
	return proto == PROTO_HOP_BY_HOP || proto == PROTO_ROUTING || proto == PROTO_FRAGMENT ||
	       proto == PROTO_AUTH || proto == PROTO_DESTINATION;
}

/* The next extension header is a fragment's. */
static __always_inline void fragment(struct packet *packet, const __u8 *header)
{
	__u16 offset = be16(header + 2);

	/* RFC 6946: offset 0 and no more to come is not a fragment. */
	if (offset & 0xfff9)
		packet->frag |= STEER_FRAG_ANY;
	if (offset & 0xfff8)
		packet->frag |= STEER_FRAG_LATER;
	packet->fragment_id = be32(header + 4);
}

/* One extension header, for bpf_loop(); 1 ends the walk. */
static long extension(__u32 step, void *context)
{
	const struct view *view = context;
	struct packet *packet = view->packet;
	__u8 proto = anew(packet->proto);
	const __u8 *header;
	__u32 len = 8;

	(void)step;
	if (!is_extension(proto) || anew(packet->frag) & STEER_FRAG_LATER)
		return 1;
	header = take(view, 8);
	if (!header)
		goto cut;
	if (proto == PROTO_AUTH)
		len = ((__u32)header[1] + 2) * 4;
	else if (proto != PROTO_FRAGMENT)
		len = ((__u32)header[1] + 1) * 8;
	if (!take_left(packet, len) || (len > 8 && !take(view, len - 8)))
		goto cut;
	packet->proto = header[0];
	if (proto == PROTO_ROUTING)
		packet->is_routed = 1;
	if (proto == PROTO_FRAGMENT)
		fragment(packet, header);
	return 0;
cut:
	packet->is_found = 0;
	return 1;
}

/* RFC 8200. */
static __always_inline void ipv6(const struct view *view)
{
	struct packet *packet = view->packet;
	const __u8 *header = take(view, 40);
	__u8 traffic_class;

	if (!header || header[0] >> 4 != 6)
		return;
	packet->words[0] = be64(header + 8);
	packet->words[1] = be64(header + 16);
	packet->words[2] = be64(header + 24);
	packet->words[3] = be64(header + 32);
	packet->left = be16(header + 4);
	packet->is_found = 1;
	packet->frag = 0;
	traffic_class = be16(header) >> 4;
	packet->proto = header[6];
	if (is_extension(packet->proto))
		bpf_loop(EXTENSIONS_MAX, extension, (void *)view, 0);
	if (is_extension(anew(packet->proto)) || anew(packet->frag) & STEER_FRAG_LATER)
		packet->is_found = 0;
	set_ip(packet, anew(packet->proto), traffic_class, anew(packet->frag));
}

/* Bytes of a transport header that must be there for its ports, or SPI, to be believed; 0: it has none. */
static __always_inline __u32 transport_len(__u8 proto)
{
	switch (proto) {
	case PROTO_UDP:
	case PROTO_ESP:
		return 8;
	case PROTO_SCTP:
		return 12;
	case PROTO_TCP:
		return 20;
	default:
		return 0;
	}
}

/* What the transport's checksum is of, if it has one and the packet is whole. */
static __always_inline void note_sum(const struct view *view, struct packet_sum *sum, const __u8 *header, __u32 len)
{
	struct packet *packet = view->packet;
	__u8 proto = anew(packet->proto);
	/* RFC 9293 section 3.1 and RFC 768. */
	const __u8 *check = header + (proto == PROTO_TCP ? 16 : 6);

	if (anew(packet->words[5]) & STEER_FRAG_ANY || (proto != PROTO_TCP && proto != PROTO_UDP))
		return;
	/* In TCP's header, the verifier is not sure of it. */
	if (check + 2 > view->end)
		return;
	sum->check = be16(check);
	sum->proto = proto;
	sum->at = anew(packet->at) - len;
	/* 0 in UDP says that there is none. */
	if (sum->check || proto == PROTO_TCP)
		sum->len = anew(packet->left) + len;
}

/* RFC 826, for IPv4 over Ethernet, in OpenFlow 1.0's words: who says it, of whom, and what. */
static __always_inline void arp(const struct view *view)
{
	struct packet *packet = view->packet;
	const __u8 *header = take(view, 28);

	if (!header || be32(header) != 0x00010800 || be16(header + 4) != 0x0604)
		return;
	packet->words[1] = be32(header + 14);
	packet->words[3] = be32(header + 24);
	packet->words[5] |= (__u64)header[7] << 40;
	packet->is_arp = 1;
}

/* IP and the transport's ports; packet->is_found: they are there. */
static __always_inline void network(const struct view *view, struct packet_sum *sum)
{
	struct packet *packet = view->packet;
	__u16 type = anew(packet->eth_type);
	const __u8 *header;
	__u32 len;

	anew(packet->is_found) = 0;
	if (type == ETH_IPV4)
		ipv4(view);
	else if (type == ETH_IPV6)
		ipv6(view);
	else if (type == ETH_ARP)
		arp(view);
	if (!anew(packet->is_found))
		return;
	anew(packet->is_found) = 0;
	len = transport_len(anew(packet->proto));
	if (!len || !take_left(packet, len))
		return;
	header = take(view, 8);
	if (!header || (len > 8 && !take(view, len - 8)))
		return;
	packet->words[4] |= be32(header);
	anew(packet->is_found) = 1;
	note_sum(view, sum, header, len);
}

/* RFC 7348; 1 if there is a whole inner Ethernet header behind it, of which the key is now. */
static __always_inline int vxlan(const struct view *view)
{
	struct packet *packet = view->packet;
	__u64 outer_tos = packet->words[5] & 0xff00;
	const __u8 *header = take(view, 8 + 14);

	if (!header || !(header[0] & 0x08) || !take_left(packet, 8 + 14))
		return 0;
	anew(packet->at) -= 14;
	packet->words[0] = packet->words[1] = packet->words[2] = packet->words[3] = 0;
	packet->words[4] = (__u64)(STEER_TUNNEL | be32(header + 4) >> 8) << 32;
	packet->words[5] = outer_tos;
	ethernet(view);
	return 1;
}

/* The whole frame. */
static __always_inline void dissect(struct packet *packet, const void *data, const void *end, __u16 vxlan_port)
{
	struct view view = { data, end, packet };
	__u8 outer_frag;
	int word;

	for (word = 0; word < STEER_WORDS; word++)
		packet->words[word] = 0;
	packet->fragment_id = packet->outer_id = packet->at = packet->left = 0;
	packet->is_ip = packet->is_outer_fragment = packet->outer_proto = packet->proto = packet->frag = 0;
	packet->sums[0].len = packet->sums[1].len = packet->is_routed = packet->is_arp = 0;
	ethernet(&view);
	network(&view, &packet->sums[0]);
	if (!anew(packet->is_ip))
		return;
	for (word = 0; word < 4; word++)
		packet->words[6 + word] = packet->words[word];
	packet->words[5] |= (packet->words[5] >> 32 & 0xff) << 8;
	if (!anew(packet->is_found) || anew(packet->proto) != PROTO_UDP || (anew(packet->words[4]) & 0xffff) != vxlan_port)
		return;
	outer_frag = packet->words[5] & STEER_FRAG_ANY;
	if (!vxlan(&view))
		return;
	/* Pieces of the outer packet follow this one by its addresses, whatever the inner packet is. */
	packet->is_outer_fragment = outer_frag;
	packet->outer_id = packet->fragment_id;
	packet->outer_proto = PROTO_UDP;
	packet->fragment_id = 0;
	network(&view, &packet->sums[1]);
}

#endif
