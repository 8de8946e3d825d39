/*
 * server/auth.h: who may call.
 *
 * With keys, a request must carry a signature that one of them made, of about now, for DynamoDB.
 * Without keys, any well-formed signature is accepted, of any key, region and time. In both cases
 * errors have DynamoDB's messages and DynamoDB's order.
 *
 *     if (!hf__auth_check(s, auth, &head, body, now_s, &refusal))
 *         answer with refusal.status, refusal.type and refusal.message
 */
#ifndef HF_SERVER_AUTH_H
#define HF_SERVER_AUTH_H

#include "base/base.h"
#include "http/http.h"
#include "http/sign.h"

enum { AUTH_WINDOW_S = 300 }; /* default limit for how far the time of a signature may be off */

struct auth; /* the keys, and signing keys made of them; one thread at a time uses it */

struct auth_refusal {
    int status;
    const char *type;      /* "com.amazon.coral.service#InvalidSignatureException" */
    struct hf_str message; /* UTF-8; lives in the scope */
};

/*
 * `keys` are copied; `window_s` 0 is AUTH_WINDOW_S. An access key may be there several times, with
 * other secrets or tokens: each of them is good.
 *
 * HF_INVALID  an access key or secret is empty
 * HF_NOMEM
 */
enum hf_status hf__auth_new(struct hf_scope *s, const struct hf_env *env,
                            const struct sign_credentials *keys, size_t len, uint32_t window_s,
                            struct auth **auth);

/* From now on signatures must name this region, if there are keys. HF_NOMEM. */
enum hf_status hf__auth_set_region(struct hf_scope *s, struct auth *auth, struct hf_str region);

/*
 * From now on a signature may leave out the body (X-Amz-Content-Sha256: UNSIGNED-PAYLOAD): all
 * requests come over TLS, so that nobody between here and there can put another body in its place.
 */
void hf__auth_allow_unsigned_body(struct auth *auth);

/* May this request pass? `body` is as sent, before it is unpacked. When not, *refusal says why. */
bool hf__auth_check(struct hf_scope *s, struct auth *auth, const struct http_head *head,
                    struct hf_bytes body, int64_t now_s, struct auth_refusal *refusal);

void hf__auth_free(struct auth *auth);

#endif
