/* Bundles of AM_PAR: one thread uses two of them, an endpoint moves between two that other threads poll, and a handler
 * cannot free its bundle. */
#include "check.h"
#include <pthread.h>

enum { ENDPOINTS = 3, MOVES = 3000 };
static eb_t bundles[2];
static ep_t endpoints[ENDPOINTS];
static en_t names[ENDPOINTS];
static volatile int answers, is_over;

static void take(void *token) { OK(AM_Reply0(token, 2)); }
static void count(void *token)
{
    (void)token;
    answers++;
}
static void free_all(void *token)
{
    ep_t other;
    CHECK(AM_FreeBundle(bundles[0]) == AM_ERR_IN_USE);
    CHECK(AM_Terminate() == AM_ERR_IN_USE);
    OK(AM_GetDestEndpoint(token, &other));
    CHECK(other == endpoints[2]);
    OK(AM_Reply0(token, 2));
}

static void free_self(void *token)
{
    CHECK(AM_FreeEndpoint(endpoints[0]) == AM_ERR_IN_USE);
    CHECK(AM_MoveEndpoint(endpoints[0], bundles[0], bundles[1]) == AM_ERR_IN_USE);
    CHECK(AM_FreeBundle(bundles[0]) == AM_ERR_IN_USE);
    OK(AM_Reply0(token, 2));
}

static void *poll(void *which)
{
    while (!is_over)
        OK(AM_Poll(bundles[(intptr_t)which]));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    int nth, to, at = 1;
    tag_t tag;
    start(argc, argv);
    for (nth = 0; nth < 2; nth++)
        OK(AM_AllocateBundle(AM_PAR, &bundles[nth]));
    for (nth = 0; nth < ENDPOINTS; nth++) {
        OK(AM_AllocateEndpoint(bundles[nth % 2], &endpoints[nth], &names[nth]));
        OK(AM_SetTag(endpoints[nth], AM_ALL));
        OK(AM_SetHandler(endpoints[nth], 1, take));
        OK(AM_SetHandler(endpoints[nth], 2, count));
        OK(AM_SetHandler(endpoints[nth], 3, free_all));
    }
    for (nth = 0; nth < ENDPOINTS; nth++) {
        for (to = 0; to < ENDPOINTS; to++)
            OK(AM_Map(endpoints[nth], to, names[to], 5));
        OK(AM_SetExpectedResources(endpoints[nth], ENDPOINTS, 4));
    }

    /* The first message connects both, although this thread polls one of the two bundles. */
    OK(AM_Request0(endpoints[0], 1, 1));
    while (answers < 1) {
        OK(AM_Poll(bundles[1]));
        OK(AM_Poll(bundles[0]));
    }

    /* Endpoint 0 of the bundle stays when that of the handler cannot be freed. */
    OK(AM_Request0(endpoints[0], 2, 3));
    UNTIL(AM_Poll(bundles[0]) == AM_OK && answers == 2);
    OK(AM_GetTag(endpoints[0], &tag));
    OK(AM_SetHandler(endpoints[0], 4, free_self));
    OK(AM_Request0(endpoints[0], 0, 4));
    CHECK(answers == 3);

    for (nth = 0; nth < 2; nth++)
        CHECK(pthread_create(&threads[nth], NULL, poll, (void *)(intptr_t)nth) == 0);
    for (nth = 0; nth < MOVES; nth++) {
        OK(AM_Request0(endpoints[0], 1, 1));
        OK(AM_MoveEndpoint(endpoints[1], bundles[at], bundles[1 - at]));
        at = 1 - at;
    }
    UNTIL(answers == 3 + MOVES);
    is_over = 1;
    for (nth = 0; nth < 2; nth++)
        CHECK(pthread_join(threads[nth], NULL) == 0);
    finish();
    return 1;
}
