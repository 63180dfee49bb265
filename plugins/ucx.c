/* UCX as a layer: tagged messages of UCP over chosen transports.
 *
 *     netdyno logp --over ucx:tcp
 *
 * The setting transports=NAMES selects them, as in transports=tcp or transports=posix+cma. Its
 * value becomes UCX_TLS, with commas in place of +. It is required. */
#define _POSIX_C_SOURCE 200809L
#include "layer.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>

/* Timeout in seconds for cancelling and closing. */
#define PATIENCE_S 1.0
/* Maximum length of the transports' names, with the terminating 0. */
#define NAMES 256

/* A send or a receive. `request` is UCP's, and NULL if the operation is complete. */
struct operation {
    void *request;
    size_t bytes; /* length of the received message */
    int32_t rank; /* rank of its sender */
};

struct netdyno_channel {
    char *error;
    char transports[NAMES];
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h *peers; /* indexed by rank; NULL if there is no connection */
    int32_t rank;
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

static int registers(const struct netdyno_options *options)
{
    size_t end = offsetof(struct netdyno_options, uses) + sizeof options->uses;

    return options->size >= end && options->uses & NETDYNO_REGISTERS;
}

static int make_context(struct netdyno_channel *channel, const struct netdyno_options *options)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME,
        /* Memory is registered for remote access too, so any registration needs the RMA feature. */
        .features = UCP_FEATURE_TAG | (registers(options) ? UCP_FEATURE_RMA : 0),
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
            snprintf(channel->error, NETDYNO_TEXT_BYTES,
                     "UCX cannot use the transports '%s' here: %s; `ucx_info -d` lists them",
                     channel->transports, ucs_status_string(status));
    }
    ucp_config_release(config);
    return failed;
}

static void release(struct netdyno_channel *channel)
{
    if (channel->worker)
        ucp_worker_destroy(channel->worker);
    if (channel->context)
        ucp_cleanup(channel->context);
    free(channel->peers);
    free(channel);
}

static struct netdyno_channel *ucx_open(struct netdyno_options *options)
{
    ucp_worker_params_t params = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                   .thread_mode = UCS_THREAD_MODE_SINGLE };
    struct netdyno_channel *channel =
        calloc(1, sizeof *channel + 2 * (size_t)options->slots * sizeof(struct operation));

    if (!channel) {
        snprintf(options->error, NETDYNO_TEXT_BYTES, "no memory");
        return NULL;
    }
    channel->error = options->error;
    channel->rank = options->rank;
    channel->slots = options->slots;
    channel->peers = calloc((size_t)options->ranks, sizeof *channel->peers);
    if (!channel->peers || transports_in(options, channel->transports) || make_context(channel, options)
        || told(channel->error, "ucp_worker_create",
                ucp_worker_create(channel->context, &params, &channel->worker))) {
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

/* Records the request of a posted operation. */
static int note(struct netdyno_channel *channel, struct operation *operation, void *request, const char *what)
{
    operation->request = UCS_PTR_IS_PTR(request) ? request : NULL;
    return UCS_PTR_IS_ERR(request) ? told(channel->error, what, UCS_PTR_STATUS(request)) : 0;
}

/* Posts a receive. A message carries the rank of its sender as its tag. */
static int ucx_post_receive(struct netdyno_channel *channel, uint32_t slot, int32_t rank, void *buffer,
                            size_t bytes)
{
    struct operation *receive = &channel->operations[slot];
    int from_any = rank == NETDYNO_ANY_RANK;
    ucp_tag_recv_info_t come = { 0 };
    ucp_request_param_t params = { .op_attr_mask = UCP_OP_ATTR_FIELD_RECV_INFO,
                                   .recv_info.tag_info = &come };
    void *request = ucp_tag_recv_nbx(channel->worker, buffer, bytes, from_any ? 0 : (ucp_tag_t)rank,
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
    ucp_request_param_t params = { .op_attr_mask = 0 };

    return note(channel, send,
                ucp_tag_send_nbx(channel->peers[rank], buffer, bytes, (ucp_tag_t)channel->rank, &params),
                "ucp_tag_send_nbx");
}

/* Reports whether a receive is complete. If so, records its result and frees the request. `status`
 * is its outcome. */
static int has_received(struct operation *receive, ucs_status_t *status)
{
    ucp_tag_recv_info_t come;

    *status = UCS_OK;
    if (!receive->request)
        return 1;
    *status = ucp_tag_recv_request_test(receive->request, &come);
    if (*status == UCS_INPROGRESS)
        return 0;
    receive->bytes = come.length;
    receive->rank = (int32_t)come.sender_tag;
    ucp_request_free(receive->request);
    receive->request = NULL;
    return 1;
}

static int ucx_test_receive(struct netdyno_channel *channel, uint32_t slot, struct netdyno_arrival *arrival)
{
    struct operation *receive = &channel->operations[slot];
    ucs_status_t status;

    if (!has_received(receive, &status)) {
        ucp_worker_progress(channel->worker);
        if (!has_received(receive, &status))
            return 0;
    }
    if (told(channel->error, "a receive failed", status))
        return -1;
    arrival->bytes = receive->bytes;
    arrival->rank = receive->rank;
    return 1;
}

static int ucx_test_send(struct netdyno_channel *channel, uint32_t slot)
{
    struct operation *send = &channel->operations[channel->slots + slot];
    ucs_status_t status;

    if (!send->request)
        return 1;
    if (ucp_request_check_status(send->request) == UCS_INPROGRESS)
        ucp_worker_progress(channel->worker);
    status = ucp_request_check_status(send->request);
    if (status == UCS_INPROGRESS)
        return 0;
    ucp_request_free(send->request);
    send->request = NULL;
    return told(channel->error, "a send failed", status) ? -1 : 1;
}

static int ucx_cancel_receive(struct netdyno_channel *channel, uint32_t slot)
{
    struct operation *receive = &channel->operations[slot];
    double until = now_s() + PATIENCE_S;
    ucs_status_t status;

    if (receive->request)
        ucp_request_cancel(channel->worker, receive->request);
    while (!has_received(receive, &status)) {
        ucp_worker_progress(channel->worker);
        if (now_s() > until) {
            snprintf(channel->error, NETDYNO_TEXT_BYTES, "a receive was not taken back");
            return -1;
        }
    }
    if (status == UCS_ERR_CANCELED)
        return 0;
    return told(channel->error, "a receive failed", status) ? -1 : 1;
}

static struct netdyno_region *ucx_register(struct netdyno_channel *channel, void *memory, size_t bytes)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address = memory,
        .length = bytes,
    };
    ucp_mem_h region;

    if (told(channel->error, "ucp_mem_map", ucp_mem_map(channel->context, &params, &region)))
        return NULL;
    return (struct netdyno_region *)region;
}

static int ucx_deregister(struct netdyno_channel *channel, struct netdyno_region *region)
{
    return told(channel->error, "ucp_mem_unmap", ucp_mem_unmap(channel->context, (ucp_mem_h)region));
}

/* Waits until the request is complete or the time `until` has come. Returns 0 if it is not
 * complete. */
static int ends(struct netdyno_channel *channel, void *request, double until)
{
    if (!UCS_PTR_IS_PTR(request))
        return 1;
    while (ucp_request_check_status(request) == UCS_INPROGRESS && now_s() < until)
        ucp_worker_progress(channel->worker);
    if (ucp_request_check_status(request) == UCS_INPROGRESS)
        return 0;
    ucp_request_free(request);
    return 1;
}

/* Waits for the sends for a while. If a peer does not take them, the channel stays as it is.
 * Otherwise the endpoints are destroyed together with the worker, because an orderly close would
 * need the peers' cooperation. */
static int ucx_close(struct netdyno_channel *channel)
{
    ucp_request_param_t params = { .op_attr_mask = 0 };
    double until = now_s() + PATIENCE_S;
    int are_ended = 1;

    for (uint32_t slot = 0; slot < channel->slots; slot++) {
        if (channel->operations[slot].request && ucx_cancel_receive(channel, slot) < 0)
            are_ended = 0;
        are_ended &= ends(channel, channel->operations[channel->slots + slot].request, until);
    }
    are_ended &= ends(channel, ucp_worker_flush_nbx(channel->worker, &params), until);
    if (!are_ended)
        return 1;
    release(channel);
    return 0;
}

const struct netdyno_layer netdyno_layer = {
    .version = NETDYNO_LAYER_VERSION,
    .size = sizeof netdyno_layer,
    .capabilities = NETDYNO_REGISTERS,
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
    .close = ucx_close,
    .register_memory = ucx_register,
    .deregister_memory = ucx_deregister,
};
