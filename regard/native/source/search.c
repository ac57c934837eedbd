/* Beam search without rules, for sentences that come and go: what `regard.decode.beams` does, step by step the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

typedef struct {
    row_t row;
    int32_t *tokens;
    float *scores; /* the log-probability of each token */
    int room;
    float total;
} open_t;

typedef struct {
    int32_t *tokens;
    float *scores;
    int length, scored; /* one more score than tokens where the end symbol came */
    float rank;
} found_t;

typedef struct {
    int64_t number;
    int limit, length, count; /* of the open hypotheses */
    int ended;                /* hypotheses, kept or not */
    open_t *open, *next;      /* `beam` of each */
    float *kept;              /* ranks of the `nbest` best finished ones, falling */
    shortlist_t *shortlist;   /* NULL: the whole vocabulary */
    found_t *found;
    int found_count, found_room;
} lane_t;

struct rg_search {
    rg_model *model;
    int beam, nbest, candidates, early_stopping, start, end;
    int failed; /* the error of a step that was left half done: nothing can follow it */
    uint8_t *never;
    float *penalties;
    int penalty_count;
    lane_t **lanes;
    int lane_count, lane_room;
    lane_t **done; /* in the order in which they ended */
    int done_count, done_room;
    int row_room;
    row_t **rows;
    const shortlist_t **shortlists; /* of each row */
    int32_t *tokens, *best_tokens, *best_counts;
    float *best_scores;
};

typedef struct {
    float total, score;
    int parent;
    int32_t token;
} candidate_t;

static void open_release(rg_model *model, open_t *open) {
    row_release(model, &open->row);
    free(open->tokens);
    free(open->scores);
    *open = (open_t){0};
}

static void lane_free(rg_search *search, lane_t *lane) {
    for (int i = 0; i < lane->count; i++) open_release(search->model, &lane->open[i]);
    for (int i = 0; i < lane->found_count; i++) free(lane->found[i].tokens), free(lane->found[i].scores);
    shortlist_free(lane->shortlist);
    free(lane->open), free(lane->next), free(lane->kept), free(lane->found), free(lane);
}

static int make_room(void **array, int *room, int count, size_t size) {
    if (count <= *room) return 0;
    int wanted = count + count / 2 + 8;
    void *larger = realloc(*array, (size_t)wanted * size);
    if (!larger) return RG_NO_MEMORY;
    *array = larger, *room = wanted;
    return 0;
}

rg_search *rg_search_new(rg_model *model, int beam, int nbest, int candidates, int early_stopping, int start, int end,
                         const uint8_t *never) {
    size_t vocabulary = (size_t)model->weights.shape.vocabulary;
    if (beam < 1 || nbest < 1 || nbest > beam || candidates < 1) return NULL;
    rg_search *search = calloc(1, sizeof *search);
    if (!search) return NULL;
    if ((size_t)candidates > vocabulary) candidates = (int)vocabulary;
    search->model = model, search->beam = beam, search->nbest = nbest, search->candidates = candidates;
    search->early_stopping = early_stopping, search->start = start, search->end = end;
    search->never = calloc(vocabulary + PANEL, 1); /* a panel may reach over the end */
    if (!search->never) {
        free(search);
        return NULL;
    }
    memcpy(search->never, never, vocabulary);
    return search;
}

void rg_search_free(rg_search *search) {
    if (!search) return;
    pthread_mutex_lock(&search->model->mutex);
    for (int i = 0; i < search->lane_count; i++) lane_free(search, search->lanes[i]);
    for (int i = 0; i < search->done_count; i++) lane_free(search, search->done[i]);
    pthread_mutex_unlock(&search->model->mutex);
    free(search->lanes), free(search->done), free(search->never), free(search->penalties), free(search->rows);
    free(search->tokens), free(search->best_tokens), free(search->best_counts), free(search->best_scores);
    free(search->shortlists), free(search);
}

int rg_search_penalties(rg_search *search, const float *penalties, int count) {
    float *own = malloc((size_t)count * sizeof *own);
    if (!own) return RG_NO_MEMORY;
    memcpy(own, penalties, (size_t)count * sizeof *own);
    free(search->penalties);
    search->penalties = own, search->penalty_count = count;
    return 0;
}

static lane_t *lane_new(const rg_search *search, int64_t number, int limit) {
    lane_t *lane = calloc(1, sizeof *lane);
    if (!lane) return NULL;
    lane->number = number, lane->limit = limit;
    lane->open = calloc((size_t)search->beam, sizeof *lane->open);
    lane->next = calloc((size_t)search->beam, sizeof *lane->next);
    lane->kept = malloc((size_t)search->nbest * sizeof *lane->kept);
    if (lane->open && lane->next && lane->kept) {
        for (int i = 0; i < search->nbest; i++) lane->kept[i] = -INFINITY;
        return lane;
    }
    free(lane->open), free(lane->next), free(lane->kept), free(lane);
    return NULL;
}

typedef struct {
    rg_search *search;
    const int32_t *candidates, *counts;
    const size_t *begins;
    lane_t **lanes;
} listing_t;

static void list_one(void *context, int sentence, int thread) {
    const listing_t *own = context;
    (void)thread;
    if (own->counts[sentence] > 0)
        own->lanes[sentence]->shortlist =
            shortlist_new(&own->search->model->weights.projection, own->search->never,
                          own->candidates + own->begins[sentence], own->counts[sentence]);
}

/* Gives new lanes their shortlists; a sentence without candidates has the whole vocabulary. */
static int give_shortlists(rg_search *search, lane_t **lanes, const int32_t *candidates, const int32_t *counts,
                           int sentences) {
    if (!counts) return 0;
    size_t *begins = malloc(((size_t)sentences + 1) * sizeof *begins);
    if (!begins) return RG_NO_MEMORY;
    begins[0] = 0;
    for (int i = 0; i < sentences; i++) begins[i + 1] = begins[i] + (size_t)counts[i];
    listing_t own = {search, candidates, counts, begins, lanes};
    pool_run(search->model->pool, list_one, &own, sentences);
    free(begins);
    for (int i = 0; i < sentences; i++)
        if (counts[i] > 0 && !lanes[i]->shortlist) return RG_NO_MEMORY;
    return 0;
}

/* Rising tokens of the vocabulary. */
static int are_candidates(const rg_search *search, const int32_t *candidates, const int32_t *counts, int sentences) {
    int vocabulary = search->model->weights.shape.vocabulary;
    for (int i = 0; i < sentences; i++) {
        if (counts[i] < 0 || counts[i] > vocabulary) return 0;
        for (int j = 0; j < counts[i]; j++, candidates++)
            if (*candidates < 0 || *candidates >= vocabulary || (j && *candidates <= candidates[-1])) return 0;
    }
    return 1;
}

static int admit(rg_search *search, const int32_t *tokens, const int32_t *places, const int32_t *lengths,
                 const int32_t *limits, const int64_t *numbers, const int32_t *candidates, const int32_t *counts,
                 int sentences) {
    memory_t **memories = calloc((size_t)(sentences ? sentences : 1), sizeof *memories);
    if (!memories) return RG_NO_MEMORY;
    int made = 0;
    int error = make_room((void **)&search->lanes, &search->lane_room, search->lane_count + sentences,
                          sizeof *search->lanes);
    for (; made < sentences && !error; made++) {
        lane_t *lane = lane_new(search, numbers[made], limits[made]);
        if (!lane) {
            error = RG_NO_MEMORY;
            break;
        }
        search->lanes[search->lane_count + made] = lane;
    }
    if (!error) error = give_shortlists(search, search->lanes + search->lane_count, candidates, counts, sentences);
    if (!error) error = encode(search->model, tokens, places, lengths, sentences, memories);
    for (int i = 0; i < made; i++) {
        lane_t *lane = search->lanes[search->lane_count + i];
        if (error) {
            lane_free(search, lane);
            continue;
        }
        lane->count = 1;
        lane->open[0].row.memory = memories[i];
    }
    if (!error) search->lane_count += sentences;
    free(memories);
    return error;
}

int rg_search_admit(rg_search *search, const int32_t *tokens, const int32_t *places, const int32_t *lengths,
                    const int32_t *limits, const int64_t *numbers, const int32_t *candidates, const int32_t *counts,
                    int sentences) {
    if (counts && !are_candidates(search, candidates, counts, sentences)) return RG_BAD_ARGUMENT;
    for (int i = 0; i < sentences; i++)
        if (limits[i] < 1 || limits[i] >= search->penalty_count) return RG_BAD_ARGUMENT;
    pthread_mutex_lock(&search->model->mutex);
    int error = admit(search, tokens, places, lengths, limits, numbers, candidates, counts, sentences);
    pthread_mutex_unlock(&search->model->mutex);
    return error;
}

int rg_search_cancel(rg_search *search, int64_t number) {
    pthread_mutex_lock(&search->model->mutex);
    int kept = 0;
    for (int i = 0; i < search->lane_count; i++)
        if (search->lanes[i]->number == number)
            lane_free(search, search->lanes[i]);
        else
            search->lanes[kept++] = search->lanes[i];
    search->lane_count = kept;
    kept = 0;
    for (int i = 0; i < search->done_count; i++)
        if (search->done[i]->number == number)
            lane_free(search, search->done[i]);
        else
            search->done[kept++] = search->done[i];
    search->done_count = kept;
    pthread_mutex_unlock(&search->model->mutex);
    return 0;
}

/* Puts a hypothesis among the finished ones; `score` is that of the end symbol, where `ended`. */
static int record(lane_t *lane, const open_t *open, int length, float rank, int ended, float score) {
    int error = make_room((void **)&lane->found, &lane->found_room, lane->found_count + 1, sizeof *lane->found);
    if (error) return error;
    found_t one = {malloc(((size_t)length + 1) * sizeof(int32_t)), malloc(((size_t)length + 1) * sizeof(float)), length,
                   length + ended, rank};
    if (!one.tokens || !one.scores) {
        free(one.tokens), free(one.scores);
        return RG_NO_MEMORY;
    }
    if (length) {
        memcpy(one.tokens, open->tokens, (size_t)length * sizeof *one.tokens);
        memcpy(one.scores, open->scores, (size_t)length * sizeof *one.scores);
    }
    one.scores[length] = score;
    lane->found[lane->found_count++] = one;
    return 0;
}

static void keep(const rg_search *search, lane_t *lane, float rank) {
    int at = search->nbest - 1;
    if (!(rank > lane->kept[at])) return;
    for (; at > 0 && lane->kept[at - 1] < rank; at--) lane->kept[at] = lane->kept[at - 1];
    lane->kept[at] = rank;
}

/* The best continuations of all open hypotheses, best first: each has its own in order. */
static int best_candidates(const rg_search *search, const lane_t *lane, int first, candidate_t *found) {
    int at[lane->count], count = 0;
    memset(at, 0, sizeof at);
    while (count < search->candidates) {
        candidate_t best = {-INFINITY, 0.0f, -1, 0};
        for (int i = 0; i < lane->count; i++) {
            if (at[i] >= search->best_counts[first + i]) continue;
            size_t place = (size_t)(first + i) * (size_t)search->candidates + (size_t)at[i];
            float total = lane->open[i].total + search->best_scores[place];
            if (total > best.total)
                best = (candidate_t){total, search->best_scores[place], i, search->best_tokens[place]};
        }
        if (best.parent < 0) break;
        at[best.parent]++;
        found[count++] = best;
    }
    return count;
}

static int finish(const rg_search *search, lane_t *lane, const candidate_t *candidates, int count) {
    float worst = lane->kept[search->nbest - 1], penalty = search->penalties[lane->length + 1];
    int error = 0;
    for (int i = 0; i < count && i < search->beam && !error; i++) {
        if (candidates[i].token != search->end) continue;
        float rank = candidates[i].total / penalty;
        if (rank > worst)
            error = record(lane, &lane->open[candidates[i].parent], lane->length, rank, 1, candidates[i].score);
        keep(search, lane, rank);
        lane->ended++;
    }
    return error;
}

static int branch(rg_model *model, open_t *parent, int is_last, int length, const candidate_t *candidate, open_t *to) {
    if (is_last) { /* nobody else continues it */
        *to = *parent;
        *parent = (open_t){0};
    } else {
        *to = (open_t){.room = length + 16};
        to->tokens = malloc((size_t)to->room * sizeof *to->tokens);
        to->scores = malloc((size_t)to->room * sizeof *to->scores);
        if (!to->tokens || !to->scores || row_copy(model, &parent->row, &to->row)) {
            free(to->tokens), free(to->scores);
            *to = (open_t){0};
            return RG_NO_MEMORY;
        }
        if (length) {
            memcpy(to->tokens, parent->tokens, (size_t)length * sizeof *to->tokens);
            memcpy(to->scores, parent->scores, (size_t)length * sizeof *to->scores);
        }
    }
    if (length == to->room) {
        int room = length + 16;
        int32_t *tokens = realloc(to->tokens, (size_t)room * sizeof *tokens);
        if (tokens) to->tokens = tokens;
        float *scores = realloc(to->scores, (size_t)room * sizeof *scores);
        if (scores) to->scores = scores;
        if (!tokens || !scores) return RG_NO_MEMORY;
        to->room = room;
    }
    to->tokens[length] = candidate->token;
    to->scores[length] = candidate->score;
    to->total = candidate->total;
    return 0;
}

static int grow(const rg_search *search, lane_t *lane, const candidate_t *candidates, int count) {
    int uses[lane->count], opened = 0, error = 0;
    memset(uses, 0, sizeof uses);
    for (int i = 0, open = 0; i < count && open < search->beam; i++)
        if (candidates[i].token != search->end) uses[candidates[i].parent]++, open++;
    for (int i = 0; i < count && opened < search->beam && !error; i++) {
        if (candidates[i].token == search->end) continue;
        int parent = candidates[i].parent;
        error = branch(search->model, &lane->open[parent], --uses[parent] == 0, lane->length, &candidates[i],
                       &lane->next[opened]);
        opened++;
    }
    for (int i = 0; i < lane->count; i++) open_release(search->model, &lane->open[i]);
    open_t *spare = lane->open;
    lane->open = lane->next, lane->next = spare;
    lane->count = opened;
    lane->length++;
    return error;
}

static int is_over(const rg_search *search, lane_t *lane, int *error) {
    int at_limit = lane->length == lane->limit;
    if (at_limit)
        for (int i = 0; i < lane->count && !*error; i++)
            *error = record(lane, &lane->open[i], lane->length, lane->open[i].total / search->penalties[lane->length],
                            0, 0.0f);
    if (search->early_stopping && lane->ended >= search->beam) return 1;
    float most = -INFINITY;
    for (int i = 0; i < lane->count; i++) most = lane->open[i].total > most ? lane->open[i].total : most;
    return at_limit || lane->kept[search->nbest - 1] >= most / search->penalties[lane->limit];
}

static int is_same(const found_t *one, const found_t *other) {
    return one->length == other->length &&
           (!one->length || !memcmp(one->tokens, other->tokens, (size_t)one->length * sizeof *one->tokens));
}

/* The `nbest` best, best first, in front; of equal ones the better. */
static void choose_best(const rg_search *search, lane_t *lane) {
    int kept = 0;
    for (int i = 1; i < lane->found_count; i++) { /* stable */
        found_t one = lane->found[i];
        int at = i;
        for (; at > 0 && lane->found[at - 1].rank < one.rank; at--) lane->found[at] = lane->found[at - 1];
        lane->found[at] = one;
    }
    for (int i = 0; i < lane->found_count; i++) {
        int is_new = kept < search->nbest;
        for (int j = 0; j < kept && is_new; j++) is_new = !is_same(&lane->found[j], &lane->found[i]);
        if (is_new) {
            found_t one = lane->found[i];
            if (i != kept) lane->found[i] = (found_t){0};
            lane->found[kept++] = one;
        } else {
            free(lane->found[i].tokens), free(lane->found[i].scores);
            lane->found[i] = (found_t){0};
        }
    }
    lane->found_count = kept;
}

static int search_room(rg_search *search, int rows) {
    if (rows <= search->row_room) return 0;
    size_t wanted = (size_t)rows + (size_t)rows / 2, most = (size_t)search->candidates;
    free(search->rows), free(search->tokens), free(search->best_tokens), free(search->best_counts);
    free(search->best_scores), free(search->shortlists);
    search->rows = malloc(wanted * sizeof *search->rows);
    search->shortlists = malloc(wanted * sizeof *search->shortlists);
    search->tokens = malloc(wanted * sizeof *search->tokens);
    search->best_counts = malloc(wanted * sizeof *search->best_counts);
    search->best_tokens = malloc(wanted * most * sizeof *search->best_tokens);
    search->best_scores = malloc(wanted * most * sizeof *search->best_scores);
    int has_all = search->rows && search->shortlists && search->tokens && search->best_counts &&
                  search->best_tokens && search->best_scores;
    search->row_room = has_all ? (int)wanted : 0;
    return has_all ? 0 : RG_NO_MEMORY;
}

static int step(rg_search *search) {
    int rows = 0, first = 0, kept = 0;
    for (int i = 0; i < search->lane_count; i++) rows += search->lanes[i]->count;
    int error = search_room(search, rows);
    if (!error)
        error = make_room((void **)&search->done, &search->done_room, search->done_count + search->lane_count,
                          sizeof *search->done);
    if (error) return error;
    rows = 0;
    for (int i = 0; i < search->lane_count; i++) {
        lane_t *lane = search->lanes[i];
        for (int j = 0; j < lane->count; j++, rows++) {
            search->rows[rows] = &lane->open[j].row;
            search->shortlists[rows] = lane->shortlist;
            search->tokens[rows] = lane->length ? lane->open[j].tokens[lane->length - 1] : search->start;
        }
    }
    outputs_t outputs = {.most = search->candidates,
                         .never = search->never,
                         .best_scores = search->best_scores,
                         .best_tokens = search->best_tokens,
                         .best_counts = search->best_counts,
                         .shortlists = search->shortlists};
    error = decode(search->model, search->rows, search->tokens, rows, &outputs);
    if (error) return error;
    candidate_t *candidates = malloc((size_t)search->candidates * sizeof *candidates);
    if (!candidates) return RG_NO_MEMORY;
    for (int i = 0; i < search->lane_count; i++) {
        lane_t *lane = search->lanes[i];
        int own = lane->count, count = best_candidates(search, lane, first, candidates);
        first += own;
        if (!error) error = finish(search, lane, candidates, count);
        if (!error) error = grow(search, lane, candidates, count);
        if (!error && is_over(search, lane, &error)) {
            for (int j = 0; j < lane->count; j++) open_release(search->model, &lane->open[j]);
            lane->count = 0;
            shortlist_free(lane->shortlist);
            lane->shortlist = NULL;
            choose_best(search, lane);
            search->done[search->done_count++] = lane;
        } else {
            search->lanes[kept++] = lane;
        }
    }
    search->lane_count = kept;
    free(candidates);
    return error;
}

int rg_search_step(rg_search *search) {
    pthread_mutex_lock(&search->model->mutex);
    int error = search->failed ? search->failed : step(search);
    search->failed = error;
    pthread_mutex_unlock(&search->model->mutex);
    return error;
}

int rg_search_run(rg_search *search, int count) {
    int error;
    do error = rg_search_step(search);
    while (!error && search->lane_count && search->done_count < count);
    return error;
}

int rg_search_finished(const rg_search *search, int64_t *hypotheses, int64_t *tokens) {
    *hypotheses = *tokens = 0;
    for (int i = 0; i < search->done_count; i++) {
        const lane_t *lane = search->done[i];
        *hypotheses += lane->found_count;
        for (int j = 0; j < lane->found_count; j++) *tokens += lane->found[j].length;
    }
    return search->done_count;
}

void rg_search_take(rg_search *search, int64_t *whole, float *real) {
    int count = search->done_count;
    int64_t hypotheses, total;
    rg_search_finished(search, &hypotheses, &total);
    int64_t *lengths = whole + 2 * count, *scored = lengths + hypotheses, *tokens = scored + hypotheses;
    float *scores = real + hypotheses;
    for (int i = 0; i < count; i++) {
        const lane_t *lane = search->done[i];
        whole[i] = lane->number, whole[count + i] = lane->found_count;
        for (int j = 0; j < lane->found_count; j++) {
            const found_t *one = &lane->found[j];
            *lengths++ = one->length, *scored++ = one->scored, *real++ = one->rank;
            for (int at = 0; at < one->length; at++) *tokens++ = one->tokens[at];
            memcpy(scores, one->scores, (size_t)one->scored * sizeof *scores);
            scores += one->scored;
        }
    }
    pthread_mutex_lock(&search->model->mutex);
    for (int i = 0; i < count; i++) lane_free(search, search->done[i]);
    pthread_mutex_unlock(&search->model->mutex);
    search->done_count = 0;
}

int rg_search_written(const rg_search *search, int64_t number, int place, int32_t *tokens, int room) {
    for (int i = 0; i < search->lane_count; i++) {
        const lane_t *lane = search->lanes[i];
        if (lane->number != number) continue;
        if (place >= lane->count || lane->length > room) return -1;
        if (lane->length) memcpy(tokens, lane->open[place].tokens, (size_t)lane->length * sizeof *tokens);
        return lane->length;
    }
    return -1;
}
