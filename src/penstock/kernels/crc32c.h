/* CRC-32C (Castagnoli) that can be called without the interpreter, so that header, checksum and records of a batch are
 * checked in one kernel call.
 *
 * Three implementations, chosen once by what the processor has:
 *   folding    AVX-512 carry-less multiplication, 256 bytes a step, for long inputs
 *   lanes      the SSE4.2 crc32 instruction on three interleaved lanes (it has a latency of three and a throughput of one)
 *   tables     eight table look-ups for eight bytes, everywhere else
 * All of them work on the register, the value before the final inversion.
 */
#ifndef PENSTOCK_CRC32C_H
#define PENSTOCK_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CRC32C_POLYNOMIAL 0x82f63b78u /* bit-reflected */
#define CRC32C_LANE_LONG 2048u
#define CRC32C_LANE_SHORT 256u

#if defined(__x86_64__) && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 9))
#define CRC32C_X86 1
#include <immintrin.h>
#else
#define CRC32C_X86 0
#endif

typedef uint32_t (*crc32c_function)(uint32_t, const uint8_t *, size_t);

static uint32_t crc32c_table[8][256];

static uint64_t crc32c_load64(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

static uint32_t crc32c_by_tables(uint32_t crc, const uint8_t *at, size_t size) {
    while (size >= 8) {
        /* Byte by byte, so that it is right on big-endian machines too. */
        uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = crc32c_table[7][low & 0xff] ^ crc32c_table[6][(low >> 8) & 0xff] ^ crc32c_table[5][(low >> 16) & 0xff] ^
              crc32c_table[4][low >> 24] ^ crc32c_table[3][at[4]] ^ crc32c_table[2][at[5]] ^ crc32c_table[1][at[6]] ^
              crc32c_table[0][at[7]];
        at += 8;
        size -= 8;
    }
    while (size--)
        crc = crc32c_table[0][(crc ^ *at++) & 0xff] ^ (crc >> 8);
    return crc;
}

static crc32c_function crc32c_register = crc32c_by_tables;

#if CRC32C_X86

/* What a register becomes after LANE zero bytes: linear, so four look-ups by byte. It joins one lane to the next. */
static uint32_t crc32c_past_long[4][256], crc32c_past_short[4][256];
/* x^(2048+32) and x^(2048-32) modulo the polynomial, as carry-less multiplication wants them. */
static uint64_t crc32c_fold_low, crc32c_fold_high;

static inline uint32_t crc32c_past(const uint32_t past[4][256], uint32_t crc) {
    return past[0][crc & 0xff] ^ past[1][(crc >> 8) & 0xff] ^ past[2][(crc >> 16) & 0xff] ^ past[3][crc >> 24];
}

__attribute__((target("sse4.2"))) static uint32_t crc32c_by_lanes(uint32_t crc, const uint8_t *at, size_t size) {
    uint64_t first = crc, second, third;
    const uint8_t *end;

    while (size >= 3 * CRC32C_LANE_LONG) {
        second = third = 0;
        for (end = at + CRC32C_LANE_LONG; at < end; at += 8) {
            first = _mm_crc32_u64(first, crc32c_load64(at));
            second = _mm_crc32_u64(second, crc32c_load64(at + CRC32C_LANE_LONG));
            third = _mm_crc32_u64(third, crc32c_load64(at + 2 * CRC32C_LANE_LONG));
        }
        first = crc32c_past(crc32c_past_long, (uint32_t)first) ^ second;
        first = crc32c_past(crc32c_past_long, (uint32_t)first) ^ third;
        at += 2 * CRC32C_LANE_LONG;
        size -= 3 * CRC32C_LANE_LONG;
    }
    while (size >= 3 * CRC32C_LANE_SHORT) {
        second = third = 0;
        for (end = at + CRC32C_LANE_SHORT; at < end; at += 8) {
            first = _mm_crc32_u64(first, crc32c_load64(at));
            second = _mm_crc32_u64(second, crc32c_load64(at + CRC32C_LANE_SHORT));
            third = _mm_crc32_u64(third, crc32c_load64(at + 2 * CRC32C_LANE_SHORT));
        }
        first = crc32c_past(crc32c_past_short, (uint32_t)first) ^ second;
        first = crc32c_past(crc32c_past_short, (uint32_t)first) ^ third;
        at += 2 * CRC32C_LANE_SHORT;
        size -= 3 * CRC32C_LANE_SHORT;
    }
    for (; size >= 8; at += 8, size -= 8)
        first = _mm_crc32_u64(first, crc32c_load64(at));
    for (; size; at++, size--)
        first = _mm_crc32_u8((uint32_t)first, *at);
    return (uint32_t)first;
}

/* Replaces 2048 bits by an equivalent 2048 bits that are closer to the end, until one block is left, whose CRC is the
 * CRC of all. */
__attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2"))) static uint32_t
crc32c_by_folding(uint32_t crc, const uint8_t *at, size_t size) {
    __m512i block[4], keys;
    uint8_t left[256];
    size_t odd;
    int lane;

    if (size < 1024)
        return crc32c_by_lanes(crc, at, size);
    /* A load that straddles two cache lines costs two. */
    odd = (64 - ((uintptr_t)at & 63)) & 63;
    crc = crc32c_by_lanes(crc, at, odd);
    at += odd;
    size -= odd;
    keys = _mm512_broadcast_i32x4(_mm_set_epi64x((long long)crc32c_fold_high, (long long)crc32c_fold_low));
    for (lane = 0; lane < 4; lane++)
        block[lane] = _mm512_loadu_si512((const void *)(at + 64 * lane));
    block[0] = _mm512_xor_si512(block[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    for (at += 256, size -= 256; size >= 256; at += 256, size -= 256)
        for (lane = 0; lane < 4; lane++)
            block[lane] = _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(block[lane], keys, 0x00),
                                                    _mm512_clmulepi64_epi128(block[lane], keys, 0x11),
                                                    _mm512_loadu_si512((const void *)(at + 64 * lane)), 0x96);
    for (lane = 0; lane < 4; lane++)
        _mm512_storeu_si512((void *)(left + 64 * lane), block[lane]);
    return crc32c_by_lanes(crc32c_by_lanes(0, left, 256), at, size);
}

static void crc32c_fill_past(uint32_t past[4][256], size_t lane_bytes) {
    static const uint8_t zeros[CRC32C_LANE_LONG];
    uint32_t bit_past[32];
    int bit, byte, value;

    for (bit = 0; bit < 32; bit++)
        bit_past[bit] = crc32c_by_tables(1u << bit, zeros, lane_bytes);
    for (byte = 0; byte < 4; byte++)
        for (value = 0; value < 256; value++) {
            past[byte][value] = 0;
            for (bit = 0; bit < 8; bit++)
                if (value >> bit & 1)
                    past[byte][value] ^= bit_past[8 * byte + bit];
        }
}

/* x^power modulo the polynomial, reflected and shifted by the one bit that a reflected product loses. */
static uint64_t crc32c_fold_key(int power) {
    uint32_t rest = 0x80000000u; /* x^0 */
    while (power--)
        rest = (rest >> 1) ^ (rest & 1 ? CRC32C_POLYNOMIAL : 0);
    return (uint64_t)rest << 1;
}

#endif

/* Must be called once before the first use. Returns the name of what was chosen. */
static const char *crc32c_prepare(int fastest_allowed) {
    uint32_t value, crc;
    int step;

    for (value = 0; value < 256; value++) {
        for (crc = value, step = 0; step < 8; step++)
            crc = (crc >> 1) ^ (crc & 1 ? CRC32C_POLYNOMIAL : 0);
        crc32c_table[0][value] = crc;
    }
    for (value = 0; value < 256; value++)
        for (step = 1; step < 8; step++) {
            crc = crc32c_table[step - 1][value];
            crc32c_table[step][value] = crc32c_table[0][crc & 0xff] ^ (crc >> 8);
        }
    crc32c_register = crc32c_by_tables;
#if CRC32C_X86
    __builtin_cpu_init();
    if (fastest_allowed < 1 || !__builtin_cpu_supports("sse4.2"))
        return "tables";
    crc32c_fill_past(crc32c_past_long, CRC32C_LANE_LONG);
    crc32c_fill_past(crc32c_past_short, CRC32C_LANE_SHORT);
    crc32c_register = crc32c_by_lanes;
    if (fastest_allowed < 2 || !__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("vpclmulqdq"))
        return "lanes";
    crc32c_fold_low = crc32c_fold_key(2048 + 32);
    crc32c_fold_high = crc32c_fold_key(2048 - 32);
    crc32c_register = crc32c_by_folding;
    return "folding";
#else
    (void)fastest_allowed;
    return "tables";
#endif
}

static inline uint32_t crc32c_continue(uint32_t crc, const uint8_t *at, size_t size) {
    return ~crc32c_register(~crc, at, size);
}

#endif
