/* Generic Active Messages: functions by their address, stores and gets. */
#include <am.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("process %d: %s:%d: %s\n", am_my_proc(), __FILE__, __LINE__, #what); \
            fflush(stdout); \
            exit(9); \
        } \
    } while (0)

enum { LONGEST = 1000001 };
static int replies, stores, ends, gets, sums;
static char here[LONGEST], there[LONGEST];
static char *heap, *theirs;

static void done(vnn_t from, int *counter) { CHECK(from >= 0); (*counter)++; }
static void sum(vnn_t from, long a, long b, long c, int *counter)
{
    CHECK(a == 1000000000000L && b == -2 && c == 3);
    sums++;
    CHECK(am_request_0(from, done) == -1);
    CHECK(am_reply_1(from, done, counter) == 0);
    CHECK(am_reply_1(from, done, counter) == -1);
}
static void none(vnn_t from) { CHECK(from >= 0); sums++; }
static void heap_is(vnn_t from, char *where) { CHECK(from >= 0); theirs = where; }
static void stored(vnn_t from, void *address, int len, void *counter)
{
    int at;
    CHECK(from >= 0 && address == (void *)there);
    for (at = 0; at < len; at++)
        CHECK(there[at] == (char)(at * 3 + len));
    ++*(int *)counter;
}
static void *argument;
static void keep(vnn_t from, void *address, int len, void *given)
{
    CHECK(from >= 0 && address == (void *)there && len == 1);
    argument = given;
    stores++;
}
static int moved;
static void count(vnn_t from, void *address, int len, void *counter)
{
    CHECK(from == am_my_proc() && address != NULL && len == LONGEST - 1000);
    ++*(int *)counter;
}
static void told(vnn_t to, void *address, int len, void *counter)
{
    CHECK(to >= 0 && address == (void *)here && len >= 0);
    ++*(int *)counter;
}

int main(int argc, char **argv)
{
    static const int lens[] = { 0, 1, 100, 64999, 65000, 65001, 130000, LONGEST };
    unsigned nth;
    int to, expected = 0;
    am_enable(argc, argv);
    /* Transfers of more bytes follow. */
    CHECK(am_max_size() == 65000 && am_max_size() < LONGEST);
    heap = malloc(10);
    to = (am_my_proc() + 1) % am_procs();
    am_barrier();
    CHECK(am_request_0(to, none) == 0);
    CHECK(am_request_4(to, sum, 1000000000000L, -2, 3, &replies) == 0);
    am_wait_for(replies == 1 && sums == 2);
    CHECK(am_request_0(am_procs(), none) == -1 && am_request_0(-1, none) == -1);
    CHECK(am_reply_0(to, none) == -1);
    am_barrier();
    for (nth = 0; nth < sizeof lens / sizeof *lens; nth++) {
        int at, len = lens[nth];
        for (at = 0; at < len; at++)
            here[at] = (char)(at * 3 + len);
        am_barrier();
        CHECK(am_store(to, here, there, len, stored, &stores) == 0);
        CHECK(am_store_async(to, here, there, len, stored, &stores, told, &ends) == 0);
        expected++;
        am_wait_for(stores == 2 * expected && ends == expected);
        am_barrier();
        memset(here, 0, len);
        CHECK(am_get(to, there, here, len, told, &gets) == 0);
        am_wait_for(gets == expected);
        for (at = 0; at < len; at++)
            CHECK(here[at] == (char)(at * 3 + len));
        am_barrier();
    }
    /* Within a process the bytes may overlap. */
    for (nth = 0; nth < 4; nth++) {
        int at, len = LONGEST - 1000, from = nth % 2 == 0 ? 0 : 1000, onto = 1000 - from;
        int before = moved;
        for (at = 0; at < LONGEST; at++)
            here[at] = (char)(at * 7 + (at >> 8));
        if (nth < 2)
            CHECK(am_store(am_my_proc(), here + from, here + onto, len, count, &moved) == 0);
        else
            CHECK(am_get(am_my_proc(), here + from, here + onto, len, count, &moved) == 0);
        am_wait_for(moved == before + 1);
        for (at = 0; at < len; at++)
            CHECK(here[onto + at] == (char)((at + from) * 7 + ((at + from) >> 8)));
    }
    am_barrier();
    /* Memory of the other process that has no name in the program. */
    CHECK(am_request_1((am_my_proc() + am_procs() - 1) % am_procs(), heap_is, heap) == 0);
    am_wait_for(theirs != NULL);
    CHECK(am_store(to, "heap", theirs, 5, (handler_mem_t)NULL, NULL) == 0);
    CHECK(am_get(to, theirs, here, 5, told, &gets) == 0);
    am_wait_for(gets == expected + 1);
    CHECK(strcmp(here, "heap") == 0);
    am_barrier();
    CHECK(strcmp(heap, "heap") == 0);
    CHECK(am_store(to, here, there, -1, stored, &stores) == -1);
    CHECK(am_store(to, NULL, there, 1, stored, &stores) == -1);
    /* An argument may be any number. A function must be of the program. */
    for (nth = 0; nth < 5; nth++) {
        void *const arguments[] = { (void *)-1, (void *)(intptr_t)-7, (void *)(1ULL << 63), (void *)5, heap };
        int before = stores;
        am_barrier();
        CHECK(am_store(am_my_proc(), here, there, 1, keep, arguments[nth]) == 0);
        am_wait_for(stores == before + 1);
        CHECK(argument == arguments[nth]);
        am_barrier();
        CHECK(am_store(to, here, there, 1, keep, (void *)((intptr_t)-100 - nth)) == 0);
        am_wait_for(stores == before + 2);
        CHECK(argument == (void *)((intptr_t)-100 - nth));
    }
    am_barrier();
    CHECK(am_request_0(to, NULL) == -1);
    CHECK(am_request_0(to, (am_function_t)(intptr_t)heap) == -1);
    CHECK(am_store(to, here, there, 1, (handler_mem_t)(intptr_t)heap, NULL) == -1);
    am_disable();
    return 0;
}
