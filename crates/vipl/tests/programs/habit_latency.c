/*
 * A latency and bandwidth test in the style of VIA programs. Two programs are started separately and
 * use host names, an integer as discriminator, memory aligned by hand, and polling of both queues. They
 * measure sizes and those next to them, and then a stream with a window.
 *
 * usage: habit_latency DEVICE HOST JOB [s]
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vipl.h>

#define MOST 32768
#define ROUNDS 20
#define WINDOW 16
#define ALIGNED(p) ((char *) (((unsigned long) (p) + VIP_DESCRIPTOR_ALIGNMENT - 1) & ~(VIP_DESCRIPTOR_ALIGNMENT - 1UL)))

static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES nic_attr;
static VIP_VI_HANDLE vi;
static VIP_MEM_HANDLE mem;
static VIP_DESCRIPTOR *sdesc, *rdesc;
static char *sbuf, *rbuf;
static int is_server;

static void check(VIP_RETURN rc, const char *what)
{
    if (rc != VIP_SUCCESS) {
        fprintf(stderr, "%s: %s: %d\n", is_server ? "server" : "client", what, rc);
        exit(1);
    }
}

static void error_callback(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    (void) context;
    /* The peer may have ended first. */
    if (error->ErrorCode != VIP_ERROR_CONN_LOST)
        fprintf(stderr, "asynchronous error %d\n", error->ErrorCode);
}

/* Members are set one by one, and the others keep their values. */
static void fill(VIP_DESCRIPTOR *d, char *buf, int len)
{
    d->CS.SegCount = 1;
    d->CS.Control = VIP_CONTROL_OP_SENDRECV;
    d->CS.Reserved = 0;
    d->CS.Length = len;
    d->CS.Status = 0;
    d->DS[0].Local.Data.Address = buf;
    d->DS[0].Local.Handle = mem;
    d->DS[0].Local.Length = len;
}

static void post_recv(int slot)
{
    fill(&rdesc[slot], rbuf + slot * MOST, MOST);
    check(VipPostRecv(vi, &rdesc[slot], mem), "VipPostRecv");
}

static void post_send(int slot, int len)
{
    fill(&sdesc[slot], sbuf + slot * MOST, len);
    check(VipPostSend(vi, &sdesc[slot], mem), "VipPostSend");
}

static VIP_DESCRIPTOR *poll_send(void)
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;
    while ((rc = VipSendDone(vi, &d)) == VIP_NOT_DONE)
        sched_yield();
    check(rc, "VipSendDone");
    return d;
}

static VIP_DESCRIPTOR *poll_recv(void)
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;
    while ((rc = VipRecvDone(vi, &d)) == VIP_NOT_DONE)
        sched_yield();
    check(rc, "VipRecvDone");
    return d;
}

static void send_one(int len)
{
    memset(sbuf, len % 251, len);
    post_send(0, len);
    poll_send();
}

static void recv_one(int len)
{
    VIP_DESCRIPTOR *d = poll_recv();
    char *buf = d->DS[0].Local.Data.Address;
    if ((int) d->CS.Length != len || (len > 0 && (unsigned char) buf[len - 1] != len % 251)) {
        fprintf(stderr, "%d bytes and not %d\n", (int) d->CS.Length, len);
        exit(1);
    }
    post_recv((int) (d - rdesc));
}

static void ping_pong(int len)
{
    int i;
    for (i = 0; i < ROUNDS; i++) {
        if (is_server)
            recv_one(len);
        send_one(len);
        if (!is_server)
            recv_one(len);
    }
}

/* The client streams, and gets one message for each window. */
static void stream(int len)
{
    VIP_DESCRIPTOR *d;
    int i, slot;
    for (i = 0; i < ROUNDS; i++) {
        if (is_server) {
            for (slot = 0; slot < WINDOW; slot++) {
                check(VipRecvWait(vi, VIP_INFINITE, &d), "VipRecvWait");
                post_recv((int) (d - rdesc));
            }
            send_one(4);
        } else {
            for (slot = 0; slot < WINDOW; slot++)
                post_send(slot, len);
            for (slot = 0; slot < WINDOW; slot++)
                check(VipSendWait(vi, VIP_INFINITE, &d), "VipSendWait");
            recv_one(4);
        }
    }
}

static void init(const char *device)
{
    VIP_MEM_ATTRIBUTES mem_attr;
    VIP_VI_ATTRIBUTES vi_attr;
    size_t len = 2 * (WINDOW + 1) * (MOST + sizeof(VIP_DESCRIPTOR)) + VIP_DESCRIPTOR_ALIGNMENT;
    char *p = malloc(len), *raw = p;
    int slot;
    check(VipOpenNic(device, &nic), "VipOpenNic");
    check(VipErrorCallback(nic, NULL, error_callback), "VipErrorCallback");
    check(VipQueryNic(nic, &nic_attr), "VipQueryNic");
    check(VipNSInit(nic, NULL), "VipNSInit");
    mem_attr.EnableRdmaWrite = VIP_FALSE;
    mem_attr.EnableRdmaRead = VIP_FALSE;
    check(VipCreatePtag(nic, &mem_attr.Ptag), "VipCreatePtag");
    check(VipRegisterMem(nic, raw, len, &mem_attr, &mem), "VipRegisterMem");
    vi_attr.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    vi_attr.MaxTransferSize = nic_attr.MaxTransferSize;
    vi_attr.QoS = 0;
    vi_attr.Ptag = mem_attr.Ptag;
    vi_attr.EnableRdmaWrite = vi_attr.EnableRdmaRead = VIP_FALSE;
    check(VipCreateVi(nic, &vi_attr, NULL, NULL, &vi), "VipCreateVi");
    p = ALIGNED(p);
    sdesc = (VIP_DESCRIPTOR *) p;
    rdesc = sdesc + WINDOW + 1;
    sbuf = (char *) (rdesc + WINDOW + 1);
    rbuf = sbuf + WINDOW * MOST;
    for (slot = 0; slot < WINDOW + 1; slot++)
        post_recv(slot);
}

static void do_connect(const char *host, int job)
{
    size_t len = sizeof(VIP_NET_ADDRESS) + nic_attr.NicAddressLen + sizeof(int);
    VIP_NET_ADDRESS *local = calloc(1, len), *remote = calloc(1, len);
    VIP_VI_ATTRIBUTES remote_attr;
    VIP_CONN_HANDLE conn;
    VIP_RETURN rc;
    local->HostAddressLen = nic_attr.NicAddressLen;
    memcpy(local->HostAddress, nic_attr.LocalNicAddress, nic_attr.NicAddressLen);
    local->DiscriminatorLen = sizeof(int);
    *(int *) (void *) (local->HostAddress + nic_attr.NicAddressLen) = job;
    if (is_server) {
        check(VipConnectWait(nic, local, VIP_INFINITE, remote, &remote_attr, &conn), "VipConnectWait");
        check(VipConnectAccept(conn, vi), "VipConnectAccept");
    } else {
        remote->HostAddressLen = nic_attr.NicAddressLen;
        check(VipNSGetHostByName(nic, (VIP_CHAR *) host, remote, 0), "VipNSGetHostByName");
        remote->DiscriminatorLen = sizeof(int);
        *(int *) (void *) (remote->HostAddress + remote->HostAddressLen) = job;
        while ((rc = VipConnectRequest(vi, local, remote, VIP_INFINITE, &remote_attr)) == VIP_NO_MATCH)
            usleep(1000);
        check(rc, "VipConnectRequest");
    }
    free(local);
    free(remote);
}

int main(int argc, char **argv)
{
    int len, beside;
    alarm(60);
    if (argc < 4)
        return 2;
    is_server = argc > 4;
    init(argv[1]);
    do_connect(argv[2], atoi(argv[3]));
    for (len = 4; len <= MOST; len *= 8)
        for (beside = -3; beside <= 3; beside += 3)
            if (len + beside <= MOST)
                ping_pong(len + beside);
    stream(MOST);
    /* The last message is the server's, and the server ends right after it. */
    check(VipDisconnect(vi), "VipDisconnect");
    check(VipDestroyVi(vi), "VipDestroyVi");
    check(VipNSShutdown(nic), "VipNSShutdown");
    check(VipCloseNic(nic), "VipCloseNic");
    return 0;
}
