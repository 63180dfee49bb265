/* UCX as a layer: tagged messages, RMA and atomics of UCP over chosen transports.
 *
 *     netdyno logp --over ucx:tcp
 *
 * The setting transports=NAMES selects them, as in transports=tcp or transports=posix+cma. Its
 * value becomes UCX_TLS, with commas in place of +. It is required. */
#define _POSIX_C_SOURCE 200809L
#include "layer.h"

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

/* Timeout in seconds for cancelling and closing. */
#define PATIENCE_S 1.0
/* Timeout in seconds for a flush, and the slowest link, in bytes in a second: puts that are on their way have more time. */
#define FLUSH_S 10.0
#define SLOWEST 10e6
/* Time in seconds after which a wait for an operation leaves the processor to others. */
#define YIELD_AFTER_S 0.001
/* Maximum length of the transports' names, with the terminating 0. */
#define NAMES 256
/* Maximum length of the key of a region. */
#define KEY 1024

/* An operation: a receive, a send, a put, a get, a fetch_add or a flush. `request` is UCP's, and NULL if
 * the operation is complete. */
struct operation {
    void *request;
    ucs_status_t status; /* outcome of a complete operation */
    size_t bytes; /* length of the received message */
    int32_t rank; /* rank of its sender */
    uint64_t operand; /* the number to add, for fetch_add */
};

struct netdyno_region {
    ucp_mem_h registered;
    unsigned char *memory;
};

/* The other side of the latest put, get or fetch_add to a process: its key, and what UCP unpacked
 * from it. The key consists of the region's address and UCP's packed key. */
struct remote {
    unsigned char key[KEY];
    size_t length;
    ucp_rkey_h unpacked;
};

struct netdyno_channel {
    char *error;
    char transports[NAMES];
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h *peers; /* indexed by rank; NULL if there is no connection */
    struct remote *remotes; /* indexed by rank */
    int32_t rank;
    uint32_t ranks;
    uint64_t uses;
    size_t unflushed; /* bytes of the puts since the last flush */
    int descriptor; /* becomes readable when progress may be possible, for channels that sleep */
    struct operation flush;
    uint32_t slots;
    struct operation operations[]; /* receives, then sends */
};

/* Returns 0 on success. Otherwise writes UCX's error text and returns -1. */
static int told(char *error, const char *what, ucs_status_t status)
{
    if (status == UCS_OK)
        return 0;
    snprintf(error, NETDYNO_TEXT_BYTES, "%s: %s", what, ucs_status_string(status));
    return -1;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Writes the requested transports in the format of UCX_TLS. Returns -1 after writing an error if a
 * setting is invalid. */
static int transports_in(const struct netdyno_options *options, char *transports)
{
    static const char name[] = "transports=";

    *transports = 0;
    for (const char *const *setting = options->settings; *setting; setting++) {
        if (strncmp(*setting, name, sizeof name - 1) != 0 || strlen(*setting) >= NAMES) {
            snprintf(options->error, NETDYNO_TEXT_BYTES, "'%s' is no setting of ucx: use transports=NAMES",
                     *setting);
            return -1;
        }
        strcpy(transports, *setting + sizeof name - 1);
    }
    if (!*transports) {
        snprintf(options->error, NETDYNO_TEXT_BYTES, "ucx needs transports, as in transports=tcp");
        return -1;
    }
    for (char *c = transports; *c; c++)
        if (*c == '+')
            *c = ',';
    return 0;
}

/* Returns the capabilities that this channel will use. */
static uint64_t uses_of(const struct netdyno_options *options)
{
    size_t end = offsetof(struct netdyno_options, uses) + sizeof options->uses;

    return options->size >= end ? options->uses : 0;
}

/* Each feature may exclude transports, so only those are requested that the channel uses. */
static uint64_t features(uint64_t uses)
{
    /* Memory is registered for remote access too, so any registration needs the RMA feature. */
    return UCP_FEATURE_TAG | (uses & NETDYNO_REGISTERS ? UCP_FEATURE_RMA : 0)
           | (uses & NETDYNO_FETCH_ADD ? UCP_FEATURE_AMO64 : 0)
           | (uses & NETDYNO_BLOCKS ? UCP_FEATURE_WAKEUP : 0);
}

/* Appends the transports of one memory domain to a list, each once. */
static void list_domain(uct_component_h component, const char *domain, char *list, size_t room)
{
    uct_tl_resource_desc_t *resources;
    unsigned count;
    uct_md_config_t *config;
    uct_md_h md;

    if (uct_md_config_read(component, NULL, NULL, &config))
        return;
    if (!uct_md_open(component, domain, config, &md)) {
        if (!uct_md_query_tl_resources(md, &resources, &count)) {
            for (unsigned i = 0; i < count; i++) {
                size_t length = strlen(list);
                char word[UCT_TL_NAME_MAX + 3];

                snprintf(word, sizeof word, " %s,", resources[i].tl_name);
                if (!strstr(list, word))
                    snprintf(list + length, room - length, "%s", word);
            }
            uct_release_tl_resource_list(resources);
        }
        uct_md_close(md);
    }
    uct_config_release(config);
}

/* Appends the transports of this host to a list, each between a space and a comma. */
static void list_transports(char *list, size_t room)
{
    uct_component_h *components;
    unsigned count;

    if (uct_query_components(&components, &count))
        return;
    for (unsigned i = 0; i < count; i++) {
        uct_component_attr_t attr = { .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT };

        if (uct_component_query(components[i], &attr) || attr.md_resource_count == 0)
            continue;
        attr.md_resources = calloc(attr.md_resource_count, sizeof *attr.md_resources);
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        if (attr.md_resources && !uct_component_query(components[i], &attr))
            for (unsigned domain = 0; domain < attr.md_resource_count; domain++)
                list_domain(components[i], attr.md_resources[domain].md_name, list, room);
        free(attr.md_resources);
    }
    uct_release_component_list(components);
}

/* Writes that the transports cannot be used, and which there are. */
static void tell_unusable(const struct netdyno_channel *channel, ucs_status_t status)
{
    char list[NAMES] = "";

    list_transports(list, sizeof list);
    if (list[0])
        list[strlen(list) - 1] = '\0'; /* the last comma */
    snprintf(channel->error, NETDYNO_TEXT_BYTES, "UCX cannot use the transports '%s' here: %s%s%s",
             channel->transports, ucs_status_string(status), list[0] ? "; use" : "", list);
}

static int make_context(struct netdyno_channel *channel)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME,
        .features = features(channel->uses),
        .name = "netdyno",
    };
    ucp_config_t *config;
    int failed;

    if (told(channel->error, "ucp_config_read", ucp_config_read(NULL, NULL, &config)))
        return -1;
    failed = told(channel->error, "ucp_config_modify", ucp_config_modify(config, "TLS", channel->transports));
    if (!failed) {
        ucs_status_t status = ucp_init(&params, config, &channel->context);

        failed = status != UCS_OK;
        if (failed)
            tell_unusable(channel, status);
    }
    ucp_config_release(config);
    return failed;
}

static int make_worker(struct netdyno_channel *channel)
{
    ucp_worker_params_t params = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                   .thread_mode = UCS_THREAD_MODE_SINGLE };

    if (told(channel->error, "ucp_worker_create",
             ucp_worker_create(channel->context, &params, &channel->worker)))
        return -1;
    if (!(channel->uses & NETDYNO_BLOCKS))
        return 0;
    return told(channel->error, "ucp_worker_get_efd",
                ucp_worker_get_efd(channel->worker, &channel->descriptor));
}

static void release(struct netdyno_channel *channel)
{
    for (uint32_t rank = 0; channel->remotes && rank < channel->ranks; rank++)
        if (channel->remotes[rank].unpacked)
            ucp_rkey_destroy(channel->remotes[rank].unpacked);
    if (channel->worker)
        ucp_worker_destroy(channel->worker);
    if (channel->context)
        ucp_cleanup(channel->context);
    free(channel->peers);
    free(channel->remotes);
    free(channel);
}

static struct netdyno_channel *ucx_open(struct netdyno_options *options)
{
    struct netdyno_channel *channel =
        calloc(1, sizeof *channel + 2 * (size_t)options->slots * sizeof(struct operation));

    if (!channel) {
        snprintf(options->error, NETDYNO_TEXT_BYTES, "no memory");
        return NULL;
    }
    channel->error = options->error;
    channel->rank = options->rank;
    channel->ranks = (uint32_t)options->ranks;
    channel->uses = uses_of(options);
    channel->slots = options->slots;
    channel->peers = calloc((size_t)options->ranks, sizeof *channel->peers);
    channel->remotes = calloc((size_t)options->ranks, sizeof *channel->remotes);
    if (!channel->peers || !channel->remotes || transports_in(options, channel->transports)
        || make_context(channel) || make_worker(channel)) {
        release(channel);
        return NULL;
    }
    return channel;
}

static void ucx_describe(struct netdyno_channel *channel, char *text, size_t room)
{
    snprintf(text, room, "UCX %s, transports %s", ucp_get_version_string(), channel->transports);
}

static int ucx_address(struct netdyno_channel *channel, void *bytes, size_t room)
{
    ucp_address_t *address;
    size_t length;

    if (told(channel->error, "ucp_worker_get_address",
             ucp_worker_get_address(channel->worker, &address, &length)))
        return -1;
    if (length <= room)
        memcpy(bytes, address, length);
    ucp_worker_release_address(channel->worker, address);
    if (length > room) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES,
                 "the address of UCX has %zu bytes, and there is room for %zu: name fewer transports", length,
                 room);
        return -1;
    }
    return (int)length;
}

/* Error handling of endpoints stays disabled. With it UCX would exclude transports that cannot
 * detect a dead peer, such as shared memory, even if the user chose them. */
static int ucx_connect(struct netdyno_channel *channel, const struct netdyno_address *addresses, uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                   .address = addresses[rank].bytes };

        if (addresses[rank].length > 0
            && told(channel->error, "ucp_ep_create",
                    ucp_ep_create(channel->worker, &params, &channel->peers[rank])))
            return -1;
    }
    return 0;
}

/* Records the outcome of an operation that was not complete at once. */
static void end(struct operation *operation, ucs_status_t status)
{
    operation->status = status;
    ucp_request_free(operation->request);
    operation->request = NULL;
}

/* UCP calls this when a receive is complete. */
static void received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *come, void *receive)
{
    struct operation *operation = receive;

    (void)request;
    operation->bytes = come->length;
    operation->rank = (int32_t)come->sender_tag;
    end(operation, status);
}

/* UCP calls this when any other operation is complete. */
static void completed(void *request, ucs_status_t status, void *operation)
{
    (void)request;
    end(operation, status);
}

/* Sets the parameters of an operation other than a receive. Asking UCP's request for its state would make
 * each vain test longer than the check of a variable that `completed` sets. Fields that the mask does not
 * name stay unset, because clearing and copying the whole takes 20 ns. */
static void set_params(ucp_request_param_t *params, struct operation *operation)
{
    params->op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    params->cb.send = completed;
    params->user_data = operation;
}

/* Records the request of a posted operation. */
static int note(struct netdyno_channel *channel, struct operation *operation, void *request, const char *what)
{
    operation->request = UCS_PTR_IS_PTR(request) ? request : NULL;
    operation->status = UCS_OK;
    return UCS_PTR_IS_ERR(request) ? told(channel->error, what, UCS_PTR_STATUS(request)) : 0;
}

/* Posts a receive. A message carries the rank of its sender as its tag. */
static int ucx_post_receive(struct netdyno_channel *channel, uint32_t slot, int32_t rank, void *buffer,
                            size_t bytes)
{
    struct operation *receive = &channel->operations[slot];
    int from_any = rank == NETDYNO_ANY_RANK;
    ucp_tag_recv_info_t come = { 0 };
    ucp_request_param_t params; /* as in set_params */
    void *request;

    params.op_attr_mask =
        UCP_OP_ATTR_FIELD_RECV_INFO | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    params.recv_info.tag_info = &come;
    params.cb.recv = received;
    params.user_data = receive;
    request = ucp_tag_recv_nbx(channel->worker, buffer, bytes, from_any ? 0 : (ucp_tag_t)rank,
                               from_any ? 0 : (ucp_tag_t)-1, &params);

    /* Valid if the message had arrived before the receive was posted. */
    receive->bytes = come.length;
    receive->rank = (int32_t)come.sender_tag;
    return note(channel, receive, request, "ucp_tag_recv_nbx");
}

static int ucx_post_send(struct netdyno_channel *channel, uint32_t slot, int32_t rank, const void *buffer,
                         size_t bytes)
{
    struct operation *send = &channel->operations[channel->slots + slot];
    ucp_request_param_t params;

    set_params(&params, send);
    return note(channel, send,
                ucp_tag_send_nbx(channel->peers[rank], buffer, bytes, (ucp_tag_t)channel->rank, &params),
                "ucp_tag_send_nbx");
}

/* Reports whether an operation is complete. Makes progress if it is not. */
static int is_complete(struct netdyno_channel *channel, const struct operation *operation)
{
    if (operation->request)
        ucp_worker_progress(channel->worker);
    return !operation->request;
}

/* Waits until an operation is complete or the time `until` has come. Returns 0 if it is not complete. An operation that
 * takes long may need this processor for the other process. */
static int ends(struct netdyno_channel *channel, const struct operation *operation, double until)
{
    double began = now_s(), now;

    while (!is_complete(channel, operation)) {
        now = now_s();
        if (now > until)
            return 0;
        if (now - began > YIELD_AFTER_S)
            sched_yield();
    }
    return 1;
}

static int ucx_test_receive(struct netdyno_channel *channel, uint32_t slot, struct netdyno_arrival *arrival)
{
    struct operation *receive = &channel->operations[slot];

    if (!is_complete(channel, receive))
        return 0;
    if (told(channel->error, "a receive failed", receive->status))
        return -1;
    arrival->bytes = receive->bytes;
    arrival->rank = receive->rank;
    return 1;
}

static int ucx_test_send(struct netdyno_channel *channel, uint32_t slot)
{
    struct operation *send = &channel->operations[channel->slots + slot];

    if (!is_complete(channel, send))
        return 0;
    return told(channel->error, "a send failed", send->status) ? -1 : 1;
}

static int ucx_cancel_receive(struct netdyno_channel *channel, uint32_t slot)
{
    struct operation *receive = &channel->operations[slot];

    if (receive->request)
        ucp_request_cancel(channel->worker, receive->request);
    if (!ends(channel, receive, now_s() + PATIENCE_S)) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "a receive was not taken back");
        return -1;
    }
    if (receive->status == UCS_ERR_CANCELED)
        return 0;
    return told(channel->error, "a receive failed", receive->status) ? -1 : 1;
}

/* Arming the worker fails if progress is possible already. */
static int ucx_block(struct netdyno_channel *channel, uint64_t timeout_ns)
{
    struct pollfd wait = { .fd = channel->descriptor, .events = POLLIN };
    uint64_t timeout_ms = timeout_ns / 1000000 + 1;
    ucs_status_t status = ucp_worker_arm(channel->worker);

    if (status == UCS_OK)
        poll(&wait, 1, timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms);
    else if (status != UCS_ERR_BUSY)
        return told(channel->error, "ucp_worker_arm", status);
    ucp_worker_progress(channel->worker);
    return 0;
}

/* Registers memory, or allocates it if `flags` says so. */
static struct netdyno_region *map(struct netdyno_channel *channel, void *memory, size_t bytes, unsigned flags)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH
                      | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .address = memory,
        .length = bytes,
        .flags = flags,
    };
    struct netdyno_region *region = malloc(sizeof *region);

    if (!region) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "no memory");
        return NULL;
    }
    region->memory = memory;
    if (told(channel->error, "ucp_mem_map", ucp_mem_map(channel->context, &params, &region->registered))) {
        free(region);
        return NULL;
    }
    return region;
}

static struct netdyno_region *ucx_register(struct netdyno_channel *channel, void *memory, size_t bytes)
{
    return map(channel, memory, bytes, 0);
}

static int ucx_deregister(struct netdyno_channel *channel, struct netdyno_region *region)
{
    int failed = told(channel->error, "ucp_mem_unmap", ucp_mem_unmap(channel->context, region->registered));

    free(region);
    return failed;
}

static struct netdyno_region *ucx_allocate(struct netdyno_channel *channel, size_t bytes, void **memory)
{
    ucp_mem_attr_t attributes = { .field_mask = UCP_MEM_ATTR_FIELD_ADDRESS };
    struct netdyno_region *region = map(channel, NULL, bytes, UCP_MEM_MAP_ALLOCATE);

    if (!region)
        return NULL;
    if (told(channel->error, "ucp_mem_query", ucp_mem_query(region->registered, &attributes))) {
        ucx_deregister(channel, region);
        return NULL;
    }
    *memory = region->memory = attributes.address;
    return region;
}

static int ucx_key(struct netdyno_channel *channel, struct netdyno_region *region, void *bytes, size_t room)
{
    uint64_t address = (uint64_t)(uintptr_t)region->memory;
    size_t limit = room < KEY ? room : KEY, length;
    void *packed;

    if (told(channel->error, "ucp_rkey_pack",
             ucp_rkey_pack(channel->context, region->registered, &packed, &length)))
        return -1;
    length += sizeof address;
    if (length <= limit) {
        memcpy(bytes, &address, sizeof address);
        memcpy((unsigned char *)bytes + sizeof address, packed, length - sizeof address);
    }
    ucp_rkey_buffer_release(packed);
    if (length > limit) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "a key of UCX has %zu bytes, and there is room for %zu",
                 length, limit);
        return -1;
    }
    return (int)length;
}

/* Unpacks the key of a transfer, unless it is that of the latest transfer to the same process. */
static struct remote *remote_of(struct netdyno_channel *channel, const struct netdyno_transfer *transfer)
{
    struct remote *remote = &channel->remotes[transfer->rank];
    const struct netdyno_address *key = &transfer->key;

    if (remote->unpacked && remote->length == key->length
        && memcmp(remote->key, key->bytes, key->length) == 0)
        return remote;
    if (key->length <= sizeof(uint64_t) || key->length > KEY) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "a key of %zu bytes is none of ucx", key->length);
        return NULL;
    }
    if (remote->unpacked)
        ucp_rkey_destroy(remote->unpacked);
    remote->unpacked = NULL;
    memcpy(remote->key, key->bytes, key->length);
    remote->length = key->length;
    if (told(channel->error, "ucp_ep_rkey_unpack",
             ucp_ep_rkey_unpack(channel->peers[transfer->rank], remote->key + sizeof(uint64_t),
                                &remote->unpacked))) {
        remote->unpacked = NULL;
        return NULL;
    }
    return remote;
}

static uint64_t address_of(const struct remote *remote, const struct netdyno_transfer *transfer)
{
    uint64_t address;

    memcpy(&address, remote->key, sizeof address);
    return address + transfer->key_offset;
}

static int ucx_put(struct netdyno_channel *channel, uint32_t slot, const struct netdyno_transfer *transfer)
{
    struct remote *remote = remote_of(channel, transfer);
    struct operation *put = &channel->operations[channel->slots + slot];
    ucp_request_param_t params;

    set_params(&params, put);
    if (!remote)
        return -1;
    channel->unflushed += transfer->bytes;
    return note(channel, put,
                ucp_put_nbx(channel->peers[transfer->rank], transfer->region->memory + transfer->offset,
                            transfer->bytes, address_of(remote, transfer), remote->unpacked, &params),
                "ucp_put_nbx");
}

static int ucx_get(struct netdyno_channel *channel, uint32_t slot, const struct netdyno_transfer *transfer)
{
    struct remote *remote = remote_of(channel, transfer);
    struct operation *get = &channel->operations[channel->slots + slot];
    ucp_request_param_t params;

    set_params(&params, get);
    if (!remote)
        return -1;
    return note(channel, get,
                ucp_get_nbx(channel->peers[transfer->rank], transfer->region->memory + transfer->offset,
                            transfer->bytes, address_of(remote, transfer), remote->unpacked, &params),
                "ucp_get_nbx");
}

static int ucx_fetch_add(struct netdyno_channel *channel, uint32_t slot,
                         const struct netdyno_transfer *transfer, uint64_t operand)
{
    struct remote *remote = remote_of(channel, transfer);
    struct operation *operation = &channel->operations[channel->slots + slot];
    ucp_request_param_t params;

    set_params(&params, operation);
    if (!remote)
        return -1;
    operation->operand = operand;
    params.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    params.datatype = ucp_dt_make_contig(sizeof operand);
    params.reply_buffer = transfer->region->memory + transfer->offset;
    return note(channel, operation,
                ucp_atomic_op_nbx(channel->peers[transfer->rank], UCP_ATOMIC_OP_ADD, &operation->operand, 1,
                                  address_of(remote, transfer), remote->unpacked, &params),
                "ucp_atomic_op_nbx");
}

/* Waits until the target has all puts, or fails after a timeout. */
static int ucx_flush(struct netdyno_channel *channel, int32_t rank)
{
    const double limit_s = FLUSH_S + (double)channel->unflushed / SLOWEST;
    ucp_request_param_t params;

    set_params(&params, &channel->flush);
    channel->unflushed = 0;
    if (note(channel, &channel->flush, ucp_ep_flush_nbx(channel->peers[rank], &params), "ucp_ep_flush_nbx"))
        return -1;
    if (ends(channel, &channel->flush, now_s() + limit_s))
        return told(channel->error, "ucp_ep_flush_nbx", channel->flush.status);
    snprintf(channel->error, NETDYNO_TEXT_BYTES, "ucp_ep_flush_nbx: no answer for %.0f s", limit_s);
    return -1;
}

/* Takes the receives back, and waits for them and for the sends for a while. If not all end, the channel
 * stays as it is. Otherwise the endpoints are destroyed together with the worker, because an orderly close would
 * need the peers' cooperation. */
static int ucx_close(struct netdyno_channel *channel)
{
    ucp_request_param_t params;
    double until = now_s() + PATIENCE_S;
    /* An earlier flush that had no answer will have none now. */
    int are_ended = !channel->flush.request;

    set_params(&params, &channel->flush);
    for (uint32_t slot = 0; slot < channel->slots; slot++)
        if (channel->operations[slot].request)
            ucp_request_cancel(channel->worker, channel->operations[slot].request);
    for (uint32_t slot = 0; slot < 2 * channel->slots; slot++)
        are_ended &= ends(channel, &channel->operations[slot], until);
    if (are_ended
        && !note(channel, &channel->flush, ucp_worker_flush_nbx(channel->worker, &params), "ucp_worker_flush_nbx"))
        are_ended = ends(channel, &channel->flush, until);
    if (!are_ended)
        return 1;
    release(channel);
    return 0;
}

const struct netdyno_layer netdyno_layer = {
    .version = NETDYNO_LAYER_VERSION,
    .size = sizeof netdyno_layer,
    .capabilities = NETDYNO_BLOCKS | NETDYNO_REGISTERS | NETDYNO_ONE_SIDED | NETDYNO_FETCH_ADD
                    | NETDYNO_ALLOCATES,
    .name = "ucx",
    .open = ucx_open,
    .describe = ucx_describe,
    .address = ucx_address,
    .connect = ucx_connect,
    .post_receive = ucx_post_receive,
    .post_send = ucx_post_send,
    .test_receive = ucx_test_receive,
    .test_send = ucx_test_send,
    .cancel_receive = ucx_cancel_receive,
    .block = ucx_block,
    .close = ucx_close,
    .register_memory = ucx_register,
    .deregister_memory = ucx_deregister,
    .key = ucx_key,
    .put = ucx_put,
    .get = ucx_get,
    .flush = ucx_flush,
    .fetch_add = ucx_fetch_add,
    .allocate_memory = ucx_allocate,
};
