/* A few threads that sleep until there is work; the caller works too. */
#ifndef REGARD_POOL_H
#define REGARD_POOL_H

typedef struct pool pool_t;
typedef void (*task_t)(void *context, int item, int thread);

pool_t *pool_new(int threads);
void pool_free(pool_t *pool);
int pool_threads(const pool_t *pool);
/* Calls `task` for the items 0 … count - 1; returns when all are done. Not for two callers at once. */
void pool_run(pool_t *pool, task_t task, void *context, int count);

#endif
