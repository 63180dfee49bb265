/* Every function refuses what it must refuse, with the right code. */
#include "check.h"

static int ran;
static void *old_token;

static void nothing(void *token) { (void)token; }

static void forbidden(void *token)
{
    int id;
    tag_t tag;
    ep_t to;
    en_t name;
    OK(AM_GetMsgTag(token, &tag));
    OK(AM_GetDestEndpoint(token, &to));
    CHECK(to == endpoint);
    OK(AM_GetSourceEndpoint(token, &name));
    OK(AMX_GetSourceId(token, &id));
    CHECK(AM_GetMsgTag(token, NULL) == AM_ERR_BAD_ARG);
    CHECK(AM_Request0(endpoint, 0, 1) == AM_ERR_RESOURCE);
    CHECK(AM_Poll(bundle) == AM_ERR_RESOURCE);
    CHECK(AMX_SPMDBarrier() == AM_ERR_RESOURCE);
    CHECK(AM_Reply0(NULL, 1) == AM_ERR_BAD_ARG);
    CHECK(AM_Reply0(&tag, 1) == AM_ERR_RESOURCE);
    CHECK(AM_ReplyI0(token, 1, NULL, 4) == AM_ERR_BAD_ARG);
    CHECK(AM_ReplyI0(token, 1, &tag, 65001) == AM_ERR_BAD_ARG);
    OK(AM_Reply0(token, 1));
    CHECK(AM_Reply0(token, 1) == AM_ERR_RESOURCE);
    old_token = token;
    ran++;
}

int main(int argc, char **argv)
{
    eb_t other, freed;
    ep_t plain;
    en_t name, bad;
    tag_t tag;
    void *address;
    uintptr_t len;
    handler_t handler;
    int number, nth, to;

#ifndef OVER_UDP_NAMES
    {
        const char *level = NULL;
        CHECK(AMMPI_SPMDSetThreadMode(1, &level, &argc, &argv) == 1);
        CHECK(level != NULL && strcmp(level, "MPI_THREAD_SERIALIZED") == 0);
    }
#endif
    CHECK(AM_Poll(NULL) == AM_ERR_NOT_INIT);
    CHECK(AM_AllocateBundle(AM_SEQ, &other) == AM_ERR_NOT_INIT);
    CHECK(AM_Terminate() == AM_ERR_NOT_INIT);
    CHECK(AM_MaxNumTranslations(&number) == AM_ERR_NOT_INIT);
    CHECK(AM_MaxSegLength(&len) == AM_ERR_NOT_INIT);
    CHECK(AMX_SPMDBarrier() == AM_ERR_NOT_INIT);
    CHECK(AMX_SPMDExit(0) == AM_ERR_NOT_INIT);
    CHECK(AMX_SPMDMyProc() == -1 && AMX_SPMDNumProcs() == 0);
    start(argc, argv);
    CHECK(AMX_SPMDStartup(&argc, &argv, 0, NULL, &other, &plain) == AM_ERR_RESOURCE);

    CHECK(AMX_SPMDBroadcast(&tag, (1ULL << 30) + 1, 0) == AM_ERR_BAD_ARG);
    CHECK(AMX_SPMDBroadcast(&tag, 1ULL << 40, ranks - 1) == AM_ERR_BAD_ARG);
    CHECK(AMX_SPMDAllGather(&tag, &tag, (1ULL << 30) + 1) == AM_ERR_BAD_ARG);
    CHECK(AM_AllocateBundle(AM_SEQ, NULL) == AM_ERR_BAD_ARG);
    CHECK(AM_AllocateBundle(7, &other) == AM_ERR_BAD_ARG);
    OK(AM_AllocateBundle(AM_SEQ, &other));
    OK(AM_AllocateBundle(AM_PAR, &freed));
    OK(AM_FreeBundle(freed));
    CHECK(AM_FreeBundle(freed) == AM_ERR_BAD_ARG);
    CHECK(AM_Poll(freed) == AM_ERR_BAD_ARG);
    CHECK(AM_AllocateEndpoint(freed, &plain, &name) == AM_ERR_BAD_ARG);
    CHECK(AM_AllocateEndpoint(other, NULL, &name) == AM_ERR_BAD_ARG);
    OK(AM_AllocateEndpoint(other, &plain, &name));

    /* Before it is open. */
    OK(AM_GetTag(plain, &tag));
    CHECK(tag == AM_NONE);
    OK(AM_GetSeg(plain, &address, &len));
    CHECK(address == NULL && len == 0);
    CHECK(AM_GetSeg(plain, NULL, &len) == AM_ERR_BAD_ARG);
    OK(AM_SetSeg(plain, NULL, (uintptr_t)-1));
    OK(AM_GetSeg(plain, &address, &len));
    CHECK(address == NULL && len == (uintptr_t)-1);
    OK(AM_SetSeg(plain, NULL, 0));
    CHECK(AM_SetSeg(plain, &tag, (uintptr_t)-1) == AM_ERR_BAD_ARG);
    OK(AM_MaxSegLength(&len));
    CHECK(len > 0xffffffffu);
    OK(AM_GetNumTranslations(plain, &number));
    CHECK(number >= 256);
    CHECK(AM_GetTranslationInuse(plain, 0) == AM_ERR_RESOURCE);
    CHECK(AM_GetTranslationInuse(plain, -1) == AM_ERR_BAD_ARG);
    CHECK(AM_GetTranslationInuse(plain, number) == AM_ERR_BAD_ARG);
    CHECK(AM_GetTranslationTag(plain, 0, &tag) == AM_ERR_RESOURCE);
    CHECK(AM_GetTranslationName(plain, 0, &bad) == AM_ERR_RESOURCE);
    CHECK(AMX_SetTranslationTag(plain, 0, 1) == AM_ERR_RESOURCE);
    CHECK(AM_UnMap(plain, 0) == AM_ERR_RESOURCE);
    CHECK(AM_Map(plain, -1, name, 5) == AM_ERR_BAD_ARG);
    CHECK(AM_Map(plain, number, name, 5) == AM_ERR_BAD_ARG);
    memset(&bad, 0, sizeof bad);
    CHECK(AM_Map(plain, 0, bad, 5) == AM_ERR_BAD_ARG);
    OK(AM_Map(plain, 3, name, 5));
    CHECK(AM_Map(plain, 3, name, 5) == AM_ERR_RESOURCE);
    OK(AM_GetTranslationTag(plain, 3, &tag));
    CHECK(tag == 5);
    OK(AMX_SetTranslationTag(plain, 3, 6));
    OK(AM_GetTranslationTag(plain, 3, &tag));
    CHECK(tag == 6);
    OK(AM_GetTranslationName(plain, 3, &bad));
    CHECK(AMX_enEqual(name, bad));
    OK(AM_UnMap(plain, 3));
    CHECK(AM_SetNumTranslations(plain, -1) == AM_ERR_RESOURCE);
    CHECK(AM_SetNumTranslations(plain, 0x7fffffff) == AM_ERR_RESOURCE);
    OK(AM_SetNumTranslations(plain, 1000));
    OK(AM_Map(plain, 999, name, 5));
    CHECK(AM_SetNumTranslations(plain, 256) == AM_ERR_RESOURCE);
    OK(AM_UnMap(plain, 999));
    OK(AM_SetNumTranslations(plain, 1));
    OK(AM_GetNumTranslations(plain, &number));
    CHECK(number == 256);
    for (nth = 0; nth < 256; nth++) {
        OK(AM_MapAny(plain, &number, name, 5));
        CHECK(number == nth);
    }
    CHECK(AM_MapAny(plain, &number, name, 5) == AM_ERR_RESOURCE);
    CHECK(AM_SetHandler(plain, 1, NULL) == AM_ERR_BAD_ARG);
    for (nth = 1; nth < 256; nth++) {
        OK(AM_SetHandlerAny(plain, &handler, nothing));
        CHECK(handler == nth);
    }
    CHECK(AM_SetHandlerAny(plain, &handler, nothing) == AM_ERR_RESOURCE);
    OK(AM_GetNumHandlers(plain, &number));
    CHECK(number == 256);
    OK(AM_SetNumHandlers(plain, 256));
    CHECK(AM_SetNumHandlers(plain, 255) == AM_ERR_RESOURCE);
    OK(AM_Poll(other));
    CHECK(AM_Request0(plain, 3, 1) == AM_ERR_NOT_INIT);
    CHECK(AM_SetExpectedResources(plain, 1, 0) == AM_ERR_BAD_ARG);
    OK(AM_SetExpectedResources(plain, 1, 1));
    CHECK(AM_SetExpectedResources(plain, 1, 1) == AM_ERR_RESOURCE);
    CHECK(AM_Map(plain, 0, name, 5) == AM_ERR_RESOURCE);
    CHECK(AM_UnMap(plain, 0) == AM_ERR_RESOURCE);
    OK(AMX_SetTranslationTag(plain, 3, 7));

    /* Events. */
    CHECK(AM_SetEventMask(other, 2) == AM_ERR_BAD_ARG);
    CHECK(AM_GetEventMask(other, NULL) == AM_ERR_BAD_ARG);
    OK(AM_GetEventMask(other, &number));
    CHECK(number == AM_NOEVENTS);
    CHECK(AM_WaitSema(other) == AM_ERR_RESOURCE);

    /* Moving and freeing. */
    CHECK(AM_MoveEndpoint(plain, bundle, other) == AM_ERR_RESOURCE);
    OK(AM_MoveEndpoint(plain, other, bundle));
    OK(AM_FreeBundle(other));
    OK(AM_FreeEndpoint(plain));
    CHECK(AM_FreeEndpoint(plain) == AM_ERR_BAD_ARG);
    CHECK(AM_GetTag(plain, &tag) == AM_ERR_BAD_ARG);
    CHECK(AM_FreeEndpoint(NULL) == AM_ERR_BAD_ARG);

    /* Messages. */
    OK(AM_SetHandler(endpoint, 1, nothing));
    OK(AM_SetHandler(endpoint, 2, forbidden));
    CHECK(AM_Request0(endpoint, 4000, 1) == AM_ERR_BAD_ARG);
    CHECK(AM_Request0(endpoint, ranks, 1) == AM_ERR_BAD_ARG);
    CHECK(AM_Request0(NULL, 0, 1) == AM_ERR_BAD_ARG);
    CHECK(AMX_Request(endpoint, 0, 1, 17) == AM_ERR_BAD_ARG);
    CHECK(AMX_Request(endpoint, 0, 1, -1) == AM_ERR_BAD_ARG);
    CHECK(AM_RequestI0(endpoint, 0, 1, NULL, 1) == AM_ERR_BAD_ARG);
    OK(AM_RequestI0(endpoint, 0, 1, NULL, 0));
    CHECK(AM_RequestI0(endpoint, 0, 1, &tag, 65001) == AM_ERR_BAD_ARG);
    CHECK(AM_RequestI0(endpoint, 0, 1, &tag, -1) == AM_ERR_BAD_ARG);
    CHECK(AM_RequestXfer0(endpoint, 0, 0, 1, &tag, 65001) == AM_ERR_BAD_ARG);
    CHECK(AM_GetMsgTag(&tag, &tag) == AM_ERR_RESOURCE);
    OK(AMX_SPMDBarrier());
    for (to = 0; to < ranks; to++)
        OK(AM_Request0(endpoint, to, 2));
    UNTIL(ran == ranks);
    CHECK(AM_Reply0(old_token, 1) == AM_ERR_RESOURCE);
    CHECK(AMX_SPMDBroadcast(&tag, 8, ranks) == AM_ERR_BAD_ARG);
    CHECK(AMX_SPMDAllGather(NULL, &tag, 8) == AM_ERR_BAD_ARG);
    finish();
    return 1;
}
