/* Four threads of each rank exchange messages of all kinds at once. Then all ranks add to memory of others. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define ROUNDS 60
#define LONGEST 300000
#define VALUES 8

static int rank, ranks;
static MPI_Comm comms[THREADS];

static void fail(const char *what)
{
    printf("rank %d: %s\n", rank, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char pattern(int sender, long thread, int round)
{
    return (unsigned char)(sender * 7 + thread * 3 + round);
}

static void *exchange(void *argument)
{
    static const size_t lengths[] = {0, 8, 100, 8000, 8200, 70000, LONGEST};
    long thread = (long)argument;
    int peer = rank ^ 1;
    unsigned char *sent = malloc(LONGEST), *got = malloc(LONGEST);
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = lengths[round % 7];
        int tag = round * THREADS + (int)thread, one = 1, sum = 0;
        MPI_Request requests[2];
        memset(sent, pattern(rank, thread, round), LONGEST);
        memset(got, 0xee, LONGEST);
        if (peer < ranks) {
            MPI_Irecv(got, (int)length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(sent, (int)length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            for (size_t at = 0; at < length; at++)
                if (got[at] != pattern(peer, thread, round))
                    fail("a byte is wrong");
        }
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[thread]);
        if (sum != ranks)
            fail("a sum is wrong");
    }
    free(sent);
    free(got);
    return NULL;
}

static void accumulate(void)
{
    long *memory, one = 1, old, values[VALUES];
    MPI_Win window;
    for (int at = 0; at < VALUES; at++)
        values[at] = at;
    MPI_Win_allocate((VALUES + 1) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, 0, (VALUES + 1) * sizeof(long));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, VALUES, MPI_SUM, window);
        MPI_Accumulate(values, VALUES, MPI_LONG, (rank + 1) % ranks, 0, VALUES, MPI_LONG, MPI_SUM, window);
        MPI_Win_flush_all(window);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && memory[VALUES] != (long)ROUNDS * ranks)
        fail("a counter is wrong");
    for (int at = 0; at < VALUES; at++)
        if (memory[at] != (long)ROUNDS * at)
            fail("a value is wrong");
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    int level;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (level != MPI_THREAD_MULTIPLE)
        fail("threads are not allowed");
    for (int thread = 0; thread < THREADS; thread++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[thread]);
    for (long thread = 0; thread < THREADS; thread++)
        pthread_create(&threads[thread], NULL, exchange, (void *)thread);
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    accumulate();
    if (rank == 0)
        printf("all is well\n");
    MPI_Finalize();
    return 0;
}
