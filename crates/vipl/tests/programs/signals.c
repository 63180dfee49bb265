/*
 * Signals: a signal that the program waits for reaches the program and no thread of the library. A wait
 * in the library goes on through any number of signals.
 */
#include "pair.h"
#include <sys/time.h>

static volatile sig_atomic_t alarms;

static void on_alarm(int signal)
{
    CHECK(signal == SIGALRM);
    alarms++;
}

static void every_us(long us)
{
    struct itimerval timer = {{0, us}, {0, us}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

/* The library's threads already exist when the program begins to wait. */
static void one_is_waited_for(void)
{
    sigset_t set;
    int round, signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    for (round = 0; round < 20; round++) {
        CHECK(kill(getpid(), SIGUSR1) == 0);
        pause_ms(1);
        CHECK(sigwait(&set, &signal) == 0 && signal == SIGUSR1);
    }
}

int main(int argc, char **argv)
{
    struct sigaction action;
    memory descriptors, data;
    VIP_DESCRIPTOR *d, *done;
    VIP_VI_HANDLE vi;
    double began;
    start(argc, argv);
    alarm(0);
    descriptors = memory_of(sizeof(VIP_DESCRIPTOR));
    d = descriptors_of(descriptors);
    data = memory_of(1);
    vi = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    describe(d, data, 0, 1);
    if (!pair.is_client)
        OK(VipPostRecv(vi, d, descriptors.handle));
    join_by(vi, "signals");
    one_is_waited_for();
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    if (!pair.is_client) {
        every_us(1000);
        began = now_us();
        GIVES(VipRecvWait(vi, 100, &done), VIP_TIMEOUT);
        CHECK(now_us() - began >= 100e3 && alarms > 0);
        every_us(0);
        meet();
        every_us(1000);
        OK(VipRecvWait(vi, VIP_INFINITE, &done));
        every_us(0);
    } else {
        meet();
        pause_ms(50);
        OK(VipPostSend(vi, d, descriptors.handle));
        OK(VipSendWait(vi, LONG_MS, &done));
    }
    meet();
    part(vi);
    finish();
    return 0;
}
