/* Barrier, gathering, broadcast, the environment of rank 0, and the end: "job N CODE" ends by rank N with that code, and
 * "job N CODE flood" does so while the others send to rank N. */
#include "check.h"

static void callback(int code)
{
    printf("rank %d ends with %d\n", me, code);
    fflush(stdout);
}

static void take(void *token) { (void)token; }

int main(int argc, char **argv)
{
    static const size_t lens[] = { 0, 1, 7, 1024, 1025, 100000 };
    unsigned nth;
    char marker[32];
    sprintf(marker, "%d", (int)getpid());
    setenv("NETDYNO_TEST_OF_RANK", marker, 1);
    start(argc, argv);
    OK(AMX_SPMDSetExitCallback(callback));
    OK(AM_SetHandler(endpoint, 1, take));
    for (nth = 0; nth < 200; nth++)
        OK(AMX_SPMDBarrier());
    for (nth = 0; nth < sizeof lens / sizeof *lens; nth++) {
        size_t len = lens[nth];
        unsigned char *given = malloc(len + 1), *all = malloc(ranks * len + 1);
        int rank;
        memset(given, me + 1, len);
        OK(AMX_SPMDAllGather(given, all, len));
        for (rank = 0; rank < ranks; rank++) {
            size_t at;
            for (at = 0; at < len; at++)
                CHECK(all[rank * len + at] == rank + 1);
        }
        for (rank = 0; rank < ranks; rank++) {
            memset(given, me + 1, len);
            OK(AMX_SPMDBroadcast(given, len, rank));
            CHECK(len == 0 || (given[0] == rank + 1 && given[len - 1] == rank + 1));
        }
        free(given);
        free(all);
    }
    strcpy(marker, AMX_SPMDgetenvMaster("NETDYNO_TEST_OF_RANK"));
    {
        char *all = malloc(ranks * sizeof marker);
        int rank;
        OK(AMX_SPMDAllGather(marker, all, sizeof marker));
        for (rank = 0; rank < ranks; rank++)
            CHECK(strcmp(all + rank * sizeof marker, marker) == 0);
    }
    CHECK(me != 0 || strcmp(marker, getenv("NETDYNO_TEST_OF_RANK")) == 0);
    CHECK(AMX_SPMDgetenvMaster("NETDYNO_TEST_OF_NOBODY") == NULL);
    if (argc > 2 && me == atoi(argv[1])) {
        /* The output is a file, so that this waits in a buffer. */
        printf("last words of rank %d\n", me);
        OK(AMX_SPMDSetExitCallback(NULL));
        AMX_SPMDExit(atoi(argv[2]));
    }
    while (argc > 3)
        OK(AM_Request0(endpoint, atoi(argv[1]), 1));
    if (argc > 2)
        UNTIL(0);
    finish();
    return 1;
}
