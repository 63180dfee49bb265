/* What a runtime over AMUDP asks for: all of memory as segment, messages without bytes, the variables of rank 0 by the
 * beginning of their names, control messages, and the address in a name. */
#ifndef OVER_UDP_NAMES
#define OVER_UDP_NAMES
#endif
/* The constants stand alone, too. */
#include <amudp_const.h>
#if AM_OK != 0 || AMUDP_MAX_SPMDPROCS < 65536
#error "constants are missing"
#endif
#include "check.h"

static volatile int empty, stored;
static char room[5];

static void take_nothing(void *token, void *bytes, size_t nbytes)
{
    (void)token, (void)bytes;
    CHECK(nbytes == 0);
    empty++;
}

static void take_stored(void *token, void *bytes, size_t nbytes)
{
    (void)token;
    CHECK(bytes == (nbytes == 0 ? NULL : room) && (nbytes == 0 || memcmp(room, "store", 5) == 0));
    stored++;
}

int main(int argc, char **argv)
{
    uintptr_t *places, place = (uintptr_t)room;
    const char *found;
    en_t name;
    int messages = 7, next;

    AMX_ProcessLabel = "label";
    AMUDP_PoliteSync = 1;
    CHECK(AMUDP_check_env_prefix("NETDYNO_TEST_OF_") == NULL);
    OK(AMUDP_SPMDHandleControlTraffic(&messages));
    CHECK(messages == 0);
    setenv("NETDYNO_TEST_OF_RUNTIME", getenv("PMI_RANK") ? getenv("PMI_RANK") : "0", 1);
    start(argc, argv);
    found = AMUDP_check_env_prefix("NETDYNO_TEST_OF_RUN");
    CHECK(found != NULL && strcmp(found, "NETDYNO_TEST_OF_RUNTIME=0") == 0);
    CHECK(AMUDP_check_env_prefix("NETDYNO_TEST_OF_NOBODY") == NULL && AMUDP_check_env_prefix(NULL) == NULL);
    CHECK(strcmp(AMUDP_SPMDgetenvMaster("NETDYNO_TEST_OF_RUNTIME"), "0") == 0);
    CHECK(AMUDP_SPMDgetenvMaster("NETDYNO_TEST_OF_RUN") == NULL);
    OK(AM_GetTranslationName(endpoint, me, &name));
    CHECK(name.sin_family == AF_INET && name.sin_port != 0 && name.sin_addr.s_addr != 0);

    OK(AM_SetHandler(endpoint, 1, take_nothing));
    OK(AM_SetHandler(endpoint, 2, take_stored));
    OK(AM_SetSeg(endpoint, NULL, (uintptr_t)-1));
    places = malloc(ranks * sizeof place);
    OK(AMUDP_SPMDAllGather(&place, places, sizeof place));
    next = (me + 1) % ranks;
    OK(AM_RequestI0(endpoint, next, 1, NULL, 0));
    OK(AM_RequestXfer0(endpoint, next, places[next], 2, "store", 5));
    OK(AM_RequestXfer0(endpoint, next, 0, 2, NULL, 0));
    /* The messages of others come with those between ranks. */
    while (empty < 1 || stored < 2)
        OK(AMUDP_SPMDHandleControlTraffic(NULL));
    free(places);
    finish();
    return 1;
}
