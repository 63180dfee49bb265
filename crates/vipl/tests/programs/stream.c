/*
 * A stream of messages with a window of receives, and a reply for each half of the window. No message
 * is lost or overtaken. Descriptors by Control and Data.
 */
#include "pair.h"

#define WINDOW 32
#define COUNT 2000

static memory descriptors, data;

static VIP_DESCRIPTOR *describe_cell(int cell, VIP_ULONG count)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors) + cell;
    memset(d, 0, sizeof *d);
    d->Control.Control = VIP_CONTROL_OP_SENDRECV;
    d->Control.SegCount = 1;
    d->Data[0].Data.Address = data.bytes + 4096 * cell;
    d->Data[0].Handle = data.handle;
    d->Data[0].Length = (VIP_UINT32) count;
    return d;
}

static VIP_ULONG length_of(int number)
{
    return sizeof number + (VIP_ULONG) (number * 37 % 4000);
}

static void serve(VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *done;
    int number, got;
    for (number = 0; number < COUNT; number++) {
        int cell = number % WINDOW;
        OK(VipRecvWait(vi, VIP_INFINITE, &done));
        CHECK(done == descriptors_of(descriptors) + cell);
        CHECK(done->Control.Length == length_of(number));
        memcpy(&got, done->Data[0].Data.Address, sizeof got);
        CHECK(got == number);
        OK(VipPostRecv(vi, describe_cell(cell, 4096), descriptors.handle));
        if ((number + 1) % (WINDOW / 2) == 0) {
            OK(VipPostSend(vi, describe_cell(WINDOW, 4), descriptors.handle));
            OK(VipSendWait(vi, LONG_MS, &done));
        }
    }
}

static void stream(VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *done;
    int number, credits = WINDOW, sent = 0;
    for (number = 0; number < COUNT; number++) {
        int cell = number % WINDOW;
        if (credits == 0) {
            OK(VipRecvWait(vi, LONG_MS, &done));
            OK(VipPostRecv(vi, done, descriptors.handle));
            credits += WINDOW / 2;
        }
        while (sent <= number - WINDOW) {
            OK(VipSendWait(vi, LONG_MS, &done));
            CHECK(done == descriptors_of(descriptors) + sent++ % WINDOW);
        }
        describe_cell(cell, length_of(number));
        memcpy(data.bytes + 4096 * cell, &number, sizeof number);
        OK(VipPostSend(vi, descriptors_of(descriptors) + cell, descriptors.handle));
        credits--;
    }
    for (; sent < COUNT; sent++)
        OK(VipSendWait(vi, LONG_MS, &done));
    GIVES(VipSendDone(vi, &done), VIP_NOT_DONE);
    CHECK(done == NULL);
}

int main(int argc, char **argv)
{
    static const VIP_RELIABILITY_LEVEL levels[] = {VIP_SERVICE_RELIABLE_DELIVERY,
                                                   VIP_SERVICE_RELIABLE_RECEPTION};
    unsigned level;
    int cell;
    start(argc, argv);
    descriptors = memory_of((WINDOW + 4) * sizeof(VIP_DESCRIPTOR));
    data = memory_of((WINDOW + 4) * 4096);
    for (level = 0; level < 2; level++) {
        VIP_VI_HANDLE vi = vi_of(levels[level]);
        int first = pair.is_client ? WINDOW : 0, last = pair.is_client ? WINDOW + 4 : WINDOW;
        for (cell = first; cell < last; cell++)
            OK(VipPostRecv(vi, describe_cell(cell, 4096), descriptors.handle));
        join_by(vi, "stream");
        if (pair.is_client)
            stream(vi);
        else
            serve(vi);
        meet();
        part(vi);
    }
    finish();
    return 0;
}
