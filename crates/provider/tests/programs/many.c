/* Every rank exchanges messages with every other one. */
#include <mpi.h>
#include <stdio.h>

enum { MOST = 256 };

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0, all_wrong = 0;
    int out[MOST], in[MOST];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int other = 0; other < ranks; other++)
        out[other] = rank * MOST + other;
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    for (int other = 0; other < ranks; other++)
        wrong += in[other] != other * MOST + rank;
    for (int distance = 0; distance < ranks; distance++) {
        int from = (rank - distance + ranks) % ranks, got = -1;
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + distance) % ranks, distance, &got, 1, MPI_INT, from, distance,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += got != from;
    }
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf(all_wrong ? "%d values are wrong\n" : "all is well\n", all_wrong);
    MPI_Finalize();
    return 0;
}
