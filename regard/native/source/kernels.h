/* The kernels of one instruction set. kernels.c is compiled once for each; `native.c` chooses at run time.
 *
 * Every function treats a row as if it were alone: the order in which a number is summed depends on the widths of the
 * model and on the row's own length, never on how many rows a call has or which thread takes it.
 */
#ifndef REGARD_KERNELS_H
#define REGARD_KERNELS_H

#include "native.h"
#include "training.h"

#define PANEL 64 /* outputs of a matrix that lie together; rows of activations are padded to a multiple */
#define GROUP 4  /* inputs of an int8 matrix that lie together */

#define ROUND_UP(n, to) (((n) + (to)-1) / (to) * (to))
#define PADDED(n) ROUND_UP(n, PANEL)

enum { PLAIN = 0, RELU = 1, ADD = 2 }; /* what becomes of a product: stored, its positive part stored, added */

/* A row's way through the vocabulary: the likeliest tokens so far, and what the log-sum-exp needs. */
typedef struct {
    float reference;     /* the largest logit so far */
    float threshold;     /* a logit must exceed it to be among the best */
    int32_t count, most; /* of the best */
    float *logits;       /* falling; of equal ones the lower token first */
    int32_t *tokens;
    float sums[16]; /* of exp(logit - reference), by the place in a vector */
} best_t;

typedef struct {
    const char *name;
    size_t activation; /* bytes of a quantised number */
    /* Each row by itself to the integers -127 … 127; `sums` of a row is theirs times 128. */
    void (*quantise)(const float *x, int rows, int width, int stride, void *q, float *scales, int32_t *sums);
    /* Of the matrix the panels `first` … `last` - 1; `out` begins at the first of them. */
    void (*multiply_int8)(const void *q, const float *scales, const int32_t *sums, int rows, const rg_matrix *matrix,
                          int first, int last, float *out, int stride, int how);
    void (*multiply_fp32)(const float *x, int x_stride, int rows, const rg_matrix *matrix, int first, int last,
                          float *out, int stride, int how);
    void (*norm)(const float *x, float *out, int width, const rg_norm *norm, float epsilon);
    /* One query over `count` positions: keys[i] has the keys of all heads, and `values` numbers on the values. The
     * weights come out as [head][position], rounded up to 16 positions. */
    void (*attend)(const float *query, const float *const *keys, int values, int count, const rg_shape *shape,
                   float *weights, float *out);
    /* The same over a source: keys[head][feature][position], rounded up to 16 positions. */
    void (*attend_source)(const float *query, const float *keys, const float *const *values, int count,
                          const rg_shape *shape, float *weights, float *out);
    void (*rank)(const float *logits, int first, best_t *best, const uint8_t *never);
    void (*place)(const float *row, const float *position, float scale, float *out, int width);
    const training_t *training;
} kernels_t;

const kernels_t *kernels_of(int number); /* an instruction set's, NULL where there is none of that number */

extern const kernels_t kernels_plain, kernels_avx2, kernels_avxvnni, kernels_avx512vnni, kernels_amx; /* where compiled */

#endif
