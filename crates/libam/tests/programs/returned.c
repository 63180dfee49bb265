/* A message that an endpoint does not take comes back to its sender, with its content. */
#include "check.h"

static int came_back, status_seen, opcode_seen, bytes_ok, handled, replied;
static char segment[1000];
static unsigned char source[65000];

static void returned(int status, op_t opcode, void *token, void *buffer, size_t nbytes)
{
    size_t at;
    CHECK(AM_Reply0(token, 1) == AM_ERR_RESOURCE);
    status_seen = status;
    opcode_seen = opcode;
    if (opcode == AM_REQUEST_M || opcode == AM_REPLY_M) {
        int args[2];
        CHECK(nbytes == sizeof args);
        memcpy(args, buffer, nbytes);
        bytes_ok = args[0] == 11 && args[1] == -22;
    } else {
        bytes_ok = 1;
        for (at = 0; at < nbytes; at++)
            bytes_ok &= ((unsigned char *)buffer)[at] == source[at];
        bytes_ok &= nbytes == sizeof source || nbytes == 500;
    }
    came_back++;
}

static void take(void *token) { (void)token; handled++; }
static void reply_badly(void *token, int how)
{
    switch (how) {
    case 1: OK(AM_Reply2(token, 99, 11, -22)); break;
    case 2: OK(AM_ReplyI2(token, 99, source, sizeof source, 1, 2)); break;
    case 3: OK(AM_ReplyXfer0(token, 600, 1, source, 500)); break;
    case 4: OK(AM_Reply2(token, 3, 11, -22)); break;
    }
    replied++;
}

#define COMES_BACK(request, status, opcode) \
    do { \
        int before = came_back; \
        OK(request); \
        UNTIL(came_back > before); \
        CHECK(status_seen == (status) && opcode_seen == (opcode) && bytes_ok); \
    } while (0)

int main(int argc, char **argv)
{
    tag_t mine;
    int nth, to;
    size_t at;
    start(argc, argv);
    for (at = 0; at < sizeof source; at++)
        source[at] = (unsigned char)(at * 13);
    to = (me + 1) % ranks;
    OK(AM_SetHandler(endpoint, 0, returned));
    OK(AM_SetHandler(endpoint, 1, take));
    OK(AM_SetHandler(endpoint, 2, reply_badly));
    OK(AM_SetHandler(endpoint, 3, take));
    OK(AMX_SPMDBarrier());

    /* No such handler, and index 0 is no handler of messages. */
    COMES_BACK(AM_Request2(endpoint, to, 99, 11, -22), EBADHANDLER, AM_REQUEST_M);
    COMES_BACK(AM_Request2(endpoint, to, 0, 11, -22), EBADHANDLER, AM_REQUEST_M);
    COMES_BACK(AM_RequestI3(endpoint, to, 99, source, sizeof source, 1, 2, 3), EBADHANDLER, AM_REQUEST_IM);
    COMES_BACK(AM_RequestI1(endpoint, to, 99, source, 500, 1), EBADHANDLER, AM_REQUEST_IM);

    /* No segment, an offset outside of it, and bytes beyond its end. */
    OK(AMX_SPMDBarrier());
    COMES_BACK(AM_RequestXfer0(endpoint, to, 0, 1, source, 500), EBADSEGOFF, AM_REQUEST_XFER_M);
    OK(AMX_SPMDBarrier());
    OK(AM_SetSeg(endpoint, segment, sizeof segment));
    OK(AMX_SPMDBarrier());
    COMES_BACK(AM_RequestXfer0(endpoint, to, 1001, 1, source, 500), EBADSEGOFF, AM_REQUEST_XFER_M);
    COMES_BACK(AM_RequestXfer0(endpoint, to, (uintptr_t)-1, 1, source, 500), EBADSEGOFF, AM_REQUEST_XFER_M);
    COMES_BACK(AM_RequestXfer0(endpoint, to, 501, 1, source, 500), EBADLENGTH, AM_REQUEST_XFER_M);
    COMES_BACK(AM_RequestXfer0(endpoint, to, 0, 1, source, sizeof source), EBADLENGTH, AM_REQUEST_XFER_M);
    for (at = 0; at < sizeof segment; at++)
        CHECK(segment[at] == 0);
    OK(AMX_SPMDBarrier());
    OK(AM_RequestXfer0(endpoint, to, 500, 1, source, 500));
    UNTIL(handled == 1);

    /* Replies come back as well. */
    for (nth = 1; nth <= 3; nth++) {
        int before = came_back;
        OK(AMX_SPMDBarrier());
        OK(AM_Request1(endpoint, to, 2, nth));
        UNTIL(replied == nth && came_back > before);
        CHECK(status_seen == (nth == 3 ? EBADLENGTH : EBADHANDLER) && opcode_seen == AM_REPLY_M + nth - 1 && bytes_ok);
    }

    /* Tags. */
    OK(AMX_SPMDBarrier());
    OK(AM_GetTag(endpoint, &mine));
    CHECK(mine != AM_NONE && mine != AM_ALL);
    OK(AM_SetTag(endpoint, mine + 1));
    OK(AMX_SPMDBarrier());
    COMES_BACK(AM_Request2(endpoint, to, 1, 11, -22), EBADTAG, AM_REQUEST_M);
    OK(AMX_SPMDBarrier());
    OK(AM_SetTag(endpoint, AM_NONE));
    OK(AMX_SPMDBarrier());
    COMES_BACK(AM_Request2(endpoint, to, 1, 11, -22), EBADTAG, AM_REQUEST_M);
    OK(AMX_SPMDBarrier());
    OK(AM_SetTag(endpoint, AM_ALL));
    handled = 0;
    OK(AMX_SPMDBarrier());
    OK(AM_Request0(endpoint, to, 1));
    UNTIL(handled == 1);
    OK(AMX_SetTranslationTag(endpoint, to, 77));
    OK(AMX_SPMDBarrier());
    OK(AM_Request0(endpoint, to, 1));
    UNTIL(handled == 2);
    finish();
    return 1;
}
