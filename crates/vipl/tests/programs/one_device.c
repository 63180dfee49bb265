/*
 * One device opened twice in a process, and once more in another. As on hardware all have one address,
 * and discriminators distinguish them. One NIC of each process requests connections and the other
 * accepts them, as in libraries of one-sided operations.
 */
#include "pair.h"

/* A NIC, with memory for descriptors. */
typedef struct {
    VIP_NIC_HANDLE nic;
    VIP_PROTECTION_HANDLE ptag;
    VIP_DESCRIPTOR *descriptors;
    VIP_MEM_HANDLE memory;
} endpoint;

static endpoint endpoint_of(VIP_NIC_HANDLE nic)
{
    endpoint made;
    VIP_MEM_ATTRIBUTES attributes;
    void *bytes;
    memset(&attributes, 0, sizeof attributes);
    made.nic = nic;
    OK(VipCreatePtag(nic, &made.ptag));
    attributes.Ptag = made.ptag;
    CHECK(posix_memalign(&bytes, 4096, 4096) == 0);
    made.descriptors = bytes;
    OK(VipRegisterMem(nic, bytes, 4096, &attributes, &made.memory));
    return made;
}

/* Opens a device that is already open at this address. */
static endpoint open_at(const char *device, const void *address)
{
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attributes;
    OK(VipOpenNic(device, &nic));
    OK(VipQueryNic(nic, &attributes));
    CHECK(attributes.NicAddressLen == pair.attributes.NicAddressLen);
    CHECK(memcmp(attributes.LocalNicAddress, address, attributes.NicAddressLen) == 0);
    return endpoint_of(nic);
}

/* Returns the server's device, as the client names it. */
static const char *device_of_server(const char *own)
{
    static char spelled[64];
    const unsigned char *at = pair.peer;
    if (strncmp(own, "udp:", 4) != 0)
        return own;
    snprintf(spelled, sizeof spelled, "udp:%d.%d.%d.%d:%d", at[0], at[1], at[2], at[3],
             at[4] << 8 | at[5]);
    return spelled;
}

/* Returns a connected VI. One side waits under a name, and the other requests that name at a host. */
static VIP_VI_HANDLE join(endpoint at, const void *host, const char *name, int waits)
{
    VIP_VI_ATTRIBUTES attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY), peers;
    VIP_VI_HANDLE vi;
    VIP_CONN_HANDLE conn;
    VIP_RETURN code;
    place local = here(name), remote = at_host(host, name), from;
    attributes.Ptag = at.ptag;
    OK(VipCreateVi(at.nic, &attributes, NULL, NULL, &vi));
    if (waits) {
        OK(VipConnectWait(at.nic, &local.address, LONG_MS, &from.address, &peers, &conn));
        CHECK(memcmp(&from, &remote, 4u + remote.address.HostAddressLen + remote.address.DiscriminatorLen) == 0);
        /* A request that is not answered at once is sent again. */
        pause_ms(50);
        OK(VipConnectAccept(conn, vi));
    } else {
        while ((code = VipConnectRequest(vi, &local.address, &remote.address, LONG_MS, &peers)) ==
               VIP_NO_MATCH)
            pause_ms(1);
        CHECK(code == VIP_SUCCESS);
    }
    return vi;
}

/* Both sides send a number and receive the other's. */
static void exchange(endpoint at, VIP_VI_HANDLE vi, VIP_UINT32 number)
{
    VIP_DESCRIPTOR *send = at.descriptors, *receive = send + 1, *done;
    memset(send, 0, 2 * sizeof *send);
    send->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
    send->CS.ImmediateData = number;
    OK(VipPostRecv(vi, receive, at.memory));
    meet();
    OK(VipPostSend(vi, send, at.memory));
    OK(VipSendWait(vi, LONG_MS, &done));
    OK(VipRecvWait(vi, LONG_MS, &done));
    CHECK(done == receive && receive->CS.ImmediateData == number);
    meet();
    OK(VipDisconnect(vi));
    OK(VipDestroyVi(vi));
}

/* Each process accepts at its second NIC, and requests by its first. */
static void both_ways(endpoint first, endpoint second)
{
    VIP_VI_HANDLE asks, waits;
    if (pair.is_client) {
        asks = join(first, pair.peer, "of the server", 0);
        waits = join(second, pair.peer, "of the client", 1);
        exchange(first, asks, 1);
        exchange(second, waits, 2);
    } else {
        waits = join(second, pair.peer, "of the server", 1);
        asks = join(first, pair.peer, "of the client", 0);
        exchange(second, waits, 1);
        exchange(first, asks, 2);
    }
}

/* No NIC of the peer waits under that name. */
static void nobody_waits(endpoint at)
{
    VIP_VI_ATTRIBUTES attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY), peers;
    VIP_VI_HANDLE vi;
    place local = here("nobody"), remote = there("nobody");
    attributes.Ptag = at.ptag;
    OK(VipCreateVi(at.nic, &attributes, NULL, NULL, &vi));
    GIVES(VipConnectRequest(vi, &local.address, &remote.address, LONG_MS, &peers), VIP_NO_MATCH);
    OK(VipDestroyVi(vi));
}

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : "shm";
    endpoint first, second;
    start(argc, argv);
    first = endpoint_of(pair.nic);
    second = open_at(device, pair.attributes.LocalNicAddress);
    both_ways(first, second);
    exchange(first, join(first, pair.peer, "at the first", !pair.is_client), 3);
    nobody_waits(second);
    /* Another process opens the server's device, and accepts there. */
    if (pair.is_client) {
        endpoint guest = open_at(device_of_server(device), pair.peer);
        exchange(guest, join(guest, pair.peer, "guest", 1), 4);
    } else {
        exchange(second, join(second, pair.attributes.LocalNicAddress, "guest", 0), 4);
    }
    /* The NIC that was opened first is closed, and another one is found at the address. */
    OK(VipCloseNic(pair.nic));
    pair.nic = second.nic;
    exchange(second, join(second, pair.peer, "without the first", !pair.is_client), 5);
    finish();
    return 0;
}
