/*
 * Statements about asynchronous errors: which are reported by the error callback, and which are not
 * because a descriptor reports them.
 */
#include "facts.h"

static VIP_MEM_ATTRIBUTES closed, open_to_all;

static void allow(int is_allowed)
{
    OK(VipSetMemAttributes(pair.nic, data.bytes, data.handle, is_allowed ? &open_to_all : &closed));
}

/* POST_DESC: a posted descriptor cannot be processed, and the VI broke. The peer is told CONN_LOST.
 * An unreliable VI goes on, and its callback is not called. */
static void post_desc_and_conn_lost(void)
{
    VIP_DESCRIPTOR *d = to_send(10);
    d->CS.Control = VIP_CONTROL_OP_RESERVED;
    join_vi("POST_DESC");
    if (pair.is_client) {
        post_send(d);
        sent(d, VIP_STATUS_FORMAT_ERROR);
    }
    if (is_reliable()) {
        await_told(pair.is_client ? VIP_ERROR_POST_DESC : VIP_ERROR_CONN_LOST);
        CHECK(last_told.ViHandle == vi && last_told.CQHandle == NULL);
        CHECK(last_told.ResourceCode == (pair.is_client ? VIP_RESOURCE_DESCRIPTOR : VIP_RESOURCE_VI));
        CHECK(last_told.DescriptorPtr == (pair.is_client ? d : NULL));
        CHECK(state_of(vi) == VIP_STATE_ERROR);
    }
    meet();
    if (!is_reliable())
        told_nothing();
    part_vi();
}

/* A receive that fails has the reason in its status. The callback reports the end of the connection. */
static void failed_receive(void)
{
    VIP_DESCRIPTOR *done, *d = to_receive(0, 9);
    join_vi("failed receive");
    if (!pair.is_client)
        post_receive(d);
    meet();
    if (pair.is_client) {
        post_send(to_send(10));
        VipSendWait(vi, LONG_MS, &done);
    } else {
        received(d, VIP_STATUS_LENGTH_ERROR);
    }
    if (is_reliable()) {
        await_told(VIP_ERROR_CONN_LOST);
        CHECK(last_told.ViHandle == vi && state_of(vi) == VIP_STATE_ERROR);
        CHECK(pair.is_client || last_told.ResourceCode == VIP_RESOURCE_VI);
    }
    meet();
    if (!is_reliable())
        told_nothing();
    part_vi();
}

/* CONN_LOST: the peer has disconnected. The side that disconnects is not told. */
static void conn_lost(void)
{
    join_vi("CONN_LOST");
    if (pair.is_client) {
        OK(VipDisconnect(vi));
        meet();
        told_nothing();
    } else {
        await_told(VIP_ERROR_CONN_LOST);
        CHECK(last_told.ViHandle == vi && last_told.ResourceCode == VIP_RESOURCE_VI);
        meet();
    }
    part_vi();
}

/* RECVQ_EMPTY: a message has arrived, and no receive was posted. */
static void recvq_empty(void)
{
    VIP_DESCRIPTOR *done;
    join_vi("RECVQ_EMPTY");
    if (pair.is_client) {
        post_send(to_send(10));
        VipSendWait(vi, LONG_MS, &done);
        await_told(VIP_ERROR_CONN_LOST);
    } else {
        await_told(VIP_ERROR_RECVQ_EMPTY);
    }
    part_vi();
}

/* VI_OVERRUN: more has completed than the completion queue holds. */
static void vi_overrun(void)
{
    VIP_CQ_HANDLE cq;
    VIP_VI_ATTRIBUTES attributes = attributes_of(level);
    VIP_DESCRIPTOR *done;
    int at;
    OK(VipCreateCQ(pair.nic, 1, &cq));
    OK(VipCreateVi(pair.nic, &attributes, NULL, pair.is_client ? NULL : cq, &vi));
    memset((void *) told, 0, sizeof told);
    current = vi;
    if (!pair.is_client)
        for (at = 0; at < 2; at++)
            post_receive(to_receive(at, 10));
    join_by(vi, "VI_OVERRUN");
    meet();
    if (pair.is_client) {
        for (at = 0; at < 2; at++) {
            post_send(to_send(10));
            VipSendWait(vi, LONG_MS, &done);
        }
        await_told(VIP_ERROR_CONN_LOST);
    } else {
        await_told(VIP_ERROR_VI_OVERRUN);
        CHECK(last_told.CQHandle == cq && last_told.ResourceCode == VIP_RESOURCE_CQ);
    }
    CHECK(state_of(vi) == VIP_STATE_ERROR);
    part_vi();
    OK(VipDestroyCQ(cq));
}

/* RDMAW_PROT: the peer wrote where it may not, and no descriptor of this side can report that. */
static void rdmaw_prot(void)
{
    VIP_DESCRIPTOR *done, *d = to_receive(0, 10);
    join_vi("RDMAW_PROT");
    allow(pair.is_client);
    if (!pair.is_client)
        post_receive(d);
    meet();
    if (pair.is_client) {
        post_send(to_rdma(VIP_CONTROL_OP_RDMAWRITE));
        VipSendWait(vi, LONG_MS, &done);
        if (is_reliable())
            await_told(VIP_ERROR_CONN_LOST);
    } else {
        await_told(VIP_ERROR_RDMAW_PROT);
        CHECK(last_told.ViHandle == vi && last_told.ResourceCode == VIP_RESOURCE_VI);
        if (is_reliable())
            received(d, VIP_STATUS_DESC_FLUSHED_ERROR);
        CHECK(state_of(vi) == (is_reliable() ? VIP_STATE_ERROR : VIP_STATE_CONNECTED));
    }
    part_vi();
    allow(1);
}

/* With immediate data the receive for these reports it, instead of RDMAW_PROT. */
static void rdmaw_prot_with_immediate_data(void)
{
    VIP_DESCRIPTOR *done, *d = to_receive(0, 10);
    join_vi("immediate RDMAW_PROT");
    allow(pair.is_client);
    if (!pair.is_client)
        post_receive(d);
    meet();
    if (pair.is_client) {
        post_send(to_rdma(VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE));
        VipSendWait(vi, LONG_MS, &done);
    } else {
        received(d, VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_RDMA_PROT_ERROR);
    }
    if (is_reliable()) {
        await_told(VIP_ERROR_CONN_LOST);
        CHECK(state_of(vi) == VIP_STATE_ERROR);
    }
    meet();
    if (!is_reliable())
        told_nothing();
    part_vi();
    allow(1);
}

/* RDMAR_PROT: the peer read where it may not. */
static void rdmar_prot(void)
{
    join_vi("RDMAR_PROT");
    allow(pair.is_client);
    meet();
    if (pair.is_client) {
        VIP_DESCRIPTOR *d = to_rdma(VIP_CONTROL_OP_RDMAREAD);
        post_send(d);
        sent(d, VIP_STATUS_OP_RDMA_READ | VIP_STATUS_RDMA_PROT_ERROR);
        await_told(VIP_ERROR_CONN_LOST);
    } else {
        await_told(VIP_ERROR_RDMAR_PROT);
    }
    part_vi();
    allow(1);
}

/* COMP_PROT: a descriptor's own memory was deregistered before it was complete. The program still
 * gets the descriptor back, and nothing is written to it. */
static void comp_prot(void)
{
    VIP_DESCRIPTOR *done;
    memory gone = memory_of(sizeof(VIP_DESCRIPTOR));
    join_vi("COMP_PROT");
    if (!pair.is_client) {
        describe(descriptors_of(gone), data, 0, 10);
        OK(VipPostRecv(vi, descriptors_of(gone), gone.handle));
        OK(VipDeregisterMem(pair.nic, gone.bytes, gone.handle));
    }
    meet();
    if (pair.is_client) {
        post_send(to_send(10));
        VipSendWait(vi, LONG_MS, &done);
    } else {
        await_told(VIP_ERROR_COMP_PROT);
        CHECK(last_told.DescriptorPtr == descriptors_of(gone));
        CHECK(last_told.ResourceCode == VIP_RESOURCE_DESCRIPTOR);
        OK(VipRecvDone(vi, &done));
        CHECK(done == descriptors_of(gone) && done->CS.Status == 0);
        CHECK(state_of(vi) == (is_reliable() ? VIP_STATE_ERROR : VIP_STATE_CONNECTED));
    }
    part_vi();
}

/* Without an error callback an error is a line on stderr. Without an error there is no line. */
static void the_default_handler(void)
{
    OK(VipErrorCallback(pair.nic, NULL, NULL));
    join_vi("default");
    if (pair.is_client)
        OK(VipDisconnect(vi));
    else
        await_state(vi, VIP_STATE_ERROR);
    meet();
    told_nothing();
    OK(VipErrorCallback(pair.nic, &pair, note_error));
    part_vi();
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    closed.Ptag = open_to_all.Ptag = pair.ptag;
    open_to_all.EnableRdmaWrite = open_to_all.EnableRdmaRead = VIP_TRUE;
    at_every_level(post_desc_and_conn_lost);
    at_every_level(failed_receive);
    at_every_level(conn_lost);
    at_reliable_levels(recvq_empty);
    at_reliable_levels(vi_overrun);
    at_every_level(rdmaw_prot);
    at_every_level(rdmaw_prot_with_immediate_data);
    at_reliable_levels(rdmar_prot);
    at_every_level(comp_prot);
    the_default_handler();
    finish();
    return 0;
}
