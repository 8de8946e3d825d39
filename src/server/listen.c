/*
 * server/listen.c: the sockets that the server listens on: those it was given, or one for its host,
 * or two for localhost. Whether all of them are of this machine decides who may use a server without
 * keys.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/private.h"

enum { LISTEN_BACKLOG = 1024, LISTENERS_MAX = 2 /* of a host */ };

static bool is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    if (address->ss_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

        return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
    }
    return address->ss_family == AF_UNIX;
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)address)->sin_port);
    return address->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)address)->sin6_port)
                                          : 0;
}

static enum hf_status add_listener(struct hf_scope *s, struct server *server, int fd, bool ours)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);

    memset(&address, 0, sizeof(address));
    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        return hf__fail(s, HF_IO, "descriptor %d is not a socket: %s", fd, strerror(errno));
    /* Connections inherit it. Unsent bytes stay in our buffers, where they are counted. */
    if (address.ss_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &(int){UNSENT_MAX}, sizeof(int));
    if (!is_loopback(&address))
        server->loopback = false;
    assert(server->listeners_len <
           (server->options.sockets_len ? server->options.sockets_len : LISTENERS_MAX));
    if (server->listeners_len == 0)
        server->port = port_of(&address);
    server->listeners[server->listeners_len++] =
        (struct listener){.server = server, .fd = fd, .ours = ours};
    return HF_OK;
}

static int listen_at(const struct addrinfo *info)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    int error;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (info->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Listen on the first address of the host that is available. A name may have several. */
static enum hf_status listen_host(struct hf_scope *s, struct server *server, struct hf_str host)
{
    const struct server_options *o = &server->options;
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char port[8];
    int fd = -1, error;

    snprintf(port, sizeof(port), "%u", (unsigned)o->port);
    error = getaddrinfo(host.ptr, port, &hints, &found);
    if (error != 0)
        return hf__fail(s, HF_INVALID, "invalid listen address %.*s: %s", HF_FMT(host),
                        gai_strerror(error));
    for (const struct addrinfo *info = found; info && fd < 0; info = info->ai_next)
        fd = listen_at(info);
    error = errno;
    freeaddrinfo(found);
    if (fd < 0)
        return hf__fail(s, HF_IO, "cannot listen on %.*s port %s: %s", HF_FMT(host), port,
                        strerror(error));
    return add_listener(s, server, fd, true);
}

/*
 * Listen on 127.0.0.1, and on ::1 if there is IPv6: many systems try that first for localhost, and
 * not every client goes on to the next. A port that was requested must be free on both, or clients
 * could reach another server.
 */
static enum hf_status listen_localhost(struct hf_scope *s, struct server *server)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct addrinfo info = {.ai_family = AF_INET6,
                            .ai_addr = (struct sockaddr *)&six,
                            .ai_addrlen = sizeof(six)};
    int fd;

    TRY(listen_host(s, server, HF_STR("127.0.0.1")));
    six.sin6_port = htons(server->port);
    fd = listen_at(&info);
    if (fd >= 0)
        return add_listener(s, server, fd, true);
    if (errno == EADDRINUSE && server->options.port != 0)
        return hf__fail(s, HF_IO, "cannot listen on ::1 port %u: %s", (unsigned)server->port,
                        strerror(errno));
    return HF_OK;
}

enum hf_status hf__listen_open(struct hf_scope *s, struct server *server)
{
    const struct server_options *o = &server->options;

    server->loopback = true;
    server->listeners =
        hf__scope_array(server->memory, o->sockets_len ? o->sockets_len : LISTENERS_MAX,
                        sizeof(*server->listeners));
    if (!server->listeners)
        return hf__fail_nomem(s);
    if (o->sockets_len == 0 && hf_str_equal(o->host, HF_STR("localhost")))
        TRY(listen_localhost(s, server));
    else if (o->sockets_len == 0)
        TRY(listen_host(s, server, o->host));
    for (size_t i = 0; i < o->sockets_len; i++)
        TRY(add_listener(s, server, o->sockets[i], false));
    if (!server->loopback && o->keys_len == 0 && !o->open_to_all)
        return hf__fail(
            s, HF_INVALID,
            "%.*s is reachable from other machines, and without keys anybody there could use the "
            "database: set keys, or listen on 127.0.0.1",
            HF_FMT(o->host));
    return HF_OK;
}
