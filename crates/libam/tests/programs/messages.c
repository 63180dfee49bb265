/* Every category, number of arguments and length comes whole, as a request and as a reply, from each rank to each. */
#include "check.h"

/* Expands the arguments before the macro, so that it sees how many they are. */
#define APPLY(macro, ...) macro(__VA_ARGS__)

enum { SHORT = 10, MEDIUM = 30, LONG = 50, SHORT_BACK = 70, MEDIUM_BACK = 90, LONG_BACK = 110 };

static char segment[70000];
static int answered;

static unsigned char byte(int at, int len) { return (unsigned char)(at * 7 + len); }
static int argument(int nth) { return 0x01010101 * nth - nth; }

static void fill(unsigned char *to, int len)
{
    int at;
    for (at = 0; at < len; at++)
        to[at] = byte(at, len);
}

static void check_bytes(const unsigned char *bytes, int len)
{
    int at;
    for (at = 0; at < len; at++)
        CHECK(bytes[at] == byte(at, len));
}

static unsigned char source[65000];

/* The last argument of a message with bytes, if it has one, is the length. */
static void check_arguments(int count, int len, const int *args)
{
    int nth;
    for (nth = 0; nth < count; nth++)
        CHECK(args[nth] == (nth == count - 1 && len >= 0 ? len : argument(nth)));
}

#define LIST0
#define LIST1 , int a0
#define LIST2 LIST1, int a1
#define LIST3 LIST2, int a2
#define LIST4 LIST3, int a3
#define LIST5 LIST4, int a4
#define LIST6 LIST5, int a5
#define LIST7 LIST6, int a6
#define LIST8 LIST7, int a7
#define LIST9 LIST8, int a8
#define LIST10 LIST9, int a9
#define LIST11 LIST10, int a10
#define LIST12 LIST11, int a11
#define LIST13 LIST12, int a12
#define LIST14 LIST13, int a13
#define LIST15 LIST14, int a14
#define LIST16 LIST15, int a15
#define PASS0
#define PASS1 , a0
#define PASS2 PASS1, a1
#define PASS3 PASS2, a2
#define PASS4 PASS3, a3
#define PASS5 PASS4, a4
#define PASS6 PASS5, a5
#define PASS7 PASS6, a6
#define PASS8 PASS7, a7
#define PASS9 PASS8, a8
#define PASS10 PASS9, a9
#define PASS11 PASS10, a10
#define PASS12 PASS11, a11
#define PASS13 PASS12, a12
#define PASS14 PASS13, a13
#define PASS15 PASS14, a14
#define PASS16 PASS15, a15

#define HANDLERS(n) \
    static void short_##n(void *token LIST##n) \
    { \
        int args[] = { 0 PASS##n }; \
        check_arguments(n, -1, args + 1); \
        OK(APPLY(AM_Reply##n, token, SHORT_BACK + n PASS##n)); \
    } \
    static void short_back_##n(void *token LIST##n) \
    { \
        int args[] = { 0 PASS##n }; \
        check_arguments(n, -1, args + 1); \
        CHECK(AM_Reply0(token, SHORT) == AM_ERR_RESOURCE); \
        answered++; \
    } \
    static void medium_##n(void *token, void *bytes, size_t len LIST##n) \
    { \
        int args[] = { 0 PASS##n }; \
        check_arguments(n, (int)len, args + 1); \
        check_bytes(bytes, (int)len); \
        CHECK(((uintptr_t)bytes & 7) == 0); \
        OK(APPLY(AM_ReplyI##n, token, MEDIUM_BACK + n, bytes, len PASS##n)); \
        memset(bytes, 0, len); \
    } \
    static void medium_back_##n(void *token, void *bytes, size_t len LIST##n) \
    { \
        int args[] = { 0 PASS##n }; \
        (void)token; \
        check_arguments(n, (int)len, args + 1); \
        check_bytes(bytes, (int)len); \
        answered++; \
    } \
    static void long_##n(void *token, void *bytes, size_t len LIST##n) \
    { \
        int args[] = { 0 PASS##n }; \
        check_arguments(n, (int)len, args + 1); \
        CHECK((char *)bytes == segment + 100 + n); \
        check_bytes(bytes, (int)len); \
        OK(APPLY(AM_ReplyXfer##n, token, 3 + n, LONG_BACK + n, bytes, len PASS##n)); \
    } \
    static void long_back_##n(void *token, void *bytes, size_t len LIST##n) \
    { \
        int args[] = { 0 PASS##n }; \
        (void)token; \
        check_arguments(n, (int)len, args + 1); \
        CHECK((char *)bytes == segment + 3 + n); \
        check_bytes(bytes, (int)len); \
        answered++; \
    } \
    static void set_##n(void) \
    { \
        OK(AM_SetHandler(endpoint, SHORT + n, short_##n)); \
        OK(AM_SetHandler(endpoint, SHORT_BACK + n, short_back_##n)); \
        OK(AM_SetHandler(endpoint, MEDIUM + n, medium_##n)); \
        OK(AM_SetHandler(endpoint, MEDIUM_BACK + n, medium_back_##n)); \
        OK(AM_SetHandler(endpoint, LONG + n, long_##n)); \
        OK(AM_SetHandler(endpoint, LONG_BACK + n, long_back_##n)); \
    }

#define ALL(do) \
    do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11) do(12) do(13) do(14) do(15) do(16)

ALL(HANDLERS)

static int arguments[16];
#define A(n) arguments[n]
#define GIVE0
#define GIVE1 , A(0)
#define GIVE2 GIVE1, A(1)
#define GIVE3 GIVE2, A(2)
#define GIVE4 GIVE3, A(3)
#define GIVE5 GIVE4, A(4)
#define GIVE6 GIVE5, A(5)
#define GIVE7 GIVE6, A(6)
#define GIVE8 GIVE7, A(7)
#define GIVE9 GIVE8, A(8)
#define GIVE10 GIVE9, A(9)
#define GIVE11 GIVE10, A(10)
#define GIVE12 GIVE11, A(11)
#define GIVE13 GIVE12, A(12)
#define GIVE14 GIVE13, A(13)
#define GIVE15 GIVE14, A(14)
#define GIVE16 GIVE15, A(15)

static void prepare(int count, int len)
{
    int nth;
    for (nth = 0; nth < count; nth++)
        arguments[nth] = nth == count - 1 && len >= 0 ? len : argument(nth);
}

/* One message at a time, because long ones share the segment. */
static void exchange(int to)
{
    static const int lens[] = { 0, 1, 3, 8, 1379, 1380, 1381, 8191, 8192, 8193, 16384, 64999, 65000 };
    int expected = answered;
    unsigned nth;
#define SHORTS(n) \
    prepare(n, -1); \
    OK(APPLY(AM_Request##n, endpoint, to, SHORT + n GIVE##n)); \
    expected++; \
    UNTIL(answered == expected);
    ALL(SHORTS)
    for (nth = 0; nth < sizeof lens / sizeof *lens; nth++) {
        int len = lens[nth];
        fill(source, len);
#define MEDIUMS(n) \
    prepare(n, len); \
    OK(APPLY(AM_RequestI##n, endpoint, to, MEDIUM + n, source, len GIVE##n)); \
    expected++; \
    UNTIL(answered == expected);
        ALL(MEDIUMS)
#define LONGS(n) \
    prepare(n, len); \
    OK(APPLY(AM_RequestXfer##n, endpoint, to, 100 + n, LONG + n, source, len GIVE##n)); \
    expected++; \
    UNTIL(answered == expected);
        ALL(LONGS)
    }
}

int main(int argc, char **argv)
{
    int rank;
    start(argc, argv);
#define SET(n) set_##n();
    ALL(SET)
    OK(AM_SetSeg(endpoint, segment, sizeof segment));
    OK(AMX_SPMDBarrier());
    for (rank = 0; rank < ranks; rank++) {
        int to;
        for (to = 0; rank == me && to < ranks; to++)
            exchange(to);
        OK(AMX_SPMDBarrier());
    }
    finish();
    return 1;
}
