/*
 * Many VIs on one completion queue, which tells the server which VI has a message. The queue is
 * resized, and calls that are not allowed on a queue in use are refused.
 */
#include "pair.h"

#define VIS 32
#define ROUNDS 20

static memory descriptors, data;

static int which(VIP_VI_HANDLE *vis, VIP_VI_HANDLE vi)
{
    int at;
    for (at = 0; at < VIS && vis[at] != vi; at++)
        ;
    CHECK(at < VIS);
    return at;
}

static void serve(VIP_VI_HANDLE *vis, VIP_CQ_HANDLE cq)
{
    int counts[VIS] = {0}, left;
    for (left = VIS * ROUNDS; left > 0; left--) {
        VIP_VI_HANDLE vi;
        VIP_BOOLEAN receives;
        VIP_DESCRIPTOR *done;
        int at;
        /* Half of the completions are polled, with pauses, and the others are waited for. */
        if (left % 2 == 0)
            OK(VipCQWait(cq, LONG_MS, &vi, &receives));
        else
            while (VipCQDone(cq, &vi, &receives) == VIP_NOT_DONE)
                pause_ms(1);
        CHECK(receives == VIP_TRUE);
        at = which(vis, vi);
        GIVES(VipRecvWait(vi, 0, &done), VIP_INVALID_PARAMETER);
        OK(VipRecvDone(vi, &done));
        CHECK(done == descriptors_of(descriptors) + at && done->CS.Length == sizeof(int));
        CHECK(((int *) (void *) data.bytes)[at] == counts[at]++);
        OK(VipPostRecv(vi, done, descriptors.handle));
        /* The client goes on with this VI. */
        tell(&at, sizeof at);
    }
    for (left = 0; left < VIS; left++)
        CHECK(counts[left] == ROUNDS);
}

static void ask(VIP_VI_HANDLE *vis, VIP_CQ_HANDLE cq)
{
    int sent[VIS] = {0}, at, left, turn;
    for (turn = -VIS, left = VIS * ROUNDS; left > 0; turn++) {
        VIP_VI_HANDLE vi;
        VIP_BOOLEAN receives;
        VIP_DESCRIPTOR *done;
        if (turn < 0)
            at = turn + VIS;
        else {
            hear(&at, sizeof at);
            left--;
            if (sent[at] == ROUNDS)
                continue;
        }
        ((int *) (void *) data.bytes)[at] = sent[at]++;
        OK(VipPostSend(vis[at], descriptors_of(descriptors) + at, descriptors.handle));
        OK(VipCQWait(cq, LONG_MS, &vi, &receives));
        CHECK(vi == vis[at] && receives == VIP_FALSE);
        OK(VipSendDone(vi, &done));
        CHECK(done == descriptors_of(descriptors) + at);
    }
}

int main(int argc, char **argv)
{
    VIP_VI_HANDLE vis[VIS], vi;
    VIP_CQ_HANDLE cq;
    VIP_BOOLEAN receives;
    int at;
    start(argc, argv);
    descriptors = memory_of(VIS * sizeof(VIP_DESCRIPTOR));
    data = memory_of(VIS * sizeof(int));
    GIVES(VipCreateCQ(pair.nic, 0, &cq), VIP_INVALID_PARAMETER);
    GIVES(VipCreateCQ(pair.nic, pair.attributes.MaxCQEntries + 1, &cq), VIP_INVALID_PARAMETER);
    OK(VipCreateCQ(pair.nic, 1, &cq));
    OK(VipResizeCQ(cq, 2 * VIS));
    GIVES(VipCQDone(cq, &vi, &receives), VIP_NOT_DONE);
    GIVES(VipCQWait(cq, 0, &vi, &receives), VIP_TIMEOUT);
    GIVES(VipCQWait(cq, 5, &vi, &receives), VIP_TIMEOUT);
    for (at = 0; at < VIS; at++) {
        VIP_VI_ATTRIBUTES attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY);
        OK(VipCreateVi(pair.nic, &attributes, cq, cq, &vis[at]));
        describe(descriptors_of(descriptors) + at, data, at * sizeof(int), sizeof(int));
        if (!pair.is_client)
            OK(VipPostRecv(vis[at], descriptors_of(descriptors) + at, descriptors.handle));
        join_by(vis[at], "many");
    }
    GIVES(VipDestroyCQ(cq), VIP_ERROR_RESOURCE);
    if (pair.is_client)
        ask(vis, cq);
    else
        serve(vis, cq);
    meet();
    for (at = 0; at < VIS; at++)
        part(vis[at]);
    OK(VipDestroyCQ(cq));
    GIVES(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
    finish();
    return 0;
}
