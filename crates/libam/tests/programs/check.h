/* What the programs share. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef OVER_UDP_NAMES
#include <amudp.h>
#include <amudp_spmd.h>
#else
#include <ammpi.h>
#include <ammpi_spmd.h>
#endif

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("rank %d: %s:%d: %s\n", AMX_SPMDMyProc(), __FILE__, __LINE__, #what); \
            fflush(stdout); \
            AMX_SPMDExit(9); \
            exit(9); \
        } \
    } while (0)
#define OK(call) CHECK((call) == AM_OK)

static eb_t bundle;
static ep_t endpoint;
static int me, ranks;

__attribute__((__unused__)) static void start(int argc, char **argv)
{
    uint64_t id;
    if (AMX_SPMDStartup(&argc, &argv, 0, &id, &bundle, &endpoint) != AM_OK)
        exit(8);
    me = AMX_SPMDMyProc();
    ranks = AMX_SPMDNumProcs();
}

__attribute__((__unused__)) static void finish(void)
{
    OK(AMX_SPMDBarrier());
    AMX_SPMDExit(0);
    exit(7);
}

/* Polls until a condition holds, for a minute at most. */
#define UNTIL(condition) \
    do { \
        time_t began = time(NULL); \
        while (!(condition)) { \
            OK(AM_Poll(bundle)); \
            CHECK(time(NULL) - began < 60); \
        } \
    } while (0)

#endif
