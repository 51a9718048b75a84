/* SPDX-License-Identifier: Apache-2.0
 *
 * Which unit a frame belongs to: its entry's, or that of its flow group.
 *
 * Bounded for every frame: one search for exact entries, at most STEER_MASKS for wildcard entries,
 * fewer when what was found has a higher priority than all masks to come. The number of entries
 * costs nothing.
 *
 * While entries change, a flow has two units: the one that it had, and the one that it will have.
 */
#ifndef SUIRO_CLASSIFY_H
#define SUIRO_CLASSIFY_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "checksum.h"
#include "dissect.h"
#include "hash.h"
#include "index.h"

#define NO_UNIT STEER_NO_UNIT
/* Of datagrams in pieces that stay where they come in. */
#define STAYS 0xfffffffe
/* The same of datagrams that no entry matches, which another stage may want. */
#define HANDED_ON 0xfffffffd
/* Beside a unit's number: a piece of the datagram was dropped. The others are of no use to anybody, and would fill the host's memory for
 * reassembly, which all flows share. */
#define IS_LOST 0x40000000
/* Above every priority: OpenFlow 1.0 section 3.4. */
#define PRIORITY_EXACT 0x100000000ULL
#define SALT_EXACT 0x100
#define EXACT_MASK 0xffffffff
#define SALT_GROUP 0x101
/* Masks in a row without a call: where returns are guarded against speculation, one costs as much as a mask. */
#define MASKS_AT_ONCE 4

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct steer_masks);
} masks SEC(".maps");

/* Units of datagrams in pieces: the first piece has the ports and writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct steer_fragment);
	__type(value, __u32);
} fragments SEC(".maps");

/* The best entry so far, for flows as they were and as they will be. */
struct found {
	__u64 priority_old; /* one more than the entry's; 0: none */
	__u64 priority_new;
	__u32 unit_old;
	__u32 unit_new;
};

/* What was found in this core's frame, and what is made of it: too large for the stack. */
struct bench {
	struct packet packet;
	__u64 flow[STEER_FLOW_WORDS];
	struct found found;
	__u64 place; /* index.h */
	struct summing summing;
	__u32 unit; /* that it goes with; NO_UNIT until that is known */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bench);
} benches SEC(".maps");

static __always_inline void consider(struct found *found, const struct steer_entry *entry, __u64 priority)
{
	if (entry->change != STEER_COMING && priority > found->priority_old) {
		found->priority_old = priority;
		found->unit_old = entry->unit;
	}
	if (entry->change != STEER_GOING && priority > found->priority_new) {
		found->priority_new = priority;
		found->unit_new = entry->unit;
	}
}

/* The words that tell flows apart. */
static __always_inline void set_flow(struct bench *bench)
{
	int i;

#pragma unroll
	for (i = 0; i < STEER_FLOW_WORDS; i++)
		bench->flow[i] = bench->packet.words[i];
	bench->flow[5] &= STEER_FLOW_WORD5;
}

static __always_inline __u64 hash_flow(const struct bench *bench, const struct steer_config *config, __u64 salt)
{
	return hash_words(bench->flow, STEER_FLOW_WORDS, config->secrets, salt);
}

/* The flow's words are masked already. */
static __always_inline void find_exact(struct bench *bench, const struct steer_config *config)
{
	struct wanted wanted = { bench->flow, bench->flow, hash_flow(bench, config, SALT_EXACT), EXACT_MASK };
	const struct steer_entry *entry = find(&wanted, config->last_line, STEER_SHAPE_FLOW, &bench->place);

	if (entry)
		consider(&bench->found, entry, PRIORITY_EXACT);
}

/* A walk over the masks. */
struct search {
	struct bench *bench;
	const struct steer_config *config;
	const struct steer_masks *list;
};

/* `shape` is a constant in each caller, so that narrow masks cost less. */
static __always_inline void find_masked(const struct search *search, const struct steer_mask *mask, const int shape)
{
	const struct steer_config *config = search->config;
	struct wanted wanted = { search->bench->packet.words, mask->words, 0, mask->id };
	const struct steer_entry *entry;
	struct sums sums = {};
	int at;

#pragma unroll
	for (at = 0; at < words_of(shape); at++) {
		int word = word_of(shape, at);

		hash_word(&sums, wanted.words[word] & wanted.mask[word], config->secrets, at);
	}
	wanted.hash = hash_end(&sums, mask->id);
	entry = find(&wanted, config->last_line, shape, &search->bench->place);
	if (entry)
		consider(&search->bench->found, entry, (__u64)entry->priority + 1);
}

/* One mask; 1 ends the walk: nothing stronger is to come. */
static __always_inline long try_mask(const struct search *search, __u32 at)
{
	const struct found *found = &search->bench->found;
	const struct steer_mask *mask;
	__u64 priority;

	if (at >= STEER_MASKS || at >= search->list->len)
		return 1;
	mask = &search->list->masks[at];
	priority = (__u64)mask->priority + 1;
	if (anew(found->priority_old) >= priority && anew(found->priority_new) >= priority)
		return 1;
	if (mask->shape == STEER_SHAPE_IPV4)
		find_masked(search, mask, STEER_SHAPE_IPV4);
	else if (mask->shape == STEER_SHAPE_FLOW)
		find_masked(search, mask, STEER_SHAPE_FLOW);
	else
		find_masked(search, mask, STEER_SHAPE_ALL);
	return 0;
}

/* Some of them; 1 as of one. */
static __always_inline long try_masks(const struct search *search, __u32 first)
{
	int at;

#pragma unroll
	for (at = 0; at < MASKS_AT_ONCE; at++)
		if (try_mask(search, first + at))
			return 1;
	return 0;
}

/* Those behind the first ones, for bpf_loop(). */
static long try_more(__u32 step, void *context)
{
	return try_masks(context, (step + 1) * MASKS_AT_ONCE);
}

static __always_inline void find_wild(struct bench *bench, const struct steer_config *config)
{
	__u32 active = config->masks, len;
	struct search search = { bench, config, bpf_map_lookup_elem(&masks, &active) };

	if (!search.list || try_masks(&search, 0))
		return;
	len = search.list->len;
	if (len > MASKS_AT_ONCE && len <= STEER_MASKS)
		bpf_loop((len - 1) / MASKS_AT_ONCE, try_more, &search, 0);
}

static __always_inline void fragment_key(const struct packet *packet, struct steer_fragment *key)
{
	key->src[0] = packet->words[0];
	key->src[1] = packet->words[1];
	key->dst[0] = packet->words[2];
	key->dst[1] = packet->words[3];
	key->tunnel = packet->words[4] >> 32;
	key->id = packet->fragment_id;
	key->proto = packet->words[5] >> 40 & 0xff;
	key->reserved = 0;
}

/* Writes the unit of a frame's datagram, and of the packet around it, if they are in pieces and the frame's piece is none of `but`. */
static __always_inline void write_fragments(const struct packet *packet, __u32 unit, __u32 but)
{
	struct steer_fragment key;

	if (packet->words[5] & STEER_FRAG_ANY && !(packet->words[5] & but)) {
		fragment_key(packet, &key);
		bpf_map_update_elem(&fragments, &key, &unit, BPF_ANY);
	}
	if (!packet->is_outer_fragment)
		return;
	key.src[0] = packet->words[6];
	key.src[1] = packet->words[7];
	key.dst[0] = packet->words[8];
	key.dst[1] = packet->words[9];
	key.tunnel = 0;
	key.id = packet->outer_id;
	key.proto = packet->outer_proto;
	key.reserved = 0;
	bpf_map_update_elem(&fragments, &key, &unit, BPF_ANY);
}

/* The later pieces will go where this frame goes. */
static __always_inline void remember_fragments(const struct packet *packet, __u32 unit)
{
	write_fragments(packet, unit, STEER_FRAG_LATER);
}

/* This frame is dropped: so are the pieces that are to come. */
static __always_inline void forget_fragments(const struct packet *packet, __u32 unit)
{
	write_fragments(packet, unit | IS_LOST, 0);
}

/* The unit of frames that no entry matches. */
static __always_inline __u32 default_unit(const struct bench *bench, const struct steer_config *config)
{
	__u32 fcf = bench->packet.words[5] >> 8 & 0xff;

	if (config->is_fcf && fcf >> 1)
		return STEER_FCF_FIRST + fcf;
	if (!config->groups)
		return NO_UNIT;
	return hash_flow(bench, config, SALT_GROUP) & (config->groups - 1);
}

/* What a flow is placed by. */
static __always_inline __u32 flow_hash(struct bench *bench, const struct steer_config *config)
{
	set_flow(bench);
	return hash_flow(bench, config, SALT_EXACT) >> 32;
}

/* Both units of a frame that is no later fragment, or whose first one was not seen, to bench->found. */
static __always_inline void classify(struct bench *bench, const struct steer_config *config)
{
	struct found *found = &bench->found;
	__u32 unit;

	set_flow(bench);
	found->priority_old = found->priority_new = 0;
	if (config->exact)
		find_exact(bench, config);
	find_wild(bench, config);
	if (anew(found->priority_old) && anew(found->priority_new))
		return;
	unit = default_unit(bench, config);
	if (!anew(found->priority_old))
		found->unit_old = unit;
	if (!anew(found->priority_new))
		found->unit_new = unit;
}

#endif
