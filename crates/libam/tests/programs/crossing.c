/* Two bundles of AM_PAR whose handlers call functions of each other's endpoints: they are refused and do not wait for each
 * other. And a bundle that is freed ends the wait for its messages. */
#include "check.h"
#include <pthread.h>

enum { REQUESTS = 20000 };
static eb_t bundles[2];
static ep_t endpoints[2];
static en_t names[2];
static volatile int answers[2], wait_code = -1;

static void ask_other(void *token, int32_t which)
{
    int other = 1 - which;
    tag_t tag;
    OK(AM_GetTag(endpoints[which], &tag));
    CHECK(AM_GetTag(endpoints[other], &tag) == AM_ERR_RESOURCE);
    CHECK(AM_SetTag(endpoints[other], tag) == AM_ERR_RESOURCE);
    CHECK(AM_Request1(endpoints[other], 0, 1, other) == AM_ERR_RESOURCE);
    CHECK(AM_Poll(bundles[other]) == AM_ERR_RESOURCE);
    CHECK(AM_MoveEndpoint(endpoints[other], bundles[other], bundles[which]) == AM_ERR_RESOURCE);
    CHECK(AM_FreeBundle(bundles[other]) == AM_ERR_RESOURCE);
    OK(AM_Reply1(token, 2, which));
}

static void count(void *token, int32_t which)
{
    (void)token;
    answers[which]++;
}

static void *ask(void *which)
{
    int nth, own = (int)(intptr_t)which;
    for (nth = 0; nth < REQUESTS; nth++)
        OK(AM_Request1(endpoints[own], 0, 1, own));
    CHECK(answers[own] == REQUESTS);
    return NULL;
}

static void *wait(void *freed)
{
    /* The first wait of a thread returns for the messages so far. */
    AM_WaitSema((eb_t)freed);
    wait_code = AM_WaitSema((eb_t)freed);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    intptr_t nth;
    start(argc, argv);
    for (nth = 0; nth < 2; nth++) {
        OK(AM_AllocateBundle(AM_PAR, &bundles[nth]));
        OK(AM_AllocateEndpoint(bundles[nth], &endpoints[nth], &names[nth]));
        OK(AM_SetTag(endpoints[nth], AM_ALL));
        OK(AM_SetHandler(endpoints[nth], 1, ask_other));
        OK(AM_SetHandler(endpoints[nth], 2, count));
        OK(AM_Map(endpoints[nth], 0, names[nth], AM_ALL));
        OK(AM_SetExpectedResources(endpoints[nth], 1, 1));
    }
    /* Threads that wait for each other would do so for ever. */
    alarm(60);
    for (nth = 0; nth < 2; nth++)
        pthread_create(&threads[nth], NULL, ask, (void *)nth);
    for (nth = 0; nth < 2; nth++)
        pthread_join(threads[nth], NULL);
    OK(AM_SetEventMask(bundles[0], AM_NOTEMPTY));
    pthread_create(&threads[0], NULL, wait, bundles[0]);
    usleep(50000);
    OK(AM_FreeBundle(bundles[0]));
    pthread_join(threads[0], NULL);
    CHECK(wait_code == AM_ERR_BAD_ARG);
    finish();
}
