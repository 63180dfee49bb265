/* The parts of the interface that are beside the messages: what a handler may ask, callbacks, counts, 64-bit arguments,
 * functions with a va_list, and the names of AMMPI and AMUDP. */
#include "check.h"

static const int64_t NUMBERS[] = { 0, -1, INT64_MAX, INT64_MIN, 0x123456789abcdef0, -0x123456789abcdef0, 1LL << 31, INT32_MIN };
enum { COUNT = sizeof NUMBERS / sizeof *NUMBERS };
static int requests, replies, before, after;
static amx_category_t expected;

static void check_token(void *token, int is_request)
{
    handler_t handler;
    amx_category_t category;
    int asks;
    OK(AMX_GetTokenInfo(token, &handler, &category, &asks));
    CHECK(handler == (is_request ? 1 : 2) && category == expected && asks == is_request);
    CHECK(AMX_GetTokenInfo(token, NULL, &category, &asks) == AM_ERR_BAD_ARG);
    /* A reply of an endpoint to itself is handled within the handler of its request. */
    CHECK(before == after + 1 || ranks == 1);
}

static void ask(void *token, int32_t nth, int32_t high, int32_t low)
{
    int64_t number = (int64_t)AM_JOIN64(high, low);
    CHECK(number == NUMBERS[nth]);
    check_token(token, 1);
    requests++;
    OK(AM_Reply3(token, 2, nth, AM_ARG64_HIGH(-number), AM_ARG64_LOW(-number)));
}

static void answer(void *token, int32_t nth, int32_t high, int32_t low)
{
    CHECK(AM_JOIN64(high, low) == -(uint64_t)NUMBERS[nth]);
    check_token(token, 0);
    replies++;
}

static void sum(void *token, int32_t a, int32_t b, int32_t c)
{
    (void)token;
    CHECK(a == 7 && b == -8 && c == 9);
    requests++;
}

static void sum_bytes(void *token, void *bytes, size_t nbytes, int32_t a, int32_t b, int32_t c)
{
    CHECK(nbytes == 5 && memcmp(bytes, "bytes", 5) == 0);
    sum(token, a, b, c);
}

static void note_before(amx_category_t category, int is_request, int handler, void *token, void *buffer, size_t nbytes,
                        int numargs, uint32_t *args)
{
    CHECK(category == expected && is_request == (handler == 1) && token != NULL && buffer == NULL && nbytes == 0);
    CHECK(numargs == 3 && args[0] < COUNT);
    before++;
}

static void note_after(amx_category_t category, int is_request)
{
    CHECK(category == expected && (is_request == 0 || is_request == 1));
    after++;
}

static int send_listed(int category, ...)
{
    int code = -1;
    va_list list;
    va_start(list, category);
    switch (category) {
    case 0: code = AMX_RequestVA(endpoint, (me + 1) % ranks, 3, 3, list); break;
    case 1: code = AMX_RequestIVA(endpoint, (me + 1) % ranks, 4, "bytes", 5, 3, list); break;
    case 2: code = AMX_RequestXferVA(endpoint, (me + 1) % ranks, 4, "bytes", 5, 3, 0, 3, list); break;
    }
    va_end(list);
    return code;
}

int main(int argc, char **argv)
{
    static char segment[100];
    amx_stats_t counts, total = AMX_initial_stats;
    int nth;
    const char *text;
    start(argc, argv);
    /* The library is initialized once by the start, and once more here. */
    OK(AM_Init());
    OK(AM_Terminate());
    OK(AM_Poll(bundle));
    OK(AM_SetHandler(endpoint, 1, ask));
    OK(AM_SetHandler(endpoint, 2, answer));
    OK(AM_SetHandler(endpoint, 3, sum));
    OK(AM_SetHandler(endpoint, 4, sum_bytes));
    OK(AM_SetSeg(endpoint, segment, sizeof segment));
    OK(AMX_SetHandlerCallbacks(endpoint, note_before, note_after));
    OK(AMX_ResetEndpointStatistics(endpoint));
    OK(AMX_SPMDBarrier());
    for (nth = 0; nth < COUNT; nth++)
        OK(AM_Request3(endpoint, (me + 1) % ranks, 1, nth, AM_ARG64_HIGH(NUMBERS[nth]), AM_ARG64_LOW(NUMBERS[nth])));
    UNTIL(requests == COUNT && replies == COUNT);
    CHECK(before == 2 * COUNT && after == 2 * COUNT);
    OK(AMX_GetEndpointStatistics(endpoint, &counts));
    /* Messages of an endpoint to itself are not counted. */
    CHECK(counts.RequestsSent[0] == (ranks > 1 ? COUNT : 0) && counts.RepliesReceived[0] == counts.RequestsSent[0]);
    OK(AMX_AggregateStatistics(&total, &counts));
    OK(AMX_AggregateStatistics(&total, &counts));
    CHECK(total.RequestsSent[0] == 2 * counts.RequestsSent[0]);
    CHECK(AMX_AggregateStatistics(NULL, &counts) == AM_ERR_BAD_ARG);
    text = AMX_DumpStatistics(NULL, &total, 1);
    CHECK(text != NULL && strlen(text) > 20 && AMX_DumpStatistics(NULL, NULL, 1) == NULL);
    OK(AMX_ResetEndpointStatistics(endpoint));
    OK(AMX_GetEndpointStatistics(endpoint, &counts));
    CHECK(counts.RequestsSent[0] == 0 && counts.TotalBytesSent == 0);
    OK(AMX_SPMDBarrier());

    OK(AMX_SetHandlerCallbacks(endpoint, NULL, NULL));
    OK(AMX_SPMDBarrier());
    for (nth = 0; nth < 3; nth++)
        OK(send_listed(nth, 7, -8, 9));
    UNTIL(requests >= COUNT + 3);
    CHECK(memcmp(segment + 3, "bytes", 5) == 0);
#ifdef OVER_UDP_NAMES
    OK(AMUDP_Request(endpoint, (me + 1) % ranks, 3, 3, 7, -8, 9));
    OK(AMUDP_RequestI(endpoint, (me + 1) % ranks, 4, "bytes", 5, 3, 7, -8, 9));
    CHECK(AMUDP_SPMDMyProc() == me && AMUDP_SPMDNumProcs() == ranks);
    OK(AMUDP_SPMDBarrier());
#else
    OK(AMMPI_Request(endpoint, (me + 1) % ranks, 3, 3, 7, -8, 9));
    OK(AMMPI_RequestI(endpoint, (me + 1) % ranks, 4, "bytes", 5, 3, 7, -8, 9));
    CHECK(AMMPI_SPMDMyProc() == me && AMMPI_SPMDNumProcs() == ranks);
    OK(AMMPI_SPMDBarrier());
#endif
    UNTIL(requests >= COUNT + 5);
    finish();
}
