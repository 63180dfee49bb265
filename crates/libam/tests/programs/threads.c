/* The main thread makes bundles of AM_SEQ for other threads, and polls one of its own while they begin to use theirs. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, COUNT = 500, FLYING = 20 };
static eb_t bundles[THREADS];
static ep_t endpoints[THREADS];
static volatile int answers[THREADS];
static int finished;
static volatile int is_over;

static void take(void *token, int thread) { OK(AM_Reply1(token, 2, thread)); }
static void count(void *token, int thread)
{
    (void)token;
    answers[thread]++;
}

static void *talk(void *number)
{
    int nth, me_here = (int)(intptr_t)number;
    for (nth = 0; nth < COUNT; nth++) {
        OK(AM_Request1(endpoints[me_here], (nth * 5 + me_here) % (THREADS * ranks), 1, me_here));
        while (answers[me_here] < nth + 1 - FLYING)
            OK(AM_Poll(bundles[me_here]));
    }
    while (answers[me_here] < COUNT)
        OK(AM_Poll(bundles[me_here]));
    __sync_fetch_and_add(&finished, 1);
    while (!is_over)
        OK(AM_Poll(bundles[me_here]));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    en_t own[THREADS], *all;
    int nth, to;
    start(argc, argv);
    all = malloc(ranks * sizeof own);
    for (nth = 0; nth < THREADS; nth++) {
        OK(AM_AllocateBundle(AM_SEQ, &bundles[nth]));
        OK(AM_AllocateEndpoint(bundles[nth], &endpoints[nth], &own[nth]));
    }
    OK(AMX_SPMDAllGather(own, all, sizeof own));
    for (nth = 0; nth < THREADS; nth++) {
        for (to = 0; to < THREADS * ranks; to++)
            OK(AM_Map(endpoints[nth], to, all[to], 3));
        OK(AM_SetTag(endpoints[nth], AM_ALL));
        OK(AM_SetHandler(endpoints[nth], 1, take));
        OK(AM_SetHandler(endpoints[nth], 2, count));
        OK(AM_SetExpectedResources(endpoints[nth], THREADS * ranks, 8));
    }
    OK(AMX_SPMDBarrier());
    for (nth = 0; nth < THREADS; nth++)
        CHECK(pthread_create(&threads[nth], NULL, talk, (void *)(intptr_t)nth) == 0);
    UNTIL(__sync_fetch_and_add(&finished, 0) == THREADS);
    OK(AMX_SPMDBarrier());
    is_over = 1;
    for (nth = 0; nth < THREADS; nth++)
        CHECK(pthread_join(threads[nth], NULL) == 0);
    finish();
    return 1;
}
