/* Sixteen numbers at a time, in whatever registers the instruction set has; what the kernels of translation and of
 * training share. Included by what is compiled once for each instruction set. */
#ifndef REGARD_VECTORS_H
#define REGARD_VECTORS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define LANES 16
#define UNROLLED _Pragma("GCC unroll 8")
#define INLINE static inline __attribute__((always_inline))

/* Sixteen numbers; the compiler makes as many registers of them as the instruction set asks for. */
typedef float vector_t __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t integers_t __attribute__((vector_size(64), aligned(4), may_alias));

INLINE vector_t load(const float *x) { return *(const vector_t *)x; }
INLINE void store(float *x, vector_t v) { *(vector_t *)x = v; }
INLINE vector_t all(float x) { return x - (vector_t){0}; }
INLINE vector_t choose(integers_t mask, vector_t yes, vector_t no) {
    return (vector_t)((mask & (integers_t)yes) | (~mask & (integers_t)no));
}
/* a where it is above b, else b; so b where either is NaN. */
#if defined(__AVX512F__)
INLINE vector_t larger(vector_t a, vector_t b) { return (vector_t)_mm512_max_ps((__m512)a, (__m512)b); }
#else
INLINE vector_t larger(vector_t a, vector_t b) { return choose(a > b, a, b); }
#endif
INLINE vector_t magnitude(vector_t a) { return (vector_t)((integers_t)a & 0x7fffffff); }

/* Sums and maxima of a vector, always in the same order: halves, quarters, pairs. */
#define SWAP8(v) __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define SWAP4(v) __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define SWAP2(v) __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define SWAP1(v) __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)

INLINE float sum_of(vector_t v) {
    v += SWAP8(v);
    v += SWAP4(v);
    v += SWAP2(v);
    v += SWAP1(v);
    return v[0];
}

INLINE float largest_of(vector_t v) {
    v = larger(v, SWAP8(v));
    v = larger(v, SWAP4(v));
    v = larger(v, SWAP2(v));
    v = larger(v, SWAP1(v));
    return v[0];
}

/* The sums of four vectors, each in the order of the others. */
INLINE void sums_of(vector_t a, vector_t b, vector_t c, vector_t d, float *sums) {
#define LOW(x, y) __builtin_shufflevector(x, y, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define HIGH(x, y) __builtin_shufflevector(x, y, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
    vector_t ab = LOW(a, b) + HIGH(a, b), cd = LOW(c, d) + HIGH(c, d);
    vector_t all = __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
                   __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    all += SWAP8(all);
    all += SWAP4(all);
    memcpy(sums, &all, 4 * sizeof *sums);
}

/* Sixteen rows of sixteen numbers become its columns: halves change places, then quarters, pairs and neighbours. */
INLINE void transpose(vector_t *rows) {
#define EXCHANGE(step, first, second)                                          \
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) if (!(i & step)) { \
        vector_t one = rows[i], other = rows[i | step];                        \
        rows[i] = __builtin_shufflevector(one, other, UNWRAP first);           \
        rows[i | step] = __builtin_shufflevector(one, other, UNWRAP second);   \
    }
#define UNWRAP(...) __VA_ARGS__
    EXCHANGE(8, (0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
             (8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
    EXCHANGE(4, (0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
             (4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
    EXCHANGE(2, (0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
             (2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
    EXCHANGE(1, (0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
             (1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
#undef UNWRAP
#undef EXCHANGE
}

/* e^x for x <= 0 to a relative error of 4e-7; exactly 0 below -87, and NaN of NaN. */
#if defined(__AVX512F__)
/* 2^whole · 2^rest: the instruction set scales by a power of two itself. */
INLINE vector_t exponential(vector_t x) {
    __m512 y = _mm512_max_ps(_mm512_set1_ps(-87.0f), (__m512)x); /* of two, the second where one is NaN */
    __m512 whole = _mm512_roundscale_ps(_mm512_mul_ps(y, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT);
    __m512 rest = _mm512_fmsub_ps(y, _mm512_set1_ps(1.44269504f), whole);
    rest = _mm512_fmadd_ps(y, _mm512_set1_ps(1.92596299e-8f), rest); /* what log2(e) has beyond 24 bits */
    __m512 p = _mm512_set1_ps(1.3390863365e-3f);
    p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(9.6760319184e-3f));
    p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(5.5503571142e-2f));
    p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(2.4022107485e-1f));
    p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(6.9314718803e-1f));
    p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(1.0f));
    __mmask16 counts = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-87.0f), _CMP_NLT_UQ);
    return (vector_t)_mm512_maskz_scalef_ps(counts, p, whole);
}
#else
INLINE vector_t exponential(vector_t x) {
    const vector_t magic = all(12582912.0f); /* 1.5 · 2^23: adding it rounds to a whole number */
    integers_t vanishes = x < all(-87.0f);
    vector_t bounded = choose(vanishes, all(-87.0f), x);
    vector_t whole = (bounded * 1.44269504f + magic) - magic;
    vector_t rest = bounded - whole * 0.693359375f;
    rest = rest + whole * 2.12194440e-4f;
    vector_t p = all(1.9875691500e-4f);
    p = p * rest + 1.3981999507e-3f;
    p = p * rest + 8.3334519073e-3f;
    p = p * rest + 4.1665795894e-2f;
    p = p * rest + 1.6666665459e-1f;
    p = p * rest + 5.0000001201e-1f;
    p = p * rest * rest + rest + 1.0f;
    integers_t exponent = __builtin_convertvector(whole, integers_t) << 23;
    vector_t found = (vector_t)((integers_t)p + exponent);
    integers_t is_nan = x != x;
    return choose(is_nan, x, choose(vanishes, all(0.0f), found));
}
#endif

#endif
