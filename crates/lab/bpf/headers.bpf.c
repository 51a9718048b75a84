// SPDX-License-Identifier: Apache-2.0
/*
 * A guest's own headers around its TCP, put on and taken off at its interface's tc hooks: on kernels that have no device for
 * them, and with the same marks of large segments as such a device leaves.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define TCP 6
#define GRE 47
#define IPV4 20
#define GRE_LEN 4

SEC("tc")
int vlan_out(struct __sk_buff *skb)
{
	bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 100);
	return 0;
}

SEC("tc")
int qinq_out(struct __sk_buff *skb)
{
	bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 100);
	bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021AD), 200);
	return 0;
}

SEC("tc")
int tags_in(struct __sk_buff *skb)
{
	for (int tag = 0; tag < 2; tag++)
		if (skb->vlan_present)
			bpf_skb_vlan_pop(skb);
	return 0;
}

/* The outer header is the inner one with another length and protocol. */
SEC("tc")
int gre_out(struct __sk_buff *skb)
{
	__u8 header[IPV4 + GRE_LEN];
	__u32 sum = 0, len = skb->len - ETH_HLEN + sizeof(header);

	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, ETH_HLEN, header, IPV4) || header[9] != TCP)
		return 0;
	if (bpf_skb_adjust_room(skb, sizeof(header), BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_ENCAP_L4_GRE | BPF_F_ADJ_ROOM_FIXED_GSO))
		return 0;
	header[2] = len >> 8;
	header[3] = len;
	header[9] = GRE;
	header[10] = header[11] = 0;
	header[20] = header[21] = 0;
	header[22] = ETH_P_IP >> 8;
	header[23] = ETH_P_IP & 0xff;
	for (int at = 0; at < IPV4; at += 2)
		sum += header[at] << 8 | header[at + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	header[10] = sum >> 8;
	header[11] = sum;
	bpf_skb_store_bytes(skb, ETH_HLEN, header, sizeof(header), 0);
	return 0;
}

SEC("tc")
int gre_in(struct __sk_buff *skb)
{
	__u8 proto;

	if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, ETH_HLEN + 9, &proto, 1) || proto != GRE)
		return 0;
	bpf_skb_adjust_room(skb, -(IPV4 + GRE_LEN), BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
