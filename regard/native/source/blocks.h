/* What the blocks of a training product have in common, whatever its factors are rounded to. Included by what is compiled
 * once for each instruction set. */
#ifndef REGARD_BLOCKS_H
#define REGARD_BLOCKS_H

#include "training.h"

#include "vectors.h"

/* A part of the product: its rows, its columns, and the part of the inner width that is summed. */
typedef struct {
    int row, rows, column, width, from_inner, inner;
} block_t;

INLINE int smaller(int a, int b) { return a < b ? a : b; }

INLINE void copy_rows(block_t b, const float *from, size_t from_row, float *to, size_t to_row) {
    for (int r = 0; r < b.rows; r++, from += from_row, to += to_row) memcpy(to, from, (size_t)b.width * sizeof *to);
}

/* Whether the sums of this block are now whole, and something is still to be done to them. */
INLINE int is_to_finish(const rg_product *p, block_t b) {
    return (p->bias || p->relu) && b.from_inner + b.inner == p->inner;
}

/* Bias and positive part, once a block's sums are whole; they have room for whole vectors, `most` columns at most. */
INLINE void finish(const rg_product *p, block_t b, int most, float *sums, size_t stride) {
    float bias[most];
    memset(bias, 0, sizeof bias);
    if (p->bias) memcpy(bias, p->bias + b.column, (size_t)b.width * sizeof *bias);
    for (int r = 0; r < b.rows; r++, sums += stride)
        for (int i = 0; i < b.width; i += LANES) {
            vector_t sum = load(sums + i);
            if (p->bias) sum += load(bias + i);
            if (p->relu) sum = larger(all(0.0f), sum); /* NaN stays NaN */
            store(sums + i, sum);
        }
}

#endif
