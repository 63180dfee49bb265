/* Jobs under the names of AMUDP: started by a launcher, or by the program itself. */
#ifndef NETDYNO_AMUDP_SPMD_H
#define NETDYNO_AMUDP_SPMD_H

#include "amudp.h"
#include "am2_spmd.h"

AMX_BEGIN_C

/* A function that starts nproc processes with these arguments, and returns another value than 0 if that succeeds. The
 * argument behind the program is the library's own, and must stay there. argv ends with NULL. Later versions of AMUDP have a
 * list of variables behind it for the environment of the processes: programs for these define AMUDP_SPAWN_EXTRA_ENV. */
#ifdef AMUDP_SPAWN_EXTRA_ENV
#define AMUDP_SPAWN_PARAMETERS int nproc, int argc, char **argv, char **extra_env
#else
#define AMUDP_SPAWN_PARAMETERS int nproc, int argc, char **argv
#endif
typedef int (*amudp_spawnfn_t)(AMUDP_SPAWN_PARAMETERS);
typedef void (*amudp_exitcallback_t)(int exitcode);
typedef struct {
    char abbrev;
    const char *desc;
    amudp_spawnfn_t fnptr;
} amudp_spawnfn_desc_t;

/* The ways in which AMUDP_SPMDStartup starts ranks. The one behind the last has the abbreviation 0. */
extern amudp_spawnfn_desc_t const AMUDP_Spawnfn_Desc[];

/* Starts the job. Without a launcher this process has spawn start nproc ranks, waits for their end and ends with their exit
 * code. If nproc is 0, it is the first argument of the program. If spawn is NULL, a letter of AMUDP_Spawnfn_Desc may follow;
 * without it ranks start on this host. */
extern int AMUDP_SPMDStartup(int *argc, char ***argv, int nproc, int networkdepth, amudp_spawnfn_t spawn,
                             uint64_t *networkpid, eb_t *bundle, ep_t *endpoint);
/* Polls for messages between ranks, such as the end of the job, and for others. Gives the number of the former, if messages is
 * not NULL. */
extern int AMUDP_SPMDHandleControlTraffic(int *messages);
/* Returns a variable, as NAME=VALUE, of the environment of rank 0 whose name begins so, or NULL. */
extern const char *AMUDP_check_env_prefix(const char *prefix);
/* To be passed to AMUDP_SPMDStartup, or to be called by a function that is. The last two always fail. */
extern int AMUDP_SPMDLocalSpawn(AMUDP_SPAWN_PARAMETERS);
extern int AMUDP_SPMDSshSpawn(AMUDP_SPAWN_PARAMETERS);
extern int AMUDP_SPMDCustomSpawn(AMUDP_SPAWN_PARAMETERS);
extern int AMUDP_SPMDRexecSpawn(AMUDP_SPAWN_PARAMETERS);
extern int AMUDP_SPMDGlunixSpawn(AMUDP_SPAWN_PARAMETERS);

AMX_END_C

/* Of the header of AMMPI, if both are included: the last one holds. */
#undef AMX_SPMDStartup
#define AMX_SPMDStartup(argc, argv, networkdepth, networkpid, bundle, endpoint) \
    AMUDP_SPMDStartup((argc), (argv), 0, (networkdepth), NULL, (networkpid), (bundle), (endpoint))
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
