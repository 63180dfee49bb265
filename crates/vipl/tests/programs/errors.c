/*
 * Errors of messages at each reliability level, and how each side is told: by the descriptor, the state
 * of the VI, or the error callback.
 */
#include "pair.h"

static memory descriptors, data, foreign;
static VIP_PROTECTION_HANDLE other_ptag;
static volatile VIP_VI_HANDLE current;
static volatile int errors[VIP_ERROR_CATASTROPHIC + 1];

static void count_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    CHECK(context == (VIP_PVOID) errors && error->NicHandle == pair.nic);
    CHECK((unsigned) error->ErrorCode <= VIP_ERROR_CATASTROPHIC);
    /* The end of an earlier VI may be reported late. */
    if (error->ViHandle == current)
        errors[error->ErrorCode]++;
}

static void await_error(VIP_ERROR_CODE code)
{
    int left = LONG_MS;
    while (errors[code] == 0 && left-- > 0)
        pause_ms(1);
    CHECK(errors[code] == 1);
    errors[code] = 0;
}

static VIP_DESCRIPTOR *send_of(VIP_ULONG count)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors);
    describe(d, data, 0, count);
    return d;
}

static VIP_DESCRIPTOR *receive_of(VIP_ULONG count)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors) + 1;
    describe(d, data, 0, count);
    return d;
}

static VIP_VI_HANDLE joined(VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_HANDLE vi = vi_of(level);
    memset((void *) errors, 0, sizeof errors);
    current = vi;
    join_by(vi, "errors");
    meet();
    return vi;
}

static void parted(VIP_VI_HANDLE vi)
{
    meet();
    part(vi);
}

/* A message without a receive: lost at the unreliable level, and the end of the VI at the others. */
static void no_receive(VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_HANDLE vi = joined(level);
    VIP_DESCRIPTOR *done;
    if (pair.is_client) {
        OK(VipPostSend(vi, send_of(100), descriptors.handle));
        if (level == VIP_SERVICE_RELIABLE_RECEPTION) {
            GIVES(VipSendWait(vi, LONG_MS, &done), VIP_DESCRIPTOR_ERROR);
            CHECK(done->CS.Status & VIP_STATUS_REMOTE_DESC_ERROR);
        } else {
            OK(VipSendWait(vi, LONG_MS, &done));
        }
    }
    if (level == VIP_SERVICE_UNRELIABLE) {
        /* The next message arrives. */
        if (!pair.is_client)
            OK(VipPostRecv(vi, receive_of(100), descriptors.handle));
        meet();
        if (pair.is_client) {
            OK(VipPostSend(vi, send_of(50), descriptors.handle));
            OK(VipSendWait(vi, LONG_MS, &done));
        } else {
            OK(VipRecvWait(vi, LONG_MS, &done));
        }
        CHECK(state_of(vi) == VIP_STATE_CONNECTED);
    } else {
        await_state(vi, VIP_STATE_ERROR);
        await_error(pair.is_client ? VIP_ERROR_CONN_LOST : VIP_ERROR_RECVQ_EMPTY);
    }
    parted(vi);
}

/* A message that is longer than its receive. */
static void too_long_for_the_receive(VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_HANDLE vi = joined(level);
    VIP_DESCRIPTOR *done;
    if (!pair.is_client)
        OK(VipPostRecv(vi, receive_of(10), descriptors.handle));
    meet();
    if (pair.is_client) {
        OK(VipPostSend(vi, send_of(11), descriptors.handle));
        VipSendWait(vi, LONG_MS, &done);
        CHECK(level != VIP_SERVICE_RELIABLE_RECEPTION || (done->CS.Status & VIP_STATUS_REMOTE_DESC_ERROR));
    } else {
        GIVES(VipRecvWait(vi, LONG_MS, &done), VIP_DESCRIPTOR_ERROR);
        CHECK(done->CS.Status & VIP_STATUS_LENGTH_ERROR);
    }
    if (level == VIP_SERVICE_UNRELIABLE)
        CHECK(state_of(vi) == VIP_STATE_CONNECTED);
    else {
        await_state(vi, VIP_STATE_ERROR);
        await_error(VIP_ERROR_CONN_LOST);
    }
    parted(vi);
}

/* Descriptors of the client that cannot be processed, and their status. */
static void own_fault(VIP_RELIABILITY_LEVEL level, VIP_DESCRIPTOR *d, VIP_UINT32 status)
{
    VIP_VI_HANDLE vi = joined(level);
    VIP_DESCRIPTOR *done;
    if (pair.is_client) {
        OK(VipPostSend(vi, d, descriptors.handle));
        GIVES(VipSendWait(vi, LONG_MS, &done), VIP_DESCRIPTOR_ERROR);
        CHECK(done == d && (done->CS.Status & VIP_STATUS_ERROR_MASK) == status);
    }
    if (level != VIP_SERVICE_UNRELIABLE) {
        await_state(vi, VIP_STATE_ERROR);
        await_error(pair.is_client ? VIP_ERROR_POST_DESC : VIP_ERROR_CONN_LOST);
    }
    parted(vi);
}

static void own_faults(VIP_RELIABILITY_LEVEL level)
{
    VIP_DESCRIPTOR *d = send_of(100);
    d->CS.Control = VIP_CONTROL_OP_RESERVED;
    own_fault(level, d, VIP_STATUS_FORMAT_ERROR);
    d = send_of(100);
    d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    d->CS.SegCount = 0;
    own_fault(level, d, VIP_STATUS_FORMAT_ERROR);
    d = send_of(65537);
    own_fault(level, d, VIP_STATUS_LENGTH_ERROR);
    d = send_of(100);
    d->DS[0].Local.Data.Address = foreign.bytes;
    d->DS[0].Local.Handle = foreign.handle;
    own_fault(level, d, VIP_STATUS_PROTECTION_ERROR);
    d = send_of(100);
    d->DS[0].Local.Data.Address = data.bytes + data.count - 99;
    own_fault(level, d, VIP_STATUS_PROTECTION_ERROR);
}

/* Descriptors that are posted and not processed when the connection ends, or when there is none. */
static void flushed(VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_HANDLE vi = vi_of(level);
    VIP_DESCRIPTOR *done;
    /* There is no peer to send to. */
    OK(VipPostSend(vi, send_of(100), descriptors.handle));
    GIVES(VipSendWait(vi, LONG_MS, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
    OK(VipPostRecv(vi, receive_of(100), descriptors.handle));
    GIVES(VipRecvDone(vi, &done), VIP_NOT_DONE);
    join_by(vi, "flushed");
    meet();
    if (pair.is_client)
        OK(VipDisconnect(vi));
    GIVES(VipRecvWait(vi, LONG_MS, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done == descriptors_of(descriptors) + 1);
    CHECK(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
    CHECK((done->CS.Status & VIP_STATUS_OP_MASK) == VIP_STATUS_OP_RECEIVE);
    CHECK(state_of(vi) == (pair.is_client ? VIP_STATE_IDLE : VIP_STATE_ERROR));
    if (!pair.is_client) {
        OK(VipPostRecv(vi, receive_of(100), descriptors.handle));
        GIVES(VipRecvDone(vi, &done), VIP_DESCRIPTOR_ERROR);
        CHECK(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
    }
    parted(vi);
}

/* The memory of a receive is deregistered when the message arrives. */
static void deregistered(VIP_RELIABILITY_LEVEL level)
{
    VIP_VI_HANDLE vi = joined(level);
    VIP_DESCRIPTOR *done;
    if (!pair.is_client) {
        memory gone = memory_of(100);
        VIP_DESCRIPTOR *d = descriptors_of(descriptors) + 1;
        describe(d, gone, 0, 100);
        OK(VipPostRecv(vi, d, descriptors.handle));
        free_memory(gone);
    }
    meet();
    if (pair.is_client) {
        OK(VipPostSend(vi, send_of(100), descriptors.handle));
        VipSendWait(vi, LONG_MS, &done);
    } else {
        GIVES(VipRecvWait(vi, LONG_MS, &done), VIP_DESCRIPTOR_ERROR);
        CHECK(done->CS.Status & VIP_STATUS_PROTECTION_ERROR);
    }
    parted(vi);
}

int main(int argc, char **argv)
{
    static const VIP_RELIABILITY_LEVEL levels[] = {
        VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION};
    VIP_PROTECTION_HANDLE ptag;
    unsigned level;
    start(argc, argv);
    OK(VipErrorCallback(pair.nic, (VIP_PVOID) errors, count_error));
    descriptors = memory_of(2 * sizeof(VIP_DESCRIPTOR));
    data = memory_of(70000);
    OK(VipCreatePtag(pair.nic, &other_ptag));
    ptag = pair.ptag;
    pair.ptag = other_ptag;
    foreign = memory_of(1000);
    pair.ptag = ptag;
    for (level = 0; level < 3; level++) {
        no_receive(levels[level]);
        too_long_for_the_receive(levels[level]);
        own_faults(levels[level]);
        flushed(levels[level]);
        deregistered(levels[level]);
    }
    finish();
    return 0;
}
