/*
 * Ping-pong at each reliability level, polling and blocking. Prints the round trip of both, the best of
 * five times, and their ratio. Descriptors by CS and DS. Arguments: the device; "poll"; the number of
 * round trips in a time; the processors of server and client.
 */
#define _GNU_SOURCE
#include "pair.h"

#include <sched.h>

#define MOST 32768

static memory descriptors, data;

static void complete(VIP_VI_HANDLE vi, int blocks, int receives)
{
    VIP_DESCRIPTOR *done = NULL, *expected = descriptors_of(descriptors) + receives;
    VIP_RETURN code;
    if (blocks) {
        code = receives ? VipRecvWait(vi, LONG_MS, &done) : VipSendWait(vi, LONG_MS, &done);
    } else {
        while ((code = receives ? VipRecvDone(vi, &done) : VipSendDone(vi, &done)) == VIP_NOT_DONE)
            CHECK(done == NULL);
    }
    CHECK(code == VIP_SUCCESS && done == expected);
    CHECK((done->CS.Status & (VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK)) == VIP_STATUS_DONE);
    CHECK((done->CS.Status & VIP_STATUS_OP_MASK) == (receives ? VIP_STATUS_OP_RECEIVE : VIP_STATUS_OP_SEND));
}

static void send_one(VIP_VI_HANDLE vi, VIP_ULONG count, int blocks, char mark)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors);
    memset(data.bytes, mark, count);
    describe(d, data, 0, count);
    OK(VipPostSend(vi, d, descriptors.handle));
    complete(vi, blocks, 0);
}

static void post_receive(VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors) + 1;
    describe(d, data, MOST, MOST);
    OK(VipPostRecv(vi, d, descriptors.handle));
}

static void receive_one(VIP_VI_HANDLE vi, VIP_ULONG count, int blocks, char mark)
{
    VIP_ULONG at;
    complete(vi, blocks, 1);
    CHECK(descriptors_of(descriptors)[1].CS.Length == count);
    for (at = 0; at < count; at++)
        CHECK(data.bytes[MOST + at] == mark);
    /* Posted before the answer, because the next message may come after it. */
    post_receive(vi);
}

/* Returns the mean time of a round trip. */
static double rounds(VIP_VI_HANDLE vi, VIP_ULONG count, int how_many, int blocks)
{
    double began = now_us();
    int round;
    for (round = 0; round < how_many; round++) {
        char mark = (char) ('a' + round % 26);
        if (pair.is_client) {
            send_one(vi, count, blocks, mark);
            receive_one(vi, count, blocks, mark);
        } else {
            receive_one(vi, count, blocks, mark);
            send_one(vi, count, blocks, mark);
        }
    }
    return (now_us() - began) / how_many;
}

static void stay_on(int processor)
{
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    CHECK(sched_setaffinity(0, sizeof only, &only) == 0);
}

int main(int argc, char **argv)
{
    static const VIP_RELIABILITY_LEVEL levels[] = {
        VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION};
    static const VIP_ULONG counts[] = {0, 1, 64, 1000, 4096, MOST};
    /* A polling process keeps a processor busy. */
    int polls = argc > 2 && strcmp(argv[2], "poll") == 0;
    int how_many = argc > 3 ? atoi(argv[3]) : 50;
    unsigned level, count;
    start(argc, argv);
    if (argc > 5)
        stay_on(atoi(argv[4 + pair.is_client]));
    descriptors = memory_of(2 * sizeof(VIP_DESCRIPTOR));
    data = memory_of(2 * MOST);
    for (level = 0; level < 3; level++) {
        VIP_VI_HANDLE vi = vi_of(levels[level]);
        post_receive(vi);
        join_by(vi, "ping-pong");
        meet();
        for (count = 0; count < sizeof counts / sizeof *counts; count++) {
            double best[2] = {1e9, 1e9};
            int turn;
            rounds(vi, counts[count], how_many, 1);
            /* Both in turn, so that other load of the machine affects both. */
            for (turn = 0; polls && turn < 10; turn++) {
                double took = rounds(vi, counts[count], how_many, turn % 2);
                if (took < best[turn % 2])
                    best[turn % 2] = took;
            }
            if (polls && pair.is_client)
                printf("level %u, %lu bytes: polling %.2f us, blocking %.2f us, ratio %.3f\n",
                       (unsigned) levels[level], counts[count], best[0], best[1], best[1] / best[0]);
        }
        meet();
        part(vi);
    }
    fflush(stdout);
    free_memory(descriptors);
    free_memory(data);
    finish();
    return 0;
}
