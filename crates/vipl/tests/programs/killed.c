/* The peer is killed during transfers. The VI breaks, posted descriptors are flushed, and the error
 * callback reports that, also while the program does not call. */
#include "pair.h"

static volatile int lost;

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    CHECK(context == NULL && error->ViHandle != NULL);
    CHECK(error->ErrorCode == VIP_ERROR_CONN_LOST);
    lost++;
}

int main(int argc, char **argv)
{
    memory descriptors, data;
    VIP_VI_HANDLE vi;
    VIP_DESCRIPTOR *done;
    int left = LONG_MS;
    start(argc, argv);
    OK(VipErrorCallback(pair.nic, NULL, on_error));
    descriptors = memory_of(sizeof(VIP_DESCRIPTOR));
    data = memory_of(100);
    vi = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    describe(descriptors_of(descriptors), data, 0, 100);
    OK(VipPostRecv(vi, descriptors_of(descriptors), descriptors.handle));
    join_by(vi, "killed");
    meet();
    if (pair.is_client)
        for (;;)
            pause();
    kill(pair.client, SIGKILL);
    while (lost == 0 && left-- > 0)
        pause_ms(1);
    CHECK(lost == 1);
    CHECK(state_of(vi) == VIP_STATE_ERROR);
    GIVES(VipRecvWait(vi, LONG_MS, &done), VIP_DESCRIPTOR_ERROR);
    CHECK(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
    part(vi);
    OK(VipCloseNic(pair.nic));
    return 0;
}
