/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in a frame: its flow key (abi.h), from the first bytes of a frame that anybody may have made.
 *
 * Nothing here fails. A header that is cut short or contradicts itself ends the key at the layer
 * before it. Every read is of bytes between `at` and `end`; an IP packet's own length only ever
 * takes bytes away, so that padding is not taken for a header. One level of VXLAN is looked into
 * (RFC 7348); the key is then the inner headers', and tun_* and outer_tos stay the outer ones'.
 *
 * No helper of the kernel's is called: the same text is compiled for user space by the fuzz target.
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
#define ETH_VLAN 0x8100
#define ETH_QINQ 0x88a8
#define ETH_IPV6 0x86dd
/* IEEE 802.3: smaller is a length. OpenFlow 1.0 has a name for "no Ethernet type". */
#define ETH_TYPE_MIN 0x0600
#define ETH_NO_TYPE 0x05ff

#define PROTO_HOP_BY_HOP 0
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_ROUTING 43
#define PROTO_FRAGMENT 44
#define PROTO_ESP 50
#define PROTO_AUTH 51
#define PROTO_DESTINATION 60
#define PROTO_SCTP 132

/* RFC 8200 section 4.1 names five in an order that senders should keep; one may come twice. */
#define EXTENSIONS_MAX 6
/* Tags that are looked behind. */
#define TAGS_MAX 2

/* The rest of a frame. */
struct cursor {
	const __u8 *at;
	const __u8 *end;
};

/* What the dissector finds. */
struct packet {
	__u64 words[STEER_WORDS];
	__u32 fragment_id; /* of the IP header that the key is of, if it says STEER_FRAG_ANY */
	__u32 outer_id; /* of the IP header around a tunnel, likewise */
	__u8 is_ip;
	__u8 is_outer_fragment; /* the outer packet is in pieces, and this is the first */
	__u8 outer_proto;
};

/* What an IP header says of what follows it. */
struct transport {
	__u32 left; /* bytes of the IP packet behind its headers */
	__u8 proto;
	__u8 is_found; /* there is a transport header, and it is in this packet */
};

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
static __always_inline const __u8 *take(struct cursor *cursor, __u32 len)
{
	const __u8 *at = cursor->at;

	if (at + len > cursor->end)
		return 0;
	cursor->at = at + len;
	return at;
}

/* dl_type is returned; 0 if there is no header. */
static __always_inline __u16 ethernet(struct cursor *cursor, __u64 *words)
{
	const __u8 *header = take(cursor, 14);
	__u16 type, vlan = 0;
	int tag;

	if (!header)
		return 0;
	words[11] = be64(header) & ~0xffffULL;
	words[10] = ((__u64)be32(header + 6) << 16 | be16(header + 10)) << 16;
	type = be16(header + 12);
	for (tag = 0; tag < TAGS_MAX; tag++) {
		if (type != ETH_VLAN && type != ETH_QINQ)
			break;
		header = take(cursor, 4);
		if (!header)
			break;
		if (tag == 0)
			vlan = STEER_VLAN | (be16(header) & 0xfff);
		type = be16(header + 2);
	}
	if (type < ETH_TYPE_MIN)
		type = ETH_NO_TYPE;
	words[5] = (__u64)type << 48 | (__u64)vlan << 16 | (words[5] & 0xff00);
	return type;
}

static __always_inline void set_ip(struct packet *packet, __u8 proto, __u8 tos, __u8 frag)
{
	packet->is_ip = 1;
	packet->words[5] |= (__u64)proto << 40 | (__u64)tos << 32 | frag;
}

/* RFC 791. */
static __always_inline void ipv4(struct cursor *cursor, struct packet *packet, struct transport *next)
{
	const __u8 *header = take(cursor, 20);
	__u32 len, total, fragment;
	__u8 frag = 0;

	if (!header)
		return;
	len = (header[0] & 0xf) * 4;
	total = be16(header + 2);
	if (header[0] >> 4 != 4 || len < 20 || total < len)
		return;
	if (len > 20 && !take(cursor, len - 20))
		return;
	fragment = be16(header + 6) & 0x3fff;
	if (fragment)
		frag = STEER_FRAG_ANY;
	if (fragment & 0x1fff)
		frag |= STEER_FRAG_LATER;
	packet->fragment_id = be16(header + 4);
	packet->words[0] = packet->words[2] = 0;
	packet->words[1] = be32(header + 12);
	packet->words[3] = be32(header + 16);
	set_ip(packet, header[9], header[1], frag);
	next->proto = header[9];
	next->left = total - len;
	next->is_found = !(frag & STEER_FRAG_LATER);
}

static __always_inline int is_extension(__u8 proto)
{
	return proto == PROTO_HOP_BY_HOP || proto == PROTO_ROUTING || proto == PROTO_FRAGMENT ||
	       proto == PROTO_AUTH || proto == PROTO_DESTINATION;
}

/* One extension header; 0 ends the walk. */
static __always_inline int extension(struct cursor *cursor, struct packet *packet, struct transport *next, __u8 *frag)
{
	const __u8 *header = take(cursor, 8);
	__u8 proto = next->proto;
	__u32 len = 8;

	if (!header || next->left < 8)
		goto cut;
	if (proto == PROTO_AUTH)
		len = ((__u32)header[1] + 2) * 4;
	else if (proto != PROTO_FRAGMENT)
		len = ((__u32)header[1] + 1) * 8;
	if (len > next->left || (len > 8 && !take(cursor, len - 8)))
		goto cut;
	next->left -= len;
	next->proto = header[0];
	if (proto != PROTO_FRAGMENT)
		return 1;
	/* RFC 6946: offset 0 and no more to come is not a fragment. */
	if (be16(header + 2) & 0xfff9)
		*frag |= STEER_FRAG_ANY;
	packet->fragment_id = be32(header + 4);
	if (!(be16(header + 2) & 0xfff8))
		return 1;
	*frag |= STEER_FRAG_LATER;
	return 0;
cut:
	next->is_found = 0;
	return 0;
}

/* RFC 8200. */
static __always_inline void ipv6(struct cursor *cursor, struct packet *packet, struct transport *next)
{
	const __u8 *header = take(cursor, 40);
	__u8 frag = 0;
	int i;

	if (!header || header[0] >> 4 != 6)
		return;
	packet->words[0] = be64(header + 8);
	packet->words[1] = be64(header + 16);
	packet->words[2] = be64(header + 24);
	packet->words[3] = be64(header + 32);
	next->proto = header[6];
	next->left = be16(header + 4);
	next->is_found = 1;
	for (i = 0; i < EXTENSIONS_MAX; i++) {
		if (!is_extension(next->proto) || !extension(cursor, packet, next, &frag))
			break;
	}
	if (is_extension(next->proto) || (frag & STEER_FRAG_LATER))
		next->is_found = 0;
	set_ip(packet, next->proto, (__u8)(be16(header) >> 4), frag);
}

/* IP and the transport's ports. What follows UDP's header is left at `cursor`. */
static __always_inline void network(struct cursor *cursor, struct packet *packet, struct transport *next, __u16 type)
{
	const __u8 *header;
	__u32 need;

	next->is_found = 0;
	next->proto = 0;
	next->left = 0;
	if (type == ETH_IPV4)
		ipv4(cursor, packet, next);
	else if (type == ETH_IPV6)
		ipv6(cursor, packet, next);
	if (!next->is_found)
		return;
	next->is_found = 0;
	if (next->proto == PROTO_UDP)
		need = 8;
	else if (next->proto == PROTO_SCTP)
		need = 12;
	else if (next->proto == PROTO_TCP)
		need = 20;
	else if (next->proto == PROTO_ESP)
		need = 8;
	else
		return;
	if (next->left < need)
		return;
	header = take(cursor, need);
	if (!header)
		return;
	next->is_found = 1;
	next->left -= need;
	packet->words[4] |= be32(header);
}

/* RFC 7348; 1 if there is a whole inner Ethernet header behind it, of which the key is now. */
static __always_inline int vxlan(struct cursor *cursor, struct packet *packet, struct transport *next, __u16 *type)
{
	const __u8 *header = take(cursor, 8);
	__u64 outer_tos = packet->words[5] & 0xff00;

	if (!header || !(header[0] & 0x08) || next->left < 22 || cursor->at + 14 > cursor->end)
		return 0;
	packet->words[0] = packet->words[1] = packet->words[2] = packet->words[3] = 0;
	packet->words[4] = (__u64)(STEER_TUNNEL | be32(header + 4) >> 8) << 32;
	packet->words[5] = outer_tos;
	*type = ethernet(cursor, packet->words);
	return 1;
}

/* The whole frame. */
static __always_inline void dissect(struct packet *packet, const void *data, const void *end, __u16 vxlan_port)
{
	struct cursor cursor = { data, end };
	struct transport next;
	__u8 outer_frag;
	__u16 type;
	int word;

	for (word = 0; word < STEER_WORDS; word++)
		packet->words[word] = 0;
	packet->fragment_id = packet->outer_id = 0;
	packet->is_ip = packet->is_outer_fragment = packet->outer_proto = 0;
	type = ethernet(&cursor, packet->words);
	network(&cursor, packet, &next, type);
	if (!packet->is_ip)
		return;
	for (word = 0; word < 4; word++)
		packet->words[6 + word] = packet->words[word];
	packet->words[5] |= (packet->words[5] >> 32 & 0xff) << 8;
	if (!next.is_found || next.proto != PROTO_UDP || (packet->words[4] & 0xffff) != vxlan_port)
		return;
	outer_frag = packet->words[5] & STEER_FRAG_ANY;
	if (!vxlan(&cursor, packet, &next, &type))
		return;
	/* Pieces of the outer packet follow this one by its addresses, whatever the inner packet is. */
	packet->is_outer_fragment = outer_frag;
	packet->outer_id = packet->fragment_id;
	packet->outer_proto = PROTO_UDP;
	packet->fragment_id = 0;
	network(&cursor, packet, &next, type);
}

#endif
