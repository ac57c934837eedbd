/* Which instruction sets there are, whether they compute what plain C computes, and single kernels for the tests. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(HAS_AMX) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "kernels.h"

static const kernels_t *const SETS[] = {
#if defined(HAS_AMX)
    &kernels_amx,
#endif
#if defined(HAS_AVX512VNNI)
    &kernels_avx512vnni,
#endif
#if defined(HAS_AVXVNNI)
    &kernels_avxvnni,
#endif
#if defined(HAS_AVX2)
    &kernels_avx2,
#endif
    &kernels_plain};
#define COUNT ((int)(sizeof SETS / sizeof *SETS))

const kernels_t *kernels_of(int number) { return number >= 0 && number < COUNT ? SETS[number] : NULL; }

const char *rg_built_from(void) { return BUILT_FROM; }
int rg_instruction_sets(void) { return COUNT; }
const char *rg_instruction_set(int number) {
    const kernels_t *kernels = kernels_of(number);
    return kernels ? kernels->name : NULL;
}

/* Linux gives a process the tiles of AMX, which are large, only when it asks. */
int rg_prepare(int number) {
    if (!kernels_of(number)) return RG_UNAVAILABLE;
#if defined(HAS_AMX)
    if (kernels_of(number) == &kernels_amx) {
#if defined(__linux__)
        enum { ASK_FOR_STATE = 0x1023, TILES = 18 };
        return syscall(SYS_arch_prctl, ASK_FOR_STATE, TILES) ? RG_UNAVAILABLE : 0;
#else
        return RG_UNAVAILABLE;
#endif
    }
#endif
    return 0;
}

int rg_test_quantise(int set, const float *x, int rows, int width, int16_t *q, float *scales) {
    const kernels_t *kernels = kernels_of(set);
    size_t padded = (size_t)ROUND_UP(width, GROUP), numbers = (size_t)rows * padded;
    char *own = calloc(numbers + 1, kernels->activation);
    int32_t *sums = calloc((size_t)rows + 1, sizeof *sums);
    if (!own || !sums) {
        free(own), free(sums);
        return RG_NO_MEMORY;
    }
    kernels->quantise(x, rows, width, width, own, scales, sums);
    int error = 0;
    for (int row = 0; row < rows; row++) {
        int32_t sum = 0;
        for (int i = 0; i < width; i++) {
            size_t at = (size_t)row * padded + (size_t)i;
            int16_t value = kernels->activation == 1 ? (int16_t)((int8_t *)own)[at] : ((int16_t *)own)[at];
            q[(size_t)row * (size_t)width + (size_t)i] = value;
            sum += value;
        }
        if (sums[row] != 128 * sum) error = RG_BAD_ARGUMENT;
    }
    free(own), free(sums);
    return error;
}

/* `out` is as wide as the matrix has outputs; `how` as in kernels.h. */
int rg_test_multiply(int set, const float *x, int rows, const rg_matrix *matrix, int how, float *out) {
    const kernels_t *kernels = kernels_of(set);
    size_t stride = (size_t)PADDED(matrix->outputs), inputs = (size_t)ROUND_UP(matrix->inputs, GROUP);
    size_t outputs = (size_t)matrix->outputs;
    float *wide = calloc((size_t)rows * stride + 1, sizeof *wide);
    float *scales = calloc((size_t)rows + 1, sizeof *scales);
    int32_t *sums = calloc((size_t)rows + 1, sizeof *sums);
    void *q = calloc((size_t)rows * inputs + 1, kernels->activation);
    int error = wide && scales && sums && q ? 0 : RG_NO_MEMORY;
    if (!error) {
        for (size_t row = 0; row < (size_t)rows; row++)
            memcpy(wide + row * stride, out + row * outputs, outputs * sizeof *out);
        if (matrix->scales) {
            kernels->quantise(x, rows, matrix->inputs, matrix->inputs, q, scales, sums);
            kernels->multiply_int8(q, scales, sums, rows, matrix, 0, (int)stride / PANEL, wide, (int)stride, how);
        } else {
            kernels->multiply_fp32(x, matrix->inputs, rows, matrix, 0, (int)stride / PANEL, wide, (int)stride, how);
        }
        for (size_t row = 0; row < (size_t)rows; row++)
            memcpy(out + row * outputs, wide + row * stride, outputs * sizeof *out);
    }
    free(wide), free(scales), free(sums), free(q);
    return error;
}

int rg_test_norm(int set, const float *x, int rows, int width, const rg_norm *norm, float epsilon, float *out) {
    for (int row = 0; row < rows; row++)
        kernels_of(set)->norm(x + (size_t)row * (size_t)width, out + (size_t)row * (size_t)width, width, norm, epsilon);
    return 0;
}

/* `memory` has `count` positions of keys, then values; `weights` comes out as heads × count. */
int rg_test_attend(int set, int over_source, const float *query, const float *memory, int count, const rg_shape *shape,
                   float *weights, float *out) {
    int keys = shape->heads * shape->key_width, size = keys + shape->heads * shape->value_width;
    int room = ROUND_UP(count, 16);
    const float **pointers = malloc(((size_t)count + 1) * sizeof *pointers);
    float *own = malloc(((size_t)shape->heads * (size_t)room + 1) * sizeof *own);
    float *turned = calloc((size_t)keys * (size_t)room + 1, sizeof *turned);
    int error = pointers && own && turned ? 0 : RG_NO_MEMORY;
    if (!error) {
        for (int at = 0; at < count; at++) {
            pointers[at] = memory + (size_t)at * (size_t)size + (over_source ? keys : 0);
            for (int i = 0; i < keys; i++)
                turned[(size_t)i * (size_t)room + (size_t)at] = memory[(size_t)at * (size_t)size + (size_t)i];
        }
        if (over_source)
            kernels_of(set)->attend_source(query, turned, pointers, count, shape, own, out);
        else
            kernels_of(set)->attend(query, pointers, keys, count, shape, own, out);
        for (int head = 0; head < shape->heads; head++)
            memcpy(weights + (size_t)head * (size_t)count, own + (size_t)head * (size_t)room,
                   (size_t)count * sizeof *own);
    }
    free(pointers), free(own), free(turned);
    return error;
}

/* Gives how many tokens were found. */
int rg_test_rank(int set, const float *logits, int vocabulary, const uint8_t *never, int most, float *log_probs,
                 int32_t *tokens, float *log_sum) {
    float tile[PANEL];
    best_t best = {.reference = -INFINITY, .threshold = -INFINITY, .most = most, .logits = log_probs,
                   .tokens = tokens};
    for (int first = 0; first < vocabulary; first += PANEL) {
        for (int i = 0; i < PANEL; i++) tile[i] = first + i < vocabulary ? logits[first + i] : -INFINITY;
        kernels_of(set)->rank(tile, first, &best, never);
    }
    double sum = 0.0;
    for (int i = 0; i < 16; i++) sum += (double)best.sums[i];
    double all = (double)best.reference + log(sum);
    for (int i = 0; i < best.count; i++) log_probs[i] = (float)((double)log_probs[i] - all);
    *log_sum = (float)all;
    return best.count;
}

/* The self check */

static float number(uint32_t *seed) { /* between -1 and 1 */
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / 8388608.0f - 1.0f;
}

/* Rows that fill two tiles, one, and none; inputs that fill none, and some that do. */
enum { CHECK_ROWS = 55, CHECK_INPUTS = 83, CHECK_WHOLE = 64, CHECK_OUTPUTS = 64 };

static float rounded_to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Whether a training product of factors in bf16 is what it should be; a result of 1 where it is not. */
static int check_rounded(int set, const float *x, const float *weights) {
    static float found[CHECK_ROWS * CHECK_OUTPUTS];
    if (!rg_train_multiplies(set, 1)) return 0;
    rg_product product = {.rows = CHECK_ROWS, .columns = CHECK_OUTPUTS, .inner = CHECK_INPUTS, .bf16 = 1,
                          .left_row = CHECK_INPUTS, .left_column = 1, .right_row = CHECK_OUTPUTS, .right_column = 1,
                          .out_row = CHECK_OUTPUTS, .left = x, .right = weights, .out = found};
    if (rg_train_multiply(set, 1, &product)) return RG_NO_MEMORY;
    for (int row = 0; row < CHECK_ROWS; row++)
        for (int column = 0; column < CHECK_OUTPUTS; column++) {
            double sum = 0.0;
            for (int i = 0; i < CHECK_INPUTS; i++)
                sum += (double)rounded_to_bf16(x[row * CHECK_INPUTS + i]) *
                       (double)rounded_to_bf16(weights[i * CHECK_OUTPUTS + column]);
            if (!(fabs(sum - (double)found[row * CHECK_OUTPUTS + column]) <= 1e-4)) return 1;
        }
    return 0;
}

int rg_self_check(int set) {
    if (rg_prepare(set)) return RG_UNAVAILABLE;
    static float x[CHECK_ROWS * CHECK_INPUTS], plain[CHECK_ROWS * CHECK_OUTPUTS], found[CHECK_ROWS * CHECK_OUTPUTS];
    static float scales[CHECK_OUTPUTS], bias[CHECK_OUTPUTS], weights[CHECK_INPUTS * CHECK_OUTPUTS];
    static uint8_t quantised[ROUND_UP(CHECK_INPUTS, GROUP) * CHECK_OUTPUTS];
    uint32_t seed = 7;
    for (int i = 0; i < CHECK_ROWS * CHECK_INPUTS; i++) x[i] = number(&seed);
    for (int i = 0; i < CHECK_OUTPUTS; i++) scales[i] = 0.01f * number(&seed), bias[i] = number(&seed);
    for (size_t i = 0; i < sizeof quantised; i++) quantised[i] = (uint8_t)(128 + (int)(127.0f * number(&seed)));
    for (int i = 0; i < CHECK_INPUTS * CHECK_OUTPUTS; i++) weights[i] = number(&seed);
    rg_matrix int8 = {CHECK_INPUTS, CHECK_OUTPUTS, quantised, scales, bias};
    rg_matrix whole = {CHECK_WHOLE, CHECK_OUTPUTS, quantised, scales, bias};
    rg_matrix fp32 = {CHECK_INPUTS, CHECK_OUTPUTS, weights, NULL, bias};
    const rg_matrix *matrices[] = {&int8, &whole, &fp32};
    for (int which = 0; which < 3; which++) {
        memset(plain, 0, sizeof plain), memset(found, 0, sizeof found);
        if (rg_test_multiply(COUNT - 1, x, CHECK_ROWS, matrices[which], PLAIN, plain)) return RG_NO_MEMORY;
        if (rg_test_multiply(set, x, CHECK_ROWS, matrices[which], PLAIN, found)) return RG_NO_MEMORY;
        for (int i = 0; i < CHECK_ROWS * CHECK_OUTPUTS; i++)
            if (!(fabsf(plain[i] - found[i]) <= 1e-4f)) return 1;
    }
    return check_rounded(set, x, weights);
}
