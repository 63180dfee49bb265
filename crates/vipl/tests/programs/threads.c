/*
 * Threads wait at the same time, each for a VI of its own, while another thread polls. None misses a
 * completion, whichever thread's call made the progress. The client's threads share its NIC as well.
 */
#include "pair.h"
#include <pthread.h>

#define THREADS 6
#define ROUNDS 100

static VIP_VI_HANDLE vis[THREADS];
static memory descriptors, data;

/* Each VI has two descriptors: one to send, one to receive. */
static VIP_DESCRIPTOR *descriptor(int at, int receives)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors) + 2 * at + receives;
    describe(d, data, (VIP_ULONG) (2 * at + receives) * sizeof(int), sizeof(int));
    return d;
}

static void receive(int at, int round)
{
    VIP_DESCRIPTOR *done;
    VIP_RETURN code;
    if (at == 0)
        while ((code = VipRecvDone(vis[at], &done)) == VIP_NOT_DONE)
            sched_yield();
    else
        code = VipRecvWait(vis[at], LONG_MS, &done);
    CHECK(code == VIP_SUCCESS);
    CHECK(((int *) (void *) data.bytes)[2 * at + 1] == round);
    OK(VipPostRecv(vis[at], descriptor(at, 1), descriptors.handle));
}

static void send_round(int at, int round)
{
    VIP_DESCRIPTOR *done;
    ((int *) (void *) data.bytes)[2 * at] = round;
    OK(VipPostSend(vis[at], descriptor(at, 0), descriptors.handle));
    OK(VipSendWait(vis[at], LONG_MS, &done));
}

static void *run(void *which)
{
    int at = *(int *) which, round;
    for (round = 0; round < ROUNDS; round++) {
        if (pair.is_client)
            send_round(at, round);
        receive(at, round);
        if (!pair.is_client)
            send_round(at, round);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int numbers[THREADS], at;
    start(argc, argv);
    descriptors = memory_of(2 * THREADS * sizeof(VIP_DESCRIPTOR));
    data = memory_of(2 * THREADS * sizeof(int));
    for (at = 0; at < THREADS; at++) {
        vis[at] = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
        OK(VipPostRecv(vis[at], descriptor(at, 1), descriptors.handle));
        join_by(vis[at], "threads");
    }
    for (at = 0; at < THREADS; at++) {
        numbers[at] = at;
        CHECK(pthread_create(&threads[at], NULL, run, &numbers[at]) == 0);
    }
    for (at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    meet();
    for (at = 0; at < THREADS; at++)
        part(vis[at]);
    finish();
    return 0;
}
