/* Rank 0 sends so many messages, and ends at once. The others receive so many seconds later. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, ranks, messages, seconds;
    MPI_Init(&argc, &argv);
    if (argc != 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    messages = atoi(argv[1]);
    seconds = atoi(argv[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) {
        for (int value = 0; value < messages; value++)
            for (int to = 1; to < ranks; to++)
                MPI_Send(&value, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    } else {
        sleep((unsigned)seconds);
        for (int nth = 0; nth < messages; nth++) {
            int value = -1;
            MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (value != nth) {
                printf("message %d is %d\n", nth, value);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        if (rank == ranks - 1)
            printf("all is well\n");
    }
    MPI_Finalize();
    return 0;
}
