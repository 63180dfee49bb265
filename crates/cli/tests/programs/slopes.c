/*
 * Small MPI programs whose run time depends on the link in a way that can be worked out by hand:
 *
 *     slopes chain N BYTES        N round trips: 2 N (o_s + L + o_r)
 *     slopes probe N BYTES        the same, with a probe before each receive
 *     slopes stream N BYTES       N messages one way, and an answer: N g
 *     slopes allreduce N          N reductions over two ranks: N (o_s + L + o_r)
 *     slopes hidden N MICROSECONDS
 *                                 N exchanges behind a computation: N max(computation, L)
 *     slopes late N MICROSECONDS  the same, with receives posted behind the computation
 *     slopes looks N BYTES        N exchanges, whose ends are awaited by MPI_Test and by a probe for what nobody sends
 *     slopes puts N BYTES         N writes into the other's memory, each waited for: N L at least
 *
 * Rank 0 prints `elapsed_s=…`, without what MPI takes to begin and to end. `looks` prints `probes=…` before that.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 32

static int rank;
static char *memory;
static long probes;

static void chain(int n, int bytes, int probing)
{
    int peer = 1 - rank;
    for (int i = 0; i < n; i++) {
        if (rank == 0)
            MPI_Send(memory, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
        if (probing)
            MPI_Probe(peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(memory, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(memory, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    }
}

static void stream(int n, int bytes)
{
    MPI_Request requests[WINDOW];
    for (int i = 0; i < n; i += WINDOW) {
        int count = n - i < WINDOW ? n - i : WINDOW;
        for (int j = 0; j < count; j++) {
            char *at = memory + (size_t)j * bytes;
            if (rank == 0)
                MPI_Isend(at, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[j]);
            else
                MPI_Irecv(at, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[j]);
        }
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    }
    /* The stream is over when its last message is there. */
    if (rank == 1)
        MPI_Send(memory, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    else
        MPI_Recv(memory, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void allreduce(int n)
{
    double sum = rank, all;
    for (int i = 0; i < n; i++)
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void hidden(int n, int microseconds, int late)
{
    /* What a message takes on the link is known by those that are waited for. */
    if (late)
        chain(20, 8, 0);
    for (int i = 0; i < n; i++) {
        MPI_Request requests[2];
        if (!late)
            MPI_Irecv(memory, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(memory + 64, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
        /* The computation: no call of MPI in it. */
        for (double end = MPI_Wtime() + microseconds * 1e-6; MPI_Wtime() < end;)
            ;
        if (late)
            MPI_Irecv(memory, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

static void looks(int n, int bytes)
{
    for (int i = 0; i < n; i++) {
        MPI_Request requests[2];
        int done = 0, is_there;
        MPI_Irecv(memory, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(memory + bytes, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
        for (; !done; probes++) {
            MPI_Iprobe(1 - rank, 1, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
            MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        }
    }
}

static void puts_each(int n, int bytes)
{
    void *target;
    MPI_Win window;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &target, &window);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < n && rank == 0; i++) {
        MPI_Put(memory, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
        MPI_Win_flush(1, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

static void run(const char *what, int n, int size)
{
    if (strcmp(what, "chain") == 0)
        chain(n, size, 0);
    else if (strcmp(what, "probe") == 0)
        chain(n, size, 1);
    else if (strcmp(what, "stream") == 0)
        stream(n, size);
    else if (strcmp(what, "allreduce") == 0)
        allreduce(n);
    else if (strcmp(what, "hidden") == 0)
        hidden(n, size, 0);
    else if (strcmp(what, "late") == 0)
        hidden(n, size, 1);
    else if (strcmp(what, "looks") == 0)
        looks(n, size);
    else if (strcmp(what, "puts") == 0)
        puts_each(n, size);
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "chain";
    int n = argc > 2 ? atoi(argv[2]) : 1000, size = argc > 3 ? atoi(argv[3]) : 8;
    memory = calloc(WINDOW, size > 128 ? (size_t)size : 128);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    run(what, n < 100 ? n : 100, size);
    MPI_Barrier(MPI_COMM_WORLD);
    probes = 0;
    double began = MPI_Wtime();
    run(what, n, size);
    double elapsed = MPI_Wtime() - began;
    if (rank == 0 && probes > 0)
        printf("probes=%ld\n", probes);
    if (rank == 0)
        printf("elapsed_s=%.9f\n", elapsed);
    MPI_Finalize();
    free(memory);
    return 0;
}
