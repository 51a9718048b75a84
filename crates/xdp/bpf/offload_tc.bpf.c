// SPDX-License-Identifier: Apache-2.0
/*
 * The rung tc: flows between packet sockets' ports on veths leave before the socket has them, large segments whole.
 *
 * `suiro_choose` is the filter of the port's socket. The kernel runs it for each frame, just before the tc hook; only it says which side a
 * frame goes to. `suiro_obey`, at the hook (tcx ingress), is told by a word of this CPU. Without an answer there is no socket: the node is dead, and
 * each flow goes where it was or shall be. Frames that are not sent on are left to whoever comes next at the hook, and end there: the port's own filter keeps
 * them from the host's stack (crates/port/src/isolation.rs).
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "offload.h"
#include "flow.h"
#include "flows.h"
#include "gate.h"

/* Next program at the hook. */
#define NEXT (-1)
/* What the filter says: all of the frame, or nothing. */
#define KEEP (-1)
#define REFUSE 0

/* What the filter told the hook of the frame that is on this CPU: nothing, that the socket has it, or its flow's place, plus 1. */
#define SILENT 0
#define HAS_IT 0xffffffff
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} answers SEC(".maps");

/* The first bytes, and which flow they belong to; the tag lies beside the frame. */
static __always_inline struct offload_flow *find(struct __sk_buff *skb, struct flow_head *head, __u32 *place)
{
	struct offload_key key = { .port = PORT };
	__u32 seen = skb->len, *found;

	if (seen > FLOW_SEEN)
		seen = FLOW_SEEN;
	if (seen < FLOW_LEAST)
		return 0;
	/* 1 to FLOW_SEEN still, said in the register that is used. */
	asm volatile("" : "+r"(seen));
	if (seen > FLOW_SEEN || seen < 1)
		return 0;
	if (bpf_skb_load_bytes(skb, 0, head->bytes, seen))
		return 0;
	head->seen = seen;
	if (skb->vlan_present) {
		if (skb->vlan_proto != bpf_htons(FLOW_8021Q) || skb->vlan_tci & FLOW_TAGGED)
			return 0;
		key.dl_vlan = skb->vlan_tci | FLOW_TAGGED;
	}
	if (!flow_key(head, &key))
		return 0;
	found = bpf_map_lookup_elem(&keys, &key);
	if (!found)
		return 0;
	*place = *found;
	return bpf_map_lookup_elem(&flows, found);
}

static __always_inline int choose(struct __sk_buff *skb)
{
	__u32 zero = 0, place = 0, *answer = bpf_map_lookup_elem(&answers, &zero);
	struct offload_port *port = this_port();
	struct flow_head head = {};
	struct offload_flow *flow;

	if (!answer || !port)
		return KEEP;
	*answer = HAS_IT;
	flow = port->flows ? find(skb, &head, &place) : 0;
	if (!flow || !flow_fits(flow, &head, skb->len, skb->gso_size)) {
		__sync_fetch_and_add(&port->seq, 1);
		return KEEP;
	}
	if (!gate_pass(flow, &port->seq, shapes_are_open(flow)))
		return KEEP;
	*answer = place + 1;
	return REFUSE;
}

/* Head, sums and TTL; the tag last, since the places of all else are without it. */
static __always_inline int edit(struct __sk_buff *skb, const struct offload_flow *flow)
{
	__u32 bytes = flow->words * 4, i;
	__u32 *word, *end;

	if (bytes) {
		if (bpf_skb_pull_data(skb, bytes))
			return 0;
		word = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
#pragma unroll
		for (i = 0; i < OFFLOAD_WORDS; i++) {
			if (i >= flow->words || word + i + 1 > end)
				break;
			word[i] = (word[i] & flow->keep[i]) | flow->put[i];
		}
	}
	if (flow->ip_sum && bpf_l3_csum_replace(skb, 24, 0, flow->ip_sum, 0))
		return 0;
	if (flow->sum_at) {
		__u64 zero = flow->flags & OFFLOAD_ZERO_SUM ? BPF_F_MARK_MANGLED_0 : 0;

		if (flow->key.nw_proto != FLOW_ICMP &&
		    bpf_l4_csum_replace(skb, flow->sum_at, 0, flow->pseudo_sum, BPF_F_PSEUDO_HDR | zero))
			return 0;
		if (flow->ports_sum && bpf_l4_csum_replace(skb, flow->sum_at, 0, flow->ports_sum, zero))
			return 0;
	}
	if (flow->flags & OFFLOAD_DEC_TTL) {
		if (flow->l4_at == 34) {
			__u16 old, new;

			if (bpf_skb_load_bytes(skb, 22, &old, 2))
				return 0;
			new = old - bpf_htons(0x100);
			if (bpf_l3_csum_replace(skb, 24, old, new, 2) || bpf_skb_store_bytes(skb, 22, &new, 2, 0))
				return 0;
		} else {
			__u8 hops;

			if (bpf_skb_load_bytes(skb, 21, &hops, 1))
				return 0;
			hops--;
			if (bpf_skb_store_bytes(skb, 21, &hops, 1, 0))
				return 0;
		}
	}
	if (flow->flags & OFFLOAD_POP_VLAN && bpf_skb_vlan_pop(skb))
		return 0;
	if (flow->flags & OFFLOAD_PUSH_VLAN && bpf_skb_vlan_push(skb, bpf_htons(flow->tag_tpid), flow->tag_tci))
		return 0;
	return 1;
}

/* Takes from the greatest rates that the flow keeps. */
static __always_inline void spend(struct __sk_buff *skb, const struct offload_flow *flow)
{
	struct flow_head head = {};
	__u32 at = flow->l4_at;

	/* The length of TCP's header is all that is looked at. */
	if (flow->flags & OFFLOAD_IS_TCP && bpf_skb_load_bytes(skb, at + 12, &head.bytes[at == 34 ? 34 + 12 : 54 + 12], 1))
		return;
	shapes_spend(flow, flow_wire_len(flow, &head, skb->len, skb->gso_size));
}

/* By the rung: into the other end of the exit, in the guest. */
static __always_inline int leave(struct __sk_buff *skb, struct offload_flow *flow)
{
	__u64 bytes = skb->len + (skb->vlan_present ? 4 : 0);
	__u32 exit = flow->exit;

	if (!flow_admit(flow, bytes))
		return TC_ACT_SHOT;
	if (flow->shapes[0])
		spend(skb, flow);
	if (!edit(skb, flow))
		return TC_ACT_SHOT;
	return bpf_redirect_peer(exit, 0);
}

static __always_inline int obey(struct __sk_buff *skb)
{
	__u32 zero = 0, place = 0, *answer = bpf_map_lookup_elem(&answers, &zero);
	struct offload_flow *flow;
	struct offload_port *port;
	struct flow_head head = {};

	if (!answer)
		return NEXT;
	place = *answer;
	*answer = SILENT;
	if (place == HAS_IT)
		return NEXT;
	if (place) {
		place--;
		flow = bpf_map_lookup_elem(&flows, &place);
		return flow && flow->key.port == PORT ? leave(skb, flow) : NEXT;
	}
	flow = find(skb, &head, &place);
	if (flow && flow_fits(flow, &head, skb->len, skb->gso_size) && gate_pass_alone(flow, shapes_are_open(flow)))
		return leave(skb, flow);
	port = this_port();
	if (port)
		__sync_fetch_and_add(&port->orphans, 1);
	return NEXT;
}

SEC("socket")
int suiro_choose(struct __sk_buff *skb)
{
	return choose(skb);
}

SEC("classifier")
int suiro_obey(struct __sk_buff *skb)
{
	return obey(skb);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
