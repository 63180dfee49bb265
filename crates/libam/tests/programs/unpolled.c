/* A rank leaves one bundle unpolled while others still wait for what it has sent there. */
#include "check.h"

static eb_t other;
static ep_t apart;
static int asked, answered;

static void ask(void *token, int32_t nth)
{
    asked++;
    OK(AM_Reply1(token, 2, nth));
}

static void answer(void *token, int32_t nth)
{
    (void)token;
    CHECK(nth == answered);
    answered++;
}

int main(int argc, char **argv)
{
    static en_t all[64];
    en_t name;
    int nth;
    start(argc, argv);
    OK(AM_AllocateBundle(AM_SEQ, &other));
    OK(AM_AllocateEndpoint(other, &apart, &name));
    OK(AM_SetTag(apart, 5));
    OK(AM_SetHandler(apart, 1, ask));
    OK(AM_SetHandler(apart, 2, answer));
    OK(AM_SetEventMask(other, AM_NOTEMPTY));
    OK(AMX_SPMDAllGather(&name, all, sizeof name));
    OK(AM_Map(apart, 0, all[(me + 1) % ranks], 5));
    OK(AM_SetExpectedResources(apart, 1, 4));
    for (nth = 0; nth < 40; nth++) {
        OK(AMX_SPMDBarrier());
        OK(AM_Request1(apart, 0, 1, nth));
        while (asked <= nth || answered <= nth)
            if (nth % 2)
                OK(AM_WaitSema(other));
            else
                OK(AM_Poll(other));
    }
    finish();
}
