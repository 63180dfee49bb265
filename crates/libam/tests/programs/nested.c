/* A handler may not send requests, poll or wait, by whichever bundle. */
#include "check.h"

enum { BUNDLES = 3 };
static eb_t bundles[BUNDLES];
static ep_t endpoints[BUNDLES];
static en_t names[BUNDLES];
static int asked, answered;

static void try_all(void *token, int32_t which)
{
    char bytes[100] = { 0 };
    int nth;
    for (nth = 0; nth <= BUNDLES; nth++) {
        eb_t other = nth < BUNDLES ? bundles[nth] : bundle;
        ep_t from = nth < BUNDLES ? endpoints[nth] : endpoint;
        CHECK(AM_Request0(from, 0, 2) == AM_ERR_RESOURCE);
        CHECK(AM_Request6(from, 0, 2, 1, 2, 3, 4, 5, 6) == AM_ERR_RESOURCE);
        CHECK(AM_RequestI0(from, 0, 2, bytes, 100) == AM_ERR_RESOURCE);
        CHECK(AM_RequestXfer0(from, 0, 0, 2, bytes, 100) == AM_ERR_RESOURCE);
        CHECK(AM_RequestXferAsync0(from, 0, 0, 2, bytes, 100) == AM_ERR_RESOURCE);
        CHECK(AM_Poll(other) == AM_ERR_RESOURCE);
        CHECK(AM_WaitSema(other) == AM_ERR_RESOURCE);
    }
    CHECK(AMX_SPMDBarrier() == AM_ERR_RESOURCE);
    CHECK(AMX_SPMDBroadcast(bytes, 1, 0) == AM_ERR_RESOURCE);
    CHECK(AMX_SPMDAllGather(bytes, bytes, 1) == AM_ERR_RESOURCE);
    CHECK(AM_Terminate() == AM_ERR_IN_USE);
    asked++;
    OK(AM_Reply1(token, 2, which));
    CHECK(AM_Poll(bundles[which]) == AM_ERR_RESOURCE);
}

static void count(void *token, int32_t which)
{
    (void)which;
    CHECK(AM_Request0(endpoints[0], 0, 2) == AM_ERR_RESOURCE);
    CHECK(AM_Poll(bundle) == AM_ERR_RESOURCE);
    CHECK(AM_Reply0(token, 2) == AM_ERR_RESOURCE);
    answered++;
}

static void poll_all(void)
{
    int nth;
    OK(AM_Poll(bundle));
    for (nth = 0; nth < BUNDLES; nth++)
        OK(AM_Poll(bundles[nth]));
}

int main(int argc, char **argv)
{
    static en_t all[64 * BUNDLES];
    int nth, round;
    start(argc, argv);
    for (nth = 0; nth < BUNDLES; nth++) {
        OK(AM_AllocateBundle(nth < 2 ? AM_SEQ : AM_PAR, &bundles[nth]));
        OK(AM_SetEventMask(bundles[nth], AM_NOTEMPTY));
        OK(AM_AllocateEndpoint(bundles[nth], &endpoints[nth], &names[nth]));
        OK(AM_SetTag(endpoints[nth], 5));
        OK(AM_SetHandler(endpoints[nth], 1, try_all));
        OK(AM_SetHandler(endpoints[nth], 2, count));
    }
    OK(AM_SetEventMask(bundle, AM_NOTEMPTY));
    OK(AMX_SPMDAllGather(names, all, sizeof names));
    for (nth = 0; nth < BUNDLES; nth++) {
        OK(AM_Map(endpoints[nth], 0, all[(me + 1) % ranks * BUNDLES + nth], 5));
        OK(AM_SetExpectedResources(endpoints[nth], 2, 4));
    }
    for (round = 0; round < 20; round++)
        for (nth = 0; nth < BUNDLES; nth++)
            OK(AM_Request1(endpoints[nth], 0, 1, nth));
    while (asked < 20 * BUNDLES || answered < 20 * BUNDLES)
        poll_all();
    finish();
}
