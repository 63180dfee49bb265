/* An endpoint answers one that it has not mapped: whether the answer is taken is up to the asker's tag. The first request
 * comes before the endpoint is open. Its handler sets what a handler may set. The limits have their values. */
#include "check.h"

#ifdef OVER_UDP_NAMES
#define LIMIT(name) AMUDP_##name
#else
#define LIMIT(name) AMMPI_##name
#endif

static ep_t asker, replier;
static char segment[10];
static int answers, came_back, status_seen;

static void answer(void *token) { (void)token; answers++; }
static void ask(void *token)
{
    void *address;
    uintptr_t length;
    handler_t free_one;
    int index;
    OK(AMX_GetSourceId(token, &index));
    CHECK(index == -1);
    OK(AM_SetTag(replier, AM_ALL));
    OK(AM_SetSeg(replier, segment, sizeof segment));
    OK(AM_GetSeg(replier, &address, &length));
    CHECK(address == segment && length == sizeof segment);
    OK(AM_SetHandler(replier, 5, answer));
    OK(AM_SetHandlerAny(replier, &free_one, answer));
    CHECK(free_one != 0 && free_one != 1 && free_one != 5);
    OK(AM_Reply0(token, 2));
}
static void returned(int status, op_t opcode, void *token, void *buffer, size_t nbytes)
{
    (void)token; (void)buffer;
    CHECK(opcode == AM_REPLY_M && nbytes == 0);
    status_seen = status;
    came_back++;
}

static void check_limits(void)
{
    int translations;
    uintptr_t length;
    CHECK(AM_MaxShort() == 16 && AM_MaxMedium() == 65000 && AM_MaxLong() == 65000 && AM_MaxNumHandlers() == 256);
    OK(AM_MaxNumTranslations(&translations));
    OK(AM_MaxSegLength(&length));
    CHECK(translations == LIMIT(MAX_NUMTRANSLATIONS) && length == LIMIT(MAX_SEGLENGTH));
    OK(AM_GetNumTranslations(asker, &translations));
    CHECK(translations == LIMIT(INIT_NUMTRANSLATIONS) && LIMIT(MAX_NETWORKDEPTH) > 0 && LIMIT(MAX_BUNDLES) > 0);
    CHECK(LIMIT(LIBRARY_VERSION) > 0 && strlen(LIMIT(LIBRARY_VERSION_STR)) > 0 && LIMIT(MAX_SPMDPROCS) >= ranks);
}

int main(int argc, char **argv)
{
    static const tag_t TAGS[] = { 9, AM_ALL, AM_NONE };
    en_t own, *all;
    int nth;
    start(argc, argv);
    all = malloc(ranks * sizeof *all);
    OK(AM_AllocateEndpoint(bundle, &asker, &own));
    check_limits();
    OK(AM_AllocateEndpoint(bundle, &replier, &own));
    OK(AMX_SPMDAllGather(&own, all, sizeof own));
    OK(AM_Map(asker, 0, all[(me + 1) % ranks], 5));
    OK(AM_SetHandler(asker, 2, answer));
    OK(AM_SetTag(asker, TAGS[0]));
    OK(AM_SetTag(replier, AM_ALL));
    OK(AM_SetHandler(replier, 0, returned));
    OK(AM_SetHandler(replier, 1, ask));
    OK(AM_SetExpectedResources(asker, 1, 1));
    /* Rank 0 asks before the other endpoints are open. */
    if (me != 0)
        usleep(200000);
    OK(AM_SetExpectedResources(replier, 1, 1));
    for (nth = 0; nth < 3; nth++) {
        OK(AM_SetTag(asker, TAGS[nth]));
        OK(AM_Request0(asker, 0, 1));
        if (TAGS[nth] == AM_NONE) {
            UNTIL(came_back == 1);
            CHECK(status_seen == EBADTAG);
        } else {
            UNTIL(answers == nth + 1);
        }
        OK(AMX_SPMDBarrier());
    }
    CHECK(answers == 2 && came_back == 1);
    finish();
    return 1;
}
