/* Compiled once for each instruction set, with KERNELS as the name of the table; see kernels.h. */
#include "kernels.h"

#include "amx.h"
#include "vectors.h"

/* Quantising */

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || !defined(__AVX2__)
typedef int8_t quantised_t;
typedef int8_t quantised_vector_t __attribute__((vector_size(16), aligned(1), may_alias));
#else
typedef int16_t quantised_t; /* what pmaddwd takes */
typedef int16_t quantised_vector_t __attribute__((vector_size(32), aligned(2), may_alias));
#endif

INLINE float quantise_row(const float *x, int width, quantised_t *q, int32_t *sum) {
    vector_t largest = all(0.0f), poison = all(0.0f);
    int body = width / LANES * LANES;
    for (int i = 0; i < body; i += LANES) {
        vector_t v = load(x + i);
        largest = larger(magnitude(v), largest);
        poison += v * 0.0f; /* NaN where a number is not finite */
    }
    float most = largest_of(largest), spoiled = sum_of(poison);
    for (int i = body; i < width; i++) {
        float m = fabsf(x[i]);
        most = m > most ? m : most;
        spoiled += x[i] * 0.0f;
    }
    *sum = 0;
    for (int i = width; i < ROUND_UP(width, GROUP); i++) q[i] = 0;
    if (spoiled != spoiled || most < 1e-30f) {
        memset(q, 0, sizeof(quantised_t) * (size_t)width);
        return spoiled != spoiled ? spoiled : 0.0f;
    }
    const float magic = 12582912.0f, inverse = 127.0f / most;
    integers_t sums = {0};
    for (int i = 0; i < body; i += LANES) {
        vector_t rounded = (load(x + i) * inverse + magic) - magic;
        integers_t whole = __builtin_convertvector(rounded, integers_t);
        sums += whole;
        *(quantised_vector_t *)(q + i) = __builtin_convertvector(whole, quantised_vector_t);
    }
    sums += SWAP8(sums);
    sums += SWAP4(sums);
    sums += SWAP2(sums);
    sums += SWAP1(sums);
    int32_t total = sums[0];
    for (int i = body; i < width; i++) {
        q[i] = (quantised_t)((x[i] * inverse + magic) - magic);
        total += q[i];
    }
    *sum = 128 * total;
    return most / 127.0f;
}

static void quantise(const float *x, int rows, int width, int stride, void *q, float *scales, int32_t *sums) {
    size_t quantised = (size_t)ROUND_UP(width, GROUP);
    for (int row = 0; row < rows; row++)
        scales[row] = quantise_row(x + (size_t)row * (size_t)stride, width, (quantised_t *)q + row * quantised,
                                   sums + row);
}

/* Products. A tile is some rows by some outputs of a panel; whatever the tile, a number's sum has one order. */

INLINE void finish(float *out, vector_t value, int how) {
    if (how & ADD) value += load(out);
    if (how & RELU) value = larger(value, all(0.0f));
    store(out, value);
}

INLINE void finish_int8(float *out, integers_t sum, int32_t offset, float scale, const float *scales,
                        const float *bias, int how) {
    vector_t value = __builtin_convertvector(sum - offset, vector_t) * (load(scales) * scale);
    finish(out, value + load(bias), how);
}

#if defined(__AVX512VNNI__)
#define INT8_ROWS 6
#define INT8_OUTPUTS 64
/* _mm512_dpbusd_epi32, which gcc 12 surrounds with copies of the sums. */
#define ADD_PRODUCTS(sums, weights, four) __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(weights), "v"(four))
INLINE void int8_tile(const quantised_t *q, size_t q_stride, const uint8_t *w, int groups, int rows, integers_t *sums) {
    __m512i acc[INT8_ROWS][4];
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int j = 0; j < 4; j++) acc[r][j] = _mm512_setzero_si512();
    for (int g = 0; g < groups; g++) {
        __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + 64), w2 = _mm512_loadu_si512(w + 128),
                w3 = _mm512_loadu_si512(w + 192);
        w += 256;
        UNROLLED for (int r = 0; r < rows; r++) {
            int32_t own;
            memcpy(&own, q + (size_t)r * q_stride + 4 * (size_t)g, 4);
            __m512i four = _mm512_set1_epi32(own);
            ADD_PRODUCTS(acc[r][0], w0, four);
            ADD_PRODUCTS(acc[r][1], w1, four);
            ADD_PRODUCTS(acc[r][2], w2, four);
            ADD_PRODUCTS(acc[r][3], w3, four);
        }
    }
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int j = 0; j < 4; j++) sums[4 * r + j] = (integers_t)acc[r][j];
}
#elif defined(__AVXVNNI__)
#define INT8_ROWS 5
#define INT8_OUTPUTS 16
INLINE void int8_tile(const quantised_t *q, size_t q_stride, const uint8_t *w, int groups, int rows, integers_t *sums) {
    __m256i acc[INT8_ROWS][2];
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int j = 0; j < 2; j++) acc[r][j] = _mm256_setzero_si256();
    for (int g = 0; g < groups; g++) {
        __m256i w0 = _mm256_loadu_si256((const __m256i *)w), w1 = _mm256_loadu_si256((const __m256i *)(w + 32));
        w += 4 * PANEL;
        UNROLLED for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, q + (size_t)r * q_stride + 4 * (size_t)g, 4);
            __m256i a = _mm256_set1_epi32(four);
            acc[r][0] = _mm256_dpbusd_avx_epi32(acc[r][0], w0, a);
            acc[r][1] = _mm256_dpbusd_avx_epi32(acc[r][1], w1, a);
        }
    }
    UNROLLED for (int r = 0; r < rows; r++) {
        memcpy(&sums[r], &acc[r][0], 32);
        memcpy((char *)&sums[r] + 32, &acc[r][1], 32);
    }
}
#elif defined(__AVX2__)
#define INT8_ROWS 3
#define INT8_OUTPUTS 16
/* Weights 0 … 255 times activations -127 … 127 as 16-bit numbers: pmaddwd adds two products in 32 bits, exactly. */
INLINE void int8_tile(const quantised_t *q, size_t q_stride, const uint8_t *w, int groups, int rows, integers_t *sums) {
    __m256i acc[INT8_ROWS][4];
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int j = 0; j < 4; j++) acc[r][j] = _mm256_setzero_si256();
    for (int g = 0; g < groups; g++) {
        __m256i a[INT8_ROWS];
        UNROLLED for (int r = 0; r < rows; r++) {
            int64_t four;
            memcpy(&four, q + (size_t)r * q_stride + 4 * (size_t)g, 8);
            a[r] = _mm256_set1_epi64x(four);
        }
        UNROLLED for (int j = 0; j < 4; j++) {
            __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(w + 16 * j)));
            UNROLLED for (int r = 0; r < rows; r++) acc[r][j] = _mm256_add_epi32(acc[r][j], _mm256_madd_epi16(wide, a[r]));
        }
        w += 4 * PANEL;
    }
    /* Two neighbouring numbers are the halves of an output's sum. */
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int j = 0; j < 2; j++) {
            __m256i pairs = _mm256_hadd_epi32(acc[r][2 * j], acc[r][2 * j + 1]);
            pairs = _mm256_permute4x64_epi64(pairs, 0xd8);
            memcpy((char *)&sums[r] + 32 * j, &pairs, 32);
        }
}
#else
#define INT8_ROWS 1
#define INT8_OUTPUTS 16
INLINE void int8_tile(const quantised_t *q, size_t q_stride, const uint8_t *w, int groups, int rows, integers_t *sums) {
    (void)q_stride, (void)rows;
    int32_t acc[INT8_OUTPUTS] = {0};
    for (int g = 0; g < groups; g++, w += 4 * PANEL)
        for (int o = 0; o < INT8_OUTPUTS; o++)
            for (int i = 0; i < GROUP; i++) acc[o] += (int32_t)w[GROUP * o + i] * (int32_t)q[GROUP * g + i];
    memcpy(sums, acc, sizeof acc);
}
#endif

INLINE void multiply_int8_as(const void *quantised, const float *scales, const int32_t *sums, int rows,
                             const rg_matrix *matrix, int first, int last, float *out, int stride, int how) {
    size_t q_stride = (size_t)ROUND_UP(matrix->inputs, GROUP), panel_size = q_stride * PANEL;
    int groups = (int)q_stride / GROUP;
    const quantised_t *q = quantised;
    for (int panel = first; panel < last; panel++) {
        const uint8_t *weights = (const uint8_t *)matrix->weights + (size_t)panel * panel_size;
        for (int row = 0; row < rows; row += INT8_ROWS) {
            int some = rows - row < INT8_ROWS ? rows - row : INT8_ROWS;
            for (int part = 0; part < PANEL; part += INT8_OUTPUTS) {
                integers_t found[INT8_ROWS * INT8_OUTPUTS / LANES];
                const quantised_t *from = q + (size_t)row * q_stride;
                const uint8_t *w = weights + (size_t)part * GROUP;
#define CASE(n) \
    case n: int8_tile(from, q_stride, w, groups, n, found); break
                switch (some) {
                    CASE(1);
#if INT8_ROWS > 1
                    CASE(2);
                    CASE(3);
#endif
#if INT8_ROWS > 3
                    CASE(4);
                    CASE(5);
#endif
#if INT8_ROWS > 5
                    CASE(6);
#endif
                }
#undef CASE
                for (int r = 0; r < some; r++)
                    for (int j = 0; j < INT8_OUTPUTS / LANES; j++) {
                        size_t o = (size_t)(panel * PANEL + part + j * LANES);
                        float *to = out + (size_t)(row + r) * (size_t)stride + (o - (size_t)first * PANEL);
                        finish_int8(to, found[r * (INT8_OUTPUTS / LANES) + j], sums[row + r], scales[row + r],
                                    matrix->scales + o, matrix->bias + o, how);
                    }
            }
        }
    }
}

/* What becomes of a product is known to the compiler. */
#define AS(how, product, ...)                                      \
    switch (how) {                                                 \
        case PLAIN: product(__VA_ARGS__, PLAIN); break;            \
        case RELU: product(__VA_ARGS__, RELU); break;              \
        case ADD: product(__VA_ARGS__, ADD); break;                \
    }

#if defined(__AMX_INT8__)
/* Two tiles of rows, or one, by two of outputs; sums of integers are exact, so that the bits are those of int8_tile. */
INLINE void int8_tiles(const quantised_t *q, size_t q_stride, const uint8_t *w, int tiles, int is_pair, int32_t *sums) {
    enum { APART = PANEL * GROUP, BYTES = 2 * LANES * sizeof *sums };
    CLEAR_TILE(0);
    CLEAR_TILE(1);
    CLEAR_TILE(2);
    CLEAR_TILE(3);
    for (int k = 0; k < tiles; k++, q += TILE_BYTES, w += TILE_LINES * APART) {
        LOAD_TILE(4, q, q_stride);
        LOAD_TILE(6, w, APART);
        LOAD_TILE(7, w + TILE_BYTES, APART);
        ADD_INT8_TILES(0, 4, 6);
        ADD_INT8_TILES(1, 4, 7);
        if (!is_pair) continue;
        LOAD_TILE(5, q + TILE_LINES * q_stride, q_stride);
        ADD_INT8_TILES(2, 5, 6);
        ADD_INT8_TILES(3, 5, 7);
    }
    STORE_TILE(0, sums, BYTES);
    STORE_TILE(1, sums + LANES, BYTES);
    if (!is_pair) return;
    STORE_TILE(2, sums + TILE_LINES * 2 * LANES, BYTES);
    STORE_TILE(3, sums + TILE_LINES * 2 * LANES + LANES, BYTES);
}

/* As many rows as fill tiles, of a matrix whose inputs do; gives their number. The others are left. */
INLINE int multiply_tiles(const quantised_t *q, const float *scales, const int32_t *sums, int rows,
                          const rg_matrix *matrix, int first, int last, float *out, int stride, int how) {
    int32_t found[4 * LANES * TILE_LINES] __attribute__((aligned(TILE_BYTES)));
    size_t inputs = (size_t)matrix->inputs;
    int done = rows / TILE_LINES * TILE_LINES;
    if (!done || inputs % TILE_BYTES) return 0;
    configure_tiles();
    for (int panel = first; panel < last; panel++)
        for (int part = 0; part < PANEL; part += 2 * LANES) {
            const uint8_t *w = (const uint8_t *)matrix->weights + ((size_t)panel * inputs * PANEL + (size_t)part * GROUP);
            size_t o = (size_t)(panel * PANEL + part);
            for (int row = 0, some; row < done; row += some) {
                some = done - row < 2 * TILE_LINES ? TILE_LINES : 2 * TILE_LINES;
                int8_tiles(q + (size_t)row * inputs, inputs, w, (int)(inputs / TILE_BYTES), some > TILE_LINES, found);
                for (int r = 0; r < some; r++)
                    for (int j = 0; j < 2; j++)
                        finish_int8(out + (size_t)(row + r) * (size_t)stride + (o - (size_t)first * PANEL) + j * LANES,
                                    *(const integers_t *)(found + (2 * r + j) * LANES), sums[row + r], scales[row + r],
                                    matrix->scales + o + j * LANES, matrix->bias + o + j * LANES, how);
            }
        }
    release_tiles();
    return done;
}
#else
INLINE int multiply_tiles(const quantised_t *q, const float *scales, const int32_t *sums, int rows,
                          const rg_matrix *matrix, int first, int last, float *out, int stride, int how) {
    (void)q, (void)scales, (void)sums, (void)rows, (void)matrix, (void)first, (void)last, (void)out, (void)stride;
    (void)how;
    return 0;
}
#endif

INLINE void multiply_rows_as(const quantised_t *q, const float *scales, const int32_t *sums, int rows,
                             const rg_matrix *matrix, int first, int last, float *out, int stride, int how) {
    int done = multiply_tiles(q, scales, sums, rows, matrix, first, last, out, stride, how);
    q += (size_t)done * (size_t)ROUND_UP(matrix->inputs, GROUP), out += (size_t)done * (size_t)stride;
    multiply_int8_as(q, scales + done, sums + done, rows - done, matrix, first, last, out, stride, how);
}

static void multiply_int8(const void *q, const float *scales, const int32_t *sums, int rows, const rg_matrix *matrix,
                          int first, int last, float *out, int stride, int how) {
    AS(how, multiply_rows_as, q, scales, sums, rows, matrix, first, last, out, stride)
}

#if defined(__AVX512F__)
#define FP32_ROWS 6
#define FP32_OUTPUTS 64
INLINE void fp32_tile(const float *x, size_t stride, const float *w, int inputs, int rows, vector_t *sums) {
    __m512 acc[FP32_ROWS][4];
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int j = 0; j < 4; j++) acc[r][j] = _mm512_setzero_ps();
    for (int i = 0; i < inputs; i++, w += PANEL) {
        __m512 w0 = _mm512_loadu_ps(w), w1 = _mm512_loadu_ps(w + 16), w2 = _mm512_loadu_ps(w + 32),
               w3 = _mm512_loadu_ps(w + 48);
        UNROLLED for (int r = 0; r < rows; r++) {
            __m512 a = _mm512_set1_ps(x[(size_t)r * stride + (size_t)i]);
            acc[r][0] = _mm512_fmadd_ps(a, w0, acc[r][0]);
            acc[r][1] = _mm512_fmadd_ps(a, w1, acc[r][1]);
            acc[r][2] = _mm512_fmadd_ps(a, w2, acc[r][2]);
            acc[r][3] = _mm512_fmadd_ps(a, w3, acc[r][3]);
        }
    }
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int j = 0; j < 4; j++) sums[4 * r + j] = (vector_t)acc[r][j];
}
#elif defined(__AVX2__)
#define FP32_ROWS 6
#define FP32_OUTPUTS 16
INLINE void fp32_tile(const float *x, size_t stride, const float *w, int inputs, int rows, vector_t *sums) {
    __m256 acc[FP32_ROWS][2];
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int j = 0; j < 2; j++) acc[r][j] = _mm256_setzero_ps();
    for (int i = 0; i < inputs; i++, w += PANEL) {
        __m256 w0 = _mm256_loadu_ps(w), w1 = _mm256_loadu_ps(w + 8);
        UNROLLED for (int r = 0; r < rows; r++) {
            __m256 a = _mm256_set1_ps(x[(size_t)r * stride + (size_t)i]);
            acc[r][0] = _mm256_fmadd_ps(a, w0, acc[r][0]);
            acc[r][1] = _mm256_fmadd_ps(a, w1, acc[r][1]);
        }
    }
    UNROLLED for (int r = 0; r < rows; r++) {
        memcpy(&sums[r], &acc[r][0], 32);
        memcpy((char *)&sums[r] + 32, &acc[r][1], 32);
    }
}
#else
#define FP32_ROWS 1
#define FP32_OUTPUTS 16
INLINE void fp32_tile(const float *x, size_t stride, const float *w, int inputs, int rows, vector_t *sums) {
    (void)stride, (void)rows;
    vector_t acc = all(0.0f);
    for (int i = 0; i < inputs; i++, w += PANEL) acc += load(w) * x[i];
    sums[0] = acc;
}
#endif

INLINE void multiply_fp32_as(const float *x, int x_stride, int rows, const rg_matrix *matrix, int first, int last,
                             float *out, int stride, int how) {
    size_t panel_size = (size_t)matrix->inputs * PANEL;
    for (int panel = first; panel < last; panel++) {
        const float *weights = (const float *)matrix->weights + (size_t)panel * panel_size;
        for (int row = 0; row < rows; row += FP32_ROWS) {
            int some = rows - row < FP32_ROWS ? rows - row : FP32_ROWS;
            for (int part = 0; part < PANEL; part += FP32_OUTPUTS) {
                vector_t found[FP32_ROWS * FP32_OUTPUTS / LANES];
                const float *from = x + (size_t)row * (size_t)x_stride, *w = weights + part;
#define CASE(n) \
    case n: fp32_tile(from, (size_t)x_stride, w, matrix->inputs, n, found); break
                switch (some) {
                    CASE(1);
#if FP32_ROWS > 1
                    CASE(2);
                    CASE(3);
                    CASE(4);
                    CASE(5);
                    CASE(6);
#endif
                }
#undef CASE
                for (int r = 0; r < some; r++)
                    for (int j = 0; j < FP32_OUTPUTS / LANES; j++) {
                        size_t o = (size_t)(panel * PANEL + part + j * LANES);
                        float *to = out + (size_t)(row + r) * (size_t)stride + (o - (size_t)first * PANEL);
                        finish(to, found[r * (FP32_OUTPUTS / LANES) + j] + load(matrix->bias + o), how);
                    }
            }
        }
    }
}

static void multiply_fp32(const float *x, int x_stride, int rows, const rg_matrix *matrix, int first, int last,
                          float *out, int stride, int how) {
    AS(how, multiply_fp32_as, x, x_stride, rows, matrix, first, last, out, stride)
}

/* The rest of a layer */

static void norm(const float *x, float *out, int width, const rg_norm *norm, float epsilon) {
    int body = width / LANES * LANES;
    vector_t sums = all(0.0f);
    float tail = 0.0f;
    for (int i = 0; i < body; i += LANES) sums += load(x + i);
    for (int i = body; i < width; i++) tail += x[i];
    float mean = (sum_of(sums) + tail) / (float)width;
    vector_t squares = all(0.0f);
    tail = 0.0f;
    for (int i = 0; i < body; i += LANES) {
        vector_t d = load(x + i) - mean;
        squares += d * d;
    }
    for (int i = body; i < width; i++) tail += (x[i] - mean) * (x[i] - mean);
    float inverse = 1.0f / sqrtf((sum_of(squares) + tail) / (float)width + epsilon);
    for (int i = 0; i < body; i += LANES)
        store(out + i, (load(x + i) - mean) * inverse * load(norm->gain + i) + load(norm->bias + i));
    for (int i = body; i < width; i++) out[i] = (x[i] - mean) * inverse * norm->gain[i] + norm->bias[i];
}

/* The scores of four positions. */
INLINE void four_scores(const float *query, const float *const *keys, int first, int width, float scale, float *scores) {
    vector_t sums[4] = {all(0.0f), all(0.0f), all(0.0f), all(0.0f)};
    int body = width / LANES * LANES;
    for (int i = 0; i < body; i += LANES) {
        vector_t q = load(query + i);
        for (int at = 0; at < 4; at++) sums[at] += q * load(keys[at] + first + i);
    }
    sums_of(sums[0], sums[1], sums[2], sums[3], scores);
    for (int at = 0; at < 4; at++) {
        for (int i = body; i < width; i++) scores[at] += query[i] * keys[at][first + i];
        scores[at] *= scale;
    }
}

/* Scores to weights, in place; there are `room` of them, a multiple of a vector, of which `count` are real. */
INLINE void softmax(float *scores, int count, int room) {
    for (int at = count; at < room; at++) scores[at] = -INFINITY;
    vector_t most = all(-INFINITY), sums = all(0.0f);
    for (int at = 0; at < room; at += LANES) most = larger(load(scores + at), most);
    float reference = count ? largest_of(most) : 0.0f;
    for (int at = 0; at < room; at += LANES) {
        vector_t e = exponential(load(scores + at) - reference);
        store(scores + at, e);
        sums += e;
    }
    float inverse = count ? 1.0f / sum_of(sums) : 0.0f;
    for (int at = 0; at < room; at += LANES) store(scores + at, load(scores + at) * inverse);
}

/* One head's values times their weights; values[at] are those of a position, `first` numbers on this head's. */
INLINE void weigh(const float *const *values, int first, const float *weights, int count, int width, float *out) {
    int i = 0;
    for (; i + 2 * LANES <= width; i += 2 * LANES) {
        vector_t one = all(0.0f), two = all(0.0f);
        for (int at = 0; at < count; at++) {
            one += load(values[at] + first + i) * weights[at];
            two += load(values[at] + first + i + LANES) * weights[at];
        }
        store(out + i, one);
        store(out + i + LANES, two);
    }
    for (; i + LANES <= width; i += LANES) {
        vector_t one = all(0.0f);
        for (int at = 0; at < count; at++) one += load(values[at] + first + i) * weights[at];
        store(out + i, one);
    }
    for (; i < width; i++) {
        float one = 0.0f;
        for (int at = 0; at < count; at++) one += values[at][first + i] * weights[at];
        out[i] = one;
    }
}

static void attend(const float *query, const float *const *keys, int values, int count, const rg_shape *shape,
                   float *weights, float *out) {
    int room = ROUND_UP(count, LANES), width = shape->key_width;
    float scale = 1.0f / sqrtf((float)width);
    for (int at = 0; at < count; at += 4) {
        const float *four[4];
        for (int i = 0; i < 4; i++) four[i] = keys[at + i < count ? at + i : count - 1];
        for (int head = 0; head < shape->heads; head++)
            four_scores(query + head * width, four, head * width, width, scale,
                        weights + (size_t)head * (size_t)room + at);
    }
    for (int head = 0; head < shape->heads; head++) {
        float *own = weights + (size_t)head * (size_t)room;
        softmax(own, count, room);
        weigh(keys, values + head * shape->value_width, own, count, shape->value_width,
              out + head * shape->value_width);
    }
}

/* The same over a source, whose keys lie by head and feature, so that sixteen positions are a vector. Heads go some at a
 * time: a sum waits for the product before it, and the sums of several heads wait together. */
INLINE void source_scores(int heads, const float *query, const float *keys, int room, int width, float scale,
                          float *scores) {
    size_t head_size = (size_t)width * (size_t)room;
    for (int at = 0; at < room; at += LANES) {
        vector_t even[4], odd[4];
        UNROLLED for (int h = 0; h < heads; h++) even[h] = odd[h] = all(0.0f);
        int i = 0;
        for (; i + 2 <= width; i += 2) {
            const float *one = keys + (size_t)i * (size_t)room + at, *two = one + room;
            UNROLLED for (int h = 0; h < heads; h++) {
                even[h] += load(one + (size_t)h * head_size) * query[h * width + i];
                odd[h] += load(two + (size_t)h * head_size) * query[h * width + i + 1];
            }
        }
        if (i < width)
            UNROLLED for (int h = 0; h < heads; h++)
                even[h] += load(keys + (size_t)h * head_size + (size_t)i * (size_t)room + at) * query[h * width + i];
        UNROLLED for (int h = 0; h < heads; h++) store(scores + (size_t)h * (size_t)room + at, (even[h] + odd[h]) * scale);
    }
}

/* The weights of one vector of positions, which is what most sentences have. */
INLINE void short_softmax(int heads, float *scores, int count) {
    vector_t own[4], places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    float most[4], inverse[4];
    integers_t real = places < all((float)count);
    UNROLLED for (int h = 0; h < heads; h++) own[h] = choose(real, load(scores + h * LANES), all(-INFINITY));
    UNROLLED for (int h = 0; h < heads; h++) most[h] = largest_of(larger(own[h], all(-INFINITY)));
    UNROLLED for (int h = 0; h < heads; h++) own[h] = exponential(own[h] - most[h]);
    UNROLLED for (int h = 0; h < heads; h++) inverse[h] = 1.0f / sum_of(own[h]);
    UNROLLED for (int h = 0; h < heads; h++) store(scores + h * LANES, own[h] * inverse[h]);
}

/* Two vectors of the values of each head times its weights. */
INLINE void weigh_together(int heads, const float *const *values, int first, const float *weights, int room, int count,
                           int width, int i, float *out) {
    vector_t one[4], two[4];
    UNROLLED for (int h = 0; h < heads; h++) one[h] = two[h] = all(0.0f);
    for (int at = 0; at < count; at++) {
        const float *own = values[at] + first + i;
        UNROLLED for (int h = 0; h < heads; h++) {
            float weight = weights[h * room + at];
            one[h] += load(own + h * width) * weight;
            two[h] += load(own + h * width + LANES) * weight;
        }
    }
    UNROLLED for (int h = 0; h < heads; h++) {
        store(out + h * width + i, one[h]);
        store(out + h * width + i + LANES, two[h]);
    }
}

INLINE void attend_heads(int heads, const float *query, const float *keys, const float *const *values, int first,
                         int count, const rg_shape *shape, float *weights, float *out) {
    int room = ROUND_UP(count, LANES), width = shape->key_width, wide = shape->value_width;
    source_scores(heads, query, keys, room, width, 1.0f / sqrtf((float)width), weights);
    if (room == LANES)
        short_softmax(heads, weights, count);
    else
        for (int h = 0; h < heads; h++) softmax(weights + (size_t)h * (size_t)room, count, room);
    int i = 0;
    for (; i + 2 * LANES <= wide; i += 2 * LANES)
        weigh_together(heads, values, first, weights, room, count, wide, i, out);
    for (int h = 0; h < heads && i < wide; h++)
        weigh(values, first + h * wide + i, weights + (size_t)h * (size_t)room, count, wide - i, out + h * wide + i);
}

static void attend_source(const float *query, const float *keys, const float *const *values, int count,
                          const rg_shape *shape, float *weights, float *out) {
    size_t room = (size_t)ROUND_UP(count, LANES), head_size = (size_t)shape->key_width * room;
    int head = 0;
#define PART(some)                                                                                                     \
    for (; head + (some) <= shape->heads; head += (some))                                                              \
    attend_heads(some, query + head * shape->key_width, keys + (size_t)head * head_size, values,                       \
                 head * shape->value_width, count, shape, weights + (size_t)head * room, out + head * shape->value_width)
    PART(4);
    PART(1);
#undef PART
}

static void place(const float *row, const float *position, float scale, float *out, int width) {
    for (int i = 0; i < width; i++) out[i] = row[i] * scale + position[i];
}

/* The vocabulary */

/* A bit for each of a panel's logits that is above the threshold. */
INLINE uint64_t above(const float *x, float threshold) {
    uint64_t found = 0;
#if defined(__AVX512F__)
    __m512 t = _mm512_set1_ps(threshold);
    for (int j = 0; j < 4; j++)
        found |= (uint64_t)_mm512_cmp_ps_mask(_mm512_loadu_ps(x + 16 * j), t, _CMP_GT_OQ) << (16 * j);
#elif defined(__AVX2__)
    __m256 t = _mm256_set1_ps(threshold);
    for (int j = 0; j < 8; j++)
        found |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + 8 * j), t, _CMP_GT_OQ))
                 << (8 * j);
#else
    for (int j = 0; j < PANEL; j++) found |= (uint64_t)(x[j] > threshold) << j;
#endif
    return found;
}

static void insert(best_t *best, float logit, int32_t token) {
    int at = best->count < best->most ? best->count++ : best->most - 1;
    for (; at > 0 && best->logits[at - 1] < logit; at--) {
        best->logits[at] = best->logits[at - 1];
        best->tokens[at] = best->tokens[at - 1];
    }
    best->logits[at] = logit;
    best->tokens[at] = token;
    if (best->count == best->most) best->threshold = best->logits[best->most - 1];
}

/* The logits of one panel, whose first is that of the token `first`; panel after panel. */
static void rank(const float *logits, int first, best_t *best, const uint8_t *never) {
    uint64_t hits = above(logits, best->threshold);
    float reference = best->reference;
    for (; hits; hits &= hits - 1) {
        int at = __builtin_ctzll(hits);
        float logit = logits[at];
        if (logit > reference) reference = logit;
        if (logit > best->threshold && !(never && never[first + at])) insert(best, logit, first + at);
    }
    vector_t sums = load(best->sums);
    if (reference > best->reference) {
        sums *= best->reference == -INFINITY ? all(0.0f) : exponential(all(best->reference - reference));
        best->reference = reference;
    }
    if (reference == -INFINITY) reference = 0.0f; /* nothing finite yet */
    for (int j = 0; j < PANEL; j += LANES) sums += exponential(load(logits + j) - reference);
    store(best->sums, sums);
}

extern const training_t TRAINING;

const kernels_t KERNELS = {KERNELS_NAME, sizeof(quantised_t), quantise, multiply_int8, multiply_fp32, norm, attend,
                           attend_source, rank, place, &TRAINING};
