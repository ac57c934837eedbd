/* A sentence's shortlist: the tokens that its translation may hold, and their part of the output matrix. */
#ifndef REGARD_SHORTLIST_H
#define REGARD_SHORTLIST_H

#include "kernels.h"

typedef struct {
    rg_matrix matrix; /* an output for each token */
    int32_t *tokens;  /* rising */
    uint8_t *never;   /* of each, 1 where it is never generated; padded */
    int count;
    void *block;
} shortlist_t;

/* Of tokens that the matrix has, rising; NULL without memory. `never` has a byte for each token of the vocabulary. */
shortlist_t *shortlist_new(const rg_matrix *from, const uint8_t *never, const int32_t *tokens, int count);
void shortlist_free(shortlist_t *list);

#endif
