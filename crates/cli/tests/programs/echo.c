/* A server of the program in docs/rpc.md by way of libtirpc, one call after the other.
 *
 * echo udp|tcp: prints its port, and serves until it is killed. */

#include <rpc/rpc.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define PROGRAM 0x2064796e
#define LARGEST 8192

struct data {
    u_int len;
    char *bytes;
};

struct transfer {
    u_int reply_bytes;
    struct data data;
};

static bool_t xdr_data(XDR *xdrs, struct data *data) {
    return xdr_bytes(xdrs, &data->bytes, &data->len, LARGEST);
}

static bool_t xdr_transfer(XDR *xdrs, struct transfer *transfer) {
    return xdr_u_int(xdrs, &transfer->reply_bytes) && transfer->reply_bytes <= LARGEST &&
           xdr_data(xdrs, &transfer->data);
}

static void serve(struct svc_req *call, SVCXPRT *to) {
    static char zeros[LARGEST];
    struct transfer got = {0, {0, NULL}};
    struct data reply;
    switch (call->rq_proc) {
    case 0:
        svc_sendreply(to, (xdrproc_t)xdr_void, NULL);
        break;
    case 1:
        if (!svc_getargs(to, (xdrproc_t)xdr_data, (char *)&got.data)) {
            svcerr_decode(to);
            break;
        }
        svc_sendreply(to, (xdrproc_t)xdr_data, (char *)&got.data);
        svc_freeargs(to, (xdrproc_t)xdr_data, (char *)&got.data);
        break;
    case 2:
        if (!svc_getargs(to, (xdrproc_t)xdr_transfer, (char *)&got)) {
            svcerr_decode(to);
            break;
        }
        reply = (struct data){got.reply_bytes, zeros};
        svc_sendreply(to, (xdrproc_t)xdr_data, (char *)&reply);
        svc_freeargs(to, (xdrproc_t)xdr_transfer, (char *)&got);
        break;
    default:
        svcerr_noproc(to);
    }
}

int main(int argc, char **argv) {
    int is_tcp = argc == 2 && strcmp(argv[1], "tcp") == 0;
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    int sock = socket(AF_INET, is_tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    if (bind(sock, (struct sockaddr *)&at, sizeof at) != 0 ||
        getsockname(sock, (struct sockaddr *)&at, &len) != 0 || (is_tcp && listen(sock, 8) != 0))
        return 1;
    /* The last argument is no protocol, so that the program is not registered with rpcbind. */
    SVCXPRT *to = is_tcp ? svctcp_create(sock, 0, 0) : svcudp_bufcreate(sock, 2 * LARGEST, 2 * LARGEST);
    if (to == NULL || !svc_register(to, PROGRAM, 1, serve, 0))
        return 1;
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    svc_run();
    return 1;
}
