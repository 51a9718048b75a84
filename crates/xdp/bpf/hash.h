/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash of a key, for tables and for flow groups.
 *
 * Two NH sums (Black et al., UMAC, CRYPTO 1999) over secrets that are drawn when the program is
 * attached: whoever does not know them makes two given keys collide with a probability of at most
 * 2^-32 for each sum, whatever the keys are. Products do not wait for each other, which a chain of
 * multiplications does. src/steer/hash.rs is the same for user space.
 */
#ifndef SUIRO_HASH_H
#define SUIRO_HASH_H

#include "abi.h"

struct sums {
	__u64 a;
	__u64 b;
};

/* One more word; `secrets` has one more than there are words. */
static __always_inline void hash_word(struct sums *sums, __u64 word, const __u64 *secrets, int at)
{
	__u32 low = (__u32)word, high = (__u32)(word >> 32);

	sums->a += (__u64)(__u32)(low + (__u32)secrets[at]) * (__u32)(high + (__u32)(secrets[at] >> 32));
	sums->b += (__u64)(__u32)(low + (__u32)secrets[at + 1]) * (__u32)(high + (__u32)(secrets[at + 1] >> 32));
}

/* `salt` tells tables apart. */
static __always_inline __u64 hash_end(const struct sums *sums, __u64 salt)
{
	__u64 hash = sums->a;

	hash ^= (sums->b << 32 | sums->b >> 32) + salt * 0x9e3779b97f4a7c15;
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93;
	return hash ^ hash >> 32;
}

static __always_inline __u64 hash_words(const __u64 *words, int len, const __u64 *secrets, __u64 salt)
{
	struct sums sums = {};
	int at;

#pragma unroll
	for (at = 0; at < len; at++)
		hash_word(&sums, words[at], secrets, at);
	return hash_end(&sums, salt);
}

#endif
