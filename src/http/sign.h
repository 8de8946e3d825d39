/*
 * http/sign.h: AWS Signature Version 4, for those who sign and those who verify.
 *
 * A signature is a chain of keyed hashes over a canonical form of the request: method, path, query,
 * the headers that were signed and the hash of the body. hf__sign_canonical() makes that form,
 * hf__sign_key() the key of one day, region and service, hf__sign_signature() the 64 hex digits.
 */
#ifndef HF_HTTP_SIGN_H
#define HF_HTTP_SIGN_H

#include "base/base.h"
#include "base/buf.h"
#include "http/http.h"

enum { SIGN_HASH = 32, SIGN_HEX = 64, SIGN_TIME = 16 /* 20260131T235959Z */ };

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
    uint64_t expires_s;           /* query form: seconds from `time`; 0: the header form */
    bool in_query;
};

void hf__sha256(const void *bytes, size_t len, uint8_t hash[SIGN_HASH]);
void hf__hmac_sha256(struct hf_bytes key, const void *bytes, size_t len, uint8_t mac[SIGN_HASH]);

/* The signing key of a day, region and service. */
void hf__sign_key(struct hf_str secret_key, struct hf_str date, struct hf_str region,
                  struct hf_str service, uint8_t key[SIGN_HASH]);

/*
 * The canonical request. `payload_hash` is 64 hex digits or UNSIGNED-PAYLOAD. With `normalize` the
 * path is encoded again and its dots resolved, as every service but S3 wants it. The parameter
 * X-Amz-Signature is left out of the query. HF_INVALID names a signed header that is missing.
 */
enum hf_status hf__sign_canonical(struct hf_scope *s, const struct http_head *head,
                                  struct hf_str signed_headers, struct hf_str payload_hash,
                                  bool normalize, struct hf_str *canonical);

/* The string to sign, and its signature under a signing key. */
enum hf_status hf__sign_string(struct hf_scope *s, const struct sign_claim *claim,
                               struct hf_str canonical, struct hf_str *string);
void hf__sign_signature(const uint8_t key[SIGN_HASH], struct hf_str string, char hex[SIGN_HEX + 1]);

/* Equal, in a time that does not tell where they differ. */
bool hf__sign_equal(struct hf_str a, struct hf_str b);

/* 20260131T235959Z as seconds since 1970; false when it is no such time. */
bool hf__sign_time(struct hf_str text, int64_t *seconds);

#endif
