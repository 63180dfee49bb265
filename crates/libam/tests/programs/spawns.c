/* Starts its own ranks, as AMUDP does: "spawns 3 L word". Rank 0 prints the number of ranks and the word. */
#ifndef OVER_UDP_NAMES
#define OVER_UDP_NAMES
#endif
#include "check.h"

int main(int argc, char **argv)
{
    uint64_t id, all[64];
    uint32_t loopback = htonl(INADDR_LOOPBACK);
    en_t name;
    int rank, code;
    AMX_VerboseErrors = 1;
    if (getenv("NETDYNO_AM_ADDRESS") == NULL)
        OK(AMUDP_SetUDPInterface(loopback));
    CHECK(AMUDP_Spawnfn_Desc[0].abbrev == 'S' && AMUDP_Spawnfn_Desc[0].fnptr == AMUDP_SPMDSshSpawn);
    CHECK(AMUDP_Spawnfn_Desc[1].abbrev == 'L' && AMUDP_Spawnfn_Desc[1].fnptr == AMUDP_SPMDLocalSpawn);
    CHECK(AMUDP_Spawnfn_Desc[2].abbrev == 'C' && AMUDP_Spawnfn_Desc[2].fnptr == AMUDP_SPMDCustomSpawn);
    CHECK(AMUDP_Spawnfn_Desc[3].abbrev == 0);
    CHECK(AMX_SPMDIsWorker(argv) == (getenv("PMI_RANK") != NULL));
    code = AMX_SPMDStartup(&argc, &argv, 0, &id, &bundle, &endpoint);
    if (code != AM_OK)
        return 1;
    CHECK(argc == 2);
    /* A name begins as the address of a socket. */
    OK(AM_GetTranslationName(endpoint, 0, &name));
    CHECK(memcmp((const char *)&name + 4, &loopback, sizeof loopback) == 0);
    OK(AMX_SPMDAllGather(&id, all, sizeof id));
    for (rank = 0; rank < AMX_SPMDNumProcs(); rank++)
        CHECK(all[rank] == id);
    if (AMX_SPMDMyProc() == 0) {
        printf("%d ranks: %s\n", AMX_SPMDNumProcs(), argv[1]);
        if (strcmp(argv[1], "fail") == 0)
            AMX_SPMDExit(5);
    }
    OK(AMX_SPMDBarrier());
    AMX_SPMDExit(0);
    return 7;
}
