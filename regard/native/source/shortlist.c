/* The rows of the output matrix that one sentence may need, copied together into panels once, when it is admitted. */
#include "shortlist.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64
#define PIECE 4 /* bytes: a number of fp32, or a group of int8 */

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

void shortlist_free(shortlist_t *list) {
    if (!list) return;
    free(list->block);
    free(list);
}

/* Each output of a panel has `groups` pieces, with the pieces of the 63 others between two of them. */
static void gather(const rg_matrix *from, const shortlist_t *list, size_t groups, char *to) {
    size_t panel = groups * PIECE * PANEL;
    for (int i = 0; i < list->count; i++) {
        size_t token = (size_t)list->tokens[i], own = (size_t)i;
        const char *source = (const char *)from->weights + token / PANEL * panel + token % PANEL * PIECE;
        char *target = to + own / PANEL * panel + own % PANEL * PIECE;
        for (size_t group = 0; group < groups; group++)
            memcpy(target + group * PIECE * PANEL, source + group * PIECE * PANEL, PIECE);
    }
}

shortlist_t *shortlist_new(const rg_matrix *from, const uint8_t *never, const int32_t *tokens, int count) {
    shortlist_t *list = calloc(1, sizeof *list);
    if (!list) return NULL;
    size_t wide = (size_t)PADDED(count);
    size_t groups = from->scales ? (size_t)ROUND_UP(from->inputs, GROUP) / GROUP : (size_t)from->inputs;
    size_t weights = aligned(groups * PIECE * wide), row = aligned(wide * sizeof(float));
    size_t ids = aligned(wide * sizeof(int32_t)), flags = aligned(wide);
    char *at = list->block = aligned_alloc(ALIGNMENT, weights + 2 * row + ids + flags);
    if (!at) {
        free(list);
        return NULL;
    }
    list->count = count;
    float *scales = (float *)(at + weights), *bias = (float *)(at + weights + row);
    list->tokens = (int32_t *)(at + weights + 2 * row);
    list->never = (uint8_t *)(at + weights + 2 * row + ids);
    memset(at, from->scales ? 128 : 0, weights); /* what fills the last panel up has zero weights … */
    memcpy(list->tokens, tokens, (size_t)count * sizeof *tokens);
    for (size_t i = 0; i < wide; i++) {
        int is_there = i < (size_t)count;
        scales[i] = is_there && from->scales ? from->scales[tokens[i]] : 0.0f;
        bias[i] = is_there ? from->bias[tokens[i]] : -INFINITY; /* … and is never chosen */
        list->never[i] = is_there ? never[tokens[i]] : 0;
    }
    gather(from, list, groups, at);
    list->matrix = (rg_matrix){from->inputs, count, at, from->scales ? scales : NULL, bias};
    return list;
}
