/* Rank 0 sends and ends at once. The others receive later. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#define MESSAGES 300

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) {
        for (int value = 0; value < MESSAGES; value++)
            for (int to = 1; to < ranks; to++)
                MPI_Send(&value, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    } else {
        sleep(1);
        for (int nth = 0; nth < MESSAGES; nth++) {
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
