/* The tiles of AMX: eight registers of sixteen rows of 64 bytes. Included by what is compiled once for each instruction
 * set. */
#ifndef REGARD_AMX_H
#define REGARD_AMX_H

#include <stddef.h>
#include <stdint.h>

#if defined(__AMX_TILE__)

enum { TILE_LINES = 16, TILE_BYTES = 64 }; /* of a register: its rows, and what each of them holds */

/* The compiler's own functions do not say that they read and write memory. */
#define LOAD_TILE(n, from, step) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #n ::"r"(from), "r"((size_t)(step)) : "memory")
#define STORE_TILE(n, to, step) \
    __asm__ volatile("tilestored %%tmm" #n ", (%0,%1,1)" ::"r"(to), "r"((size_t)(step)) : "memory")
#define CLEAR_TILE(n) __asm__ volatile("tilezero %%tmm" #n ::)
/* sum += left · right, of bf16; and of signed bytes on the left and unsigned ones on the right. */
#define ADD_BF16_TILES(sum, left, right) \
    __asm__ volatile("tdpbf16ps %%tmm" #right ", %%tmm" #left ", %%tmm" #sum ::)
#define ADD_INT8_TILES(sum, left, right) \
    __asm__ volatile("tdpbsud %%tmm" #right ", %%tmm" #left ", %%tmm" #sum ::)

/* A thread configures its tiles before it uses them, and releases them for others, who take other shapes. */
static inline void configure_tiles(void) {
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shape __attribute__((aligned(64))) = {.palette = 1};
    for (int i = 0; i < 8; i++) shape.bytes[i] = TILE_BYTES, shape.rows[i] = TILE_LINES;
    __asm__ volatile("ldtilecfg %0" ::"m"(shape));
}

static inline void release_tiles(void) { __asm__ volatile("tilerelease" ::); }

#endif
#endif
