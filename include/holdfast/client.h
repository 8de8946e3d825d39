/*
 * A database over the network: Amazon DynamoDB, ScyllaDB Alternator, `holdfast serve`, or anything
 * else that speaks DynamoDB's protocol. All calls and patterns work as on the embedded engine.
 *
 *     struct hf_db *db;
 *     if (hf_connect(s, HF_STR("dynamodb://eu-central-1"), NULL, &db) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_db_close(db);
 *
 * Every call ends in one of three ways: it was done (HF_OK), it was not done, or it may have been
 * done: hf_error.may_have_happened. A call is retried when that is safe: the service said that it
 * did nothing, or doing it twice is the same as once. Calls respect the deadline of their scope.
 */
#ifndef HOLDFAST_CLIENT_H
#define HOLDFAST_CLIENT_H

#include <holdfast/base.h>
#include <holdfast/check.h>
#include <holdfast/db.h>
#include <holdfast/env.h>
#include <holdfast/retry.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_credentials {
    struct hf_str access_key;
    struct hf_str secret_key;
    struct hf_str session_token; /* absent when there is none */
    int64_t expires_us;          /* wall clock; 0: never */
    uint64_t reserved[4];
};

/*
 * Return credentials, as strings that live in the scope. It is called again some time before they
 * expire, by one thread at a time.
 */
typedef enum hf_status hf_credentials_fn(struct hf_scope *s, struct hf_credentials *credentials,
                                         void *user);

/*
 * A member that is not set comes from where AWS's own tools take it: environment, then profile,
 * then a default. The URL parameters named in [brackets] mean the same and win.
 */
struct hf_client_options {
    size_t size;              /* set by HF_OPTIONS(), so that the struct can grow */
    const struct hf_env *env; /* memory, clocks, log, variables; copied */
    struct hf_str region;     /* [region] of the signature, and of the endpoint */
    struct hf_str profile;    /* [profile] in AWS's files; default AWS_PROFILE, "default" */
    struct hf_credentials credentials; /* default: AWS's chain of sources */
    hf_credentials_fn *credentials_fn; /* instead of all other sources */
    void *credentials_user;            /* handed to it */
    struct hf_str table_prefix;        /* [prefix] put before the name of every table */
    struct hf_retry_options retry;     /* [attempts], [retry]=standard|adaptive|off */
    uint32_t connect_ms;               /* [connect_ms] to connect; default 1000 */
    uint32_t attempt_ms;               /* [attempt_ms] for one attempt; default 10000 */
    uint32_t connections;              /* [connections] kept while idle; default 64 */
    struct hf_str ca_file;             /* [ca_file] certificates to trust; default AWS_CA_BUNDLE */
    struct hf_str proxy;               /* [proxy]; "none" for none; default HTTPS_PROXY and kin */
    enum hf_flag fips;                 /* [fips]=yes|no */
    enum hf_flag dual_stack;           /* [dual_stack]=yes|no */
    bool insecure;                     /* [insecure]=yes: accept any certificate */
    enum hf_flag gzip;                 /* [gzip]=yes|no: ask for packed answers; default yes,
                                        * unless the endpoint is this machine */
    bool no_aws_config;                /* nothing from AWS's files and variables */
};

/*
 * Connect by URL: "http://HOST[:PORT]" and "https://HOST[:PORT]" name an endpoint,
 * "dynamodb://REGION" is Amazon's of a region and "dynamodb:" that of the region which AWS's tools
 * would use. Parameters may follow: "http://127.0.0.1:8000?prefix=test-&attempts=2". Nothing is
 * sent before the first call, except that with "dynamodb:" and no region anywhere else the
 * machine's metadata service is asked for one. A loopback address needs no credentials: if none are
 * set, placeholders are sent. On failure *db is NULL.
 *
 * HF_INVALID  the URL, a parameter, an option or a setting in AWS's files is invalid; the message
 *             names it
 * HF_IO       a file that was named cannot be read
 */
HF_API HF_NODISCARD enum hf_status hf_connect(struct hf_scope *s, struct hf_str url,
                                              const struct hf_client_options *options,
                                              struct hf_db **db);

/*
 * Let the `holdfast serve` at `url` verify its whole database, as hf_engine_check() does, and wait
 * for the result. If a check runs there already, wait for that one. If the scope or on_progress
 * ends the waiting, the check goes on. `check` may be NULL, and `report` too.
 *
 * HF_CORRUPT      something is wrong; the message names the first
 * HF_UNSUPPORTED  it is not a holdfast server, or an older one
 * HF_DENIED       the server has keys, and ours is none of them
 * HF_IO           it is unreachable, it was restarted meanwhile, or the check failed
 * HF_INVALID      as hf_connect() says
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_server_check(struct hf_scope *s, struct hf_str url,
                                                   const struct hf_client_options *options,
                                                   const struct hf_check_options *check,
                                                   struct hf_check_report *report);

/* How hf_connect() would connect, for programs that help people find out why it fails. */
struct hf_client_info {
    struct hf_str endpoint;    /* "https://dynamodb.eu-central-1.amazonaws.com" */
    struct hf_str region;      /* that requests are signed for */
    struct hf_str credentials; /* where they come from, such as "the variable AWS_ACCESS_KEY_ID" */
    struct hf_str access_key;  /* its secret is never part of this */
    int64_t expires_us;        /* when the credentials expire, by the wall clock; 0: never */
    bool placeholder;          /* none are set, and the endpoint is this machine */
    uint64_t reserved[4];
};

/*
 * Find the endpoint, the region and the credentials of a URL as hf_connect() and its first call do.
 * The database itself is not called; sources of credentials may be asked over the network. If it
 * fails, `info` has what was found until then.
 *
 * HF_INVALID, HF_IO  as hf_connect() says
 * HF_DENIED          there are no credentials, or they have expired; the message says which
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_client_describe(struct hf_scope *s, struct hf_str url,
                                                      const struct hf_client_options *options,
                                                      struct hf_client_info *info);

/* What a server answered. */
struct hf_server_answer {
    int status;           /* of HTTP */
    struct hf_str body;   /* at most 4 MiB */
    struct hf_str server; /* its field Server; absent: it has none */
    int64_t date_s;       /* its field Date, in seconds since 1970; 0: it has none */
    uint64_t reserved[4];
};

/*
 * GET a path of the server at `url`, such as "/metrics" or "/readyz" of `holdfast serve`. The
 * request is signed if there are credentials. It is sent once. Any HTTP status is HF_OK.
 *
 * HF_IO       it is unreachable, or what it answered is no HTTP
 * HF_LIMIT    the answer has more than 4 MiB
 * HF_INVALID  as hf_connect() says, or the path does not begin with '/'
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_server_get(struct hf_scope *s, struct hf_str url,
                                                 const struct hf_client_options *options,
                                                 struct hf_str path,
                                                 struct hf_server_answer *answer);

#ifdef __cplusplus
}
#endif

#endif
