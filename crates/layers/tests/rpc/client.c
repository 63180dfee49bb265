/* Calls the program of docs/rpc.md by way of libtirpc, as rpcinfo does.
 *
 * client udp|tcp PORT: prints a line for each call. */

#include <rpc/rpc.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM 0x2064796e

struct data {
    u_int len;
    char *bytes;
};

static bool_t xdr_data(XDR *xdrs, struct data *data) {
    return xdr_bytes(xdrs, &data->bytes, &data->len, ~0u);
}

static CLIENT *client(int is_tcp, int port, u_long program, u_long version) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval wait = {2, 0};
    int sock = RPC_ANYSOCK;
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    return is_tcp ? clnttcp_create(&to, program, version, &sock, 0, 0)
                  : clntudp_create(&to, program, version, wait, &sock);
}

static enum clnt_stat null(CLIENT *to) {
    struct timeval all = {10, 0};
    return clnt_call(to, 0, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, all);
}

int main(int argc, char **argv) {
    int is_tcp = argc == 3 && strcmp(argv[1], "tcp") == 0;
    int port = argc == 3 ? atoi(argv[2]) : 0;
    struct timeval all = {10, 0};
    char text[] = "hello";
    struct data sent = {5, text}, got = {0, NULL};
    struct rpc_err error;

    CLIENT *good = client(is_tcp, port, PROGRAM, 1);
    if (good == NULL)
        return 1;
    printf("NULL: %s\n", clnt_sperrno(null(good)));
    enum clnt_stat status =
        clnt_call(good, 1, (xdrproc_t)xdr_data, (char *)&sent, (xdrproc_t)xdr_data, (char *)&got, all);
    printf("echo: %s, %.*s\n", clnt_sperrno(status), (int)got.len, got.bytes);
    status = clnt_call(good, 9, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, all);
    printf("procedure 9: %s\n", clnt_sperrno(status));
    status = clnt_call(good, 1, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, all);
    printf("no argument: %s\n", clnt_sperrno(status));

    CLIENT *other = client(is_tcp, port, PROGRAM, 0);
    status = null(other);
    clnt_geterr(other, &error);
    printf("version 0: %d, %lu to %lu\n", status == RPC_PROGVERSMISMATCH, (u_long)error.re_vers.low,
           (u_long)error.re_vers.high);
    printf("program: %d\n", null(client(is_tcp, port, PROGRAM + 1, 1)) == RPC_PROGUNAVAIL);
    good->cl_auth = authunix_create_default();
    status = null(good);
    clnt_geterr(good, &error);
    printf("AUTH_SYS: %d, %d\n", status == RPC_AUTHERROR, (int)error.re_why);
    return 0;
}
