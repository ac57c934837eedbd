/* Parts of a matrix product whose results stay in registers while they are summed; what attention and the products of
 * training share. Included by what is compiled once for each instruction set. */
#ifndef REGARD_TILES_H
#define REGARD_TILES_H

#include "vectors.h"

#if defined(__AVX512F__)
#define TILE_ROWS 6
#define TILE_VECTORS 4
#else
#define TILE_ROWS 3
#define TILE_VECTORS 1
#endif

/* out[r] = Σ_j left[r, j] · right[j], or with `add` more by it; the sum runs along j, whatever the tile. */
INLINE void product_tile(int rows, int vectors, int count, const float *left, size_t left_row, size_t left_column,
                         const float *right, size_t right_row, float *out, size_t out_row, int add) {
    vector_t sums[TILE_ROWS][TILE_VECTORS];
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < vectors; v++) sums[r][v] = all(0.0f);
    for (int j = 0; j < count; j++, left += left_column, right += right_row) {
        vector_t own[TILE_VECTORS];
        UNROLLED for (int v = 0; v < vectors; v++) own[v] = load(right + v * LANES);
        UNROLLED for (int r = 0; r < rows; r++) {
            vector_t factor = all(left[(size_t)r * left_row]);
            UNROLLED for (int v = 0; v < vectors; v++) sums[r][v] += factor * own[v];
        }
    }
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < vectors; v++) {
            float *to = out + (size_t)r * out_row + v * LANES;
            if (add) sums[r][v] += load(to);
            store(to, sums[r][v]);
        }
}

/* Tile below tile; `left_tile` numbers are between the first of a tile and that of the next. */
INLINE void product_rows(int rows, int vectors, int count, const float *left, size_t left_tile, size_t left_row,
                         size_t left_column, const float *right, size_t right_row, float *out, size_t out_row, int add) {
    for (int row = 0; row < rows; row += TILE_ROWS, left += left_tile) {
        float *to = out + (size_t)row * out_row;
#define CASE(n) \
    case n: product_tile(n, vectors, count, left, left_row, left_column, right, right_row, to, out_row, add); break
        switch (rows - row < TILE_ROWS ? rows - row : TILE_ROWS) {
            CASE(1);
            CASE(2);
            CASE(3);
#if TILE_ROWS > 3
            CASE(4);
            CASE(5);
            CASE(6);
#endif
        }
#undef CASE
    }
}

/* All columns, whose number is a multiple of 16. */
INLINE void product_columns(int rows, int width, int count, const float *left, size_t left_tile, size_t left_row,
                            size_t left_column, const float *right, size_t right_row, float *out, size_t out_row,
                            int add) {
    int done = 0;
#define PART(vectors)                                                                                               \
    for (; done + (vectors)*LANES <= width; done += (vectors)*LANES)                                                \
    product_rows(rows, vectors, count, left, left_tile, left_row, left_column, right + done, right_row, out + done, \
                 out_row, add)
#if TILE_VECTORS > 1
    PART(4);
    PART(2);
#endif
    PART(1);
#undef PART
}

#endif
