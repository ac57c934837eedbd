/* Matrix products of training, compiled once for each instruction set, with PRODUCTS as the name of the table; see
 * training.h. A block of the right factor is brought together so that it is read from front to back and stays in the
 * second-level cache, and so do the rows of the left factor that meet it. */
#include "blocks.h"
#include "tiles.h"

#if defined(__AVX512F__)
#define COLUMNS (TILE_VECTORS * LANES) /* of a panel of the right factor */

enum { INNER = 256, ROWS = 480 }; /* of a block: what both factors share, and what the left one has */
/* A thread's scratch: a panel of the right factor, a block of the left one, results of columns that fill no vector. */
enum { PANEL = INNER * COLUMNS, BLOCK = INNER * ROWS + LANES, BESIDE = ROWS * COLUMNS };

/* The left factor of a block, and how far on the next tile, row and column of it are. */
typedef struct {
    const float *first;
    size_t tile, row, column;
} left_t;

/* panel[k][column] of the right factor, whose columns are contiguous; 0 up to a whole vector. */
static void gather_rows(block_t b, const float *from, size_t row, float *panel) {
    int whole = b.width / LANES * LANES;
    for (int k = 0; k < b.inner; k++, from += row, panel += COLUMNS) {
        for (int i = 0; i < whole; i += LANES) store(panel + i, load(from + i));
        if (whole == b.width) continue;
        float rest[LANES] = {0};
        memcpy(rest, from + whole, (size_t)(b.width - whole) * sizeof *rest);
        store(panel + whole, load(rest));
    }
}

/* The same of one whose columns lie apart. */
static void gather_columns(block_t b, const float *from, size_t row, size_t column, float *panel) {
    int whole = row == 1 ? b.inner / LANES * LANES : 0; /* of the inner width: sixteen at a time are transposed */
    for (int i = 0; i < b.width; i += LANES, from += LANES * column) {
        int there = smaller(b.width - i, LANES);
        for (int k = 0; k < whole; k += LANES) {
            vector_t block[LANES];
            for (int r = 0; r < LANES; r++) block[r] = r < there ? load(from + (size_t)r * column + k) : all(0.0f);
            transpose(block);
            for (int r = 0; r < LANES; r++) store(panel + (size_t)(k + r) * COLUMNS + i, block[r]);
        }
        for (int k = whole; k < b.inner; k++)
            for (int r = 0; r < LANES; r++)
                panel[(size_t)k * COLUMNS + (size_t)(i + r)] = r < there ? from[(size_t)r * column + (size_t)k * row] : 0;
    }
}

static void gather_right(const rg_product *p, block_t b, float *panel) {
    size_t row = (size_t)p->right_row, column = (size_t)p->right_column;
    const float *from = p->right + (size_t)b.from_inner * row + (size_t)b.column * column;
    if (column == 1)
        gather_rows(b, from, row, panel);
    else
        gather_columns(b, from, row, column, panel);
}

/* together[tile][k][row of the tile], for a left factor whose columns lie apart. */
static void gather_left(const rg_product *p, block_t b, float *together) {
    int rows = b.rows, inner = b.inner;
    size_t row = (size_t)p->left_row, column = (size_t)p->left_column;
    for (int tile = 0; tile < rows; tile += TILE_ROWS) {
        const float *from = p->left + (size_t)(b.row + tile) * row + (size_t)b.from_inner * column;
        float *to = together + (size_t)tile * (size_t)inner;
        int there = smaller(rows - tile, TILE_ROWS);
        /* A whole vector is stored, and the next one over what is too much of it. */
        if (row == 1 && rows - tile >= LANES)
            for (int k = 0; k < inner; k++, to += TILE_ROWS, from += column) store(to, load(from));
        else
            for (int k = 0; k < inner; k++, to += TILE_ROWS, from += column)
                for (int r = 0; r < there; r++) to[r] = from[(size_t)r * row];
    }
}

/* Where it lies, if its columns are contiguous; else gathered. */
static left_t left_of(const rg_product *p, block_t b, float *together) {
    size_t row = (size_t)p->left_row;
    if (p->left_column == 1)
        return (left_t){p->left + (size_t)b.row * row + b.from_inner, TILE_ROWS * row, row, 1};
    gather_left(p, b, together);
    return (left_t){together, (size_t)TILE_ROWS * (size_t)b.inner, 1, TILE_ROWS};
}

/* Columns that do not fill a vector are summed in `beside`, and copied. */
static void multiply_block(const rg_product *p, block_t b, left_t left, const float *panel, float *beside) {
    size_t out_row = (size_t)p->out_row;
    float *out = p->out + (size_t)b.row * out_row + b.column;
    int is_cut = b.width % LANES != 0, adds = p->add || b.from_inner > 0;
    float *sums = is_cut ? beside : out;
    size_t stride = is_cut ? COLUMNS : out_row;
    if (is_cut && adds) copy_rows(b, out, out_row, sums, stride);
    product_columns(b.rows, (b.width + LANES - 1) / LANES * LANES, b.inner, left.first, left.tile, left.row, left.column, panel, COLUMNS, sums,
                    stride, adds);
    if (is_to_finish(p, b)) finish(p, b, COLUMNS, sums, stride);
    if (is_cut) copy_rows(b, sums, stride, out, out_row);
}

/* The rows `first` … `last` - 1 of the columns `begin` … `end` - 1. */
static void multiply(const rg_product *p, int first, int last, int begin, int end, float *scratch) {
    float *panel = scratch, *together = panel + PANEL, *beside = together + BLOCK;
    for (int k = 0; k < p->inner; k += INNER)
        for (int row = first; row < last; row += ROWS) {
            block_t b = {row, smaller(last - row, ROWS), begin, 0, k, smaller(p->inner - k, INNER)};
            left_t left = left_of(p, b, together);
            for (; b.column < end; b.column += COLUMNS) {
                b.width = smaller(end - b.column, COLUMNS);
                gather_right(p, b, panel);
                multiply_block(p, b, left, panel, beside);
            }
        }
}

const products_t PRODUCTS = {multiply, TILE_ROWS, COLUMNS, PANEL + BLOCK + BESIDE};
#else
/* Only with AVX-512 do these pass the libraries that torch has. */
const products_t PRODUCTS = {0};
#endif
