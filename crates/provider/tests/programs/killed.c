/* The last rank kills itself while the others wait for its message. */
#include <mpi.h>
#include <signal.h>

int main(int argc, char **argv)
{
    int rank, ranks, value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1)
        raise(SIGKILL);
    MPI_Recv(&value, 1, MPI_INT, ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
