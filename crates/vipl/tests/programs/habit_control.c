/*
 * A device of a message passing library in the style of VIA programs: descriptors by Control and Data
 * in static arrays, addresses as variables on the stack, and discriminators of maximum length. A thread
 * waits for clients for ever. Credits are immediate data of messages without segments. Queues are
 * emptied after disconnecting, and the program ends in the error callback.
 *
 * usage: habit_control DEVICE HOST JOB [s]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vipl.h>

#define QSIZE 16
#define BUF 512
#define PACKETS 200
#define VERIFY(op, val)                                                                              \
    do {                                                                                             \
        int verify_ = (int) (op);                                                                    \
        if (verify_ != (int) (val)) {                                                                \
            fprintf(stderr, "%s:%d: %s: %d != %s\n", __FILE__, __LINE__, #op, verify_, #val);        \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

/* Room for one segment more than the structure has. */
typedef char room_for_desc[(sizeof(VIP_DESCRIPTOR) + sizeof(VIP_DATA_SEGMENT) + 63) & ~63];
static room_for_desc rdesc[QSIZE] __attribute__((aligned(VIP_DESCRIPTOR_ALIGNMENT)));
static room_for_desc sdesc[QSIZE] __attribute__((aligned(VIP_DESCRIPTOR_ALIGNMENT)));
static char rbuf[QSIZE][BUF], sbuf[QSIZE][BUF];

static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES attr;
static VIP_VI_HANDLE vi;
static VIP_CQ_HANDLE cq;
static VIP_MEM_HANDLE rdesc_handle, sdesc_handle, rbuf_handle, sbuf_handle;
static const char *job;
static volatile int is_accepted, is_through;
static int credits = QSIZE - 2, owed, taken;

static VIP_DESCRIPTOR *recv_desc(int at)
{
    return (VIP_DESCRIPTOR *) (void *) rdesc[at];
}

static VIP_DESCRIPTOR *send_desc(int at)
{
    return (VIP_DESCRIPTOR *) (void *) sdesc[at];
}

/* A lost connection is usually the regular end. */
static void error_callback(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    VERIFY(context == NULL, 1);
    if (error->ResourceCode == VIP_RESOURCE_VI && error->ErrorCode == VIP_ERROR_CONN_LOST)
        exit(is_through ? 0 : 1);
    fprintf(stderr, "asynchronous error %d\n", error->ErrorCode);
    exit(1);
}

static void post_recv(int at)
{
    VIP_DESCRIPTOR *d = recv_desc(at);
    d->Control.Length = BUF;
    d->Control.Status = 0;
    d->Control.Control = VIP_CONTROL_OP_SENDRECV;
    d->Control.SegCount = 1;
    d->Data[0].Data.Address = rbuf[at];
    d->Data[0].Handle = rbuf_handle;
    d->Data[0].Length = BUF;
    VERIFY(VipPostRecv(vi, d, rdesc_handle), VIP_SUCCESS);
}

/* Sends in two or three segments, or without any. */
static void post_send(int len, VIP_UINT32 immediate)
{
    static int at;
    VIP_DESCRIPTOR *d = send_desc(at), *done;
    int third = len / 3;
    d->Control.Status = 0;
    d->Control.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
    d->Control.ImmediateData = immediate;
    d->Control.Length = len;
    d->Control.SegCount = len == 0 ? 0 : 3;
    d->Data[0].Data.Address = sbuf[at];
    d->Data[0].Length = third;
    d->Data[1].Data.Address = sbuf[at] + third;
    d->Data[1].Length = third;
    (&d->Data[1])[1].Data.Address = sbuf[at] + 2 * third;
    (&d->Data[1])[1].Length = len - 2 * third;
    d->Data[0].Handle = d->Data[1].Handle = (&d->Data[1])[1].Handle = sbuf_handle;
    VERIFY(VipPostSend(vi, d, sdesc_handle), VIP_SUCCESS);
    VERIFY(VipSendWait(vi, VIP_INFINITE, &done), VIP_SUCCESS);
    VERIFY(done == d, 1);
    at = (at + 1) % QSIZE;
}

/* Takes one packet. Returns its length, or -1 for a packet with credits alone. */
static int take_packet(void)
{
    VIP_DESCRIPTOR *d;
    VIP_VI_HANDLE of;
    VIP_BOOLEAN is_recv;
    int len;
    VERIFY(VipCQWait(cq, VIP_INFINITE, &of, &is_recv), VIP_SUCCESS);
    VERIFY(of == vi && is_recv == VIP_TRUE, 1);
    VERIFY(VipRecvDone(of, &d), VIP_SUCCESS);
    VERIFY(d->Control.Status & VIP_STATUS_IMMEDIATE, VIP_STATUS_IMMEDIATE);
    credits += d->Control.ImmediateData & 0xff;
    len = d->Control.ImmediateData & 0x100 ? (int) d->Control.Length : -1;
    if (len >= 0) {
        VERIFY(len, 1 + taken * 7 % (BUF - 1));
        VERIFY(((char *) d->Data[0].Data.Address)[len - 1], (char) taken);
        taken++;
        owed++;
    }
    post_recv((int) ((room_for_desc *) (void *) d - rdesc));
    return len;
}

static void give_back(void)
{
    if (owed >= QSIZE - 4) {
        post_send(0, owed);
        owed = 0;
    }
}

static void *listener(void *context)
{
    /* On the stack, with only the required members set, and a discriminator of maximum length. */
    struct {
        VIP_NET_ADDRESS address;
        char more[128];
    } local;
    VIP_NET_ADDRESS remote;
    VIP_VI_ATTRIBUTES remote_attr;
    VIP_CONN_HANDLE conn;
    char *disc = (char *) local.address.HostAddress + attr.NicAddressLen;
    VERIFY(context == NULL, 1);
    memcpy(local.address.HostAddress, attr.LocalNicAddress, attr.NicAddressLen);
    local.address.HostAddressLen = attr.NicAddressLen;
    local.address.DiscriminatorLen = attr.MaxDiscriminatorLen;
    memset(disc, 0, attr.MaxDiscriminatorLen);
    strcpy(disc, job);
    VERIFY(VipConnectWait(nic, &local.address, VIP_INFINITE, &remote, &remote_attr, &conn), VIP_SUCCESS);
    VERIFY(remote.DiscriminatorLen, attr.MaxDiscriminatorLen);
    VERIFY(VipConnectAccept(conn, vi), VIP_SUCCESS);
    is_accepted = 1;
    /* Waits for a next client, which never comes. The process ends meanwhile. */
    VipConnectWait(nic, &local.address, VIP_INFINITE, &remote, &remote_attr, &conn);
    VERIFY(0, 1);
    return NULL;
}

static void request(const char *host)
{
    char localbuf[128], remotebuf[128];
    VIP_NET_ADDRESS *local = (VIP_NET_ADDRESS *) (void *) localbuf;
    VIP_NET_ADDRESS *remote = (VIP_NET_ADDRESS *) (void *) remotebuf;
    VIP_VI_ATTRIBUTES remote_attr;
    memcpy(local->HostAddress, attr.LocalNicAddress, attr.NicAddressLen);
    local->HostAddressLen = attr.NicAddressLen;
    VERIFY(VipNSGetHostByName(nic, (VIP_CHAR *) host, remote, 0), VIP_SUCCESS);
    local->DiscriminatorLen = remote->DiscriminatorLen = attr.MaxDiscriminatorLen;
    memset(local->HostAddress + attr.NicAddressLen, 0, attr.MaxDiscriminatorLen);
    memset(remote->HostAddress + attr.NicAddressLen, 0, attr.MaxDiscriminatorLen);
    strcpy((char *) remote->HostAddress + attr.NicAddressLen, job);
    while (VipConnectRequest(vi, local, remote, VIP_INFINITE, &remote_attr) != VIP_SUCCESS)
        usleep(1000);
}

static void init(const char *device)
{
    VIP_MEM_ATTRIBUTES mem = {NULL, VIP_FALSE, VIP_FALSE};
    VIP_VI_ATTRIBUTES vis = {VIP_SERVICE_RELIABLE_DELIVERY, BUF, NULL, NULL, VIP_FALSE, VIP_FALSE};
    int at;
    VERIFY(VipOpenNic(device, &nic), VIP_SUCCESS);
    VERIFY(VipErrorCallback(nic, NULL, error_callback), VIP_SUCCESS);
    VERIFY(VipNSInit(nic, NULL), VIP_SUCCESS);
    VERIFY(VipQueryNic(nic, &attr), VIP_SUCCESS);
    VERIFY(VipCreatePtag(nic, &mem.Ptag), VIP_SUCCESS);
    vis.Ptag = mem.Ptag;
    VERIFY(VipRegisterMem(nic, rdesc, sizeof rdesc, &mem, &rdesc_handle), VIP_SUCCESS);
    VERIFY(VipRegisterMem(nic, sdesc, sizeof sdesc, &mem, &sdesc_handle), VIP_SUCCESS);
    VERIFY(VipRegisterMem(nic, rbuf, sizeof rbuf, &mem, &rbuf_handle), VIP_SUCCESS);
    VERIFY(VipRegisterMem(nic, sbuf, sizeof sbuf, &mem, &sbuf_handle), VIP_SUCCESS);
    VERIFY(VipCreateCQ(nic, QSIZE, &cq), VIP_SUCCESS);
    VERIFY(VipCreateVi(nic, &vis, NULL, cq, &vi), VIP_SUCCESS);
    for (at = 0; at < QSIZE; at++)
        post_recv(at);
}

/* Takes all flushed descriptors, with successful ones among them, until none is left. */
static void close_vi(void)
{
    VIP_DESCRIPTOR *d;
    VIP_RETURN rc;
    int flushed = 0;
    VERIFY(VipDisconnect(vi), VIP_SUCCESS);
    do {
        rc = VipRecvDone(vi, &d);
        flushed += d != NULL;
    } while (rc == VIP_SUCCESS || (rc == VIP_DESCRIPTOR_ERROR && d));
    VERIFY(flushed, QSIZE);
    do {
        VipSendDone(vi, &d);
    } while (d != NULL);
    VERIFY(VipDestroyVi(vi), VIP_SUCCESS);
    VERIFY(VipDestroyCQ(cq), VIP_SUCCESS);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int number;
    alarm(60);
    if (argc < 4)
        return 2;
    job = argv[3];
    init(argv[1]);
    if (argc > 4) {
        VERIFY(pthread_create(&thread, NULL, listener, NULL), 0);
        while (!is_accepted)
            usleep(1000);
        /* Room for another connection. */
        VERIFY(VipResizeCQ(cq, 2 * QSIZE), VIP_SUCCESS);
        while (taken < PACKETS) {
            take_packet();
            give_back();
        }
        is_through = 1;
        post_send(0, owed);
        for (;;)
            pause();
    }
    request(argv[2]);
    for (number = 0; number < PACKETS; number++) {
        int len = 1 + number * 7 % (BUF - 1);
        while (credits == 0)
            VERIFY(take_packet(), -1);
        memset(sbuf, (char) number, sizeof sbuf);
        post_send(len, 0x100);
        credits--;
    }
    while (credits < QSIZE - 2)
        VERIFY(take_packet(), -1);
    close_vi();
    return 0;
}
