/*
 * Statements about the guarantees of the reliability levels, and about order and protection.
 */
#include "facts.h"

/* Unreliable: an error is reported by its descriptor, and the VI goes on. */
static void unreliable_errors_do_not_break_the_vi(void)
{
    VIP_DESCRIPTOR *d;
    level = VIP_SERVICE_UNRELIABLE;
    join_vi("goes on");
    if (!pair.is_client)
        post_receive(to_receive(0, 10));
    meet();
    if (pair.is_client) {
        d = to_send(10);
        d->DS[0].Local.Handle += 1000;
        post_send(d);
        sent(d, VIP_STATUS_OP_SEND | VIP_STATUS_PROTECTION_ERROR);
        post_send(d = to_send(10));
        sent(d, VIP_STATUS_OP_SEND);
    } else {
        received(descriptors_of(descriptors) + RECEIVES, 0);
    }
    CHECK(state_of(vi) == VIP_STATE_CONNECTED);
    part_vi();
}

/* Without a receive an unreliable VI drops the message. A later receive does not get it. */
static void unreliable_drops_without_a_receive(void)
{
    VIP_DESCRIPTOR *d;
    level = VIP_SERVICE_UNRELIABLE;
    join_vi("drops");
    if (pair.is_client) {
        post_send(d = to_send(10));
        sent(d, VIP_STATUS_OP_SEND);
    } else {
        /* The message has arrived by then, because the progress thread polls. */
        pause_ms(100);
        post_receive(to_receive(0, 100));
    }
    meet();
    if (pair.is_client) {
        post_send(d = to_send(20));
        sent(d, VIP_STATUS_OP_SEND);
    } else {
        d = descriptors_of(descriptors) + RECEIVES;
        received(d, 0);
        CHECK(d->CS.Length == 20);
    }
    CHECK(state_of(vi) == VIP_STATE_CONNECTED);
    part_vi();
}

/* Without a receive a reliable VI breaks, at both ends. */
static void reliable_breaks_without_a_receive(void)
{
    VIP_DESCRIPTOR *done;
    join_vi("breaks");
    if (pair.is_client) {
        post_send(to_send(10));
        VipSendWait(vi, LONG_MS, &done);
    }
    await_state(vi, VIP_STATE_ERROR);
    part_vi();
}

/* Any error flushes both queues. */
static void any_error_flushes_both_queues(void)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors), *done;
    int at, flushed = 0;
    join_vi("flushes");
    post_receive(to_receive(1, 10));
    post_receive(to_receive(2, 10));
    meet();
    if (pair.is_client) {
        for (at = 0; at < 3; at++) {
            describe(d + at, data, 0, 10);
            if (at == 0)
                d->CS.Control = VIP_CONTROL_OP_RESERVED;
            post_send(d + at);
        }
        sent(d, VIP_STATUS_FORMAT_ERROR);
        sent(d + 1, VIP_STATUS_DESC_FLUSHED_ERROR);
        sent(d + 2, VIP_STATUS_DESC_FLUSHED_ERROR);
    }
    GIVES(VipRecvWait(vi, LONG_MS, &done), VIP_DESCRIPTOR_ERROR);
    do {
        CHECK(done == d + RECEIVES + 1 + flushed++);
        CHECK(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
    } while (VipRecvDone(vi, &done) == VIP_DESCRIPTOR_ERROR);
    CHECK(flushed == 2 && state_of(vi) == VIP_STATE_ERROR);
    part_vi();
}

/* Reliable delivery completes when the wire has the data, even if the peer does nothing. Reliable
 * reception completes when the data is in the peer's memory, and not before. The peer is stopped to
 * test that. */
static void completes_when(void)
{
    VIP_DESCRIPTOR *d, *done;
    int status;
    join_vi("completes");
    if (pair.is_client)
        post_receive(to_receive(0, LENGTH));
    meet();
    if (!pair.is_client) {
        kill(pair.client, SIGSTOP);
        CHECK(waitpid(pair.client, &status, WUNTRACED) == pair.client && WIFSTOPPED(status));
        post_send(d = to_send(LENGTH));
        if (level == VIP_SERVICE_RELIABLE_DELIVERY) {
            sent(d, VIP_STATUS_OP_SEND);
        } else {
            GIVES(VipSendWait(vi, 100, &done), VIP_TIMEOUT);
            CHECK(d->CS.Status == 0);
        }
        kill(pair.client, SIGCONT);
        if (level == VIP_SERVICE_RELIABLE_RECEPTION)
            sent(d, VIP_STATUS_OP_SEND);
    } else {
        received(descriptors_of(descriptors) + RECEIVES, 0);
    }
    part_vi();
}

/* Reliable reception: the failing descriptor reports the error. Those before it are complete, and
 * none after it is processed. */
static void reception_reports_on_the_failing_descriptor(void)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors), *done;
    int at;
    level = VIP_SERVICE_RELIABLE_RECEPTION;
    join_vi("reports");
    memset(data.bytes, pair.is_client ? 'c' : 's', data.count);
    if (!pair.is_client)
        for (at = 0; at < 4; at++)
            post_receive(to_receive(at, at == 1 ? 9 : 10));
    meet();
    if (pair.is_client) {
        for (at = 0; at < 4; at++) {
            describe(d + at, data, 0, 10);
            post_send(d + at);
        }
        sent(d, VIP_STATUS_OP_SEND);
        sent(d + 1, VIP_STATUS_REMOTE_DESC_ERROR);
        sent(d + 2, VIP_STATUS_DESC_FLUSHED_ERROR);
        sent(d + 3, VIP_STATUS_DESC_FLUSHED_ERROR);
    } else {
        d += RECEIVES;
        received(d, 0);
        received(d + 1, VIP_STATUS_LENGTH_ERROR);
        received(d + 2, VIP_STATUS_DESC_FLUSHED_ERROR);
        received(d + 3, VIP_STATUS_DESC_FLUSHED_ERROR);
        CHECK(data.bytes[(RECEIVES + 2) * LENGTH] == 's' && data.bytes[(RECEIVES + 3) * LENGTH] == 's');
        GIVES(VipRecvDone(vi, &done), VIP_NOT_DONE);
    }
    part_vi();
}

/* An RDMA write with immediate data consumes a receive. A write without does not, and the target is
 * not told. */
static void only_immediate_data_takes_a_receive(void)
{
    VIP_DESCRIPTOR *d;
    join_vi("takes");
    if (!pair.is_client) {
        post_receive(to_receive(0, LENGTH));
        post_receive(to_receive(1, LENGTH));
    }
    meet();
    if (pair.is_client) {
        post_send(d = to_rdma(VIP_CONTROL_OP_RDMAWRITE));
        sent(d, VIP_STATUS_OP_RDMA_WRITE);
        post_send(d = to_rdma(VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE));
        sent(d, VIP_STATUS_OP_RDMA_WRITE);
        post_send(d = to_send(10));
        sent(d, VIP_STATUS_OP_SEND);
    } else {
        d = descriptors_of(descriptors) + RECEIVES;
        received(d, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE);
        received(d + 1, 0);
    }
    told_nothing();
    part_vi();
}

/* RDMA reads need a reliable level, and VipQueryNic tells which levels have them. */
static void rdma_reads_need_a_reliable_level(void)
{
    VIP_DESCRIPTOR *d = to_rdma(VIP_CONTROL_OP_RDMAREAD);
    CHECK((pair.attributes.RDMAReadSupport & VIP_SERVICE_UNRELIABLE) == 0);
    join_vi("reads");
    if (pair.is_client) {
        post_send(d);
        sent(d, pair.attributes.RDMAReadSupport & level ? VIP_STATUS_OP_RDMA_READ
                                                        : VIP_STATUS_OP_RDMA_READ | VIP_STATUS_FORMAT_ERROR);
    }
    part_vi();
}

/* Descriptors complete in posting order: a send behind a read waits for the read's round trip. */
static void completion_is_in_posting_order(void)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors), *done;
    int at;
    join_vi("order");
    if (!pair.is_client) {
        post_receive(to_receive(0, 10));
        post_receive(to_receive(1, 10));
    }
    meet();
    if (pair.is_client) {
        describe_rdma(d, VIP_CONTROL_OP_RDMAREAD, &remote, data, LENGTH);
        describe(d + 1, data, LENGTH, 10);
        describe_rdma(d + 2, VIP_CONTROL_OP_RDMAREAD, &remote, data, LENGTH);
        describe(d + 3, data, LENGTH, 10);
        for (at = 0; at < 4; at++)
            post_send(d + at);
        for (at = 0; at < 4; at++) {
            OK(VipSendWait(vi, LONG_MS, &done));
            CHECK(done == d + at);
        }
    } else {
        received(d + RECEIVES, 0);
        received(d + RECEIVES + 1, 0);
    }
    part_vi();
}

/* Memory can only be used if its registration has the tag of the VI: for data, descriptors and RDMA. */
static void memory_needs_the_tag_of_the_vi(void)
{
    VIP_MEM_ATTRIBUTES same = {pair.ptag, VIP_TRUE, VIP_TRUE}, other = same;
    VIP_DESCRIPTOR *d = to_send(10);
    OK(VipCreatePtag(pair.nic, &other.Ptag));
    join_vi("tag");
    if (!pair.is_client)
        OK(VipSetMemAttributes(pair.nic, data.bytes, data.handle, &other));
    meet();
    if (pair.is_client) {
        post_send(d = to_rdma(VIP_CONTROL_OP_RDMAWRITE));
        sent(d, VIP_STATUS_OP_RDMA_WRITE |
                    (level == VIP_SERVICE_RELIABLE_RECEPTION ? VIP_STATUS_RDMA_PROT_ERROR : 0));
    } else {
        await_told(VIP_ERROR_RDMAW_PROT);
        /* That holds for the memory of descriptors, too. */
        OK(VipSetMemAttributes(pair.nic, descriptors.bytes, descriptors.handle, &other));
        GIVES(VipPostSend(vi, d, descriptors.handle), VIP_INVALID_PARAMETER);
        OK(VipSetMemAttributes(pair.nic, descriptors.bytes, descriptors.handle, &same));
        OK(VipSetMemAttributes(pair.nic, data.bytes, data.handle, &same));
    }
    part_vi();
    OK(VipDestroyPtag(pair.nic, other.Ptag));
}

/* Memory may be registered twice, and each registration has its own attributes. */
static void memory_may_be_registered_twice(void)
{
    VIP_MEM_ATTRIBUTES closed = {pair.ptag, VIP_FALSE, VIP_FALSE}, found;
    VIP_MEM_HANDLE second;
    OK(VipRegisterMem(pair.nic, data.bytes, data.count, &closed, &second));
    CHECK(second != data.handle && second != 0 && data.handle != 0);
    OK(VipQueryMem(pair.nic, data.bytes, second, &found));
    CHECK(found.EnableRdmaWrite == VIP_FALSE);
    OK(VipQueryMem(pair.nic, data.bytes, data.handle, &found));
    CHECK(found.EnableRdmaWrite == VIP_TRUE);
    OK(VipDeregisterMem(pair.nic, data.bytes, second));
    GIVES(VipDeregisterMem(pair.nic, data.bytes, second), VIP_INVALID_PARAMETER);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    unreliable_errors_do_not_break_the_vi();
    unreliable_drops_without_a_receive();
    at_reliable_levels(reliable_breaks_without_a_receive);
    at_reliable_levels(any_error_flushes_both_queues);
    at_reliable_levels(completes_when);
    reception_reports_on_the_failing_descriptor();
    at_every_level(only_immediate_data_takes_a_receive);
    at_every_level(rdma_reads_need_a_reliable_level);
    at_reliable_levels(completion_is_in_posting_order);
    at_every_level(memory_needs_the_tag_of_the_vi);
    memory_may_be_registered_twice();
    finish();
    return 0;
}
