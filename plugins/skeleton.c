/* A template of a layer with messages, complete but slow. Two processes of one host exchange
 * messages by Unix datagram sockets, which lose nothing and keep the order. Replace the socket
 * calls by those of your library. layer.h describes what each function must do.
 *
 *     netdyno plugin build skeleton.c --cc cc
 */
#define _GNU_SOURCE
#include "layer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A size that certainly fits into a socket's buffer. */
#define LARGEST 65536

/* The operations of one direction. A library with request objects needs only one of them for each
 * slot. Sockets have no posted operations, so this layer keeps their order itself. */
struct row {
    struct operation {
        void *buffer; /* NULL if the operation is complete */
        size_t bytes;
    } *by_slot;
    uint32_t *order; /* slots in the order of posting: a ring buffer */
    uint32_t first;  /* index of the oldest */
    uint32_t posted; /* number of posted operations */
};

struct netdyno_channel {
    char *error;
    int socket;
    int32_t peer;
    uint32_t slots;
    struct row receives, sends;
};

/* Writes one line to `error`, and returns the result of a failed call. */
static int failed(struct netdyno_channel *channel, const char *what)
{
    if (errno == ECONNREFUSED || errno == ENOTCONN || errno == ECONNRESET)
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "the other process has closed its socket");
    else
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "cannot %s: %s", what, strerror(errno));
    return -1;
}

static int skeleton_close(struct netdyno_channel *channel)
{
    if (channel->socket >= 0)
        close(channel->socket);
    free(channel->receives.by_slot);
    free(channel->receives.order);
    free(channel->sends.by_slot);
    free(channel->sends.order);
    free(channel);
    return 0; /* the layer no longer uses any buffer */
}

static int make_row(struct row *row, uint32_t slots)
{
    row->by_slot = calloc(slots, sizeof *row->by_slot);
    row->order = calloc(slots, sizeof *row->order);
    return row->by_slot && row->order;
}

static struct netdyno_channel *skeleton_open(struct netdyno_options *options)
{
    struct sockaddr_un any = { .sun_family = AF_UNIX };
    struct netdyno_channel *channel = calloc(1, sizeof *channel);

    if (!channel || options->settings[0] || options->ranks > 2) {
        snprintf(options->error, NETDYNO_TEXT_BYTES,
                 "skeleton has no settings, and joins two processes");
        free(channel);
        return NULL;
    }
    channel->error = options->error;
    channel->peer = 1 - options->rank;
    channel->slots = options->slots;
    channel->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* Binding without a path lets the system choose a name. */
    if (!make_row(&channel->receives, options->slots) || !make_row(&channel->sends, options->slots)
        || bind(channel->socket, (struct sockaddr *)&any, sizeof any.sun_family) < 0) {
        failed(channel, "open a socket");
        skeleton_close(channel);
        return NULL;
    }
    if (options->largest > LARGEST)
        options->largest = LARGEST;
    return channel;
}

static void skeleton_describe(struct netdyno_channel *channel, char *text, size_t room)
{
    (void)channel;
    snprintf(text, room, "Unix datagram sockets");
}

static int skeleton_address(struct netdyno_channel *channel, void *bytes, size_t room)
{
    struct sockaddr_un name;
    socklen_t length = sizeof name;

    if (getsockname(channel->socket, (struct sockaddr *)&name, &length) < 0)
        return failed(channel, "name the socket");
    if (length > room)
        length = (socklen_t)room;
    memcpy(bytes, &name, length);
    return (int)length;
}

static int skeleton_connect(struct netdyno_channel *channel, const struct netdyno_address *addresses,
                            uint32_t ranks)
{
    struct sockaddr_un name = { 0 };
    const struct netdyno_address *peer = &addresses[channel->peer];

    (void)ranks; /* two, because open refuses more */
    memcpy(&name, peer->bytes, peer->length < sizeof name ? peer->length : sizeof name);
    if (connect(channel->socket, (struct sockaddr *)&name, (socklen_t)peer->length) < 0)
        return failed(channel, "connect");
    return 0;
}

static int post(struct netdyno_channel *channel, struct row *row, uint32_t slot, void *buffer,
                size_t bytes)
{
    row->by_slot[slot] = (struct operation){ buffer, bytes };
    row->order[(row->first + row->posted++) % channel->slots] = slot;
    return 0;
}

static int skeleton_post_receive(struct netdyno_channel *channel, uint32_t slot, int32_t rank,
                                 void *buffer, size_t bytes)
{
    (void)rank; /* there is only one peer */
    return post(channel, &channel->receives, slot, buffer, bytes);
}

/* Advances all posted operations as far as possible. A message that arrives fills the oldest
 * receive. */
static int progress(struct netdyno_channel *channel)
{
    for (int is_send = 0; is_send <= 1; is_send++) {
        struct row *row = is_send ? &channel->sends : &channel->receives;

        while (row->posted > 0) {
            struct operation *oldest = &row->by_slot[row->order[row->first]];
            ssize_t done = is_send ? send(channel->socket, oldest->buffer, oldest->bytes, MSG_NOSIGNAL)
                                   : recv(channel->socket, oldest->buffer, oldest->bytes, MSG_TRUNC);

            if (done < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
                break;
            if (done > (ssize_t)oldest->bytes)
                errno = EMSGSIZE;
            if (done < 0 || done > (ssize_t)oldest->bytes)
                return failed(channel, is_send ? "send" : "receive");
            *oldest = (struct operation){ NULL, (size_t)done };
            row->first = (row->first + 1) % channel->slots;
            row->posted--;
        }
    }
    return 0;
}

static int skeleton_post_send(struct netdyno_channel *channel, uint32_t slot, int32_t rank,
                              const void *buffer, size_t bytes)
{
    (void)rank;
    post(channel, &channel->sends, slot, (void *)buffer, bytes);
    return progress(channel);
}

static int skeleton_test_receive(struct netdyno_channel *channel, uint32_t slot,
                                 struct netdyno_arrival *arrival)
{
    const struct operation *receive = &channel->receives.by_slot[slot];

    if (receive->buffer && progress(channel) < 0)
        return -1;
    *arrival = (struct netdyno_arrival){ .bytes = receive->bytes, .rank = channel->peer };
    return receive->buffer == NULL;
}

static int skeleton_test_send(struct netdyno_channel *channel, uint32_t slot)
{
    const struct operation *sent = &channel->sends.by_slot[slot];

    if (sent->buffer && progress(channel) < 0)
        return -1;
    return sent->buffer == NULL;
}

static int skeleton_cancel_receive(struct netdyno_channel *channel, uint32_t slot)
{
    struct row *row = &channel->receives;
    uint32_t kept = 0;

    if (!row->by_slot[slot].buffer)
        return 1; /* a message has already arrived */
    for (uint32_t nth = 0; nth < row->posted; nth++) {
        uint32_t other = row->order[(row->first + nth) % channel->slots];
        if (other != slot)
            row->order[(row->first + kept++) % channel->slots] = other;
    }
    row->posted = kept;
    return 0;
}

static int skeleton_block(struct netdyno_channel *channel, uint64_t timeout_ns)
{
    struct pollfd waiting = { .fd = channel->socket, .events = POLLIN };
    struct timespec timeout = { (time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000) };

    if (channel->sends.posted > 0)
        waiting.events |= POLLOUT;
    if (ppoll(&waiting, 1, &timeout, NULL) < 0 && errno != EINTR)
        return failed(channel, "wait");
    return 0;
}

/* The kernel copies between two processes if they may trace each other. Registration therefore only
 * records the address. */
struct netdyno_region {
    unsigned char *memory;
    uint64_t bytes;
};

/* The key by which another process accesses a region. */
struct key {
    uint64_t memory, bytes;
    int64_t process;
};

static struct netdyno_region *skeleton_register(struct netdyno_channel *channel, void *memory,
                                                size_t bytes)
{
    struct netdyno_region *region = malloc(sizeof *region);

    if (!region) {
        failed(channel, "register memory");
        return NULL;
    }
    *region = (struct netdyno_region){ memory, bytes };
    return region;
}

static int skeleton_deregister(struct netdyno_channel *channel, struct netdyno_region *region)
{
    (void)channel;
    free(region);
    return 0;
}

static int skeleton_key(struct netdyno_channel *channel, struct netdyno_region *region, void *bytes,
                        size_t room)
{
    struct key key = { (uintptr_t)region->memory, region->bytes, getpid() };

    if (room < sizeof key) {
        errno = ENOSPC;
        return failed(channel, "write a key");
    }
    memcpy(bytes, &key, sizeof key);
    return sizeof key;
}

/* Copies at once, so that the operation is complete when the call returns. */
static int copy(struct netdyno_channel *channel, const struct netdyno_transfer *transfer, int is_put)
{
    struct iovec here = { transfer->region->memory + transfer->offset, transfer->bytes }, there;
    struct key key;
    ssize_t done;

    if (transfer->key.length != sizeof key) {
        errno = EINVAL;
        return failed(channel, "read the key");
    }
    memcpy(&key, transfer->key.bytes, sizeof key);
    if (transfer->key_offset > key.bytes || transfer->bytes > key.bytes - transfer->key_offset) {
        errno = ERANGE;
        return failed(channel, "reach beyond the other region");
    }
    there = (struct iovec){ (void *)(uintptr_t)(key.memory + transfer->key_offset), transfer->bytes };
    done = is_put ? process_vm_writev((pid_t)key.process, &here, 1, &there, 1, 0)
                  : process_vm_readv((pid_t)key.process, &here, 1, &there, 1, 0);
    if (done >= 0 && done != (ssize_t)transfer->bytes)
        errno = EFAULT; /* part of the range is not mapped */
    if (done != (ssize_t)transfer->bytes)
        return failed(channel, "reach the other process's memory");
    return 0;
}

static int skeleton_put(struct netdyno_channel *channel, uint32_t slot,
                        const struct netdyno_transfer *transfer)
{
    (void)slot;
    return copy(channel, transfer, 1);
}

static int skeleton_get(struct netdyno_channel *channel, uint32_t slot,
                        const struct netdyno_transfer *transfer)
{
    (void)slot;
    return copy(channel, transfer, 0);
}

static int skeleton_flush(struct netdyno_channel *channel, int32_t rank)
{
    (void)channel;
    (void)rank;
    return 0; /* a completed put is already visible */
}

/* netdyno looks up this symbol. Omitted members are NULL: they belong to capabilities that this
 * layer does not claim, such as gather. */
const struct netdyno_layer netdyno_layer = {
    .version = NETDYNO_LAYER_VERSION,
    .size = sizeof netdyno_layer,
    .capabilities = NETDYNO_BLOCKS | NETDYNO_REGISTERS | NETDYNO_ONE_SIDED,
    .name = "skeleton",
    .open = skeleton_open,
    .describe = skeleton_describe,
    .address = skeleton_address,
    .connect = skeleton_connect,
    .post_receive = skeleton_post_receive,
    .post_send = skeleton_post_send,
    .test_receive = skeleton_test_receive,
    .test_send = skeleton_test_send,
    .cancel_receive = skeleton_cancel_receive,
    .block = skeleton_block,
    .close = skeleton_close,
    .register_memory = skeleton_register,
    .deregister_memory = skeleton_deregister,
    .key = skeleton_key,
    .put = skeleton_put,
    .get = skeleton_get,
    .flush = skeleton_flush,
};
