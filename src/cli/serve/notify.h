/*
 * cli/serve/notify.h: the protocols of systemd, without its library. See sd_notify(3), sd_listen_fds(3).
 */
#ifndef HF_CLI_SERVE_NOTIFY_H
#define HF_CLI_SERVE_NOTIFY_H

#include "cli/frame/options/options.h"

enum { NOTIFY_SOCKETS_MAX = 16 }; /* that are taken over */

/*
 * Send lines such as "READY=1\nSTATUS=..." to the socket that NOTIFY_SOCKET names. Returns 1 when
 * they were sent, 0 when nobody asked, -1 with errno when they could not be. Any thread.
 */
int hf__notify_send(const char *notify_socket, const char *lines);

/*
 * How often WATCHDOG=1 is to be sent: half of what WATCHDOG_USEC allows. 0: nobody watches, or
 * somebody watches another process.
 */
uint64_t hf__notify_watchdog_ms(options_env_fn *env);

struct notify_sockets {
    int fds[NOTIFY_SOCKETS_MAX];
    size_t len;
    bool open;           /* one of them is not on loopback */
    struct hf_str error; /* why they cannot be used */
};

/*
 * The sockets that were handed over to this process, from `first` on (3 outside of tests). They
 * are set to close on exec. False with .error when they are not what a server can listen on.
 */
bool hf__notify_sockets(struct hf_scope *s, options_env_fn *env, int first,
                        struct notify_sockets *sockets);

#endif
