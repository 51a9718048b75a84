// SPDX-License-Identifier: Apache-2.0
/* Puts a VLAN tag beside each frame that leaves, as a VLAN interface does: 100 by 802.1Q, or 802.1ad. */
#include <linux/bpf.h>

static long (*push)(struct __sk_buff *, __u16, __u16) = (void *)BPF_FUNC_skb_vlan_push;

/* The protocol is in network order. */
__attribute__((section("q"), used)) int push_q(struct __sk_buff *frame)
{
	push(frame, 0x0081, 100);
	return 0;
}

__attribute__((section("ad"), used)) int push_ad(struct __sk_buff *frame)
{
	push(frame, 0xa888, 100);
	return 0;
}

__attribute__((section("license"), used)) char LICENSE[] = "GPL";
