/*
 * Statements about descriptors: the bits of the control word, and those of the status.
 */
#include "facts.h"

/* Operation 0 is a send, or a receive in the receive queue. */
static void operation_0_sends_and_receives(void)
{
    VIP_DESCRIPTOR *d;
    join_vi("operation 0");
    memset(data.bytes, pair.is_client ? 'c' : 's', data.count);
    if (!pair.is_client)
        post_receive(to_receive(0, LENGTH));
    meet();
    if (pair.is_client) {
        post_send(d = to_send(LENGTH - 1));
        sent(d, VIP_STATUS_OP_SEND);
        CHECK(d->CS.Length == LENGTH - 1);
    } else {
        d = descriptors_of(descriptors) + RECEIVES;
        received(d, 0);
        CHECK(d->CS.Length == LENGTH - 1);
        CHECK(data.bytes[RECEIVES * LENGTH] == 'c' && data.bytes[RECEIVES * LENGTH + LENGTH - 2] == 'c');
        CHECK(data.bytes[RECEIVES * LENGTH + LENGTH - 1] == 's');
    }
    part_vi();
}

/* From the post until the completion the status is 0; an earlier status is removed. */
static void status_begins_anew(void)
{
    int left = LONG_MS;
    VIP_DESCRIPTOR *d;
    join_vi("anew");
    if (!pair.is_client)
        post_receive(to_receive(0, LENGTH));
    meet();
    if (pair.is_client) {
        post_send(d = to_send(1));
        sent(d, VIP_STATUS_OP_SEND);
        meet();
        post_send(d);
        sent(d, VIP_STATUS_OP_SEND);
    } else {
        d = descriptors_of(descriptors) + RECEIVES;
        received(d, 0);
        post_receive(d);
        CHECK(d->CS.Status == 0);
        meet();
        while (*(volatile VIP_UINT32 *) &d->CS.Status == 0 && left-- > 0)
            pause_ms(1);
        CHECK(d->CS.Status != 0);
        received(d, 0);
        /* The same holds for an invalid descriptor: its error is reported in its turn. */
        d->CS.Control = 0x4000;
        post_receive(d);
        CHECK(d->CS.Status == 0);
    }
    part_vi();
}

/* Waits until the peer has written all of its bytes. */
static void await_written(char mark)
{
    volatile char *last = data.bytes + LENGTH - 1;
    int left = LONG_MS;
    while (*last != mark && left-- > 0)
        pause_ms(1);
    CHECK(*last == mark);
}

/* Operation 1 is an RDMA write. Its first segment names the peer's memory, and counts. */
static void operation_1_writes(void)
{
    VIP_DESCRIPTOR *d;
    join_vi("operation 1");
    memset(data.bytes, pair.is_client ? 'c' : 's', data.count);
    meet();
    if (pair.is_client) {
        post_send(d = to_rdma(VIP_CONTROL_OP_RDMAWRITE));
        CHECK(d->CS.SegCount == 2);
        sent(d, VIP_STATUS_OP_RDMA_WRITE);
        CHECK(d->CS.Length == LENGTH);
        /* The address segment alone is a write of 0 bytes. */
        d = to_rdma(VIP_CONTROL_OP_RDMAWRITE);
        d->CS.SegCount = 1;
        post_send(d);
        sent(d, VIP_STATUS_OP_RDMA_WRITE);
        CHECK(d->CS.Length == 0);
    } else {
        await_written('c');
        CHECK(data.bytes[LENGTH] == 's');
    }
    part_vi();
}

/* Operation 2 is an RDMA read. */
static void operation_2_reads(void)
{
    join_vi("operation 2");
    memset(data.bytes, pair.is_client ? 'c' : 's', data.count);
    meet();
    if (pair.is_client) {
        VIP_DESCRIPTOR *d = to_rdma(VIP_CONTROL_OP_RDMAREAD);
        post_send(d);
        sent(d, VIP_STATUS_OP_RDMA_READ);
        CHECK(d->CS.Length == LENGTH);
        CHECK(data.bytes[LENGTH - 1] == 's' && data.bytes[LENGTH] == 'c');
    }
    part_vi();
}

/* Bit 4 is immediate data, of a send and of a write. The status of the receive tells that there are
 * some. */
static void bit_4_brings_immediate_data(void)
{
    VIP_DESCRIPTOR *d;
    join_vi("immediate");
    if (!pair.is_client) {
        post_receive(to_receive(0, LENGTH));
        post_receive(to_receive(1, 0));
        post_receive(to_receive(2, LENGTH));
    }
    meet();
    if (pair.is_client) {
        d = to_send(10);
        d->CS.Control |= VIP_CONTROL_IMMEDIATE;
        d->CS.ImmediateData = 0xfeedbeef;
        post_send(d);
        sent(d, VIP_STATUS_OP_SEND);
        d = to_rdma(VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE);
        d->CS.ImmediateData = 7;
        post_send(d);
        sent(d, VIP_STATUS_OP_RDMA_WRITE);
        post_send(d = to_send(10));
        sent(d, VIP_STATUS_OP_SEND);
    } else {
        d = descriptors_of(descriptors) + RECEIVES;
        d[2].CS.ImmediateData = 5;
        received(d, VIP_STATUS_IMMEDIATE);
        CHECK(d->CS.ImmediateData == 0xfeedbeef && d->CS.Length == 10);
        received(d + 1, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE);
        CHECK(d[1].CS.ImmediateData == 7 && d[1].CS.Length == LENGTH);
        received(d + 2, 0);
        CHECK(d[2].CS.ImmediateData == 5);
    }
    part_vi();
}

/* Bit 8 is a fence: the descriptor starts only when all earlier ones are complete. A write behind a
 * read of the same memory does not reach the memory before the read. */
static void bit_8_is_a_fence(void)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors);
    int round;
    join_vi("fence");
    for (round = 0; round < 10; round++) {
        memset(data.bytes, 's', data.count);
        meet();
        if (pair.is_client) {
            memset(data.bytes + LENGTH, 'c', LENGTH);
            describe_rdma(d, VIP_CONTROL_OP_RDMAREAD, &remote, data, LENGTH);
            describe_rdma(d + 1, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_QFENCE, &remote, data, LENGTH);
            d[1].DS[1].Local.Data.Address = data.bytes + LENGTH;
            memset(data.bytes, 0, LENGTH);
            post_send(d);
            post_send(d + 1);
            sent(d, VIP_STATUS_OP_RDMA_READ);
            CHECK(data.bytes[0] == 's' && data.bytes[LENGTH - 1] == 's');
            sent(d + 1, VIP_STATUS_OP_RDMA_WRITE);
        } else {
            await_written('c');
        }
        meet();
    }
    part_vi();
}

/* A descriptor of the client that cannot be processed: its status, and the consequences. */
static void is_at_fault(VIP_DESCRIPTOR *d, int receives, VIP_UINT32 status)
{
    join_vi("fault");
    if (pair.is_client) {
        if (receives) {
            post_receive(d);
            meet();
            received(d, status);
        } else {
            post_send(d);
            sent(d, status);
            meet();
        }
    } else {
        meet();
        if (receives) {
            /* The wire may have taken the message, or the peer may have refused it already. */
            VIP_DESCRIPTOR *done;
            post_send(to_send(10));
            VipSendWait(vi, LONG_MS, &done);
        }
    }
    if (is_reliable())
        await_state(vi, VIP_STATE_ERROR);
    else
        CHECK(state_of(vi) == VIP_STATE_CONNECTED);
    part_vi();
}

static VIP_DESCRIPTOR *send_with_control(VIP_UINT16 control)
{
    VIP_DESCRIPTOR *d = to_send(10);
    d->CS.Control = control;
    return d;
}

/* FORMAT_ERROR: the descriptor is malformed. */
static void format_error(void)
{
    VIP_DESCRIPTOR *d;
    is_at_fault(send_with_control(VIP_CONTROL_OP_RESERVED), 0, VIP_STATUS_FORMAT_ERROR);
    is_at_fault(send_with_control(0x10), 0, VIP_STATUS_FORMAT_ERROR);
    /* An RDMA operation without the peer's address. */
    d = send_with_control(VIP_CONTROL_OP_RDMAWRITE);
    d->CS.SegCount = 0;
    is_at_fault(d, 0, VIP_STATUS_FORMAT_ERROR);
    d = to_receive(0, 10);
    d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    is_at_fault(d, 1, VIP_STATUS_FORMAT_ERROR);
}

/* PROTECTION_ERROR: the VI may not use the memory. */
static void protection_error(void)
{
    VIP_DESCRIPTOR *d = to_send(10);
    d->DS[0].Local.Data.Address = data.bytes + data.count - 9;
    is_at_fault(d, 0, VIP_STATUS_PROTECTION_ERROR);
    d = to_send(10);
    d->DS[0].Local.Handle += 1000;
    is_at_fault(d, 0, VIP_STATUS_PROTECTION_ERROR);
    d = to_receive(0, 10);
    d->DS[0].Local.Data.Address = data.bytes - 1;
    is_at_fault(d, 1, VIP_STATUS_PROTECTION_ERROR);
}

/* LENGTH_ERROR: longer than the VI's maximum transfer, or a message longer than its receive. */
static void length_error(void)
{
    is_at_fault(to_send(65537), 0, VIP_STATUS_LENGTH_ERROR);
    is_at_fault(to_receive(0, 9), 1, VIP_STATUS_LENGTH_ERROR);
}

/* DESC_FLUSHED_ERROR: not processed when the connection ended. DONE is set as well. */
static void flushed_error(void)
{
    VIP_DESCRIPTOR *d = to_receive(0, LENGTH);
    join_vi("flushed");
    post_receive(d);
    CHECK(d->CS.Status == 0);
    meet();
    if (pair.is_client)
        OK(VipDisconnect(vi));
    received(d, VIP_STATUS_DESC_FLUSHED_ERROR);
    post_send(d = to_send(10));
    sent(d, VIP_STATUS_OP_SEND | VIP_STATUS_DESC_FLUSHED_ERROR);
    part_vi();
}

/* REMOTE_DESC_ERROR: the peer's receive is missing or too short, at the level where the sender
 * learns that. */
static void remote_descriptor_error(void)
{
    VIP_DESCRIPTOR *d;
    level = VIP_SERVICE_RELIABLE_RECEPTION;
    join_vi("remote descriptor");
    if (pair.is_client) {
        post_send(d = to_send(10));
        sent(d, VIP_STATUS_OP_SEND | VIP_STATUS_REMOTE_DESC_ERROR);
    }
    part_vi();
}

/* RDMA_PROT_ERROR: the peer does not allow the access to its memory. */
static void rdma_protection_error(void)
{
    VIP_UINT16 control;
    for (control = VIP_CONTROL_OP_RDMAWRITE; control <= VIP_CONTROL_OP_RDMAREAD; control++) {
        level = VIP_SERVICE_RELIABLE_RECEPTION;
        join_vi("remote memory");
        if (pair.is_client) {
            VIP_DESCRIPTOR *d = to_rdma(control);
            d->DS[0].Remote.Data.Address = remote.bytes - 1;
            post_send(d);
            sent(d, (control == VIP_CONTROL_OP_RDMAWRITE ? VIP_STATUS_OP_RDMA_WRITE : VIP_STATUS_OP_RDMA_READ) |
                        VIP_STATUS_RDMA_PROT_ERROR);
        }
        part_vi();
    }
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    at_every_level(operation_0_sends_and_receives);
    at_every_level(status_begins_anew);
    at_every_level(operation_1_writes);
    at_reliable_levels(operation_2_reads);
    at_every_level(bit_4_brings_immediate_data);
    at_reliable_levels(bit_8_is_a_fence);
    at_every_level(format_error);
    at_every_level(protection_error);
    at_every_level(length_error);
    at_every_level(flushed_error);
    remote_descriptor_error();
    rdma_protection_error();
    finish();
    return 0;
}
