/* A sender that is much faster than its receiver, in both directions at once; asynchronous transfers that find no room. */
#include "check.h"
#include <sys/resource.h>

/* Answers of 65000 bytes; the one who gives them does not keep all of them at once. */
enum { COUNT = 20000, ANSWERS = 2500, MOST_MEGABYTES = 64 };
static int handled, next, replied, stored, answers;
static char segment[65000], source[65000];

static void take(void *token, int nth)
{
    CHECK(nth == next);
    next++;
    handled++;
    if (nth % 3 == 0)
        OK(AM_Reply1(token, 2, nth));
}
static void taken(void *token, int nth) { (void)token; (void)nth; replied++; }
static void store(void *token, void *bytes, size_t len, int nth)
{
    (void)token;
    CHECK(bytes == (void *)segment && len == sizeof segment && ((char *)bytes)[64999] == (char)nth);
    stored++;
}

static void ask(void *token) { OK(AM_ReplyI0(token, 5, source, sizeof source)); }
static void answered(void *token, void *bytes, size_t len)
{
    (void)token;
    CHECK(bytes != NULL && len == sizeof source);
    answers++;
}

int main(int argc, char **argv)
{
    amx_stats_t counts;
    int nth, to, refused = 0, sent = 0;
    struct rusage used;
    start(argc, argv);
    to = (me + 1) % ranks;
    OK(AM_SetHandler(endpoint, 1, take));
    OK(AM_SetHandler(endpoint, 2, taken));
    OK(AM_SetHandler(endpoint, 3, store));
    OK(AM_SetSeg(endpoint, segment, sizeof segment));
    OK(AMX_SPMDBarrier());
    if (me == 1)
        usleep(300000);
    for (nth = 0; nth < COUNT; nth++)
        OK(AM_Request1(endpoint, to, 1, nth));
    UNTIL(handled == COUNT && replied == (COUNT + 2) / 3);
    OK(AMX_GetEndpointStatistics(endpoint, &counts));
    CHECK(counts.RequestsSent[0] == COUNT && counts.RequestsReceived[0] == COUNT);
    CHECK(counts.RepliesSent[0] == (COUNT + 2) / 3 && counts.RepliesReceived[0] == (COUNT + 2) / 3);
    CHECK(counts.RequestDataBytesSent[0] == 4 * COUNT && counts.ReturnedMessages == 0);
    OK(AMX_SPMDBarrier());
    /* While rank 1 sleeps, there is soon no room at it. */
    if (me == 1)
        usleep(500000);
    for (nth = 0; me == 0 && nth < 100; nth++) {
        int code;
        source[64999] = (char)sent;
        code = AM_RequestXferAsync1(endpoint, to, 0, 3, source, sizeof source, sent);
        CHECK(code == AM_OK || code == AM_ERR_NOT_SENT);
        if (code == AM_OK)
            sent++;
        else
            refused++;
    }
    CHECK(me != 0 || (sent > 0 && refused > 0));
    OK(AMX_SPMDBroadcast(&sent, sizeof sent, 0));
    UNTIL(me != 1 || stored == sent);
    OK(AM_SetHandler(endpoint, 4, ask));
    OK(AM_SetHandler(endpoint, 5, answered));
    OK(AMX_SPMDBarrier());
    for (nth = 0; me == 0 && nth < ANSWERS; nth++)
        OK(AM_Request0(endpoint, to, 4));
    UNTIL(me != 0 || answers == ANSWERS);
    OK(AMX_SPMDBarrier());
    OK(getrusage(RUSAGE_SELF, &used));
    CHECK(used.ru_maxrss < MOST_MEGABYTES * 1024);
    finish();
    return 1;
}
