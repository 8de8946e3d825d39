/*
 * http/transport.h: one HTTP/1.1 request over the network and its answer, for the client, for the
 * sources of credentials, and for every service that is spoken to over HTTP.
 *
 * libcurl makes the connections (names, proxies, TLS) and carries bytes; what is written on them is
 * ours, so it is known exactly how much of a request has left, nothing is ever sent twice behind
 * our back, and a deadline is a deadline. Connections are kept and used again.
 *
 *     TRY(hf__transport_open(s, &options, &transport));
 *     head.method = ...; head.target = ...; head.fields = ... with Host
 *     TRY(hf__transport_call(s, transport, &(struct transport_call){...}, &answer));
 *     ... answer.status, answer.body ...
 *
 * Any number of threads use a transport.
 */
#ifndef HF_HTTP_TRANSPORT_H
#define HF_HTTP_TRANSPORT_H

#include "base/base.h"
#include "http/http.h"

struct transport;

struct transport_options {
    const struct hf_env *env;  /* copied */
    uint32_t connect_ms;       /* default 1000 */
    uint32_t idle_ms;          /* a connection unused for longer is not used again; default 20000 */
    uint32_t idle_max;         /* connections kept while idle; default 64 */
    struct hf_str ca_file;     /* PEM; absent: the system's */
    struct hf_str http_proxy;  /* URL of a proxy to http: origins; absent: none */
    struct hf_str https_proxy; /* the same to https: origins */
    struct hf_str no_proxy;    /* hosts that are reached without one, as in NO_PROXY */
    bool insecure;             /* do not verify certificates */
};

/* HF_INVALID when a text has a NUL in it; HF_NOMEM; HF_INTERNAL when libcurl cannot be used. */
enum hf_status hf__transport_open(struct hf_scope *s, const struct transport_options *options,
                                  struct transport **transport);

/* No call may be running. NULL is accepted. */
void hf__transport_close(struct transport *transport);

struct transport_call {
    struct hf_str origin;         /* "https://host:port", where to connect to; in lower case */
    const struct http_head *head; /* method, target and fields, Host among them and no length of
                                     the body, which is added */
    struct hf_bytes body;
    uint32_t timeout_ms; /* from connecting to the last byte; 0: the scope's deadline alone */
    size_t answer_max;   /* bytes of the answer's body; 0: TRANSPORT_ANSWER_MAX */
};

enum { TRANSPORT_ANSWER_MAX = 64 * 1024 * 1024 };

struct http_answer {
    int status; /* 200 to 599; what comes before the final answer is skipped */
    const struct http_field *fields;
    size_t fields_len;
    struct hf_bytes body; /* as sent: see hf__http_unpack() */
};

/*
 * Send the request and wait for the answer, which lives in the scope. When it fails, the error's
 * may_retry is set where another attempt may go better, and may_have_happened when the whole
 * request had been handed to the network: before that, no server can have acted on it.
 *
 * HF_IO       no connection, or it broke, or the answer is no HTTP; or timeout_ms passed
 * HF_TIMEOUT, HF_CANCELED  by the scope
 * HF_LIMIT    the answer is larger than answer_max
 * HF_INVALID  the origin is no URL, a field has a line end in it, or ca_file cannot be read
 * HF_NOMEM
 */
enum hf_status hf__transport_call(struct hf_scope *s, struct transport *transport,
                                  const struct transport_call *call, struct http_answer *answer);

/* The first field of that name, in any case; absent when there is none. */
struct hf_str hf__http_answer_field(const struct http_answer *answer, const char *name);

/* The field Date, as seconds since 1970; 0 when there is none that can be read. */
int64_t hf__http_answer_date_s(const struct http_answer *answer);

struct transport_stats {
    uint64_t connects; /* connections made */
    uint64_t reuses;   /* requests that found a connection */
    uint64_t idle;     /* connections kept now */
};
void hf__transport_stats(struct transport *transport, struct transport_stats *stats);

#endif
