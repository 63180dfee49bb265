/*
 * Statements about a peer that is killed with something of ours under way: TRANSPORT_ERROR on the
 * descriptor, what the error callback is told, and the rest flushed. The second argument says what.
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
    /* It takes nothing any more, and the one under way is not complete. */
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
