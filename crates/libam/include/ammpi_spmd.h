/* Jobs under the names of AMMPI: started by mpiexec, srun or netdyno launch. */
#ifndef NETDYNO_AMMPI_SPMD_H
#define NETDYNO_AMMPI_SPMD_H

#include "ammpi.h"
#include "am2_spmd.h"

AMX_BEGIN_C

/* A function that starts processes. No function of AMMPI takes one. */
typedef int (*spawnfn_t)(int nproc, int argc, char **argv);

/* Starts the job: gives a bundle with an endpoint whose entries 0 to n - 1 are the ranks. networkpid may be NULL. */
extern int AMMPI_SPMDStartup(int *argc, char ***argv, int networkdepth, uint64_t *networkpid, eb_t *bundle,
                             ep_t *endpoint);
/* Asks, before the start, whether threads may use the library. They may, if usingthreads is 0 or not: returns 1, and the level
 * in the words of MPI. After the start it returns 0. */
extern int AMMPI_SPMDSetThreadMode(int usingthreads, const char **provided_level, int *argc, char ***argv);

AMX_END_C

/* Of the header of AMUDP, if both are included: the last one holds. */
#undef AMX_SPMDStartup
#define AMX_SPMDStartup AMMPI_SPMDStartup
/* There is no limit here. A start refuses more than 65536 ranks. */
#define AMMPI_MAX_SPMDPROCS 0x7FFFFFFF
#define AMMPI_SPMDExit AMX_SPMDExit
#define AMMPI_SPMDSetExitCallback AMX_SPMDSetExitCallback
#define AMMPI_SPMDIsWorker AMX_SPMDIsWorker
#define AMMPI_SPMDNumProcs AMX_SPMDNumProcs
#define AMMPI_SPMDMyProc AMX_SPMDMyProc
#define AMMPI_SPMDBarrier AMX_SPMDBarrier
#define AMMPI_SPMDAllGather AMX_SPMDAllGather
#define AMMPI_SPMDBroadcast AMX_SPMDBroadcast
#define AMMPI_SPMDkillmyprocess AMX_SPMDkillmyprocess
#define AMMPI_SPMDgetenvMaster AMX_SPMDgetenvMaster

#endif
