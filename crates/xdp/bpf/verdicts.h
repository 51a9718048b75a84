/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames and bytes by what became of them, on each CPU.
 */
#ifndef SUIRO_VERDICTS_H
#define SUIRO_VERDICTS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SUIRO_VERDICTS);
	__type(key, __u32);
	__type(value, struct verdict_count);
} verdicts SEC(".maps");

static __always_inline void count(struct xdp_md *ctx, __u32 verdict)
{
	struct verdict_count *counter = bpf_map_lookup_elem(&verdicts, &verdict);

	if (counter) {
		counter->frames++;
		counter->bytes += ctx->data_end - ctx->data;
	}
}

#endif
