/* A layer for netdyno, in C. Version 1 of the interface.
 *
 * A layer is a shared library with one symbol, `netdyno_layer`: a table of functions by which
 * two or more processes exchange messages, or ask and answer. netdyno measures with them;
 * everything about time, patterns and statistics stays with netdyno. There are two layers to begin
 * with, of a page each: skeleton.c for messages, requests.c for requests and replies.
 *
 *     netdyno plugin build mine.c --cc cc
 *
 * Calls. All come from one thread. None but open, connect, gather, block, register_memory, flush and
 * close may wait.
 * What can fail returns a negative number and leaves one line for the user in `error`.
 *
 * Processes are numbered from 0: ranks. Either netdyno starts them, says which is which, and
 * passes each the addresses of all (address, connect); or the library has a launcher of its own,
 * such as mpiexec, which started them and says which is which (NETDYNO_HAS_LAUNCHER).
 *
 * A layer has one of two faces, or both. With messages alone netdyno makes requests and replies out
 * of them; with requests of its own (NETDYNO_REQUESTS) a layer is measured by these, and without
 * messages it has no overlap to be measured.
 *
 * Messages travel from slot to slot. A slot is the name of an operation that is under way: of a
 * receive, or of a send; both are counted from 0. Between post and completion the layer may use
 * the buffer, and nobody else does; a slot is posted again only after that. Between two processes
 * messages arrive whole, unharmed and in order, and fill receives in the order of posting.
 * A message that is longer than the receive it fills is an error.
 *
 * Requests and replies are the library's own affair: active messages, remote procedure calls. A
 * request has a number of bytes and says how many its reply is to have; what they are does not
 * matter. As many requests as there are slots may be without a reply at once. Every process may
 * ask, and answers only inside `answer`; a reply is handled only inside `take_reply`.
 *
 * Memory that the library has been told of may besides be reached by others, without a receive: by
 * put and get (NETDYNO_REGISTERS, NETDYNO_ONE_SIDED). Both sides' memory is registered.
 *
 * When a process dies, the others must see an error, or be ended, in a bounded time. A layer that
 * cannot tell may say that nothing has come: netdyno gives up after ten seconds.
 *
 * Later headers may add members to the end of the structures. `size` tells which are there.
 */
#ifndef NETDYNO_LAYER_H
#define NETDYNO_LAYER_H

#include <stddef.h>
#include <stdint.h>

/* Of this interface. A layer of another one is not loaded. */
#define NETDYNO_LAYER_VERSION 1u

/* Bytes of a text that is passed back, with the 0 at its end. */
#define NETDYNO_TEXT_BYTES 512

/* A receive from whoever comes first. */
#define NETDYNO_ANY_RANK (-1)

/* What a layer can do besides. Each asks for the members named. */
enum netdyno_capability {
    /* Its processes are started by a launcher of its own; address and connect are not called. */
    NETDYNO_HAS_LAUNCHER = 1 << 0,
    /* gather: netdyno can find the processes of other layers through it. */
    NETDYNO_GATHERS = 1 << 1,
    /* block: netdyno can sleep until something may have come. */
    NETDYNO_BLOCKS = 1 << 2,
    /* request, take_reply, answer. The members for messages may then be NULL, all of them. */
    NETDYNO_REQUESTS = 1 << 3,
    /* register_memory, deregister_memory. */
    NETDYNO_REGISTERS = 1 << 4,
    /* key, put, get, flush. Only with NETDYNO_REGISTERS, and with messages. */
    NETDYNO_ONE_SIDED = 1 << 5,
};

/* What open is told, and what it says in return. */
struct netdyno_options {
    uint32_t size;  /* of this structure in bytes */
    uint32_t slots; /* receives, and sends, or requests that may be under way at once */

    /* In: bytes of the largest message wanted. Out: less, where the layer carries less. */
    uint64_t largest;

    /* In: this process and how many there are; without a meaning with NETDYNO_HAS_LAUNCHER. One alone
     * only registers memory, and connect is not called.
     * Out, with NETDYNO_HAS_LAUNCHER: what the launcher says. */
    int32_t rank;
    int32_t ranks;

    /* Settings of the layer's own, "name=value", and NULL at the end. What it does not know, it
     * refuses. */
    const char *const *settings;

    /* Where errors are told, for as long as the channel is open. NETDYNO_TEXT_BYTES long. */
    char *error;

    /* Of NETDYNO_REGISTERS and NETDYNO_ONE_SIDED those that this channel will be used for: what
     * they alone need may be left out of others, where it would cost something. */
    uint64_t uses;
};

/* Where a process is reached: bytes that its layer alone understands. */
struct netdyno_address {
    const void *bytes;
    size_t length;
};

/* What a receive got. */
struct netdyno_arrival {
    size_t bytes;
    int32_t rank; /* of the sender */
    int32_t reserved;
};

/* An open layer, and memory that it knows, whatever these are: the layer defines them. */
struct netdyno_channel;
struct netdyno_region;

/* What put and get copy: from one region to the other. */
struct netdyno_transfer {
    struct netdyno_region *region; /* of this process, */
    uint64_t offset;               /* from here on */
    struct netdyno_address key;    /* of a region of the other process, */
    uint64_t key_offset;           /* from here on */
    size_t bytes;
    int32_t rank; /* of the other process */
    int32_t reserved;
};

/* The layer. Members of a capability that it does not have may be NULL. */
struct netdyno_layer {
    uint32_t version;      /* NETDYNO_LAYER_VERSION */
    uint32_t size;         /* sizeof(struct netdyno_layer) */
    uint64_t capabilities; /* enum netdyno_capability, added up */
    const char *name;      /* a short word, as in --over */

    /* Opens the layer, or tells the error and returns NULL. Once in a process, but for layers
     * with NETDYNO_GATHERS: of these there may be several channels, which all processes open in
     * the same order, and messages stay within theirs. */
    struct netdyno_channel *(*open)(struct netdyno_options *options);

    /* Writes one line: which library of which version, how it is set up. */
    void (*describe)(struct netdyno_channel *channel, char *text, size_t room);

    /* Writes where this process is reached. Returns the length, at most `room`. */
    int (*address)(struct netdyno_channel *channel, void *bytes, size_t room);

    /* Connects to all others, at these addresses by rank. That of a process with which nothing
     * is to be exchanged has a length of 0. Others may not have connected yet. */
    int (*connect)(struct netdyno_channel *channel, const struct netdyno_address *addresses,
                   uint32_t ranks);

    /* NETDYNO_GATHERS: every process calls it and gives `bytes` bytes; every process gets all of
     * them, by rank. May wait for the others without end. */
    int (*gather)(struct netdyno_channel *channel, const void *mine, void *all, size_t bytes);

    /* Posts a receive of at most `bytes` from `rank`, or from any (NETDYNO_ANY_RANK). */
    int (*post_receive)(struct netdyno_channel *channel, uint32_t slot, int32_t rank, void *buffer,
                        size_t bytes);

    /* Posts a send. */
    int (*post_send)(struct netdyno_channel *channel, uint32_t slot, int32_t rank,
                     const void *buffer, size_t bytes);

    /* Whether the receive is complete: 1 and what came, or 0. Makes progress with all that is
     * under way, as the library does inside its calls. */
    int (*test_receive)(struct netdyno_channel *channel, uint32_t slot,
                        struct netdyno_arrival *arrival);

    /* Whether the send is complete, so that its buffer may be changed: 1 or 0. Makes progress
     * likewise. */
    int (*test_send)(struct netdyno_channel *channel, uint32_t slot);

    /* Takes a posted receive back, so that its buffer is free: 0, or 1 where a message had come
     * first, which is lost. */
    int (*cancel_receive)(struct netdyno_channel *channel, uint32_t slot);

    /* NETDYNO_BLOCKS: sleeps until something may have come or gone, or for `timeout_ns`. */
    int (*block)(struct netdyno_channel *channel, uint64_t timeout_ns);

    /* Ends everything, in a bounded time, whatever is still posted. 0 where the layer has no
     * hold on any buffer any more; otherwise netdyno keeps them until the process ends. */
    int (*close)(struct netdyno_channel *channel);

    /* NETDYNO_REQUESTS: issues a request of `bytes` to `rank`, for a reply of `reply_bytes`. */
    int (*request)(struct netdyno_channel *channel, int32_t rank, size_t bytes, size_t reply_bytes);

    /* NETDYNO_REQUESTS: handles one reply: 1 and who sent it, or 0 where none is there. */
    int (*take_reply)(struct netdyno_channel *channel, int32_t *rank);

    /* NETDYNO_REQUESTS: answers one request: 1, or 0 where none is there. */
    int (*answer)(struct netdyno_channel *channel);

    /* NETDYNO_REGISTERS: makes the library know `bytes` bytes from `memory` on, as its network
     * needs it. Returns the region, or tells the error and returns NULL. */
    struct netdyno_region *(*register_memory)(struct netdyno_channel *channel, void *memory,
                                              size_t bytes);

    /* NETDYNO_REGISTERS: takes that back. Nothing of the region is under way. */
    int (*deregister_memory)(struct netdyno_channel *channel, struct netdyno_region *region);

    /* NETDYNO_ONE_SIDED: writes how others name the region. Returns the length, at most `room`,
     * the same for all regions. */
    int (*key)(struct netdyno_channel *channel, struct netdyno_region *region, void *bytes,
               size_t room);

    /* NETDYNO_ONE_SIDED: copies to the other process's memory, or from there. Posted in a slot of
     * sends, and complete by test_send: what was put may then be changed here, what was got is
     * here. A place beyond the other's region is an error where the library can tell. */
    int (*put)(struct netdyno_channel *channel, uint32_t slot,
               const struct netdyno_transfer *transfer);
    int (*get)(struct netdyno_channel *channel, uint32_t slot,
               const struct netdyno_transfer *transfer);

    /* NETDYNO_ONE_SIDED: waits until all that was put to `rank` and is complete lies there. */
    int (*flush)(struct netdyno_channel *channel, int32_t rank);
};

extern const struct netdyno_layer netdyno_layer;

#endif
