/* The variadic functions beneath the macros, called directly, and those that take a list of arguments. */
#include "check.h"

#ifdef OVER_UDP_NAMES
#define NAME(function) AMUDP_##function
#else
#define NAME(function) AMMPI_##function
#endif

enum { SHORT = 1, MEDIUM, LONG, SHORT_BACK, MEDIUM_BACK, LONG_BACK };

static char segment[256];
static int answered;

static void check_bytes(const void *bytes, size_t len)
{
    CHECK(len == 6 && memcmp(bytes, "bytes", 6) == 0);
}

static int reply_list(void *token, int kind, const void *bytes, int numargs, ...)
{
    int code = -1;
    va_list list;
    va_start(list, numargs);
    if (kind == 0)
        code = NAME(ReplyVA)(token, SHORT_BACK, numargs, list);
    else if (kind == 1)
        code = NAME(ReplyIVA)(token, MEDIUM_BACK, bytes, 6, numargs, list);
    else
        code = NAME(ReplyXferVA)(token, LONG_BACK, bytes, 6, 100, numargs, list);
    va_end(list);
    return code;
}

static int request_list(int to, int kind, int is_asynchronous, int numargs, ...)
{
    int code = -1;
    va_list list;
    va_start(list, numargs);
    if (kind == 0)
        code = NAME(RequestVA)(endpoint, to, SHORT, numargs, list);
    else if (kind == 1)
        code = NAME(RequestIVA)(endpoint, to, MEDIUM, "bytes", 6, numargs, list);
    else
        code = NAME(RequestXferVA)(endpoint, to, LONG, "bytes", 6, 50, is_asynchronous, numargs, list);
    va_end(list);
    return code;
}

static void short_request(void *token, int is_list, int b, int c)
{
    CHECK(b == -1 && c == 7);
    if (is_list)
        OK(reply_list(token, 0, NULL, 2, b, c));
    else
        OK(NAME(Reply)(token, SHORT_BACK, 2, b, c));
    CHECK(NAME(Reply)(token, SHORT_BACK, 0) == AM_ERR_RESOURCE);
}
static void medium_request(void *token, void *bytes, size_t len, int is_list, int b, int c)
{
    check_bytes(bytes, len);
    CHECK(b == -1 && c == 7);
    if (is_list)
        OK(reply_list(token, 1, bytes, 2, b, c));
    else
        OK(NAME(ReplyI)(token, MEDIUM_BACK, bytes, len, 2, b, c));
}
static void long_request(void *token, void *bytes, size_t len, int is_list, int b, int c)
{
    check_bytes(bytes, len);
    CHECK((char *)bytes == segment + 50 && b == -1 && c == 7);
    if (is_list)
        OK(reply_list(token, 2, bytes, 2, b, c));
    else
        OK(NAME(ReplyXfer)(token, LONG_BACK, bytes, len, 100, 2, b, c));
}
static void short_back(void *token, int b, int c)
{
    (void)token;
    CHECK(b == -1 && c == 7);
    answered++;
}
static void medium_back(void *token, void *bytes, size_t len, int b, int c)
{
    check_bytes(bytes, len);
    short_back(token, b, c);
}
static void long_back(void *token, void *bytes, size_t len, int b, int c)
{
    CHECK((char *)bytes == segment + 100);
    medium_back(token, bytes, len, b, c);
}

/* Sends what may not be sent at once until it can be. */
#define SENT(call) \
    do { \
        int code; \
        while ((code = (call)) == AM_ERR_NOT_SENT) \
            OK(AM_Poll(bundle)); \
        CHECK(code == AM_OK); \
    } while (0)

int main(int argc, char **argv)
{
    int to;
    start(argc, argv);
    OK(AM_SetSeg(endpoint, segment, sizeof segment));
    OK(AM_SetHandler(endpoint, SHORT, short_request));
    OK(AM_SetHandler(endpoint, MEDIUM, medium_request));
    OK(AM_SetHandler(endpoint, LONG, long_request));
    OK(AM_SetHandler(endpoint, SHORT_BACK, short_back));
    OK(AM_SetHandler(endpoint, MEDIUM_BACK, medium_back));
    OK(AM_SetHandler(endpoint, LONG_BACK, long_back));
    OK(AMX_SPMDBarrier());
    for (to = 0; to < ranks; to++) {
        OK(NAME(Request)(endpoint, to, SHORT, 3, 0, -1, 7));
        OK(NAME(RequestI)(endpoint, to, MEDIUM, "bytes", 6, 3, 0, -1, 7));
        OK(NAME(RequestXfer)(endpoint, to, LONG, "bytes", 6, 50, 0, 3, 0, -1, 7));
        SENT(NAME(RequestXfer)(endpoint, to, LONG, "bytes", 6, 50, 1, 3, 0, -1, 7));
        OK(request_list(to, 0, 0, 3, 1, -1, 7));
        OK(request_list(to, 1, 0, 3, 1, -1, 7));
        OK(request_list(to, 2, 0, 3, 1, -1, 7));
        SENT(request_list(to, 2, 1, 3, 1, -1, 7));
    }
    UNTIL(answered == 8 * ranks);
    CHECK(NAME(Request)(endpoint, 0, SHORT, 17) == AM_ERR_BAD_ARG);
    CHECK(NAME(Request)(endpoint, 0, SHORT, -1) == AM_ERR_BAD_ARG);
    CHECK(request_list(ranks, 1, 0, 3, 1, -1, 7) == AM_ERR_BAD_ARG);
    CHECK(NAME(Reply)(NULL, SHORT_BACK, 0) == AM_ERR_BAD_ARG);
    CHECK(NAME(ReplyI)(NULL, SHORT_BACK, "", 1, 0) == AM_ERR_BAD_ARG);
    CHECK(reply_list(NULL, 2, "bytes", 0) == AM_ERR_BAD_ARG);
    finish();
    return 0;
}
