/*
 * cli/serve/notify.c: telling systemd how we are, and taking over the sockets that it opened for us.
 *
 * Notification is a datagram to the socket in NOTIFY_SOCKET: a path, or a name without a file when
 * it starts with '@'. Each datagram has one or several lines NAME=value.
 *
 * Sockets come as descriptors from 3 on, as many as LISTEN_FDS says, if LISTEN_PID is us: a child
 * inherits the variables but not the sockets. A server can use stream sockets of the internet that
 * listen already; anything else is a mistake in somebody's unit and is refused by name.
 */
#include "cli/serve/notify.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- notification --------------------------------------------------------------------------- */

static bool make_address(const char *name, struct sockaddr_un *address, socklen_t *address_len)
{
    size_t len = strlen(name);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof(address->sun_path))
        return false;
    memcpy(address->sun_path, name, len);
    if (name[0] == '@')
        address->sun_path[0] = '\0';
    /* A path ends with its NUL; a name without a file is as long as it is. */
    *address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] == '/'));
    return true;
}

int hf__notify_send(const char *notify_socket, const char *lines)
{
    struct sockaddr_un address;
    socklen_t address_len;
    size_t len = strlen(lines);
    ssize_t sent;
    int saved;
    int fd;

    if (!notify_socket || !*notify_socket)
        return 0;
    if (!make_address(notify_socket, &address, &address_len)) {
        errno = EINVAL;
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    do
        sent = sendto(fd, lines, len, MSG_NOSIGNAL, (struct sockaddr *)&address, address_len);
    while (sent < 0 && errno == EINTR);
    saved = errno;
    close(fd);
    errno = saved;
    return sent == (ssize_t)len ? 1 : -1;
}

/* Is the process that the variable names us? When it is not set, everybody is. */
static bool is_for_us(const char *pid)
{
    uint64_t number;

    return !pid || (hf__options_number(pid, &number) && number == (uint64_t)getpid());
}

uint64_t hf__notify_watchdog_ms(options_env_fn *env)
{
    const char *usec = env("WATCHDOG_USEC");
    uint64_t number;

    if (!usec || !is_for_us(env("WATCHDOG_PID")) || !hf__options_number(usec, &number) ||
        number == 0)
        return 0;
    number /= 2 * 1000;
    return number ? number : 1;
}

/* ---- sockets -------------------------------------------------------------------------------- */

static bool is_loopback(const struct sockaddr_storage *address)
{
    const struct in6_addr *in6;

    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;

        return ntohl(in4->sin_addr.s_addr) >> 24 == 127;
    }
    in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(in6) || (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
}

/* What is wrong with the socket; NULL: nothing. */
static const char *look_at(int fd, bool *open)
{
    struct sockaddr_storage address = {0};
    socklen_t address_len = sizeof(address);
    int type = 0;
    int listens = 0;
    socklen_t type_len = sizeof(type);
    socklen_t listens_len = sizeof(listens);
    int flags = fcntl(fd, F_GETFD);

    if (flags < 0)
        return "is not open";
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) != 0)
        return "is not a socket";
    if (type != SOCK_STREAM)
        return "is not a stream socket";
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_len) != 0 || !listens)
        return "is a socket that does not listen (does the unit have Accept=yes?)";
    if (getsockname(fd, (struct sockaddr *)&address, &address_len) != 0)
        return "has no address";
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6)
        return "is not a TCP socket";
    if (!is_loopback(&address))
        *open = true;
    fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
    return NULL;
}

bool hf__notify_sockets(struct hf_scope *s, options_env_fn *env, int first,
                        struct notify_sockets *sockets)
{
    const char *count = env("LISTEN_FDS");
    const char *pid = env("LISTEN_PID");
    uint64_t len;

    *sockets = (struct notify_sockets){.len = 0};
    if (!count || !pid || !is_for_us(pid))
        return true;
    if (!hf__options_number(count, &len) || len > NOTIFY_SOCKETS_MAX) {
        sockets->error = hf_scope_format(s, "LISTEN_FDS: '%s' is not a number from 0 to %d", count,
                                         NOTIFY_SOCKETS_MAX);
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        int fd = first + (int)i;
        const char *wrong = look_at(fd, &sockets->open);

        if (wrong) {
            sockets->error =
                hf_scope_format(s, "file descriptor %d, passed by LISTEN_FDS, %s", fd, wrong);
            return false;
        }
        sockets->fds[sockets->len++] = fd;
    }
    return true;
}
