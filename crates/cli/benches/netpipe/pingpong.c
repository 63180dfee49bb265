/* Half round trips of MPI between two processes, in ns, by the calls of NetPIPE, by those of
 * netdyno, and by what lies between:
 *
 *     bounced  MPI_Recv and MPI_Send of one buffer, so that what was received is sent back
 *     blocking the same with a buffer each way, so that what is sent never changes
 *     posted   MPI_Isend, and MPI_Irecv that was posted before, each with MPI_Test until complete;
 *              the other process has 16 receives posted, in 16 buffers
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 16
#define BATCHES 31
#define BATCH_S 0.005

static int rank, size;
static char *sent, *received, *slots[SLOTS];
static MPI_Request receives[SLOTS], send = MPI_REQUEST_NULL;
static int next;

/* netdyno looks at how long the message is. */
static void complete(MPI_Request *request)
{
    MPI_Status status;
    int bytes;

    for (int done = 0; !done;)
        MPI_Test(request, &done, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
}

static void blocking(char *from, char *to)
{
    if (rank == 0)
        MPI_Send(from, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(to, size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(from, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

static void posted(void)
{
    if (rank == 0) {
        MPI_Irecv(received, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &receives[0]);
        MPI_Isend(sent, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &send);
        complete(&receives[0]);
        complete(&send);
        return;
    }
    complete(&receives[next]);
    MPI_Irecv(slots[next], size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &receives[next]);
    next = (next + 1) % SLOTS;
    if (send != MPI_REQUEST_NULL)
        complete(&send);
    MPI_Isend(sent, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &send);
}

static void trip(int way)
{
    if (way == 2)
        posted();
    else
        blocking(sent, way == 0 ? sent : received);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double half_trip_ns(int way)
{
    double batches[BATCHES], start;
    int trips = 1;

    /* As many as a batch lasts, which the first process finds out. */
    for (double took = 0; took < BATCH_S && trips < 1 << 20; trips *= 2) {
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        for (int at = 0; at < trips; at++)
            trip(way);
        took = MPI_Wtime() - start;
        MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    for (int batch = 0; batch < BATCHES; batch++) {
        start = MPI_Wtime();
        for (int at = 0; at < trips; at++)
            trip(way);
        batches[batch] = (MPI_Wtime() - start) / trips / 2 * 1e9;
    }
    qsort(batches, BATCHES, sizeof batches[0], ascending);
    return batches[BATCHES / 2];
}

static char *memory(void)
{
    char *bytes = aligned_alloc(4096, (size_t)(size + 4095) / 4096 * 4096);

    if (!bytes)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(bytes, 1, size);
    return bytes;
}

int main(int argc, char **argv)
{
    static const char *const ways[] = { "bounced", "blocking", "posted" };

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int argument = 1; argument < argc; argument++) {
        size = atoi(argv[argument]);
        sent = memory();
        received = memory();
        for (int slot = 0; slot < SLOTS; slot++)
            slots[slot] = memory();
        for (int way = 0; way < 3; way++) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (way == 2 && rank == 1)
                for (next = SLOTS - 1; next >= 0; next--)
                    MPI_Irecv(slots[SLOTS - 1 - next], size, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                              &receives[SLOTS - 1 - next]);
            next = 0;
            double ns = half_trip_ns(way);
            if (rank == 0)
                printf("%d %s %.2f\n", size, ways[way], ns);
        }
        if (rank == 1) {
            complete(&send);
            for (int slot = 0; slot < SLOTS; slot++) {
                MPI_Cancel(&receives[slot]);
                MPI_Wait(&receives[slot], MPI_STATUS_IGNORE);
            }
        }
        /* The memory goes with the process. */
    }
    MPI_Finalize();
    return 0;
}
