/* Matrix products of training, compiled once for each instruction set, with PRODUCTS as the name of the table; see
 * training.h. A block of the right factor is brought together so that it is read from front to back and stays in the
 * second-level cache, and so do the rows of the left factor that meet it. */
#include "training.h"

#include "tiles.h"

#if defined(__AVX512F__)
#define COLUMNS (TILE_VECTORS * LANES) /* of a panel of the right factor */

enum { INNER = 256, ROWS = 480 }; /* of a block: what both factors share, and what the left one has */

/* panel[k][column] for `inner` of the right factor's rows and `width` columns from `first`; 0 up to a whole vector. */
static void gather_right(const rg_product *p, int from_inner, int inner, int first, int width, float *panel) {
    size_t row = (size_t)p->right_row, column = (size_t)p->right_column;
    const float *from = p->right + (size_t)from_inner * row + (size_t)first * column;
    if (column == 1) {
        for (int k = 0; k < inner; k++, from += row, panel += COLUMNS)
            for (int i = 0; i < width; i += LANES) {
                if (width - i < LANES) {
                    float rest[LANES] = {0};
                    memcpy(rest, from + i, (size_t)(width - i) * sizeof *rest);
                    store(panel + i, load(rest));
                } else {
                    store(panel + i, load(from + i));
                }
            }
        return;
    }
    for (int i = 0; i < width; i += LANES, from += LANES * column) {
        int there = width - i < LANES ? width - i : LANES, whole = row == 1 ? inner / LANES * LANES : 0;
        for (int k = 0; k < whole; k += LANES) {
            vector_t block[LANES];
            for (int r = 0; r < LANES; r++) block[r] = r < there ? load(from + (size_t)r * column + k) : all(0.0f);
            transpose(block);
            for (int r = 0; r < LANES; r++) store(panel + (size_t)(k + r) * COLUMNS + i, block[r]);
        }
        for (int k = whole; k < inner; k++)
            for (int r = 0; r < LANES; r++)
                panel[(size_t)k * COLUMNS + (size_t)(i + r)] = r < there ? from[(size_t)r * column + (size_t)k * row] : 0;
    }
}

/* together[tile][k][row of the tile], for a left factor whose columns lie apart. */
static void gather_left(const rg_product *p, int first, int rows, int from_inner, int inner, float *together) {
    size_t row = (size_t)p->left_row, column = (size_t)p->left_column;
    for (int tile = 0; tile < rows; tile += TILE_ROWS) {
        const float *from = p->left + (size_t)(first + tile) * row + (size_t)from_inner * column;
        float *to = together + (size_t)tile * (size_t)inner;
        int there = rows - tile < TILE_ROWS ? rows - tile : TILE_ROWS;
        /* A whole vector is stored, and the next one over what is too much of it. */
        if (row == 1 && rows - tile >= LANES)
            for (int k = 0; k < inner; k++, to += TILE_ROWS, from += column) store(to, load(from));
        else
            for (int k = 0; k < inner; k++, to += TILE_ROWS, from += column)
                for (int r = 0; r < there; r++) to[r] = from[(size_t)r * row];
    }
}

/* What is done when a row of a panel is summed. */
static void end_row(const rg_product *p, int first, int width, float *out) {
    for (int i = 0; i < width; i += LANES) {
        vector_t sum = load(out + i);
        if (p->bias) {
            float rest[LANES] = {0};
            int there = width - i < LANES ? width - i : LANES;
            memcpy(rest, p->bias + first + i, (size_t)there * sizeof *rest);
            sum += load(rest);
        }
        if (p->relu) sum = larger(all(0.0f), sum); /* NaN stays NaN */
        store(out + i, sum);
    }
}

/* The rows `first` … `last` - 1 of the columns `begin` … `end` - 1. */
static void multiply(const rg_product *p, int first, int last, int begin, int end, float *scratch) {
    float *panel = scratch, *together = panel + INNER * COLUMNS, *narrow = together + INNER * ROWS + LANES;
    size_t out_row = (size_t)p->out_row;
    int is_apart = p->left_column != 1;
    for (int k = 0; k < p->inner; k += INNER) {
        int inner = p->inner - k < INNER ? p->inner - k : INNER, adds = k > 0 || p->add, ends = k + inner == p->inner;
        for (int row = first; row < last; row += ROWS) {
            int rows = last - row < ROWS ? last - row : ROWS;
            if (is_apart) gather_left(p, row, rows, k, inner, together);
            const float *left = is_apart ? together : p->left + (size_t)row * (size_t)p->left_row + k;
            size_t own_row = is_apart ? 1 : (size_t)p->left_row, own_column = is_apart ? TILE_ROWS : 1;
            size_t tile = is_apart ? (size_t)TILE_ROWS * (size_t)inner : TILE_ROWS * own_row;
            for (int column = begin; column < end; column += COLUMNS) {
                int width = end - column < COLUMNS ? end - column : COLUMNS;
                gather_right(p, k, inner, column, width, panel);
                float *to = p->out + (size_t)row * out_row + column, *own = to;
                size_t stride = out_row;
                int is_narrow = width % LANES != 0; /* whole vectors are summed beside the result, and cut */
                if (is_narrow) {
                    own = narrow, stride = COLUMNS;
                    for (int r = 0; adds && r < rows; r++)
                        memcpy(own + (size_t)r * stride, to + (size_t)r * out_row, (size_t)width * sizeof *own);
                }
                product_columns(rows, (width + LANES - 1) / LANES * LANES, inner, left, tile, own_row, own_column, panel,
                                COLUMNS, own, stride, adds);
                for (int r = 0; r < rows; r++) {
                    float *from = own + (size_t)r * stride;
                    if (ends && (p->bias || p->relu)) end_row(p, column, width, from);
                    if (is_narrow) memcpy(to + (size_t)r * out_row, from, (size_t)width * sizeof *own);
                }
            }
        }
    }
}

const products_t PRODUCTS = {multiply, TILE_ROWS, COLUMNS, INNER * COLUMNS + INNER * ROWS + LANES + ROWS * COLUMNS};
#else
/* Only with AVX-512 do these pass the libraries that torch has. */
const products_t PRODUCTS = {0};
#endif
