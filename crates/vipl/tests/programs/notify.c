/* Handlers of sends, of receives and of a completion queue. Each is called once, in order, while the
 * program makes no call. One of them posts the next receive itself. */
#include "pair.h"

#define COUNT 20

static memory descriptors, data;
static VIP_VI_HANDLE vi;
static VIP_CQ_HANDLE cq;
static volatile int sent, received;

static void await_count(volatile int *count, int expected)
{
    int left = LONG_MS;
    while (*count < expected && left-- > 0)
        pause_ms(1);
    pause_ms(5);
    CHECK(*count == expected);
}

static void on_send(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE of, VIP_DESCRIPTOR *d)
{
    CHECK(context == descriptors_of(descriptors) + sent && d == context);
    CHECK(nic == pair.nic && of == vi && (d->CS.Status & VIP_STATUS_DONE));
    sent++;
}

static void on_receive(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE of, VIP_DESCRIPTOR *d)
{
    CHECK(context == NULL && nic == pair.nic && of == vi && d == descriptors_of(descriptors));
    CHECK(data.bytes[0] == (char) received);
    received++;
    OK(VipPostRecv(vi, d, descriptors.handle));
    if (received < COUNT)
        OK(VipRecvNotify(vi, NULL, on_receive));
    /* The next message may come now. */
    tell("", 1);
}

static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE of, VIP_BOOLEAN receives)
{
    VIP_DESCRIPTOR *done;
    CHECK(context == &cq && nic == pair.nic && of == vi && receives == VIP_TRUE);
    OK(VipRecvDone(of, &done));
    received++;
    if (received < COUNT)
        OK(VipCQNotify(cq, &cq, on_entry));
    OK(VipPostRecv(vi, done, descriptors.handle));
    tell("", 1);
}

/* The client sends one message at a time, and is notified of each. */
static void send_all(void)
{
    VIP_DESCRIPTOR *done;
    char byte;
    sent = 0;
    for (int number = 0; number < COUNT; number++) {
        VIP_DESCRIPTOR *d = descriptors_of(descriptors) + number;
        describe(d, data, 0, 1);
        data.bytes[0] = (char) number;
        OK(VipSendNotify(vi, d, on_send));
        OK(VipPostSend(vi, d, descriptors.handle));
        hear(&byte, 1);
    }
    await_count(&sent, COUNT);
    GIVES(VipSendDone(vi, &done), VIP_NOT_DONE);
}

static void run(VIP_CQ_HANDLE receive_cq)
{
    VIP_VI_ATTRIBUTES attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY);
    received = 0;
    OK(VipCreateVi(pair.nic, &attributes, NULL, pair.is_client ? NULL : receive_cq, &vi));
    if (!pair.is_client) {
        describe(descriptors_of(descriptors), data, 0, 1);
        OK(VipPostRecv(vi, descriptors_of(descriptors), descriptors.handle));
        if (receive_cq != NULL) {
            GIVES(VipRecvNotify(vi, NULL, on_receive), VIP_INVALID_PARAMETER);
            OK(VipCQNotify(cq, &cq, on_entry));
        } else {
            GIVES(VipRecvNotify(vi, NULL, NULL), VIP_INVALID_PARAMETER);
            OK(VipRecvNotify(vi, NULL, on_receive));
        }
    }
    join_by(vi, "notify");
    if (pair.is_client)
        send_all();
    else
        await_count(&received, COUNT);
    meet();
    part(vi);
}

static volatile int has_begun, has_ended;

static void on_flush(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE of, VIP_DESCRIPTOR *d)
{
    CHECK(context == NULL && nic == pair.nic && of == vi && d == descriptors_of(descriptors));
    has_begun = 1;
    pause_ms(100);
    has_ended = 1;
}

/* A VI is gone only when its handler has ended: the program may then free what the handler uses. */
static void destroy_beside_handler(void)
{
    VIP_VI_ATTRIBUTES attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY);
    OK(VipCreateVi(pair.nic, &attributes, NULL, NULL, &vi));
    describe(descriptors_of(descriptors), data, 0, 1);
    OK(VipPostRecv(vi, descriptors_of(descriptors), descriptors.handle));
    OK(VipRecvNotify(vi, NULL, on_flush));
    join_by(vi, "destroy");
    meet();
    OK(VipDisconnect(vi));
    await_count(&has_begun, 1);
    OK(VipDestroyVi(vi));
    CHECK(has_ended);
}

int main(int argc, char **argv)
{
    start(argc, argv);
    descriptors = memory_of(COUNT * sizeof(VIP_DESCRIPTOR));
    data = memory_of(1);
    OK(VipCreateCQ(pair.nic, 4, &cq));
    run(NULL);
    run(cq);
    OK(VipDestroyCQ(cq));
    destroy_beside_handler();
    finish();
    return 0;
}
