/* Round trips of short messages with four arguments: "pingpong TRIPS CPU CPU". Rank 0 prints the median over batches, in
 * nanoseconds. */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>

enum { BATCHES = 101 };
static volatile int answers;
static int is_over;

static void ping(void *token, int a, int b, int c, int d) { OK(AM_Reply4(token, 2, a, b, c, d)); }
static void pong(void *token, int a, int b, int c, int d)
{
    (void)token; (void)a; (void)b; (void)c; (void)d;
    answers++;
}
static void stop(void *token) { (void)token; is_over = 1; }

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static int by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    double batches[BATCHES];
    int trips = argc > 1 ? atoi(argv[1]) : 1000, batch, trip;
    start(argc, argv);
    if (argc > 3) {
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(atoi(argv[2 + me]), &only);
        CHECK(sched_setaffinity(0, sizeof only, &only) == 0);
    }
    OK(AM_SetHandler(endpoint, 1, ping));
    OK(AM_SetHandler(endpoint, 2, pong));
    OK(AM_SetHandler(endpoint, 3, stop));
    OK(AMX_SPMDBarrier());
    while (me == 1 && !is_over)
        OK(AM_Poll(bundle));
    if (me == 0) {
        for (batch = 0; batch < BATCHES; batch++) {
            double began = now_ns();
            for (trip = 0; trip < trips; trip++) {
                int before = answers;
                OK(AM_Request4(endpoint, 1, 1, trip, 2, 3, 4));
                while (answers == before)
                    OK(AM_Poll(bundle));
            }
            batches[batch] = (now_ns() - began) / trips;
        }
        qsort(batches, BATCHES, sizeof *batches, by_size);
        printf("%.2f\n", batches[BATCHES / 2]);
        fflush(stdout);
        OK(AM_Request0(endpoint, 1, 3));
    }
    finish();
    return 1;
}
