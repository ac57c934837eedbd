/* What model.c and search.c share: sentences that are encoded, rows of a search, and a step of the decoder. */
#ifndef REGARD_MODEL_H
#define REGARD_MODEL_H

#include <pthread.h>

#include "kernels.h"
#include "pool.h"
#include "shortlist.h"

/* An encoded sentence. Of each decoder layer the keys as [head][feature][position], with room for a multiple of 16
 * positions, then the values as [position][values of all heads]. */
typedef struct {
    int references, length;
    size_t layer; /* numbers of a layer */
    float *data;
} memory_t;

/* Keys and values of positions. No two threads use one at once. */
typedef struct {
    float **slabs;
    int32_t *references, *vacant;
    int count, vacant_count, slab_count;
    size_t size; /* numbers of an entry */
} store_t;

/* A hypothesis as the decoder sees it. Its keys and values of each position read are an entry of its store, which rows
 * with a common past share: nothing is copied when a beam widens. */
typedef struct {
    store_t *store;
    int32_t *entries;
    int age, room; /* positions read, and places in `entries` */
    memory_t *memory;
} row_t;

struct rg_state {
    int rows;
    row_t *row;
};

typedef struct {
    int rows, keys;
    void *block;
    float *x, *y, *wide, *heads, *scales, *tile, *weights, *turned; /* `turned`: a sentence's keys by feature */
    void *quantised;
    int32_t *sums;
    const float **pointers;
} scratch_t;

struct rg_model {
    rg_weights weights;
    rg_encoder_layer *encoder;
    rg_decoder_layer *decoder;
    const kernels_t *kernels;
    pool_t *pool;
    scratch_t *scratch; /* a thread's each */
    store_t *stores;    /* one for each thread */
    const float *source_positions, *target_positions;
    int source_count, target_count;
    int stride, wide_stride, heads_stride, most_inputs, memory_size; /* of rows, in numbers */
    pthread_mutex_t mutex;
};

/* What is wanted of a step; NULL is not. */
typedef struct {
    float *logits;
    float *looks;
    int longest;
    int most; /* so many of the likeliest tokens of each row, or 0 */
    const uint8_t *never;
    float *best_scores;
    int32_t *best_tokens, *best_counts;
    const shortlist_t *const *shortlists; /* of each row, or NULL for the whole vocabulary; NULL: of all rows */
} outputs_t;

int encode(rg_model *model, const int32_t *tokens, const int32_t *places, const int32_t *lengths, int sentences,
           memory_t **found);
/* Each row grows by one entry. `thread` of the pool, whose caller it is, steps the rows alone, and no other thread may
 * use their store meanwhile; -1: all threads share the rows. */
int decode(rg_model *model, int thread, row_t *const *rows, const int32_t *tokens, int count,
           const outputs_t *outputs);

void memory_release(memory_t *memory);
int row_copy(const row_t *row, row_t *copy);
void row_release(row_t *row);

#endif
