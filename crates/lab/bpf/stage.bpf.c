// SPDX-License-Identifier: Apache-2.0
/*
 * The stage that stands for encryption in the experiments, and the witness of who did the work.
 *
 * It runs at the ingress of the underlay's interface, behind the choice of a core (RPS, cpumap,
 * or none) and in front of IP, defragmentation and the tunnel: on the core that has to process
 * the frame, in the context in which it processes it. There it works through every byte of the
 * frame as a cipher in software does, `rounds` times, and counts frame, bytes and time per core
 * and VM. The frame goes on unchanged.
 *
 * The VM is the last byte of the inner destination address (the testbed's own plan). Fragments
 * after the first carry no inner header; they are told by the IP id of the first. Of an encrypted
 * frame, whole or in fragments, it is the upper seven bits of the ToS (the papers' flow control
 * field).
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "stage.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stage_config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STAGE_VMS);
	__type(key, __u32);
	__type(value, struct stage_count);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STAGE_VMS);
	__type(key, __u32);
	__type(value, struct stage_home);
} homes SEC(".maps");

/* IP id of a fragmented packet whose first fragment was seen -> its VM. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} fragments SEC(".maps");

/* Headers up to and with the inner destination address; IPv4 without options outside and inside. */
struct headers {
	__u8 outer_mac[12];
	__be16 ethertype;
	__u8 version_length;
	__u8 tos;
	__be16 length;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 protocol;
	__u8 checksum_addresses[10];
	__be16 source_port;
	__be16 destination_port;
	__u8 udp_rest[4];
	__u8 vxlan[8];
	__u8 inner_ethernet[14];
	__u8 inner_ip[16];
	__u8 inner_destination[4];
} __attribute__((packed));

#define ETH_P_IP 0x0800
#define UDP 17
#define ESP 50
#define VXLAN 4789
#define MORE_FRAGMENTS 0x2000
#define OFFSET_MASK 0x1fff

struct pass {
	__u64 words[STAGE_CHUNK / 8];
	__u64 state;
};

/* One round: a multiplication and a rotation for each word, each waiting for the one before, as chained ciphers do. */
static long mix(__u32 index, struct pass *pass)
{
#pragma unroll
	for (int word = 0; word < STAGE_CHUNK / 8; word++) {
		pass->state = (pass->state ^ pass->words[word]) * 0x9e3779b97f4a7c15ull;
		pass->state = pass->state << 23 | pass->state >> 41;
	}
	return 0;
}

struct walk {
	struct __sk_buff *skb;
	__u32 rounds;
	__u32 reserved;
	struct pass pass;
};

static long chunk(__u32 index, struct walk *walk)
{
	if (bpf_skb_load_bytes(walk->skb, index * STAGE_CHUNK, walk->pass.words, STAGE_CHUNK))
		return 1;
	bpf_loop(walk->rounds, mix, &walk->pass, 0);
	return 0;
}

/* STAGE_OTHER for everything that is not the testbed's tunnel. */
static __always_inline __u32 vm_of(struct __sk_buff *skb)
{
	struct headers headers = {};
	__u32 id, vm, *known;
	__u16 fragment;

	/* A fragment may be shorter than all headers; a tunnel's first frame never is. */
	if (bpf_skb_load_bytes(skb, 0, &headers, sizeof(headers)) &&
	    bpf_skb_load_bytes(skb, 0, &headers, 34))
		return STAGE_OTHER;
	if (headers.ethertype != bpf_htons(ETH_P_IP))
		return STAGE_OTHER;
	if (headers.protocol == ESP && headers.tos >> 1 < STAGE_VMS)
		return headers.tos >> 1;
	if (headers.protocol != UDP)
		return STAGE_OTHER;
	fragment = bpf_ntohs(headers.fragment);
	id = headers.id;
	if (fragment & OFFSET_MASK) {
		known = bpf_map_lookup_elem(&fragments, &id);
		return known ? *known : STAGE_OTHER;
	}
	if (headers.destination_port != bpf_htons(VXLAN))
		return STAGE_OTHER;
	vm = headers.inner_destination[3];
	if (vm == STAGE_OTHER || vm >= STAGE_VMS)
		return STAGE_OTHER;
	if (fragment & MORE_FRAGMENTS)
		bpf_map_update_elem(&fragments, &id, &vm, BPF_ANY);
	return vm;
}

static __always_inline void note_home(__u32 vm, __u64 now)
{
	struct stage_home *home = bpf_map_lookup_elem(&homes, &vm);
	__u32 core = bpf_get_smp_processor_id();

	if (!home || home->core == core)
		return;
	home->core = core;
	home->since_ns = now;
	home->changes++;
}

SEC("classifier")
int stage(struct __sk_buff *skb)
{
	__u64 begin = bpf_ktime_get_ns();
	__u32 zero = 0, vm = vm_of(skb);
	struct stage_config *settings = bpf_map_lookup_elem(&config, &zero);
	struct stage_count *count = bpf_map_lookup_elem(&counts, &vm);
	struct walk walk = { .skb = skb };

	if (!settings || !count)
		return TC_ACT_UNSPEC;
	note_home(vm, begin);
	walk.rounds = settings->rounds;
	if (vm != STAGE_OTHER && walk.rounds)
		bpf_loop(skb->len / STAGE_CHUNK, chunk, &walk, 0);
	count->frames++;
	count->bytes += skb->len;
	count->ns += bpf_ktime_get_ns() - begin;
	/* Nobody reads it, but the work may not be left out. */
	count->mixed ^= walk.pass.state;
	return TC_ACT_UNSPEC;
}

/*
 * The far end of a wire knows nothing of what the sender's kernel noted beside the frame. The
 * hash of the flow inside is such a note: with it, even fragments would be told apart.
 */
SEC("classifier")
int forget(struct __sk_buff *skb)
{
	bpf_set_hash_invalid(skb);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "GPL";
