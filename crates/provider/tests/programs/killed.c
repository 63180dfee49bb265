/* The last rank kills itself while the others wait for its message. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Removes the files of MPICH that this rank has mapped. They would stay when the job is killed. */
static void remove_files_of_mpich(void)
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *path = strstr(line, "/dev/shm/mpich_shm_");
        if (path) {
            path[strcspn(path, "\n")] = 0;
            unlink(path);
        }
    }
    if (maps)
        fclose(maps);
}

int main(int argc, char **argv)
{
    int rank, ranks, value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    remove_files_of_mpich();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1)
        raise(SIGKILL);
    MPI_Recv(&value, 1, MPI_INT, ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
