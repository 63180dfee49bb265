/* Connections that say nothing, or a little at a time, do not keep an endpoint from others. */
#include "check.h"
#include <netinet/in.h>
#include <sys/socket.h>

enum { STRANGERS = 300 };
static int answers;
static void take(void *token) { OK(AM_Reply0(token, 2)); }
static void count(void *token) { (void)token; answers++; }

int main(int argc, char **argv)
{
    en_t own, *all;
    ep_t late;
    int nth, sockets[STRANGERS];
    start(argc, argv);
    all = malloc(ranks * sizeof *all);
    OK(AM_AllocateEndpoint(bundle, &late, &own));
    OK(AMX_SPMDAllGather(&own, all, sizeof own));
    for (nth = 0; nth < ranks; nth++)
        OK(AM_Map(late, nth, all[nth], 5));
    OK(AM_SetTag(late, AM_ALL));
    OK(AM_SetHandler(late, 1, take));
    OK(AM_SetHandler(late, 2, count));
    OK(AM_SetExpectedResources(late, ranks, 4));
    OK(AMX_SPMDBarrier());
    if (me == 0) {
        for (nth = 0; nth < STRANGERS; nth++) {
            /* A name begins as the address of a socket. */
            struct sockaddr_in at;
            memset(&at, 0, sizeof at);
            memcpy(&at, &all[ranks - 1], 8);
            sockets[nth] = socket(AF_INET, SOCK_STREAM, 0);
            CHECK(connect(sockets[nth], (struct sockaddr *)&at, sizeof at) == 0);
            if (nth % 3 == 1)
                CHECK(send(sockets[nth], "ndam2", nth % 5, MSG_NOSIGNAL) >= -1);
            if (nth % 3 == 2)
                CHECK(send(sockets[nth], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) >= -1);
        }
        OK(AM_Request0(late, ranks - 1, 1));
        UNTIL(answers == 1);
        for (nth = 0; nth < STRANGERS; nth++)
            close(sockets[nth]);
    }
    finish();
    return 1;
}
