/* An endpoint of a process that is no rank, and that is killed. Its messages come back, and the job goes on. */
#include "check.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int answers, came_back, status_seen, opcode_seen;
static size_t bytes_seen;
static unsigned char sent[500];

static void answer(void *token) { OK(AM_Reply0(token, 2)); }
static void count(void *token) { (void)token; answers++; }
static void take(void *token, void *bytes, size_t nbytes)
{
    (void)token; (void)bytes; (void)nbytes;
}
static void returned(int status, op_t opcode, void *token, void *buffer, size_t nbytes)
{
    (void)token;
    CHECK(nbytes == 0 || (nbytes == sizeof sent && memcmp(buffer, sent, nbytes) == 0));
    status_seen = status;
    opcode_seen = opcode;
    bytes_seen = nbytes;
    came_back++;
}

/* The other process: it tells its ID and its name, and polls until it is killed. */
static int other(void)
{
    en_t name;
    size_t at;
    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    OK(AM_Init());
    OK(AM_AllocateBundle(AM_SEQ, &bundle));
    OK(AM_AllocateEndpoint(bundle, &endpoint, &name));
    OK(AM_SetTag(endpoint, AM_ALL));
    OK(AM_SetHandler(endpoint, 1, answer));
    OK(AM_SetHandler(endpoint, 3, take));
    OK(AM_SetExpectedResources(endpoint, 4, 4));
    printf("%d ", (int)getpid());
    for (at = 0; at < sizeof name; at++)
        printf("%02x", ((unsigned char *)&name)[at]);
    printf("\n");
    fflush(stdout);
    for (;;)
        OK(AM_Poll(bundle));
    return 1;
}

static void start_other(const char *program, en_t *name, int *process)
{
    char command[4200];
    FILE *said;
    size_t at;
    snprintf(command, sizeof command, "exec '%s' other", program);
    said = popen(command, "r");
    CHECK(said && fscanf(said, "%d ", process) == 1);
    for (at = 0; at < sizeof *name; at++) {
        unsigned byte;
        CHECK(fscanf(said, "%2x", &byte) == 1);
        ((unsigned char *)name)[at] = byte;
    }
}

static void new_endpoint(en_t name)
{
    en_t own;
    OK(AM_AllocateEndpoint(bundle, &endpoint, &own));
    OK(AM_SetTag(endpoint, AM_ALL));
    OK(AM_SetHandler(endpoint, 0, returned));
    OK(AM_SetHandler(endpoint, 2, count));
    OK(AM_Map(endpoint, 0, name, 7));
    OK(AM_SetExpectedResources(endpoint, 1, 4));
}

int main(int argc, char **argv)
{
    en_t name;
    int process, nth, status;
    if (argc > 1 && strcmp(argv[1], "other") == 0)
        return other();
    for (nth = 0; nth < (int)sizeof sent; nth++)
        sent[nth] = nth * 7;
    start(argc, argv);
    start_other(argv[0], &name, &process);
    new_endpoint(name);
    OK(AM_Request0(endpoint, 0, 1));
    UNTIL(answers == 1);

    /* Of the requests that it does not answer, one is told, as a short one. */
    CHECK(kill(process, SIGSTOP) == 0);
    CHECK(waitpid(process, &status, WUNTRACED) == process && WIFSTOPPED(status));
    for (nth = 0; nth < 3; nth++)
        OK(AM_RequestI0(endpoint, 0, 3, sent, sizeof sent));
    CHECK(kill(process, SIGKILL) == 0);
    UNTIL(came_back == 1);
    CHECK(status_seen == EUNREACHABLE && opcode_seen == AM_REQUEST_M && bytes_seen == 0);

    /* Later messages come back with their content, to this endpoint and to another one. */
    for (nth = 2; nth <= 3; nth++) {
        OK(AM_RequestI0(endpoint, 0, 3, sent, sizeof sent));
        UNTIL(came_back == nth);
        CHECK(status_seen == EUNREACHABLE && opcode_seen == AM_REQUEST_IM && bytes_seen == sizeof sent);
        new_endpoint(name);
    }
    finish();
    return 1;
}
