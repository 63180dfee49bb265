/*
 * Shared by the tests of statements: two connected VIs, a descriptor to send and some to receive, and
 * the errors that the callback reported for the current VI.
 */
#ifndef FACTS_H
#define FACTS_H

#include "pair.h"
#include <pthread.h>

#define LENGTH 200
#define RECEIVES 4

static const VIP_RELIABILITY_LEVEL every_level[] = {
    VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION};

static memory descriptors, data, remote;
static VIP_VI_HANDLE vi;
static VIP_RELIABILITY_LEVEL level;
static volatile VIP_VI_HANDLE current;
static volatile int told[VIP_ERROR_CATASTROPHIC + 1];
static VIP_ERROR_DESCRIPTOR last_told;
/* Held while an error is noted, and while another VI becomes the current one. */
static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;

static void note_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    CHECK(context == &pair && error->NicHandle == pair.nic && error->OpCode == 0);
    pthread_mutex_lock(&noting);
    /* The end of an earlier VI may be reported late. */
    if (error->ViHandle == current || error->ViHandle == NULL) {
        last_told = *error;
        told[error->ErrorCode]++;
    }
    pthread_mutex_unlock(&noting);
}

static int is_reliable(void)
{
    return level != VIP_SERVICE_UNRELIABLE;
}

/* Checks that the error callback reports this error once, and no other. */
static void await_told(VIP_ERROR_CODE code)
{
    int left = LONG_MS, at;
    while (told[code] == 0 && left-- > 0)
        pause_ms(1);
    for (at = 0; at <= VIP_ERROR_CATASTROPHIC; at++)
        CHECK(told[at] == (at == (int) code));
    CHECK(last_told.ErrorCode == code);
}

static void told_nothing(void)
{
    int at;
    for (at = 0; at <= VIP_ERROR_CATASTROPHIC; at++)
        CHECK(told[at] == 0);
}

/* The first half of the data is sent, and the second half is for receives. */
static VIP_DESCRIPTOR *to_send(VIP_ULONG count)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors);
    describe(d, data, 0, count);
    return d;
}

static VIP_DESCRIPTOR *to_receive(int which, VIP_ULONG count)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors) + RECEIVES + which;
    describe(d, data, (VIP_ULONG) (RECEIVES + which) * LENGTH, count);
    return d;
}

static VIP_DESCRIPTOR *to_rdma(VIP_UINT16 control)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors);
    describe_rdma(d, control, &remote, data, LENGTH);
    return d;
}

static void post_send(VIP_DESCRIPTOR *d)
{
    OK(VipPostSend(vi, d, descriptors.handle));
}

static void post_receive(VIP_DESCRIPTOR *d)
{
    OK(VipPostRecv(vi, d, descriptors.handle));
}

/* Checks that this descriptor completes next, with exactly this status. */
static void completes(VIP_DESCRIPTOR *d, int receives, VIP_UINT32 status)
{
    VIP_DESCRIPTOR *done;
    VIP_RETURN code = receives ? VipRecvWait(vi, LONG_MS, &done) : VipSendWait(vi, LONG_MS, &done);
    CHECK(code == (status & VIP_STATUS_ERROR_MASK ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS));
    CHECK(done == d);
    if (d->CS.Status != (status | VIP_STATUS_DONE))
        fprintf(stderr, "level %d: status %#x and not %#x\n", level, (unsigned) d->CS.Status,
                (unsigned) (status | VIP_STATUS_DONE));
    CHECK(d->CS.Status == (status | VIP_STATUS_DONE));
}

static void sent(VIP_DESCRIPTOR *d, VIP_UINT32 status)
{
    completes(d, 0, status);
}

static void received(VIP_DESCRIPTOR *d, VIP_UINT32 status)
{
    completes(d, 1, VIP_STATUS_OP_RECEIVE | status);
}

/* Makes a new VI of the current level, and connects it. */
static void join_vi(const char *name)
{
    vi = vi_of(level);
    pthread_mutex_lock(&noting);
    memset((void *) told, 0, sizeof told);
    current = vi;
    pthread_mutex_unlock(&noting);
    join_by(vi, name);
    meet();
}

static void part_vi(void)
{
    meet();
    part(vi);
    meet();
}

static void begin(int argc, char **argv)
{
    start(argc, argv);
    OK(VipErrorCallback(pair.nic, &pair, note_error));
    descriptors = memory_of(2 * RECEIVES * sizeof(VIP_DESCRIPTOR));
    data = memory_of(2 * RECEIVES * LENGTH);
    tell(&data, sizeof data);
    hear(&remote, sizeof remote);
}

/* Runs a test at each level from `first` on. */
static void at_levels(unsigned first, void (*test)(void))
{
    unsigned at;
    for (at = first; at < 3; at++) {
        level = every_level[at];
        test();
    }
}

static void at_every_level(void (*test)(void))
{
    at_levels(0, test);
}

static void at_reliable_levels(void (*test)(void))
{
    at_levels(1, test);
}

#endif
