/*
 * A library of one-sided operations in the style of VIA programs. Each process has a NIC for its client
 * and one for its data server, a thread. They connect as peers, and discriminators are doubles. Memory
 * is registered twice, with RDMA and without. Data is put and got by RDMA writes. The receiver polls a
 * flag in memory and makes no call.
 *
 * usage: habit_onesided DEVICE0,DEVICE1 HOST0,HOST1 JOB [s]
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vipl.h>

#define COUNT 10000
#define ROUNDS 20
#define CHECK(op)                                                                                    \
    do {                                                                                             \
        int check_ = (int) (op);                                                                     \
        if (check_ != VIP_SUCCESS) {                                                                 \
            fprintf(stderr, "%s:%d: process %d: %s: %d\n", __FILE__, __LINE__, me, #op, check_);     \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

enum { PUT = 1, GET = 2, STOP = 3 };

/* The descriptor in front, followed by the request. */
typedef struct __attribute__((aligned(VIP_DESCRIPTOR_ALIGNMENT))) {
    VIP_DESCRIPTOR desc;
    int operation;
    int number;
    char *flag;
    char *into;
    VIP_MEM_HANDLE handle;
} request_t;

typedef struct {
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attr;
    VIP_PROTECTION_HANDLE ptag;
    VIP_CQ_HANDLE rcq;
    VIP_VI_HANDLE vi;
    VIP_MEM_HANDLE with_rdma, without;
    union {
        VIP_NET_ADDRESS address;
        char room[40];
    } loc, rem;
} side_t;

/* All registered memory, in one piece. */
static struct memory {
    request_t request, spare[2];
    VIP_DESCRIPTOR put, flag, get;
    int served[COUNT];
    int got[COUNT + 1];
    volatile int done;
    int number;
} *mem;
static side_t client, server;
static int me;

static void register_all(side_t *s)
{
    VIP_MEM_ATTRIBUTES attr;
    attr.Ptag = s->ptag;
    attr.EnableRdmaWrite = VIP_TRUE;
    attr.EnableRdmaRead = VIP_FALSE;
    CHECK(VipRegisterMem(s->nic, mem, sizeof *mem, &attr, &s->with_rdma));
    attr.EnableRdmaWrite = VIP_FALSE;
    CHECK(VipRegisterMem(s->nic, mem, sizeof *mem, &attr, &s->without));
    CHECK(!s->with_rdma || !s->without);
}

static void init_side(side_t *s, const char *device, const char *host, double discriminator, int rcq)
{
    VIP_VI_ATTRIBUTES attr;
    memset(s, 0, sizeof *s);
    CHECK(VipOpenNic(device, &s->nic));
    CHECK(VipQueryNic(s->nic, &s->attr));
    CHECK(VipCreatePtag(s->nic, &s->ptag));
    if (rcq)
        CHECK(VipCreateCQ(s->nic, rcq, &s->rcq));
    memset(&attr, 0, sizeof attr);
    attr.EnableRdmaWrite = VIP_TRUE;
    attr.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attr.MaxTransferSize = s->attr.MaxTransferSize;
    attr.Ptag = s->ptag;
    CHECK(VipCreateVi(s->nic, &attr, NULL, s->rcq, &s->vi));
    register_all(s);
    CHECK(VipNSInit(s->nic, NULL));
    CHECK(VipNSGetHostByName(s->nic, (VIP_CHAR *) host, &s->rem.address, 0));
    memcpy(s->loc.address.HostAddress, s->attr.LocalNicAddress, s->attr.NicAddressLen);
    s->loc.address.HostAddressLen = s->rem.address.HostAddressLen = s->attr.NicAddressLen;
    s->loc.address.DiscriminatorLen = s->rem.address.DiscriminatorLen = sizeof discriminator;
    memcpy(s->loc.address.HostAddress + s->attr.NicAddressLen, &discriminator, sizeof discriminator);
    memcpy(s->rem.address.HostAddress + s->attr.NicAddressLen, &discriminator, sizeof discriminator);
    CHECK(VipNSShutdown(s->nic));
}

static void describe(VIP_DESCRIPTOR *d, void *from, unsigned len, VIP_MEM_HANDLE handle)
{
    memset(d, 0, sizeof *d);
    d->CS.Control = VIP_CONTROL_OP_SENDRECV;
    d->CS.Length = len;
    d->CS.SegCount = 1;
    d->DS[0].Local.Data.Address = from;
    d->DS[0].Local.Handle = handle;
    d->DS[0].Local.Length = len;
}

static void describe_rdma(VIP_DESCRIPTOR *d, void *from, VIP_MEM_HANDLE handle, char *to,
                          VIP_MEM_HANDLE to_handle, unsigned len)
{
    memset(d, 0, sizeof *d);
    d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    d->CS.Length = len;
    d->CS.SegCount = 2;
    d->DS[0].Remote.Data.Address = to;
    d->DS[0].Remote.Handle = to_handle;
    d->DS[1].Local.Data.Address = from;
    d->DS[1].Local.Handle = handle;
    d->DS[1].Local.Length = len;
}

static void post_and_finish(side_t *s, VIP_DESCRIPTOR *d)
{
    VIP_DESCRIPTOR *done;
    VIP_RETURN rc;
    CHECK(VipPostSend(s->vi, d, s->without));
    rc = VipSendDone(s->vi, &done);
    if (rc == VIP_NOT_DONE)
        rc = VipSendWait(s->vi, VIP_INFINITE, &done);
    CHECK(rc);
    CHECK(done != d);
}

static void post_spare(request_t *r)
{
    describe(&r->desc, &r->operation, sizeof *r - sizeof r->desc, server.without);
    CHECK(VipPostRecv(server.vi, &r->desc, server.without));
}

/* A request is a message. The answer is RDMA writes: the data, and then the flag. */
static void *data_server(void *context)
{
    (void) context;
    for (;;) {
        VIP_DESCRIPTOR *d;
        VIP_VI_HANDLE of;
        VIP_BOOLEAN rcv;
        request_t *r;
        int i;
        CHECK(VipCQWait(server.rcq, VIP_INFINITE, &of, &rcv));
        CHECK(VipRecvDone(of, &d));
        r = (request_t *) (void *) d;
        if (r->operation == STOP)
            return NULL;
        for (i = 0; i < COUNT; i++)
            mem->served[i] = r->number + i;
        mem->number = r->number;
        describe_rdma(&mem->get, mem->served, server.without, r->into, r->handle, sizeof mem->served);
        post_and_finish(&server, &mem->get);
        describe_rdma(&mem->flag, &mem->number, server.without, r->flag, r->handle, sizeof mem->number);
        post_and_finish(&server, &mem->flag);
        post_spare(r);
    }
}

/* The handle is of this side's memory on its client's NIC, because the other side's server writes
 * there. */
static void ask(int operation, int number)
{
    mem->request.operation = operation;
    mem->request.number = number;
    mem->request.flag = (char *) &mem->done;
    mem->request.into = (char *) mem->got;
    mem->request.handle = client.with_rdma;
    describe(&mem->request.desc, &mem->request.operation, sizeof(request_t) - sizeof(VIP_DESCRIPTOR),
             client.without);
    post_and_finish(&client, &mem->request.desc);
}

static void get(int number)
{
    int i;
    mem->done = 0;
    mem->got[COUNT] = -1;
    ask(GET, number);
    while (mem->done != number)
        sched_yield();
    for (i = 0; i < COUNT; i++)
        if (mem->got[i] != number + i) {
            fprintf(stderr, "process %d: %d at %d of %d\n", me, mem->got[i], i, number);
            exit(1);
        }
    CHECK(mem->got[COUNT] != -1);
}

int main(int argc, char **argv)
{
    VIP_VI_ATTRIBUTES remote_attr;
    VIP_RETURN rc;
    pthread_t thread;
    double base;
    char *device[2], *host[2];
    int i;
    alarm(60);
    if (argc < 4)
        return 2;
    me = argc > 4;
    base = 1100.0 * atoi(argv[3]);
    if (posix_memalign((void **) &mem, 4096, sizeof *mem) != 0)
        return 1;
    memset(mem, 0, sizeof *mem);
    device[0] = strtok(argv[1], ",");
    device[1] = strtok(NULL, ",");
    host[0] = strtok(argv[2], ",");
    host[1] = strtok(NULL, ",");
    /* The client of each process connects to the server of the other. */
    init_side(&client, device[0], host[1], base + me + 3, 0);
    init_side(&server, device[1], host[0], base + !me + 3, 8);
    post_spare(&mem->spare[0]);
    post_spare(&mem->spare[1]);
    CHECK(VipConnectPeerRequest(client.vi, &client.loc.address, &client.rem.address, VIP_INFINITE));
    CHECK(VipConnectPeerRequest(server.vi, &server.loc.address, &server.rem.address, VIP_INFINITE));
    CHECK(VipConnectPeerWait(client.vi, &remote_attr));
    while ((rc = VipConnectPeerDone(server.vi, &remote_attr)) == VIP_NOT_DONE)
        usleep(100);
    CHECK(rc);
    CHECK(pthread_create(&thread, NULL, data_server, NULL));
    for (i = 1; i <= ROUNDS; i++)
        get(i * 1000 + me);
    ask(STOP, 0);
    CHECK(pthread_join(thread, NULL));
    /* The process ends without closing anything, and the system cleans up. */
    return 0;
}
