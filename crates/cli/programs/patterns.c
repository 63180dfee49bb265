/*
 * Plain MPI programs that know nothing of dials: communication patterns between two ranks, timed by
 * rank 0. What both ranks do at once is timed twice in a row: if one rank is ahead of the other by d,
 * such operations take L + d and L - d in turn.
 *
 *     patterns pingpong N BYTES   half of a round trip of MPI_Send and MPI_Recv
 *     patterns ssend N BYTES      the same with MPI_Ssend
 *     patterns exchange N BYTES   MPI_Sendrecv in both directions at once
 *     patterns stream N BYTES     one message of a one-way flood of 64, with an answer at its end
 *     patterns flood N BYTES      one MPI_Send of such a flood, by the sender's calls alone
 *     patterns allreduce N BYTES  MPI_Allreduce of so many bytes of doubles
 *     patterns barrier N BYTES    MPI_Barrier
 *     patterns late N BYTES       a receive that is posted 100 µs after its message was sent: the time
 *                                 from there to its end
 *     patterns prtt N BYTES       PRTT(10, PRTT(1, 0)) of Netgauge's LogGP pattern: ten messages with a
 *                                 round trip of delay between them, and an answer
 *
 * Several patterns and sizes can be given: `patterns pingpong,exchange N 8,1024,65536`. Rank 0 prints a
 * line for each: `pattern=pingpong bytes=8 median_us=1.234 quick_us=… low_us=… high_us=…`, where quick is
 * the tenth percentile, low and high are the quartiles.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOOD 64
#define ROW 2
#define PRTT_MESSAGES 10
#define LATE_S 100e-6

static int rank;
static char *out, *in;

static void sends(int bytes)
{
    MPI_Send(out, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
}

static void receives(int bytes)
{
    MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* No call of MPI but the clock's. */
static void computes(double seconds)
{
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
        ;
}

static double pingpong(int bytes, int synchronous)
{
    double began = MPI_Wtime();
    if (rank == 1)
        receives(bytes);
    if (synchronous)
        MPI_Ssend(out, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
    else
        sends(bytes);
    if (rank == 0)
        receives(bytes);
    return (MPI_Wtime() - began) / 2;
}

static double exchange(int bytes)
{
    double began = MPI_Wtime();
    for (int i = 0; i < ROW; i++)
        MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - rank, 0, in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    return (MPI_Wtime() - began) / ROW;
}

/* Of a flood that ends with an answer; or, of the calls that send it. */
static double stream(int bytes, int calls)
{
    double began = MPI_Wtime();
    for (int i = 0; i < FLOOD; i++)
        if (rank == 0)
            sends(bytes);
        else
            receives(bytes);
    double sent = MPI_Wtime();
    if (rank == 0)
        receives(1);
    else
        sends(1);
    return ((calls ? sent : MPI_Wtime()) - began) / FLOOD;
}

static double allreduce(int bytes)
{
    double began = MPI_Wtime();
    for (int i = 0; i < ROW; i++)
        MPI_Allreduce(out, in, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - began) / ROW;
}

static double barrier(void)
{
    double began = MPI_Wtime();
    for (int i = 0; i < ROW; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - began) / ROW;
}

static double late(int bytes)
{
    MPI_Request request;
    MPI_Isend(out, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &request);
    computes(LATE_S);
    double began = MPI_Wtime();
    receives(bytes);
    double took = MPI_Wtime() - began;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return took;
}

static double prtt(int bytes)
{
    static double delay;
    double began = MPI_Wtime();
    if (rank == 0) {
        sends(bytes);
        receives(bytes);
        delay = MPI_Wtime() - began;
        began = MPI_Wtime();
        for (int i = 0; i < PRTT_MESSAGES; i++) {
            if (i > 0)
                computes(delay);
            sends(bytes);
        }
        receives(bytes);
    } else {
        receives(bytes);
        sends(bytes);
        for (int i = 0; i < PRTT_MESSAGES; i++)
            receives(bytes);
        sends(bytes);
    }
    return MPI_Wtime() - began;
}

static double once(const char *pattern, int bytes)
{
    if (strcmp(pattern, "pingpong") == 0)
        return pingpong(bytes, 0);
    if (strcmp(pattern, "ssend") == 0)
        return pingpong(bytes, 1);
    if (strcmp(pattern, "exchange") == 0)
        return exchange(bytes);
    if (strcmp(pattern, "stream") == 0)
        return stream(bytes, 0);
    if (strcmp(pattern, "flood") == 0)
        return stream(bytes, 1);
    if (strcmp(pattern, "allreduce") == 0)
        return allreduce(bytes);
    if (strcmp(pattern, "barrier") == 0)
        return barrier();
    if (strcmp(pattern, "late") == 0)
        return late(bytes);
    if (strcmp(pattern, "prtt") == 0)
        return prtt(bytes);
    fprintf(stderr, "unknown pattern '%s'\n", pattern);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 0;
}

static int by_value(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void run(const char *pattern, int n, int bytes)
{
    double *took = malloc((size_t)n * sizeof *took);
    int warm = n / 5 + 1;
    for (int i = -warm; i < n; i++) {
        double time = once(pattern, bytes);
        if (i >= 0)
            took[i] = time;
    }
    qsort(took, (size_t)n, sizeof *took, by_value);
    if (rank == 0)
        printf("pattern=%s bytes=%d median_us=%.3f quick_us=%.3f low_us=%.3f high_us=%.3f\n", pattern, bytes,
               took[n / 2] * 1e6, took[n / 10] * 1e6, took[n / 4] * 1e6, took[n * 3 / 4] * 1e6);
    fflush(stdout);
    free(took);
}

int main(int argc, char **argv)
{
    char *patterns = strdup(argc > 1 ? argv[1] : "pingpong");
    int n = argc > 2 ? atoi(argv[2]) : 200, most = 1 << 20;
    const char *sizes = argc > 3 ? argv[3] : "8";
    for (const char *size = sizes; size; size = strchr(size, ',') ? strchr(size, ',') + 1 : NULL)
        most = atoi(size) > most ? atoi(size) : most;
    out = calloc(1, (size_t)most);
    in = calloc(1, (size_t)most);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (char *pattern = strtok(patterns, ","); pattern; pattern = strtok(NULL, ","))
        for (const char *size = sizes; size; size = strchr(size, ',') ? strchr(size, ',') + 1 : NULL)
            run(pattern, n, atoi(size));
    MPI_Finalize();
    free(out);
    free(in);
    free(patterns);
    return 0;
}
