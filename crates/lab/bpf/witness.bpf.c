// SPDX-License-Identifier: Apache-2.0
/*
 * Which core did programs take that are no part of an experiment?
 *
 * An experiment about reaction asks whether a flow could have gone anywhere: not to a core that
 * something else on the machine holds. Time counts from a thread's turn to the next thread's, so a
 * thread's soft interrupts count as its own.
 *
 * No other's are: the threads of suiro (node, lab and commands, told by their names), those that
 * process packets (ksoftirqd, cpumap), and the idle thread.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "witness.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct witness_core);
} held SEC(".maps");

struct task_struct {
	int pid;
	char comm[WITNESS_NAME];
} __attribute__((preserve_access_index));

/* Clang makes a call of memcmp where nothing can be called. */
static __always_inline int begins_with(const char *name, const char *with)
{
#pragma unroll
	for (int at = 0; at < WITNESS_NAME && with[at]; at++)
		if (name[at] != with[at])
			return 0;
	return 1;
}

static __always_inline int is_part(int pid, const char *name)
{
	return !pid || begins_with(name, "suiro") || begins_with(name, "ksoftirqd/") ||
	       begins_with(name, "cpumap/");
}

/* TP_PROTO(bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state) */
SEC("tp_btf/sched_switch")
int witness_switch(__u64 *args)
{
	const struct task_struct *next = (const void *)args[2];
	char name[WITNESS_NAME] = {};
	struct witness_core *core;
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0;

	core = bpf_map_lookup_elem(&held, &zero);
	if (!core)
		return 0;
	if (core->since_ns)
		core->ns += now - core->since_ns;
	core->since_ns = 0;
	bpf_probe_read_kernel(name, sizeof(name), &next->comm);
	if (is_part(next->pid, name))
		return 0;
	__builtin_memcpy(core->by, name, sizeof(name));
	core->since_ns = now;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
