/* Rank 0 calls an endpoint of rank 1 by sockets of its own, with the right key, and says nonsense. Messages still arrive. */
#include "check.h"
#include <netinet/in.h>
#include <sys/socket.h>

enum { ROUNDS = 150 };
static int answers;
static void take(void *token) { OK(AM_Reply0(token, 2)); }
static void count(void *token) { (void)token; answers++; }

static unsigned state = 1;
static unsigned char next_byte(void)
{
    state = state * 1103515245 + 12345;
    return state >> 16;
}

static size_t append(unsigned char *bytes, size_t at, const void *more, size_t len)
{
    memcpy(bytes + at, more, len);
    return at + len;
}

/* Calls, with the key, and says what is in `offer`. The other side may have enough of it before its end. */
static int call(const en_t *name, const unsigned char *offer, size_t len)
{
    struct sockaddr_in at;
    unsigned char greeting[16], answer;
    int called = socket(AF_INET, SOCK_STREAM, 0);
    memset(&at, 0, sizeof at);
    /* A name begins as the address of a socket, and ends with the number and the key of the endpoint. */
    memcpy(&at, name, 8);
    memcpy(greeting, "ndam2/1\n", 8);
    memcpy(greeting + 8, (const char *)name + 8, 8);
    CHECK(called >= 0 && connect(called, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(send(called, greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting);
    CHECK(recv(called, &answer, 1, 0) == 1 && answer == 0);
    CHECK(send(called, offer, len, MSG_NOSIGNAL) >= -1);
    return called;
}

int main(int argc, char **argv)
{
    static unsigned char offer[80000];
    en_t own, *all;
    ep_t apart;
    int round;
    start(argc, argv);
    all = malloc(ranks * sizeof *all);
    OK(AM_AllocateEndpoint(bundle, &apart, &own));
    OK(AMX_SPMDAllGather(&own, all, sizeof own));
    OK(AM_Map(apart, 0, all[ranks - 1], 5));
    OK(AM_SetTag(apart, AM_ALL));
    OK(AM_SetHandler(apart, 1, take));
    OK(AM_SetHandler(apart, 2, count));
    OK(AM_SetExpectedResources(apart, 1, 4));
    OK(AMX_SPMDBarrier());
    for (round = 0; me == 0 && round < ROUNDS; round++) {
        size_t len = 0, at;
        en_t from = own;
        int called;
        /* Who calls: a name that nobody has, or nonsense. */
        ((unsigned char *)&from)[12] ^= 1 + round;
        len = append(offer, len, &from, sizeof from);
        /* A wire, the end of the job, a leaving rank, or nonsense. */
        offer[len++] = round % 5;
        if (round % 5 == 2) {
            for (at = 0; at < 24; at++)
                offer[len++] = next_byte();
        } else {
            /* The length of an address, and the address: right lengths, too long ones, and too few bytes. */
            unsigned said = round % 3 == 0 ? next_byte() : round % 3 == 1 ? 60000 + next_byte() : 4096;
            unsigned bytes = round % 7 == 0 ? said / 2 : said;
            offer[len++] = said & 0xff;
            offer[len++] = said >> 8;
            for (at = 0; at < bytes; at++)
                offer[len++] = next_byte();
        }
        called = call(&all[ranks - 1], offer, len);
        if (round % 2)
            shutdown(called, SHUT_RDWR);
        close(called);
        if (round % 10 == 0) {
            int before = answers;
            OK(AM_Request0(apart, 0, 1));
            UNTIL(answers > before);
        }
    }
    finish();
    return 1;
}
