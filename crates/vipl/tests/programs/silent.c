/*
 * A program waits in vain for a moment, and then makes no call. Writes of the peer into its memory
 * still arrive, and not only after some timeout. They are so many that such timeouts would exceed the
 * test's time.
 */
#include "pair.h"

#define ROUNDS 60

int main(int argc, char **argv)
{
    memory descriptors, data, remote;
    VIP_DESCRIPTOR *d, *done;
    VIP_VI_HANDLE vi;
    int round, left;
    start(argc, argv);
    descriptors = memory_of(sizeof(VIP_DESCRIPTOR));
    d = descriptors_of(descriptors);
    data = memory_of(1);
    tell(&data, sizeof data);
    hear(&remote, sizeof remote);
    vi = vi_of(VIP_SERVICE_RELIABLE_RECEPTION);
    if (!pair.is_client) {
        describe(d, data, 0, 1);
        OK(VipPostRecv(vi, d, descriptors.handle));
    }
    join_by(vi, "silent");
    for (round = 1; round <= ROUNDS; round++) {
        if (!pair.is_client)
            GIVES(VipRecvWait(vi, 10, &done), VIP_TIMEOUT);
        meet();
        if (pair.is_client) {
            data.bytes[0] = (char) round;
            describe_rdma(d, VIP_CONTROL_OP_RDMAWRITE, &remote, data, 1);
            OK(VipPostSend(vi, d, descriptors.handle));
            OK(VipSendWait(vi, LONG_MS, &done));
        } else {
            left = LONG_MS;
            while (*(volatile char *) data.bytes != (char) round && left-- > 0)
                pause_ms(1);
            CHECK(*(volatile char *) data.bytes == (char) round);
        }
        meet();
    }
    part(vi);
    finish();
    return 0;
}
