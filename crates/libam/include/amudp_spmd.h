/* Jobs under the names of AMUDP: started by a launcher, or by the program itself. */
#ifndef NETDYNO_AMUDP_SPMD_H
#define NETDYNO_AMUDP_SPMD_H

#include "amudp.h"
#include "am2_spmd.h"

AMX_BEGIN_C

typedef int (*amudp_spawnfn_t)(int nproc, int argc, char **argv);
typedef void (*amudp_exitcallback_t)(int exitcode);
typedef struct {
    char abbrev;
    const char *desc;
    amudp_spawnfn_t fnptr;
} amudp_spawnfn_desc_t;

/* The ways in which AMUDP_SPMDStartup starts ranks. The one behind the last has the abbreviation 0. */
extern amudp_spawnfn_desc_t const AMUDP_Spawnfn_Desc[];

/* Starts the job. Without a launcher this process starts nproc ranks on this host, waits for their end and ends with their
 * exit code. If nproc is 0, it is the first argument of the program, and "L" may follow. */
extern int AMUDP_SPMDStartup(int *argc, char ***argv, int nproc, int networkdepth, amudp_spawnfn_t spawn,
                             uint64_t *networkpid, eb_t *bundle, ep_t *endpoint);
/* To be passed to AMUDP_SPMDStartup, which accepts the first one alone: start the program by mpiexec or srun on other
 * hosts. */
extern int AMUDP_SPMDLocalSpawn(int nproc, int argc, char **argv);
extern int AMUDP_SPMDSshSpawn(int nproc, int argc, char **argv);
extern int AMUDP_SPMDRexecSpawn(int nproc, int argc, char **argv);
extern int AMUDP_SPMDGlunixSpawn(int nproc, int argc, char **argv);
extern int AMUDP_SPMDCustomSpawn(int nproc, int argc, char **argv);

AMX_END_C

/* Of the header of AMMPI, if both are included: the last one holds. */
#undef AMX_SPMDStartup
#define AMX_SPMDStartup(argc, argv, networkdepth, networkpid, bundle, endpoint) \
    AMUDP_SPMDStartup((argc), (argv), 0, (networkdepth), NULL, (networkpid), (bundle), (endpoint))
#define AMUDP_MAX_SPMDPROCS 65536
#define AMUDP_SPMDExit AMX_SPMDExit
#define AMUDP_SPMDSetExitCallback AMX_SPMDSetExitCallback
#define AMUDP_SPMDIsWorker AMX_SPMDIsWorker
#define AMUDP_SPMDNumProcs AMX_SPMDNumProcs
#define AMUDP_SPMDMyProc AMX_SPMDMyProc
#define AMUDP_SPMDBarrier AMX_SPMDBarrier
#define AMUDP_SPMDAllGather AMX_SPMDAllGather
#define AMUDP_SPMDBroadcast AMX_SPMDBroadcast
#define AMUDP_SPMDkillmyprocess AMX_SPMDkillmyprocess
#define AMUDP_SPMDgetenvMaster AMX_SPMDgetenvMaster

#endif
