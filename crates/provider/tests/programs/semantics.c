/* Checks what MPI promises about messages, collective operations and one-sided communication. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "rank %d: %s:%d: %s\n", rank, __FILE__, __LINE__, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 3); \
        } \
    } while (0)

static int rank, size;
static const int lengths[] = {0, 1, 7, 64, 1000, 8100, 8144, 8145, 8192, 40000, 65537, 1 << 20, 3000001};
enum { LENGTHS = sizeof lengths / sizeof *lengths, LONGEST = 3000001 };

static void fill(unsigned char *bytes, int len, int seed) {
    for (int i = 0; i < len; i++) bytes[i] = (unsigned char) (seed * 31 + i * 7 + (i >> 8));
}

static int is_filled(const unsigned char *bytes, int len, int seed) {
    for (int i = 0; i < len; i++)
        if (bytes[i] != (unsigned char) (seed * 31 + i * 7 + (i >> 8))) return 0;
    return 1;
}

/* Every mode of sending, to the next rank, with the receive posted before or after. */
static void modes(unsigned char *out, unsigned char *in) {
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    void *attached = malloc(LONGEST + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(attached, LONGEST + MPI_BSEND_OVERHEAD);
    for (int n = 0; n < LENGTHS; n++) {
        for (int mode = 0; mode < 8; mode++) {
            int len = lengths[n], tag = n * 8 + mode;
            MPI_Request requests[2];
            MPI_Status status;
            fill(out, len, rank + tag);
            memset(in, 0, len);
            if (mode & 1 || mode == 6) MPI_Irecv(in, len, MPI_BYTE, previous, tag, MPI_COMM_WORLD, &requests[0]);
            MPI_Barrier(MPI_COMM_WORLD);
            switch (mode / 2) {
            case 0: MPI_Isend(out, len, MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[1]); break;
            case 1: MPI_Issend(out, len, MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[1]); break;
            case 2: MPI_Ibsend(out, len, MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[1]); break;
            default: MPI_Irsend(out, len, MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[1]); break;
            }
            if (!(mode & 1 || mode == 6)) {
                MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
                CHECK(status.MPI_SOURCE == previous);
                MPI_Irecv(in, len, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &requests[0]);
            }
            MPI_Wait(&requests[0], &status);
            int count;
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK(count == len && status.MPI_SOURCE == previous && status.MPI_TAG == tag);
            CHECK(is_filled(in, len, previous + tag));
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        }
    }
    void *detached;
    int bytes;
    MPI_Buffer_detach(&detached, &bytes);
    free(attached);
}

/* Many unexpected messages keep their order, and are found by any tag, by their tag, and by a matched probe. */
static void unexpected(int count) {
    if (rank == 1) {
        for (int i = 0; i < count; i++) MPI_Send(&i, 1, MPI_INT, 0, i % 10, MPI_COMM_WORLD);
        MPI_Send(&count, 1, MPI_INT, 0, 99, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        int value, seen[10] = {0}, last;
        MPI_Recv(&last, 1, MPI_INT, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(last == count);
        for (int i = 0; i < count; i += 10) {
            MPI_Message message;
            MPI_Status status;
            MPI_Mprobe(1, 7, MPI_COMM_WORLD, &message, &status);
            MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
            CHECK(value == i + 7);
        }
        for (int i = 0; i < count - count / 10; i++) {
            MPI_Status status;
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            CHECK(value % 10 == status.MPI_TAG && value / 10 == seen[status.MPI_TAG]++);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Receives that nobody serves are cancelled; requests are started again; strided data arrive. */
static void requests(void) {
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, value = -1, flag;
    MPI_Request request, pair[2];
    MPI_Status status;
    MPI_Irecv(&value, 1, MPI_INT, previous, 500, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
    int out, in;
    MPI_Send_init(&out, 1, MPI_INT, next, 501, MPI_COMM_WORLD, &pair[0]);
    MPI_Recv_init(&in, 1, MPI_INT, previous, 501, MPI_COMM_WORLD, &pair[1]);
    for (int i = 0; i < 200; i++) {
        out = rank + i;
        MPI_Startall(2, pair);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
        CHECK(in == previous + i);
    }
    MPI_Request_free(&pair[0]);
    MPI_Request_free(&pair[1]);
    MPI_Datatype columns;
    enum { ROWS = 500, WIDTH = 9 };
    MPI_Type_vector(ROWS, 2, WIDTH, MPI_DOUBLE, &columns);
    MPI_Type_commit(&columns);
    static double from[ROWS * WIDTH], to[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) from[i] = rank * 1e6 + i, to[i] = -1;
    MPI_Sendrecv(from, 1, columns, next, 502, to, 1, columns, previous, 502, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < ROWS * WIDTH; i++) CHECK(to[i] == (i % WIDTH < 2 ? previous * 1e6 + i : -1));
    MPI_Type_free(&columns);
}

static void collectives(void) {
    for (int count = 1; count <= 100000; count *= 10) {
        long *a = malloc(count * size * sizeof *a), *b = malloc(count * size * sizeof *b);
        for (int i = 0; i < count * size; i++) a[i] = rank * 1000L + i, b[i] = -1;
        MPI_Allreduce(a, b, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++) CHECK(b[i] == 1000L * size * (size - 1) / 2 + (long) size * i);
        MPI_Alltoall(a, count, MPI_LONG, b, count, MPI_LONG, MPI_COMM_WORLD);
        for (int r = 0; r < size; r++)
            for (int i = 0; i < count; i++) CHECK(b[r * count + i] == r * 1000L + rank * count + i);
        MPI_Allgather(a, count, MPI_LONG, b, count, MPI_LONG, MPI_COMM_WORLD);
        for (int r = 0; r < size; r++) CHECK(b[r * count + count - 1] == r * 1000L + count - 1);
        for (int root = 0; root < size; root++) {
            for (int i = 0; i < count; i++) b[i] = rank == root ? root + i : -1;
            MPI_Bcast(b, count, MPI_LONG, root, MPI_COMM_WORLD);
            CHECK(b[0] == root && b[count - 1] == root + count - 1);
        }
        MPI_Exscan(a, b, count, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
        CHECK(rank == 0 || b[count - 1] == (rank - 1) * 1000L + count - 1);
        free(a);
        free(b);
    }
}

/* Puts, gets and sums into windows, by fences and by locks. */
static void onesided(void) {
    enum { COUNT = 50000 };
    long *memory, *own = malloc(COUNT * sizeof *own);
    MPI_Win window;
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Win_allocate(2 * COUNT * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    for (int i = 0; i < COUNT; i++) own[i] = rank * 100000L + i, memory[i] = memory[COUNT + i] = 0;
    MPI_Win_fence(0, window);
    for (int len = 1; len <= COUNT; len *= 7) {
        MPI_Put(own, len, MPI_LONG, next, 0, len, MPI_LONG, window);
        MPI_Win_fence(0, window);
        CHECK(memory[len - 1] == previous * 100000L + len - 1);
        MPI_Win_fence(0, window);
        long *got = malloc(len * sizeof *got);
        MPI_Get(got, len, MPI_LONG, next, 0, len, MPI_LONG, window);
        MPI_Win_fence(0, window);
        CHECK(got[len - 1] == rank * 100000L + len - 1);
        free(got);
        MPI_Win_fence(0, window);
    }
    for (int r = 0; r < size; r++) {
        long one = 1, before;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, window);
        MPI_Accumulate(&one, 1, MPI_LONG, r, COUNT, 1, MPI_LONG, MPI_SUM, window);
        MPI_Fetch_and_op(&one, &before, MPI_LONG, r, COUNT + 1, MPI_SUM, window);
        MPI_Win_unlock(r, window);
        CHECK(before >= 0 && before < size);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    CHECK(memory[COUNT] == size && memory[COUNT + 1] == size);
    MPI_Win_unlock(rank, window);
    MPI_Win_free(&window);
    free(own);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned char *out = malloc(LONGEST), *in = malloc(LONGEST);
    modes(out, in);
    unexpected(argc > 1 ? atoi(argv[1]) : 1000);
    requests();
    collectives();
    onesided();
    if (rank == 0) puts("all is well");
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
