/* MPI as a layer: the nonblocking calls of any MPI library, among all processes of the job.
 *
 *     netdyno plugin build mpi --cc mpicc
 *
 * The setting thread=single|funneled|serialized|multiple requests a level of thread support. The
 * default is funneled, because netdyno has a second thread that never calls MPI. */
#include "layer.h"

#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Timeout in seconds while close waits for the other processes to close. */
#define CLOSE_S 1.0
/* The same for those that know that all others end. */
#define CLOSE_TOGETHER_S 2.0
/* Polls for a reply before each further one yields the processor. */
#define POLLS_BEFORE_YIELD 10000
/* The tag of messages, of the announcement of an epoch, and of the reply of a process whose memory was
 * posted. */
#define TAG 0
#define TAG_EPOCH 1
#define TAG_REPLY 2
#define TAG_POSTED 3

struct netdyno_channel {
    char *error;
    const char *level;
    MPI_Comm comm;
    MPI_Win window; /* MPI_WIN_NULL if no memory will be registered, or none is allocated yet */
    uint32_t slots;
    uint64_t *operands; /* of each send slot: the number that fetch_add adds */
    uint64_t epochs;    /* NETDYNO_FENCE or NETDYNO_POST; 0 if the window is locked for all processes */
    int in_epoch;       /* whether this process has an epoch open */
    int32_t peer;       /* the rank in `group` */
    MPI_Group group;    /* the other process of a posted epoch, or MPI_GROUP_NULL */
    MPI_Request reply;  /* of the process whose memory was posted last */
    /* Receives, followed by sends. */
    MPI_Request requests[];
};

/* Number of open channels. The first starts MPI and the last ends it. */
static int channels;
/* Whether a process has closed a channel without the others. */
static int is_apart;

struct level {
    const char *name;
    int number;
};

/* Writes MPI's error text and returns -1. */
static int tell(char *error, const char *what, int code)
{
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length;

    MPI_Error_string(code, reason, &length);
    snprintf(error, NETDYNO_TEXT_BYTES, "%s: %s", what, reason);
    return -1;
}

/* Returns 0 on success. Otherwise writes MPI's error text and returns -1. Every call of MPI passes here, so that the array
 * for the text is not set up before there is an error. */
static int told(char *error, const char *what, int code)
{
    return code == MPI_SUCCESS ? 0 : tell(error, what, code);
}

/* Returns the requested level. Returns NULL after writing an error if a setting is invalid. */
static const struct level *level_in(const struct netdyno_options *options)
{
    static const struct level levels[] = {
        { "funneled", MPI_THREAD_FUNNELED },
        { "single", MPI_THREAD_SINGLE },
        { "serialized", MPI_THREAD_SERIALIZED },
        { "multiple", MPI_THREAD_MULTIPLE },
    };
    const struct level *asked = &levels[0];

    for (const char *const *setting = options->settings; *setting; setting++) {
        asked = NULL;
        for (size_t at = 0; at < sizeof levels / sizeof levels[0]; at++)
            if (strncmp(*setting, "thread=", 7) == 0 && strcmp(*setting + 7, levels[at].name) == 0)
                asked = &levels[at];
        if (!asked) {
            snprintf(options->error, NETDYNO_TEXT_BYTES,
                     "'%s' is no setting of mpi: use thread=single, funneled, serialized or multiple",
                     *setting);
            return NULL;
        }
    }
    return asked;
}

static int start(const struct netdyno_options *options, const struct level *level)
{
    int provided, ended;

    MPI_Finalized(&ended);
    if (ended) {
        snprintf(options->error, NETDYNO_TEXT_BYTES, "MPI has ended in this process");
        return -1;
    }
    if (channels > 0)
        MPI_Query_thread(&provided);
    else if (told(options->error, "MPI_Init_thread",
                  MPI_Init_thread(NULL, NULL, level->number, &provided)))
        return -1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (provided < level->number) {
        snprintf(options->error, NETDYNO_TEXT_BYTES, "this MPI library does not give thread=%s",
                 level->name);
        return -1;
    }
    return 0;
}

static uint64_t uses(const struct netdyno_options *options)
{
    size_t end = offsetof(struct netdyno_options, uses) + sizeof options->uses;

    return options->size >= end ? options->uses : 0;
}

/* Prepares a new window. One with epochs must not be locked. */
static int prepare_window(struct netdyno_channel *channel)
{
    MPI_Win_set_errhandler(channel->window, MPI_ERRORS_RETURN);
    if (channel->epochs)
        return 0;
    return told(channel->error, "MPI_Win_lock_all", MPI_Win_lock_all(0, channel->window));
}

/* Creates a window, to which registered memory is attached. Libraries make progress differently if
 * a window exists, so a channel for messages only has none. */
static int open_window(struct netdyno_channel *channel)
{
    if (told(channel->error, "MPI_Win_create_dynamic",
             MPI_Win_create_dynamic(MPI_INFO_NULL, channel->comm, &channel->window)))
        return -1;
    return prepare_window(channel);
}

static void release(struct netdyno_channel *channel)
{
    free(channel->operands);
    free(channel);
}

/* Returns memory for a channel, or NULL after writing an error. */
static struct netdyno_channel *make(const struct netdyno_options *options)
{
    size_t slots = options->slots;
    struct netdyno_channel *channel = malloc(sizeof *channel + 2 * slots * sizeof(MPI_Request));
    uint64_t *operands = calloc(slots, sizeof *operands);

    if (!channel || !operands) {
        snprintf(options->error, NETDYNO_TEXT_BYTES, "no memory");
        free(operands);
        free(channel);
        return NULL;
    }
    channel->operands = operands;
    return channel;
}

static struct netdyno_channel *mpi_open(struct netdyno_options *options)
{
    struct netdyno_channel *channel;
    const struct level *level = level_in(options);
    int rank, ranks;

    if (is_apart) {
        snprintf(options->error, NETDYNO_TEXT_BYTES, "another process did not close with this one");
        return NULL;
    }
    if (!level || start(options, level))
        return NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    channel = make(options);
    if (!channel)
        return NULL;
    /* Messages of one channel never match receives of another. The duplicate inherits the error
     * handler. */
    if (told(options->error, "MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &channel->comm))) {
        release(channel);
        return NULL;
    }
    channel->error = options->error;
    channel->window = MPI_WIN_NULL;
    channel->epochs = uses(options) & (NETDYNO_FENCE | NETDYNO_POST);
    channel->in_epoch = 0;
    channel->group = MPI_GROUP_NULL;
    channel->reply = MPI_REQUEST_NULL;
    if (uses(options) & (NETDYNO_REGISTERS | NETDYNO_ONE_SIDED) && !(uses(options) & NETDYNO_ALLOCATES)
        && open_window(channel)) {
        MPI_Comm_free(&channel->comm);
        release(channel);
        return NULL;
    }
    channels++;
    channel->level = level->name;
    channel->slots = options->slots;
    for (size_t at = 0; at < 2 * (size_t)options->slots; at++)
        channel->requests[at] = MPI_REQUEST_NULL;
    options->rank = rank;
    options->ranks = ranks;
    /* MPI counts bytes by int. */
    if (options->largest > INT_MAX)
        options->largest = INT_MAX;
    return channel;
}

/* Some libraries describe themselves by up to a page. This writes only the first line, with single
 * blanks. */
static void mpi_describe(struct netdyno_channel *channel, char *text, size_t room)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    char line[128];
    size_t to = 0;
    int length;

    MPI_Get_library_version(library, &length);
    for (const char *from = library; *from && *from != '\n' && to < sizeof line - 1; from++) {
        char c = *from == '\t' ? ' ' : *from;
        if (c != ' ' || (to > 0 && line[to - 1] != ' '))
            line[to++] = c;
    }
    line[to] = 0;
    snprintf(text, room, "%s, thread=%s", line, channel->level);
}

static void sync_window(struct netdyno_channel *channel)
{
    /* Epochs synchronise by themselves. */
    if (channel->window != MPI_WIN_NULL && !channel->epochs)
        MPI_Win_sync(channel->window);
}

static int mpi_gather(struct netdyno_channel *channel, const void *mine, void *all, size_t bytes)
{
    int failed;

    /* Earlier local stores and puts of other processes become visible to all processes by the two
     * synchronizations. */
    sync_window(channel);
    failed = told(channel->error, "MPI_Allgather",
                  MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, channel->comm));
    sync_window(channel);
    return failed;
}

static int mpi_post_receive(struct netdyno_channel *channel, uint32_t slot, int32_t rank, void *buffer,
                            size_t bytes)
{
    return told(channel->error, "MPI_Irecv",
                MPI_Irecv(buffer, (int)bytes, MPI_BYTE, rank == NETDYNO_ANY_RANK ? MPI_ANY_SOURCE : rank,
                          TAG, channel->comm, &channel->requests[slot]));
}

static int mpi_post_send(struct netdyno_channel *channel, uint32_t slot, int32_t rank, const void *buffer,
                         size_t bytes)
{
    return told(channel->error, "MPI_Isend",
                MPI_Isend(buffer, (int)bytes, MPI_BYTE, rank, TAG, channel->comm,
                          &channel->requests[channel->slots + slot]));
}

static int mpi_test_receive(struct netdyno_channel *channel, uint32_t slot, struct netdyno_arrival *arrival)
{
    MPI_Status status;
    int done, bytes;

    if (told(channel->error, "a receive failed",
             MPI_Test(&channel->requests[slot], &done, &status)))
        return -1;
    if (!done)
        return 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    arrival->bytes = (size_t)bytes;
    arrival->rank = status.MPI_SOURCE;
    return 1;
}

static int mpi_test_send(struct netdyno_channel *channel, uint32_t slot)
{
    MPI_Request *request = &channel->requests[channel->slots + slot];
    int done;

    /* An operation of an epoch has no request, and is complete when the epoch is closed. */
    if (channel->in_epoch && *request == MPI_REQUEST_NULL)
        return 0;
    if (told(channel->error, "a send failed", MPI_Test(request, &done, MPI_STATUS_IGNORE)))
        return -1;
    return done;
}

static int mpi_cancel_receive(struct netdyno_channel *channel, uint32_t slot)
{
    MPI_Request *request = &channel->requests[slot];
    MPI_Status status;
    int cancelled;

    if (told(channel->error, "MPI_Cancel", MPI_Cancel(request))
        || told(channel->error, "MPI_Wait", MPI_Wait(request, &status)))
        return -1;
    MPI_Test_cancelled(&status, &cancelled);
    return !cancelled;
}

struct netdyno_region {
    unsigned char *memory;
    MPI_Aint address; /* in the window: an address of this process, or 0 if the window has allocated it */
    int is_allocated;
};

static struct netdyno_region *make_region(struct netdyno_channel *channel, void *memory)
{
    struct netdyno_region *region = calloc(1, sizeof *region);

    if (!region) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "no memory");
        return NULL;
    }
    region->memory = memory;
    return region;
}

static struct netdyno_region *mpi_register(struct netdyno_channel *channel, void *memory, size_t bytes)
{
    struct netdyno_region *region = make_region(channel, memory);

    if (!region)
        return NULL;
    if (told(channel->error, "MPI_Win_attach", MPI_Win_attach(channel->window, memory, (MPI_Aint)bytes))
        || told(channel->error, "MPI_Get_address", MPI_Get_address(memory, &region->address))) {
        free(region);
        return NULL;
    }
    return region;
}

/* The window is the memory. All processes free it together, in close. */
static struct netdyno_region *mpi_allocate(struct netdyno_channel *channel, size_t bytes, void **memory)
{
    struct netdyno_region *region;

    if (told(channel->error, "MPI_Win_allocate",
             MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, channel->comm, memory, &channel->window))
        || prepare_window(channel))
        return NULL;
    region = make_region(channel, *memory);
    if (region)
        region->is_allocated = 1;
    return region;
}

static int mpi_deregister(struct netdyno_channel *channel, struct netdyno_region *region)
{
    int failed = region->is_allocated ? 0
                                      : told(channel->error, "MPI_Win_detach",
                                             MPI_Win_detach(channel->window, region->memory));

    free(region);
    return failed;
}

static int mpi_key(struct netdyno_channel *channel, struct netdyno_region *region, void *bytes, size_t room)
{
    if (room < sizeof region->address) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "no room for a key");
        return -1;
    }
    memcpy(bytes, &region->address, sizeof region->address);
    return sizeof region->address;
}

/* Returns the other side of a transfer. Returns -1 after writing an error if MPI cannot carry it. */
static int find(struct netdyno_channel *channel, const struct netdyno_transfer *transfer, MPI_Aint *there)
{
    if (transfer->bytes > INT_MAX || transfer->key.length != sizeof *there) {
        snprintf(channel->error, NETDYNO_TEXT_BYTES, "MPI cannot carry %zu bytes by a key of %zu",
                 transfer->bytes, transfer->key.length);
        return -1;
    }
    memcpy(there, transfer->key.bytes, sizeof *there);
    *there = MPI_Aint_add(*there, (MPI_Aint)transfer->key_offset);
    return 0;
}

static int mpi_put(struct netdyno_channel *channel, uint32_t slot, const struct netdyno_transfer *transfer)
{
    unsigned char *here = transfer->region->memory + transfer->offset;
    int bytes = (int)transfer->bytes;
    MPI_Aint there;

    if (find(channel, transfer, &there))
        return -1;
    if (channel->epochs)
        return told(channel->error, "MPI_Put",
                    MPI_Put(here, bytes, MPI_BYTE, transfer->rank, there, bytes, MPI_BYTE, channel->window));
    return told(channel->error, "MPI_Rput",
                MPI_Rput(here, bytes, MPI_BYTE, transfer->rank, there, bytes, MPI_BYTE, channel->window,
                         &channel->requests[channel->slots + slot]));
}

static int mpi_get(struct netdyno_channel *channel, uint32_t slot, const struct netdyno_transfer *transfer)
{
    unsigned char *here = transfer->region->memory + transfer->offset;
    int bytes = (int)transfer->bytes;
    MPI_Aint there;

    if (find(channel, transfer, &there))
        return -1;
    if (channel->epochs)
        return told(channel->error, "MPI_Get",
                    MPI_Get(here, bytes, MPI_BYTE, transfer->rank, there, bytes, MPI_BYTE, channel->window));
    return told(channel->error, "MPI_Rget",
                MPI_Rget(here, bytes, MPI_BYTE, transfer->rank, there, bytes, MPI_BYTE, channel->window,
                         &channel->requests[channel->slots + slot]));
}

static int mpi_fetch_add(struct netdyno_channel *channel, uint32_t slot,
                         const struct netdyno_transfer *transfer, uint64_t operand)
{
    unsigned char *here = transfer->region->memory + transfer->offset;
    MPI_Aint there;

    if (find(channel, transfer, &there))
        return -1;
    channel->operands[slot] = operand;
    if (channel->epochs)
        return told(channel->error, "MPI_Fetch_and_op",
                    MPI_Fetch_and_op(&channel->operands[slot], here, MPI_UINT64_T, transfer->rank, there,
                                     MPI_SUM, channel->window));
    return told(channel->error, "MPI_Rget_accumulate",
                MPI_Rget_accumulate(&channel->operands[slot], 1, MPI_UINT64_T, here, 1, MPI_UINT64_T,
                                    transfer->rank, there, 1, MPI_UINT64_T, MPI_SUM, channel->window,
                                    &channel->requests[channel->slots + slot]));
}

/* Waits for the reply of the process whose memory was posted last, if it is still to come. Polls, as for
 * messages: with MPI_Wait of MPICH 5 the reply takes 0.8 us longer. */
static int await_reply(struct netdyno_channel *channel)
{
    int done = 0;

    for (int polls = 0; !done; polls++) {
        if (told(channel->error, "MPI_Test", MPI_Test(&channel->reply, &done, MPI_STATUS_IGNORE)))
            return -1;
        /* The other process may need this processor. */
        if (polls > POLLS_BEFORE_YIELD)
            sched_yield();
    }
    return 0;
}

/* A closing fence returns when the other process has entered its own. So the bytes need no flush. After
 * MPI_Win_complete only the target knows that they have arrived, so it replies. */
static int mpi_flush(struct netdyno_channel *channel, int32_t rank)
{
    if (channel->epochs & NETDYNO_FENCE)
        return 0;
    if (channel->epochs & NETDYNO_POST)
        return await_reply(channel);
    return told(channel->error, "MPI_Win_flush", MPI_Win_flush(rank, channel->window));
}

/* Makes the group of the other process, once. */
static int choose_group(struct netdyno_channel *channel, int32_t rank)
{
    MPI_Group all;
    int failed;

    if (channel->group != MPI_GROUP_NULL && channel->peer == rank)
        return 0;
    if (channel->group != MPI_GROUP_NULL)
        MPI_Group_free(&channel->group);
    if (told(channel->error, "MPI_Comm_group", MPI_Comm_group(channel->comm, &all)))
        return -1;
    channel->peer = rank;
    failed = told(channel->error, "MPI_Group_incl", MPI_Group_incl(all, 1, &channel->peer, &channel->group));
    MPI_Group_free(&all);
    return failed;
}

static int open_fence(struct netdyno_channel *channel)
{
    return told(channel->error, "MPI_Win_fence", MPI_Win_fence(0, channel->window));
}

static int close_fence(struct netdyno_channel *channel)
{
    return told(channel->error, "MPI_Win_fence", MPI_Win_fence(MPI_MODE_NOSUCCEED, channel->window));
}

/* Announces the epoch by a message, so that the other process need not wait inside MPI between epochs. */
static int mpi_open_epoch(struct netdyno_channel *channel, int32_t rank)
{
    int failed;

    if (await_reply(channel)
        || told(channel->error, "MPI_Send", MPI_Send(NULL, 0, MPI_BYTE, rank, TAG_EPOCH, channel->comm)))
        return -1;
    if (channel->epochs & NETDYNO_FENCE)
        failed = open_fence(channel);
    else
        failed = choose_group(channel, rank)
                 || told(channel->error, "MPI_Irecv",
                         MPI_Irecv(NULL, 0, MPI_BYTE, rank, TAG_REPLY, channel->comm, &channel->reply))
                 /* MPI_Win_start need not wait for the other process. */
                 || told(channel->error, "MPI_Recv",
                         MPI_Recv(NULL, 0, MPI_BYTE, rank, TAG_POSTED, channel->comm, MPI_STATUS_IGNORE))
                 || told(channel->error, "MPI_Win_start", MPI_Win_start(channel->group, 0, channel->window));
    channel->in_epoch = !failed;
    return failed ? -1 : 0;
}

static int mpi_close_epoch(struct netdyno_channel *channel, int32_t rank)
{
    (void)rank;
    if (channel->epochs & NETDYNO_FENCE ? close_fence(channel)
                                        : told(channel->error, "MPI_Win_complete",
                                               MPI_Win_complete(channel->window)))
        return -1;
    channel->in_epoch = 0;
    return 0;
}

static int mpi_expose(struct netdyno_channel *channel, int32_t rank)
{
    int is_announced, failed;

    if (told(channel->error, "MPI_Iprobe",
             MPI_Iprobe(rank, TAG_EPOCH, channel->comm, &is_announced, MPI_STATUS_IGNORE)))
        return -1;
    if (!is_announced)
        return 0;
    if (told(channel->error, "MPI_Recv",
             MPI_Recv(NULL, 0, MPI_BYTE, rank, TAG_EPOCH, channel->comm, MPI_STATUS_IGNORE)))
        return -1;
    if (channel->epochs & NETDYNO_FENCE)
        failed = open_fence(channel) || close_fence(channel);
    else
        failed = choose_group(channel, rank)
                 || told(channel->error, "MPI_Win_post", MPI_Win_post(channel->group, 0, channel->window))
                 || told(channel->error, "MPI_Send",
                         MPI_Send(NULL, 0, MPI_BYTE, rank, TAG_POSTED, channel->comm))
                 || told(channel->error, "MPI_Win_wait", MPI_Win_wait(channel->window))
                 || told(channel->error, "MPI_Send",
                         MPI_Send(NULL, 0, MPI_BYTE, rank, TAG_REPLY, channel->comm));
    return failed ? -1 : 1;
}

/* Tests a request until it is complete or the time `until` has come. */
static int completes(MPI_Request *request, double until)
{
    int done = 0;

    do
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return 0;
    while (!done && MPI_Wtime() < until);
    return done;
}

/* Returns whether all processes call this within CLOSE_S of each other. A process that no longer waits has entered the first
 * barrier all the same. One that comes later then passes that, but not the second one. Those that have passed the first one
 * know that the others end as well, and wait longer: one that gave up now would let them wait in MPI_Finalize. */
static int all_close(struct netdyno_channel *channel)
{
    for (int nth = 0; nth < 2; nth++) {
        double until = MPI_Wtime() + (nth ? CLOSE_TOGETHER_S : CLOSE_S);
        MPI_Request barrier;

        if (MPI_Ibarrier(channel->comm, &barrier) != MPI_SUCCESS || !completes(&barrier, until))
            return 0;
    }
    return 1;
}

/* MPI_Comm_free and MPI_Finalize wait for all processes, maybe forever. They are called only after
 * all processes have arrived here. */
static int mpi_close(struct netdyno_channel *channel)
{
    double until = MPI_Wtime() + CLOSE_S;
    int is_free = 1, is_last = --channels == 0, is_together;

    for (uint32_t slot = 0; slot < channel->slots; slot++) {
        MPI_Request *receive = &channel->requests[slot];
        /* A receive whose message has begun to arrive is not cancelled, and waits for the rest. */
        if (*receive != MPI_REQUEST_NULL
            && (MPI_Cancel(receive) != MPI_SUCCESS || !completes(receive, until)))
            is_free = 0;
        if (!completes(&channel->requests[channel->slots + slot], until))
            is_free = 0;
    }
    /* It has no buffer. */
    completes(&channel->reply, until);
    is_together = all_close(channel);
    is_apart |= !is_together;
    /* Other processes may still put into memory that is attached to an open window. */
    if (!is_together && channel->window != MPI_WIN_NULL)
        is_free = 0;
    if (is_together) {
        if (channel->window != MPI_WIN_NULL) {
            if (!channel->epochs)
                MPI_Win_unlock_all(channel->window);
            MPI_Win_free(&channel->window);
        }
        if (channel->group != MPI_GROUP_NULL)
            MPI_Group_free(&channel->group);
        /* Both wait for an operation that is not complete, maybe forever. */
        if (is_free) {
            MPI_Comm_free(&channel->comm);
            if (is_last)
                MPI_Finalize();
        }
    }
    if (is_free)
        release(channel);
    return is_free ? 0 : 1;
}

const struct netdyno_layer netdyno_layer = {
    .version = NETDYNO_LAYER_VERSION,
    .size = sizeof netdyno_layer,
    .capabilities = NETDYNO_HAS_LAUNCHER | NETDYNO_GATHERS | NETDYNO_REGISTERS | NETDYNO_ONE_SIDED
                    | NETDYNO_FETCH_ADD | NETDYNO_FENCE | NETDYNO_POST | NETDYNO_ALLOCATES,
    .name = "mpi",
    .open = mpi_open,
    .describe = mpi_describe,
    .gather = mpi_gather,
    .post_receive = mpi_post_receive,
    .post_send = mpi_post_send,
    .test_receive = mpi_test_receive,
    .test_send = mpi_test_send,
    .cancel_receive = mpi_cancel_receive,
    .close = mpi_close,
    .register_memory = mpi_register,
    .deregister_memory = mpi_deregister,
    .key = mpi_key,
    .put = mpi_put,
    .get = mpi_get,
    .flush = mpi_flush,
    .fetch_add = mpi_fetch_add,
    .open_epoch = mpi_open_epoch,
    .close_epoch = mpi_close_epoch,
    .expose = mpi_expose,
    .allocate_memory = mpi_allocate,
};
