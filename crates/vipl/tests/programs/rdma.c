/*
 * RDMA: writes with and without immediate data, a write that the peer notices in memory alone, reads,
 * and accesses that are not allowed.
 */
#include "pair.h"

#define COUNT 50000

static memory descriptors, data, remote;

static VIP_DESCRIPTOR *rdma(VIP_UINT16 control)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors);
    describe_rdma(d, control, &remote, data, COUNT);
    return d;
}

static void send_done(VIP_VI_HANDLE vi, VIP_UINT32 operation)
{
    VIP_DESCRIPTOR *done;
    OK(VipSendWait(vi, LONG_MS, &done));
    CHECK(done->CS.Length == COUNT);
    CHECK((done->CS.Status & VIP_STATUS_OP_MASK) == operation);
}

/* The peer notices the write in its memory, and makes no call of VIPL meanwhile. */
static void write_silently(VIP_VI_HANDLE vi)
{
    if (pair.is_client) {
        meet();
        memset(data.bytes, 'x', COUNT);
        OK(VipPostSend(vi, rdma(VIP_CONTROL_OP_RDMAWRITE), descriptors.handle));
        send_done(vi, VIP_STATUS_OP_RDMA_WRITE);
    } else {
        volatile char *last = data.bytes + COUNT - 1;
        int left = LONG_MS;
        memset(data.bytes, 0, COUNT);
        meet();
        while (*last != 'x' && left-- > 0)
            pause_ms(1);
        CHECK(*last == 'x' && data.bytes[0] == 'x' && data.bytes[COUNT] == 0);
    }
    meet();
}

static void write_with_immediate(VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors), *done;
    if (pair.is_client) {
        meet();
        memset(data.bytes, 'y', COUNT);
        rdma(VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE)->CS.ImmediateData = 0xfeed;
        OK(VipPostSend(vi, d, descriptors.handle));
        send_done(vi, VIP_STATUS_OP_RDMA_WRITE);
    } else {
        memset(d, 0, sizeof *d);
        OK(VipPostRecv(vi, d, descriptors.handle));
        meet();
        OK(VipRecvWait(vi, LONG_MS, &done));
        CHECK(done == d && done->CS.ImmediateData == 0xfeed);
        CHECK((done->CS.Status & VIP_STATUS_OP_MASK) == VIP_STATUS_OP_REMOTE_RDMA_WRITE);
        CHECK(done->CS.Status & VIP_STATUS_IMMEDIATE);
        CHECK(data.bytes[0] == 'y' && data.bytes[COUNT - 1] == 'y');
    }
    meet();
}

static void read_remote(VIP_VI_HANDLE vi)
{
    memset(data.bytes, pair.is_client ? 'c' : 's', COUNT);
    meet();
    if (pair.is_client) {
        OK(VipPostSend(vi, rdma(VIP_CONTROL_OP_RDMAREAD), descriptors.handle));
        send_done(vi, VIP_STATUS_OP_RDMA_READ);
        CHECK(data.bytes[0] == 's' && data.bytes[COUNT - 1] == 's' && data.bytes[COUNT] == 0);
    }
    meet();
}

/* The server does not allow the access. The client's descriptor reports that, and the VI breaks. */
static void refused(VIP_RELIABILITY_LEVEL level, VIP_UINT16 control)
{
    VIP_VI_HANDLE vi = vi_of(level);
    VIP_DESCRIPTOR *done;
    VIP_MEM_ATTRIBUTES none = {pair.ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_ATTRIBUTES all = {pair.ptag, VIP_TRUE, VIP_TRUE};
    join_by(vi, "refused");
    memset(data.bytes, pair.is_client ? 'c' : 's', COUNT);
    if (!pair.is_client)
        OK(VipSetMemAttributes(pair.nic, data.bytes, data.handle, &none));
    meet();
    if (pair.is_client) {
        OK(VipPostSend(vi, rdma(control), descriptors.handle));
        if (level == VIP_SERVICE_RELIABLE_RECEPTION || control == VIP_CONTROL_OP_RDMAREAD) {
            GIVES(VipSendWait(vi, LONG_MS, &done), VIP_DESCRIPTOR_ERROR);
            CHECK(done->CS.Status & VIP_STATUS_RDMA_PROT_ERROR);
        } else {
            /* The wire may or may not have taken the write before the VI broke. */
            VIP_RETURN code = VipSendWait(vi, LONG_MS, &done);
            CHECK(code == VIP_SUCCESS || (done->CS.Status & VIP_STATUS_RDMA_PROT_ERROR));
        }
    }
    await_state(vi, VIP_STATE_ERROR);
    meet();
    if (!pair.is_client) {
        CHECK(data.bytes[0] == 's' && data.bytes[COUNT - 1] == 's');
        OK(VipSetMemAttributes(pair.nic, data.bytes, data.handle, &all));
    }
    part(vi);
}

static void ignore_errors(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    CHECK(context == &pair && error->NicHandle == pair.nic);
}

int main(int argc, char **argv)
{
    static const VIP_RELIABILITY_LEVEL levels[] = {
        VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION};
    unsigned level;
    start(argc, argv);
    OK(VipErrorCallback(pair.nic, &pair, ignore_errors));
    descriptors = memory_of(sizeof(VIP_DESCRIPTOR));
    data = memory_of(COUNT + 1);
    tell(&data, sizeof data);
    hear(&remote, sizeof remote);
    for (level = 0; level < 3; level++) {
        VIP_VI_HANDLE vi = vi_of(levels[level]);
        join_by(vi, "rdma");
        write_silently(vi);
        write_with_immediate(vi);
        if (pair.attributes.RDMAReadSupport & levels[level]) {
            read_remote(vi);
            refused(levels[level], VIP_CONTROL_OP_RDMAREAD);
        }
        if (levels[level] != VIP_SERVICE_UNRELIABLE)
            refused(levels[level], VIP_CONTROL_OP_RDMAWRITE);
        meet();
        part(vi);
    }
    finish();
    return 0;
}
