/* Sixteen endpoints in each process, in several bundles, each of which talks to all of all processes; names go by
 * AllGather. Freed endpoints exist no more. */
#include "check.h"

enum { MANY = 16 };
static eb_t bundles[4];
static ep_t endpoints[MANY];
static en_t mine[MANY], *all;
static int requests, replies, came_back, last_status;

static void reply(void *token, int from, int to) { (void)token; (void)from; (void)to; replies++; }
static void request(void *token, int from, int to)
{
    ep_t where;
    en_t name;
    tag_t tag;
    int id;
    OK(AM_GetDestEndpoint(token, &where));
    CHECK(where == endpoints[to % MANY]);
    OK(AM_GetSourceEndpoint(token, &name));
    CHECK(AMX_enEqual(name, all[from]));
    OK(AMX_GetSourceId(token, &id));
    CHECK(id == from);
    OK(AM_GetMsgTag(token, &tag));
    CHECK(tag == (tag_t)(1000 + to));
    OK(AM_Reply2(token, 2, to, from));
    requests++;
}
static void returned(int status, op_t opcode, void *token, void *buffer, size_t nbytes)
{
    (void)opcode; (void)token; (void)buffer; (void)nbytes;
    last_status = status;
    came_back++;
}

static void poll_all(void)
{
    int nth;
    for (nth = 0; nth < 4; nth++)
        OK(AM_Poll(bundles[nth]));
    OK(AM_Poll(bundle));
}

int main(int argc, char **argv)
{
    int from, to, total;
    start(argc, argv);
#ifdef AMMPI
    OK(AMMPI_SetEndpointCommunicator(&total));
#endif
    total = ranks * MANY;
    all = malloc(total * sizeof *all);
    for (from = 0; from < 4; from++)
        OK(AM_AllocateBundle(AM_SEQ, &bundles[from]));
    for (from = 0; from < MANY; from++)
        OK(AM_AllocateEndpoint(bundles[from % 4], &endpoints[from], &mine[from]));
    OK(AMX_SPMDAllGather(mine, all, sizeof mine));
    CHECK(memcmp(all + me * MANY, mine, sizeof mine) == 0);
    for (from = 0; from < MANY; from++) {
        for (to = 0; to < total; to++)
            OK(AM_Map(endpoints[from], to, all[to], 1000 + to));
        OK(AM_SetTag(endpoints[from], 1000 + me * MANY + from));
        OK(AM_SetHandler(endpoints[from], 0, returned));
        OK(AM_SetHandler(endpoints[from], 1, request));
        OK(AM_SetHandler(endpoints[from], 2, reply));
        OK(AM_SetExpectedResources(endpoints[from], total, 4));
    }
    OK(AM_MoveEndpoint(endpoints[0], bundles[0], bundles[1]));
    OK(AMX_SPMDBarrier());
    for (from = 0; from < MANY; from++) {
        for (to = 0; to < total; to++) {
            OK(AM_Request2(endpoints[from], to, 1, me * MANY + from, to));
            poll_all();
        }
    }
    while (replies < MANY * total || requests < MANY * total)
        poll_all();
    /* The others may still need answers of all endpoints. */
    for (to = 0; to < 200; to++) {
        usleep(1000);
        poll_all();
    }
    OK(AMX_SPMDBarrier());
    /* The last rank frees its first endpoint; the first rank calls it by a new one. */
    if (me == ranks - 1)
        OK(AM_FreeEndpoint(endpoints[0]));
    OK(AMX_SPMDBarrier());
    if (me == 0) {
        ep_t late;
        en_t name;
        OK(AM_AllocateEndpoint(bundles[2], &late, &name));
        OK(AM_Map(late, 0, all[(ranks - 1) * MANY], 5));
        OK(AM_SetHandler(late, 0, returned));
        OK(AM_SetExpectedResources(late, 1, 4));
        OK(AM_Request2(late, 0, 1, 1, 2));
        CHECK(came_back == 1 && last_status == EBADENDPOINT);
    }
    finish();
    return 1;
}
