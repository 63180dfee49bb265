/* The endpoint of the job moves into a bundle that another thread polls, and is there for barriers, gatherings and the end. */
#include "check.h"
#include <pthread.h>

enum { ROUNDS = 200 };
static eb_t shared;
static volatile int is_over;

static void *poll(void *nothing)
{
    while (!is_over)
        OK(AM_Poll(shared));
    return nothing;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int nth, rank, *all;
    start(argc, argv);
    all = malloc(ranks * sizeof *all);
    OK(AM_AllocateBundle(AM_PAR, &shared));
    OK(AM_MoveEndpoint(endpoint, bundle, shared));
    CHECK(pthread_create(&thread, NULL, poll, NULL) == 0);
    for (nth = 0; nth < ROUNDS; nth++) {
        int mine = me + nth;
        OK(AMX_SPMDBarrier());
        OK(AMX_SPMDAllGather(&mine, all, sizeof mine));
        for (rank = 0; rank < ranks; rank++)
            CHECK(all[rank] == rank + nth);
    }
    is_over = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    finish();
    return 1;
}
