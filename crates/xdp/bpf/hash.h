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

/* Of the first `len` words that `secrets` has one more of; `salt` tells tables apart. */
static __always_inline __u64 hash_words(const __u64 *words, int len, const __u64 *secrets, __u64 salt)
{
	__u64 a = 0, b = 0;
	int i;

#pragma unroll
	for (i = 0; i < len; i++) {
		__u32 low = (__u32)words[i], high = (__u32)(words[i] >> 32);

		a += (__u64)(__u32)(low + (__u32)secrets[i]) * (__u32)(high + (__u32)(secrets[i] >> 32));
		b += (__u64)(__u32)(low + (__u32)secrets[i + 1]) * (__u32)(high + (__u32)(secrets[i + 1] >> 32));
	}
	a ^= (b << 32 | b >> 32) + salt * 0x9e3779b97f4a7c15;
	a ^= a >> 32;
	a *= 0xd6e8feb86659fd93;
	a ^= a >> 32;
	return a;
}

#endif
