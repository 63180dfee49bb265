/* Jobs of one program in many processes. Include ammpi_spmd.h or amudp_spmd.h. */
#ifndef NETDYNO_AM2_SPMD_H
#define NETDYNO_AM2_SPMD_H

#include "am2.h"

AMX_BEGIN_C

/* Ends the job with this exit code, at all ranks. Does not return after a start. */
extern int AMX_SPMDExit(int exitcode);
/* Sets the function that is called at each rank before it ends. */
extern int AMX_SPMDSetExitCallback(void (*callback)(int exitcode));
/* The function that ends the process: _exit, unless the program sets another one. */
extern void (*AMX_SPMDkillmyprocess)(int exitcode);
/* Whether a launcher has started this process as a rank. */
extern int AMX_SPMDIsWorker(char **argv);
extern int AMX_SPMDNumProcs(void);
extern int AMX_SPMDMyProc(void);
/* Waits until all ranks have called it, and polls meanwhile. */
extern int AMX_SPMDBarrier(void);
/* Collects len bytes of each rank at all ranks, by rank, and polls meanwhile. */
extern int AMX_SPMDAllGather(void *source, void *dest, size_t len);
/* Copies len bytes of rank root to all ranks, and polls meanwhile. */
extern int AMX_SPMDBroadcast(void *buffer, size_t len, int root);
/* Returns a variable of the environment of rank 0, or NULL. */
extern const char *AMX_SPMDgetenvMaster(const char *name);

AMX_END_C

#endif
