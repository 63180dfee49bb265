/*
 * A message passing library in the style of VIA programs. It has a pool of buffers; each has its
 * descriptor in front, and they are linked by a member of their own. All queues complete on completion
 * queues. Sequence numbers are immediate data. Long messages are RDMA writes over two NICs at the same
 * time; the last piece on each NIC tells that it is the last.
 *
 * usage: habit_mbufs DEVICE0,DEVICE1 HOST0,HOST1 JOB [s]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vipl.h>

#define NICS 2
#define POOL 24
#define POSTED 8
#define BUF 1984
#define LONG (300 * 1024)
#define PIECE 65536
#define CHECK(rc, what)                                                                              \
    do {                                                                                             \
        int check_ = (rc);                                                                           \
        if (check_ != VIP_SUCCESS) {                                                                 \
            fprintf(stderr, "%s:%d: process %d: %s: %d\n", __FILE__, __LINE__, me, what, check_);    \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

struct mbuf {
    VIP_DESCRIPTOR desc;
    char bytes[BUF];
};

/* Sent before a long message: where each NIC may write it. */
struct clear_to_send {
    char *address;
    VIP_MEM_HANDLE handle[NICS];
};

static struct conn {
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attr;
    VIP_PROTECTION_HANDLE ptag;
    VIP_MEM_ATTRIBUTES mem_attr;
    VIP_VI_ATTRIBUTES vi_attr;
    VIP_CQ_HANDLE scq, rcq;
    VIP_VI_HANDLE vi;
    VIP_NET_ADDRESS *local, *remote;
    struct mbuf *pool;
    VIP_MEM_HANDLE pool_handle, data_handle;
    VIP_DESCRIPTOR *head;
    VIP_UINT32 sent, seen;
} conns[NICS];
static int me;
static char *data;

static VIP_DESCRIPTOR *take(struct conn *c)
{
    VIP_DESCRIPTOR *d = c->head;
    c->head = d->CS.Next.Descriptor;
    return d;
}

static void give(struct conn *c, VIP_DESCRIPTOR *d)
{
    d->CS.Length = BUF;
    d->CS.Status = 0;
    d->DS[0].Local.Length = BUF;
    d->CS.Next.Address = c->head;
    c->head = d;
}

static void open_one(struct conn *c, char *device)
{
    int i;
    CHECK(VipOpenNic(device, &c->nic), "VipOpenNic");
    CHECK(VipNSInit(c->nic, NULL), "VipNSInit");
    CHECK(VipQueryNic(c->nic, &c->attr), "VipQueryNic");
    CHECK(VipCreatePtag(c->nic, &c->ptag), "VipCreatePtag");
    c->mem_attr.Ptag = c->ptag;
    c->mem_attr.EnableRdmaWrite = VIP_TRUE;
    if (posix_memalign((void **) &c->pool, 4096, POOL * sizeof(struct mbuf)) != 0)
        exit(1);
    CHECK(VipRegisterMem(c->nic, c->pool, POOL * sizeof(struct mbuf), &c->mem_attr, &c->pool_handle), "pool");
    CHECK(VipRegisterMem(c->nic, data, LONG, &c->mem_attr, &c->data_handle), "data");
    for (i = POOL - 1; i >= 0; i--) {
        VIP_DESCRIPTOR *d = &c->pool[i].desc;
        /* Set for receives as well. */
        d->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
        d->CS.SegCount = 1;
        d->DS[0].Local.Data.Address = (char *) d + sizeof(VIP_DESCRIPTOR);
        d->DS[0].Local.Handle = c->pool_handle;
        give(c, d);
    }
    CHECK(VipCreateCQ(c->nic, 1024, &c->scq), "scq");
    CHECK(VipCreateCQ(c->nic, 1024, &c->rcq), "rcq");
    c->vi_attr.ReliabilityLevel = c->attr.ReliabilityLevelSupport >= VIP_SERVICE_RELIABLE_RECEPTION
                                      ? VIP_SERVICE_RELIABLE_RECEPTION
                                      : VIP_SERVICE_RELIABLE_DELIVERY;
    c->vi_attr.Ptag = c->ptag;
    c->vi_attr.EnableRdmaWrite = VIP_TRUE;
    c->vi_attr.MaxTransferSize = c->attr.MaxTransferSize;
    CHECK(VipCreateVi(c->nic, &c->vi_attr, c->scq, c->rcq, &c->vi), "VipCreateVi");
    for (i = 0; i < POSTED; i++)
        CHECK(VipPostRecv(c->vi, take(c), c->pool_handle), "VipPostRecv");
}

/* Addresses are made first, then the name service is shut down, and connections are made later. */
static void address(struct conn *c, char *host, int job, int which)
{
    int disc[3] = {job, me, which}, their_disc[3] = {job, !me, which};
    size_t len = sizeof(VIP_NET_ADDRESS) + c->attr.NicAddressLen + sizeof disc;
    c->local = malloc(len);
    c->remote = malloc(len);
    c->local->HostAddressLen = c->attr.NicAddressLen;
    c->local->DiscriminatorLen = sizeof disc;
    memcpy(c->local->HostAddress, c->attr.LocalNicAddress, c->attr.NicAddressLen);
    memcpy(c->local->HostAddress + c->attr.NicAddressLen, disc, sizeof disc);
    c->remote->HostAddressLen = c->attr.NicAddressLen;
    CHECK(VipNSGetHostByName(c->nic, host, c->remote, 0), "VipNSGetHostByName");
    c->remote->DiscriminatorLen = sizeof disc;
    memcpy(c->remote->HostAddress + c->attr.NicAddressLen, their_disc, sizeof disc);
    CHECK(VipNSShutdown(c->nic), "VipNSShutdown");
}

static void do_connect(struct conn *c)
{
    VIP_VI_ATTRIBUTES remote_attr;
    VIP_CONN_HANDLE handle;
    VIP_RETURN rc = VIP_NO_MATCH;
    if (me == 0) {
        CHECK(VipConnectWait(c->nic, c->local, 30000, c->remote, &remote_attr, &handle), "VipConnectWait");
        CHECK(VipConnectAccept(handle, c->vi), "VipConnectAccept");
    } else {
        while (rc == VIP_NO_MATCH)
            rc = VipConnectRequest(c->vi, c->local, c->remote, 30000, &remote_attr);
        CHECK(rc, "VipConnectRequest");
    }
}

static VIP_DESCRIPTOR *complete(struct conn *c, int receives)
{
    VIP_DESCRIPTOR *d;
    VIP_VI_HANDLE of;
    VIP_BOOLEAN is_recv;
    CHECK(VipCQWait(receives ? c->rcq : c->scq, VIP_INFINITE, &of, &is_recv), "VipCQWait");
    if (of != c->vi || is_recv != receives)
        exit(1);
    CHECK(receives ? VipRecvDone(of, &d) : VipSendDone(of, &d), "Vip...Done");
    return d;
}

static void send_short(struct conn *c, const void *bytes, int len)
{
    VIP_DESCRIPTOR *d = take(c);
    memcpy((char *) d + sizeof(VIP_DESCRIPTOR), bytes, len);
    d->CS.Length = len;
    d->DS[0].Local.Length = len;
    d->CS.ImmediateData = c->sent++;
    CHECK(VipPostSend(c->vi, d, d->DS[0].Local.Handle), "VipPostSend");
    give(c, complete(c, 0));
}

static void recv_short(struct conn *c, void *bytes, int len)
{
    VIP_DESCRIPTOR *d = complete(c, 1);
    if (d->CS.ImmediateData != c->seen++ || (int) d->CS.Length != len) {
        fprintf(stderr, "message %u of %u bytes\n", d->CS.ImmediateData, d->CS.Length);
        exit(1);
    }
    memcpy(bytes, (char *) d + sizeof(VIP_DESCRIPTOR), len);
    give(c, d);
    CHECK(VipPostRecv(c->vi, take(c), c->pool_handle), "VipPostRecv");
}

/* Pieces alternate between both NICs. The last piece of each NIC has immediate data. */
static void send_long(void)
{
    struct clear_to_send cts;
    int at, piece = 0, which;
    recv_short(&conns[0], &cts, sizeof cts);
    for (at = 0; at < LONG; at += PIECE, piece++) {
        struct conn *c = &conns[piece % NICS];
        VIP_DESCRIPTOR *d = take(c);
        int len = LONG - at < PIECE ? LONG - at : PIECE, is_last = at + NICS * PIECE >= LONG;
        d->CS.Control = VIP_CONTROL_OP_RDMAWRITE | (is_last ? VIP_CONTROL_IMMEDIATE : 0);
        d->CS.ImmediateData = (VIP_UINT32) -7;
        d->CS.SegCount = 2;
        d->DS[0].Remote.Data.Address = cts.address + at;
        d->DS[0].Remote.Handle = cts.handle[piece % NICS];
        d->DS[0].Remote.Reserved = 0;
        d->DS[1].Local.Data.Address = data + at;
        d->DS[1].Local.Handle = c->data_handle;
        d->DS[1].Local.Length = len;
        CHECK(VipPostSend(c->vi, d, c->pool_handle), "RDMA write");
    }
    for (at = 0; at < piece; at++)
        complete(&conns[at % NICS], 0);
    for (which = 0; which < NICS; which++)
        conns[which].sent++;
}

static void recv_long(void)
{
    struct clear_to_send cts;
    int which;
    cts.address = data;
    for (which = 0; which < NICS; which++)
        cts.handle[which] = conns[which].data_handle;
    send_short(&conns[0], &cts, sizeof cts);
    for (which = 0; which < NICS; which++) {
        VIP_DESCRIPTOR *d = complete(&conns[which], 1);
        if (d->CS.ImmediateData != (VIP_UINT32) -7)
            exit(1);
        conns[which].seen++;
        give(&conns[which], d);
        CHECK(VipPostRecv(conns[which].vi, take(&conns[which]), conns[which].pool_handle), "VipPostRecv");
    }
    for (which = 0; which < LONG; which++)
        if (data[which] != (char) (which % 127)) {
            fprintf(stderr, "byte %d\n", which);
            exit(1);
        }
}

int main(int argc, char **argv)
{
    char *device, *host;
    int i, token = 777, which;
    alarm(60);
    if (argc < 4)
        return 2;
    me = argc > 4 ? 0 : 1;
    data = malloc(LONG);
    device = strtok(strdup(argv[1]), ",");
    for (which = 0; which < NICS; which++, device = strtok(NULL, ","))
        open_one(&conns[which], device);
    host = strtok(argv[2], ",");
    for (which = 0; which < NICS; which++, host = strtok(NULL, ","))
        address(&conns[which], host, atoi(argv[3]), which);
    for (which = 0; which < NICS; which++)
        do_connect(&conns[which]);
    for (i = 0; i < 50; i++) {
        struct conn *c = &conns[i % NICS];
        if (me == 0)
            recv_short(c, &token, sizeof token);
        send_short(c, &token, sizeof token);
        if (me != 0)
            recv_short(c, &token, sizeof token);
    }
    for (i = 0; i < LONG; i++)
        data[i] = me ? (char) (i % 127) : 0;
    if (me)
        send_long();
    else
        recv_long();
    /* Both processes have got here. Now everything is undone, some of it twice. */
    send_short(&conns[0], &token, sizeof token);
    recv_short(&conns[0], &token, sizeof token);
    for (which = 0; which < NICS; which++)
        VipDisconnect(conns[which].vi);
    for (which = 0; which < NICS; which++) {
        struct conn *c = &conns[which];
        VipDisconnect(c->vi);
        CHECK(VipDestroyVi(c->vi), "VipDestroyVi");
        CHECK(VipDestroyCQ(c->scq), "VipDestroyCQ");
        CHECK(VipDestroyCQ(c->rcq), "VipDestroyCQ");
        CHECK(VipDeregisterMem(c->nic, c->pool, c->pool_handle), "VipDeregisterMem");
        CHECK(VipDeregisterMem(c->nic, data, c->data_handle), "VipDeregisterMem");
        CHECK(VipDestroyPtag(c->nic, c->ptag), "VipDestroyPtag");
        free(c->local);
        free(c->remote);
        free(c->pool);
        CHECK(VipCloseNic(c->nic), "VipCloseNic");
    }
    return 0;
}
