/* An endpoint has 256 unanswered requests to another one at most: rank 0 sends until it would have to wait, while rank 1 polls
 * nothing. The argument is the name of a file that ends this. */
#include "check.h"

static int arrived, answered;

static void count(void *token, void *bytes, size_t len)
{
    (void)bytes;
    CHECK(len == 1);
    arrived++;
    OK(AM_Reply0(token, 2));
}
static void back(void *token)
{
    (void)token;
    answered++;
}

int main(int argc, char **argv)
{
    static char segment[1];
    int sent = 0, code = AM_OK, other = -1;
    time_t began;
    start(argc, argv);
    CHECK(argc == 2 && ranks == 2);
    OK(AM_SetSeg(endpoint, segment, sizeof segment));
    OK(AM_SetHandler(endpoint, 1, count));
    OK(AM_SetHandler(endpoint, 2, back));
    OK(AMX_SPMDBarrier());
    if (me == 1) {
        for (began = time(NULL); access(argv[1], F_OK) != 0; usleep(1000))
            CHECK(time(NULL) - began < 60);
    } else {
        FILE *file;
        while (sent <= 256 && (code = AM_RequestXferAsync0(endpoint, 1, 0, 1, "x", 1)) == AM_OK)
            sent++;
        CHECK(code == AM_ERR_NOT_SENT);
        /* Rank 1 may not have answered messages of the barrier. */
        CHECK(sent > 200 && sent <= 256);
        CHECK(AM_RequestXferAsync0(endpoint, 1, 0, 1, "x", 1) == AM_ERR_NOT_SENT);
        CHECK(arrived == 0 && answered == 0);
        /* There is room for others, and for itself. */
        OK(AM_RequestXferAsync0(endpoint, 0, 0, 1, "x", 1));
        CHECK(arrived == 1 && answered == 1);
        file = fopen(argv[1], "w");
        CHECK(file != NULL && fclose(file) == 0);
        UNTIL(answered == sent + 1);
        OK(AM_RequestXferAsync0(endpoint, 1, 0, 1, "x", 1));
        sent++;
    }
    other = sent;
    OK(AMX_SPMDBroadcast(&other, sizeof other, 0));
    UNTIL(me == 0 || arrived == other);
    finish();
    return 0;
}
