// SPDX-License-Identifier: Apache-2.0
/*
 * Which socket gets an ESP packet behind a UDP header (RFC 3948): the one that owns its SPI. The
 * sockets of all encrypted tunnels are one SO_REUSEPORT group on UDP port 4500; each SA belongs to
 * one queue of one port, so that the SAs of one tunnel are decrypted on several cores.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "group.h"

#define KEEPALIVE 0xff /* alone in a datagram: RFC 3948, section 2.3 */

/* SPI, network order, to the place of its socket. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TUNNEL_SPIS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} spis SEC(".maps");

static __always_inline int is_keepalive(struct sk_reuseport_md *md)
{
	__u8 byte;

	if (md->len != UDP_HEADER + 1 || bpf_skb_load_bytes(md, UDP_HEADER, &byte, sizeof(byte)))
		return 0;
	return byte == KEEPALIVE;
}

SEC("sk_reuseport")
int suiro_spi(struct sk_reuseport_md *md)
{
	__u32 spi, *place;

	/* An SPI of 0 is the mark of IKE (RFC 3948, section 2.2), which nobody can own. */
	if (!bpf_skb_load_bytes(md, UDP_HEADER, &spi, sizeof(spi))) {
		place = bpf_map_lookup_elem(&spis, &spi);
		if (place && give(md, *place))
			return SK_PASS;
	}
	give_nobody(md, !is_keepalive(md));
	return SK_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
