// SPDX-License-Identifier: Apache-2.0
/*
 * What each core does: one copy for the host, beside the steering of its interfaces.
 *
 * It keeps two things. *When a core has nothing left of the frames that it got* (order.h needs it):
 * the queue's thread slept, or worked through a whole window; the receive soft interrupt ended and
 * was not asked for again. *Where its time goes*: idle, driver, packets, vhost, guests, others, by
 * adding up what lies between two of these events; nobody polls /proc.
 *
 * Every write is by the core that it is about, with interrupts off or from the tracepoint's own
 * context; others only read.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "clocks.h"

/* softirq.h: the third of the kernel's soft interrupts. */
#define NET_RX 3
/* NAPI_POLL_WEIGHT of netdevice.h: a busy queue's thread hands merged frames over after so many, and a batch. */
#define WINDOW_FRAMES (64 + 16)
/* What came in an earlier tick is handed over then; the shortest tick is 1 ms. */
#define WINDOW_NS 1100000

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

/* Threads that are not "other": by thread id. Vhost and guests' are user space's to enter. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STEER_THREADS);
	__type(key, __u32);
	__type(value, struct steer_thread);
} threads SEC(".maps");

/* The slot of each map of queues, by the map's id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STEER_SLOTS);
	__type(key, __u32);
	__type(value, __u32);
} slots SEC(".maps");

static __always_inline struct steer_core *this_core(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cores, &cpu);
}

static __always_inline void spend(struct steer_core *core, __u32 next)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 stage = core->stage;

	if (stage < STEER_TIMES && core->since_ns)
		core->ns[stage] += now - core->since_ns;
	volatile_read(core->since_ns) = now;
	core->stage = next;
}

/* Frames that were taken out before now are handed over; of what they left to the soft interrupt, it must still rest. */
static __always_inline void advance(struct steer_clock *clock, const struct steer_core *core, __u32 by)
{
	clock->quiet = core->quiet + (core->is_raised || core->is_running);
	compiler_barrier();
	volatile_read(clock->epoch) = clock->epoch + by;
	clock->is_armed = 0;
	clock->window_ns = 0;
}

/* TP_PROTO(bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state) */
SEC("tp_btf/sched_switch")
int suiro_switch(__u64 *args)
{
	const struct task_struct *prev = (const void *)args[1], *next = (const void *)args[2];
	__u32 from = prev->pid, to = next->pid, stage = STEER_TIME_IDLE;
	struct steer_core *core = this_core();
	struct steer_thread *thread;
	struct steer_clock *clock;

	if (!core)
		return 0;
	core->switches++;
	if (core->stage == STEER_TIME_PACKET && !args[0] && args[3]) {
		thread = bpf_map_lookup_elem(&threads, &from);
		clock = thread ? bpf_map_lookup_elem(&clocks, &thread->clock) : 0;
		/* It sleeps only after its queue was empty, and then it had handed over all it held. */
		if (clock)
			advance(clock, core, EPOCH_SLEPT);
	}
	if (to) {
		thread = bpf_map_lookup_elem(&threads, &to);
		stage = thread ? thread->stage : STEER_TIME_OTHER;
	}
	spend(core, stage);
	return 0;
}

/* TP_PROTO(unsigned int vec_nr) */
SEC("tp_btf/softirq_raise")
int suiro_raise(__u64 *args)
{
	struct steer_core *core;

	if (args[0] != NET_RX)
		return 0;
	core = this_core();
	if (core)
		core->is_raised = 1;
	return 0;
}

/* TP_PROTO(unsigned int vec_nr) */
SEC("tp_btf/softirq_entry")
int suiro_enter(__u64 *args)
{
	struct steer_core *core;

	if (args[0] != NET_RX)
		return 0;
	core = this_core();
	if (!core)
		return 0;
	core->is_raised = 0;
	core->is_running = 1;
	core->softirqs++;
	core->outer = core->stage;
	/* On a thread of a queue it works off what the thread's frames left behind. */
	spend(core, core->stage == STEER_TIME_PACKET ? STEER_TIME_PACKET : STEER_TIME_DRIVER);
	return 0;
}

/* TP_PROTO(unsigned int vec_nr) */
SEC("tp_btf/softirq_exit")
int suiro_exit(__u64 *args)
{
	struct steer_core *core;

	if (args[0] != NET_RX)
		return 0;
	core = this_core();
	if (!core)
		return 0;
	core->is_running = 0;
	/* What it could not finish, it has asked for again. */
	if (!core->is_raised)
		volatile_read(core->quiet) = core->quiet + 1;
	spend(core, core->outer);
	return 0;
}

/* A thread of a queue is met for the first time. */
static __always_inline void know_thread(__u32 pid, __u32 key)
{
	struct steer_thread *known = bpf_map_lookup_elem(&threads, &pid), thread = { STEER_TIME_PACKET, key };
	struct steer_core *core;

	if (known && known->clock == key)
		return;
	bpf_map_update_elem(&threads, &pid, &thread, BPF_ANY);
	core = this_core();
	if (core)
		spend(core, STEER_TIME_PACKET);
}

/*
 * TP_PROTO(int map_id, unsigned int processed, unsigned int drops, int sched, struct xdp_cpumap_stats *xdp_stats)
 *
 * Once for each batch of a queue: its frames went through suiro_arrive, and go to the stack next.
 */
SEC("tp_btf/xdp_cpumap_kthread")
int suiro_batch(__u64 *args)
{
	__u32 map = args[0], key, cpu = bpf_get_smp_processor_id();
	__u32 *slot = bpf_map_lookup_elem(&slots, &map);
	struct steer_clock *clock;
	struct steer_core *core;
	__u64 now;

	if (!slot)
		return 0;
	key = *slot * STEER_CPUS + cpu;
	clock = bpf_map_lookup_elem(&clocks, &key);
	core = this_core();
	if (!clock || !core)
		return 0;
	know_thread((__u32)bpf_get_current_pid_tgid(), key);
	clock->frames += (__u32)args[1];
	now = bpf_ktime_get_ns();
	if (!clock->window_ns) {
		clock->window_ns = now;
	} else if (!clock->is_armed) {
		if (now - clock->window_ns >= WINDOW_NS) {
			clock->is_armed = 1;
			clock->armed_frames = clock->frames;
		}
	} else if (clock->frames - clock->armed_frames >= WINDOW_FRAMES) {
		advance(clock, core, EPOCH_WINDOW);
		clock->window_ns = now;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
