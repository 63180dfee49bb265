/* libfabric as a layer: tagged messages, RMA and atomics between reliable endpoints (FI_EP_RDM) of
 * one provider.
 *
 *     netdyno logp --over ofi:tcp
 *
 * The setting provider=NAME selects the provider, as in provider=tcp. It is required. */
#define _POSIX_C_SOURCE 200809L
#include "layer.h"

#include <limits.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The API version for which this layer is written. Newer libraries support it too. */
#define API FI_VERSION(1, 11)
/* Timeout in seconds for completions while cancelling and closing. */
#define PATIENCE_S 1.0
/* Maximum number of completions that one call reads. */
#define COMPLETIONS 16

enum state {
    DONE,      /* complete, or never posted */
    WAITING,   /* the provider has no space for it yet */
    POSTED,    /* passed to the provider */
    CANCELLED, /* cancelled before completion */
};

enum kind { RECEIVE, SEND, PUT, GET, FETCH_ADD };

static const char *const calls[] = { "fi_trecv", "fi_tsend", "fi_writemsg", "fi_read", "fi_fetch_atomic" };

/* The key of a region. */
struct key {
    uint64_t key;
    uint64_t address; /* as fi_write and fi_read count: 0 unless the provider uses virtual addresses */
};

/* An operation in a slot. */
struct operation {
    struct fi_context2 context; /* for the provider; first, so that a completion's context points here */
    enum state state;
    enum kind kind;
    void *buffer;
    size_t bytes; /* size of the buffer; after completion, of the message */
    int32_t rank; /* rank of the other process; after completion, of the sender */
    void *descriptor; /* of the registered buffer, for put, get and fetch_add */
    struct key there; /* the other side of put, get and fetch_add */
    uint64_t operand; /* the number to add */
    struct operation *next;
};

struct netdyno_region {
    struct fid_mr *registered;
    unsigned char *memory;
};

/* Operations that wait for space in the provider, in the order of posting. */
struct line {
    struct operation *first, **end;
};

struct netdyno_channel {
    char *error;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *endpoint;
    fi_addr_t *peers; /* indexed by rank */
    int32_t rank;
    uint64_t uses;
    uint64_t next_key;
    uint32_t slots;
    struct line receives, sends;
    struct operation *cancelling; /* the receive that is being cancelled */
    struct operation operations[]; /* receives, then sends */
};

/* Returns 0 on success. Otherwise writes libfabric's error text and returns -1. */
static int told(char *error, const char *what, ssize_t code)
{
    if (code >= 0)
        return 0;
    snprintf(error, NETDYNO_TEXT_BYTES, "%s: %s", what, fi_strerror((int)-code));
    return -1;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Returns the requested provider. Returns NULL after writing an error if a setting is invalid. */
static const char *provider_in(const struct netdyno_options *options)
{
    static const char name[] = "provider=";
    const char *provider = NULL;

    for (const char *const *setting = options->settings; *setting; setting++) {
        if (strncmp(*setting, name, sizeof name - 1) != 0) {
            snprintf(options->error, NETDYNO_TEXT_BYTES, "'%s' is no setting of ofi: use provider=NAME",
                     *setting);
            return NULL;
        }
        provider = *setting + sizeof name - 1;
    }
    if (!provider)
        snprintf(options->error, NETDYNO_TEXT_BYTES, "ofi needs a provider, as in provider=tcp");
    return provider;
}

/* Returns the capabilities that this channel will use. */
static uint64_t uses_of(const struct netdyno_options *options)
{
    size_t end = offsetof(struct netdyno_options, uses) + sizeof options->uses;

    return options->size >= end ? options->uses : 0;
}

/* Returns the needs of this layer with the capabilities `caps`, or NULL if there is no memory. */
static struct fi_info *hints_with(const struct netdyno_options *options, uint64_t caps)
{
    struct fi_info *hints = fi_allocinfo();

    if (hints) {
        hints->caps = caps;
        hints->mode = FI_CONTEXT | FI_CONTEXT2;
        hints->ep_attr->type = FI_EP_RDM;
        hints->tx_attr->msg_order = FI_ORDER_SAS;
        hints->rx_attr->msg_order = FI_ORDER_SAS;
        hints->domain_attr->threading = FI_THREAD_DOMAIN;
        hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
        hints->domain_attr->mr_mode = FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
        if (uses_of(options) & NETDYNO_ONE_SIDED)
            hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    }
    return hints;
}

/* Returns the length of a provider's own name. The names of providers on top of it follow a
 * semicolon. libfabric adds them by itself. */
static int own_name(const struct fi_info *info)
{
    return (int)strcspn(info->fabric_attr->prov_name, ";");
}

/* Returns true if an earlier information is of the same provider. */
static int is_named_before(const struct fi_info *first, const struct fi_info *info)
{
    while (first != info
           && (own_name(first) != own_name(info)
               || strncmp(first->fabric_attr->prov_name, info->fabric_attr->prov_name,
                          (size_t)own_name(info)) != 0))
        first = first->next;
    return first != info;
}

/* Writes that there is no such provider, and which there are. */
static void tell_missing(const struct netdyno_options *options, const char *provider, struct fi_info *hints,
                         uint64_t caps)
{
    const size_t room = NETDYNO_TEXT_BYTES;
    const char *separator = ": use ", *what = caps & FI_RMA ? " and RMA" : "";
    struct fi_info *infos = NULL;
    size_t length = (size_t)snprintf(options->error, room,
                                     "libfabric has no provider '%s' with tagged messages%s here", provider, what);

    free(hints->fabric_attr->prov_name);
    hints->fabric_attr->prov_name = NULL;
    if (fi_getinfo(API, NULL, NULL, 0, hints, &infos))
        return;
    for (const struct fi_info *info = infos; info && length < room; info = info->next) {
        if (is_named_before(infos, info))
            continue;
        length += (size_t)snprintf(options->error + length, room - length, "%s%.*s", separator, own_name(info),
                                   info->fabric_attr->prov_name);
        separator = ", ";
    }
    fi_freeinfo(infos);
}

/* Returns the provider's information that has the capabilities `caps`, or NULL after writing an
 * error. */
static struct fi_info *info_with(const struct netdyno_options *options, const char *provider, uint64_t caps)
{
    struct fi_info *hints = hints_with(options, caps), *info = NULL;
    int code = -FI_ENOMEM;

    if (hints) {
        hints->fabric_attr->prov_name = strdup(provider);
        code = fi_getinfo(API, NULL, NULL, 0, hints, &info);
    }
    if (code == -FI_ENODATA)
        tell_missing(options, provider, hints, caps);
    else
        told(options->error, "fi_getinfo", code);
    if (hints)
        fi_freeinfo(hints);
    return info;
}

/* Returns the provider's information that matches the needs of this layer, or NULL after writing an
 * error. Many providers have no atomics. Some have them only with another provider on top, which would carry all other
 * operations, too. */
static struct fi_info *info_of(const struct netdyno_options *options, const char *provider)
{
    /* Memory is registered for remote access too, so any registration needs FI_RMA. */
    uint64_t caps = FI_TAGGED | (uses_of(options) & NETDYNO_REGISTERS ? FI_RMA : 0);
    struct fi_info *info = info_with(options, provider, caps), *atomic;

    if (!info || !(uses_of(options) & NETDYNO_FETCH_ADD))
        return info;
    atomic = info_with(options, provider, caps | FI_ATOMIC);
    if (!atomic)
        return info;
    if (strcmp(atomic->fabric_attr->prov_name, info->fabric_attr->prov_name) != 0) {
        fi_freeinfo(atomic);
        return info;
    }
    fi_freeinfo(info);
    return atomic;
}

static void release(struct netdyno_channel *channel)
{
    /* Closes the objects in the reverse order of their creation. */
    if (channel->endpoint)
        fi_close(&channel->endpoint->fid);
    if (channel->cq)
        fi_close(&channel->cq->fid);
    if (channel->av)
        fi_close(&channel->av->fid);
    if (channel->domain)
        fi_close(&channel->domain->fid);
    if (channel->fabric)
        fi_close(&channel->fabric->fid);
    fi_freeinfo(channel->info);
    free(channel->peers);
    free(channel);
}

/* Opens the completion queue. A queue that can sleep may cost more, so only channels that sleep have
 * one. Such a queue needs a descriptor, because with FI_WAIT_UNSPEC some providers spin until the end
 * of the timeout. */
static int make_queue(struct netdyno_channel *channel)
{
    int sleeps = (channel->uses & NETDYNO_BLOCKS) != 0;
    struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED,
                             .size = 2 * (size_t)channel->slots,
                             .wait_obj = sleeps ? FI_WAIT_FD : FI_WAIT_NONE };
    int code = fi_cq_open(channel->domain, &cq, &channel->cq, NULL);

    if (code == 0 || !sleeps)
        return told(channel->error, "fi_cq_open", code);
    snprintf(channel->error, NETDYNO_TEXT_BYTES,
             "the provider '%s' has no completion queue that can sleep: use --wait spin or yield",
             channel->info->fabric_attr->prov_name);
    return -1;
}

/* Reports whether the provider has fetch-and-add. The target of one over ofi_rxd dies in fi_cq_read
 * (libfabric's issue 11814), so it is not asked for there. */
static int has_fetch_add(struct netdyno_channel *channel)
{
    struct fi_atomic_attr attr;

    return channel->info->caps & FI_ATOMIC && !strstr(channel->info->fabric_attr->prov_name, "ofi_rxd")
           && fi_query_atomic(channel->domain, FI_UINT64, FI_SUM, &attr, FI_FETCH_ATOMIC) == 0;
}

static int make(struct netdyno_channel *channel)
{
    struct fi_av_attr av = { .type = channel->info->domain_attr->av_type };
    struct fi_info *info = channel->info;
    char *error = channel->error;

    /* Only puts ask for FI_DELIVERY_COMPLETE. */
    info->tx_attr->op_flags = 0;
    if (told(error, "fi_fabric", fi_fabric(info->fabric_attr, &channel->fabric, NULL))
        || told(error, "fi_domain", fi_domain(channel->fabric, info, &channel->domain, NULL))
        || told(error, "fi_av_open", fi_av_open(channel->domain, &av, &channel->av, NULL))
        || make_queue(channel)
        || told(error, "fi_endpoint", fi_endpoint(channel->domain, info, &channel->endpoint, NULL))
        || told(error, "fi_ep_bind", fi_ep_bind(channel->endpoint, &channel->av->fid, 0))
        || told(error, "fi_ep_bind",
                fi_ep_bind(channel->endpoint, &channel->cq->fid, FI_TRANSMIT | FI_RECV)))
        return -1;
    return told(error, "fi_enable", fi_enable(channel->endpoint));
}

static struct netdyno_channel *ofi_open(struct netdyno_options *options)
{
    const char *provider = provider_in(options);
    struct fi_info *info = provider ? info_of(options, provider) : NULL;
    struct netdyno_channel *channel;

    if (!info)
        return NULL;
    channel = calloc(1, sizeof *channel + 2 * (size_t)options->slots * sizeof(struct operation));
    if (!channel) {
        snprintf(options->error, NETDYNO_TEXT_BYTES, "no memory");
        fi_freeinfo(info);
        return NULL;
    }
    channel->error = options->error;
    channel->info = info;
    channel->rank = options->rank;
    channel->uses = uses_of(options);
    channel->slots = options->slots;
    channel->receives.end = &channel->receives.first;
    channel->sends.end = &channel->sends.first;
    channel->peers = calloc((size_t)options->ranks, sizeof *channel->peers);
    if (!channel->peers || make(channel)) {
        release(channel);
        return NULL;
    }
    if (channel->uses & NETDYNO_FETCH_ADD && !has_fetch_add(channel))
        options->uses &= ~(uint64_t)NETDYNO_FETCH_ADD;
    if (options->largest > info->ep_attr->max_msg_size)
        options->largest = info->ep_attr->max_msg_size;
    return channel;
}

static void ofi_describe(struct netdyno_channel *channel, char *text, size_t room)
{
    const struct fi_fabric_attr *fabric = channel->info->fabric_attr;
    uint32_t library = fi_version();

    snprintf(text, room, "libfabric %u.%u, provider %s %u.%u, domain %s", FI_MAJOR(library), FI_MINOR(library),
             fabric->prov_name, FI_MAJOR(fabric->prov_version), FI_MINOR(fabric->prov_version),
             channel->info->domain_attr->name);
}

static int ofi_address(struct netdyno_channel *channel, void *bytes, size_t room)
{
    size_t length = room;

    if (told(channel->error, "fi_getname", fi_getname(&channel->endpoint->fid, bytes, &length)))
        return -1;
    return (int)length;
}

static int ofi_connect(struct netdyno_channel *channel, const struct netdyno_address *addresses, uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        channel->peers[rank] = FI_ADDR_UNSPEC;
        if (addresses[rank].length > 0
            && fi_av_insert(channel->av, addresses[rank].bytes, 1, &channel->peers[rank], 0, NULL) != 1) {
            snprintf(channel->error, NETDYNO_TEXT_BYTES, "fi_av_insert: the address of rank %u is none", rank);
            return -1;
        }
    }
    return 0;
}

/* Starts a put. It completes when the bytes are in the memory of the other process. */
static ssize_t start_put(struct netdyno_channel *channel, struct operation *put)
{
    struct iovec here = { .iov_base = put->buffer, .iov_len = put->bytes };
    struct fi_rma_iov there = { .addr = put->there.address, .len = put->bytes, .key = put->there.key };
    struct fi_msg_rma message = {
        .msg_iov = &here,
        .desc = &put->descriptor,
        .iov_count = 1,
        .addr = channel->peers[put->rank],
        .rma_iov = &there,
        .rma_iov_count = 1,
        .context = &put->context,
    };

    return fi_writemsg(channel->endpoint, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

/* Starts an operation. A message carries the rank of its sender as its tag. */
static ssize_t start(struct netdyno_channel *channel, struct operation *operation)
{
    int is_from_any = operation->rank == NETDYNO_ANY_RANK;

    switch (operation->kind) {
    case RECEIVE:
        return fi_trecv(channel->endpoint, operation->buffer, operation->bytes, NULL, FI_ADDR_UNSPEC,
                        is_from_any ? 0 : (uint64_t)operation->rank, is_from_any ? UINT64_MAX : 0,
                        &operation->context);
    case SEND:
        return fi_tsend(channel->endpoint, operation->buffer, operation->bytes, NULL,
                        channel->peers[operation->rank], (uint64_t)channel->rank, &operation->context);
    case PUT:
        return start_put(channel, operation);
    case GET:
        return fi_read(channel->endpoint, operation->buffer, operation->bytes, operation->descriptor,
                       channel->peers[operation->rank], operation->there.address, operation->there.key,
                       &operation->context);
    case FETCH_ADD:
        return fi_fetch_atomic(channel->endpoint, &operation->operand, 1, NULL, operation->buffer,
                               operation->descriptor, channel->peers[operation->rank],
                               operation->there.address, operation->there.key, FI_UINT64, FI_SUM,
                               &operation->context);
    }
    return -FI_EINVAL;
}

/* Passes waiting operations to the provider until it has no more space. */
static int advance(struct netdyno_channel *channel, struct line *line)
{
    while (line->first) {
        struct operation *operation = line->first;
        ssize_t code = start(channel, operation);

        if (code == -FI_EAGAIN)
            return 0;
        line->first = operation->next;
        if (!line->first)
            line->end = &line->first;
        if (told(channel->error, calls[operation->kind], code)) {
            operation->state = DONE;
            return -1;
        }
        operation->state = POSTED;
    }
    return 0;
}

static int post(struct netdyno_channel *channel, struct line *line, struct operation *operation)
{
    operation->state = WAITING;
    operation->next = NULL;
    *line->end = operation;
    line->end = &operation->next;
    return advance(channel, line);
}

static int ofi_post_receive(struct netdyno_channel *channel, uint32_t slot, int32_t rank, void *buffer,
                            size_t bytes)
{
    struct operation *receive = &channel->operations[slot];

    receive->kind = RECEIVE;
    receive->buffer = buffer;
    receive->bytes = bytes;
    receive->rank = rank;
    return post(channel, &channel->receives, receive);
}

static int ofi_post_send(struct netdyno_channel *channel, uint32_t slot, int32_t rank, const void *buffer,
                         size_t bytes)
{
    struct operation *send = &channel->operations[channel->slots + slot];

    send->kind = SEND;
    send->buffer = (void *)buffer;
    send->bytes = bytes;
    send->rank = rank;
    return post(channel, &channel->sends, send);
}

/* Reads the error queue entry of an operation that failed or was cancelled. */
static int take_error(struct netdyno_channel *channel)
{
    struct fi_cq_err_entry failed = { 0 };
    ssize_t code = fi_cq_readerr(channel->cq, &failed, 0);
    struct operation *operation = failed.op_context;

    if (code == -FI_EAGAIN)
        return 0;
    if (told(channel->error, "fi_cq_readerr", code))
        return -1;
    /* A provider also cancels the operations of a connection that has ended. */
    if (failed.err == FI_ECANCELED && operation && operation == channel->cancelling) {
        operation->state = CANCELLED;
        return 0;
    }
    if (operation)
        operation->state = DONE;
    snprintf(channel->error, NETDYNO_TEXT_BYTES, "%s failed: %s",
             operation ? calls[operation->kind] : "libfabric", fi_strerror(failed.err));
    return -1;
}

/* Handles what a call returned that reads completions. Then starts operations that waited for
 * space. */
static int handle(struct netdyno_channel *channel, const struct fi_cq_tagged_entry *completed, ssize_t count)
{
    if (count == -FI_EAVAIL && take_error(channel))
        return -1;
    if (count < 0 && count != -FI_EAGAIN && count != -FI_EAVAIL && count != -FI_EINTR)
        return told(channel->error, "fi_cq_read", count);
    for (ssize_t nth = 0; nth < count; nth++) {
        struct operation *operation = completed[nth].op_context;

        operation->state = DONE;
        if (operation->kind == RECEIVE) {
            operation->bytes = completed[nth].len;
            operation->rank = (int32_t)completed[nth].tag;
        }
    }
    return advance(channel, &channel->receives) || advance(channel, &channel->sends) ? -1 : 0;
}

static int progress(struct netdyno_channel *channel)
{
    struct fi_cq_tagged_entry completed[COMPLETIONS];

    return handle(channel, completed, fi_cq_read(channel->cq, completed, COMPLETIONS));
}

static int ofi_block(struct netdyno_channel *channel, uint64_t timeout_ns)
{
    struct fi_cq_tagged_entry completed[COMPLETIONS];
    uint64_t timeout_ms = timeout_ns / 1000000 + 1;

    /* A send that waits for room starts in the next call, and maybe no completion tells of the room. */
    if (channel->sends.first)
        timeout_ms = 1;
    if (timeout_ms > INT_MAX)
        timeout_ms = INT_MAX;
    return handle(channel, completed,
                  fi_cq_sread(channel->cq, completed, COMPLETIONS, NULL, (int)timeout_ms));
}

static int ofi_test_receive(struct netdyno_channel *channel, uint32_t slot, struct netdyno_arrival *arrival)
{
    struct operation *receive = &channel->operations[slot];

    if (receive->state != DONE && progress(channel))
        return -1;
    if (receive->state != DONE)
        return 0;
    arrival->bytes = receive->bytes;
    arrival->rank = receive->rank;
    return 1;
}

static int ofi_test_send(struct netdyno_channel *channel, uint32_t slot)
{
    struct operation *send = &channel->operations[channel->slots + slot];

    if (send->state != DONE && progress(channel))
        return -1;
    return send->state == DONE;
}

/* Removes an operation from the queue that the provider has never received. */
static void withdraw(struct line *line, struct operation *operation)
{
    struct operation **at = &line->first;

    while (*at && *at != operation)
        at = &(*at)->next;
    if (*at) {
        *at = operation->next;
        if (!*at)
            line->end = at;
    }
    operation->state = CANCELLED;
}

static int ofi_cancel_receive(struct netdyno_channel *channel, uint32_t slot)
{
    struct operation *receive = &channel->operations[slot];
    double until = now_s() + PATIENCE_S;
    int had_come;

    if (receive->state == WAITING)
        withdraw(&channel->receives, receive);
    if (receive->state == POSTED) {
        channel->cancelling = receive;
        fi_cancel(&channel->endpoint->fid, &receive->context);
    }
    while (receive->state == POSTED) {
        if (progress(channel))
            return -1;
        if (now_s() > until) {
            snprintf(channel->error, NETDYNO_TEXT_BYTES, "a receive was not taken back");
            return -1;
        }
    }
    channel->cancelling = NULL;
    had_come = receive->state == DONE;
    receive->state = DONE;
    return had_come;
}

static struct netdyno_region *ofi_register(struct netdyno_channel *channel, void *memory, size_t bytes)
{
    uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    struct netdyno_region *region = malloc(sizeof *region);

    if (!region) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "no memory");
        return NULL;
    }
    region->memory = memory;
    if (told(channel->error, "fi_mr_reg",
             fi_mr_reg(channel->domain, memory, bytes, access, 0, channel->next_key++, 0, &region->registered,
                       NULL))) {
        free(region);
        return NULL;
    }
    return region;
}

static int ofi_deregister(struct netdyno_channel *channel, struct netdyno_region *region)
{
    int failed = told(channel->error, "fi_close", fi_close(&region->registered->fid));

    free(region);
    return failed;
}

static int ofi_key(struct netdyno_channel *channel, struct netdyno_region *region, void *bytes, size_t room)
{
    int is_virtual = (channel->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    struct key key = { .key = fi_mr_key(region->registered),
                       .address = is_virtual ? (uint64_t)(uintptr_t)region->memory : 0 };

    if (key.key == FI_KEY_NOTAVAIL || room < sizeof key) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "fi_mr_key: the provider's keys are too long");
        return -1;
    }
    memcpy(bytes, &key, sizeof key);
    return sizeof key;
}

static int reach(struct netdyno_channel *channel, uint32_t slot, const struct netdyno_transfer *transfer,
                 enum kind kind, uint64_t operand)
{
    struct operation *operation = &channel->operations[channel->slots + slot];

    if (transfer->key.length != sizeof operation->there) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "a key of %zu bytes is none of ofi", transfer->key.length);
        return -1;
    }
    memcpy(&operation->there, transfer->key.bytes, sizeof operation->there);
    operation->there.address += transfer->key_offset;
    operation->kind = kind;
    operation->buffer = transfer->region->memory + transfer->offset;
    operation->descriptor = fi_mr_desc(transfer->region->registered);
    operation->bytes = transfer->bytes;
    operation->rank = transfer->rank;
    operation->operand = operand;
    return post(channel, &channel->sends, operation);
}

static int ofi_put(struct netdyno_channel *channel, uint32_t slot, const struct netdyno_transfer *transfer)
{
    return reach(channel, slot, transfer, PUT, 0);
}

static int ofi_get(struct netdyno_channel *channel, uint32_t slot, const struct netdyno_transfer *transfer)
{
    return reach(channel, slot, transfer, GET, 0);
}

static int ofi_fetch_add(struct netdyno_channel *channel, uint32_t slot,
                         const struct netdyno_transfer *transfer, uint64_t operand)
{
    return reach(channel, slot, transfer, FETCH_ADD, operand);
}

static int ofi_flush(struct netdyno_channel *channel, int32_t rank)
{
    (void)channel;
    (void)rank;
    return 0; /* FI_DELIVERY_COMPLETE: a completed put is visible already */
}

/* Waits for the sends for a while, because a provider may delay a message until its next call.
 * After the endpoint is closed, the provider uses no buffer. */
static int ofi_close(struct netdyno_channel *channel)
{
    double until = now_s() + PATIENCE_S;

    for (uint32_t slot = 0; slot < channel->slots; slot++)
        while (channel->operations[channel->slots + slot].state != DONE && now_s() < until)
            if (progress(channel))
                break;
    if (fi_close(&channel->endpoint->fid))
        return 1;
    channel->endpoint = NULL;
    release(channel);
    return 0;
}

const struct netdyno_layer netdyno_layer = {
    .version = NETDYNO_LAYER_VERSION,
    .size = sizeof netdyno_layer,
    .capabilities = NETDYNO_BLOCKS | NETDYNO_REGISTERS | NETDYNO_ONE_SIDED | NETDYNO_FETCH_ADD,
    .name = "ofi",
    .open = ofi_open,
    .describe = ofi_describe,
    .address = ofi_address,
    .connect = ofi_connect,
    .post_receive = ofi_post_receive,
    .post_send = ofi_post_send,
    .test_receive = ofi_test_receive,
    .test_send = ofi_test_send,
    .cancel_receive = ofi_cancel_receive,
    .block = ofi_block,
    .close = ofi_close,
    .register_memory = ofi_register,
    .deregister_memory = ofi_deregister,
    .key = ofi_key,
    .put = ofi_put,
    .get = ofi_get,
    .flush = ofi_flush,
    .fetch_add = ofi_fetch_add,
};
