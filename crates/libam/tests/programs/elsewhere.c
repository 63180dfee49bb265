/*
 * A rank ends the job with code 0, while the others poll a bundle that is not that of the job: "elsewhere alone" in the only
 * thread, "elsewhere thread" in a second one, as the first one waits for it.
 */
#include <pthread.h>
#include "check.h"

static eb_t other;

static void *poll_other(void *nothing)
{
    (void)nothing;
    for (;;)
        OK(AM_Poll(other));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    ep_t apart;
    en_t name;
    start(argc, argv);
    OK(AM_AllocateBundle(AM_SEQ, &other));
    OK(AM_AllocateEndpoint(other, &apart, &name));
    OK(AM_SetExpectedResources(apart, 1, 4));
    OK(AMX_SPMDBarrier());
    if (me == 0) {
        usleep(100000);
        AMX_SPMDExit(0);
    }
    if (!strcmp(argv[1], "thread")) {
        CHECK(pthread_create(&thread, NULL, poll_other, NULL) == 0);
        pthread_join(thread, NULL);
    }
    poll_other(NULL);
}
