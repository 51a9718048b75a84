/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames for those who look: as they came, as they go on, and as they are dropped.
 *
 * While nobody looks, a frame costs a test of one word at each place. Else its first bytes go to a ring, whose reader shows them to captures.
 * A full ring loses the record, which is counted; the frame goes on.
 */
#ifndef SUIRO_SHOWN_H
#define SUIRO_SHOWN_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "order.h"
#include "passage.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steer_look);
} look SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, STEER_FRAMES_BYTES);
} frames SEC(".maps");

/* By core, and there by side. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STEER_CPUS * STEER_SIDES);
	__type(key, __u32);
	__type(value, struct steer_shown_count);
} shown SEC(".maps");

/* A record on its way into the ring: how long it is, the ring has to be told before it is there. */
struct sheet {
	struct steer_shown head;
	__u8 bytes[STEER_SHOWN_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sheet);
} sheets SEC(".maps");

/* Bytes of each frame that somebody wants to see. */
static __always_inline __u32 looked_at(void)
{
	__u32 zero = 0;
	const struct steer_look *that = bpf_map_lookup_elem(&look, &zero);

	return that ? volatile_read(that->bytes) : 0;
}

/* What its unit says. */
static __always_inline void write_unit(struct steer_shown *head, __u32 number)
{
	const struct steer_unit *unit = bpf_map_lookup_elem(&units, &number);
	__u32 wanted, route;

	head->unit = number;
	head->to = STEER_UNDECIDED;
	head->flags = head->reason = 0;
	if (!unit)
		return;
	head->flags = unit->flags;
	head->reason = unit->reason;
	wanted = volatile_read(unit->wanted) & STEER_UNDECIDED;
	route = volatile_read(unit->state) >> STEER_SENT_BITS;
	if (wanted != STEER_UNDECIDED)
		head->to = wanted;
	else if (route != STEER_ROUTE_NONE)
		head->to = route & ~STEER_LOCAL;
}

/* Not static: the verifier follows it once, and not behind each way to a frame's end. */
__noinline int show_frame(struct xdp_md *ctx, __u32 side, __u32 verdict, __u32 unit)
{
	__u32 zero = 0, kept = looked_at(), cpu = bpf_get_smp_processor_id(), key = cpu * STEER_SIDES + side;
	struct steer_shown_count *counts = bpf_map_lookup_elem(&shown, &key);
	struct sheet *sheet = bpf_map_lookup_elem(&sheets, &zero);
	__u64 began = bpf_ktime_get_ns();

	if (!sheet || !counts)
		return 0;
	sheet->head.at_ns = began;
	sheet->head.len = bpf_xdp_get_buff_len(ctx);
	sheet->head.queue = ctx->rx_queue_index;
	sheet->head.cpu = cpu;
	sheet->head.side = side;
	sheet->head.verdict = verdict;
	write_unit(&sheet->head, unit);
	if (kept > sheet->head.len)
		kept = sheet->head.len;
	if (kept > STEER_SHOWN_MAX)
		kept = STEER_SHOWN_MAX;
	sheet->head.kept = kept;
	if (!kept)
		return 0;
	/* The verifier of Linux 6.1 learns no lower bound from that, but from a sum. */
	kept--;
	barrier_var(kept);
	if (kept > STEER_SHOWN_MAX - 1)
		return 0;
	kept++;
	if (bpf_xdp_load_bytes(ctx, 0, sheet->bytes, kept))
		return 0;
	if (bpf_ringbuf_output(&frames, sheet, sizeof(sheet->head) + kept, BPF_RB_NO_WAKEUP))
		counts->lost++;
	else
		counts->frames++;
	counts->ns += bpf_ktime_get_ns() - began;
	return 0;
}

static __always_inline void show(struct xdp_md *ctx, __u32 side, __u32 verdict, __u32 unit)
{
	if (looked_at())
		show_frame(ctx, side, verdict, unit);
}

#endif
