/*
 * Statements about a peer that is killed while an operation is in flight: TRANSPORT_ERROR on its
 * descriptor, the error callback, and the other descriptors flushed. The second argument names the
 * operation.
 */
#include "facts.h"

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "send";
    VIP_DESCRIPTOR *d;
    int status;
    begin(argc, argv);
    level = VIP_SERVICE_RELIABLE_RECEPTION;
    join_vi("killed");
    post_receive(to_receive(0, 10));
    meet();
    if (pair.is_client)
        for (;;)
            pause();
    /* The stopped peer takes nothing, so the operation stays in flight. */
    kill(pair.client, SIGSTOP);
    CHECK(waitpid(pair.client, &status, WUNTRACED) == pair.client && WIFSTOPPED(status));
    if (strcmp(what, "send") == 0)
        d = to_send(10);
    else
        d = to_rdma(strcmp(what, "write") == 0 ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_RDMAREAD);
    post_send(d);
    kill(pair.client, SIGKILL);
    await_told(strcmp(what, "send") == 0 ? VIP_ERROR_CONN_LOST : VIP_ERROR_RDMA_TRANSPORT);
    sent(d, VIP_STATUS_TRANSPORT_ERROR | (strcmp(what, "send") == 0    ? VIP_STATUS_OP_SEND
                                          : strcmp(what, "write") == 0 ? VIP_STATUS_OP_RDMA_WRITE
                                                                       : VIP_STATUS_OP_RDMA_READ));
    received(descriptors_of(descriptors) + RECEIVES, VIP_STATUS_DESC_FLUSHED_ERROR);
    CHECK(state_of(vi) == VIP_STATE_ERROR);
    part(vi);
    OK(VipCloseNic(pair.nic));
    return 0;
}
