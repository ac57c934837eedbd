/* Matrix products of training whose factors are rounded to bf16 and whose sums are fp32, by the tiles of AMX; compiled once
 * for each instruction set, with ROUNDED as the name of the table, see training.h. Both factors are packed into tiles of
 * sixteen lines (rows of the left one, columns of the right one) by 32 of the inner width. A number's sum runs along the
 * inner width in one order, whatever the block. */
#include "amx.h"
#include "blocks.h"

#if defined(__AMX_BF16__) && defined(__AVX512BF16__)

enum { DEEP = 32, TILE = LANES * DEEP };            /* the inner width of a tile, and how many numbers it has */
enum { SIDE = 2 * LANES };                          /* rows and columns whose sums are in registers together */
enum { INNER = 512, ROWS = 1024 };                  /* of a block; its left factor stays in the second-level cache */
enum { LEFT = ROWS * INNER, RIGHT = SIDE * INNER }; /* bf16 numbers of a block's factors */

typedef __m512i line_t; /* 32 numbers in bf16: sixteen pairs of neighbours along the inner width */

/* Where a factor begins, and how far on its next line and its next number along the inner width are. */
typedef struct {
    const float *first;
    size_t line, inner;
} factor_t;

INLINE __mmask16 up_to(int count) { return (__mmask16)(count >= LANES ? 0xffff : count <= 0 ? 0 : (1u << count) - 1); }

INLINE __m512 some(const float *x, int count) { return _mm512_maskz_loadu_ps(up_to(count), x); }

INLINE line_t rounded(__m512 low, __m512 high) { return (line_t)_mm512_cvtne2ps_pbh(high, low); }

/* Of sixteen lines the pair of numbers that begins here, the lines being neighbours in memory. */
INLINE line_t pair_of_lines(const float *x, size_t inner, int lines, int depth) {
    const line_t zipped = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                           5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512 one = some(x, depth > 0 ? lines : 0), other = some(x + inner, depth > 1 ? lines : 0);
    return _mm512_permutexvar_epi16(zipped, rounded(one, other));
}

/* A tile of `lines` × `depth` numbers, 0 beyond. Its rows are the lines of the left factor, or with `paired` the pairs of
 * the right one. */
INLINE void pack_tile(factor_t f, int lines, int depth, int paired, uint16_t *to) {
    vector_t rows[LANES];
    if (f.inner == 1) {
        for (int i = 0; i < LANES; i++) {
            const float *line = f.first + (size_t)i * f.line;
            int there = i < lines ? depth : 0;
            rows[i] = (vector_t)rounded(some(line, there), some(line + LANES, there - LANES));
        }
    } else if (f.line == 1) {
        for (int i = 0; i < LANES; i++)
            rows[i] = (vector_t)pair_of_lines(f.first + (size_t)(2 * i) * f.inner, f.inner, lines, depth - 2 * i);
    } else {
        float own[TILE] = {0};
        for (int i = 0; i < smaller(lines, LANES); i++)
            for (int k = 0; k < depth; k++) own[i * DEEP + k] = f.first[(size_t)i * f.line + (size_t)k * f.inner];
        for (int i = 0; i < LANES; i++)
            rows[i] = (vector_t)rounded(_mm512_loadu_ps(own + i * DEEP), _mm512_loadu_ps(own + i * DEEP + LANES));
    }
    int is_by_pairs = f.inner != 1 && f.line == 1;
    if (is_by_pairs != paired) transpose(rows);
    for (int i = 0; i < LANES; i++) _mm512_store_si512(to + i * DEEP, (line_t)rows[i]);
}

/* packed[sixteen lines][32 of the inner width], up to a whole side. */
static void pack(factor_t f, int lines, int inner, int paired, uint16_t *to) {
    for (int line = 0; line < (lines + SIDE - 1) / SIDE * SIDE; line += LANES, f.first += LANES * f.line)
        for (int k = 0; k < inner; k += DEEP, to += TILE) {
            factor_t tile = {f.first + (size_t)k * f.inner, f.line, f.inner};
            if (paired) pack_tile(tile, lines - line, smaller(inner - k, DEEP), 1, to);
            else pack_tile(tile, lines - line, smaller(inner - k, DEEP), 0, to);
        }
}

/* A side by a side: 32 × 32 sums, in the tiles 0 … 3. */
static void multiply_tiles(const uint16_t *left, const uint16_t *right, int tiles, float *sums, size_t stride, int adds) {
    size_t bytes = stride * sizeof *sums, half = (size_t)tiles * TILE;
    float *below = sums + LANES * stride;
    if (adds) {
        LOAD_TILE(0, sums, bytes);
        LOAD_TILE(1, sums + LANES, bytes);
        LOAD_TILE(2, below, bytes);
        LOAD_TILE(3, below + LANES, bytes);
    } else {
        CLEAR_TILE(0);
        CLEAR_TILE(1);
        CLEAR_TILE(2);
        CLEAR_TILE(3);
    }
    for (int k = 0; k < tiles; k++, left += TILE, right += TILE) {
        LOAD_TILE(4, left, TILE_BYTES);
        LOAD_TILE(6, right, TILE_BYTES);
        ADD_BF16_TILES(0, 4, 6);
        LOAD_TILE(7, right + half, TILE_BYTES);
        ADD_BF16_TILES(1, 4, 7);
        LOAD_TILE(5, left + half, TILE_BYTES);
        ADD_BF16_TILES(2, 5, 6);
        ADD_BF16_TILES(3, 5, 7);
    }
    STORE_TILE(0, sums, bytes);
    STORE_TILE(1, sums + LANES, bytes);
    STORE_TILE(2, below, bytes);
    STORE_TILE(3, below + LANES, bytes);
}

/* Sums that do not fill the tiles are made beside, and copied. */
static void multiply_block(const rg_product *p, block_t b, const uint16_t *left, const uint16_t *right) {
    float beside[SIDE * SIDE] __attribute__((aligned(TILE_BYTES)));
    size_t out_row = (size_t)p->out_row;
    float *out = p->out + (size_t)b.row * out_row + b.column;
    int is_cut = b.rows < SIDE || b.width < SIDE, adds = p->add || b.from_inner > 0;
    float *sums = is_cut ? beside : out;
    size_t stride = is_cut ? SIDE : out_row;
    if (is_cut && adds) copy_rows(b, out, out_row, sums, stride);
    multiply_tiles(left, right, (b.inner + DEEP - 1) / DEEP, sums, stride, adds);
    if (is_to_finish(p, b)) finish(p, b, SIDE, sums, stride);
    if (is_cut) copy_rows(b, sums, stride, out, out_row);
}

/* The rows `first` … `last` - 1 of the columns `begin` … `end` - 1. */
static void multiply(const rg_product *p, int first, int last, int begin, int end, float *scratch) {
    uint16_t *left = (uint16_t *)(((uintptr_t)scratch + TILE_BYTES - 1) / TILE_BYTES * TILE_BYTES), *right = left + LEFT;
    size_t left_row = (size_t)p->left_row, left_inner = (size_t)p->left_column;
    size_t right_inner = (size_t)p->right_row, right_column = (size_t)p->right_column;
    configure_tiles();
    for (int k = 0; k < p->inner; k += INNER)
        for (int row = first; row < last; row += ROWS) {
            int rows = smaller(last - row, ROWS), inner = smaller(p->inner - k, INNER);
            size_t side = (size_t)((inner + DEEP - 1) / DEEP) * TILE * 2;
            const float *from = p->left + (size_t)row * left_row + (size_t)k * left_inner;
            pack((factor_t){from, left_row, left_inner}, rows, inner, 0, left);
            for (int column = begin; column < end; column += SIDE) {
                block_t b = {0, 0, column, smaller(end - column, SIDE), k, inner};
                from = p->right + (size_t)k * right_inner + (size_t)column * right_column;
                pack((factor_t){from, right_column, right_inner}, b.width, inner, 1, right);
                for (int at = 0; at < rows; at += SIDE) {
                    b.row = row + at, b.rows = smaller(rows - at, SIDE);
                    multiply_block(p, b, left + (size_t)(at / SIDE) * side, right);
                }
            }
        }
    release_tiles();
}

const products_t ROUNDED = {multiply, SIDE, SIDE, (LEFT + RIGHT) * sizeof(uint16_t) / sizeof(float) + TILE_BYTES};
#else
const products_t ROUNDED = {0};
#endif
