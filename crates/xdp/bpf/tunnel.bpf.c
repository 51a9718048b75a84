// SPDX-License-Identifier: Apache-2.0
/*
 * Which tunnel port gets a VXLAN datagram: the one that owns its VNI and its sender. The ports'
 * sockets are one SO_REUSEPORT group on the tunnel's UDP port; the kernel asks here which of them
 * a datagram is for, so that no tenant's port wakes up for, or has its queue filled by, another's.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "group.h"

#define ETH_P_IP 0x0800
#define VXLAN_HAS_VNI 0x08 /* RFC 7348, section 5 */
#define IPV4_SOURCE 12
#define IPV6_SOURCE 8

/* Who owns what; set by the ports. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TUNNEL_PORTS_MAX);
	__type(key, struct tunnel_key);
	__type(value, struct tunnel_owner);
} owners SEC(".maps");

/* The VNI and the sender; 0 when it is no VXLAN. */
static __always_inline int read_key(struct sk_reuseport_md *md, struct tunnel_key *key)
{
	__u8 header[8];

	if (bpf_skb_load_bytes(md, UDP_HEADER, header, sizeof(header)))
		return 0;
	if (!(header[0] & VXLAN_HAS_VNI))
		return 0;
	key->vni = (__u32)header[4] << 16 | (__u32)header[5] << 8 | header[6];
	if (md->eth_protocol == bpf_htons(ETH_P_IP)) {
		key->remote[2] = bpf_htonl(0xffff); /* ::ffff:a.b.c.d, RFC 4291, section 2.5.5.2 */
		return !bpf_skb_load_bytes_relative(md, IPV4_SOURCE, &key->remote[3], 4, BPF_HDR_START_NET);
	}
	return !bpf_skb_load_bytes_relative(md, IPV6_SOURCE, key->remote, 16, BPF_HDR_START_NET);
}

/* Who owns the VNI of this sender, else the rest of that sender's, else the VNI of whoever sends, else all the rest. */
static __always_inline struct tunnel_owner *owner_of(struct tunnel_key *key)
{
	struct tunnel_owner *owner = bpf_map_lookup_elem(&owners, key);
	__u32 vni = key->vni;

	if (owner)
		return owner;
	key->vni = TUNNEL_ANY_VNI;
	owner = bpf_map_lookup_elem(&owners, key);
	if (owner)
		return owner;
	__builtin_memset(key->remote, 0, sizeof(key->remote));
	key->vni = vni;
	owner = bpf_map_lookup_elem(&owners, key);
	if (owner)
		return owner;
	key->vni = TUNNEL_ANY_VNI;
	return bpf_map_lookup_elem(&owners, key);
}

SEC("sk_reuseport")
int suiro_tunnel(struct sk_reuseport_md *md)
{
	struct tunnel_key key = {};
	struct tunnel_owner *owner;

	if (read_key(md, &key)) {
		owner = owner_of(&key);
		if (owner && owner->sockets && give(md, owner->first + md->hash % owner->sockets))
			return SK_PASS;
	}
	give_nobody(md, 1);
	return SK_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
