/*
 * Connections: accepted, rejected, without a waiting server, timed out, of VIs that do not fit, between
 * peers; ended and made again.
 */
#include "pair.h"

static VIP_VI_ATTRIBUTES peers;

static VIP_RETURN request(VIP_VI_HANDLE vi, const char *name, VIP_ULONG timeout_ms)
{
    place local = here("client"), remote = there(name);
    return VipConnectRequest(vi, &local.address, &remote.address, timeout_ms, &peers);
}

static VIP_RETURN wait_for(const char *name, VIP_ULONG timeout_ms, VIP_CONN_HANDLE *conn)
{
    place local = here(name), from;
    VIP_RETURN code;
    memset(&from, 0, sizeof from);
    code = VipConnectWait(pair.nic, &local.address, timeout_ms, &from.address, &peers, conn);
    if (code == VIP_SUCCESS) {
        place expected = there("client");
        CHECK(memcmp(&from, &expected, sizeof from) == 0);
    }
    return code;
}

static VIP_RETURN request_until_waited_for(VIP_VI_HANDLE vi, const char *name)
{
    VIP_RETURN code;
    while ((code = request(vi, name, LONG_MS)) == VIP_NO_MATCH)
        pause_ms(1);
    return code;
}

static void nobody_waits(VIP_VI_HANDLE vi)
{
    VIP_CONN_HANDLE conn;
    if (pair.is_client) {
        GIVES(request(vi, "nobody", LONG_MS), VIP_NO_MATCH);
        GIVES(request(vi, "nobody", 0), VIP_INVALID_PARAMETER);
        CHECK(state_of(vi) == VIP_STATE_IDLE);
    } else {
        GIVES(wait_for("nobody else", 0, &conn), VIP_TIMEOUT);
        GIVES(wait_for("nobody else", 20, &conn), VIP_TIMEOUT);
    }
    meet();
}

static void rejected(VIP_VI_HANDLE vi)
{
    if (pair.is_client) {
        GIVES(request_until_waited_for(vi, "reject"), VIP_REJECT);
        CHECK(state_of(vi) == VIP_STATE_IDLE);
    } else {
        VIP_CONN_HANDLE conn;
        OK(wait_for("reject", LONG_MS, &conn));
        OK(VipConnectReject(conn));
        GIVES(VipConnectReject(conn), VIP_INVALID_PARAMETER);
    }
    meet();
}

/* The server waits, and answers only after the client's timeout. */
static void in_vain(VIP_VI_HANDLE vi)
{
    VIP_CONN_HANDLE conn;
    VIP_RETURN code;
    if (pair.is_client) {
        while ((code = request(vi, "in vain", 100)) == VIP_NO_MATCH)
            pause_ms(1);
        CHECK(code == VIP_TIMEOUT);
        CHECK(state_of(vi) == VIP_STATE_IDLE);
        meet();
    } else {
        OK(wait_for("in vain", LONG_MS, &conn));
        meet();
        /* Until this side knows of the timeout. */
        while ((code = VipConnectAccept(conn, vi)) == VIP_SUCCESS) {
            await_state(vi, VIP_STATE_ERROR);
            OK(VipDisconnect(vi));
            break;
        }
        CHECK(code == VIP_SUCCESS || code == VIP_TIMEOUT);
    }
    meet();
}

/* The server may accept with another VI after a misfit. */
static void misfits(VIP_VI_HANDLE vi)
{
    if (pair.is_client) {
        OK(request_until_waited_for(vi, "misfits"));
        CHECK(state_of(vi) == VIP_STATE_CONNECTED);
        CHECK(peers.ReliabilityLevel == VIP_SERVICE_RELIABLE_DELIVERY);
        CHECK(peers.MaxTransferSize == 65536 && peers.EnableRdmaWrite == VIP_TRUE);
        GIVES(request(vi, "misfits", LONG_MS), VIP_INVALID_STATE);
    } else {
        VIP_VI_HANDLE other = vi_of(VIP_SERVICE_UNRELIABLE);
        VIP_VI_ATTRIBUTES attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY);
        VIP_CONN_HANDLE conn;
        OK(wait_for("misfits", LONG_MS, &conn));
        GIVES(VipConnectAccept(conn, other), VIP_INVALID_RELIABILITY_LEVEL);
        attributes.MaxTransferSize = 1000;
        OK(VipSetViAttributes(other, &attributes));
        GIVES(VipConnectAccept(conn, other), VIP_INVALID_MTU);
        OK(VipDestroyVi(other));
        OK(VipConnectAccept(conn, vi));
        CHECK(state_of(vi) == VIP_STATE_CONNECTED);
        GIVES(VipDestroyVi(vi), VIP_INVALID_STATE);
    }
    meet();
    /* One side disconnects, the other learns of it, and both can be connected again. */
    if (pair.is_client)
        OK(VipDisconnect(vi));
    else
        await_state(vi, VIP_STATE_ERROR);
    meet();
    OK(VipDisconnect(vi));
    CHECK(state_of(vi) == VIP_STATE_IDLE);
    meet();
}

static void between_peers(VIP_VI_HANDLE vi, int polls)
{
    place local = here(pair.is_client ? "peer c" : "peer s");
    place remote = there(pair.is_client ? "peer s" : "peer c");
    VIP_RETURN code;
    GIVES(VipConnectPeerDone(vi, &peers), VIP_INVALID_STATE);
    GIVES(VipConnectPeerWait(vi, &peers), VIP_INVALID_STATE);
    OK(VipConnectPeerRequest(vi, &local.address, &remote.address, VIP_INFINITE));
    if (polls) {
        while ((code = VipConnectPeerDone(vi, &peers)) == VIP_NOT_DONE)
            pause_ms(1);
        CHECK(code == VIP_SUCCESS);
    } else {
        OK(VipConnectPeerWait(vi, &peers));
    }
    CHECK(state_of(vi) == VIP_STATE_CONNECTED && peers.MaxTransferSize == 65536);
    meet();
    OK(VipDisconnect(vi));
    meet();
}

static void between_peers_in_vain(VIP_VI_HANDLE vi)
{
    place local = here("here"), remote = there("nowhere");
    OK(VipConnectPeerRequest(vi, &local.address, &remote.address, 50));
    CHECK(state_of(vi) == VIP_STATE_CONNECT_PENDING);
    GIVES(VipConnectPeerWait(vi, &peers), VIP_TIMEOUT);
    CHECK(state_of(vi) == VIP_STATE_IDLE);
    meet();
}

static void ignore_errors(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    CHECK(context == NULL && error->ErrorCode == VIP_ERROR_CONN_LOST);
}

int main(int argc, char **argv)
{
    VIP_VI_HANDLE vi;
    start(argc, argv);
    OK(VipErrorCallback(pair.nic, NULL, ignore_errors));
    vi = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    nobody_waits(vi);
    rejected(vi);
    in_vain(vi);
    misfits(vi);
    between_peers(vi, 0);
    between_peers(vi, 1);
    between_peers_in_vain(vi);
    OK(VipDestroyVi(vi));
    GIVES(VipDestroyVi(vi), VIP_INVALID_PARAMETER);
    finish();
    return 0;
}
