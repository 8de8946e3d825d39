/*
 * server/private.h: the server's own types.
 *
 * A server has loops, one per core, each a thread with its own connections; a request is handled,
 * from its first byte to its last, by the loop that its connection belongs to. What loops share is
 * the database, the options, and a few atomic numbers.
 *
 * One iteration of a loop, in the order in which libuv has it:
 *
 *     idle    what earlier iterations left: requests in BACKLOG, the next parts of large answers
 *     poll    every connection with something to read: read, decode, call, encode. Writes are
 *             applied and not yet synced; what has to be durable is noted in the pending_sync of the connection
 *     check   answers that need no sync are sent; the others wait for one sync (group_commit.c),
 *             beside the loop when it has other connections (syncer.h)
 *
 * What always holds:
 *
 *  (1) An answer leaves only after what it says is as durable as the database promises.
 *  (2) Answers on a connection leave in the order of its requests.
 *  (3) While an answer cannot be sent because its reader is slow, or because it waits for the disk,
 *      no more of that connection's requests are handled: what it can make us keep is bounded.
 *  (4) No request holds a loop for long: what may take long is a worker's (work.h).
 *  (5) A connection is in one state, which only hf__conn_move() changes, by the table of conn.c.
 *  (6) It is closed only by hf__conn_close(), and freed when libuv and its worker are done with it.
 */
#ifndef HF_SERVER_PRIVATE_H
#define HF_SERVER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/base.h"
#include "base/buf.h"
#include "db/db.h"
#include "http/http.h"
#include "server/admin/checker.h"
#include "server/auth.h"
#include "server/conn/budget.h"
#include "server/conn/busy_poll.h"
#include "server/conn/parts.h"
#include "server/conn/syncer.h"
#include "server/conn/work.h"
#include "server/server.h"

enum {
    INPUT_SIZE = 64 * 1024,   /* bytes that one read(2) takes at most */
    INPUT_LEAST = 4 * 1024,   /* and at least, as the length of a head is unknown */
    INPUT_KEEP = 64 * 1024,   /* a larger input buffer of a connection is freed */
    OUTPUT_KEEP = 256 * 1024, /* a larger output buffer of a connection is freed */
    OUTPUT_POOL = 64,         /* buffers that a loop keeps for the next answers */
    /* unsent bytes of a connection at which its pipelined requests wait */
    OUTPUT_PAUSE = 1024 * 1024,
    LOOP_PAUSE = 16 * 1024 * 1024, /* unsent and unsynced bytes at which all requests wait */
    STALL_MS = 500,           /* while others wait for memory: time after which a reader is slow */
    STALL_BYTES = 16 * 1024,  /* unless it takes so much in SWEEP_MS */
    UNSENT_MAX = 256 * 1024,  /* bytes of a connection that the system holds and has not sent */
    PARTS_FROM = 1024 * 1024, /* results of this size are sent in parts */
    READS_MS = 10, /* time of an iteration in which reads of many items may run on the loop */
    READ_MAX = 256 * 1024,  /* bytes of such a read at most */
    HEAD_ROOM = 768,        /* bytes left in front of a body for its head */
    SWEEP_MS = 250,         /* how often time limits are checked */
    DRAIN_IDLE_MS = 100,    /* how long a stop waits for requests that are on their way */
    NEWCOMER_MS = 1000,     /* how long a connection is safe from being closed for a newer one */
    IDLE_SAFE_MS = 10000,   /* the same for one whose last request was answered */
    OLDEST_LOOK = 64,       /* connections that are checked to find one to close */
    LINGER_MS = 1000,       /* how long input is read and dropped before closing */
    ACCEPTS_MAX = 64,       /* connections accepted in one iteration */
    LONG_MS = 50,           /* no request may keep a loop for so long */
    PACK_LOOP = 128 * 1024, /* larger bodies take too long to compress on a loop */
    PACK_MIN = 4 * 1024,    /* larger bodies are compressed if the client accepts that */
    REQUEST_ID = 52         /* characters of x-amzn-RequestId */
};

/* ---- contexts ------------------------------------------------------------------------------- */

/* What a thread handles requests with; loops have one each, and so have workers (work.h). */
struct context {
    struct server *server;
    struct hf_scope *scope; /* of the request being handled */
    struct auth *auth;
    struct metrics *metrics;
    struct hot *hot;
    uint64_t random[2]; /* for request ids */
    int64_t date_s;
    char date[48];               /* of the Date field, for that second */
    char request_id[REQUEST_ID]; /* of the last answer */
    struct tail *tail;           /* where its calls are noted while somebody looks */
    bool worker;                 /* requests may take long here */
};

/* Who may call, as the server's options say: context->auth. */
enum hf_status hf__context_authenticates(struct hf_scope *s, struct context *context);

/* ---- connections ---------------------------------------------------------------------------- */

/* conn.c has a picture of them, and the table of the moves from one to another. */
enum conn_state {
    CONN_NEW,       /* is being opened */
    CONN_HANDSHAKE, /* TLS is not established yet */
    CONN_IDLE,      /* between requests */
    CONN_HEAD,      /* a request has begun, its head is not complete */
    CONN_BODY,      /* its head is complete, its body is not */
    CONN_WATCHING,  /* its answer has no end: more is sent when there is something (watcher.h) */
    CONN_BACKLOG,   /* it has requests that are handled in the next iteration of the loop */
    CONN_READY,     /* it has something to send when this iteration ends */
    CONN_SYNCING,   /* its answers wait for a sync */
    CONN_DELAYED,   /* a fault on purpose keeps its answers back */
    CONN_WORKING,   /* a worker has its request: work.h */
    CONN_SENDING,   /* the reader is slow: the rest of its answers is on its way */
    CONN_NEXT_PART, /* the next part of its answer is to be made */
    CONN_LINGER,    /* all is said; what comes is dropped until the other side ends */
    CONN_CLOSED,    /* is freed when libuv and its worker are done with it */
    CONN_STATES
};

/* Connections in the order in which they got there. */
struct conn_list {
    struct conn *first;
    struct conn *last;
};

struct conn {
    struct loop *loop;
    struct conn *next; /* in loop->conns, as is `previous` */
    struct conn *previous;
    struct conn *list_next; /* in the list of its state, as is `list_previous` */
    struct conn *list_previous;
    uv_tcp_t tcp;
    uv_write_t write;
    struct tls *tls; /* NULL: plain */
    char peer[64];   /* address of the client for the access log; empty until needed */
    enum conn_state state;
    unsigned holders;                     /* number of users: libuv, and a worker */
    uint64_t deadline_ms;                 /* of the state, on the loop's clock; UINT64_MAX: none */
    uint64_t begun_ms;                    /* when the request began, or the handshake */
    uint64_t opened_ms;                   /* when the connection was opened */
    struct http_reader *partial;          /* of a request that is not complete; NULL: none */
    struct hf__buf in;                    /* its bytes, and those behind it */
    uint64_t counted;                     /* bytes of it that are in the budget's input */
    struct hf__buf out;                   /* answers that are not sent */
    size_t out_begin;                     /* where they begin in `out` */
    uint32_t answers;                     /* in `out` */
    struct watcher *watcher;              /* its answer has no end; NULL: it has */
    struct parts *parts;                  /* the rest of an answer, not made yet; NULL: none */
    uint64_t held;                        /* bytes that are in the budget's output */
    size_t pending;                       /* bytes of `out` that are in loop->pending */
    struct hf__pending_sync pending_sync; /* what has to happen before `out` leaves */
    uint64_t sync_began_ns;               /* of SYNCING: since when */
    uint64_t due_ms;                      /* of DELAYED: until when */
    uint64_t moved_ms;                    /* of SENDING: when the reader last took something, */
    size_t queued;                        /* and how much was left then */
    atomic_bool gone;                     /* closed: workers see that nobody waits for the answer */
    bool asked;                           /* a whole request has come on it */
    bool continued;                       /* "100 Continue" was sent for the partial request */
    bool for_worker;  /* the request that comes next takes too long for a loop */
    bool unread;      /* `in` has bytes that are not parsed yet */
    bool paused;      /* nothing is read from the socket */
    bool ended;       /* the other side sends no more */
    bool close_after; /* nothing more is handled; close when `out` is sent */
};

/* ---- conn.c: states ------------------------------------------------------------------------- */

/* Is that move in the table? */
bool hf__conn_may_move(enum conn_state from, enum conn_state to);
/* The only way from one state to another: aborts when the move is not in the table. What the new
 * state says about the connection must be true by now. */
void hf__conn_move(struct conn *conn, enum conn_state to);
/* It has something to send: move to READY, unless that leaves with what is being sent. */
void hf__conn_ready(struct conn *conn);
/* Back to reading: HANDSHAKE, IDLE, HEAD or BODY, by what has come so far. */
void hf__conn_read_on(struct conn *conn);
/* Everything is sent: end our side, and drop what the client still sends. */
void hf__conn_linger(struct conn *conn);
void hf__conn_close(struct conn *conn);
/* Libuv or the worker is done with it; the last one frees it. */
void hf__conn_unhold(struct conn *conn);
/* Stop reading from the socket; and start again. False: that failed, and it is closed. */
void hf__conn_pause(struct conn *conn);
bool hf__conn_resume(struct conn *conn);
/* Forget the bytes that were read. */
void hf__conn_drop_partial(struct conn *conn);
void hf__conn_drop_input(struct conn *conn);

/* ---- conn_read.c: bytes in ------------------------------------------------------------------ */

/* Bytes of requests, decrypted. They may be changed in place. */
void hf__conn_consume(struct conn *conn, uint8_t *bytes, size_t len);
/* What libuv calls. */
void hf__conn_on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf);
void hf__conn_on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf);
/* Before a loop polls: handle what is in BACKLOG, and make the parts that are next. */
void hf__conn_on_idle(uv_idle_t *idle);

/* ---- conn_send.c: answers out --------------------------------------------------------------- */

/* Its answers may leave: send them, or hold them back as long as a fault demands. */
void hf__conn_deliver(struct conn *conn);
/* A worker is done with its request. */
void hf__conn_worked(struct conn *conn);
/* Make the next part for all that are in NEXT_PART, while there is time. */
void hf__conn_send_parts(struct loop *loop);
/* Release its output buffer, and the share of the budget for it. */
void hf__conn_drop_output(struct conn *conn);
void hf__conn_drop_parts(struct conn *conn);
/* Close the connection of the loop that has waited longest for its reader, for so long at least.
 * False: there is none. */
bool hf__conn_evict(struct loop *loop, uint64_t ms);

/* ---- conn_limits.c: which connections there are ---------------------------------------------- */

/* Is there room for another connection, or a connection of this loop that could be closed for it? */
bool hf__conn_has_place(struct loop *loop);
void hf__conn_open(struct loop *loop, int fd);
void hf__conn_turn_away(struct loop *loop, int fd);
/* The server stops: close the connections that wait for nothing. */
void hf__conn_drain(struct loop *loop);
/* ... and all the others too. */
void hf__conn_cut(struct loop *loop);

/* ---- group_commit.c: what waits for a sync --------------------------------------------------- */

/* At the end of an iteration: send what is READY; answers that must be durable wait for one sync.
 */
void hf__group_commit_flush(struct loop *loop);
/* The syncer has finished a sync: send what waited for that. */
void hf__group_commit_synced(struct loop *loop);

/* ---- loops ---------------------------------------------------------------------------------- */

/* A socket that was accepted. */
struct incoming {
    int fd;
    size_t asked; /* loops that could not make place for it */
};

struct loop {
    struct server *server;
    size_t number;
    uv_loop_t uv;
    uv_check_t check;
    uv_idle_t idle; /* runs while a connection is in BACKLOG or NEXT_PART */
    struct busy_poll busy_poll;
    uv_timer_t sweep;  /* runs while there are connections */
    uv_timer_t delay;  /* runs while a connection is DELAYED */
    uv_async_t wake;   /* there are connections to take over, or the server stops */
    uv_async_t synced; /* the syncer has finished a sync */
    uv_async_t worked; /* a worker is done with something */
    uv_async_t news;   /* there is something for those who watch */
    struct watcher *watchers;
    pthread_t thread;
    struct context context;
    struct conn *conns; /* the newest first */
    struct conn *oldest;
    struct conn_list lists[CONN_STATES]; /* of the states in which a connection is busy */
    uint32_t moves[CONN_STATES];         /* DEV_CHECKS: the moves that were made, as bits */
    atomic_bool awaits_sync; /* a connection is SYNCING, or was until now; for the syncer */
    size_t pending;          /* bytes of answers that wait for the end of the iteration or a sync */
    uint64_t reads_began_ns; /* the first read of many items in this iteration; 0: none yet */
    struct http_reader reader;
    uint8_t *input;
    struct hf__buf pool[OUTPUT_POOL];
    size_t pool_len;
    bool draining;
    uint64_t drain_ms; /* when what is left is cut off */
    atomic_uint conns_len;
    pthread_mutex_t lock; /* guards the sockets to take over, and the list of workers' jobs */
    struct job *done;     /* what workers are done with */
    struct incoming *incoming;
    size_t incoming_len;
    size_t incoming_cap;
};

struct listener {
    struct server *server;
    uv_poll_t poll;
    int fd;
    bool paused; /* out of descriptors; the sweep tries again */
    bool ours;   /* to close */
};

struct server {
    struct server_options options;
    struct hf_env env;
    struct hf_db *db;        /* executes the requests */
    struct hf_db *engine;    /* the embedded database in it: for statistics and maintenance */
    struct hf_scope *memory; /* of what lives as long as the server */
    struct loop *loops;
    size_t loops_len;
    struct listener *listeners;
    size_t listeners_len;
    uv_timer_t retry;  /* of paused listeners */
    uv_poll_t signals; /* with the option only */
    int signals_fd;    /* -1: not open */
    uint16_t port;
    bool loopback; /* every socket is on loopback */
    atomic_bool stopping;
    atomic_bool hurry; /* stop without waiting for anybody */
    atomic_uint conns_len;
    struct budget budget;
    struct work work;
    struct tls_context *tls;
    struct syncer syncer;        /* while it runs, with the option only */
    struct metrics *metrics;     /* one per loop and worker */
    struct hot *hot;             /* the same */
    struct snapshots *snapshots; /* NULL: of /_holdfast/ only the check is offered */
    struct checker checker;
    struct figures *figures; /* with the console; else NULL */
    struct tail *tails;      /* one per loop and worker, with the console */
    atomic_bool tailed;      /* somebody looks at them */
};

/* An answer is on its way, or requests wait to be handled. These states have lists. */
static inline bool conn_state_is_busy(enum conn_state state)
{
    return state >= CONN_BACKLOG && state <= CONN_NEXT_PART;
}

static inline bool conn_is_busy(const struct conn *conn)
{
    return conn_state_is_busy(conn->state);
}

static inline struct conn *conn_of(uv_stream_t *stream)
{
    return stream->data;
}

/* ---- listen.c: sockets ---------------------------------------------------------------------- */

/* Make the listeners of the server, and learn its port and whether all are of this machine. What was
 * opened before a failure is closed with the server. */
enum hf_status hf__listen_open(struct hf_scope *s, struct server *server);

/* ---- answers -------------------------------------------------------------------------------- */

extern const struct hf_str hf__type_json_1_0;
extern const struct hf_str hf__type_json;
extern const struct hf_str hf__type_text;

/* A request while it is answered: how it wants its answer, and what is known about it. */
struct answer {
    struct conn *conn;
    struct context *context;
    const struct http_head *head; /* NULL: the request could not be read */
    struct hf_str type;           /* Content-Type; absent: none */
    struct hf_str fields;         /* more header fields, each with its CR LF; mostly absent */
    bool no_crc;                  /* no x-amz-crc32: the path is not DynamoDB's */
    bool packed;                  /* the body is packed with gzip already */
    bool endless;                 /* it has no length: more follows until the connection ends */
    bool as_is;                   /* the body is sent as it is */
    size_t begin;                 /* where the body starts in conn->out */
    uint64_t begun_ns;            /* when the request was there, for the access log */
    struct hf_str operation;      /* for the access log; absent: none */
};

/* Begin an answer: returns the buffer that its body goes to. */
struct hf__buf *hf__answer_begin(struct answer *answer);
/* The body is written: put the head in front of it. */
void hf__answer_end(struct answer *answer, int status);
/* The body is written, and compressing it would take long: it is dropped, and a worker repeats the
 * request. Only for requests that may be repeated. */
bool hf__answer_too_long(struct answer *answer);
/* The body will be made in parts: put the head there. The parts are the connection's from now on.
 */
void hf__answer_parts(struct answer *answer, int status, struct parts *parts);
/* More of an answer that has no end, for a connection that has nothing to send. */
void hf__answer_more(struct conn *conn, struct hf_str text);
/* The address of the client, for the log: found on the loop, and kept. */
const char *hf__answer_peer(struct conn *conn);
/* All of it, for a body that is there. */
void hf__answer_text(struct answer *answer, int status, struct hf_str body);

/* ---- requests ------------------------------------------------------------------------------- */

/* Handle one complete request; or one that could not be read. */
void hf__route_request(struct context *context, struct conn *conn,
                       const struct http_reader *reader);
void hf__route_bad(struct conn *conn, const struct http_reader *reader);

/* An operation: the body of POST /. */
void hf__call_handle(struct answer *answer, struct hf_bytes body);

/* The HTTP status of an error: 400 or 500. */
int hf__call_status(enum hf_status status);

/* Refuse before anything is called: 403, 413 or 503. In JSON, as the SDKs read nothing else. */
void hf__call_refuse(struct answer *answer, int status, struct hf_str message);

/* The waiting answers could not be made durable: replace them by errors. */
void hf__call_lost(struct conn *conn, const struct hf_error *error);

/* ---- access.c: who may ask at all ----------------------------------------------------------- */

/* Is the Host field one of our names? The page of a name that was made to point here has another.
 */
bool hf__access_host(const struct server *server, struct hf_str host);
/* May a page of that origin read our answers? `host` is what the request was sent to. */
bool hf__access_origin(const struct server *server, struct hf_str origin, struct hf_str host);
/* Is it a page of our own? */
bool hf__access_own(const struct server *server, struct hf_str origin, struct hf_str host);
/* The CORS fields of an answer to that origin, in the scope. */
struct hf_str hf__access_fields(struct hf_scope *s, const struct server *server,
                                struct hf_str origin);

#endif
