/*
 * server/server.h: a database behind DynamoDB's wire protocol.
 *
 *     hf__server_open(s, db, &options, &server);     listens from here on
 *     hf__server_run(s, server);                     until a signal or hf__server_stop()
 *     hf__server_close(server);
 */
#ifndef HF_SERVER_SERVER_H
#define HF_SERVER_SERVER_H

#include <holdfast/db.h>

#include <stdatomic.h>

#include "base/base.h"
#include "http/sign.h"
#include "server/profile.h"

struct server;

/* A clock that can be moved: whoever opens the database adds the offset to its env's clock. */
struct server_clock {
    _Atomic int64_t offset_us;
};

struct server_options {
    const struct hf_env *env; /* memory, clocks, log; default: the system's */
    struct hf_str host;       /* address to listen on; default 127.0.0.1; localhost: ::1 as well */
    uint16_t port;            /* 0: any free one, which hf__server_port() returns */
    const int *sockets;       /* listening already, instead of host and port */
    size_t sockets_len;
    uint32_t loops;           /* default: one per core that we may use */
    uint32_t connections_max; /* default 10,000 */
    uint64_t memory_max; /* bytes of requests and answers together; default 256 MiB, or a quarter
                            of the memory that there is when that is less */
    uint64_t input_max;  /* of those, for unfinished requests; default half */
    uint32_t workers;    /* threads for requests that may take long; default as loops, at least 2 */
    uint32_t head_ms;    /* time for a request's head; default 10,000 */
    uint32_t body_ms;    /* time for the whole request; default 60,000 */
    uint32_t idle_ms;    /* between two requests; default 300,000 */
    uint32_t drain_ms;   /* for requests under way when stopping; default 5,000 */
    bool sync_beside;    /* the database syncs, which takes long: wait beside the loops */
    struct hf_str region;                /* that signatures may name; absent: any */
    const struct sign_credentials *keys; /* who may call; none: anybody, on loopback only */
    size_t keys_len;
    bool open_to_all;           /* without keys, listen beyond loopback all the same */
    uint32_t clock_window_s;    /* a signature's time may be off by this; default 300 */
    const struct hf_str *hosts; /* names besides the address that Host may have */
    size_t hosts_len;
    struct hf_str cors;          /* origins that browsers may call from: "*" or a list with commas;
                                     absent: none */
    struct hf_str certificate;   /* path of a PEM chain; absent: no TLS */
    struct hf_str private_key;   /* path of its key */
    bool admin;                  /* offer /_holdfast/: `db` comes from hf_faulty_open() */
    struct hf_db *engine;        /* for admin: the database in `db` */
    struct server_clock *clock;  /* for admin: the clock of that database */
    bool access_log;             /* a line per request */
    enum server_profile profile; /* which database's operations there are */
    bool console;                /* offer /console/ */
    struct hf_str console_dir;   /* read its files from there, instead of those that are built in */
    struct hf_str database;      /* what the console shows as the URL of the database */
    struct hf_str region_shown;  /* and as its region */
    bool read_only;              /* writes are refused by the database */
    bool remote;                 /* the database is not an engine in this process */
    bool in_memory;              /* the database is gone when it is closed */
    struct hf_str data_dir;      /* of the database; absent: none */
    const char *const *methods;  /* calls of patterns, until NULL; absent: none. Not copied. */
    /* Call one of them, with JSON. *result is JSON in the scope: the result, or the error with its
     * code, message, retryable and may_have_happened. Many threads at once. */
    enum hf_status (*call)(struct hf_scope *s, void *user, struct hf_str method, struct hf_str json,
                           struct hf_str *result);
    void *call_user;
    bool signals;                 /* SIGTERM and SIGINT stop, SIGHUP reloads certificates: the
                                     caller has all three blocked, in each of its threads */
    void (*on_ready)(void *user); /* called by hf__server_run() when requests are served */
    void (*on_stop)(void *user);  /* ... and when it begins to stop */
    void *user;
};

/* Listen. HF_INVALID: invalid options; HF_IO: the address is not available. */
enum hf_status hf__server_open(struct hf_scope *s, struct hf_db *db,
                               const struct server_options *options, struct server **server);

/* Serve until a stop is requested, then finish what is under way. */
enum hf_status hf__server_run(struct hf_scope *s, struct server *server);

/* Begin to stop. Any thread; also before hf__server_run(). */
void hf__server_stop(struct server *server);

/* Where it listens: the first socket's port. */
uint16_t hf__server_port(const struct server *server);

void hf__server_close(struct server *server);

#endif
