/*
 * http/sign.h: AWS Signature Version 4, for those who sign and those who verify.
 *
 * A signature is a chain of keyed hashes over a canonical form of the request: method, path, query,
 * the headers that were signed and the hash of the body. hf__sign_canonical() makes that form,
 * hf__sign_key() the key of one day, region and service, hf__sign_signature() the 64 hex digits.
 * A client needs hf__sign_request() alone.
 *
 * A signer has the state of a hash and what is dear to make again: the last key, the last time. Its
 * owner makes it once and uses it from one thread at a time. With a signer in hand hashing cannot
 * fail.
 */
#ifndef HF_HTTP_SIGN_H
#define HF_HTTP_SIGN_H

#include "base/base.h"
#include "http/http.h"

enum {
    SIGN_HASH = 32,
    SIGN_HEX = 64,
    SIGN_TIME = 16, /* 20260131T235959Z */
    SIGN_DATE = 8   /* 20260131 */
};

#define SIGN_ALGORITHM "AWS4-HMAC-SHA256"
#define SIGN_TERMINATOR "aws4_request"
#define SIGN_UNSIGNED "UNSIGNED-PAYLOAD"

struct sign_credentials {
    struct hf_str access_key;
    struct hf_str secret_key;
    struct hf_str session_token; /* absent when there is none */
};

/* What a request says of its signature, from the Authorization header or from the query. */
struct sign_claim {
    struct hf_str access_key;
    struct hf_str date; /* yyyymmdd of the scope */
    struct hf_str region;
    struct hf_str service;
    struct hf_str signed_headers; /* "host;x-amz-date" */
    struct hf_str signature;      /* 64 hex digits */
    struct hf_str time;           /* X-Amz-Date */
    struct hf_str session_token;  /* X-Amz-Security-Token */
    uint64_t expires_s;           /* query form: seconds from `time`; 0: not said */
    bool in_query;
};

/* ---- hashes --------------------------------------------------------------------------------- */

struct signer; /* one thread at a time uses it */

/* HF_NOMEM */
enum hf_status hf__signer_new(struct hf_scope *s, const struct hf_env *env, struct signer **signer);
void hf__signer_free(struct signer *signer);

void hf__sha256(struct signer *signer, const void *bytes, size_t len, uint8_t hash[SIGN_HASH]);
void hf__sha256_hex(struct signer *signer, const void *bytes, size_t len, char hex[SIGN_HEX + 1]);
void hf__hmac_sha256(struct signer *signer, struct hf_bytes key, const void *bytes, size_t len,
                     uint8_t mac[SIGN_HASH]);

/* ---- signatures ----------------------------------------------------------------------------- */

/* The signing key of a day, region and service. */
void hf__sign_key(struct signer *signer, struct hf_str secret_key, struct hf_str date,
                  struct hf_str region, struct hf_str service, uint8_t key[SIGN_HASH]);

/*
 * The canonical request. `payload_hash` is 64 hex digits or UNSIGNED-PAYLOAD. With `normalize` the
 * path is encoded again and its dots resolved, as every service but S3 wants it. The parameter
 * X-Amz-Signature is left out of the query.
 *
 * HF_INVALID  a signed header is missing, or their names are not in ascending order
 * HF_NOMEM
 */
enum hf_status hf__sign_canonical(struct hf_scope *s, const struct http_head *head,
                                  struct hf_str signed_headers, struct hf_str payload_hash,
                                  bool normalize, struct hf_str *canonical);

/* The string to sign, and its signature under a signing key. HF_NOMEM. */
enum hf_status hf__sign_string(struct hf_scope *s, struct signer *signer,
                               const struct sign_claim *claim, struct hf_str canonical,
                               struct hf_str *string);
void hf__sign_signature(struct signer *signer, const uint8_t key[SIGN_HASH], struct hf_str string,
                        char hex[SIGN_HEX + 1]);

/* Equal, in a time that does not tell where they differ. */
bool hf__sign_equal(struct hf_str a, struct hf_str b);

/* The first parameter of that name in a query, decoded; absent when there is none. HF_NOMEM. */
enum hf_status hf__sign_param(struct hf_scope *s, struct hf_str query, const char *name,
                              struct hf_str *value);

/* ---- times ---------------------------------------------------------------------------------- */

/* 20260131T235959Z as seconds since 1970, and back; false when it is no such time. */
bool hf__sign_time(struct hf_str text, int64_t *seconds);
void hf__sign_time_text(int64_t seconds, char text[SIGN_TIME + 1]);

/* ---- for clients ---------------------------------------------------------------------------- */

struct sign_how {
    const struct sign_credentials *credentials;
    struct hf_str region;
    struct hf_str service;
    int64_t now_s;        /* wall clock */
    struct hf_bytes body; /* as it is sent */
    bool unsigned_body;   /* leave the body out of the signature; S3 over TLS */
};

/*
 * Sign a request: the fields X-Amz-Date, X-Amz-Security-Token when there is a token,
 * X-Amz-Content-Sha256 for S3, and Authorization are added to it. It must have a Host field, and
 * its path must be encoded as it is sent. All its fields are signed but those that a proxy or a
 * library on the way may change. The values added live in the scope.
 *
 * HF_INVALID  it has no Host, or has one of the fields that are added
 * HF_LIMIT    there is no room for more fields
 * HF_NOMEM
 */
enum hf_status hf__sign_request(struct hf_scope *s, struct signer *signer, struct http_head *head,
                                const struct sign_how *how);

#endif
