/* A thread that waits sleeps until a message comes, also with several endpoints and several threads. */
#include "check.h"
#include <pthread.h>

static int pings, pongs;
static eb_t shared;
static ep_t two[2];
static volatile int counted[2];

static void ping(void *token) { pings++; OK(AM_Reply0(token, 2)); }
static void pong(void *token) { (void)token; pongs++; }
static void count(void *token, int which)
{
    (void)token;
    counted[which]++;
}

static void wait_for(eb_t which)
{
    OK(AM_SetEventMask(which, AM_NOTEMPTY));
    OK(AM_WaitSema(which));
    OK(AM_Poll(which));
}

static void *send_all(void *which)
{
    int nth, at = (int)(intptr_t)which;
    for (nth = 0; nth < 1000; nth++)
        OK(AM_Request1(two[at], 0, 1, at));
    return NULL;
}

/* Each of several threads waits for each message, which one of them handles. */
enum { WAITERS = 3, ROUNDS = 100 };
static volatile int is_set[ROUNDS];
static pthread_barrier_t meeting;
static void set(void *token, int nth)
{
    (void)token;
    is_set[nth] = 1;
}
static void *wait_for_all(void *unused)
{
    int nth;
    for (nth = 0; nth < ROUNDS; nth++) {
        pthread_barrier_wait(&meeting);
        while (!is_set[nth])
            OK(AM_WaitSema(shared));
        pthread_barrier_wait(&meeting);
    }
    return unused;
}
static void waiters_meet(void)
{
    pthread_t waiters[WAITERS];
    int nth;
    CHECK(pthread_barrier_init(&meeting, NULL, WAITERS + 1) == 0);
    OK(AM_SetHandler(two[1], 3, set));
    for (nth = 0; nth < WAITERS; nth++)
        CHECK(pthread_create(&waiters[nth], NULL, wait_for_all, NULL) == 0);
    for (nth = 0; nth < ROUNDS; nth++) {
        pthread_barrier_wait(&meeting);
        if (nth % 10 == 0)
            usleep(1000);
        OK(AM_Request1(two[0], 0, 3, nth));
        pthread_barrier_wait(&meeting);
    }
    for (nth = 0; nth < WAITERS; nth++)
        CHECK(pthread_join(waiters[nth], NULL) == 0);
}

int main(int argc, char **argv)
{
    int nth, to;
    en_t names[2];
    pthread_t threads[2];
    start(argc, argv);
    to = (me + 1) % ranks;
    OK(AM_SetHandler(endpoint, 1, ping));
    OK(AM_SetHandler(endpoint, 2, pong));
    OK(AMX_SPMDBarrier());
    for (nth = 1; nth <= 100; nth++) {
        if (me == 0) {
            if (nth % 25 == 0)
                usleep(20000);
            OK(AM_Request0(endpoint, to, 1));
            while (ranks > 1 ? pongs < nth : 0)
                wait_for(bundle);
        } else if (me == 1) {
            while (pings < nth)
                wait_for(bundle);
        }
    }
    OK(AMX_SPMDBarrier());

    /* Two threads send by endpoints of one bundle, and a third one waits for their messages to the own process. */
    OK(AM_AllocateBundle(AM_PAR, &shared));
    for (nth = 0; nth < 2; nth++) {
        OK(AM_AllocateEndpoint(shared, &two[nth], &names[nth]));
        OK(AM_SetTag(two[nth], AM_ALL));
        OK(AM_SetHandler(two[nth], 1, count));
    }
    for (nth = 0; nth < 2; nth++) {
        OK(AM_Map(two[nth], 0, names[1 - nth], 5));
        OK(AM_SetExpectedResources(two[nth], 1, 4));
    }
    for (nth = 0; nth < 2; nth++)
        CHECK(pthread_create(&threads[nth], NULL, send_all, (void *)(intptr_t)nth) == 0);
    OK(AM_SetEventMask(shared, AM_NOTEMPTY));
    while (counted[0] < 1000 || counted[1] < 1000)
        OK(AM_Poll(shared));
    for (nth = 0; nth < 2; nth++)
        CHECK(pthread_join(threads[nth], NULL) == 0);
    waiters_meet();
    finish();
    return 1;
}
