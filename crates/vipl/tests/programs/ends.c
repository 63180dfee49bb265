/*
 * A process that ends without closing its NIC, right after its last completed send. All messages
 * arrive, and the peer learns of the end. The second argument tells how the process ends.
 */
#include "pair.h"
#include <pthread.h>

#define COUNT 8
#define LENGTH 65536

static memory descriptors, data;
static VIP_VI_HANDLE vi;

static void send_all(void)
{
    VIP_DESCRIPTOR *done;
    int at;
    for (at = 0; at < COUNT; at++) {
        VIP_DESCRIPTOR *d = descriptors_of(descriptors) + at;
        memset(data.bytes + at * LENGTH, 'a' + at, LENGTH);
        describe(d, data, (VIP_ULONG) at * LENGTH, LENGTH);
        OK(VipPostSend(vi, d, descriptors.handle));
    }
    for (at = 0; at < COUNT; at++)
        OK(VipSendWait(vi, LONG_MS, &done));
}

static void send_at_exit(void)
{
    if (pair.is_client)
        send_all();
}

static void exit_in_handler(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE of, VIP_DESCRIPTOR *d)
{
    CHECK(context == NULL && nic == pair.nic && of == vi && d != NULL);
    exit(0);
}

static void exit_in_signal(int signal)
{
    CHECK(signal == SIGUSR1);
    exit(0);
}

static void *exit_in_thread(void *context)
{
    CHECK(context == NULL);
    exit(0);
    return NULL;
}

/* Never returns: the process ends first. */
static void *wait_in_thread(void *context)
{
    VIP_DESCRIPTOR *done;
    CHECK(context == NULL);
    VipRecvWait(vi, VIP_INFINITE, &done);
    CHECK(0);
    return NULL;
}

static void end(const char *how)
{
    VIP_DESCRIPTOR *d = descriptors_of(descriptors) + COUNT;
    pthread_t thread;
    if (strcmp(how, "atexit") == 0)
        exit(0);
    send_all();
    if (strcmp(how, "handler") == 0) {
        describe(d, data, 0, 0);
        OK(VipSendNotify(vi, NULL, exit_in_handler));
        OK(VipPostSend(vi, d, descriptors.handle));
    } else if (strcmp(how, "thread") == 0) {
        CHECK(pthread_create(&thread, NULL, exit_in_thread, NULL) == 0);
    } else if (strcmp(how, "signal") == 0) {
        signal(SIGUSR1, exit_in_signal);
        raise(SIGUSR1);
    } else {
        CHECK(strcmp(how, "return") == 0);
        describe(d, data, 0, 0);
        OK(VipPostRecv(vi, d, descriptors.handle));
        CHECK(pthread_create(&thread, NULL, wait_in_thread, NULL) == 0);
        pause_ms(5);
        return;
    }
    for (;;)
        pause();
}

static void ignore_errors(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    CHECK(context == NULL && error->ErrorCode == VIP_ERROR_CONN_LOST);
}

static void receive_all(void)
{
    VIP_DESCRIPTOR *done;
    int at, status;
    for (at = 0; at < COUNT; at++) {
        char *bytes = data.bytes + at * LENGTH;
        OK(VipRecvWait(vi, LONG_MS, &done));
        CHECK(done == descriptors_of(descriptors) + at && done->CS.Length == LENGTH);
        CHECK(bytes[0] == 'a' + at && bytes[LENGTH - 1] == 'a' + at);
    }
    /* The receive behind them is for the empty message that the handler is called for. */
    await_state(vi, VIP_STATE_ERROR);
    CHECK(waitpid(pair.client, &status, 0) == pair.client);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    part(vi);
    OK(VipCloseNic(pair.nic));
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "return";
    int at;
    /* The program's functions for its end run before the library's, in whichever order they were
     * registered. */
    if (strcmp(how, "atexit") == 0)
        CHECK(atexit(send_at_exit) == 0);
    start(argc, argv);
    OK(VipErrorCallback(pair.nic, NULL, ignore_errors));
    descriptors = memory_of((COUNT + 1) * sizeof(VIP_DESCRIPTOR));
    data = memory_of((COUNT + 1) * LENGTH);
    vi = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    if (!pair.is_client)
        for (at = 0; at <= COUNT; at++) {
            describe(descriptors_of(descriptors) + at, data, (VIP_ULONG) at * LENGTH, LENGTH);
            OK(VipPostRecv(vi, descriptors_of(descriptors) + at, descriptors.handle));
        }
    join_by(vi, "ends");
    meet();
    if (pair.is_client)
        end(how);
    else
        receive_all();
    return 0;
}
