/* The last rank does not poll, or is stopped with the argument "stop". Rank 0 ends the job with code 7 although it has no room
 * for a message to that rank. The others poll. */
#include "check.h"
#include <signal.h>

static void ignore(void *token, void *bytes, size_t len)
{
    (void)token;
    (void)bytes;
    (void)len;
}

int main(int argc, char **argv)
{
    static char segment[1];
    start(argc, argv);
    OK(AM_SetSeg(endpoint, segment, sizeof segment));
    OK(AM_SetHandler(endpoint, 1, ignore));
    OK(AMX_SPMDBarrier());
    if (me == ranks - 1)
        for (;;)
            argc > 1 && strcmp(argv[1], "stop") == 0 ? raise(SIGSTOP) : pause();
    if (me == 0) {
        while (AM_RequestXferAsync0(endpoint, ranks - 1, 0, 1, "x", 1) == AM_OK)
            ;
        AMX_SPMDExit(7);
    }
    UNTIL(0);
    return 1;
}
