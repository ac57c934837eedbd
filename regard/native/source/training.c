/* Compiled once for each instruction set, with TRAINING as the name of the table; see training.h. */
#include "training.h"

#include "kernels.h"
#include "tiles.h"

/* Attention of whole sequences */

/* out (rows × width) = left (rows × count, by its strides) · right (count × width); the width is a multiple of 16. */
static void product(int rows, int width, int count, const float *left, size_t left_row, size_t left_column,
                    const float *right, size_t right_row, float *out, size_t out_row) {
    product_columns(rows, width, count, left, TILE_ROWS * left_row, left_row, left_column, right, right_row, out,
                    out_row, 0);
}

typedef struct {
    int queries, keys, room, width;
    size_t q_row, k_row, v_row, out_row;
    const float *q, *k, *v;
    size_t q_at, k_at, v_at, out_at, weights_at; /* where this head of this sentence begins */
    const uint8_t *mask;
    size_t mask_query;
} head_t;

INLINE head_t head_of(const rg_attention *a, int item) {
    size_t sentence = (size_t)(item / a->heads), head = (size_t)(item % a->heads), first = head * (size_t)a->width;
    head_t h = {.queries = a->queries, .keys = a->keys, .room = ROUND_UP(a->keys, LANES), .width = a->width};
    h.q_row = (size_t)a->q_row, h.k_row = (size_t)a->k_row, h.v_row = (size_t)a->v_row;
    h.out_row = (size_t)a->heads * (size_t)a->width;
    h.q_at = sentence * (size_t)a->queries * h.q_row + first;
    h.k_at = sentence * (size_t)a->keys * h.k_row + first;
    h.v_at = sentence * (size_t)a->keys * h.v_row + first;
    h.out_at = sentence * (size_t)a->queries * h.out_row + first;
    h.weights_at = (size_t)item * (size_t)a->queries * (size_t)h.room;
    h.q = a->q + h.q_at, h.k = a->k + h.k_at, h.v = a->v + h.v_at;
    h.mask = a->mask ? a->mask + sentence * (size_t)a->mask_sentence : NULL;
    h.mask_query = (size_t)a->mask_query;
    return h;
}

/* to[feature][position] = scale · from[position][feature]; what lies behind the last position becomes 0. */
INLINE void turn(const float *from, size_t row, int positions, int room, int width, float scale, float *to) {
    for (int at = 0; at < room; at += LANES)
        for (int i = 0; i < width; i += LANES) {
            vector_t block[LANES];
            for (int r = 0; r < LANES; r++) block[r] = all(0.0f);
            for (int r = 0; r < LANES && at + r < positions; r++)
                block[r] = load(from + (size_t)(at + r) * row + i) * scale;
            transpose(block);
            for (int r = 0; r < LANES; r++) store(to + (size_t)(i + r) * (size_t)room + at, block[r]);
        }
}

/* Where a query may look: -1, else 0, also behind the last key; and whether it may look anywhere. */
INLINE int seen_by(const uint8_t *mask, int keys, int room, int32_t *seen) {
    int32_t any = 0;
    for (int at = 0; at < keys; at++) any |= seen[at] = -(int32_t)(mask[at] != 0);
    for (int at = keys; at < room; at++) seen[at] = 0;
    return any != 0;
}

/* A row of scores to weights, in place. A query that may look at nothing gets 0 everywhere. */
INLINE void weights_of(float *scores, const int32_t *seen, int any, int room) {
    if (!any) {
        memset(scores, 0, (size_t)room * sizeof *scores);
        return;
    }
    vector_t most = all(-INFINITY), sums = all(0.0f);
    for (int at = 0; at < room; at += LANES) {
        vector_t own = choose(*(const integers_t *)(seen + at), load(scores + at), all(-INFINITY));
        store(scores + at, own);
        most = larger(own, most);
    }
    float reference = largest_of(most);
    for (int at = 0; at < room; at += LANES) {
        vector_t e = exponential(load(scores + at) - reference);
        store(scores + at, e);
        sums += e;
    }
    float inverse = 1.0f / sum_of(sums);
    for (int at = 0; at < room; at += LANES) store(scores + at, load(scores + at) * inverse);
}

static void attend(const rg_attention *a, int item, float *scratch, float *all_weights, float *out) {
    head_t h = head_of(a, item);
    float *weights = all_weights + h.weights_at;
    size_t room = (size_t)h.room;
    turn(h.k, h.k_row, h.keys, h.room, h.width, 1.0f / sqrtf((float)h.width), scratch);
    product(h.queries, h.room, h.width, h.q, h.q_row, 1, scratch, room, weights, room);
    int32_t *seen = (int32_t *)scratch; /* the keys are done with */
    int any = h.keys > 0;
    for (int at = 0; at < h.room; at++) seen[at] = -(int32_t)(at < h.keys);
    for (int query = 0; query < h.queries; query++) {
        if (h.mask && (!query || h.mask_query))
            any = seen_by(h.mask + (size_t)query * h.mask_query, h.keys, h.room, seen);
        weights_of(weights + (size_t)query * room, seen, any, h.room);
    }
    product(h.queries, h.width, h.keys, weights, room, 1, h.v, h.v_row, out + h.out_at, h.out_row);
}

/* With w the weights, d_w = d_out · vᵀ and d_scores = w · (d_w − Σ w·d_w): the gradients of q, k and v. */
static void attend_back(const rg_attention *a, int item, float *scratch, const float *all_weights, const float *d_out,
                        float *d_q, float *d_k, float *d_v) {
    head_t h = head_of(a, item);
    const float *weights = all_weights + h.weights_at, *d_own = d_out + h.out_at;
    size_t room = (size_t)h.room;
    float *d_scores = scratch + room * (size_t)h.width, scale = 1.0f / sqrtf((float)h.width);
    turn(h.v, h.v_row, h.keys, h.room, h.width, 1.0f, scratch);
    product(h.queries, h.room, h.width, d_own, h.out_row, 1, scratch, room, d_scores, room);
    for (int query = 0; query < h.queries; query++) {
        const float *w = weights + (size_t)query * room;
        float *d = d_scores + (size_t)query * room;
        vector_t sums = all(0.0f);
        for (int at = 0; at < h.room; at += LANES) sums += load(w + at) * load(d + at);
        float sum = sum_of(sums);
        for (int at = 0; at < h.room; at += LANES) store(d + at, load(w + at) * (load(d + at) - sum) * scale);
    }
    product(h.queries, h.width, h.keys, d_scores, room, 1, h.k, h.k_row, d_q + h.q_at, h.q_row);
    product(h.keys, h.width, h.queries, d_scores, 1, room, h.q, h.q_row, d_k + h.k_at, h.k_row);
    product(h.keys, h.width, h.queries, weights, 1, room, d_own, h.out_row, d_v + h.v_at, h.v_row);
}

/* Dropout, residual sums and norms */

typedef uint32_t unsigned_t __attribute__((vector_size(64), aligned(4), may_alias));

static const unsigned_t PLACES = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* What the numbers at `first` … `first` + 15 are multiplied by: 0 or the scale. */
INLINE vector_t kept(const dropout_t *dropout, size_t first) {
    unsigned_t h = (PLACES + (uint32_t)first) * 0x9e3779b1u;
    h ^= dropout->seeds[0];
    h ^= h >> 16;
    h *= 0x7feb352du;
    h ^= h >> 15;
    h += dropout->seeds[1];
    h *= 0x846ca68bu;
    h ^= h >> 16;
    return (vector_t)((integers_t)(h >= dropout->threshold) & (integers_t)all(dropout->scale));
}

INLINE vector_t dropped(vector_t y, const dropout_t *dropout, size_t first) {
    if (dropout->threshold) y *= kept(dropout, first);
    return y;
}

static void drop_add(const float *x, const float *y, size_t first, size_t last, const dropout_t *dropout, float *out) {
    size_t i = first;
    for (; i + LANES <= last; i += LANES) {
        vector_t own = dropped(load(y + i), dropout, i);
        if (x) own += load(x + i);
        store(out + i, own);
    }
    if (i == last) return;
    float rest[LANES] = {0};
    memcpy(rest, y + i, (last - i) * sizeof *rest);
    store(rest, dropped(load(rest), dropout, i));
    for (size_t at = i; at < last; at++) out[at] = x ? x[at] + rest[at - i] : rest[at - i];
}

/* The inner layer of a feed-forward network: max(0, x + bias), in place; NaN stays NaN. */
static void relu(float *x, const float *bias, int width, int first, int last) {
    for (int row = first; row < last; row++) {
        float *own = x + (size_t)row * (size_t)width;
        for (int i = 0; i < width; i += LANES) store(own + i, larger(all(0.0f), load(own + i) + load(bias + i)));
    }
}

/* d_x is d_out where x is above 0; d_bias is its sum over the rows of a block. */
static void relu_back(const float *d_out, const float *x, int width, int first, int last, float *d_x, float *d_bias) {
    memset(d_bias, 0, (size_t)width * sizeof *d_bias);
    for (int row = first; row < last; row++) {
        size_t begin = (size_t)row * (size_t)width;
        for (int i = 0; i < width; i += LANES) {
            vector_t own = choose(load(x + begin + i) > all(0.0f), load(d_out + begin + i), all(0.0f));
            store(d_x + begin + i, own);
            store(d_bias + i, load(d_bias + i) + own);
        }
    }
}

static void norm(const norm_job_t *job, int first, int last) {
    int width = job->width;
    float inverse_width = 1.0f / (float)width;
    for (int row = first; row < last; row++) {
        size_t begin = (size_t)row * (size_t)width;
        const float *z = job->x + begin;
        if (job->y) {
            drop_add(job->x, job->y, begin, begin + (size_t)width, &job->dropout, job->sum);
            z = job->sum + begin;
        }
        vector_t sums = all(0.0f), squares = all(0.0f);
        for (int i = 0; i < width; i += LANES) sums += load(z + i);
        float mean = sum_of(sums) * inverse_width;
        for (int i = 0; i < width; i += LANES) {
            vector_t d = load(z + i) - mean;
            squares += d * d;
        }
        float inverse = 1.0f / sqrtf(sum_of(squares) * inverse_width + job->epsilon);
        for (int i = 0; i < width; i += LANES)
            store(job->out + begin + i, (load(z + i) - mean) * inverse * load(job->gain + i) + load(job->bias + i));
        job->stats[2 * row] = mean, job->stats[2 * row + 1] = inverse;
    }
}

static void norm_back(const norm_job_t *job, int block) {
    int width = job->width, first = block * SUMMED_ROWS;
    int last = first + SUMMED_ROWS < job->rows ? first + SUMMED_ROWS : job->rows;
    float inverse_width = 1.0f / (float)width;
    float *d_gain = job->partial + 2 * (size_t)block * (size_t)width, *d_bias = d_gain + width;
    memset(d_gain, 0, 2 * (size_t)width * sizeof *d_gain);
    const float *from = job->y ? job->sum : job->x;
    for (int row = first; row < last; row++) {
        size_t begin = (size_t)row * (size_t)width;
        const float *z = from + begin, *d = job->d_out + begin;
        float mean = job->stats[2 * row], inverse = job->stats[2 * row + 1];
        vector_t sums = all(0.0f), products = all(0.0f);
        for (int i = 0; i < width; i += LANES) {
            vector_t own = load(d + i), unit = (load(z + i) - mean) * inverse, scaled = own * load(job->gain + i);
            sums += scaled;
            products += scaled * unit;
            store(d_gain + i, load(d_gain + i) + own * unit);
            store(d_bias + i, load(d_bias + i) + own);
        }
        float shared = sum_of(sums) * inverse_width, along = sum_of(products) * inverse_width;
        for (int i = 0; i < width; i += LANES) {
            vector_t unit = (load(z + i) - mean) * inverse;
            vector_t found = (load(d + i) * load(job->gain + i) - shared - unit * along) * inverse;
            store(job->d_x + begin + i, found);
            if (job->d_y) store(job->d_y + begin + i, dropped(found, &job->dropout, begin + (size_t)i));
        }
    }
}

/* The loss */

static void cross_entropy(float *logits, int classes, int64_t truth, float extra, float *log_sum, float *chosen) {
    int body = classes / LANES * LANES;
    float rest[LANES];
    for (int i = 0; i < LANES; i++) rest[i] = body + i < classes ? logits[body + i] : -INFINITY;
    vector_t most = load(rest), more = most;
    int i = 0;
    for (; i + 2 * LANES <= body; i += 2 * LANES) {
        most = larger(load(logits + i), most);
        more = larger(load(logits + i + LANES), more);
    }
    if (i < body) most = larger(load(logits + i), most);
    float reference = largest_of(larger(most, more));
    *chosen = logits[truth];
    vector_t sums = all(0.0f), e;
    for (i = 0; i < body; i += LANES) {
        e = exponential(load(logits + i) - reference);
        store(logits + i, e);
        sums += e;
    }
    e = exponential(load(rest) - reference);
    store(rest, e);
    float sum = sum_of(sums + e), inverse = 1.0f / sum;
    for (i = 0; i < body; i += LANES) store(logits + i, load(logits + i) * inverse);
    for (i = body; i < classes; i++) logits[i] = rest[i - body] * inverse;
    logits[truth] -= extra;
    *log_sum = reference + logf(sum);
}

extern const products_t PRODUCTS, ROUNDED;

const training_t TRAINING = {attend,    attend_back, drop_add,      relu,     relu_back,
                             norm,      norm_back,   cross_entropy, &PRODUCTS, &ROUNDED};
