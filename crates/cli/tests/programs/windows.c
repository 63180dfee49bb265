/*
 * Times puts and gets of one byte in a window of MPI, with plain calls:
 *
 *     windows lock put|get N      MPI_Rput or MPI_Rget, MPI_Test, MPI_Win_flush; the target polls for messages
 *     windows post put|get N      MPI_Put or MPI_Get, MPI_Win_complete, and an empty message of the target behind its
 *                                 MPI_Win_wait
 *     windows fence put|get N     MPI_Put or MPI_Get, MPI_Win_fence; the target goes from its first fence to its second
 *     windows settled put|get N   the same, 20 us after the first fence, so that the target is within its second one
 *
 * Each of N epochs of post and fence is announced by an empty message, and the target polls for it. Rank 0 prints the
 * median as `median_ns=…`, without the time that a look at the clock takes.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ANNOUNCED, REPLY, END };

static int rank;
static char *memory;
static MPI_Aint theirs;
static MPI_Win window;

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *times, int n)
{
    qsort(times, n, sizeof *times, ascending);
    return n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

static void await(MPI_Request *request)
{
    int done = 0;
    while (!done)
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

/* Waits for a message of the initiator. Returns its tag. */
static int next_message(void)
{
    int is_there = 0;
    MPI_Status status;
    while (!is_there)
        MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &status);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return status.MPI_TAG;
}

static void target(const char *sync, MPI_Group other)
{
    while (next_message() != END) {
        if (!strcmp(sync, "post")) {
            MPI_Win_post(other, 0, window);
            MPI_Win_wait(window);
            MPI_Send(NULL, 0, MPI_BYTE, 0, REPLY, MPI_COMM_WORLD);
        } else {
            MPI_Win_fence(0, window);
            MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
        }
    }
}

static void operate(int gets)
{
    if (gets)
        MPI_Get(memory, 1, MPI_BYTE, 1, theirs, 1, MPI_BYTE, window);
    else
        MPI_Put(memory, 1, MPI_BYTE, 1, theirs, 1, MPI_BYTE, window);
}

static double locked(int gets)
{
    MPI_Request request;
    double began = now_ns();
    if (gets)
        MPI_Rget(memory, 1, MPI_BYTE, 1, theirs, 1, MPI_BYTE, window, &request);
    else
        MPI_Rput(memory, 1, MPI_BYTE, 1, theirs, 1, MPI_BYTE, window, &request);
    await(&request);
    MPI_Win_flush(1, window);
    return now_ns() - began;
}

static double posted(int gets, MPI_Group other)
{
    MPI_Request reply;
    double began;
    MPI_Send(NULL, 0, MPI_BYTE, 1, ANNOUNCED, MPI_COMM_WORLD);
    MPI_Irecv(NULL, 0, MPI_BYTE, 1, REPLY, MPI_COMM_WORLD, &reply);
    MPI_Win_start(other, 0, window);
    began = now_ns();
    operate(gets);
    MPI_Win_complete(window);
    await(&reply);
    return now_ns() - began;
}

static double fenced(int gets, double pause_ns)
{
    double began;
    MPI_Send(NULL, 0, MPI_BYTE, 1, ANNOUNCED, MPI_COMM_WORLD);
    MPI_Win_fence(0, window);
    for (began = now_ns(); pause_ns > 0 && now_ns() - began < pause_ns;)
        ;
    began = now_ns();
    operate(gets);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    return now_ns() - began;
}

static void initiator(const char *sync, int gets, int n, MPI_Group other)
{
    double *times = malloc(n * sizeof *times), clock_ns;
    double pause_ns = strcmp(sync, "settled") ? 0 : 20000;

    for (int i = 0; i < n; i++) {
        times[i] = -now_ns();
        times[i] += now_ns();
    }
    clock_ns = median(times, n);
    for (int i = 0; i < n; i++)
        times[i] = !strcmp(sync, "lock")   ? locked(gets)
                   : !strcmp(sync, "post") ? posted(gets, other)
                                           : fenced(gets, pause_ns);
    printf("median_ns=%.1f\n", median(times, n) - clock_ns);
    free(times);
}

int main(int argc, char **argv)
{
    MPI_Group all, other;
    int n = argc == 4 ? atoi(argv[3]) : 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (n < 1) {
        fprintf(stderr, "usage: windows lock|post|fence|settled put|get N\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int is_lock = !strcmp(argv[1], "lock"), peer = 1 - rank;
    MPI_Aint mine;
    memory = calloc(1, 4096);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, memory, 4096);
    MPI_Get_address(memory, &mine);
    MPI_Sendrecv(&mine, 1, MPI_AINT, peer, 0, &theirs, 1, MPI_AINT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &peer, &other);
    if (is_lock)
        MPI_Win_lock_all(0, window);
    if (rank == 0) {
        initiator(argv[1], !strcmp(argv[2], "get"), n, other);
        MPI_Send(NULL, 0, MPI_BYTE, 1, END, MPI_COMM_WORLD);
    } else {
        target(argv[1], other);
    }
    if (is_lock)
        MPI_Win_unlock_all(window);
    MPI_Group_free(&all);
    MPI_Group_free(&other);
    MPI_Win_detach(window, memory);
    MPI_Win_free(&window);
    free(memory);
    MPI_Finalize();
    return 0;
}
