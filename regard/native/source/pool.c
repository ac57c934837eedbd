#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    pool_t *pool;
    int number;
} worker_t;

struct pool {
    int threads; /* the caller counted */
    pid_t process;
    pthread_t *handles;
    worker_t *workers;
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    unsigned long round;
    int busy, stopping;
    task_t task;
    void *context;
    int count;
    atomic_int next;
};

static void take_items(pool_t *pool, int thread) {
    for (int item; (item = atomic_fetch_add(&pool->next, 1)) < pool->count;) pool->task(pool->context, item, thread);
}

static void *work(void *argument) {
    worker_t *self = argument;
    pool_t *pool = self->pool;
    unsigned long seen = 0;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (pool->round == seen && !pool->stopping) pthread_cond_wait(&pool->wake, &pool->mutex);
        if (pool->stopping) break;
        seen = pool->round;
        pthread_mutex_unlock(&pool->mutex);
        take_items(pool, self->number);
        pthread_mutex_lock(&pool->mutex);
        if (--pool->busy == 0) pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

pool_t *pool_new(int threads) {
    pool_t *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    if (threads < 1) threads = 1;
    pool->process = getpid();
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->handles = calloc((size_t)threads, sizeof *pool->handles);
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    pool->threads = 1;
    if (!pool->handles || !pool->workers) {
        pool_free(pool);
        return NULL;
    }
    for (int number = 1; number < threads; number++) { /* as many as the system gives */
        pool->workers[number] = (worker_t){pool, number};
        if (pthread_create(&pool->handles[number], NULL, work, &pool->workers[number])) break;
        pool->threads++;
    }
    return pool;
}

void pool_free(pool_t *pool) {
    if (!pool) return;
    if (pool->process == getpid()) { /* in a fork's child there are no workers to wait for */
        pthread_mutex_lock(&pool->mutex);
        pool->stopping = 1;
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
        for (int number = 1; number < pool->threads; number++) pthread_join(pool->handles[number], NULL);
        pthread_cond_destroy(&pool->wake);
        pthread_cond_destroy(&pool->done);
        pthread_mutex_destroy(&pool->mutex);
    }
    free(pool->handles);
    free(pool->workers);
    free(pool);
}

int pool_threads(const pool_t *pool) { return pool->threads; }

void pool_run(pool_t *pool, task_t task, void *context, int count) {
    if (count < 2 || pool->threads < 2 || pool->process != getpid()) {
        for (int item = 0; item < count; item++) task(context, item, 0);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    pool->task = task, pool->context = context, pool->count = count;
    atomic_store(&pool->next, 0);
    pool->busy = pool->threads - 1;
    pool->round++;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    take_items(pool, 0);
    pthread_mutex_lock(&pool->mutex);
    while (pool->busy) pthread_cond_wait(&pool->done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}
