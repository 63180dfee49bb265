/*
 * Two processes, each with a NIC, for these programs. The first argument is the device. The process
 * that was started is the server. It starts the client, and fails if the client does.
 *
 * Pipes between them carry what programs on two hosts would send over a socket: addresses, and that a
 * process has reached a point.
 */
#ifndef PAIR_H
#define PAIR_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

#define CHECK(is_so)                                                                                 \
    do {                                                                                             \
        if (!(is_so)) {                                                                              \
            fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, __LINE__, pair_role(), #is_so);     \
            _exit(1);                                                                                \
        }                                                                                            \
    } while (0)

#define GIVES(call, code)                                                                            \
    do {                                                                                             \
        VIP_RETURN gives_ = (call);                                                                  \
        if (gives_ != (code)) {                                                                      \
            fprintf(stderr, "%s:%d: %s: %s is %d and not %s\n", __FILE__, __LINE__, pair_role(),     \
                    #call, (int) gives_, #code);                                                     \
            _exit(1);                                                                                \
        }                                                                                            \
    } while (0)

#define OK(call) GIVES(call, VIP_SUCCESS)

/* Longer than any step takes, also on a busy machine. */
#define LONG_MS 20000

static struct {
    int is_client;
    int in, out;
    /* The server. Names end with its ID, so that pairs that run at the same time do not meet. */
    pid_t process;
    pid_t client;
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attributes;
    VIP_PROTECTION_HANDLE ptag;
    unsigned char peer[64];
} pair;

static const char *pair_role(void)
{
    return pair.is_client ? "client" : "server";
}

static void tell(const void *bytes, size_t count)
{
    CHECK(write(pair.out, bytes, count) == (ssize_t) count);
}

static void hear(void *bytes, size_t count)
{
    char *at = bytes;
    while (count > 0) {
        ssize_t some = read(pair.in, at, count);
        CHECK(some > 0);
        at += some;
        count -= (size_t) some;
    }
}

/* Returns when both processes have reached this point. */
static void meet(void)
{
    char byte = 0;
    tell(&byte, 1);
    hear(&byte, 1);
}

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec * 1e6 + (double) time.tv_nsec / 1e3;
}

static void open_nic(const char *device)
{
    OK(VipOpenNic(device, &pair.nic));
    OK(VipQueryNic(pair.nic, &pair.attributes));
    OK(VipCreatePtag(pair.nic, &pair.ptag));
}

static void start(int argc, char **argv)
{
    int to_client[2], to_server[2];
    const char *device = argc > 1 ? argv[1] : "shm";
    pair.process = getpid();
    CHECK(pipe(to_client) == 0 && pipe(to_server) == 0);
    pair.client = fork();
    CHECK(pair.client >= 0);
    pair.is_client = pair.client == 0;
    pair.in = pair.is_client ? to_client[0] : to_server[0];
    pair.out = pair.is_client ? to_server[1] : to_client[1];
    close(pair.is_client ? to_client[1] : to_server[1]);
    close(pair.is_client ? to_server[0] : to_client[0]);
    alarm(60);
    open_nic(device);
    tell(pair.attributes.LocalNicAddress, pair.attributes.NicAddressLen);
    hear(pair.peer, pair.attributes.NicAddressLen);
}

static void finish(void)
{
    int status;
    meet();
    OK(VipCloseNic(pair.nic));
    if (pair.is_client)
        _exit(0);
    CHECK(waitpid(pair.client, &status, 0) == pair.client);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* An address: a host and a discriminator. */
typedef union {
    VIP_NET_ADDRESS address;
    unsigned char room[256];
} place;

static place at_host(const void *host, const char *name)
{
    char own[64];
    int count = snprintf(own, sizeof own, "%s %d", name, (int) pair.process);
    place at;
    memset(&at, 0, sizeof at);
    at.address.HostAddressLen = pair.attributes.NicAddressLen;
    at.address.DiscriminatorLen = (VIP_UINT16) count;
    memcpy(at.address.HostAddress, host, at.address.HostAddressLen);
    memcpy(at.address.HostAddress + at.address.HostAddressLen, own, (size_t) count);
    return at;
}

static place here(const char *name)
{
    return at_host(pair.attributes.LocalNicAddress, name);
}

static place there(const char *name)
{
    return at_host(pair.peer, name);
}

static VIP_VI_ATTRIBUTES attributes_of(VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_ATTRIBUTES attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = level;
    attributes.MaxTransferSize = 65536;
    attributes.Ptag = pair.ptag;
    attributes.EnableRdmaWrite = VIP_TRUE;
    attributes.EnableRdmaRead = level != VIP_SERVICE_UNRELIABLE;
    return attributes;
}

static VIP_VI_HANDLE vi_of(VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_ATTRIBUTES attributes = attributes_of(level);
    VIP_VI_HANDLE vi;
    OK(VipCreateVi(pair.nic, &attributes, NULL, NULL, &vi));
    return vi;
}

static VIP_VI_STATE state_of(VIP_VI_HANDLE vi)
{
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN is_send_empty, is_receive_empty;
    OK(VipQueryVi(vi, &state, &attributes, &is_send_empty, &is_receive_empty));
    return state;
}

static void await_state(VIP_VI_HANDLE vi, VIP_VI_STATE state)
{
    int left = LONG_MS;
    while (state_of(vi) != state && left-- > 0)
        pause_ms(1);
    CHECK(state_of(vi) == state);
}

/* Connects two VIs. The server waits under that name. */
static void join_by(VIP_VI_HANDLE vi, const char *name)
{
    VIP_VI_ATTRIBUTES peers;
    VIP_CONN_HANDLE conn;
    VIP_RETURN code;
    place local = here(name), remote = there(name), from;
    if (!pair.is_client) {
        OK(VipConnectWait(pair.nic, &local.address, LONG_MS, &from.address, &peers, &conn));
        OK(VipConnectAccept(conn, vi));
    } else {
        /* Repeats the request until the server waits. */
        while ((code = VipConnectRequest(vi, &local.address, &remote.address, LONG_MS, &peers)) ==
               VIP_NO_MATCH)
            pause_ms(1);
        CHECK(code == VIP_SUCCESS);
    }
}

static void part(VIP_VI_HANDLE vi)
{
    OK(VipDisconnect(vi));
    OK(VipDestroyVi(vi));
}

/* Registered memory. */
typedef struct {
    char *bytes;
    VIP_ULONG count;
    VIP_MEM_HANDLE handle;
} memory;

static memory memory_of(VIP_ULONG count)
{
    memory made;
    void *bytes;
    VIP_MEM_ATTRIBUTES attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.Ptag = pair.ptag;
    attributes.EnableRdmaWrite = VIP_TRUE;
    attributes.EnableRdmaRead = VIP_TRUE;
    CHECK(posix_memalign(&bytes, 4096, count) == 0);
    memset(bytes, 0, count);
    made.bytes = bytes;
    made.count = count;
    OK(VipRegisterMem(pair.nic, bytes, count, &attributes, &made.handle));
    return made;
}

static void free_memory(memory made)
{
    OK(VipDeregisterMem(pair.nic, made.bytes, made.handle));
    free(made.bytes);
}

/* Descriptors in registered memory. */
static VIP_DESCRIPTOR *descriptors_of(memory at)
{
    return (VIP_DESCRIPTOR *) at.bytes;
}

/* Fills a descriptor that sends or receives `count` bytes of memory from `offset` on. */
static void describe(VIP_DESCRIPTOR *d, memory data, VIP_ULONG offset, VIP_ULONG count)
{
    memset(d, 0, sizeof *d);
    d->CS.Control = VIP_CONTROL_OP_SENDRECV;
    d->CS.SegCount = 1;
    d->DS[0].Local.Data.Address = data.bytes + offset;
    d->DS[0].Local.Handle = data.handle;
    d->DS[0].Local.Length = (VIP_UINT32) count;
}

/* Fills a descriptor that writes or reads the peer's memory, from or into this side's. */
static void describe_rdma(VIP_DESCRIPTOR *d, VIP_UINT16 control, const memory *remote, memory data,
                          VIP_ULONG count)
{
    memset(d, 0, sizeof *d);
    d->CS.Control = control;
    d->CS.SegCount = 2;
    d->DS[0].Remote.Data.Address = remote->bytes;
    d->DS[0].Remote.Handle = remote->handle;
    d->DS[1].Local.Data.Address = data.bytes;
    d->DS[1].Local.Handle = data.handle;
    d->DS[1].Local.Length = (VIP_UINT32) count;
}

#endif
