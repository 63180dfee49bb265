/* Rank 1 is killed while the others wait for it: "killed poll", "killed request", "killed barrier". With the second word
 * "leaves" it calls exit(0) instead, and with "vanishes" _exit(0). */
#include "check.h"
#include <signal.h>

static void take(void *token) { (void)token; }

int main(int argc, char **argv)
{
    start(argc, argv);
    OK(AM_SetHandler(endpoint, 1, take));
    OK(AMX_SPMDBarrier());
    if (me == 1 && argc > 2 && strcmp(argv[2], "vanishes") == 0)
        _exit(0);
    if (me == 1 && argc > 2)
        exit(0);
    if (me == 1)
        kill(getpid(), SIGKILL);
    if (strcmp(argv[1], "barrier") == 0)
        OK(AMX_SPMDBarrier());
    for (;;) {
        if (strcmp(argv[1], "request") == 0)
            OK(AM_Request0(endpoint, 1, 1));
        OK(AM_Poll(bundle));
    }
    return 1;
}
