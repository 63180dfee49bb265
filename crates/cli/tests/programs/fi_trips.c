/*
 * Times round trips of 64 bytes over a provider of libfabric, by tagged messages of reliable datagram endpoints:
 *
 *     fi_trips one|two PROVIDER OWN_PORT OTHER_PORT [N]
 *
 * one: one completion queue for sends and receives, 64 receives posted in advance, and no wait for the completion of a send,
 *      as netdyno's layer
 * two: a completion queue for sends and one for receives, a receive posted after each message, and a wait for the completion
 *      of every send, as fi_pingpong
 *
 * Both ends are on this host, and the one without N starts first. The other one makes N trips, and prints half of their
 * median and of their mean. Build it by `cc -O2 fi_trips.c -lfabric`.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES 64
#define POSTED 64

static struct fid_ep *endpoint;
/* Without a queue for sends, their completions are in the other one. */
static struct fid_cq *sends, *receives;
static struct fi_context2 contexts[POSTED + 1];
static char buffers[POSTED + 1][BYTES];
static fi_addr_t other;
static int received, sent, posted_next;

static void check(const char *what, long code)
{
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-code));
        exit(1);
    }
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static void open_endpoint(const char *provider, const char *port, const char *other_port, int queues)
{
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .size = 2 * POSTED, .wait_obj = FI_WAIT_NONE };
    struct fi_av_attr av = { 0 };
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *addresses;

    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup(provider);
    check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", port, FI_SOURCE, hints, &info));
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
    check("fi_domain", fi_domain(fabric, info, &domain, NULL));
    check("fi_av_open", fi_av_open(domain, &av, &addresses, NULL));
    check("fi_cq_open", fi_cq_open(domain, &cq, &receives, NULL));
    check("fi_endpoint", fi_endpoint(domain, info, &endpoint, NULL));
    check("fi_ep_bind", fi_ep_bind(endpoint, &addresses->fid, 0));
    if (queues == 2)
        check("fi_cq_open", fi_cq_open(domain, &cq, &sends, NULL));
    check("fi_ep_bind", fi_ep_bind(endpoint, &receives->fid, sends ? FI_RECV : FI_RECV | FI_TRANSMIT));
    if (sends)
        check("fi_ep_bind", fi_ep_bind(endpoint, &sends->fid, FI_TRANSMIT));
    check("fi_enable", fi_enable(endpoint));
    check("fi_av_insertsvc", fi_av_insertsvc(addresses, "127.0.0.1", other_port, &other, 0, NULL));
    fi_freeinfo(hints);
}

/* Takes completions from a queue. */
static void progress(struct fid_cq *queue)
{
    struct fi_cq_tagged_entry done[8];
    ssize_t count = fi_cq_read(queue, done, 8);

    if (count != -FI_EAGAIN)
        check("fi_cq_read", count);
    for (ssize_t nth = 0; nth < count; nth++) {
        if (done[nth].flags & FI_RECV)
            received++;
        else
            sent++;
    }
}

static void post(void)
{
    int nth = posted_next++ % POSTED;
    check("fi_trecv", fi_trecv(endpoint, buffers[nth], BYTES, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[nth]));
}

static void send_one(void)
{
    ssize_t code;
    int before = sent;

    do {
        code = fi_tsend(endpoint, buffers[POSTED], BYTES, NULL, other, 1, &contexts[POSTED]);
        if (code == -FI_EAGAIN)
            progress(sends ? sends : receives);
    } while (code == -FI_EAGAIN);
    check("fi_tsend", code);
    while (sends && sent == before)
        progress(sends);
}

static void await_one(void)
{
    while (received == 0)
        progress(receives);
    received--;
    post();
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    int n = argc > 5 ? atoi(argv[5]) : 0;
    double *times = malloc((n + 1) * sizeof *times), sum = 0;

    if (argc < 5) {
        fprintf(stderr, "usage: fi_trips one|two PROVIDER OWN_PORT OTHER_PORT [N]\n");
        return 2;
    }
    open_endpoint(argv[2], argv[3], argv[4], strcmp(argv[1], "two") ? 1 : 2);
    for (int nth = 0; nth < (sends ? 1 : POSTED); nth++)
        post();
    if (n == 0) {
        for (;;) {
            await_one();
            send_one();
        }
    }
    for (int nth = -1000; nth < n; nth++) {
        double began = now_ns();
        send_one();
        await_one();
        if (nth >= 0)
            sum += times[nth] = now_ns() - began;
    }
    qsort(times, n, sizeof *times, ascending);
    printf("half_median_ns=%.1f half_mean_ns=%.1f\n", times[n / 2] / 2, sum / n / 2);
    return 0;
}
