/* The work of training.h, shared out among the threads of whoever does the matrix products. */
#include <stdlib.h>

#include "kernels.h"
#include "training.h"

static const training_t *training_of(int set) {
    const kernels_t *kernels = kernels_of(set);
    return kernels ? kernels->training : NULL;
}

/* OpenMP's runtime, as compilers call it. It is the caller's: a second one would have threads of its own, which wait
 * for work on the same cores. */
static rg_parallel_t run_parallel;
static rg_number_t thread_number, thread_count;

void rg_train_threads(rg_parallel_t parallel, rg_number_t number, rg_number_t count) {
    run_parallel = parallel, thread_number = number, thread_count = count;
}

/* `part` is called once by each thread, with a job of its own. */
typedef void (*part_t)(void *context, int first, int last, int thread);

typedef struct {
    part_t part;
    void *context;
    int items;
} work_t;

static void own_part(void *data) {
    const work_t *work = data;
    int64_t thread = thread_number(), threads = thread_count(), items = work->items;
    work->part(work->context, (int)(items * thread / threads), (int)(items * (thread + 1) / threads), (int)thread);
}

static void share(part_t part, void *context, int items, int threads) {
    work_t work = {part, context, items};
    if (threads < 2 || items < 2 || !run_parallel)
        part(context, 0, items, 0);
    else
        run_parallel(own_part, &work, (unsigned)threads, 0);
}

/* Matrix products */

enum { FEWEST = 1 << 16 }; /* multiplications that are worth waking a thread for */

typedef struct {
    const products_t *kernels;
    const rg_product *product;
    float *scratch;
    int by_rows, threads;
} multiplication_t;

static const products_t *products_of(int set, int bf16) {
    const training_t *kernels = training_of(set);
    const products_t *products = kernels ? bf16 ? kernels->rounded : kernels->products : NULL;
    return products && products->multiply ? products : NULL;
}

int rg_train_multiplies(int set, int bf16) { return products_of(set, bf16) != NULL; }

static int64_t units_in(int count, int unit) { return ((int64_t)count + unit - 1) / unit; }

/* Where a thread's part of `count` begins, which goes in units. */
static int border(int count, int unit, int part, int parts) {
    int64_t begin = units_in(count, unit) * part / parts * unit;
    return begin < count ? (int)begin : count;
}

static void multiply_part(void *context, int first, int last, int thread) {
    const multiplication_t *job = context;
    const rg_product *p = job->product;
    float *scratch = job->scratch + (size_t)thread * job->kernels->scratch;
    int count = job->by_rows ? p->rows : p->columns, unit = job->by_rows ? job->kernels->rows : job->kernels->columns;
    for (int part = first; part < last; part++) {
        int begin = border(count, unit, part, job->threads), end = border(count, unit, part + 1, job->threads);
        if (begin == end) continue;
        if (job->by_rows)
            job->kernels->multiply(p, begin, end, 0, p->columns, scratch);
        else
            job->kernels->multiply(p, 0, p->rows, begin, end, scratch);
    }
}

/* By the longer side, unless only the other one has a unit for each thread. */
static int goes_by_rows(const rg_product *p, const products_t *kernels, int threads) {
    int64_t rows = units_in(p->rows, kernels->rows), columns = units_in(p->columns, kernels->columns);
    return p->rows >= p->columns ? rows >= threads || rows >= columns : columns < threads && rows > columns;
}

int rg_train_multiply(int set, int threads, const rg_product *p) {
    const products_t *kernels = products_of(set, p->bf16);
    if (!kernels || threads < 1 || p->rows < 0 || p->columns < 0 || p->inner < 1) return RG_BAD_ARGUMENT;
    if (p->rows == 0 || p->columns == 0) return 0;
    if ((double)p->rows * p->columns * p->inner < FEWEST) threads = 1;
    multiplication_t job = {kernels, p, NULL, goes_by_rows(p, kernels, threads), threads};
    job.scratch = malloc(kernels->scratch * (size_t)threads * sizeof *job.scratch);
    if (!job.scratch) return RG_NO_MEMORY;
    share(multiply_part, &job, threads, threads);
    free(job.scratch);
    return 0;
}

/* Attention */

typedef struct {
    const training_t *kernels;
    const rg_attention *a;
    float *scratch, *weights, *out;
    size_t room; /* of a thread's scratch */
    const float *d_out;
    float *d_q, *d_k, *d_v;
} attention_t;

size_t attend_scratch(const rg_attention *a) {
    return (size_t)ROUND_UP(a->keys, 16) * (size_t)(a->width + a->queries) + 16;
}

static void attend_part(void *context, int first, int last, int thread) {
    const attention_t *job = context;
    float *scratch = job->scratch + (size_t)thread * job->room;
    for (int item = first; item < last; item++) {
        if (job->d_out)
            job->kernels->attend_back(job->a, item, scratch, job->weights, job->d_out, job->d_q, job->d_k, job->d_v);
        else
            job->kernels->attend(job->a, item, scratch, job->weights, job->out);
    }
}

static int attend(attention_t *job, int set, int threads) {
    const rg_attention *a = job->a;
    job->kernels = training_of(set);
    if (!job->kernels || a->width < 16 || a->width % 16 || a->sentences < 0 || a->keys < 0 || threads < 1)
        return RG_BAD_ARGUMENT;
    job->room = attend_scratch(a);
    job->scratch = malloc(job->room * (size_t)threads * sizeof *job->scratch);
    if (!job->scratch) return RG_NO_MEMORY;
    share(attend_part, job, a->sentences * a->heads, threads);
    free(job->scratch);
    return 0;
}

int rg_train_attend(int set, int threads, const rg_attention *a, float *weights, float *out) {
    attention_t job = {.a = a, .weights = weights, .out = out};
    return attend(&job, set, threads);
}

int rg_train_attend_back(int set, int threads, const rg_attention *a, float *weights, const float *d_out, float *d_q,
                         float *d_k, float *d_v) {
    attention_t job = {.a = a, .weights = weights, .d_out = d_out, .d_q = d_q, .d_k = d_k, .d_v = d_v};
    return attend(&job, set, threads);
}

/* Dropout, residual sums and norms */

static dropout_t dropout_of(double probability, uint64_t seed) {
    dropout_t dropout = {.seeds = {(uint32_t)seed, (uint32_t)(seed >> 32)}, .scale = (float)(1.0 / (1.0 - probability))};
    dropout.threshold = (uint32_t)(probability * 4294967296.0);
    return dropout;
}

enum { CHUNK = 4096 }; /* numbers that one thread takes together */

typedef struct {
    const training_t *kernels;
    const float *x, *y;
    size_t count;
    dropout_t dropout;
    float *out;
} sum_t;

static void drop_add_part(void *context, int first, int last, int thread) {
    (void)thread;
    const sum_t *job = context;
    size_t begin = (size_t)first * CHUNK, end = (size_t)last * CHUNK;
    job->kernels->drop_add(job->x, job->y, begin, end < job->count ? end : job->count, &job->dropout, job->out);
}

int rg_train_drop_add(int set, int threads, const float *x, const float *y, int64_t count, double probability,
                      uint64_t seed, float *out) {
    sum_t job = {training_of(set), x, y, (size_t)count, dropout_of(probability, seed), out};
    if (!job.kernels || count < 0 || count > INT32_MAX || !(probability >= 0.0 && probability < 1.0))
        return RG_BAD_ARGUMENT;
    share(drop_add_part, &job, (int)((job.count + CHUNK - 1) / CHUNK), threads);
    return 0;
}

static int blocks_of(int64_t rows) { return (int)((rows + SUMMED_ROWS - 1) / SUMMED_ROWS); }

/* The sums of all blocks, in their order. */
static void sum_blocks(const float *partial, size_t stride, int blocks, float *sums, int width) {
    for (int i = 0; i < width; i++) sums[i] = 0.0f;
    for (int block = 0; block < blocks; block++)
        for (int i = 0; i < width; i++) sums[i] += partial[(size_t)block * stride + (size_t)i];
}

typedef struct {
    const training_t *kernels;
    const float *bias, *d_out, *given;
    int rows, width;
    float *x, *partial;
} relu_t;

static void relu_part(void *context, int first, int last, int thread) {
    (void)thread;
    const relu_t *job = context;
    job->kernels->relu(job->x, job->bias, job->width, first, last);
}

static void relu_back_part(void *context, int first, int last, int thread) {
    (void)thread;
    const relu_t *job = context;
    for (int block = first; block < last; block++) {
        int begin = block * SUMMED_ROWS, end = begin + SUMMED_ROWS < job->rows ? begin + SUMMED_ROWS : job->rows;
        job->kernels->relu_back(job->d_out, job->given, job->width, begin, end, job->x,
                                job->partial + (size_t)block * (size_t)job->width);
    }
}

static int has_rows(const training_t *kernels, int64_t rows, int width) {
    return kernels && rows >= 0 && width >= 16 && width % 16 == 0 && rows <= INT32_MAX / width;
}

int rg_train_relu(int set, int threads, float *x, int64_t rows, int width, const float *bias) {
    relu_t job = {.kernels = training_of(set), .bias = bias, .rows = (int)rows, .width = width, .x = x};
    if (!has_rows(job.kernels, rows, width)) return RG_BAD_ARGUMENT;
    share(relu_part, &job, (int)rows, threads);
    return 0;
}

int rg_train_relu_back(int set, int threads, const float *d_out, const float *x, int64_t rows, int width, float *d_x,
                       float *d_bias) {
    relu_t job = {.kernels = training_of(set), .d_out = d_out, .given = x, .rows = (int)rows, .width = width, .x = d_x};
    if (!has_rows(job.kernels, rows, width)) return RG_BAD_ARGUMENT;
    int blocks = blocks_of(rows);
    job.partial = malloc(((size_t)blocks * (size_t)width + 1) * sizeof *job.partial);
    if (!job.partial) return RG_NO_MEMORY;
    share(relu_back_part, &job, blocks, threads);
    sum_blocks(job.partial, (size_t)width, blocks, d_bias, width);
    free(job.partial);
    return 0;
}

typedef struct {
    const training_t *kernels;
    norm_job_t own;
} norm_t;

static void norm_part(void *context, int first, int last, int thread) {
    (void)thread;
    const norm_t *job = context;
    job->kernels->norm(&job->own, first, last);
}

static void norm_back_part(void *context, int first, int last, int thread) {
    (void)thread;
    const norm_t *job = context;
    for (int block = first; block < last; block++) job->kernels->norm_back(&job->own, block);
}

static int fits(const norm_t *job, int64_t rows, int width, double probability) {
    return has_rows(job->kernels, rows, width) && probability >= 0.0 && probability < 1.0;
}

int rg_train_norm(int set, int threads, const float *x, const float *y, int64_t rows, int width, double probability,
                  uint64_t seed, const float *gain, const float *bias, float epsilon, float *sum, float *stats,
                  float *out) {
    norm_t job = {training_of(set), {.rows = (int)rows, .width = width, .dropout = dropout_of(probability, seed), .x = x,
                                     .y = y, .gain = gain, .bias = bias, .epsilon = epsilon, .sum = sum,
                                     .stats = stats, .out = out}};
    if (!fits(&job, rows, width, probability)) return RG_BAD_ARGUMENT;
    share(norm_part, &job, (int)rows, threads);
    return 0;
}

int rg_train_norm_back(int set, int threads, const float *d_out, const float *sum, const float *stats, int64_t rows,
                       int width, double probability, uint64_t seed, const float *gain, float *d_x, float *d_y,
                       float *d_gain, float *d_bias) {
    norm_t job = {training_of(set), {.rows = (int)rows, .width = width, .dropout = dropout_of(probability, seed),
                                     .x = sum, .gain = gain, .stats = (float *)stats, .d_out = d_out, .d_x = d_x,
                                     .d_y = d_y}};
    if (!fits(&job, rows, width, probability)) return RG_BAD_ARGUMENT;
    int blocks = blocks_of(rows);
    job.own.partial = malloc((2 * (size_t)blocks * (size_t)width + 1) * sizeof *job.own.partial);
    if (!job.own.partial) return RG_NO_MEMORY;
    share(norm_back_part, &job, blocks, threads);
    sum_blocks(job.own.partial, 2 * (size_t)width, blocks, d_gain, width);
    sum_blocks(job.own.partial + width, 2 * (size_t)width, blocks, d_bias, width);
    free(job.own.partial);
    return 0;
}

/* The loss */

typedef struct {
    const training_t *kernels;
    float *logits;
    int classes;
    const int64_t *truth;
    float extra, *log_sums, *chosen;
} loss_t;

static void loss_part(void *context, int first, int last, int thread) {
    (void)thread;
    const loss_t *job = context;
    for (int row = first; row < last; row++)
        job->kernels->cross_entropy(job->logits + (size_t)row * (size_t)job->classes, job->classes, job->truth[row],
                                    job->extra, job->log_sums + row, job->chosen + row);
}

int rg_train_cross_entropy(int set, int threads, float *logits, int rows, int classes, const int64_t *truth, float extra,
                           float *log_sums, float *chosen) {
    loss_t job = {training_of(set), logits, classes, truth, extra, log_sums, chosen};
    if (!job.kernels || classes < 1) return RG_BAD_ARGUMENT;
    for (int row = 0; row < rows; row++)
        if (truth[row] < 0 || truth[row] >= classes) return RG_BAD_ARGUMENT;
    share(loss_part, &job, rows, threads);
    return 0;
}
