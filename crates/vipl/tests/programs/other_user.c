/*
 * A process of another user. Over shared memory a program finds no peer of another user, whichever side
 * requests and in whichever way. Only root can become another user to test that.
 */
#include "pair.h"

#define NOBODY 65534

static VIP_VI_ATTRIBUTES peers;

/* One side waits, and the other requests. No request arrives, and the requester finds no waiting
 * peer. */
static void one_asks(int client_asks, VIP_VI_HANDLE vi)
{
    place local = here("asks"), name = here("waits"), to = there("waits"), from;
    VIP_CONN_HANDLE conn;
    if (pair.is_client == client_asks) {
        int left = 10;
        meet();
        /* The other side waits by then, or soon. */
        while (left-- > 0) {
            GIVES(VipConnectRequest(vi, &local.address, &to.address, LONG_MS, &peers), VIP_NO_MATCH);
            pause_ms(10);
        }
        CHECK(state_of(vi) == VIP_STATE_IDLE);
    } else {
        meet();
        GIVES(VipConnectWait(pair.nic, &name.address, 200, &from.address, &peers, &conn), VIP_TIMEOUT);
    }
    meet();
}

static void as_peers(VIP_VI_HANDLE vi)
{
    place local = here(pair.is_client ? "c" : "s"), to = there(pair.is_client ? "s" : "c");
    OK(VipConnectPeerRequest(vi, &local.address, &to.address, 200));
    GIVES(VipConnectPeerWait(vi, &peers), VIP_TIMEOUT);
    meet();
}

int main(int argc, char **argv)
{
    VIP_VI_HANDLE vi;
    if (geteuid() != 0) {
        printf("SKIPPED: only root can be two users\n");
        return 0;
    }
    start(argc, argv);
    if (pair.is_client) {
        OK(VipCloseNic(pair.nic));
        CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
        open_nic(argv[1]);
    }
    vi = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    one_asks(1, vi);
    one_asks(0, vi);
    as_peers(vi);
    OK(VipDestroyVi(vi));
    finish();
    return 0;
}
