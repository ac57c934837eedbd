/* What a training step does: its matrix products (products.c, and rounded.c in bf16), and between them, a pass over
 * memory each, attention of short sentences, dropout with the residual sum and the norm behind it, and softmax with cross
 * entropy (training.c). All three are compiled once for each instruction set; train.c shares the work out among threads.
 *
 * A number depends on its own row alone, and sums over rows run in blocks of a fixed size, so that the bits are the same
 * for any number of threads. */
#ifndef REGARD_TRAINING_H
#define REGARD_TRAINING_H

#include "native.h"

#define SUMMED_ROWS 64 /* rows whose gradients of gain and bias are summed before they meet those of others */

/* Each number of a tensor is dropped or kept by a hash of its place and the seed, so nothing is remembered for the
 * backward pass. */
typedef struct {
    uint32_t seeds[2];
    uint32_t threshold; /* a hash below it drops */
    float scale;        /* of what is kept */
} dropout_t;

typedef struct {
    int rows, width;
    dropout_t dropout;
    const float *x, *y; /* x + dropout(y) is normalised; y may be NULL */
    const float *gain, *bias;
    float epsilon;
    float *sum;           /* x + dropout(y); NULL without y */
    float *stats;         /* of each row the mean and 1/deviation */
    float *out;
    const float *d_out;   /* backward */
    float *d_x, *d_y;     /* d_y: NULL without y */
    float *partial;       /* of each block of rows the gradients of gain and bias */
} norm_job_t;

typedef struct {
    /* These rows of these columns; NULL where others are as fast. */
    void (*multiply)(const rg_product *product, int first, int last, int begin, int end, float *scratch);
    int rows, columns; /* threads are given multiples of these */
    size_t scratch;    /* numbers of a thread's scratch */
} products_t;

typedef struct {
    /* `item` is a head of a sentence; `scratch` has room for `attend_scratch` numbers. */
    void (*attend)(const rg_attention *a, int item, float *scratch, float *weights, float *out);
    void (*attend_back)(const rg_attention *a, int item, float *scratch, const float *weights, const float *d_out,
                        float *d_q, float *d_k, float *d_v);
    /* The numbers `first` … `last` - 1 of x + dropout(y), or of dropout(y) where x is NULL. */
    void (*drop_add)(const float *x, const float *y, size_t first, size_t last, const dropout_t *dropout, float *out);
    void (*relu)(float *x, const float *bias, int width, int first, int last);
    void (*relu_back)(const float *d_out, const float *x, int width, int first, int last, float *d_x, float *d_bias);
    void (*norm)(const norm_job_t *job, int first, int last);
    void (*norm_back)(const norm_job_t *job, int block);
    /* Logits to probabilities, minus `extra` at the truth. */
    void (*cross_entropy)(float *logits, int classes, int64_t truth, float extra, float *log_sum, float *chosen);
    const products_t *products;
    const products_t *rounded; /* of factors rounded to bf16; multiply: NULL where nothing does that in hardware */
} training_t;

size_t attend_scratch(const rg_attention *a);

#endif
