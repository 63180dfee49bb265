/* A rank forks a child, which ends by exit() and uses no Active Messages: the job goes on. */
#include "check.h"
#include <sys/wait.h>

enum { REQUESTS = 100 };
static volatile int answers;

static void take(void *token, int32_t number) { OK(AM_Reply1(token, 2, number)); }
static void count(void *token, int32_t number)
{
    (void)token;
    (void)number;
    answers++;
}

static void ask(void)
{
    int nth;
    answers = 0;
    for (nth = 0; nth < REQUESTS; nth++)
        OK(AM_Request1(endpoint, (me + 1) % ranks, 1, nth));
    UNTIL(answers == REQUESTS);
    OK(AMX_SPMDBarrier());
}

int main(int argc, char **argv)
{
    pid_t child;
    int status;
    start(argc, argv);
    OK(AM_SetTag(endpoint, AM_ALL));
    OK(AM_SetHandler(endpoint, 1, take));
    OK(AM_SetHandler(endpoint, 2, count));
    OK(AMX_SPMDBarrier());
    ask();
    if (me == 0) {
        child = fork();
        if (child == 0)
            exit(0);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    ask();
    finish();
}
