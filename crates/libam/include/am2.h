/* Active Messages 2 (A. Mainwaring and D. Culler, "Active Message Applications Programming Interface and
 * Communication Subsystem Organization", 1996), as libam.so of netdyno has it.
 *
 * Programs include ammpi.h and ammpi_spmd.h, or amudp.h and amudp_spmd.h, as for AMMPI and AMUDP. docs/am2.md describes
 * every function, its errors and its limits.
 */
#ifndef NETDYNO_AM2_H
#define NETDYNO_AM2_H

#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "am2_const.h"

#ifdef __cplusplus
#define AMX_BEGIN_C extern "C" {
#define AMX_END_C }
#else
#define AMX_BEGIN_C
#define AMX_END_C
#endif

#ifdef __GNUC__
#define AMX_UNUSED __attribute__((__unused__))
#define AMX_FORMAT __attribute__((__format__(__printf__, 1, 2)))
#else
#define AMX_UNUSED
#define AMX_FORMAT
#endif

/* Programs ask whether the library was built to check itself. */
#if !defined(AMX_DEBUG) && !defined(AMX_NDEBUG)
#define AMX_NDEBUG 1
#endif

AMX_BEGIN_C

/* Types. A name is an address of a socket, as in AMUDP: where the endpoint's process listens. */
typedef uint64_t tag_t;
typedef uint8_t handler_t;
typedef struct netdyno_am_name {
    uint16_t sin_family;
    uint16_t sin_port;
    struct in_addr sin_addr;
    uint32_t netdyno_words[2];
} en_t;
typedef struct netdyno_am_bundle *eb_t;
typedef struct netdyno_am_endpoint *ep_t;
typedef int op_t;
typedef uint32_t amx_node_t;
#ifdef __cplusplus
typedef void (*amx_handler_fn_t)(...);
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L
typedef void (*amx_handler_fn_t)(void);
#else
typedef void (*amx_handler_fn_t)();
#endif

typedef enum { amx_Short = 0, amx_Medium = 1, amx_Long = 2, amx_NumCategories = 3 } amx_category_t;

/* Called before and after each handler. */
typedef void (*AMX_preHandlerCallback_t)(amx_category_t category, int is_request, int handler, void *token, void *buffer,
                                         size_t nbytes, int numargs, uint32_t *args);
typedef void (*AMX_postHandlerCallback_t)(amx_category_t category, int is_request);

/* Counts of an endpoint. The transport repeats datagrams by itself, so that the counts of this stay 0, and so do those of
 * latencies. */
typedef struct {
    uint64_t RequestsSent[3];
    uint64_t RepliesSent[3];
    uint64_t RequestsRetransmitted[3];
    uint64_t RepliesRetransmitted[3];
    uint64_t RepliesSquashed[3];
    uint64_t RequestsReceived[3];
    uint64_t RepliesReceived[3];
    uint64_t ReturnedMessages;
    uint64_t OutOfOrderRequests;
    uint64_t OutOfOrderReplies;
    uint64_t RequestMinLatency;
    uint64_t RequestMaxLatency;
    uint64_t RequestSumLatency;
    uint64_t RequestDataBytesSent[3];
    uint64_t ReplyDataBytesSent[3];
    uint64_t RequestTotalBytesSent[3];
    uint64_t ReplyTotalBytesSent[3];
    uint64_t TotalBytesSent;
} amx_stats_t;

/* Statuses of returned messages. */
#define EBADARGS 1
#define EBADENTRY 2
#define EBADTAG 3
#define EBADHANDLER 4
#define EBADSEGOFF 5
#define EBADLENGTH 6
#define EBADENDPOINT 7
#define ECONGESTION 8
#define EUNREACHABLE 9
#define EREPLYREJECTED 10

/* Limits. */
extern int AM_MaxNumTranslations(int *number);
extern int AM_MaxSegLength(uintptr_t *nbytes);

/* A 64-bit argument takes the place of two: AM_Request2(ep, to, handler, AM_ARG64_HIGH(x), AM_ARG64_LOW(x)). The handler
 * has two parameters for it and joins them: AM_JOIN64(high, low). */
#define AM_ARG64_HIGH(x) ((int32_t)((uint64_t)(x) >> 32))
#define AM_ARG64_LOW(x) ((int32_t)(uint64_t)(x))
#define AM_JOIN64(high, low) ((uint64_t)(uint32_t)(high) << 32 | (uint32_t)(low))

/* Set this to make failing calls say why on standard error. */
extern int AMX_VerboseErrors;
extern int AMX_SilentMode;
/* The name of this process in what the library prints, or NULL. */
extern const char *AMX_ProcessLabel;

/* Initialization. */
extern int AM_Init(void);
extern int AM_Terminate(void);

/* Bundles and endpoints. */
extern int AM_AllocateBundle(int mode, eb_t *bundle);
extern int AM_AllocateEndpoint(eb_t bundle, ep_t *endpoint, en_t *name);
extern int AM_FreeBundle(eb_t bundle);
extern int AM_FreeEndpoint(ep_t endpoint);
extern int AM_MoveEndpoint(ep_t endpoint, eb_t from, eb_t to);
extern int AM_GetSeg(ep_t endpoint, void **address, uintptr_t *nbytes);
extern int AM_SetSeg(ep_t endpoint, void *address, uintptr_t nbytes);
extern int AM_GetTag(ep_t endpoint, tag_t *tag);
extern int AM_SetTag(ep_t endpoint, tag_t tag);

/* Translations. */
extern int AMX_Map(ep_t endpoint, int index, const en_t *name, tag_t tag);
extern int AMX_MapAny(ep_t endpoint, int *index, const en_t *name, tag_t tag);
extern int AM_UnMap(ep_t endpoint, int index);
extern int AM_GetTranslationInuse(ep_t endpoint, int index);
extern int AM_GetTranslationTag(ep_t endpoint, int index, tag_t *tag);
extern int AM_GetTranslationName(ep_t endpoint, int index, en_t *name);
extern int AM_GetNumTranslations(ep_t endpoint, int *number);
extern int AM_SetNumTranslations(ep_t endpoint, int number);
extern int AM_SetExpectedResources(ep_t endpoint, int endpoints, int outstanding_requests);
extern int AMX_SetTranslationTag(ep_t endpoint, int index, tag_t tag);

AMX_UNUSED static int AM_Map(ep_t endpoint, int index, en_t name, tag_t tag)
{
    return AMX_Map(endpoint, index, &name, tag);
}

AMX_UNUSED static int AM_MapAny(ep_t endpoint, int *index, en_t name, tag_t tag)
{
    return AMX_MapAny(endpoint, index, &name, tag);
}

AMX_UNUSED static int AMX_enEqual(en_t one, en_t other)
{
    return one.sin_port == other.sin_port && one.sin_addr.s_addr == other.sin_addr.s_addr
           && one.netdyno_words[0] == other.netdyno_words[0] && one.netdyno_words[1] == other.netdyno_words[1];
}

/* Handlers. */
extern int AMX_SetHandler(ep_t endpoint, handler_t handler, amx_handler_fn_t function);
extern int AMX_SetHandlerAny(ep_t endpoint, handler_t *handler, amx_handler_fn_t function);
extern int AM_GetNumHandlers(ep_t endpoint, int *number);
extern int AM_SetNumHandlers(ep_t endpoint, int number);
extern int AMX_SetHandlerCallbacks(ep_t endpoint, AMX_preHandlerCallback_t before, AMX_postHandlerCallback_t after);
#define AM_SetHandler(endpoint, handler, function) AMX_SetHandler((endpoint), (handler), (amx_handler_fn_t)(function))
#define AM_SetHandlerAny(endpoint, handler, function) \
    AMX_SetHandlerAny((endpoint), (handler), (amx_handler_fn_t)(function))
#define _AM_SetHandler AMX_SetHandler
#define _AM_SetHandlerAny AMX_SetHandlerAny

/* Events and polling. */
extern int AM_GetEventMask(eb_t bundle, int *mask);
extern int AM_SetEventMask(eb_t bundle, int mask);
extern int AM_WaitSema(eb_t bundle);
extern int AM_Poll(eb_t bundle);

/* Questions about a message, in its handler. */
extern int AM_GetSourceEndpoint(void *token, en_t *name);
extern int AM_GetDestEndpoint(void *token, ep_t *endpoint);
extern int AM_GetMsgTag(void *token, tag_t *tag);
extern int AMX_GetSourceId(void *token, int *index);
extern int AMX_GetTokenInfo(void *token, handler_t *handler, amx_category_t *category, int *is_request);

/* Counts. */
extern int AMX_GetEndpointStatistics(ep_t endpoint, amx_stats_t *counts);
extern int AMX_ResetEndpointStatistics(ep_t endpoint);
extern int AMX_AggregateStatistics(amx_stats_t *sum, amx_stats_t *added);
extern const char *AMX_DumpStatistics(void *stream, amx_stats_t *counts, int is_of_all);
extern const amx_stats_t AMX_initial_stats;

/* Ends the job with exit code 1. */
extern int AMX_Fail(void);
/* Prints a message, and ends the job with exit code 1. */
AMX_UNUSED AMX_FORMAT static void AMX_FatalErr(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("netdyno-am: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    AMX_Fail();
}

/* Messages. What the functions below pass to the library. */
struct amx_message {
    uint8_t handler;
    uint8_t category;
    uint8_t is_asynchronous;
    int numargs;
    const int32_t *args;
    const void *source;
    size_t nbytes;
    uintptr_t dest_offset;
};
extern int AMX_SendRequest(ep_t endpoint, amx_node_t to, const struct amx_message *message);
extern int AMX_SendReply(void *token, const struct amx_message *message);

/* Short messages of up to five arguments take less time: their arguments are passed in three words. */
extern int AMX_SendShortRequest(ep_t endpoint, amx_node_t to, uint64_t first, uint64_t second, uint64_t third);
extern int AMX_SendShortReply(void *token, uint64_t first, uint64_t second, uint64_t third);
#define AMX_PAIR(low, high) ((uint64_t)(uint32_t)(int32_t)(low) | (uint64_t)(uint32_t)(int32_t)(high) << 32)
#define AMX_FIRST(handler, numargs, a0) ((uint64_t)(handler_t)(handler) | (uint64_t)(numargs) << 8 | AMX_PAIR(0, a0))

AMX_UNUSED static __inline__ struct amx_message amx_describe(uint8_t category, handler_t handler, const void *source,
                                                             size_t nbytes, uintptr_t dest_offset, int numargs,
                                                             const int32_t *args)
{
    struct amx_message message;
    message.handler = handler;
    message.category = category;
    message.is_asynchronous = 0;
    message.numargs = numargs;
    message.args = args;
    message.source = source;
    message.nbytes = nbytes;
    message.dest_offset = dest_offset;
    return message;
}

/* Reads the arguments of a variadic function. The library refuses a wrong number of them. */
#define AMX_READ_ARGUMENTS(numargs, list) \
    int32_t args[16]; \
    int nth; \
    for (nth = 0; nth < (numargs) && nth < 16; nth++) \
        args[nth] = (int32_t)va_arg(list, int)

AMX_UNUSED static int AMX_RequestVA(ep_t endpoint, amx_node_t to, handler_t handler, int numargs, va_list list)
{
    AMX_READ_ARGUMENTS(numargs, list);
    {
        struct amx_message message = amx_describe(0, handler, NULL, 0, 0, numargs, args);
        return AMX_SendRequest(endpoint, to, &message);
    }
}

AMX_UNUSED static int AMX_RequestIVA(ep_t endpoint, amx_node_t to, handler_t handler, const void *source, size_t nbytes,
                                     int numargs, va_list list)
{
    AMX_READ_ARGUMENTS(numargs, list);
    {
        struct amx_message message = amx_describe(1, handler, source, nbytes, 0, numargs, args);
        return AMX_SendRequest(endpoint, to, &message);
    }
}

AMX_UNUSED static int AMX_RequestXferVA(ep_t endpoint, amx_node_t to, handler_t handler, const void *source,
                                        size_t nbytes, uintptr_t dest_offset, int is_asynchronous, int numargs,
                                        va_list list)
{
    AMX_READ_ARGUMENTS(numargs, list);
    {
        struct amx_message message = amx_describe(2, handler, source, nbytes, dest_offset, numargs, args);
        message.is_asynchronous = is_asynchronous != 0;
        return AMX_SendRequest(endpoint, to, &message);
    }
}

AMX_UNUSED static int AMX_ReplyVA(void *token, handler_t handler, int numargs, va_list list)
{
    AMX_READ_ARGUMENTS(numargs, list);
    {
        struct amx_message message = amx_describe(0, handler, NULL, 0, 0, numargs, args);
        return AMX_SendReply(token, &message);
    }
}

AMX_UNUSED static int AMX_ReplyIVA(void *token, handler_t handler, const void *source, size_t nbytes, int numargs,
                                   va_list list)
{
    AMX_READ_ARGUMENTS(numargs, list);
    {
        struct amx_message message = amx_describe(1, handler, source, nbytes, 0, numargs, args);
        return AMX_SendReply(token, &message);
    }
}

AMX_UNUSED static int AMX_ReplyXferVA(void *token, handler_t handler, const void *source, size_t nbytes,
                                      uintptr_t dest_offset, int numargs, va_list list)
{
    AMX_READ_ARGUMENTS(numargs, list);
    {
        struct amx_message message = amx_describe(2, handler, source, nbytes, dest_offset, numargs, args);
        return AMX_SendReply(token, &message);
    }
}

/* The variadic functions. Each argument behind numargs is an int. */
#define AMX_VARIADIC(call) \
    { \
        int code; \
        va_list list; \
        va_start(list, numargs); \
        code = call; \
        va_end(list); \
        return code; \
    }

AMX_UNUSED static int AMX_Request(ep_t endpoint, amx_node_t to, handler_t handler, int numargs, ...)
AMX_VARIADIC(AMX_RequestVA(endpoint, to, handler, numargs, list))

AMX_UNUSED static int AMX_RequestI(ep_t endpoint, amx_node_t to, handler_t handler, const void *source, size_t nbytes,
                                   int numargs, ...)
AMX_VARIADIC(AMX_RequestIVA(endpoint, to, handler, source, nbytes, numargs, list))

AMX_UNUSED static int AMX_RequestXfer(ep_t endpoint, amx_node_t to, handler_t handler, const void *source, size_t nbytes,
                                      uintptr_t dest_offset, int is_asynchronous, int numargs, ...)
AMX_VARIADIC(AMX_RequestXferVA(endpoint, to, handler, source, nbytes, dest_offset, is_asynchronous, numargs, list))

AMX_UNUSED static int AMX_Reply(void *token, handler_t handler, int numargs, ...)
AMX_VARIADIC(AMX_ReplyVA(token, handler, numargs, list))

AMX_UNUSED static int AMX_ReplyI(void *token, handler_t handler, const void *source, size_t nbytes, int numargs, ...)
AMX_VARIADIC(AMX_ReplyIVA(token, handler, source, nbytes, numargs, list))

AMX_UNUSED static int AMX_ReplyXfer(void *token, handler_t handler, const void *source, size_t nbytes,
                                    uintptr_t dest_offset, int numargs, ...)
AMX_VARIADIC(AMX_ReplyXferVA(token, handler, source, nbytes, dest_offset, numargs, list))

/* A negative number of bytes is refused: as a size it is too large. */

/* The arguments of a call, as ints. */
#define AMX_ARGS1(a0) (int32_t)(a0)
#define AMX_ARGS2(a0, a1) AMX_ARGS1(a0), (int32_t)(a1)
#define AMX_ARGS3(a0, a1, a2) AMX_ARGS2(a0, a1), (int32_t)(a2)
#define AMX_ARGS4(a0, a1, a2, a3) AMX_ARGS3(a0, a1, a2), (int32_t)(a3)
#define AMX_ARGS5(a0, a1, a2, a3, a4) AMX_ARGS4(a0, a1, a2, a3), (int32_t)(a4)
#define AMX_ARGS6(a0, a1, a2, a3, a4, a5) AMX_ARGS5(a0, a1, a2, a3, a4), (int32_t)(a5)
#define AMX_ARGS7(a0, a1, a2, a3, a4, a5, a6) AMX_ARGS6(a0, a1, a2, a3, a4, a5), (int32_t)(a6)
#define AMX_ARGS8(a0, a1, a2, a3, a4, a5, a6, a7) AMX_ARGS7(a0, a1, a2, a3, a4, a5, a6), (int32_t)(a7)
#define AMX_ARGS9(a0, a1, a2, a3, a4, a5, a6, a7, a8) AMX_ARGS8(a0, a1, a2, a3, a4, a5, a6, a7), (int32_t)(a8)
#define AMX_ARGS10(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9) AMX_ARGS9(a0, a1, a2, a3, a4, a5, a6, a7, a8), (int32_t)(a9)
#define AMX_ARGS11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) AMX_ARGS10(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9), (int32_t)(a10)
#define AMX_ARGS12(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) AMX_ARGS11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10), (int32_t)(a11)
#define AMX_ARGS13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) AMX_ARGS12(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11), (int32_t)(a12)
#define AMX_ARGS14(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13) AMX_ARGS13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12), (int32_t)(a13)
#define AMX_ARGS15(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14) AMX_ARGS14(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13), (int32_t)(a14)
#define AMX_ARGS16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15) AMX_ARGS15(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14), (int32_t)(a15)

/* Requests and replies by their number of arguments. */
#define AM_Request0(ep, to, h) \
    AMX_SendShortRequest(ep, to, AMX_FIRST(h, 0, 0), AMX_PAIR(0, 0), AMX_PAIR(0, 0))
#define AM_Request1(ep, to, h, a0) \
    AMX_SendShortRequest(ep, to, AMX_FIRST(h, 1, (a0)), AMX_PAIR(0, 0), AMX_PAIR(0, 0))
#define AM_Request2(ep, to, h, a0, a1) \
    AMX_SendShortRequest(ep, to, AMX_FIRST(h, 2, (a0)), AMX_PAIR((a1), 0), AMX_PAIR(0, 0))
#define AM_Request3(ep, to, h, a0, a1, a2) \
    AMX_SendShortRequest(ep, to, AMX_FIRST(h, 3, (a0)), AMX_PAIR((a1), (a2)), AMX_PAIR(0, 0))
#define AM_Request4(ep, to, h, a0, a1, a2, a3) \
    AMX_SendShortRequest(ep, to, AMX_FIRST(h, 4, (a0)), AMX_PAIR((a1), (a2)), AMX_PAIR((a3), 0))
#define AM_Request5(ep, to, h, a0, a1, a2, a3, a4) \
    AMX_SendShortRequest(ep, to, AMX_FIRST(h, 5, (a0)), AMX_PAIR((a1), (a2)), AMX_PAIR((a3), (a4)))
#define AM_Request6(ep, to, h, a0, a1, a2, a3, a4, a5) AMX_Request(ep, to, h, 6, AMX_ARGS6(a0, a1, a2, a3, a4, a5))
#define AM_Request7(ep, to, h, a0, a1, a2, a3, a4, a5, a6) \
    AMX_Request(ep, to, h, 7, AMX_ARGS7(a0, a1, a2, a3, a4, a5, a6))
#define AM_Request8(ep, to, h, a0, a1, a2, a3, a4, a5, a6, a7) \
    AMX_Request(ep, to, h, 8, AMX_ARGS8(a0, a1, a2, a3, a4, a5, a6, a7))
#define AM_Request9(ep, to, h, a0, a1, a2, a3, a4, a5, a6, a7, a8) \
    AMX_Request(ep, to, h, 9, AMX_ARGS9(a0, a1, a2, a3, a4, a5, a6, a7, a8))
#define AM_Request10(ep, to, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
    AMX_Request(ep, to, h, 10, AMX_ARGS10(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9))
#define AM_Request11(ep, to, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
    AMX_Request(ep, to, h, 11, AMX_ARGS11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10))
#define AM_Request12(ep, to, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
    AMX_Request(ep, to, h, 12, AMX_ARGS12(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11))
#define AM_Request13(ep, to, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
    AMX_Request(ep, to, h, 13, AMX_ARGS13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12))
#define AM_Request14(ep, to, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13) \
    AMX_Request(ep, to, h, 14, AMX_ARGS14(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13))
#define AM_Request15(ep, to, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14) \
    AMX_Request(ep, to, h, 15, AMX_ARGS15(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14))
#define AM_Request16(ep, to, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15) \
    AMX_Request(ep, to, h, 16, AMX_ARGS16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15))

#define AM_RequestI0(ep, to, h, src, n) AMX_RequestI(ep, to, h, src, n, 0)
#define AM_RequestI1(ep, to, h, src, n, a0) AMX_RequestI(ep, to, h, src, n, 1, AMX_ARGS1(a0))
#define AM_RequestI2(ep, to, h, src, n, a0, a1) AMX_RequestI(ep, to, h, src, n, 2, AMX_ARGS2(a0, a1))
#define AM_RequestI3(ep, to, h, src, n, a0, a1, a2) AMX_RequestI(ep, to, h, src, n, 3, AMX_ARGS3(a0, a1, a2))
#define AM_RequestI4(ep, to, h, src, n, a0, a1, a2, a3) AMX_RequestI(ep, to, h, src, n, 4, AMX_ARGS4(a0, a1, a2, a3))
#define AM_RequestI5(ep, to, h, src, n, a0, a1, a2, a3, a4) \
    AMX_RequestI(ep, to, h, src, n, 5, AMX_ARGS5(a0, a1, a2, a3, a4))
#define AM_RequestI6(ep, to, h, src, n, a0, a1, a2, a3, a4, a5) \
    AMX_RequestI(ep, to, h, src, n, 6, AMX_ARGS6(a0, a1, a2, a3, a4, a5))
#define AM_RequestI7(ep, to, h, src, n, a0, a1, a2, a3, a4, a5, a6) \
    AMX_RequestI(ep, to, h, src, n, 7, AMX_ARGS7(a0, a1, a2, a3, a4, a5, a6))
#define AM_RequestI8(ep, to, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7) \
    AMX_RequestI(ep, to, h, src, n, 8, AMX_ARGS8(a0, a1, a2, a3, a4, a5, a6, a7))
#define AM_RequestI9(ep, to, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8) \
    AMX_RequestI(ep, to, h, src, n, 9, AMX_ARGS9(a0, a1, a2, a3, a4, a5, a6, a7, a8))
#define AM_RequestI10(ep, to, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
    AMX_RequestI(ep, to, h, src, n, 10, AMX_ARGS10(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9))
#define AM_RequestI11(ep, to, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
    AMX_RequestI(ep, to, h, src, n, 11, AMX_ARGS11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10))
#define AM_RequestI12(ep, to, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
    AMX_RequestI(ep, to, h, src, n, 12, AMX_ARGS12(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11))
#define AM_RequestI13(ep, to, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
    AMX_RequestI(ep, to, h, src, n, 13, AMX_ARGS13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12))
#define AM_RequestI14(ep, to, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13) \
    AMX_RequestI(ep, to, h, src, n, 14, AMX_ARGS14(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13))
#define AM_RequestI15(ep, to, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14) \
    AMX_RequestI(ep, to, h, src, n, 15, AMX_ARGS15(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14))
#define AM_RequestI16(ep, to, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15) \
    AMX_RequestI(ep, to, h, src, n, 16, AMX_ARGS16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15))

#define AM_RequestXfer0(ep, to, off, h, src, n) AMX_RequestXfer(ep, to, h, src, n, off, 0, 0)
#define AM_RequestXfer1(ep, to, off, h, src, n, a0) AMX_RequestXfer(ep, to, h, src, n, off, 0, 1, AMX_ARGS1(a0))
#define AM_RequestXfer2(ep, to, off, h, src, n, a0, a1) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 2, AMX_ARGS2(a0, a1))
#define AM_RequestXfer3(ep, to, off, h, src, n, a0, a1, a2) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 3, AMX_ARGS3(a0, a1, a2))
#define AM_RequestXfer4(ep, to, off, h, src, n, a0, a1, a2, a3) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 4, AMX_ARGS4(a0, a1, a2, a3))
#define AM_RequestXfer5(ep, to, off, h, src, n, a0, a1, a2, a3, a4) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 5, AMX_ARGS5(a0, a1, a2, a3, a4))
#define AM_RequestXfer6(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 6, AMX_ARGS6(a0, a1, a2, a3, a4, a5))
#define AM_RequestXfer7(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 7, AMX_ARGS7(a0, a1, a2, a3, a4, a5, a6))
#define AM_RequestXfer8(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 8, AMX_ARGS8(a0, a1, a2, a3, a4, a5, a6, a7))
#define AM_RequestXfer9(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 9, AMX_ARGS9(a0, a1, a2, a3, a4, a5, a6, a7, a8))
#define AM_RequestXfer10(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 10, AMX_ARGS10(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9))
#define AM_RequestXfer11(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 11, AMX_ARGS11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10))
#define AM_RequestXfer12(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 12, AMX_ARGS12(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11))
#define AM_RequestXfer13(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 13, AMX_ARGS13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12))
#define AM_RequestXfer14(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 14, AMX_ARGS14(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13))
#define AM_RequestXfer15(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 15, AMX_ARGS15(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14))
#define AM_RequestXfer16(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15) \
    AMX_RequestXfer(ep, to, h, src, n, off, 0, 16, AMX_ARGS16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15))

#define AM_RequestXferAsync0(ep, to, off, h, src, n) AMX_RequestXfer(ep, to, h, src, n, off, 1, 0)
#define AM_RequestXferAsync1(ep, to, off, h, src, n, a0) AMX_RequestXfer(ep, to, h, src, n, off, 1, 1, AMX_ARGS1(a0))
#define AM_RequestXferAsync2(ep, to, off, h, src, n, a0, a1) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 2, AMX_ARGS2(a0, a1))
#define AM_RequestXferAsync3(ep, to, off, h, src, n, a0, a1, a2) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 3, AMX_ARGS3(a0, a1, a2))
#define AM_RequestXferAsync4(ep, to, off, h, src, n, a0, a1, a2, a3) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 4, AMX_ARGS4(a0, a1, a2, a3))
#define AM_RequestXferAsync5(ep, to, off, h, src, n, a0, a1, a2, a3, a4) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 5, AMX_ARGS5(a0, a1, a2, a3, a4))
#define AM_RequestXferAsync6(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 6, AMX_ARGS6(a0, a1, a2, a3, a4, a5))
#define AM_RequestXferAsync7(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 7, AMX_ARGS7(a0, a1, a2, a3, a4, a5, a6))
#define AM_RequestXferAsync8(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 8, AMX_ARGS8(a0, a1, a2, a3, a4, a5, a6, a7))
#define AM_RequestXferAsync9(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 9, AMX_ARGS9(a0, a1, a2, a3, a4, a5, a6, a7, a8))
#define AM_RequestXferAsync10(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 10, AMX_ARGS10(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9))
#define AM_RequestXferAsync11(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 11, AMX_ARGS11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10))
#define AM_RequestXferAsync12(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 12, AMX_ARGS12(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11))
#define AM_RequestXferAsync13(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 13, AMX_ARGS13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12))
#define AM_RequestXferAsync14(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 14, AMX_ARGS14(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13))
#define AM_RequestXferAsync15(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 15, AMX_ARGS15(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14))
#define AM_RequestXferAsync16(ep, to, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15) \
    AMX_RequestXfer(ep, to, h, src, n, off, 1, 16, AMX_ARGS16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15))

#define AM_Reply0(tok, h) \
    AMX_SendShortReply(tok, AMX_FIRST(h, 0, 0), AMX_PAIR(0, 0), AMX_PAIR(0, 0))
#define AM_Reply1(tok, h, a0) \
    AMX_SendShortReply(tok, AMX_FIRST(h, 1, (a0)), AMX_PAIR(0, 0), AMX_PAIR(0, 0))
#define AM_Reply2(tok, h, a0, a1) \
    AMX_SendShortReply(tok, AMX_FIRST(h, 2, (a0)), AMX_PAIR((a1), 0), AMX_PAIR(0, 0))
#define AM_Reply3(tok, h, a0, a1, a2) \
    AMX_SendShortReply(tok, AMX_FIRST(h, 3, (a0)), AMX_PAIR((a1), (a2)), AMX_PAIR(0, 0))
#define AM_Reply4(tok, h, a0, a1, a2, a3) \
    AMX_SendShortReply(tok, AMX_FIRST(h, 4, (a0)), AMX_PAIR((a1), (a2)), AMX_PAIR((a3), 0))
#define AM_Reply5(tok, h, a0, a1, a2, a3, a4) \
    AMX_SendShortReply(tok, AMX_FIRST(h, 5, (a0)), AMX_PAIR((a1), (a2)), AMX_PAIR((a3), (a4)))
#define AM_Reply6(tok, h, a0, a1, a2, a3, a4, a5) AMX_Reply(tok, h, 6, AMX_ARGS6(a0, a1, a2, a3, a4, a5))
#define AM_Reply7(tok, h, a0, a1, a2, a3, a4, a5, a6) AMX_Reply(tok, h, 7, AMX_ARGS7(a0, a1, a2, a3, a4, a5, a6))
#define AM_Reply8(tok, h, a0, a1, a2, a3, a4, a5, a6, a7) \
    AMX_Reply(tok, h, 8, AMX_ARGS8(a0, a1, a2, a3, a4, a5, a6, a7))
#define AM_Reply9(tok, h, a0, a1, a2, a3, a4, a5, a6, a7, a8) \
    AMX_Reply(tok, h, 9, AMX_ARGS9(a0, a1, a2, a3, a4, a5, a6, a7, a8))
#define AM_Reply10(tok, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
    AMX_Reply(tok, h, 10, AMX_ARGS10(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9))
#define AM_Reply11(tok, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
    AMX_Reply(tok, h, 11, AMX_ARGS11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10))
#define AM_Reply12(tok, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
    AMX_Reply(tok, h, 12, AMX_ARGS12(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11))
#define AM_Reply13(tok, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
    AMX_Reply(tok, h, 13, AMX_ARGS13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12))
#define AM_Reply14(tok, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13) \
    AMX_Reply(tok, h, 14, AMX_ARGS14(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13))
#define AM_Reply15(tok, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14) \
    AMX_Reply(tok, h, 15, AMX_ARGS15(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14))
#define AM_Reply16(tok, h, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15) \
    AMX_Reply(tok, h, 16, AMX_ARGS16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15))

#define AM_ReplyI0(tok, h, src, n) AMX_ReplyI(tok, h, src, n, 0)
#define AM_ReplyI1(tok, h, src, n, a0) AMX_ReplyI(tok, h, src, n, 1, AMX_ARGS1(a0))
#define AM_ReplyI2(tok, h, src, n, a0, a1) AMX_ReplyI(tok, h, src, n, 2, AMX_ARGS2(a0, a1))
#define AM_ReplyI3(tok, h, src, n, a0, a1, a2) AMX_ReplyI(tok, h, src, n, 3, AMX_ARGS3(a0, a1, a2))
#define AM_ReplyI4(tok, h, src, n, a0, a1, a2, a3) AMX_ReplyI(tok, h, src, n, 4, AMX_ARGS4(a0, a1, a2, a3))
#define AM_ReplyI5(tok, h, src, n, a0, a1, a2, a3, a4) AMX_ReplyI(tok, h, src, n, 5, AMX_ARGS5(a0, a1, a2, a3, a4))
#define AM_ReplyI6(tok, h, src, n, a0, a1, a2, a3, a4, a5) \
    AMX_ReplyI(tok, h, src, n, 6, AMX_ARGS6(a0, a1, a2, a3, a4, a5))
#define AM_ReplyI7(tok, h, src, n, a0, a1, a2, a3, a4, a5, a6) \
    AMX_ReplyI(tok, h, src, n, 7, AMX_ARGS7(a0, a1, a2, a3, a4, a5, a6))
#define AM_ReplyI8(tok, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7) \
    AMX_ReplyI(tok, h, src, n, 8, AMX_ARGS8(a0, a1, a2, a3, a4, a5, a6, a7))
#define AM_ReplyI9(tok, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8) \
    AMX_ReplyI(tok, h, src, n, 9, AMX_ARGS9(a0, a1, a2, a3, a4, a5, a6, a7, a8))
#define AM_ReplyI10(tok, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
    AMX_ReplyI(tok, h, src, n, 10, AMX_ARGS10(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9))
#define AM_ReplyI11(tok, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
    AMX_ReplyI(tok, h, src, n, 11, AMX_ARGS11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10))
#define AM_ReplyI12(tok, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
    AMX_ReplyI(tok, h, src, n, 12, AMX_ARGS12(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11))
#define AM_ReplyI13(tok, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
    AMX_ReplyI(tok, h, src, n, 13, AMX_ARGS13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12))
#define AM_ReplyI14(tok, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13) \
    AMX_ReplyI(tok, h, src, n, 14, AMX_ARGS14(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13))
#define AM_ReplyI15(tok, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14) \
    AMX_ReplyI(tok, h, src, n, 15, AMX_ARGS15(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14))
#define AM_ReplyI16(tok, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15) \
    AMX_ReplyI(tok, h, src, n, 16, AMX_ARGS16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15))

#define AM_ReplyXfer0(tok, off, h, src, n) AMX_ReplyXfer(tok, h, src, n, off, 0)
#define AM_ReplyXfer1(tok, off, h, src, n, a0) AMX_ReplyXfer(tok, h, src, n, off, 1, AMX_ARGS1(a0))
#define AM_ReplyXfer2(tok, off, h, src, n, a0, a1) AMX_ReplyXfer(tok, h, src, n, off, 2, AMX_ARGS2(a0, a1))
#define AM_ReplyXfer3(tok, off, h, src, n, a0, a1, a2) AMX_ReplyXfer(tok, h, src, n, off, 3, AMX_ARGS3(a0, a1, a2))
#define AM_ReplyXfer4(tok, off, h, src, n, a0, a1, a2, a3) \
    AMX_ReplyXfer(tok, h, src, n, off, 4, AMX_ARGS4(a0, a1, a2, a3))
#define AM_ReplyXfer5(tok, off, h, src, n, a0, a1, a2, a3, a4) \
    AMX_ReplyXfer(tok, h, src, n, off, 5, AMX_ARGS5(a0, a1, a2, a3, a4))
#define AM_ReplyXfer6(tok, off, h, src, n, a0, a1, a2, a3, a4, a5) \
    AMX_ReplyXfer(tok, h, src, n, off, 6, AMX_ARGS6(a0, a1, a2, a3, a4, a5))
#define AM_ReplyXfer7(tok, off, h, src, n, a0, a1, a2, a3, a4, a5, a6) \
    AMX_ReplyXfer(tok, h, src, n, off, 7, AMX_ARGS7(a0, a1, a2, a3, a4, a5, a6))
#define AM_ReplyXfer8(tok, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7) \
    AMX_ReplyXfer(tok, h, src, n, off, 8, AMX_ARGS8(a0, a1, a2, a3, a4, a5, a6, a7))
#define AM_ReplyXfer9(tok, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8) \
    AMX_ReplyXfer(tok, h, src, n, off, 9, AMX_ARGS9(a0, a1, a2, a3, a4, a5, a6, a7, a8))
#define AM_ReplyXfer10(tok, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
    AMX_ReplyXfer(tok, h, src, n, off, 10, AMX_ARGS10(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9))
#define AM_ReplyXfer11(tok, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
    AMX_ReplyXfer(tok, h, src, n, off, 11, AMX_ARGS11(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10))
#define AM_ReplyXfer12(tok, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
    AMX_ReplyXfer(tok, h, src, n, off, 12, AMX_ARGS12(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11))
#define AM_ReplyXfer13(tok, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
    AMX_ReplyXfer(tok, h, src, n, off, 13, AMX_ARGS13(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12))
#define AM_ReplyXfer14(tok, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13) \
    AMX_ReplyXfer(tok, h, src, n, off, 14, AMX_ARGS14(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13))
#define AM_ReplyXfer15(tok, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14) \
    AMX_ReplyXfer(tok, h, src, n, off, 15, AMX_ARGS15(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14))
#define AM_ReplyXfer16(tok, off, h, src, n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15) \
    AMX_ReplyXfer(tok, h, src, n, off, 16, AMX_ARGS16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15))

AMX_END_C

#endif
