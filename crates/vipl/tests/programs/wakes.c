/*
 * Threads that sleep in the library. They cost nothing while nothing happens. Each wakes for its own
 * completion, also where another thread has removed the object that it waits for.
 */
#include "pair.h"
#include <pthread.h>
#include <sys/resource.h>

static memory descriptors, data;
static VIP_VI_HANDLE vis[2];
static VIP_CQ_HANDLE cq;
static VIP_RETURN expected;

static void *wait_for_receive(void *which)
{
    VIP_DESCRIPTOR *done;
    GIVES(VipRecvWait(*(VIP_VI_HANDLE *) which, VIP_INFINITE, &done), expected);
    return NULL;
}

static void *wait_for_entry(void *context)
{
    VIP_VI_HANDLE of;
    VIP_BOOLEAN receives;
    CHECK(context == NULL);
    GIVES(VipCQWait(cq, VIP_INFINITE, &of, &receives), expected);
    return NULL;
}

static void *wait_for_peer(void *context)
{
    VIP_VI_ATTRIBUTES peers;
    CHECK(context == NULL);
    GIVES(VipConnectPeerWait(vis[1], &peers), VIP_INVALID_STATE);
    return NULL;
}

static void *wait_for_client(void *context)
{
    place local = here("nobody comes"), from;
    VIP_VI_ATTRIBUTES peers;
    VIP_CONN_HANDLE conn;
    CHECK(context == NULL);
    GIVES(VipConnectWait(pair.nic, &local.address, 1000, &from.address, &peers, &conn), VIP_TIMEOUT);
    return NULL;
}

static pthread_t run(void *(*what)(void *), void *context)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, what, context) == 0);
    return thread;
}

static void ends(pthread_t thread)
{
    CHECK(pthread_join(thread, NULL) == 0);
}

static void post_receive(int which)
{
    describe(descriptors_of(descriptors) + which, data, (VIP_ULONG) which, 1);
    OK(VipPostRecv(vis[which], descriptors_of(descriptors) + which, descriptors.handle));
}

/* Returns how often this process has gone to sleep. */
static long naps(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_nvcsw;
}

/* One thread waits for a client, two for messages. None wakes the others for nothing. */
static void nothing_happens(void)
{
    pthread_t client = run(wait_for_client, NULL), receives[2];
    long before;
    int which;
    expected = VIP_DESCRIPTOR_ERROR;
    for (which = 0; which < 2; which++) {
        post_receive(which);
        receives[which] = run(wait_for_receive, &vis[which]);
    }
    pause_ms(100);
    before = naps();
    pause_ms(300);
    /* Each polls now and then. Threads that wake each other would do so thousands of times. */
    CHECK(naps() - before < 300);
    for (which = 0; which < 2; which++) {
        OK(VipDisconnect(vis[which]));
        ends(receives[which]);
    }
    ends(client);
}

/* The object that a thread waits for is removed. */
static void it_is_gone(void)
{
    place local = here("waits"), to = there("nobody");
    pthread_t thread;
    expected = VIP_INVALID_PARAMETER;
    post_receive(0);
    thread = run(wait_for_receive, &vis[0]);
    pause_ms(20);
    OK(VipDestroyVi(vis[0]));
    ends(thread);
    thread = run(wait_for_entry, NULL);
    pause_ms(20);
    OK(VipDestroyCQ(cq));
    ends(thread);
    OK(VipConnectPeerRequest(vis[1], &local.address, &to.address, VIP_INFINITE));
    thread = run(wait_for_peer, NULL);
    pause_ms(20);
    OK(VipDisconnect(vis[1]));
    ends(thread);
    post_receive(1);
    thread = run(wait_for_receive, &vis[1]);
    pause_ms(20);
    OK(VipCloseNic(pair.nic));
    ends(thread);
}

int main(int argc, char **argv)
{
    alarm(60);
    pair.process = getpid();
    open_nic(argc > 1 ? argv[1] : "shm");
    memcpy(pair.peer, pair.attributes.LocalNicAddress, pair.attributes.NicAddressLen);
    descriptors = memory_of(2 * sizeof(VIP_DESCRIPTOR));
    data = memory_of(2);
    vis[0] = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    vis[1] = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    OK(VipCreateCQ(pair.nic, 4, &cq));
    nothing_happens();
    it_is_gone();
    return 0;
}
