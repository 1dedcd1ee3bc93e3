/* SipHash-2-4 with 128 bits of output, after the paper of Aumasson and Bernstein: the hash of keys in the compaction map.
 * Its secret is fixed, since the map lives for one pass; what counts is that different keys do not meet by chance. */
#ifndef PENSTOCK_SIPHASH_H
#define PENSTOCK_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_LEFT(word, bits) (((word) << (bits)) | ((word) >> (64 - (bits))))

static inline void siphash_rounds(uint64_t v[4], int rounds) {
    while (rounds--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = SIPHASH_LEFT(v[1], 13) ^ v[0];
        v[3] = SIPHASH_LEFT(v[3], 16) ^ v[2];
        v[0] = SIPHASH_LEFT(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = SIPHASH_LEFT(v[1], 17) ^ v[2];
        v[3] = SIPHASH_LEFT(v[3], 21) ^ v[0];
        v[2] = SIPHASH_LEFT(v[2], 32);
    }
}

static void siphash128(const uint8_t *at, size_t size, uint64_t secret_low, uint64_t secret_high, uint64_t out[2]) {
    uint64_t v[4] = {
        secret_low ^ 0x736f6d6570736575ULL,
        secret_high ^ 0x646f72616e646f6dULL ^ 0xee,
        secret_low ^ 0x6c7967656e657261ULL,
        secret_high ^ 0x7465646279746573ULL,
    };
    uint64_t word = 0;
    size_t index;

    for (index = 0; index < size; index++) {
        word |= (uint64_t)at[index] << (8 * (index & 7));
        if ((index & 7) == 7) {
            v[3] ^= word;
            siphash_rounds(v, 2);
            v[0] ^= word;
            word = 0;
        }
    }
    word |= (uint64_t)size << 56;
    v[3] ^= word;
    siphash_rounds(v, 2);
    v[0] ^= word;
    v[2] ^= 0xee;
    siphash_rounds(v, 4);
    out[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    siphash_rounds(v, 4);
    out[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
