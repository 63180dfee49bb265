/* A handler ends the job: "ends CODE" does so at the last rank, while rank 0 waits in a barrier and the others poll. With
 * "fatal" before the code it says why, and the code is 1. With "own" a function of the program ends each process. */
#include "check.h"

static int code, is_fatal;

static void end(void *token)
{
    (void)token;
    if (is_fatal)
        AMX_FatalErr("rank %d has no %s", me, "more");
    AMX_SPMDExit(code);
}

static void end_process(int exitcode)
{
    /* One call for the whole line: the ranks write to the same file. */
    char line[40];
    int len = snprintf(line, sizeof line, "rank %d of its own with %d\n", me, exitcode);
    _exit(write(1, line, len) == len ? exitcode : 99);
}

int main(int argc, char **argv)
{
    start(argc, argv);
    code = atoi(argv[argc - 1]);
    is_fatal = strcmp(argv[1], "fatal") == 0;
    if (strcmp(argv[1], "own") == 0)
        AMX_SPMDkillmyprocess = end_process;
    OK(AM_SetHandler(endpoint, 1, end));
    OK(AMX_SPMDBarrier());
    if (me == 0) {
        OK(AM_Request0(endpoint, ranks - 1, 1));
        OK(AMX_SPMDBarrier());
    }
    UNTIL(0);
    return 1;
}
