/*
 * client/source.h: what the sources of credentials have from each other and from the chain. Only
 * credentials*.c and their tests include it.
 *
 * A source is a function that makes `struct source_keys` of what it was pointed to, or fails with a
 * sentence that names the source. One thread at a time runs the sources of a chain, so what they
 * keep in `struct source` needs no lock. What they find lives in the scope or in the config; the
 * chain copies it.
 *
 * Nothing that a source said goes into an error, but the messages of AWS's services, cleaned by
 * hf__source_quote().
 */
#ifndef HF_CLIENT_SOURCE_H
#define HF_CLIENT_SOURCE_H

#include "base/base.h"
#include "base/buf.h"
#include "client/config.h"
#include "client/credentials.h"
#include "http/sign.h"
#include "http/transport.h"

enum {
    SOURCE_TEXT_MAX = 64 * 1024, /* of a file, of what a process prints, of an answer */
    SOURCE_CALL_MS = 5000,       /* one request to a service of AWS */
    SOURCE_ATTEMPTS = 3
};

struct source {
    const struct config *config;
    const struct hf_env *env;
    struct transport *transport; /* for AWS's services */
    struct transport *direct;    /* never by a proxy; made when it is needed first */
    struct signer *signer;       /* made when it is needed first */
    struct hf_str region;        /* for STS; may be absent */
    int64_t until_us;            /* by the elapsed clock: sources give up then; 0: never */
    int64_t skew_s;              /* what the clock of AWS's services is ahead by */
    bool metadata_seen; /* the metadata service gave keys before: its silence is an error */
};

/* What was opened on the way; the struct itself is its owner's. */
void hf__source_end(struct source *source);

struct source_keys {
    struct hf_str access_key;
    struct hf_str secret_key;
    struct hf_str session_token; /* absent when there is none */
    struct hf_str account;       /* absent when the source did not tell */
    int64_t expires_us;          /* wall clock; 0: never */
    const char *origin;          /* for messages: "the variable AWS_ACCESS_KEY_ID" */
    bool fixed;                  /* asking again gives the same */
    bool outlast;                /* use them beyond their expiry, as the metadata service wants */
};

/* One request, repeated where another attempt may go better. */
struct source_call {
    const char *what; /* for messages: "STS" */
    struct transport *transport;
    const struct endpoint *endpoint;
    const char *method;
    struct hf_str target; /* behind the endpoint's path: path and query */
    struct http_field fields[4];
    size_t fields_len;
    struct hf_bytes body;
    const struct sign_credentials *sign; /* NULL: unsigned */
    uint32_t timeout_ms;                 /* of one attempt */
    uint32_t attempts;
    /* Worth another attempt? NULL: when the status is 429 or 5xx. */
    bool (*again)(const struct http_answer *answer);
};

/* ---- the sources ---------------------------------------------------------------------------- */

/* *found tells whether the variables are set; HF_INVALID when only one of two is. */
enum hf_status hf__source_environment(struct hf_scope *s, struct source *source, bool *found,
                                      struct source_keys *keys);

/* A token in a file, by variables; *found as before. */
enum hf_status hf__source_web_identity(struct hf_scope *s, struct source *source, bool *found,
                                       struct source_keys *keys);

/* *found tells whether the chosen profile says anything about credentials. */
enum hf_status hf__source_profile(struct hf_scope *s, struct source *source, bool *found,
                                  struct source_keys *keys);

/* By AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI; *found as before. */
enum hf_status hf__source_container(struct hf_scope *s, struct source *source, bool *found,
                                    struct source_keys *keys);

/* Where that is: not asked, so that it can be tested. */
enum hf_status hf__source_container_place(struct hf_scope *s, struct source *source, bool *found,
                                          struct endpoint *endpoint, struct hf_str *target);

/*
 * The metadata service of the machine, version 2 only. When it is switched off, not there, or has
 * nothing for us, that is no failure: *absent says why, else it is NULL.
 */
enum hf_status hf__source_metadata(struct hf_scope *s, struct source *source, const char **absent,
                                   struct source_keys *keys);
enum hf_status hf__source_metadata_region(struct hf_scope *s, struct source *source,
                                          struct hf_str *region);

/* Where it is and how long to wait for it: `call` without what is asked; *off when it is switched
 * off. */
enum hf_status hf__source_metadata_place(struct hf_scope *s, struct source *source, bool *off,
                                         struct endpoint *endpoint, struct source_call *call);

/* A command line as it stands in a profile. */
enum hf_status hf__source_process(struct hf_scope *s, struct source *source, struct hf_str profile,
                                  struct hf_str command, struct source_keys *keys);

/* The SSO settings, or login_session, of a profile that has them. */
enum hf_status hf__source_sso(struct hf_scope *s, struct source *source, struct hf_str profile,
                              struct source_keys *keys);
enum hf_status hf__source_login(struct hf_scope *s, struct source *source, struct hf_str profile,
                                struct source_keys *keys);

/* A role, asked for from STS: with keys, or with the token in a file when `keys` is NULL. */
struct source_role {
    struct hf_str arn;
    struct hf_str session_name; /* absent: made up */
    struct hf_str external_id;
    struct hf_str duration_s; /* absent: STS's default */
    struct hf_str token_file;
    const struct source_keys *keys;
};
enum hf_status hf__source_role(struct hf_scope *s, struct source *source,
                               const struct source_role *role, struct source_keys *keys);

/* ---- what they share, credentials_source.c -------------------------------------------------- */

/* Milliseconds that a source may still use, at most `cap`; 0 when its time is over. */
int64_t hf__source_left_ms(struct hf_scope *s, const struct source *source, int64_t cap);

/* Ask, and ask again where another attempt may go better. */
enum hf_status hf__source_call(struct hf_scope *s, struct source *source,
                               const struct source_call *call, struct http_answer *answer);

/* The transport that no proxy is in the way of. */
enum hf_status hf__source_direct(struct hf_scope *s, struct source *source,
                                 struct transport **transport);

/* A regular file of at most SOURCE_TEXT_MAX bytes, without blanks around its text. *missing tells
 * that it is not there; NULL: then that is an error. */
enum hf_status hf__source_file(struct hf_scope *s, struct hf_str path, bool *missing,
                               struct hf_str *text);

/* Replace a file by this text, for its owner alone; false when that fails. */
bool hf__source_write(struct hf_scope *s, struct hf_str path, struct hf_str text);

/* "~/.aws/" and what `format` makes; HF_INVALID when HOME is not set. */
enum hf_status hf__source_home(struct hf_scope *s, struct source *source, struct hf_str *path,
                               const char *format, ...) HF_PRINTF(4, 5);

/*
 * Words of a service for an error of ours: one line, printable, not too long, and "" when there are
 * none or when one of the secrets is part of them.
 */
struct hf_str hf__source_quote(struct hf_scope *s, struct hf_str text, const struct hf_str *secrets,
                               size_t secrets_len);

/* 2026-01-31T23:59:59Z, also with a fraction, an offset, or UTC instead of Z; false when it is no
 * such time. */
bool hf__source_time(struct hf_str text, int64_t *us);

/* ---- documents ------------------------------------------------------------------------------ */

/*
 * What processes, containers and the metadata service answer with, all in one form:
 * {"AccessKeyId", "SecretAccessKey", "SessionToken" or "Token", "Expiration", "AccountId"}.
 * HF_INVALID, in the name of keys->origin, when it is not that.
 */
enum source_form { SOURCE_PROCESS, SOURCE_CONTAINER, SOURCE_METADATA };
enum hf_status hf__source_read_keys(struct hf_scope *s, enum source_form form, struct hf_str json,
                                    struct source_keys *keys);

/* What `aws sso login` keeps in its cache. */
struct sso_token {
    struct hf_str start_url;
    struct hf_str region;
    struct hf_str access_token;
    struct hf_str expires_at;
    struct hf_str client_id; /* from here on absent when it cannot be renewed */
    struct hf_str client_secret;
    struct hf_str client_expires_at;
    struct hf_str refresh_token;
    int64_t expires_us; /* from here on not in the file: the times above */
    int64_t client_expires_us;
};
enum hf_status hf__source_read_sso(struct hf_scope *s, struct hf_str json, struct sso_token *token);

/* STS's answer to a request for a role, or its error's code and message. */
struct sts_answer {
    struct hf_str access_key;
    struct hf_str secret_key;
    struct hf_str session_token;
    struct hf_str expiration;
    struct hf_str arn; /* of the assumed role */
    struct hf_str error_code;
    struct hf_str error_message;
};
enum hf_status hf__source_read_sts(struct hf_scope *s, struct hf_str xml,
                                   struct sts_answer *answer);

#endif
