/* A rank ends while a thread of it reads from its input, which stays open and says nothing. */
#include "check.h"
#include <pthread.h>

static void *read_input(void *unused)
{
    char line[100];
    while (fgets(line, sizeof line, stdin) != NULL)
        ;
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int ends[2];
    CHECK(pipe(ends) == 0 && dup2(ends[0], 0) == 0);
    start(argc, argv);
    CHECK(pthread_create(&thread, NULL, read_input, NULL) == 0);
    usleep(100000);
    OK(AMX_SPMDBarrier());
    printf("rank %d ends\n", me);
    AMX_SPMDExit(argc > 1 ? atoi(argv[1]) : 0);
    return 1;
}
