// SPDX-License-Identifier: Apache-2.0
/*
 * A worker's burst on its way out: as many runs of suiro_transmit as there are frames, in one
 * system call (BPF_PROG_TEST_RUN with live frames, Documentation/bpf/bpf_prog_run.rst).
 *
 * Each run finds an empty frame, fills it from the next slot and redirects it to the slot's
 * exit. The kernel hands them to the drivers in bulk, and tells at xdp_devmap_xmit how many
 * of them were taken: suiro_sent keeps that.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"

/* The first interface of every namespace; the kernel runs live frames as if received there. */
#define LOOPBACK 1
/* IEEE 802.3: no frame is shorter than its header. */
#define HEADER 14

struct net_device {
	int ifindex;
} __attribute__((preserve_access_index));

/* The burst, shared with user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct burst);
} bursts SEC(".maps");

/* The interfaces by number of exit, of any namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, SUIRO_EXITS_MAX);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} exits SEC(".maps");

static __always_inline struct burst *the_burst(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&bursts, &key);
}

SEC("xdp")
int suiro_transmit(struct xdp_md *ctx)
{
	struct burst *burst = the_burst();
	struct slot *slot;
	__u32 number, len;

	if (!burst)
		return XDP_DROP;
	burst->cpu = bpf_get_smp_processor_id();
	number = burst->run++;
	if (number >= SUIRO_BURST_MAX)
		return XDP_DROP;
	slot = &burst->slots[number];
	len = slot->len;
	if (len < HEADER || len > SUIRO_SLOT_BYTES)
		return XDP_DROP;
	if (bpf_xdp_adjust_tail(ctx, (int)len - (int)bpf_xdp_get_buff_len(ctx)))
		return XDP_DROP;
	if (bpf_xdp_store_bytes(ctx, 0, slot->bytes, len))
		return XDP_DROP;
	return bpf_redirect_map(&exits, slot->exit, XDP_DROP);
}

/*
 * TP_PROTO(const struct net_device *from, const struct net_device *to, int sent, int drops, int err)
 *
 * The kernel flushes in the runs' own section without interrupts by softirqs, so a flush of
 * frames from a loopback device on the burst's CPU is the burst's, unless all of it was
 * flushed already.
 */
SEC("tp_btf/xdp_devmap_xmit")
int suiro_sent(__u64 *args)
{
	const struct net_device *from = (const void *)args[0];
	int sent = (int)args[2], drops = (int)args[3], error = (int)args[4];
	struct burst *burst = the_burst();

	if (!burst || burst->cpu != bpf_get_smp_processor_id() || from->ifindex != LOOPBACK)
		return 0;
	if (burst->flushed + sent + drops > burst->run)
		return 0;
	burst->flushed += sent + drops;
	burst->sent += sent;
	if (error)
		burst->error = -error;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
