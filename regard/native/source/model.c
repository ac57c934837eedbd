/* The Transformer: its encoder, and a step of its decoder, for rows that share nothing but the weights. */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLAB 64       /* entries that are allocated together */
#define BLOCK 96      /* rows that go through all layers together: their activations stay in the cache */
#define ALIGNMENT 64

static int max(int a, int b) { return a > b ? a : b; }
static int min(int a, int b) { return a < b ? a : b; }

/* Scratch memory */

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static void *carve(char **at, size_t bytes) {
    void *here = *at;
    *at += aligned(bytes);
    return here;
}

static int scratch_reserve(const rg_model *model, scratch_t *scratch, int rows, int keys) {
    if (rows <= scratch->rows && keys <= scratch->keys) return 0;
    rows = max(rows, scratch->rows), keys = ROUND_UP(max(keys, scratch->keys), 64);
    free(scratch->block);
    scratch->block = NULL, scratch->rows = scratch->keys = 0;
    size_t r = (size_t)rows, k = (size_t)keys, quantised = r * (size_t)model->most_inputs * model->kernels->activation;
    size_t numbers[] = {r * (size_t)model->stride,      r * (size_t)model->stride, r * (size_t)model->wide_stride,
                        r * (size_t)model->heads_stride, r,                         r * PANEL,
                        (size_t)model->weights.shape.heads * k,
                        (size_t)(model->weights.shape.heads * model->weights.shape.key_width) * k};
    size_t total = aligned(quantised) + aligned(r * sizeof(int32_t)) + aligned(k * sizeof(float *)) + ALIGNMENT;
    for (int i = 0; i < 8; i++) total += aligned(numbers[i] * sizeof(float));
    char *at = scratch->block = aligned_alloc(ALIGNMENT, aligned(total));
    if (!at) return RG_NO_MEMORY;
    memset(at, 0, aligned(total)); /* what fills a row up stays 0 */
    float **parts[] = {&scratch->x,      &scratch->y,    &scratch->wide,   &scratch->heads,
                       &scratch->scales, &scratch->tile, &scratch->weights, &scratch->turned};
    for (int i = 0; i < 8; i++) *parts[i] = carve(&at, numbers[i] * sizeof(float));
    scratch->quantised = carve(&at, quantised);
    scratch->sums = carve(&at, r * sizeof(int32_t));
    scratch->pointers = carve(&at, k * sizeof(float *));
    scratch->rows = rows, scratch->keys = keys;
    return 0;
}

/* The store of keys and values */

static int store_grow(store_t *store) {
    int count = store->count + SLAB;
    float **slabs = realloc(store->slabs, (size_t)(store->slab_count + 1) * sizeof *slabs);
    if (!slabs) return RG_NO_MEMORY;
    store->slabs = slabs;
    int32_t *references = realloc(store->references, (size_t)count * sizeof *references);
    if (!references) return RG_NO_MEMORY;
    store->references = references;
    int32_t *vacant = realloc(store->vacant, (size_t)count * sizeof *vacant);
    if (!vacant) return RG_NO_MEMORY;
    store->vacant = vacant;
    float *slab = aligned_alloc(ALIGNMENT, aligned(SLAB * store->size * sizeof *slab));
    if (!slab) return RG_NO_MEMORY;
    slabs[store->slab_count++] = slab;
    for (int i = count - 1; i >= store->count; i--) {
        references[i] = 0;
        vacant[store->vacant_count++] = i;
    }
    store->count = count;
    return 0;
}

static int32_t store_take(store_t *store) {
    if (!store->vacant_count && store_grow(store)) return -1;
    int32_t entry = store->vacant[--store->vacant_count];
    store->references[entry] = 1;
    return entry;
}

static void store_release(store_t *store, int32_t entry) {
    if (--store->references[entry] == 0) store->vacant[store->vacant_count++] = entry;
}

static float *store_at(const store_t *store, int32_t entry) {
    return store->slabs[entry / SLAB] + (size_t)(entry % SLAB) * store->size;
}

void memory_release(memory_t *memory) {
    if (memory && --memory->references == 0) {
        free(memory->data);
        free(memory);
    }
}

/* Makes the entry of the position that the row reads next. */
static int row_extend(row_t *row) {
    if (row->age == row->room) {
        int room = row->age + 16;
        int32_t *entries = realloc(row->entries, (size_t)room * sizeof *entries);
        if (!entries) return RG_NO_MEMORY;
        row->entries = entries, row->room = room;
    }
    int32_t entry = store_take(row->store);
    if (entry < 0) return RG_NO_MEMORY;
    row->entries[row->age] = entry;
    return 0;
}

int row_copy(const row_t *row, row_t *copy) {
    int room = row->age + 16;
    int32_t *entries = malloc((size_t)room * sizeof *entries);
    if (!entries) return RG_NO_MEMORY;
    for (int i = 0; i < row->age; i++) {
        entries[i] = row->entries[i];
        row->store->references[entries[i]]++;
    }
    if (row->memory) row->memory->references++;
    *copy = (row_t){row->store, entries, row->age, room, row->memory};
    return 0;
}

void row_release(row_t *row) {
    for (int i = 0; i < row->age; i++) store_release(row->store, row->entries[i]);
    free(row->entries);
    memory_release(row->memory);
    *row = (row_t){0};
}

/* The parts of a layer, for some rows */

static void prepare(const rg_model *model, scratch_t *scratch, const float *x, int stride, int rows,
                    const rg_matrix *matrix) {
    if (matrix->scales)
        model->kernels->quantise(x, rows, matrix->inputs, stride, scratch->quantised, scratch->scales, scratch->sums);
}

/* The rows from `row` on, of which the first is that of `scratch` and `x`. */
static void multiply_panels(const rg_model *model, const scratch_t *scratch, const float *x, int x_stride, int row,
                            int rows, const rg_matrix *matrix, int first, int last, float *out, int stride, int how) {
    const kernels_t *kernels = model->kernels;
    size_t quantised = (size_t)ROUND_UP(matrix->inputs, GROUP) * kernels->activation;
    if (matrix->scales)
        kernels->multiply_int8((const char *)scratch->quantised + (size_t)row * quantised, scratch->scales + row,
                               scratch->sums + row, rows, matrix, first, last, out, stride, how);
    else
        kernels->multiply_fp32(x + (size_t)row * (size_t)x_stride, x_stride, rows, matrix, first, last, out, stride,
                               how);
}

static void multiply(const rg_model *model, scratch_t *scratch, const float *x, int x_stride, int rows,
                     const rg_matrix *matrix, float *out, int stride, int how) {
    prepare(model, scratch, x, x_stride, rows, matrix);
    multiply_panels(model, scratch, x, x_stride, 0, rows, matrix, 0, PADDED(matrix->outputs) / PANEL, out, stride, how);
}

static void norm_rows(const rg_model *model, const float *x, float *out, int rows, const rg_norm *norm) {
    const rg_shape *shape = &model->weights.shape;
    for (int row = 0; row < rows; row++)
        model->kernels->norm(x + (size_t)row * (size_t)model->stride, out + (size_t)row * (size_t)model->stride,
                             shape->width, norm, shape->epsilon);
}

/* What a sublayer reads: x, or with pre-norm its norm. */
static const float *sublayer_input(const rg_model *model, scratch_t *scratch, int rows, const rg_norm *norm) {
    if (!model->weights.shape.pre_norm) return scratch->x;
    norm_rows(model, scratch->x, scratch->y, rows, norm);
    return scratch->y;
}

static void sublayer_end(const rg_model *model, scratch_t *scratch, int rows, const rg_norm *norm) {
    if (!model->weights.shape.pre_norm) norm_rows(model, scratch->x, scratch->x, rows, norm);
}

static void feed_forward(const rg_model *model, scratch_t *scratch, int rows, const rg_norm *norm,
                         const rg_matrix *inner, const rg_matrix *outer) {
    const float *x = sublayer_input(model, scratch, rows, norm);
    multiply(model, scratch, x, model->stride, rows, inner, scratch->wide, model->wide_stride, RELU);
    multiply(model, scratch, scratch->wide, model->wide_stride, rows, outer, scratch->x, model->stride, ADD);
    sublayer_end(model, scratch, rows, norm);
}

/* The encoder */

typedef struct {
    rg_model *model;
    const int32_t *tokens, *places, *lengths;
    const int *sentences, *begins; /* the first sentence and the first token of each block, and one past the last */
    memory_t **found;
} encoding_t;

/* Keys of `length` positions by feature; what fills the last vector up is 0. */
static void turn(const rg_model *model, const float *keys, int length, float *turned) {
    int width = model->weights.shape.heads * model->weights.shape.key_width, room = ROUND_UP(length, 16);
    for (int at = 0; at < room; at++)
        for (int i = 0; i < width; i++)
            turned[(size_t)i * (size_t)room + (size_t)at] =
                at < length ? keys[(size_t)at * (size_t)model->wide_stride + (size_t)i] : 0.0f;
}

static void encoder_attention(const rg_model *model, scratch_t *scratch, const encoding_t *own, int first, int last,
                              int rows, const rg_encoder_layer *layer) {
    const rg_shape *shape = &model->weights.shape;
    const float *x = sublayer_input(model, scratch, rows, &layer->norms[0]);
    multiply(model, scratch, x, model->stride, rows, &layer->all, scratch->wide, model->wide_stride, PLAIN);
    int keys = shape->heads * shape->key_width, row = 0;
    for (int sentence = first; sentence < last; sentence++) {
        int length = own->lengths[sentence];
        for (int at = 0; at < length; at++)
            scratch->pointers[at] = scratch->wide + (size_t)(row + at) * (size_t)model->wide_stride + 2 * keys;
        turn(model, scratch->wide + (size_t)row * (size_t)model->wide_stride + keys, length, scratch->turned);
        for (int at = 0; at < length; at++, row++)
            model->kernels->attend_source(scratch->wide + (size_t)row * (size_t)model->wide_stride, scratch->turned,
                                          scratch->pointers, length, shape, scratch->weights,
                                          scratch->heads + (size_t)row * (size_t)model->heads_stride);
    }
    multiply(model, scratch, scratch->heads, model->heads_stride, rows, &layer->output, scratch->x, model->stride, ADD);
    sublayer_end(model, scratch, rows, &layer->norms[0]);
}

static void encode_block(void *context, int block, int thread) {
    const encoding_t *own = context;
    rg_model *model = own->model;
    const rg_shape *shape = &model->weights.shape;
    scratch_t *scratch = &model->scratch[thread];
    int first = own->sentences[block], last = own->sentences[block + 1];
    int begin = own->begins[block], rows = own->begins[block + 1] - begin;
    for (int row = 0; row < rows; row++)
        model->kernels->place(
            model->weights.source_table + (size_t)own->tokens[begin + row] * (size_t)shape->width,
            model->source_positions + (size_t)own->places[begin + row] * (size_t)shape->width, shape->source_scale,
            scratch->x + (size_t)row * (size_t)model->stride, shape->width);
    for (int number = 0; number < shape->encoder_layers; number++) {
        const rg_encoder_layer *layer = &model->encoder[number];
        encoder_attention(model, scratch, own, first, last, rows, layer);
        feed_forward(model, scratch, rows, &layer->norms[1], &layer->inner, &layer->outer);
    }
    int keys = shape->heads * shape->key_width, values = shape->heads * shape->value_width;
    const float *x = sublayer_input(model, scratch, rows, &model->weights.encoder_norm);
    for (int number = 0; number < shape->decoder_layers; number++) {
        multiply(model, scratch, x, model->stride, rows, &model->decoder[number].memory, scratch->wide,
                 model->wide_stride, PLAIN);
        const float *from = scratch->wide;
        for (int sentence = first; sentence < last; sentence++) {
            int length = own->lengths[sentence];
            memory_t *memory = own->found[sentence];
            float *to = memory->data + (size_t)number * memory->layer;
            turn(model, from, length, to);
            to += (size_t)keys * (size_t)ROUND_UP(length, 16);
            for (int at = 0; at < length; at++, from += model->wide_stride, to += values)
                memcpy(to, from + keys, (size_t)values * sizeof *to);
        }
    }
}

static memory_t *memory_new(const rg_model *model, int length) {
    memory_t *memory = malloc(sizeof *memory);
    if (!memory) return NULL;
    const rg_shape *shape = &model->weights.shape;
    size_t layer = aligned(((size_t)(shape->heads * shape->key_width) * (size_t)ROUND_UP(length, 16) +
                            (size_t)(shape->heads * shape->value_width) * (size_t)length) * sizeof(float)) / sizeof(float);
    size_t numbers = (size_t)shape->decoder_layers * layer;
    *memory = (memory_t){1, length, layer, aligned_alloc(ALIGNMENT, aligned((numbers ? numbers : 1) * sizeof(float)))};
    if (memory->data) return memory;
    free(memory);
    return NULL;
}

/* Sentences in blocks of about equal work. */
static int encoder_blocks(const int32_t *lengths, int sentences, int most, int *firsts, int *begins, int *longest) {
    int blocks = 0, rows = 0, begin = 0;
    *longest = 0;
    for (int sentence = 0; sentence < sentences; sentence++) {
        if (sentence == 0 || rows + lengths[sentence] > most) {
            firsts[blocks] = sentence, begins[blocks] = begin;
            blocks++;
            rows = 0;
        }
        rows += lengths[sentence], begin += lengths[sentence];
        *longest = max(*longest, rows);
    }
    firsts[blocks] = sentences, begins[blocks] = begin;
    return blocks;
}

/* Tokens of a block: as many blocks for each thread as for the others. */
static int encoder_block(const rg_model *model, int total) {
    int threads = pool_threads(model->pool), rounds = max(ROUND_UP(total, threads * BLOCK) / (threads * BLOCK), 1);
    return max(ROUND_UP(total, threads * rounds) / (threads * rounds), 1);
}

int encode(rg_model *model, const int32_t *tokens, const int32_t *places, const int32_t *lengths, int sentences,
           memory_t **found) {
    const rg_shape *shape = &model->weights.shape;
    int total = 0, longest_sentence = 0, rows;
    for (int sentence = 0; sentence < sentences; sentence++) {
        if (lengths[sentence] < 0 || lengths[sentence] > 1 << 24 || total > 1 << 28) return RG_BAD_ARGUMENT;
        total += lengths[sentence];
        longest_sentence = max(longest_sentence, lengths[sentence]);
    }
    for (int i = 0; i < total; i++) {
        if (tokens[i] < 0 || tokens[i] >= shape->source_vocabulary || places[i] < 0) return RG_BAD_ARGUMENT;
        if (places[i] >= model->source_count) return RG_TOO_LONG;
    }
    int *firsts = malloc(2 * ((size_t)sentences + 1) * sizeof *firsts);
    if (!firsts) return RG_NO_MEMORY;
    int *begins = firsts + sentences + 1, made = 0, error = 0;
    int blocks = encoder_blocks(lengths, sentences, encoder_block(model, total), firsts, begins, &rows);
    for (int thread = 0; thread < pool_threads(model->pool) && !error; thread++)
        error = scratch_reserve(model, &model->scratch[thread], rows, longest_sentence);
    for (; made < sentences && !error; made++)
        if (!(found[made] = memory_new(model, lengths[made]))) error = RG_NO_MEMORY;
    if (!error) {
        encoding_t own = {model, tokens, places, lengths, firsts, begins, found};
        pool_run(model->pool, encode_block, &own, blocks);
    } else {
        while (made-- > 0) memory_release(found[made]);
    }
    free(firsts);
    return error;
}

/* The decoder */

typedef struct {
    rg_model *model;
    row_t *const *rows;
    const int32_t *tokens;
    int count, block;
    const outputs_t *outputs;
} decoding_t;

static void look_back(const rg_model *model, scratch_t *scratch, row_t *const *rows, int count, int number) {
    const rg_shape *shape = &model->weights.shape;
    const rg_decoder_layer *layer = &model->decoder[number];
    const float *x = sublayer_input(model, scratch, count, &layer->norms[0]);
    multiply(model, scratch, x, model->stride, count, &layer->all, scratch->wide, model->wide_stride, PLAIN);
    int keys = shape->heads * shape->key_width;
    size_t offset = (size_t)number * (size_t)model->memory_size;
    for (int row = 0; row < count; row++) {
        const float *query = scratch->wide + (size_t)row * (size_t)model->wide_stride;
        const row_t *own = rows[row];
        memcpy(store_at(own->store, own->entries[own->age]) + offset, query + keys,
               (size_t)model->memory_size * sizeof *query);
        for (int at = 0; at <= own->age; at++)
            scratch->pointers[at] = store_at(own->store, own->entries[at]) + offset;
        model->kernels->attend(query, scratch->pointers, keys, own->age + 1, shape, scratch->weights,
                               scratch->heads + (size_t)row * (size_t)model->heads_stride);
    }
    multiply(model, scratch, scratch->heads, model->heads_stride, count, &layer->output, scratch->x, model->stride,
             ADD);
    sublayer_end(model, scratch, count, &layer->norms[0]);
}

static void tell_look(const rg_model *model, const scratch_t *scratch, const outputs_t *outputs, int row, int number,
                      int count) {
    const rg_shape *shape = &model->weights.shape;
    int room = ROUND_UP(count, 16);
    float *to = outputs->looks + ((size_t)row * (size_t)shape->decoder_layers + (size_t)number) *
                                     (size_t)shape->heads * (size_t)outputs->longest;
    for (int head = 0; head < shape->heads; head++, to += outputs->longest) {
        memcpy(to, scratch->weights + (size_t)head * (size_t)room, (size_t)count * sizeof *to);
        memset(to + count, 0, (size_t)(outputs->longest - count) * sizeof *to);
    }
}

static void look_across(const rg_model *model, scratch_t *scratch, row_t *const *rows, int first, int count, int number,
                        const outputs_t *outputs) {
    const rg_shape *shape = &model->weights.shape;
    const rg_decoder_layer *layer = &model->decoder[number];
    const float *x = sublayer_input(model, scratch, count, &layer->norms[1]);
    multiply(model, scratch, x, model->stride, count, &layer->queries, scratch->wide, model->wide_stride, PLAIN);
    int keys = shape->heads * shape->key_width, values = shape->heads * shape->value_width;
    const memory_t *last = NULL;
    const float *data = NULL;
    for (int row = 0; row < count; row++) {
        const memory_t *memory = rows[row]->memory;
        if (memory != last) {
            data = memory->data + (size_t)number * memory->layer;
            const float *own = data + (size_t)keys * (size_t)ROUND_UP(memory->length, 16);
            for (int at = 0; at < memory->length; at++, own += values) scratch->pointers[at] = own;
            last = memory;
        }
        model->kernels->attend_source(scratch->wide + (size_t)row * (size_t)model->wide_stride, data,
                                      scratch->pointers, memory->length, shape, scratch->weights,
                                      scratch->heads + (size_t)row * (size_t)model->heads_stride);
        if (outputs->looks) tell_look(model, scratch, outputs, first + row, number, memory->length);
    }
    multiply(model, scratch, scratch->heads, model->heads_stride, count, &layer->across, scratch->x, model->stride,
             ADD);
    sublayer_end(model, scratch, count, &layer->norms[1]);
}

static double log_sum(const best_t *best) {
    double sum = 0.0;
    for (int i = 0; i < 16; i++) sum += (double)best->sums[i];
    return (double)best->reference + log(sum);
}

/* The rows from `row` on through one matrix, panel by panel; their logits are never all in memory unless asked for.
 * `first` is the place of row 0 among the outputs. */
static void through_panels(const rg_model *model, scratch_t *scratch, const float *x, int first, int row, int rows,
                           const rg_matrix *matrix, const uint8_t *never, best_t *best, const outputs_t *outputs) {
    int panels = PADDED(matrix->outputs) / PANEL;
    for (int panel = 0; panel < panels; panel++) {
        multiply_panels(model, scratch, x, model->stride, row, rows, matrix, panel, panel + 1, scratch->tile, PANEL,
                        PLAIN);
        for (int i = 0; i < rows; i++) {
            const float *tile = scratch->tile + (size_t)i * PANEL;
            if (outputs->most) model->kernels->rank(tile, panel * PANEL, &best[row + i], never);
            if (outputs->logits)
                memcpy(outputs->logits + (size_t)(first + row + i) * (size_t)matrix->outputs + (size_t)panel * PANEL,
                       tile, (size_t)min(PANEL, matrix->outputs - panel * PANEL) * sizeof *tile);
        }
    }
}

/* From features to logits and what is asked of them. Neighbours with the same shortlist, or without one, go together. */
static void to_vocabulary(const rg_model *model, scratch_t *scratch, const float *x, int first, int count,
                          const outputs_t *outputs) {
    const rg_matrix *whole = &model->weights.projection;
    best_t best[BLOCK];
    for (int row = 0; row < count && outputs->most; row++) {
        size_t place = (size_t)(first + row) * (size_t)outputs->most;
        best[row] = (best_t){.reference = -INFINITY,
                             .threshold = -INFINITY,
                             .most = outputs->most,
                             .logits = outputs->best_scores + place,
                             .tokens = outputs->best_tokens + place};
    }
    prepare(model, scratch, x, model->stride, count, whole);
    const shortlist_t *const *lists = outputs->shortlists ? outputs->shortlists + first : NULL;
    for (int row = 0, next; row < count; row = next) {
        const shortlist_t *own = lists ? lists[row] : NULL;
        for (next = row + 1; next < count && (!lists || lists[next] == own);) next++;
        through_panels(model, scratch, x, first, row, next - row, own ? &own->matrix : whole,
                       own ? own->never : outputs->never, best, outputs);
    }
    for (int row = 0; row < count && outputs->most; row++) {
        double all = log_sum(&best[row]);
        outputs->best_counts[first + row] = best[row].count;
        if (lists && lists[row])
            for (int i = 0; i < best[row].count; i++) best[row].tokens[i] = lists[row]->tokens[best[row].tokens[i]];
        for (int i = 0; i < best[row].count; i++) best[row].logits[i] = (float)((double)best[row].logits[i] - all);
    }
}

typedef struct {
    const rg_model *model;
    const float *logits;
    float *found;
} normalising_t;

static void normalise_row(void *context, int row, int thread) {
    const normalising_t *own = context;
    (void)thread;
    int vocabulary = own->model->weights.shape.vocabulary;
    const float *logits = own->logits + (size_t)row * (size_t)vocabulary;
    float *found = own->found + (size_t)row * (size_t)vocabulary, tile[PANEL], logit;
    int32_t token;
    best_t best = {.reference = -INFINITY, .threshold = -INFINITY, .most = 1, .logits = &logit, .tokens = &token};
    for (int first = 0; first < vocabulary; first += PANEL) {
        int some = min(PANEL, vocabulary - first);
        memcpy(tile, logits + first, (size_t)some * sizeof *tile);
        for (int i = some; i < PANEL; i++) tile[i] = -INFINITY;
        own->model->kernels->rank(tile, first, &best, NULL);
    }
    double all = log_sum(&best);
    for (int i = 0; i < vocabulary; i++) found[i] = (float)((double)logits[i] - all);
}

void rg_log_probabilities(rg_model *model, const float *logits, int rows, float *found) {
    normalising_t own = {model, logits, found};
    pthread_mutex_lock(&model->mutex);
    pool_run(model->pool, normalise_row, &own, rows);
    pthread_mutex_unlock(&model->mutex);
}

static void decode_block(void *context, int block, int thread) {
    const decoding_t *own = context;
    rg_model *model = own->model;
    const rg_shape *shape = &model->weights.shape;
    scratch_t *scratch = &model->scratch[thread];
    int first = block * own->block, count = min(own->block, own->count - first);
    row_t *const *rows = own->rows + first;
    for (int row = 0; row < count; row++)
        model->kernels->place(
            model->weights.target_table + (size_t)own->tokens[first + row] * (size_t)shape->width,
            model->target_positions + (size_t)rows[row]->age * (size_t)shape->width, shape->target_scale,
            scratch->x + (size_t)row * (size_t)model->stride, shape->width);
    for (int number = 0; number < shape->decoder_layers; number++) {
        const rg_decoder_layer *layer = &model->decoder[number];
        look_back(model, scratch, rows, count, number);
        look_across(model, scratch, rows, first, count, number, own->outputs);
        feed_forward(model, scratch, count, &layer->norms[2], &layer->inner, &layer->outer);
    }
    const float *x = sublayer_input(model, scratch, count, &model->weights.decoder_norm);
    to_vocabulary(model, scratch, x, first, count, own->outputs);
}

/* The most keys that one of the rows looks at, or an error where one cannot read its token. */
static int keys_of(const rg_model *model, row_t *const *rows, const int32_t *tokens, int count) {
    int keys = 1;
    for (int row = 0; row < count; row++) {
        if (tokens[row] < 0 || tokens[row] >= model->weights.shape.vocabulary) return RG_BAD_ARGUMENT;
        if (rows[row]->age >= model->target_count) return RG_TOO_LONG;
        keys = max(keys, max(rows[row]->age + 1, rows[row]->memory->length));
    }
    return keys;
}

static int extend_all(row_t *const *rows, int count) {
    for (int made = 0; made < count; made++)
        if (row_extend(rows[made])) {
            while (made-- > 0) store_release(rows[made]->store, rows[made]->entries[rows[made]->age]);
            return RG_NO_MEMORY;
        }
    return 0;
}

int decode(rg_model *model, int thread, row_t *const *rows, const int32_t *tokens, int count,
           const outputs_t *outputs) {
    int alone = thread >= 0, threads = alone ? 1 : pool_threads(model->pool);
    int keys = keys_of(model, rows, tokens, count), error = min(keys, 0);
    int blocks = max(min(count, threads), ROUND_UP(count, BLOCK) / BLOCK);
    blocks = count > BLOCK * threads ? ROUND_UP(blocks, threads) : blocks;
    int block = blocks ? ROUND_UP(count, blocks) / blocks : 1;
    for (int i = 0; i < threads && !error; i++)
        error = scratch_reserve(model, &model->scratch[alone ? thread : i], block, keys);
    if (!error) error = extend_all(rows, count);
    if (error) return error;
    decoding_t own = {model, rows, tokens, count, block, outputs};
    if (!alone) pool_run(model->pool, decode_block, &own, ROUND_UP(count, block) / block);
    for (int number = 0; alone && number * block < count; number++) decode_block(&own, number, thread);
    for (int row = 0; row < count; row++) rows[row]->age++;
    return 0;
}

/* The interface: a model */

static void *copied(const void *from, size_t bytes) {
    void *to = malloc(bytes ? bytes : 1);
    if (to) memcpy(to, from, bytes);
    return to;
}

rg_model *rg_model_new(const rg_weights *weights, int instruction_set, int threads) {
    const kernels_t *kernels = kernels_of(instruction_set);
    rg_model *model = kernels ? calloc(1, sizeof *model) : NULL;
    if (!model) return NULL;
    const rg_shape *shape = &weights->shape;
    model->weights = *weights;
    model->kernels = kernels;
    int keys = shape->heads * shape->key_width, values = shape->heads * shape->value_width;
    model->memory_size = keys + values;
    model->stride = PADDED(shape->width);
    model->heads_stride = PADDED(values);
    model->wide_stride = max(PADDED(2 * keys + values), PADDED(shape->feedforward));
    model->most_inputs = ROUND_UP(max(max(shape->width, shape->feedforward), values), GROUP);
    pthread_mutex_init(&model->mutex, NULL);
    model->encoder = copied(weights->encoder, (size_t)shape->encoder_layers * sizeof *model->encoder);
    model->decoder = copied(weights->decoder, (size_t)shape->decoder_layers * sizeof *model->decoder);
    model->pool = pool_new(threads);
    size_t count = model->pool ? (size_t)pool_threads(model->pool) : 0;
    if (count) model->scratch = calloc(count, sizeof *model->scratch), model->stores = calloc(count, sizeof *model->stores);
    if (!model->scratch || !model->stores || !model->encoder || !model->decoder) {
        rg_model_free(model);
        return NULL;
    }
    size_t entry = aligned((size_t)shape->decoder_layers * (size_t)model->memory_size * sizeof(float)) / sizeof(float);
    for (size_t thread = 0; thread < count; thread++) model->stores[thread].size = entry;
    return model;
}

static void store_free(store_t *store) {
    for (int slab = 0; slab < store->slab_count; slab++) free(store->slabs[slab]);
    free(store->slabs);
    free(store->references);
    free(store->vacant);
}

void rg_model_free(rg_model *model) {
    if (!model) return;
    int threads = model->pool ? pool_threads(model->pool) : 0;
    for (int thread = 0; model->scratch && thread < threads; thread++) free(model->scratch[thread].block);
    for (int thread = 0; model->stores && thread < threads; thread++) store_free(&model->stores[thread]);
    free(model->scratch);
    free(model->stores);
    free(model->encoder);
    free(model->decoder);
    pool_free(model->pool);
    pthread_mutex_destroy(&model->mutex);
    free(model);
}

void rg_positions(rg_model *model, const float *source, int source_count, const float *target, int target_count) {
    pthread_mutex_lock(&model->mutex);
    model->source_positions = source, model->source_count = source_count;
    model->target_positions = target, model->target_count = target_count;
    pthread_mutex_unlock(&model->mutex);
}

int64_t rg_entries(rg_model *model) {
    pthread_mutex_lock(&model->mutex);
    int64_t found = 0;
    for (int thread = 0; thread < pool_threads(model->pool); thread++)
        found += model->stores[thread].count - model->stores[thread].vacant_count;
    pthread_mutex_unlock(&model->mutex);
    return found;
}

/* The interface: states */

static rg_state *state_new(int rows) {
    rg_state *state = malloc(sizeof *state);
    if (!state) return NULL;
    *state = (rg_state){rows, calloc((size_t)(rows ? rows : 1), sizeof(row_t))};
    if (state->row) return state;
    free(state);
    return NULL;
}

static void state_release(rg_state *state) {
    for (int row = 0; row < state->rows; row++) row_release(&state->row[row]);
    free(state->row);
    free(state);
}

static int state_of(const row_t *const *rows, int count, rg_state **found) {
    rg_state *state = state_new(count);
    if (!state) return RG_NO_MEMORY;
    for (int row = 0; row < count; row++)
        if (row_copy(rows[row], &state->row[row])) {
            state_release(state);
            return RG_NO_MEMORY;
        }
    *found = state;
    return 0;
}

static int start(rg_model *model, const int32_t *tokens, const int32_t *places, const int32_t *lengths, int sentences,
                 rg_state **found) {
    rg_state *state = state_new(sentences);
    memory_t **memories = calloc((size_t)(sentences ? sentences : 1), sizeof *memories);
    int error = state && memories ? encode(model, tokens, places, lengths, sentences, memories) : RG_NO_MEMORY;
    for (int row = 0; row < sentences && !error; row++)
        state->row[row] = (row_t){.store = model->stores, .memory = memories[row]};
    free(memories);
    if (error && state) state_release(state);
    if (!error) *found = state;
    return error;
}

int rg_start(rg_model *model, const int32_t *tokens, const int32_t *places, const int32_t *lengths, int sentences,
             rg_state **state) {
    if (sentences < 0) return RG_BAD_ARGUMENT;
    pthread_mutex_lock(&model->mutex);
    int error = start(model, tokens, places, lengths, sentences, state);
    pthread_mutex_unlock(&model->mutex);
    return error;
}

static int reordered(const rg_state *state, const int32_t *parents, int rows, rg_state **after) {
    const row_t **chosen = malloc((size_t)(rows ? rows : 1) * sizeof *chosen);
    if (!chosen) return RG_NO_MEMORY;
    int error = 0;
    for (int row = 0; row < rows; row++) {
        if (parents[row] < 0 || parents[row] >= state->rows) error = RG_BAD_ARGUMENT;
        chosen[row] = error ? NULL : &state->row[parents[row]];
    }
    if (!error) error = state_of(chosen, rows, after);
    free(chosen);
    return error;
}

int rg_reorder(rg_model *model, const rg_state *state, const int32_t *parents, int rows, rg_state **after) {
    if (rows < 0) return RG_BAD_ARGUMENT;
    pthread_mutex_lock(&model->mutex);
    int error = reordered(state, parents, rows, after);
    pthread_mutex_unlock(&model->mutex);
    return error;
}

int rg_join(rg_model *model, const rg_state *one, const rg_state *other, rg_state **both) {
    int rows = one->rows + other->rows;
    const row_t **chosen = malloc((size_t)(rows ? rows : 1) * sizeof *chosen);
    if (!chosen) return RG_NO_MEMORY;
    for (int row = 0; row < rows; row++)
        chosen[row] = row < one->rows ? &one->row[row] : &other->row[row - one->rows];
    pthread_mutex_lock(&model->mutex);
    int error = state_of(chosen, rows, both);
    pthread_mutex_unlock(&model->mutex);
    free(chosen);
    return error;
}

static int stepped(rg_model *model, const rg_state *state, const int32_t *tokens, const outputs_t *outputs,
                   rg_state **after) {
    int rows = state->rows;
    row_t **all = malloc((size_t)(rows ? rows : 1) * sizeof *all);
    if (!all) return RG_NO_MEMORY;
    for (int row = 0; row < rows; row++) all[row] = &state->row[row];
    rg_state *found = NULL;
    int error = state_of((const row_t *const *)all, rows, &found);
    if (!error) {
        for (int row = 0; row < rows; row++) all[row] = &found->row[row];
        error = decode(model, -1, all, tokens, rows, outputs);
        if (error) state_release(found);
    }
    free(all);
    if (!error) *after = found;
    return error;
}

int rg_step(rg_model *model, const rg_state *state, const int32_t *tokens, float *logits, float *looks, int longest,
            rg_state **after) {
    if (looks && longest < rg_state_longest(state)) return RG_BAD_ARGUMENT;
    outputs_t outputs = {.logits = logits, .looks = looks, .longest = longest};
    pthread_mutex_lock(&model->mutex);
    int error = stepped(model, state, tokens, &outputs, after);
    pthread_mutex_unlock(&model->mutex);
    return error;
}

void rg_state_free(rg_model *model, rg_state *state) {
    if (!state) return;
    pthread_mutex_lock(&model->mutex);
    state_release(state);
    pthread_mutex_unlock(&model->mutex);
}

int rg_state_rows(const rg_state *state) { return state->rows; }

int rg_state_longest(const rg_state *state) {
    int longest = 0;
    for (int row = 0; row < state->rows; row++) longest = max(longest, state->row[row].memory->length);
    return longest;
}
