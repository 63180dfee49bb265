/*
 * Times puts and gets of one byte in a window of MPI, with plain calls:
 *
 *     windows lock put|get N PAUSE   MPI_Rput or MPI_Rget, MPI_Test, and behind a put MPI_Win_flush; the target polls
 *                                    for messages
 *     windows post put|get N PAUSE   MPI_Put or MPI_Get, MPI_Win_complete, and behind a put an empty message of the
 *                                    target, which follows its MPI_Win_wait
 *     windows fence put|get N PAUSE  MPI_Put or MPI_Get, MPI_Win_fence; the target goes from its first fence to its
 *                                    second
 *
 * Each of N epochs of post and fence is announced by an empty message, and the target polls for it. Each operation follows
 * a pause of PAUSE nanoseconds, as that of netdyno does. Rank 0 prints the median over batches of 64 operations as
 * `median_ns=...`: of each batch the mean of the middle 80 %, without the time that a look at the clock takes.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#define BATCH 64

enum { ANNOUNCED, REPLY, END };

static int rank;
static char *memory;
static double pause_ns;
static MPI_Aint theirs;
static MPI_Win window;

static double system_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

#ifdef __x86_64__
/* Reads the counter as netdyno does: what is before the reading ends first, and what is behind it begins later. */
static double ns_per_tick;

static double now_ns(void)
{
    unsigned long long ticks;
    _mm_lfence();
    ticks = __rdtsc();
    _mm_lfence();
    return ticks * ns_per_tick;
}

static void calibrate(void)
{
    double began_ns = system_ns(), took_ns;
    unsigned long long began = __rdtsc();
    do
        took_ns = system_ns() - began_ns;
    while (took_ns < 50e6);
    ns_per_tick = took_ns / (double)(__rdtsc() - began);
}
#else
static double now_ns(void)
{
    return system_ns();
}

static void calibrate(void) {}
#endif

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

/* Returns the mean of the middle 80 % of a batch. */
static double middle_mean(double *times)
{
    int cut = BATCH / 10;
    double sum = 0;

    qsort(times, BATCH, sizeof *times, ascending);
    for (int nth = cut; nth < BATCH - cut; nth++)
        sum += times[nth];
    return sum / (BATCH - 2 * cut);
}

/* Returns the median over the batches, of each the mean of the middle 80 %. The counter of some processors goes in steps of
 * 10 ns, so that a median of single times is too coarse. */
static double median_of_batches(double *times, int n)
{
    for (int batch = 0; batch < n / BATCH; batch++)
        times[batch] = middle_mean(times + batch * BATCH);
    return median(times, n / BATCH);
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

static void rest(void)
{
    double began = now_ns();
    while (now_ns() - began < pause_ns)
        ;
}

static double locked(int gets)
{
    MPI_Request request;
    double began;

    rest();
    began = now_ns();
    if (gets)
        MPI_Rget(memory, 1, MPI_BYTE, 1, theirs, 1, MPI_BYTE, window, &request);
    else
        MPI_Rput(memory, 1, MPI_BYTE, 1, theirs, 1, MPI_BYTE, window, &request);
    await(&request);
    if (!gets)
        MPI_Win_flush(1, window);
    return now_ns() - began;
}

static double posted(int gets, MPI_Group other)
{
    MPI_Request reply;
    double began, ended;
    MPI_Send(NULL, 0, MPI_BYTE, 1, ANNOUNCED, MPI_COMM_WORLD);
    MPI_Irecv(NULL, 0, MPI_BYTE, 1, REPLY, MPI_COMM_WORLD, &reply);
    MPI_Win_start(other, 0, window);
    rest();
    began = now_ns();
    operate(gets);
    MPI_Win_complete(window);
    ended = now_ns();
    await(&reply);
    return (gets ? ended : now_ns()) - began;
}

static double fenced(int gets)
{
    double began;
    MPI_Send(NULL, 0, MPI_BYTE, 1, ANNOUNCED, MPI_COMM_WORLD);
    MPI_Win_fence(0, window);
    rest();
    began = now_ns();
    operate(gets);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    return now_ns() - began;
}

static void initiator(const char *sync, int gets, int n, MPI_Group other)
{
    double *times = malloc(n * sizeof *times), clock_ns;

    for (int i = 0; i < n; i++) {
        times[i] = -now_ns();
        times[i] += now_ns();
    }
    clock_ns = median_of_batches(times, n);
    for (int i = 0; i < n; i++)
        times[i] = !strcmp(sync, "lock")   ? locked(gets)
                   : !strcmp(sync, "post") ? posted(gets, other)
                                           : fenced(gets);
    printf("median_ns=%.1f\n", median_of_batches(times, n) - clock_ns);
    free(times);
}

int main(int argc, char **argv)
{
    MPI_Group all, other;
    int n = argc == 5 ? atoi(argv[3]) : 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (n < BATCH) {
        fprintf(stderr, "usage: windows lock|post|fence put|get N PAUSE, N at least 64\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    pause_ns = atof(argv[4]);
    calibrate();
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
