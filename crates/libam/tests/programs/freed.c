/* A handler frees an endpoint that is just being called: the caller does not wait for it. */
#include "check.h"

enum { ENDPOINTS = 3, ROUNDS = 8 };
static ep_t endpoints[ENDPOINTS];

static void free_one(void *token, int which)
{
    int code = AM_FreeEndpoint(endpoints[which]);
    (void)token;
    CHECK(code == AM_OK || code == AM_ERR_BAD_ARG || code == AM_ERR_IN_USE);
}
static void returned(int status, op_t opcode, void *token, void *buffer, size_t nbytes)
{
    (void)opcode; (void)token; (void)buffer; (void)nbytes;
    CHECK(status == EUNREACHABLE || status == EBADENDPOINT);
}

int main(int argc, char **argv)
{
    time_t began = time(NULL);
    en_t names[ENDPOINTS];
    int round, nth, to;
    start(argc, argv);
    for (round = 0; round < ROUNDS; round++) {
        eb_t own;
        OK(AM_AllocateBundle(round % 2 ? AM_PAR : AM_SEQ, &own));
        for (nth = 0; nth < ENDPOINTS; nth++) {
            OK(AM_AllocateEndpoint(own, &endpoints[nth], &names[nth]));
            OK(AM_SetTag(endpoints[nth], AM_ALL));
            OK(AM_SetHandler(endpoints[nth], 0, returned));
            OK(AM_SetHandler(endpoints[nth], 1, free_one));
        }
        for (nth = 0; nth < ENDPOINTS; nth++) {
            for (to = 0; to < ENDPOINTS; to++)
                OK(AM_Map(endpoints[nth], to, names[to], 1));
            OK(AM_SetExpectedResources(endpoints[nth], ENDPOINTS, 4));
        }
        OK(AM_Request1(endpoints[0], 1, 1, 2));
        OK(AM_Request1(endpoints[0], 2, 1, 1));
        OK(AM_FreeBundle(own));
    }
    CHECK(time(NULL) - began < 60);
    finish();
    return 1;
}
