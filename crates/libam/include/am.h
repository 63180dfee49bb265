/* Generic Active Messages (D. Culler et al., "Generic Active Message Interface Specification", version 1.1, 1995), as
 * libam.so of netdyno has it. docs/am2.md describes the calls.
 *
 * A message calls a function of the program at another process. Words are numbers or pointers.
 */
#ifndef NETDYNO_AM_H
#define NETDYNO_AM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
typedef void (*am_function_t)(...);
#define AM_ANY_ARGUMENTS ...
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L
typedef void (*am_function_t)(void);
#define AM_ANY_ARGUMENTS ...
#else
typedef void (*am_function_t)();
#define AM_ANY_ARGUMENTS
#endif

typedef int vnn_t;
typedef intptr_t am_word_t;
typedef void (*handler_0_t)(vnn_t from);
typedef void (*handler_1_t)(vnn_t from, am_word_t a);
typedef void (*handler_2_t)(vnn_t from, am_word_t a, am_word_t b);
typedef void (*handler_3_t)(vnn_t from, am_word_t a, am_word_t b, am_word_t c);
typedef void (*handler_4_t)(vnn_t from, am_word_t a, am_word_t b, am_word_t c, am_word_t d);
typedef void (*handler_mem_t)(vnn_t from, void *address, int nbytes, void *argument);

/* Starts and ends the job. Arguments are ignored. */
extern void am_enable(AM_ANY_ARGUMENTS);
extern void am_disable(void);
extern int am_procs(void);
extern int am_my_proc(void);
extern int am_max_size(void);
extern void am_poll(void);
/* Waits until all processes have called it, and polls meanwhile. */
extern void am_barrier(void);
#define am_wait_for(condition) \
    do { \
        while (!(condition)) \
            am_poll(); \
    } while (0)

/* Requests and replies. They return 0, or -1 if they fail. */
extern int am_request_words(vnn_t to, am_function_t function, am_word_t a, am_word_t b, am_word_t c, am_word_t d);
extern int am_reply_words(vnn_t to, am_function_t function, am_word_t a, am_word_t b, am_word_t c, am_word_t d);
#define am_request_0(to, function) \
    am_request_words((to), (am_function_t)(function), 0, 0, 0, 0)
#define am_request_1(to, function, a) \
    am_request_words((to), (am_function_t)(function), (am_word_t)(a), 0, 0, 0)
#define am_request_2(to, function, a, b) \
    am_request_words((to), (am_function_t)(function), (am_word_t)(a), (am_word_t)(b), 0, 0)
#define am_request_3(to, function, a, b, c) \
    am_request_words((to), (am_function_t)(function), (am_word_t)(a), (am_word_t)(b), (am_word_t)(c), 0)
#define am_request_4(to, function, a, b, c, d) \
    am_request_words((to), (am_function_t)(function), (am_word_t)(a), (am_word_t)(b), (am_word_t)(c), (am_word_t)(d))
#define am_reply_0(to, function) \
    am_reply_words((to), (am_function_t)(function), 0, 0, 0, 0)
#define am_reply_1(to, function, a) \
    am_reply_words((to), (am_function_t)(function), (am_word_t)(a), 0, 0, 0)
#define am_reply_2(to, function, a, b) \
    am_reply_words((to), (am_function_t)(function), (am_word_t)(a), (am_word_t)(b), 0, 0)
#define am_reply_3(to, function, a, b, c) \
    am_reply_words((to), (am_function_t)(function), (am_word_t)(a), (am_word_t)(b), (am_word_t)(c), 0)
#define am_reply_4(to, function, a, b, c, d) \
    am_reply_words((to), (am_function_t)(function), (am_word_t)(a), (am_word_t)(b), (am_word_t)(c), (am_word_t)(d))

/* Bulk transfers. Handlers have the form of handler_mem_t and may be NULL. */
extern int am_store(vnn_t to, void *here, void *there, int nbytes, handler_mem_t handler, void *argument);
extern int am_store_async(vnn_t to, void *here, void *there, int nbytes, handler_mem_t handler, void *argument,
                          handler_mem_t end, void *end_argument);
extern int am_get(vnn_t from, void *there, void *here, int nbytes, handler_mem_t handler, void *argument);

#ifdef __cplusplus
}
#endif

#endif
