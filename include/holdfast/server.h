/*
 * A server in your program: every SDK, the holdfast command and a browser can use the database that
 * it has open. Link libholdfast-server.
 *
 *     struct hf_server *server;
 *     if (hf_server_open(s, db, NULL, &server) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     printf("look at it: %s/console/\n", hf_server_url(server).ptr);
 *     ...                                  // the program goes on using the database itself
 *     hf_server_close(server);             // before the database
 *
 * The server has threads of its own. It listens on this machine only, unless there are keys.
 * For an embedded database on disk, `holdfast --db embedded:DIR` finds out where the directory is
 * served while the program has it locked.
 */
#ifndef HOLDFAST_SERVER_H
#define HOLDFAST_SERVER_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/env.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_server; /* any thread may use it, one closes it */

struct hf_server_key {
    struct hf_str access_key;
    struct hf_str secret_key;
    uint64_t reserved[2];
};

struct hf_server_options {
    size_t size;              /* set by HF_OPTIONS(), so that the struct can grow */
    const struct hf_env *env; /* memory, clocks, log; copied; default: the system's */
    struct hf_str host;       /* address to listen on; default 127.0.0.1 */
    uint16_t port;            /* default: a free one, which hf_server_port() returns */
    struct hf_str socket;     /* path of a Unix socket, instead of host and port; made and removed.
                                 Only its owner may connect */
    bool read_only;           /* calls that write fail with HF_DENIED */
    bool no_console;          /* without the page at /console/ */
    const struct hf_server_key *keys; /* who may call; default: anybody on this machine */
    size_t keys_len;
    struct hf_str region; /* that the console shows and signs for; default us-east-1 */
    struct hf_str name;   /* what the console calls the database; default: its directory */
    uint32_t threads; /* event loops; default 1. Long requests have worker threads of their own */
    uint32_t stop_ms; /* time limit for requests under way when it stops; default 5000 */
};

/*
 * Serve `db`, which has to stay open until hf_server_close(). When this returns, requests are accepted.
 * On failure *server is NULL.
 *
 * HF_INVALID  the database is NULL; host and socket are both given; the address can be reached from
 *             other machines and there are no keys; a key is empty
 * HF_IO       the address is in use or not available
 * HF_NOMEM, HF_LIMIT: of the system
 *
 * Blocks. Since 0.1.
 */
HF_API HF_NODISCARD enum hf_status hf_server_open(struct hf_scope *s, struct hf_db *db,
                                                  const struct hf_server_options *options,
                                                  struct hf_server **server);

/* Its port; 0 for a Unix socket. Since 0.1. */
HF_API uint16_t hf_server_port(const struct hf_server *server);

/* Its URL, such as "http://127.0.0.1:8000", with a NUL behind it; "unix:PATH" for a Unix socket.
 * Until hf_server_close(). Since 0.1. */
HF_API struct hf_str hf_server_url(const struct hf_server *server);

/* Begin to stop: new connections are refused, requests under way finish. Does not wait. Any thread,
 * any number of times. Since 0.1. */
HF_API void hf_server_stop(struct hf_server *server);

/* Stop, wait for the end and free it. The database stays open. NULL is accepted. Blocks, for stop_ms
 * and little more at most. Since 0.1. */
HF_API void hf_server_close(struct hf_server *server);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
