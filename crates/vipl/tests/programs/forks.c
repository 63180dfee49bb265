/*
 * A process with a connection forks. The child has none of its parent's NICs, may open one of its own,
 * and may end in any way. The parent's connection goes on.
 */
#include "pair.h"

static memory descriptors, data;
static VIP_VI_HANDLE vi;

/* Sends a message each way. */
static void round_trip(char mark)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors), *done;
    describe(d + 1, data, 1, 1);
    OK(VipPostRecv(vi, d + 1, descriptors.handle));
    meet();
    data.bytes[0] = mark;
    describe(d, data, 0, 1);
    OK(VipPostSend(vi, d, descriptors.handle));
    OK(VipSendWait(vi, LONG_MS, &done));
    OK(VipRecvWait(vi, LONG_MS, &done));
    CHECK(data.bytes[1] == mark);
}

static void live_as_child(void)
{
    VIP_NIC_ATTRIBUTES attributes;
    VIP_PROTECTION_HANDLE ptag;
    VIP_NIC_HANDLE own;
    VIP_DESCRIPTOR *done;
    GIVES(VipRecvDone(vi, &done), VIP_INVALID_PARAMETER);
    GIVES(VipDisconnect(vi), VIP_INVALID_PARAMETER);
    GIVES(VipCreatePtag(pair.nic, &ptag), VIP_INVALID_PARAMETER);
    GIVES(VipCloseNic(pair.nic), VIP_INVALID_PARAMETER);
    OK(VipOpenNic("VINIC", &own));
    CHECK(own != pair.nic);
    OK(VipQueryNic(own, &attributes));
    OK(VipCreatePtag(own, &ptag));
    OK(VipCloseNic(own));
    OK(VipOpenNic("VINIC", &own));
    GIVES(VipCloseNic(pair.nic), VIP_INVALID_PARAMETER);
    exit(0);
}

int main(int argc, char **argv)
{
    int round, status;
    pid_t child;
    start(argc, argv);
    descriptors = memory_of(2 * sizeof(VIP_DESCRIPTOR));
    data = memory_of(2);
    vi = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    join_by(vi, "forks");
    for (round = 0; round < 3; round++) {
        round_trip((char) ('a' + round));
        child = fork();
        CHECK(child >= 0);
        if (child == 0)
            live_as_child();
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(state_of(vi) == VIP_STATE_CONNECTED);
    }
    round_trip('z');
    meet();
    part(vi);
    finish();
    return 0;
}
