/*
 * Statements about the states of a VI, and about return codes. Each code is returned where it belongs.
 * A call that clients repeat after an error leaves everything unchanged.
 */
#include "facts.h"

static VIP_VI_ATTRIBUTES attributes, peers;

static VIP_RETURN ask_for(const char *name, VIP_ULONG timeout_ms)
{
    place local = here("client"), to = there(name);
    return VipConnectRequest(vi, &local.address, &to.address, timeout_ms, &peers);
}

static VIP_RETURN ask_until_waited_for(const char *name, VIP_ULONG timeout_ms)
{
    VIP_RETURN code;
    while ((code = ask_for(name, timeout_ms)) == VIP_NO_MATCH)
        pause_ms(1);
    return code;
}

static VIP_RETURN wait_at(const char *name, VIP_ULONG timeout_ms, VIP_CONN_HANDLE *conn)
{
    place local = here(name), from;
    return VipConnectWait(pair.nic, &local.address, timeout_ms, &from.address, &peers, conn);
}

/* A new VI is IDLE. Receives may be posted, sends are flushed. It may be changed and destroyed. */
static void idle(void)
{
    VIP_DESCRIPTOR *d;
    vi = vi_of(level);
    CHECK(state_of(vi) == VIP_STATE_IDLE);
    post_receive(to_receive(0, 10));
    post_send(d = to_send(10));
    sent(d, VIP_STATUS_OP_SEND | VIP_STATUS_DESC_FLUSHED_ERROR);
    CHECK(state_of(vi) == VIP_STATE_IDLE);
    attributes = attributes_of(level);
    attributes.MaxTransferSize = 100;
    OK(VipSetViAttributes(vi, &attributes));
    OK(VipDisconnect(vi));
    CHECK(state_of(vi) == VIP_STATE_IDLE);
    OK(VipDestroyVi(vi));
}

/* A VI that asks for a connection is in CONNECT_PENDING. It cannot be destroyed or changed, or ask
 * again. */
static void connect_pending(void)
{
    place local = here("pending"), to = there("nobody");
    vi = vi_of(level);
    attributes = attributes_of(level);
    OK(VipConnectPeerRequest(vi, &local.address, &to.address, VIP_INFINITE));
    CHECK(state_of(vi) == VIP_STATE_CONNECT_PENDING);
    GIVES(VipConnectPeerDone(vi, &peers), VIP_NOT_DONE);
    GIVES(VipDestroyVi(vi), VIP_INVALID_STATE);
    GIVES(VipSetViAttributes(vi, &attributes), VIP_INVALID_STATE);
    GIVES(VipConnectPeerRequest(vi, &local.address, &to.address, VIP_INFINITE), VIP_INVALID_STATE);
    OK(VipDisconnect(vi));
    CHECK(state_of(vi) == VIP_STATE_IDLE);
    OK(VipDestroyVi(vi));
}

/* A CONNECTED VI refuses the same. A disconnection leads to IDLE here, and to ERROR at the peer. */
static void connected_and_error(void)
{
    place local = here("c"), to = there("s");
    VIP_DESCRIPTOR *d = to_receive(0, 10);
    join_vi("states");
    attributes = attributes_of(level);
    CHECK(state_of(vi) == VIP_STATE_CONNECTED);
    GIVES(VipDestroyVi(vi), VIP_INVALID_STATE);
    GIVES(VipSetViAttributes(vi, &attributes), VIP_INVALID_STATE);
    GIVES(VipConnectRequest(vi, &local.address, &to.address, 100, &peers), VIP_INVALID_STATE);
    meet();
    if (pair.is_client) {
        OK(VipDisconnect(vi));
        CHECK(state_of(vi) == VIP_STATE_IDLE);
        OK(VipDestroyVi(vi));
    } else {
        await_state(vi, VIP_STATE_ERROR);
        GIVES(VipDestroyVi(vi), VIP_INVALID_STATE);
        GIVES(VipSetViAttributes(vi, &attributes), VIP_INVALID_STATE);
        GIVES(VipConnectRequest(vi, &local.address, &to.address, 100, &peers), VIP_INVALID_STATE);
        /* Every posted descriptor is flushed. */
        post_receive(d);
        received(d, VIP_STATUS_DESC_FLUSHED_ERROR);
        OK(VipDisconnect(vi));
        CHECK(state_of(vi) == VIP_STATE_IDLE);
        OK(VipDestroyVi(vi));
    }
    meet();
}

/* NO_MATCH, REJECT and TIMEOUT leave the VI idle. It may ask again until it is connected. */
static void clients_may_try_again(void)
{
    VIP_CONN_HANDLE conn;
    vi = vi_of(level);
    if (pair.is_client) {
        GIVES(ask_for("nobody", LONG_MS), VIP_NO_MATCH);
        CHECK(state_of(vi) == VIP_STATE_IDLE);
        GIVES(ask_until_waited_for("reject", LONG_MS), VIP_REJECT);
        CHECK(state_of(vi) == VIP_STATE_IDLE);
        GIVES(ask_until_waited_for("say nothing", 50), VIP_TIMEOUT);
        CHECK(state_of(vi) == VIP_STATE_IDLE);
        meet();
        OK(ask_until_waited_for("accept", LONG_MS));
    } else {
        OK(wait_at("reject", LONG_MS, &conn));
        OK(VipConnectReject(conn));
        OK(wait_at("say nothing", LONG_MS, &conn));
        meet();
        VipConnectReject(conn);
        OK(wait_at("accept", LONG_MS, &conn));
        OK(VipConnectAccept(conn, vi));
    }
    CHECK(state_of(vi) == VIP_STATE_CONNECTED);
    part_vi();
}

/* ERROR_RESOURCE for an object in use or for too many objects goes away when objects are freed. */
static void resources_come_back(void)
{
    VIP_PROTECTION_HANDLE ptag;
    VIP_DESCRIPTOR *done;
    VIP_ULONG posted = 0;
    VIP_RETURN code;
    OK(VipCreatePtag(pair.nic, &ptag));
    attributes = attributes_of(level);
    attributes.Ptag = ptag;
    OK(VipCreateVi(pair.nic, &attributes, NULL, NULL, &vi));
    GIVES(VipDestroyPtag(pair.nic, ptag), VIP_ERROR_RESOURCE);
    OK(VipDestroyVi(vi));
    OK(VipDestroyPtag(pair.nic, ptag));
    GIVES(VipDestroyPtag(pair.nic, ptag), VIP_INVALID_PTAG);
    /* A queue takes as many descriptors as the NIC's attributes say. */
    vi = vi_of(level);
    while ((code = VipPostRecv(vi, to_receive(0, 10), descriptors.handle)) == VIP_SUCCESS)
        CHECK(++posted <= pair.attributes.MaxDescriptorsPerQueue);
    CHECK(code == VIP_ERROR_RESOURCE && posted == pair.attributes.MaxDescriptorsPerQueue);
    OK(VipDisconnect(vi));
    GIVES(VipRecvDone(vi, &done), VIP_DESCRIPTOR_ERROR);
    post_receive(to_receive(0, 10));
    OK(VipDestroyVi(vi));
}

/* VIs that do not fit are refused with a code, to the side that accepts or to the side that asks. */
static void misfits(void)
{
    VIP_CONN_HANDLE conn;
    vi = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    if (pair.is_client) {
        OK(ask_until_waited_for("misfits", LONG_MS));
    } else {
        OK(wait_at("misfits", LONG_MS, &conn));
        CHECK(peers.ReliabilityLevel == VIP_SERVICE_RELIABLE_DELIVERY && peers.Ptag == NULL);
        attributes = attributes_of(VIP_SERVICE_RELIABLE_RECEPTION);
        OK(VipSetViAttributes(vi, &attributes));
        GIVES(VipConnectAccept(conn, vi), VIP_INVALID_RELIABILITY_LEVEL);
        attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY);
        attributes.MaxTransferSize--;
        OK(VipSetViAttributes(vi, &attributes));
        GIVES(VipConnectAccept(conn, vi), VIP_INVALID_MTU);
        attributes.MaxTransferSize++;
        OK(VipSetViAttributes(vi, &attributes));
        OK(VipConnectAccept(conn, vi));
    }
    part_vi();
}

/* An unsupported attribute is refused with its code when a VI is made or changed. */
static void what_can_not_be_made(void)
{
    VIP_VI_HANDLE none;
    vi = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY);
    attributes.ReliabilityLevel = VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY;
    GIVES(VipCreateVi(pair.nic, &attributes, NULL, NULL, &none), VIP_INVALID_RELIABILITY_LEVEL);
    GIVES(VipSetViAttributes(vi, &attributes), VIP_INVALID_RELIABILITY_LEVEL);
    attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY);
    attributes.MaxTransferSize = pair.attributes.MaxTransferSize + 1;
    GIVES(VipCreateVi(pair.nic, &attributes, NULL, NULL, &none), VIP_INVALID_MTU);
    GIVES(VipSetViAttributes(vi, &attributes), VIP_INVALID_MTU);
    attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY);
    attributes.QoS = &attributes;
    GIVES(VipCreateVi(pair.nic, &attributes, NULL, NULL, &none), VIP_INVALID_QOS);
    GIVES(VipSetViAttributes(vi, &attributes), VIP_INVALID_QOS);
    attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY);
    attributes.Ptag = pair.nic;
    GIVES(VipCreateVi(pair.nic, &attributes, NULL, NULL, &none), VIP_INVALID_PTAG);
    GIVES(VipSetViAttributes(vi, &attributes), VIP_INVALID_PTAG);
    attributes = attributes_of(VIP_SERVICE_UNRELIABLE);
    attributes.EnableRdmaRead = VIP_TRUE;
    GIVES(VipCreateVi(pair.nic, &attributes, NULL, NULL, &none), VIP_INVALID_RDMAREAD);
    GIVES(VipSetViAttributes(vi, &attributes), VIP_INVALID_RDMAREAD);
    OK(VipDestroyVi(vi));
}

/* NOT_DONE and TIMEOUT set the pointer to NULL, whether or not a descriptor is posted. */
static void what_is_not_done(void)
{
    VIP_DESCRIPTOR *done = descriptors_of(descriptors);
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE of;
    VIP_BOOLEAN receives;
    vi = vi_of(level);
    GIVES(VipRecvDone(vi, &done), VIP_NOT_DONE);
    CHECK(done == NULL);
    GIVES(VipSendDone(vi, &done), VIP_NOT_DONE);
    GIVES(VipSendWait(vi, 3, &done), VIP_TIMEOUT);
    CHECK(done == NULL);
    post_receive(to_receive(0, 10));
    done = descriptors_of(descriptors);
    GIVES(VipRecvDone(vi, &done), VIP_NOT_DONE);
    CHECK(done == NULL);
    GIVES(VipRecvWait(vi, 0, &done), VIP_TIMEOUT);
    GIVES(VipRecvWait(vi, 3, &done), VIP_TIMEOUT);
    CHECK(done == NULL);
    OK(VipDestroyVi(vi));
    OK(VipCreateCQ(pair.nic, 4, &cq));
    GIVES(VipCQDone(cq, &of, &receives), VIP_NOT_DONE);
    GIVES(VipCQWait(cq, 3, &of, &receives), VIP_TIMEOUT);
    OK(VipDestroyCQ(cq));
}

/* A queue is empty when the program has taken all completed descriptors. */
static void queues_are_empty_or_not(void)
{
    VIP_VI_STATE state;
    VIP_BOOLEAN sends, receives;
    VIP_DESCRIPTOR *d;
    vi = vi_of(level);
    OK(VipQueryVi(vi, &state, &attributes, &sends, &receives));
    CHECK(sends == VIP_TRUE && receives == VIP_TRUE);
    CHECK(attributes.ReliabilityLevel == level && attributes.Ptag == pair.ptag);
    CHECK(attributes.MaxTransferSize == 65536 && attributes.QoS == NULL);
    post_receive(to_receive(0, 10));
    post_send(d = to_send(10));
    OK(VipQueryVi(vi, &state, &attributes, &sends, &receives));
    CHECK(sends == VIP_FALSE && receives == VIP_FALSE);
    sent(d, VIP_STATUS_OP_SEND | VIP_STATUS_DESC_FLUSHED_ERROR);
    OK(VipQueryVi(vi, &state, &attributes, &sends, &receives));
    CHECK(sends == VIP_TRUE && receives == VIP_FALSE);
    OK(VipDestroyVi(vi));
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    CHECK(pair.attributes.ReliabilityLevelSupport ==
          (VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION));
    at_every_level(idle);
    at_every_level(connect_pending);
    at_every_level(connected_and_error);
    at_every_level(clients_may_try_again);
    at_every_level(resources_come_back);
    misfits();
    what_can_not_be_made();
    at_every_level(what_is_not_done);
    at_every_level(queues_are_empty_or_not);
    finish();
    return 0;
}
