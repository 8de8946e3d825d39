/* cli/notify_test.c: systemd's protocols, with real sockets. */
#include "cli/serve/notify.h"
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- notification --------------------------------------------------------------------------- */

/* A socket that listens like systemd; `name` as in NOTIFY_SOCKET. */
static int listener(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    memcpy(address.sun_path, name, len);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    CHECK(bind(fd, (struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] == '/'))) == 0);
    return fd;
}

static void check_datagram(int fd, const char *expected)
{
    char room[200];
    ssize_t len = recv(fd, room, sizeof(room), MSG_DONTWAIT);

    CHECK(len >= 0);
    CHECK_STR(expected, hf_str_of(room, (size_t)len));
}

TEST(notify, a_path)
{
    char name[100];
    int fd;

    snprintf(name, sizeof(name), "%s/notify", test_directory(t));
    fd = listener(name);
    CHECK_INT(1, hf__notify_send(name, "READY=1\nSTATUS=here"));
    check_datagram(fd, "READY=1\nSTATUS=here");
    CHECK_INT(1, hf__notify_send(name, "STOPPING=1"));
    check_datagram(fd, "STOPPING=1");
    close(fd);
    CHECK_INT(-1, hf__notify_send(name, "READY=1"));
    CHECK_INT(ECONNREFUSED, errno);
}

TEST(notify, a_name_without_a_file)
{
    char name[64];
    int fd;

    snprintf(name, sizeof(name), "@holdfast-test-%ld", (long)getpid());
    fd = listener(name);
    CHECK_INT(1, hf__notify_send(name, "WATCHDOG=1"));
    check_datagram(fd, "WATCHDOG=1");
    close(fd);
}

TEST(notify, nobody_asked_or_nobody_is_there)
{
    char name[200];

    CHECK_INT(0, hf__notify_send(NULL, "READY=1"));
    CHECK_INT(0, hf__notify_send("", "READY=1"));
    CHECK_INT(-1, hf__notify_send("relative", "READY=1"));
    CHECK_INT(EINVAL, errno);
    CHECK_INT(-1, hf__notify_send("@", "READY=1"));
    memset(name, 'a', sizeof(name));
    name[0] = '/';
    name[sizeof(name) - 1] = '\0';
    CHECK_INT(-1, hf__notify_send(name, "READY=1"));
    CHECK_INT(EINVAL, errno);
}

/* ---- variables ------------------------------------------------------------------------------ */

/* The tests set real variables; this reads them as the command does. */
static const char *variable(const char *name)
{
    return getenv(name);
}

static void set(const char *name, const char *value)
{
    CHECK((value ? setenv(name, value, 1) : unsetenv(name)) == 0);
}

static void set_self(const char *name)
{
    char pid[32];

    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    set(name, pid);
}

TEST(notify, watchdog)
{
    set("WATCHDOG_PID", NULL);
    set("WATCHDOG_USEC", NULL);
    CHECK_INT(0, hf__notify_watchdog_ms(variable));
    set("WATCHDOG_USEC", "30000000");
    CHECK_INT(15000, hf__notify_watchdog_ms(variable));
    set_self("WATCHDOG_PID");
    CHECK_INT(15000, hf__notify_watchdog_ms(variable));
    set("WATCHDOG_PID", "1");
    CHECK_INT(0, hf__notify_watchdog_ms(variable));
    set("WATCHDOG_PID", NULL);
    set("WATCHDOG_USEC", "10");
    CHECK_INT(1, hf__notify_watchdog_ms(variable));
    set("WATCHDOG_USEC", "x");
    CHECK_INT(0, hf__notify_watchdog_ms(variable));
    set("WATCHDOG_USEC", "0");
    CHECK_INT(0, hf__notify_watchdog_ms(variable));
    set("WATCHDOG_USEC", NULL);
}

/* ---- sockets -------------------------------------------------------------------------------- */

enum { FIRST = 200 }; /* descriptors of the tests, where nothing else is */

static void place(int fd, int at)
{
    CHECK(dup2(fd, at) == at);
    close(fd);
}

static void listening(int at, uint32_t address, bool listens)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(bind(fd, (struct sockaddr *)&in4, sizeof(in4)) == 0);
    if (listens)
        CHECK(listen(fd, 1) == 0);
    place(fd, at);
}

static void check_refused(struct hf_scope *s, const char *error)
{
    struct notify_sockets sockets;

    CHECK(!hf__notify_sockets(s, variable, FIRST, &sockets));
    CHECK_STR(error, sockets.error);
}

TEST(notify, sockets_are_taken_over)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct notify_sockets sockets;

    set("LISTEN_FDS", NULL);
    set("LISTEN_PID", NULL);
    CHECK(hf__notify_sockets(s, variable, FIRST, &sockets) && sockets.len == 0);
    listening(FIRST, INADDR_LOOPBACK, true);
    set("LISTEN_FDS", "1");
    CHECK(hf__notify_sockets(s, variable, FIRST, &sockets) && sockets.len == 0); /* whose? */
    set("LISTEN_PID", "1");
    CHECK(hf__notify_sockets(s, variable, FIRST, &sockets) && sockets.len == 0);
    set_self("LISTEN_PID");
    CHECK(hf__notify_sockets(s, variable, FIRST, &sockets));
    CHECK_INT(1, sockets.len);
    CHECK_INT(FIRST, sockets.fds[0]);
    CHECK(!sockets.open);
    CHECK(fcntl(FIRST, F_GETFD) & FD_CLOEXEC);
    listening(FIRST + 1, INADDR_ANY, true);
    set("LISTEN_FDS", "2");
    CHECK(hf__notify_sockets(s, variable, FIRST, &sockets));
    CHECK_INT(2, sockets.len);
    CHECK(sockets.open);
    close(FIRST);
    close(FIRST + 1);
    set("LISTEN_FDS", NULL);
    set("LISTEN_PID", NULL);
    hf_scope_free(s);
}

TEST(notify, sockets_that_cannot_be_are_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    int pair[2];

    set_self("LISTEN_PID");
    set("LISTEN_FDS", "x");
    check_refused(s, "LISTEN_FDS: 'x' is not a number from 0 to 16");
    set("LISTEN_FDS", "17");
    check_refused(s, "LISTEN_FDS: '17' is not a number from 0 to 16");
    set("LISTEN_FDS", "1");
    check_refused(s, "file descriptor 200, passed by LISTEN_FDS, is not open");
    CHECK(pipe(pair) == 0);
    close(pair[1]);
    place(pair[0], FIRST);
    check_refused(s, "file descriptor 200, passed by LISTEN_FDS, is not a socket");
    place(socket(AF_INET, SOCK_DGRAM, 0), FIRST);
    check_refused(s, "file descriptor 200, passed by LISTEN_FDS, is not a stream socket");
    listening(FIRST, INADDR_LOOPBACK, false);
    check_refused(s, "file descriptor 200, passed by LISTEN_FDS, is a socket that does not listen "
                     "(does the unit have Accept=yes?)");
    place(socket(AF_UNIX, SOCK_STREAM, 0), FIRST);
    {
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        CHECK(bind(FIRST, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0);
        CHECK(listen(FIRST, 1) == 0);
    }
    check_refused(s, "file descriptor 200, passed by LISTEN_FDS, is not a TCP socket");
    close(FIRST);
    set("LISTEN_FDS", NULL);
    set("LISTEN_PID", NULL);
    hf_scope_free(s);
}
