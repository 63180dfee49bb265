/* A job whose ranks a function of this program starts, which the variable BY names, or the way that the arguments name:
 * "spawned ranks [letter] what words...". Rank 0 prints the number of ranks and the words. */
#ifndef OVER_UDP_NAMES
#define OVER_UDP_NAMES
#endif
#include "check.h"
#include <signal.h>

static int expected;

/* Starts processes with these arguments. */
static int start_processes(int count, char **argv)
{
    int nth;
    for (nth = 0; nth < count; nth++) {
        pid_t pid = fork();
        if (pid < 0)
            return 0;
        if (pid == 0) {
            execv(argv[0], argv);
            _exit(1);
        }
    }
    return 1;
}

static int own(int nproc, int argc, char **argv)
{
    CHECK(nproc == expected && argc > 2 && argv[argc] == NULL);
    return start_processes(nproc, argv);
}

static int zero(int nproc, int argc, char **argv)
{
    (void)nproc, (void)argc, (void)argv;
    return 0;
}

static int too_few(int nproc, int argc, char **argv)
{
    (void)argc;
    return start_processes(nproc - 1, argv);
}

/* The last one to come fails, and no other one. */
static int too_many(int nproc, int argc, char **argv)
{
    (void)argc;
    return start_processes(nproc + 1, argv);
}

static int here(int nproc, int argc, char **argv)
{
    return AMUDP_SPMDLocalSpawn(nproc, argc, argv);
}

static int by_ssh(int nproc, int argc, char **argv)
{
    setenv("SSH_SERVERS", "nowhere.invalid", 1);
    return AMUDP_SPMDSshSpawn(nproc, argc, argv);
}

/* In later versions of AMUDP. */
static int later(int nproc, int argc, char **argv, char **extra_env)
{
    int has_timeout = 0;
    (void)argc;
    for (; *extra_env != NULL; extra_env++)
        has_timeout |= strncmp(*extra_env, "NETDYNO_AM_TIMEOUT=", 19) == 0;
    CHECK(has_timeout == (getenv("NETDYNO_AM_TIMEOUT") != NULL));
    return start_processes(nproc, argv);
}

static int call_master(const char *invitation)
{
    struct sockaddr_in address;
    char host[32];
    int port, socket_of_call = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(sscanf(invitation, "--netdyno-rank-of=%31[^:]:%d/", host, &port) == 2);
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)port);
    CHECK(inet_pton(AF_INET, host, &address.sin_addr) == 1);
    CHECK(connect(socket_of_call, (struct sockaddr *)&address, sizeof address) == 0);
    return socket_of_call;
}

static void say(int socket_of_call, const char *text)
{
    CHECK(write(socket_of_call, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Others connect before the ranks do and meanwhile, and stay: with a wrong key, with nonsense, with half of a greeting, with
 * nothing. Those that say nothing make place for others. */
static int strangers(int nproc, int argc, char **argv)
{
    char long_text[5000], nothing;
    int nth, last;
    (void)argc;
    say(call_master(argv[1]), "netdyno-rank 00000000000000000000000000000000\n");
    say(call_master(argv[1]), "cmd=init pmi_version=1 pmi_subversion=1\n");
    say(call_master(argv[1]), "netdyno-rank 0123");
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    say(call_master(argv[1]), long_text);
    close(call_master(argv[1]));
    for (nth = 0; nth < 100; nth++)
        last = call_master(argv[1]);
    if (fork() == 0) {
        while (read(last, &nothing, 1) > 0)
            ;
        _exit(0);
    }
    return start_processes(nproc, argv);
}

static amudp_spawnfn_t function(const char *name)
{
    if (strcmp(name, "own") == 0)
        return own;
    if (strcmp(name, "zero") == 0)
        return zero;
    if (strcmp(name, "few") == 0)
        return too_few;
    if (strcmp(name, "many") == 0)
        return too_many;
    if (strcmp(name, "here") == 0)
        return here;
    if (strcmp(name, "ssh") == 0)
        return by_ssh;
    if (strcmp(name, "strangers") == 0)
        return strangers;
    if (strcmp(name, "later") == 0)
        return (amudp_spawnfn_t)(void (*)(void))later;
    if (strcmp(name, "rexec") == 0)
        return AMUDP_SPMDRexecSpawn;
    return strcmp(name, "glunix") == 0 ? AMUDP_SPMDGlunixSpawn : NULL;
}

int main(int argc, char **argv)
{
    const char *by = getenv("BY");
    char *const program = argv[0];
    int count = argc, nth, is_worker = AMX_SPMDIsWorker(argv);
    uint64_t id;
    /* Not a way to start ranks from here. */
    CHECK(AMUDP_SPMDLocalSpawn(1, argc, argv) == 0);
    AMX_VerboseErrors = 1;
    if (by == NULL) {
        if (AMX_SPMDStartup(&argc, &argv, 0, &id, &bundle, &endpoint) != AM_OK)
            return 3;
    } else {
        expected = argc > 1 ? atoi(argv[1]) : 0;
        if (AMUDP_SPMDStartup(&argc, &argv, expected, 0, function(by), &id, &bundle, &endpoint) != AM_OK)
            return 3;
    }
    CHECK(is_worker && AMX_SPMDIsWorker(argv) && AMX_SPMDIsWorker(NULL));
    CHECK(argv[0] == program && argc == count - 1 && argv[argc] == NULL);
    AMX_VerboseErrors = 0;
    CHECK(AMX_SPMDStartup(&argc, &argv, 0, &id, &bundle, &endpoint) == AM_ERR_RESOURCE);
    me = AMX_SPMDMyProc();
    if (me == 0) {
        printf("%d ranks:", AMX_SPMDNumProcs());
        for (nth = 1; nth < argc; nth++)
            printf(" [%s]", argv[nth]);
        printf("\n");
        fflush(stdout);
    }
    OK(AMX_SPMDBarrier());
    nth = by == NULL ? 1 : 2;
    if (strcmp(argv[nth], "fail") == 0 && me == 0)
        AMX_SPMDExit(5);
    if (strcmp(argv[nth], "kill") == 0 && me == 1)
        raise(SIGKILL);
    if (strcmp(argv[nth], "leave") == 0 && me == 1)
        _exit(6);
    if (strcmp(argv[nth], "quit") == 0 && me == 1)
        exit(6);
    if (strcmp(argv[nth], "compute") == 0)
        for (;;)
            pause();
    while (strcmp(argv[nth], "word") != 0)
        OK(AM_Poll(bundle));
    OK(AMX_SPMDBarrier());
    AMX_SPMDExit(0);
    return 7;
}
