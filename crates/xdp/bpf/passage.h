/* SPDX-License-Identifier: Apache-2.0
 *
 * A frame on its way through suiro_steer: what is known of it, and how its end is counted and told.
 */
#ifndef SUIRO_PASSAGE_H
#define SUIRO_PASSAGE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "classify.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steer_config);
} config SEC(".maps");

/* The queues: a kernel thread for each core that flows may be on. */
struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, STEER_CPUS);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STEER_CPUS);
	__type(key, __u32);
	__type(value, struct steer_ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steer_received);
} received SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STEER_COUNTS);
	__type(key, __u32);
	__type(value, struct steer_count);
} steered SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, STEER_EVENT_BYTES);
} events SEC(".maps");

/* What a frame takes along to its core. */
struct label {
	__u32 unit;
	__u32 tag;
};

/* A frame on its way through suiro_steer. */
struct passage {
	struct bench *bench;
	const struct steer_config *config;
	__u32 cpu;
	__u32 bytes;
};

/* How a frame ends: the program's action, and above it why, for those who look (shown.h). */
#define ENDED(action, verdict) ((verdict) << 8 | (action))
#define ACTION_OF(ended) ((ended) & 0xff)
#define VERDICT_OF(ended) ((ended) >> 8)

static __always_inline void count(__u32 what, __u32 bytes)
{
	struct steer_count *counter = bpf_map_lookup_elem(&steered, &what);

	if (counter) {
		counter->frames++;
		counter->bytes += bytes;
	}
}

static __always_inline struct steer_received *this_core(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&received, &key);
}

/* The kernel's stack has it now, on this core. */
static __always_inline void note_received(__u32 bytes)
{
	struct steer_received *here = this_core();

	if (here) {
		here->frames++;
		here->bytes += bytes;
	}
}

static __always_inline int pass(__u32 verdict, __u32 bytes)
{
	note_received(bytes);
	count(verdict, bytes);
	return ENDED(XDP_PASS, verdict);
}

static __always_inline int drop(__u32 verdict, struct steer_unit *unit, __u32 bytes)
{
	__sync_fetch_and_add(&unit->dropped, 1);
	count(verdict, bytes);
	return ENDED(XDP_DROP, verdict);
}

/* Not inlined, for the object's type information to have the struct. */
static __noinline void set_words(struct steer_event *event, const struct bench *bench)
{
	int i;

	if (!event || !bench)
		return;
	for (i = 0; i < STEER_WORDS; i++)
		event->words[i] = bench->packet.words[i];
}

static __always_inline void tell(const struct passage *passage, __u32 kind, __u32 number, __u16 from, __u16 to,
				 __u8 reason, __u64 waited_ns)
{
	struct steer_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	/* A full ring: nobody reads, and the units tell what became of it. */
	if (!event)
		return;
	event->at_ns = bpf_ktime_get_ns();
	event->waited_ns = waited_ns;
	event->kind = kind;
	event->unit = number;
	event->from = from;
	event->to = to;
	event->reason = reason;
	event->reserved[0] = event->reserved[1] = event->reserved[2] = 0;
	set_words(event, passage->bench);
	bpf_ringbuf_submit(event, 0);
}

#endif
