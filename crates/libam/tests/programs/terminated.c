/* AM_Terminate before the end of the job: "exit" and "code" end it after that, with 0 and with 3, "return" returns from main,
 * and "missed" does so at rank 0, while the others wait in a barrier. */
#include "check.h"

int main(int argc, char **argv)
{
    const char *how;
    start(argc, argv);
    how = argv[argc - 1];
    OK(AMX_SPMDBarrier());
    /* The first ranks terminate while the others still poll. */
    if (me > 0) {
        time_t began = time(NULL);
        if (strcmp(how, "missed") == 0)
            OK(AMX_SPMDBarrier());
        if (strcmp(how, "code") == 0)
            UNTIL(0);
        while (time(NULL) - began < me)
            OK(AM_Poll(bundle));
    }
    OK(AM_Terminate());
    CHECK(AM_Terminate() == AM_ERR_NOT_INIT);
    CHECK(AMX_SPMDBarrier() == AM_ERR_NOT_INIT);
    CHECK(AM_Poll(bundle) != AM_OK);
    if (strcmp(how, "exit") == 0)
        AMX_SPMDExit(0);
    if (strcmp(how, "code") == 0)
        AMX_SPMDExit(3);
    return 0;
}
