// SPDX-License-Identifier: Apache-2.0
/*
 * The rung tc on a frame that never was on a wire, for tests. Where the kernel has the tag beside the frame, it comes and goes in `cb`: type
 * and tag. What the filter says goes in `cb`, too: first filter, then hook, as the kernel runs them.
 */
#include "offload_tc.bpf.c"

#define BROKEN 255

SEC("classifier")
int suiro_try(struct __sk_buff *skb)
{
	int verdict;

	if (skb->cb[0] && bpf_skb_vlan_push(skb, bpf_htons(skb->cb[0]), skb->cb[1]))
		return BROKEN;
	skb->cb[2] = choose(skb) == REFUSE;
	verdict = obey(skb);
	skb->cb[0] = skb->vlan_present ? bpf_ntohs(skb->vlan_proto) : 0;
	skb->cb[1] = skb->vlan_present ? skb->vlan_tci : 0;
	return verdict;
}
