/* Beam search without rules, for sentences that come and go: what `regard.decode.beams` does, step by step the same. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define FEW 8 /* rows: one thread steps them as fast as several, which would all read the same weights */

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

typedef struct {
    lane_t **list;
    int count, room;
} lanes_t;

/* Sentences that one thread searches, with a store of keys and values of their own. */
typedef struct {
    lanes_t open, done; /* done: in the order in which they ended */
    int error;
    int row_room;
    row_t **rows;
    const shortlist_t **shortlists; /* of each row */
    int32_t *tokens, *best_tokens, *best_counts;
    float *best_scores;
} share_t;

struct rg_search {
    rg_model *model;
    int beam, nbest, candidates, early_stopping, start, end;
    int failed; /* the error of a step that was left half done: nothing can follow it */
    uint8_t *never;
    float *penalties;
    int penalty_count;
    share_t *shares; /* one for each thread */
    int share_count;
    lanes_t done;
};

typedef struct {
    float total, score;
    int parent;
    int32_t token;
} candidate_t;

static void open_release(open_t *open) {
    row_release(&open->row);
    free(open->tokens);
    free(open->scores);
    *open = (open_t){0};
}

static void lane_free(lane_t *lane) {
    for (int i = 0; i < lane->count; i++) open_release(&lane->open[i]);
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
    search->share_count = pool_threads(model->pool);
    search->shares = calloc((size_t)search->share_count, sizeof *search->shares);
    if (search->shares) return search;
    free(search->never), free(search);
    return NULL;
}

static void lanes_free(lanes_t *lanes) {
    for (int i = 0; i < lanes->count; i++) lane_free(lanes->list[i]);
    free(lanes->list);
}

void rg_search_free(rg_search *search) {
    if (!search) return;
    pthread_mutex_lock(&search->model->mutex);
    for (int i = 0; i < search->share_count; i++) {
        share_t *share = &search->shares[i];
        lanes_free(&share->open), lanes_free(&share->done);
        free(share->rows), free(share->shortlists), free(share->tokens);
        free(share->best_tokens), free(share->best_counts), free(share->best_scores);
    }
    lanes_free(&search->done);
    pthread_mutex_unlock(&search->model->mutex);
    free(search->shares), free(search->never), free(search->penalties), free(search);
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

/* The share with the fewest sentences. */
static int smallest_share(const rg_search *search) {
    int found = 0;
    for (int i = 1; i < search->share_count; i++)
        if (search->shares[i].open.count < search->shares[found].open.count) found = i;
    return found;
}

static int open_lanes(rg_search *search, lane_t **lanes, memory_t **memories, int count) {
    for (int i = 0; i < search->share_count; i++) { /* any of them may get all */
        lanes_t *open = &search->shares[i].open;
        if (make_room((void **)&open->list, &open->room, open->count + count, sizeof *open->list)) return RG_NO_MEMORY;
    }
    for (int i = 0; i < count; i++) {
        int share = smallest_share(search);
        lanes_t *open = &search->shares[share].open;
        lanes[i]->count = 1;
        lanes[i]->open[0].row = (row_t){.store = &search->model->stores[share], .memory = memories[i]};
        open->list[open->count++] = lanes[i];
    }
    return 0;
}

static int admit(rg_search *search, const int32_t *tokens, const int32_t *places, const int32_t *lengths,
                 const int32_t *limits, const int64_t *numbers, const int32_t *candidates, const int32_t *counts,
                 int sentences) {
    memory_t **memories = calloc((size_t)(sentences ? sentences : 1), sizeof *memories);
    lane_t **lanes = calloc((size_t)(sentences ? sentences : 1), sizeof *lanes);
    int error = memories && lanes ? 0 : RG_NO_MEMORY, encoded = 0;
    for (int i = 0; i < sentences && !error; i++)
        if (!(lanes[i] = lane_new(search, numbers[i], limits[i]))) error = RG_NO_MEMORY;
    if (!error) error = give_shortlists(search, lanes, candidates, counts, sentences);
    if (!error) error = encode(search->model, tokens, places, lengths, sentences, memories), encoded = !error;
    if (!error) error = open_lanes(search, lanes, memories, sentences);
    for (int i = 0; i < sentences && error; i++) {
        if (lanes && lanes[i]) lane_free(lanes[i]);
        if (encoded) memory_release(memories[i]);
    }
    free(memories), free(lanes);
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

static void cancel(lanes_t *lanes, int64_t number) {
    int kept = 0;
    for (int i = 0; i < lanes->count; i++)
        if (lanes->list[i]->number == number)
            lane_free(lanes->list[i]);
        else
            lanes->list[kept++] = lanes->list[i];
    lanes->count = kept;
}

int rg_search_cancel(rg_search *search, int64_t number) {
    pthread_mutex_lock(&search->model->mutex);
    for (int i = 0; i < search->share_count; i++) cancel(&search->shares[i].open, number);
    cancel(&search->done, number);
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
static int best_candidates(const rg_search *search, const share_t *share, const lane_t *lane, int first,
                           candidate_t *found) {
    int at[lane->count], count = 0;
    memset(at, 0, sizeof at);
    while (count < search->candidates) {
        candidate_t best = {-INFINITY, 0.0f, -1, 0};
        for (int i = 0; i < lane->count; i++) {
            if (at[i] >= share->best_counts[first + i]) continue;
            size_t place = (size_t)(first + i) * (size_t)search->candidates + (size_t)at[i];
            float total = lane->open[i].total + share->best_scores[place];
            if (total > best.total)
                best = (candidate_t){total, share->best_scores[place], i, share->best_tokens[place]};
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

static int branch(open_t *parent, int is_last, int length, const candidate_t *candidate, open_t *to) {
    if (is_last) { /* nobody else continues it */
        *to = *parent;
        *parent = (open_t){0};
    } else {
        *to = (open_t){.room = length + 16};
        to->tokens = malloc((size_t)to->room * sizeof *to->tokens);
        to->scores = malloc((size_t)to->room * sizeof *to->scores);
        if (!to->tokens || !to->scores || row_copy(&parent->row, &to->row)) {
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

/* Whether what begins with so much can end among the best: further tokens only lower it, and the penalty is largest at the
 * limit. */
static int can_overtake(const rg_search *search, const lane_t *lane, float total) {
    return total / search->penalties[lane->limit] > lane->kept[search->nbest - 1];
}

/* How many of the candidates, best first, are worth another step. Those that cannot overtake come last, and so do all that
 * follow from them: they take no place from the others, and leaving them out changes no result. With early stopping they
 * count when they end. */
static int worth_growing(const rg_search *search, const lane_t *lane, const candidate_t *candidates, int count) {
    while (!search->early_stopping && count && !can_overtake(search, lane, candidates[count - 1].total)) count--;
    return count;
}

static int grow(const rg_search *search, lane_t *lane, const candidate_t *candidates, int count) {
    int uses[lane->count], opened = 0, error = 0;
    memset(uses, 0, sizeof uses);
    count = worth_growing(search, lane, candidates, count);
    for (int i = 0, open = 0; i < count && open < search->beam; i++)
        if (candidates[i].token != search->end) uses[candidates[i].parent]++, open++;
    for (int i = 0; i < count && opened < search->beam && !error; i++) {
        if (candidates[i].token == search->end) continue;
        int parent = candidates[i].parent;
        error = branch(&lane->open[parent], --uses[parent] == 0, lane->length, &candidates[i], &lane->next[opened]);
        opened++;
    }
    for (int i = 0; i < lane->count; i++) open_release(&lane->open[i]);
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
    return at_limit || !can_overtake(search, lane, most);
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

static int share_room(const rg_search *search, share_t *share, int rows) {
    if (rows <= share->row_room) return 0;
    size_t wanted = (size_t)rows + (size_t)rows / 2, most = (size_t)search->candidates;
    free(share->rows), free(share->shortlists), free(share->tokens);
    free(share->best_tokens), free(share->best_counts), free(share->best_scores);
    share->rows = malloc(wanted * sizeof *share->rows);
    share->shortlists = malloc(wanted * sizeof *share->shortlists);
    share->tokens = malloc(wanted * sizeof *share->tokens);
    share->best_counts = malloc(wanted * sizeof *share->best_counts);
    share->best_tokens = malloc(wanted * most * sizeof *share->best_tokens);
    share->best_scores = malloc(wanted * most * sizeof *share->best_scores);
    int has_all = share->rows && share->shortlists && share->tokens && share->best_counts && share->best_tokens &&
                  share->best_scores;
    share->row_room = has_all ? (int)wanted : 0;
    return has_all ? 0 : RG_NO_MEMORY;
}

/* The open hypotheses of all sentences, with the tokens that they read next. */
static void gather(const rg_search *search, share_t *share) {
    int rows = 0;
    for (int i = 0; i < share->open.count; i++) {
        lane_t *lane = share->open.list[i];
        for (int j = 0; j < lane->count; j++, rows++) {
            share->rows[rows] = &lane->open[j].row;
            share->shortlists[rows] = lane->shortlist;
            share->tokens[rows] = lane->length ? lane->open[j].tokens[lane->length - 1] : search->start;
        }
    }
}

/* What becomes of the sentences after a step. */
static int settle(const rg_search *search, share_t *share) {
    candidate_t *candidates = malloc((size_t)search->candidates * sizeof *candidates);
    if (!candidates) return RG_NO_MEMORY;
    int first = 0, kept = 0, error = 0;
    for (int i = 0; i < share->open.count; i++) {
        lane_t *lane = share->open.list[i];
        int own = lane->count, count = best_candidates(search, share, lane, first, candidates);
        first += own;
        if (!error) error = finish(search, lane, candidates, count);
        if (!error) error = grow(search, lane, candidates, count);
        if (!error && is_over(search, lane, &error)) {
            for (int j = 0; j < lane->count; j++) open_release(&lane->open[j]);
            lane->count = 0;
            shortlist_free(lane->shortlist);
            lane->shortlist = NULL;
            choose_best(search, lane);
            share->done.list[share->done.count++] = lane;
        } else {
            share->open.list[kept++] = lane;
        }
    }
    share->open.count = kept;
    free(candidates);
    return error;
}

/* `thread` takes the step alone; -1: all threads may share its rows. */
static int step(const rg_search *search, share_t *share, int thread) {
    int rows = 0;
    for (int i = 0; i < share->open.count; i++) rows += share->open.list[i]->count;
    int error = share_room(search, share, rows);
    if (!error)
        error = make_room((void **)&share->done.list, &share->done.room, share->done.count + share->open.count,
                          sizeof *share->done.list);
    if (error) return error;
    gather(search, share);
    outputs_t outputs = {.most = search->candidates,
                         .never = search->never,
                         .best_scores = share->best_scores,
                         .best_tokens = share->best_tokens,
                         .best_counts = share->best_counts,
                         .shortlists = share->shortlists};
    if (thread < 0 && rows <= FEW) thread = 0;
    error = decode(search->model, thread, share->rows, share->tokens, rows, &outputs);
    return error ? error : settle(search, share);
}

typedef struct {
    rg_search *search;
    int wanted; /* finished sentences, those of before included */
    atomic_int finished;
} running_t;

static void run_share(running_t *own, share_t *share, int thread) {
    do {
        int before = share->done.count;
        share->error = step(own->search, share, thread);
        atomic_fetch_add(&own->finished, share->error ? own->wanted : share->done.count - before); /* nobody goes on */
    } while (!share->error && share->open.count && atomic_load(&own->finished) < own->wanted);
}

static void run_one(void *context, int number, int thread) {
    running_t *own = context;
    share_t *share = &own->search->shares[number];
    if (share->open.count) run_share(own, share, thread);
}

/* The finished sentences of all shares together. */
static int collect(rg_search *search) {
    lanes_t *done = &search->done;
    for (int i = 0; i < search->share_count; i++) {
        lanes_t *own = &search->shares[i].done;
        if (make_room((void **)&done->list, &done->room, done->count + own->count, sizeof *done->list))
            return RG_NO_MEMORY;
        if (own->count) memcpy(done->list + done->count, own->list, (size_t)own->count * sizeof *own->list);
        done->count += own->count, own->count = 0;
    }
    return 0;
}

static int run(rg_search *search, int count) {
    int busy = 0, error = 0;
    share_t *last = NULL;
    for (int i = 0; i < search->share_count; i++)
        if (search->shares[i].open.count) last = &search->shares[i], busy++;
    running_t own = {search, count, search->done.count};
    if (busy == 1)
        run_share(&own, last, -1);
    else if (busy)
        pool_run(search->model->pool, run_one, &own, search->share_count);
    for (int i = 0; i < search->share_count && !error; i++) error = search->shares[i].error;
    return error ? error : collect(search);
}

/* Each share steps until so many sentences are finished: no thread waits for another after each step. */
int rg_search_run(rg_search *search, int count) {
    pthread_mutex_lock(&search->model->mutex);
    if (!search->failed) search->failed = run(search, count);
    int error = search->failed;
    pthread_mutex_unlock(&search->model->mutex);
    return error;
}

int rg_search_finished(const rg_search *search, int64_t *hypotheses, int64_t *tokens) {
    *hypotheses = *tokens = 0;
    for (int i = 0; i < search->done.count; i++) {
        const lane_t *lane = search->done.list[i];
        *hypotheses += lane->found_count;
        for (int j = 0; j < lane->found_count; j++) *tokens += lane->found[j].length;
    }
    return search->done.count;
}

void rg_search_take(rg_search *search, int64_t *whole, float *real) {
    int count = search->done.count;
    int64_t hypotheses, total;
    rg_search_finished(search, &hypotheses, &total);
    int64_t *lengths = whole + 2 * count, *scored = lengths + hypotheses, *tokens = scored + hypotheses;
    float *scores = real + hypotheses;
    for (int i = 0; i < count; i++) {
        const lane_t *lane = search->done.list[i];
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
    for (int i = 0; i < count; i++) lane_free(search->done.list[i]);
    pthread_mutex_unlock(&search->model->mutex);
    search->done.count = 0;
}

int rg_search_written(const rg_search *search, int64_t number, int place, int32_t *tokens, int room) {
    for (int i = 0; i < search->share_count; i++) {
        const lanes_t *open = &search->shares[i].open;
        for (int j = 0; j < open->count; j++) {
            const lane_t *lane = open->list[j];
            if (lane->number != number) continue;
            if (place >= lane->count || lane->length > room) return -1;
            if (lane->length) memcpy(tokens, lane->open[place].tokens, (size_t)lane->length * sizeof *tokens);
            return lane->length;
        }
    }
    return -1;
}
