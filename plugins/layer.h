/* A layer for netdyno, in C. Version 1 of the interface.
 *
 * A layer is a shared library that exports one symbol, `netdyno_layer`. It is a table of functions
 * by which two or more processes exchange messages, or requests and replies. netdyno uses these
 * functions for its measurements. Time, patterns and statistics remain in netdyno. Two templates of
 * about a page each show how to begin: skeleton.c for messages, and requests.c for requests and
 * replies.
 *
 *     netdyno plugin build mine.c --cc cc
 *
 * Calls: all come from one thread. Only open, connect, gather, block, cancel_receive,
 * register_memory, allocate_memory, flush, open_epoch, close_epoch, expose and close may wait. A
 * function that fails returns a negative number and writes one line for the user to `error`.
 *
 * Processes: each has a rank, counted from 0. There are two ways to start them. Either netdyno
 * starts the processes, assigns their ranks and passes all addresses to each (address, connect). Or
 * the library has its own launcher, such as mpiexec, which starts them and assigns their ranks
 * (NETDYNO_HAS_LAUNCHER).
 *
 * A layer has messages, or native requests (NETDYNO_REQUESTS), or both. If it has only messages,
 * netdyno builds requests and replies from them. If it has native requests, netdyno measures those.
 * Without messages, overlap cannot be measured.
 *
 * Messages go from slot to slot. A slot identifies one posted operation, a receive or a send.
 * Receives and sends have separate slots, both counted from 0. Between post and completion only the
 * layer may use the buffer. After completion the slot may be posted again. Between two processes
 * messages arrive complete, unchanged and in order, and they match receives in the order of posting.
 * A message longer than its receive is an error.
 *
 * Requests and replies are those of the library, such as active messages or remote procedure calls.
 * A request has a length and gives the length of its reply. The contents do not matter. At
 * most as many requests as slots may be outstanding. Every process may issue requests. It replies
 * only inside `answer`, and handles replies only inside `take_reply`.
 *
 * Registered memory can also be accessed by other processes without a receive, by put, get and
 * fetch_add (NETDYNO_REGISTERS, NETDYNO_ONE_SIDED, NETDYNO_FETCH_ADD). The memory of both sides must
 * be registered. A layer may allocate it itself (NETDYNO_ALLOCATES). Without an epoch the other
 * process takes no part. A layer may also have epochs (NETDYNO_FENCE, NETDYNO_POST): operations
 * between two calls, in which the other process takes part.
 *
 * When a process dies, the other processes must see an error or be ended within a bounded time. A
 * layer that cannot detect this may report that nothing has arrived: netdyno gives up after ten
 * seconds. A call that waits may wait for as long as the other process is alive, but a launch that
 * says nothing for a minute is ended.
 *
 * Later headers may append members to the structures. `size` tells which members exist.
 */
#ifndef NETDYNO_LAYER_H
#define NETDYNO_LAYER_H

#include <stddef.h>
#include <stdint.h>

/* Version of this interface. netdyno does not load a layer of another version. */
#define NETDYNO_LAYER_VERSION 1u

/* Size in bytes of a text that is passed back, with the terminating 0. */
#define NETDYNO_TEXT_BYTES 512

/* Matches a message from any rank. */
#define NETDYNO_ANY_RANK (-1)

/* Optional capabilities of a layer. Each requires the members that it names. */
enum netdyno_capability {
    /* The layer's own launcher starts its processes. address and connect are not called. */
    NETDYNO_HAS_LAUNCHER = 1 << 0,
    /* gather: netdyno can use it to find the processes of other layers. */
    NETDYNO_GATHERS = 1 << 1,
    /* block: netdyno can sleep until progress may be possible. */
    NETDYNO_BLOCKS = 1 << 2,
    /* request, take_reply, answer. All members for messages may then be NULL. */
    NETDYNO_REQUESTS = 1 << 3,
    /* register_memory, deregister_memory. */
    NETDYNO_REGISTERS = 1 << 4,
    /* key, put, get, flush. Requires NETDYNO_REGISTERS and messages. */
    NETDYNO_ONE_SIDED = 1 << 5,
    /* fetch_add. Requires NETDYNO_ONE_SIDED. */
    NETDYNO_FETCH_ADD = 1 << 6,
    /* open_epoch, close_epoch, expose, by fences of all processes. Requires NETDYNO_ONE_SIDED. */
    NETDYNO_FENCE = 1 << 7,
    /* The same members, for the two processes of an operation alone: the target posts its memory. */
    NETDYNO_POST = 1 << 8,
    /* allocate_memory. Requires NETDYNO_ONE_SIDED. */
    NETDYNO_ALLOCATES = 1 << 9,
};

/* Arguments of open, some of which it changes. */
struct netdyno_options {
    uint32_t size;  /* size of this structure in bytes */
    uint32_t slots; /* maximum number of receives, of sends, or of requests at once */

    /* In: size in bytes of the largest message. Out: a smaller size if the layer supports less. */
    uint64_t largest;

    /* In: the rank of this process and the number of processes. They have no meaning with
     * NETDYNO_HAS_LAUNCHER. A single process only registers memory, and connect is not called. Out,
     * with NETDYNO_HAS_LAUNCHER: the values that the launcher assigned. */
    int32_t rank;
    int32_t ranks;

    /* Settings of this layer, each as "name=value", with NULL at the end. The layer must refuse
     * unknown settings. */
    const char *const *settings;

    /* The buffer for error texts, NETDYNO_TEXT_BYTES long. It is valid as long as the channel is
     * open. */
    char *error;

    /* In: the capabilities among NETDYNO_BLOCKS, NETDYNO_REGISTERS, NETDYNO_ONE_SIDED,
     * NETDYNO_FETCH_ADD, NETDYNO_FENCE, NETDYNO_POST and NETDYNO_ALLOCATES that this channel will use.
     * Of fence and post it is at most one, and then all puts, gets and fetch_adds are in epochs. With
     * NETDYNO_ALLOCATES all regions are allocated, without it none. The layer may omit set-up that only
     * the others need, if it has a cost. Out: without NETDYNO_FETCH_ADD if the library does not have it
     * here. */
    uint64_t uses;
};

/* The address of a process: bytes that only its layer understands. */
struct netdyno_address {
    const void *bytes;
    size_t length;
};

/* The result of a receive. */
struct netdyno_arrival {
    size_t bytes;
    int32_t rank; /* rank of the sender */
    int32_t reserved;
};

/* An open layer, and a registered region. Each layer defines its own. */
struct netdyno_channel;
struct netdyno_region;

/* The parameters of put and get, which copy between two regions. */
struct netdyno_transfer {
    struct netdyno_region *region; /* region of this process */
    uint64_t offset;               /* offset in it, in bytes */
    struct netdyno_address key;    /* key of a region of the other process */
    uint64_t key_offset;           /* offset in it, in bytes */
    size_t bytes;
    int32_t rank; /* rank of the other process */
    int32_t reserved;
};

/* The layer. Members of a capability that it lacks may be NULL. */
struct netdyno_layer {
    uint32_t version;      /* NETDYNO_LAYER_VERSION */
    uint32_t size;         /* sizeof(struct netdyno_layer) */
    uint64_t capabilities; /* enum netdyno_capability, combined by | */
    const char *name;      /* a short word, as used with --over */

    /* Opens the layer. On failure writes an error and returns NULL. A process calls it once. A
     * layer with NETDYNO_GATHERS may be opened several times. All processes then open the channels
     * in the same order, and messages stay within their channel. */
    struct netdyno_channel *(*open)(struct netdyno_options *options);

    /* Writes one line: the library's name, version and configuration. */
    void (*describe)(struct netdyno_channel *channel, char *text, size_t room);

    /* Writes the address of this process. Returns its length, at most `room`. */
    int (*address)(struct netdyno_channel *channel, void *bytes, size_t room);

    /* Connects to all other processes. `addresses` is indexed by rank. The address of a process
     * that exchanges nothing with this one has length 0. Other processes may not have connected
     * yet. */
    int (*connect)(struct netdyno_channel *channel, const struct netdyno_address *addresses,
                   uint32_t ranks);

    /* NETDYNO_GATHERS: every process calls it with `bytes` bytes, and gets those of all processes,
     * indexed by rank, as with MPI_Allgather. May wait for them without a timeout. */
    int (*gather)(struct netdyno_channel *channel, const void *mine, void *all, size_t bytes);

    /* Posts a receive of at most `bytes` from `rank`, or from any rank (NETDYNO_ANY_RANK). */
    int (*post_receive)(struct netdyno_channel *channel, uint32_t slot, int32_t rank, void *buffer,
                        size_t bytes);

    /* Posts a send of `bytes` to `rank`. */
    int (*post_send)(struct netdyno_channel *channel, uint32_t slot, int32_t rank,
                     const void *buffer, size_t bytes);

    /* Returns 1 and fills `arrival` if the receive is complete, and 0 otherwise. Makes progress on
     * all posted operations, as the library does inside its calls. */
    int (*test_receive)(struct netdyno_channel *channel, uint32_t slot,
                        struct netdyno_arrival *arrival);

    /* Returns 1 if the send is complete, so that its buffer may be changed, and 0 otherwise. Makes
     * progress like test_receive. */
    int (*test_send)(struct netdyno_channel *channel, uint32_t slot);

    /* Cancels a posted receive, so that its buffer is free. Returns 0, or 1 if a message had
     * already arrived, which is then lost. */
    int (*cancel_receive)(struct netdyno_channel *channel, uint32_t slot);

    /* NETDYNO_BLOCKS: sleeps until progress may be possible, at most for `timeout_ns`. */
    int (*block)(struct netdyno_channel *channel, uint64_t timeout_ns);

    /* Closes the channel within a bounded time, even if operations are still posted. Returns 0 if
     * the layer no longer uses any buffer. Otherwise netdyno keeps all buffers until the process
     * ends. */
    int (*close)(struct netdyno_channel *channel);

    /* NETDYNO_REQUESTS: issues a request of `bytes` to `rank`, for a reply of `reply_bytes`. */
    int (*request)(struct netdyno_channel *channel, int32_t rank, size_t bytes, size_t reply_bytes);

    /* NETDYNO_REQUESTS: handles one reply. Returns 1 and the sender's rank, or 0 if none has
     * arrived. */
    int (*take_reply)(struct netdyno_channel *channel, int32_t *rank);

    /* NETDYNO_REQUESTS: replies to one request. Returns 1, or 0 if none has arrived. */
    int (*answer)(struct netdyno_channel *channel);

    /* NETDYNO_REGISTERS: registers `bytes` bytes from `memory` on, as the network requires. Returns
     * the region. On failure writes an error and returns NULL. */
    struct netdyno_region *(*register_memory)(struct netdyno_channel *channel, void *memory,
                                              size_t bytes);

    /* NETDYNO_REGISTERS: deregisters a region. No operation on it is posted. */
    int (*deregister_memory)(struct netdyno_channel *channel, struct netdyno_region *region);

    /* NETDYNO_ONE_SIDED: writes the key by which other processes access the region. Returns its
     * length, at most `room` and the same for all regions. */
    int (*key)(struct netdyno_channel *channel, struct netdyno_region *region, void *bytes,
               size_t room);

    /* NETDYNO_ONE_SIDED: put copies to the other process's memory, and get copies from it. Both are
     * posted in a slot of sends, and test_send reports their completion. After a put the memory
     * here may then be changed. After a get the data has then arrived here. A range beyond the
     * other region is an error if the library can detect it. */
    int (*put)(struct netdyno_channel *channel, uint32_t slot,
               const struct netdyno_transfer *transfer);
    int (*get)(struct netdyno_channel *channel, uint32_t slot,
               const struct netdyno_transfer *transfer);

    /* NETDYNO_ONE_SIDED: waits until all completed puts to `rank` are visible there. */
    int (*flush)(struct netdyno_channel *channel, int32_t rank);

    /* NETDYNO_FETCH_ADD: adds `operand` to the 64-bit word of the other region, atomically among such
     * operations, and copies its previous value to the region here. Both words are aligned, and
     * `bytes` is 8. Posted and completed like a get. */
    int (*fetch_add)(struct netdyno_channel *channel, uint32_t slot,
                     const struct netdyno_transfer *transfer, uint64_t operand);

    /* NETDYNO_FENCE, NETDYNO_POST: opens an epoch of operations on the memory of `rank`. Waits until
     * that process takes part. */
    int (*open_epoch)(struct netdyno_channel *channel, int32_t rank);

    /* NETDYNO_FENCE, NETDYNO_POST: closes the epoch. Waits until its operations are complete here: from
     * then on test_send returns 1, and before it returns 0. */
    int (*close_epoch)(struct netdyno_channel *channel, int32_t rank);

    /* NETDYNO_FENCE, NETDYNO_POST: takes part in an epoch of `rank`, if that process has begun to open
     * one. Returns 1 after all of its operations are complete in the memory here, and 0 if there is
     * none. */
    int (*expose)(struct netdyno_channel *channel, int32_t rank);

    /* NETDYNO_ALLOCATES: like register_memory, but for `bytes` bytes that the library allocates, which
     * it may reach faster than other memory. All processes call it once, with the same `bytes`, perhaps
     * before connect. Writes the address, a multiple of 8, to `*memory`. The memory stays until
     * deregister_memory, or until close. */
    struct netdyno_region *(*allocate_memory)(struct netdyno_channel *channel, size_t bytes,
                                              void **memory);
};

extern const struct netdyno_layer netdyno_layer;

#endif
