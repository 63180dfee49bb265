/* Threads send between the endpoints of bundles of AM_PAR, which connect meanwhile, and move the endpoints from bundle to
 * bundle. Each request is answered, and no thread waits for ever. */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

enum { ROUNDS = 8, THREADS = 4, BUNDLES = 3, ENDPOINTS = 6, STEPS = 400, LAST_POLLS = 100 };
static eb_t bundles[BUNDLES];
static ep_t endpoints[ENDPOINTS];
static int sent, answered;

static void take(void *token, int32_t number) { OK(AM_Reply1(token, 2, number)); }
static void count(void *token, int32_t number)
{
    (void)token;
    (void)number;
    __atomic_add_fetch(&answered, 1, __ATOMIC_RELAXED);
}

static unsigned below(unsigned *random, unsigned most)
{
    *random = *random * 1103515245u + 12345u;
    return (*random >> 16) % most;
}

/* A move is refused where the endpoint is in another bundle, or handles a message. */
static void move(unsigned *random)
{
    ep_t moved = endpoints[below(random, ENDPOINTS)];
    eb_t from = bundles[below(random, BUNDLES)], to = bundles[below(random, BUNDLES)];
    int code = AM_MoveEndpoint(moved, from, to);
    CHECK(code == AM_OK || code == AM_ERR_RESOURCE || code == AM_ERR_IN_USE);
}

static void *work(void *seed)
{
    unsigned random = (unsigned)(uintptr_t)seed, what;
    int step;
    for (step = 0; step < STEPS; step++) {
        what = below(&random, 10);
        if (what < 5) {
            __atomic_add_fetch(&sent, 1, __ATOMIC_RELAXED);
            OK(AM_Request1(endpoints[below(&random, ENDPOINTS)], below(&random, ENDPOINTS), 1, step));
        } else if (what < 8) {
            OK(AM_Poll(bundles[below(&random, BUNDLES)]));
        } else {
            move(&random);
        }
        if (step % 16 == 0)
            sched_yield();
    }
    return NULL;
}

static void open_all(void)
{
    en_t names[ENDPOINTS];
    int nth, to;
    for (nth = 0; nth < BUNDLES; nth++)
        OK(AM_AllocateBundle(AM_PAR, &bundles[nth]));
    for (nth = 0; nth < ENDPOINTS; nth++) {
        OK(AM_AllocateEndpoint(bundles[nth % BUNDLES], &endpoints[nth], &names[nth]));
        OK(AM_SetTag(endpoints[nth], 5));
        OK(AM_SetHandler(endpoints[nth], 1, take));
        OK(AM_SetHandler(endpoints[nth], 2, count));
    }
    for (nth = 0; nth < ENDPOINTS; nth++) {
        for (to = 0; to < ENDPOINTS; to++)
            OK(AM_Map(endpoints[nth], to, names[to], 5));
        OK(AM_SetExpectedResources(endpoints[nth], 1, 1));
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int round, nth, rest;
    start(argc, argv);
    /* Threads that wait for each other would do so for ever. */
    alarm(120);
    for (round = 0; round < ROUNDS; round++) {
        open_all();
        for (nth = 0; nth < THREADS; nth++)
            pthread_create(&threads[nth], NULL, work, (void *)(uintptr_t)(round * THREADS + nth + 1));
        for (nth = 0; nth < THREADS; nth++)
            pthread_join(threads[nth], NULL);
        /* The last polls acknowledge the answers. An endpoint that is freed waits for what is not acknowledged. */
        for (rest = LAST_POLLS; rest > 0; rest -= answered == sent) {
            for (nth = 0; nth < BUNDLES; nth++)
                OK(AM_Poll(bundles[nth]));
            usleep(100);
        }
        for (nth = 0; nth < BUNDLES; nth++)
            OK(AM_FreeBundle(bundles[nth]));
    }
    finish();
}
