// SPDX-License-Identifier: Apache-2.0
/*
 * The one XDP program that suiro puts on an interface.
 *
 * It hands each frame to the first stage that is there: offload, steer, worker (design.md
 * section 2). Each stage is a program of its own, with its own maps and its own owner; it
 * decides, or hands on (stages.h). A frame that no stage takes passes to the kernel, counted.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "stages.h"
#include "verdicts.h"

SEC(SUIRO_XDP_SECTION)
int suiro_hook(struct xdp_md *ctx)
{
	run_stages(ctx, SUIRO_STAGE_OFFLOAD);
	count(ctx, SUIRO_VERDICT_PASS);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
