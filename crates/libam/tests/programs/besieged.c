/* Two ranks exchange messages, by endpoints of their own and by those of the job, until one arrives with a certain word.
 * Rank 0 writes the names of its endpoints to the file "besieged FILE". */
#include "check.h"

enum { WORD = 0x5eed1234, BYTES = 30000 };
static int is_over, answers;
static unsigned char sent[BYTES], room[BYTES];
static ep_t apart;

static void returned(int status, op_t opcode, void *token, void *buffer, size_t nbytes)
{
    (void)status; (void)opcode; (void)token; (void)buffer; (void)nbytes;
}
/* Strangers send messages of another kind to a handler, too. */
static int is_right(void *token, amx_category_t wanted, int is_wanted_request)
{
    handler_t handler;
    amx_category_t category;
    int is_request;
    OK(AMX_GetTokenInfo(token, &handler, &category, &is_request));
    return category == wanted && is_request == is_wanted_request;
}
static void stop(void *token, int word) { is_over |= is_right(token, amx_Short, 1) && word == WORD; }
static void echo(void *token, void *bytes, size_t nbytes, int key)
{
    if (is_right(token, amx_Medium, 1))
        OK(AM_ReplyI1(token, 3, bytes, nbytes, key));
}
/* Strangers send other bytes. */
static void compare(void *token, void *bytes, size_t nbytes, int key)
{
    if (is_right(token, amx_Medium, 0) && key == WORD && nbytes == BYTES && memcmp(bytes, sent, BYTES) == 0)
        answers++;
}

static void prepare(ep_t of)
{
    OK(AM_SetHandler(of, 0, returned));
    OK(AM_SetHandler(of, 1, stop));
    OK(AM_SetHandler(of, 2, echo));
    OK(AM_SetHandler(of, 3, compare));
    OK(AM_SetSeg(of, room, sizeof room));
}

int main(int argc, char **argv)
{
    en_t own, names[2], *all;
    size_t at;
    int rounds;
    start(argc, argv);
    for (at = 0; at < BYTES; at++)
        sent[at] = at * 11;
    all = malloc(ranks * sizeof *all);
    OK(AM_AllocateEndpoint(bundle, &apart, &own));
    OK(AMX_SPMDAllGather(&own, all, sizeof own));
    OK(AM_Map(apart, 0, all[1 - me], 5));
    OK(AM_SetTag(apart, AM_ALL));
    prepare(apart);
    prepare(endpoint);
    OK(AM_SetExpectedResources(apart, 2, 8));
    OK(AMX_SPMDBarrier());
    if (me == 0) {
        FILE *file = fopen(argv[1], "w");
        names[0] = own;
        OK(AM_GetTranslationName(endpoint, 0, &names[1]));
        CHECK(file && fwrite(names, sizeof names, 1, file) == 1 && fclose(file) == 0);
    }
    for (rounds = 0; !is_over; rounds += 2) {
        OK(AM_RequestI1(apart, 0, 2, sent, BYTES, WORD));
        UNTIL(answers > rounds || is_over);
        OK(AM_RequestI1(endpoint, 1 - me, 2, sent, BYTES, WORD));
        UNTIL(answers > rounds + 1 || is_over);
    }
    /* The other rank is told, too. */
    OK(AM_Request1(apart, 0, 1, WORD));
    finish();
    return 1;
}
