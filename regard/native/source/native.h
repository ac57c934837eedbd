/* The interface of the native engine: plain C, no Python. All memory that is passed in stays the caller's, and the
 * weights must outlive the model. Functions that can fail give 0 or an error below 0. */
#ifndef REGARD_NATIVE_H
#define REGARD_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#define RG_NO_MEMORY (-1)
#define RG_BAD_ARGUMENT (-2)
#define RG_TOO_LONG (-3) /* a position beyond the table */
#define RG_UNAVAILABLE (-4) /* no such instruction set, or the system refuses its registers */

/* A matrix of `outputs` rows in panels of 64: for each panel, for each input (or group of 4 inputs, of int8) 64 outputs.
 * Absent panels' places hold zero weights. int8 weights are stored plus 128. */
typedef struct {
    int32_t inputs, outputs;
    const void *weights;
    const float *scales; /* of each output, padded; NULL: the weights are fp32 */
    const float *bias;   /* padded */
} rg_matrix;

typedef struct {
    const float *gain, *bias;
} rg_norm;

typedef struct {
    int32_t width, heads, key_width, value_width, feedforward;
    int32_t encoder_layers, decoder_layers;
    int32_t pre_norm;
    int32_t vocabulary, source_vocabulary;
    float epsilon;
    float source_scale, target_scale; /* of the embeddings */
} rg_shape;

typedef struct {
    rg_norm norms[2]; /* around self-attention and the feed-forward network */
    rg_matrix all, output, inner, outer;
} rg_encoder_layer;

typedef struct {
    rg_norm norms[3]; /* around self-attention, attention over the source, the feed-forward network */
    rg_matrix all, output, queries, memory, across, inner, outer;
} rg_decoder_layer;

typedef struct {
    rg_shape shape;
    const rg_encoder_layer *encoder;
    const rg_decoder_layer *decoder;
    rg_norm encoder_norm, decoder_norm; /* pre-norm only */
    rg_matrix projection;               /* to the vocabulary; the bias of absent outputs is -inf */
    const float *source_table, *target_table;
} rg_weights;

/* Attention of whole sequences, for training. Of each position the numbers of all heads lie together; `…_row` numbers on
 * is the next position, and the positions of a sentence are followed by those of the next. A head's width is a multiple
 * of 16. */
typedef struct {
    int32_t sentences, heads, queries, keys, width;
    int64_t q_row, k_row, v_row;
    const float *q, *k, *v;
    const uint8_t *mask;                  /* 1 where a query may look, a byte for each key; NULL: everywhere */
    int64_t mask_sentence, mask_query;    /* how far on the next one's is; 0: all share it */
} rg_attention;

/* out = left (rows × inner) · right (inner × columns) + bias; with `relu`, negative results become 0; with `add`, the
 * product is added to `out`; with `bf16`, factors are rounded to it, and sums are fp32 all the same. Factors may be
 * transposed: how far on the next row and the next column are is given for each. The columns of `out` are contiguous. */
typedef struct {
    int32_t rows, columns, inner, add, relu, bf16;
    int64_t left_row, left_column, right_row, right_column, out_row;
    const float *left, *right, *bias; /* bias: NULL where there is none */
    float *out;
} rg_product;

typedef void (*rg_parallel_t)(void (*body)(void *), void *data, unsigned threads, unsigned flags);
typedef int (*rg_number_t)(void);

#pragma GCC visibility push(default)

typedef struct rg_model rg_model;
typedef struct rg_state rg_state;
typedef struct rg_search rg_search;

const char *rg_built_from(void); /* a hash of the sources */
int rg_instruction_sets(void);                /* how many there are, best first; the last is plain C */
const char *rg_instruction_set(int number);   /* its name */
int rg_prepare(int number);                   /* asks the system for its registers; 0 where they may be used */
int rg_self_check(int number);                /* 0 where it computes what plain C computes; may be an illegal instruction */

rg_model *rg_model_new(const rg_weights *weights, int instruction_set, int threads);
void rg_model_free(rg_model *model);
/* The tables of positions, of `count` rows each. */
void rg_positions(rg_model *model, const float *source, int source_count, const float *target, int target_count);
int64_t rg_entries(rg_model *model); /* positions of all rows that are remembered now */

/* Encodes; `lengths[i]` tokens of each sentence lie together, each at its place. */
int rg_start(rg_model *model, const int32_t *tokens, const int32_t *places, const int32_t *lengths, int sentences,
             rg_state **state);
/* One token more for each row: logits (rows × vocabulary) and, unless NULL, the attention over the source (rows × layers
 * × heads × `longest`). */
int rg_step(rg_model *model, const rg_state *state, const int32_t *tokens, float *logits, float *looks, int longest,
            rg_state **after);
/* Of logits (rows × vocabulary), summed as the search sums them; `found` may be `logits`. */
void rg_log_probabilities(rg_model *model, const float *logits, int rows, float *found);
int rg_reorder(rg_model *model, const rg_state *state, const int32_t *parents, int rows, rg_state **after);
int rg_join(rg_model *model, const rg_state *one, const rg_state *other, rg_state **both);
void rg_state_free(rg_model *model, rg_state *state);
int rg_state_rows(const rg_state *state);
int rg_state_longest(const rg_state *state); /* source */

/* Beam search, or greedy with a beam of 1, for sentences that come and go. `never` has a byte for each token: 1 where it
 * is never generated. `penalties[n]` is what a log-probability of n tokens is divided by. With `early_stopping` a sentence
 * is over as soon as `beam` hypotheses have ended. */
rg_search *rg_search_new(rg_model *model, int beam, int nbest, int candidates, int early_stopping, int start, int end,
                         const uint8_t *never);
void rg_search_free(rg_search *search);
int rg_search_penalties(rg_search *search, const float *penalties, int count);
/* `counts[i]` of the `candidates`, rising, are the tokens that a sentence's translation may hold; 0: all, and so for every
 * sentence where `counts` is NULL. */
int rg_search_admit(rg_search *search, const int32_t *tokens, const int32_t *places, const int32_t *lengths,
                    const int32_t *limits, const int64_t *numbers, const int32_t *candidates, const int32_t *counts,
                    int sentences);
int rg_search_cancel(rg_search *search, int64_t number);
/* Steps, one at least, until so many sentences are finished, or none is open. */
int rg_search_run(rg_search *search, int count);
/* How many sentences are finished, and how many hypotheses and tokens they have in all. */
int rg_search_finished(const rg_search *search, int64_t *hypotheses, int64_t *tokens);
/* Takes them. `whole` gets the numbers of the sentences, how many hypotheses each has, of each hypothesis its length, then
 * how many scores each has, then all tokens; `real` the rank of each hypothesis, then all scores. Scores are one more than
 * tokens where the end symbol was reached. */
void rg_search_take(rg_search *search, int64_t *whole, float *real);
/* The tokens of an open hypothesis of a sentence; the length, or -1 where there is none. */
int rg_search_written(const rg_search *search, int64_t number, int place, int32_t *tokens, int room);

/* Training: matrix products, and what is done between them, forward and backward. All tensors are fp32; those of anything
 * but products are contiguous. */
/* GOMP_parallel, omp_get_thread_num and omp_get_num_threads of the runtime whose threads are to be used; without it
 * there is one thread. */
void rg_train_threads(rg_parallel_t parallel, rg_number_t number, rg_number_t count);
/* Whether this instruction set has products, of factors in fp32 or rounded to bf16. */
int rg_train_multiplies(int set, int bf16);
/* The bits of a result do not depend on the threads, nor on other rows and columns. */
int rg_train_multiply(int set, int threads, const rg_product *product);
/* `weights`: sentences × heads × queries × the number of keys rounded up to 16. The gradients have the layout of q, k, v. */
int rg_train_attend(int set, int threads, const rg_attention *attention, float *weights, float *out);
int rg_train_attend_back(int set, int threads, const rg_attention *attention, float *weights, const float *d_out,
                         float *d_q, float *d_k, float *d_v);
/* x + dropout(y), or dropout(y) where x is NULL; the same seed drops the same places. */
int rg_train_drop_add(int set, int threads, const float *x, const float *y, int64_t count, double probability,
                      uint64_t seed, float *out);
/* max(0, x + bias), in place; and back, from what came of it: d_x, and its sum over the rows. */
int rg_train_relu(int set, int threads, float *x, int64_t rows, int width, const float *bias);
int rg_train_relu_back(int set, int threads, const float *d_out, const float *x, int64_t rows, int width, float *d_x,
                       float *d_bias);
/* The norm of x + dropout(y), which becomes `sum`; where y is NULL that of x, and nothing becomes of `sum`. `stats` has
 * the mean and the inverse deviation of each row. The width is a multiple of 16. */
int rg_train_norm(int set, int threads, const float *x, const float *y, int64_t rows, int width, double probability,
                  uint64_t seed, const float *gain, const float *bias, float epsilon, float *sum, float *stats,
                  float *out);
/* `sum` is what was normalised. `d_y` is NULL where there was no y. */
int rg_train_norm_back(int set, int threads, const float *d_out, const float *sum, const float *stats, int64_t rows,
                       int width, double probability, uint64_t seed, const float *gain, float *d_x, float *d_y,
                       float *d_gain, float *d_bias);
/* Logits become softmax(logits) - extra · onehot(truth); of each row the log-sum-exp and the logit of the truth. */
int rg_train_cross_entropy(int set, int threads, float *logits, int rows, int classes, const int64_t *truth, float extra,
                           float *log_sums, float *chosen);

/* For the tests: single kernels. */
int rg_test_quantise(int set, const float *x, int rows, int width, int16_t *q, float *scales);
int rg_test_multiply(int set, const float *x, int rows, const rg_matrix *matrix, int how, float *out);
int rg_test_norm(int set, const float *x, int rows, int width, const rg_norm *norm, float epsilon, float *out);
int rg_test_attend(int set, int over_source, const float *query, const float *memory, int count, const rg_shape *shape,
                   float *weights, float *out);
int rg_test_rank(int set, const float *logits, int vocabulary, const uint8_t *never, int most, float *log_probs,
                 int32_t *tokens, float *log_sum);

#pragma GCC visibility pop

#endif
