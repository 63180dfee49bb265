/* A template of a layer with requests and replies, complete but slow. The processes of one host
 * exchange requests by Unix datagram sockets, which lose nothing. Replace the socket calls by those
 * of your library, such as active messages or remote procedure calls.
 *
 *     netdyno plugin build requests.c --cc cc
 *
 * The layer has no messages, so it omits the members of layer.h that belong to them. */
#define _GNU_SOURCE
#include "layer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A size that certainly fits into a socket's buffer. */
#define LARGEST 65536

/* Seconds for which the other process may take no datagrams. */
#define PATIENCE_S 10

/* The header of every datagram, whether request or reply. */
struct head {
    int32_t sender;
    uint32_t is_reply;
    uint64_t reply_bytes; /* length of the reply, in a request only */
};

/* Requests or replies that have arrived and are not yet handled. The queue has space for all that
 * the other processes may send. */
struct queue {
    struct head *heads;
    size_t first, count;
};

struct netdyno_channel {
    char *error;
    int socket;
    int32_t rank, ranks;
    struct address {
        struct sockaddr_un name;
        socklen_t length;
    } *peers;
    char *out, *in; /* buffers of one datagram each */
    size_t room;    /* capacity of a queue */
    struct queue requests, replies;
};

static int failed(struct netdyno_channel *channel, const char *what)
{
    if (errno == ECONNREFUSED || errno == ENOENT)
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "the other process has closed its socket");
    else
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "cannot %s: %s", what, strerror(errno));
    return -1;
}

static int requests_close(struct netdyno_channel *channel)
{
    if (channel->socket >= 0)
        close(channel->socket);
    free(channel->peers);
    free(channel->out);
    free(channel->in);
    free(channel->requests.heads);
    free(channel->replies.heads);
    free(channel);
    return 0;
}

static struct netdyno_channel *requests_open(struct netdyno_options *options)
{
    struct sockaddr_un any = { .sun_family = AF_UNIX };
    struct netdyno_channel *channel = calloc(1, sizeof *channel);

    if (!channel || options->settings[0]) {
        snprintf(options->error, NETDYNO_TEXT_BYTES, "requests has no settings");
        free(channel);
        return NULL;
    }
    channel->error = options->error;
    channel->rank = options->rank;
    channel->ranks = options->ranks;
    channel->peers = calloc((size_t)options->ranks, sizeof *channel->peers);
    channel->room = (size_t)options->slots * (size_t)options->ranks;
    channel->requests.heads = calloc(channel->room, sizeof(struct head));
    channel->replies.heads = calloc(channel->room, sizeof(struct head));
    channel->out = calloc(1, sizeof(struct head) + LARGEST);
    channel->in = calloc(1, sizeof(struct head) + LARGEST);
    channel->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* Binding without a path lets the system choose a name. */
    if (!channel->peers || !channel->out || !channel->in || !channel->requests.heads
        || !channel->replies.heads
        || bind(channel->socket, (struct sockaddr *)&any, sizeof any.sun_family) < 0) {
        failed(channel, "open a socket");
        requests_close(channel);
        return NULL;
    }
    if (options->largest > LARGEST)
        options->largest = LARGEST;
    return channel;
}

static void requests_describe(struct netdyno_channel *channel, char *text, size_t room)
{
    (void)channel;
    snprintf(text, room, "requests by Unix datagram sockets");
}

static int requests_address(struct netdyno_channel *channel, void *bytes, size_t room)
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

static int requests_connect(struct netdyno_channel *channel, const struct netdyno_address *addresses,
                            uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        struct address *peer = &channel->peers[rank];

        peer->length = (socklen_t)addresses[rank].length;
        if (peer->length > sizeof peer->name)
            peer->length = sizeof peer->name;
        memcpy(&peer->name, addresses[rank].bytes, peer->length);
    }
    return 0;
}

/* Receives one datagram, if one has arrived, and queues its header. Its payload is not needed. */
static int look(struct netdyno_channel *channel)
{
    struct head head;
    struct queue *queue;
    ssize_t came = recv(channel->socket, channel->in, sizeof head + LARGEST, 0);

    if (came < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : failed(channel, "receive");
    memcpy(&head, channel->in, sizeof head);
    queue = head.is_reply ? &channel->replies : &channel->requests;
    if ((size_t)came < sizeof head || head.sender < 0 || head.sender >= channel->ranks
        || head.reply_bytes > LARGEST || queue->count == channel->room) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "what came is neither a request nor a reply");
        return -1;
    }
    queue->heads[(queue->first + queue->count++) % channel->room] = head;
    return 0;
}

/* Removes the next element of a queue. Returns 0 if there is none now. */
static int take(struct netdyno_channel *channel, struct queue *queue, struct head *head)
{
    if (queue->count == 0 && look(channel) < 0)
        return -1;
    if (queue->count == 0)
        return 0;
    *head = queue->heads[queue->first];
    queue->first = (queue->first + 1) % channel->room;
    queue->count--;
    return 1;
}

/* Sends a datagram. While the other socket is full, it receives datagrams, because the other
 * process may be waiting for space here. */
static int post(struct netdyno_channel *channel, int32_t rank, struct head head, size_t bytes)
{
    const struct address *peer = &channel->peers[rank];
    time_t full_since = 0;

    memcpy(channel->out, &head, sizeof head);
    while (sendto(channel->socket, channel->out, sizeof head + bytes, MSG_NOSIGNAL,
                  (const struct sockaddr *)&peer->name, peer->length) < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
            return failed(channel, "send");
        if (full_since == 0)
            full_since = time(NULL);
        if (time(NULL) - full_since > PATIENCE_S) {
            snprintf(channel->error, NETDYNO_TEXT_BYTES, "the other process takes no datagrams");
            return -1;
        }
        if (look(channel) < 0)
            return -1;
    }
    return 1;
}

static int requests_request(struct netdyno_channel *channel, int32_t rank, size_t bytes, size_t reply_bytes)
{
    return post(channel, rank, (struct head){ channel->rank, 0, reply_bytes }, bytes);
}

static int requests_take_reply(struct netdyno_channel *channel, int32_t *rank)
{
    struct head head;
    int found = take(channel, &channel->replies, &head);

    if (found > 0)
        *rank = head.sender;
    return found;
}

static int requests_answer(struct netdyno_channel *channel)
{
    struct head head;
    int found = take(channel, &channel->requests, &head);

    if (found > 0)
        return post(channel, head.sender, (struct head){ channel->rank, 1, 0 }, (size_t)head.reply_bytes);
    return found;
}

static int requests_block(struct netdyno_channel *channel, uint64_t timeout_ns)
{
    struct pollfd waiting = { .fd = channel->socket, .events = POLLIN };
    struct timespec timeout = { (time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000) };

    if (ppoll(&waiting, 1, &timeout, NULL) < 0 && errno != EINTR)
        return failed(channel, "wait");
    return 0;
}

const struct netdyno_layer netdyno_layer = {
    .version = NETDYNO_LAYER_VERSION,
    .size = sizeof netdyno_layer,
    .capabilities = NETDYNO_BLOCKS | NETDYNO_REQUESTS,
    .name = "requests",
    .open = requests_open,
    .describe = requests_describe,
    .address = requests_address,
    .connect = requests_connect,
    .block = requests_block,
    .close = requests_close,
    .request = requests_request,
    .take_reply = requests_take_reply,
    .answer = requests_answer,
};
