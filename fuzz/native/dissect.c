// SPDX-License-Identifier: Apache-2.0
/*
 * The dissector of the steering program, compiled for user space: the same text, with sanitizers.
 */
#include <linux/types.h>
#include <stddef.h>

/* The one helper that it uses. */
static long bpf_loop(__u32 times, long (*step)(__u32, void *), void *context, __u64 flags)
{
	__u32 at;

	(void)flags;
	for (at = 0; at < times; at++) {
		if (step(at, context))
			break;
	}
	return at;
}

#include "../../crates/xdp/bpf/dissect.h"

void suiro_dissect(__u64 *words, __u8 *is_ip, const __u8 *data, size_t len)
{
	struct packet packet;
	int word;

	dissect(&packet, data, data + len, 4789);
	for (word = 0; word < STEER_WORDS; word++)
		words[word] = packet.words[word];
	*is_ip = packet.is_ip;
}
