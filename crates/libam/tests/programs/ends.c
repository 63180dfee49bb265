/* A handler ends the job: "ends CODE" does so at the last rank, while rank 0 waits in a barrier and the others poll. */
#include "check.h"

static int code;

static void end(void *token)
{
    (void)token;
    AMX_SPMDExit(code);
}

int main(int argc, char **argv)
{
    start(argc, argv);
    code = atoi(argv[argc - 1]);
    OK(AM_SetHandler(endpoint, 1, end));
    OK(AMX_SPMDBarrier());
    if (me == 0) {
        OK(AM_Request0(endpoint, ranks - 1, 1));
        OK(AMX_SPMDBarrier());
    }
    UNTIL(0);
    return 1;
}
