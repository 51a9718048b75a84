/* SPDX-License-Identifier: Apache-2.0
 *
 * Which entry has these words: an index of lines of eight places, each the upper half of a hash and a
 * unit, and the entries by unit. src/steer/index.rs writes it, and this reads it.
 *
 * An entry is in the line that the hash's lowest bits name or, if that one was ever full, in a second
 * one. Places are filled from the first on, so that most searches end at the first place. It is an
 * index of our own because the kernel's hash tables cost twice as much: they call a function, hash the
 * key once more, and follow a pointer.
 *
 * Entries are written before a place names them, and places in one store. Who found a place that is
 * cleared meanwhile may read an entry that is being made for somebody else: it compares that entry's
 * mask and words with the frame's, so it takes it only where it is right.
 */
#ifndef SUIRO_INDEX_H
#define SUIRO_INDEX_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "dissect.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STEER_ENTRIES);
	__type(key, __u32);
	__type(value, struct steer_line);
} lines SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STEER_ENTRIES);
	__type(key, __u32);
	__type(value, struct steer_entry);
} entries SEC(".maps");

/* Bits of the hash that name the second line. */
#define SECOND_LINE 15

/* The number of the word that is looked at as the `at`-th; both are constants in each caller. */
static __always_inline int word_of(int shape, int at)
{
	if (shape != STEER_SHAPE_IPV4)
		return at;
	return at < 2 ? 2 * at + 1 : at + 2;
}

static __always_inline int words_of(int shape)
{
	if (shape == STEER_SHAPE_ALL)
		return STEER_WORDS;
	return shape == STEER_SHAPE_FLOW ? STEER_FLOW_WORDS : STEER_IPV4_WORDS;
}

/* What a search looks for: these words of a key under a mask. */
struct wanted {
	const __u64 *words;
	const __u64 *mask;
	__u64 hash;
	__u32 id; /* of the mask */
};

static __always_inline int is_wanted(const struct steer_entry *entry, const struct wanted *wanted, const int shape)
{
	__u64 differs = entry->mask ^ wanted->id;
	int at;

#pragma unroll
	for (at = 0; at < words_of(shape); at++) {
		int word = word_of(shape, at);

		differs |= entry->words[word] ^ (wanted->words[word] & wanted->mask[word]);
	}
	return !differs;
}

/* For a place: the line has others, and was full once, so there may be another line. No unit of an entry is so small. */
#define GOES_ON 1

/* The place in a line that has the hash's upper half, to `found`; 0: none; or GOES_ON. */
static __always_inline void find_in(__u32 number, __u64 hash, __u64 *found)
{
	const struct steer_line *line = bpf_map_lookup_elem(&lines, &number);
	__u64 place = 0;
	int at;

	if (!line)
		goto out;
	for (at = 0; at < STEER_PLACES; at++) {
		place = anew(line->places[at]);
		if (!place || place >> 32 == hash >> 32)
			goto out;
	}
	place = GOES_ON;
out:
	anew(*found) = place;
}

/*
 * No two entries of a line have the same upper half, so the first that has it is the only one. `found` is in a map's memory, where the
 * verifier forgets what a place was: it need not follow each on its way through all that comes after. What is no entry's place (0, GOES_ON,
 * STEER_PLACE_LEFT) has no number below the end of map `entries`.
 */
static __always_inline const struct steer_entry *find(const struct wanted *wanted, __u32 last_line, const int shape, __u64 *found)
{
	const struct steer_entry *entry;
	__u32 at;

	find_in(wanted->hash & last_line, wanted->hash, found);
	if (anew(*found) == GOES_ON)
		find_in(wanted->hash >> SECOND_LINE & last_line, wanted->hash, found);
	at = (__u32)anew(*found) - STEER_ENTRY_FIRST;
	entry = bpf_map_lookup_elem(&entries, &at);
	return entry && is_wanted(entry, wanted, shape) ? entry : 0;
}

#endif
