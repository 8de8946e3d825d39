/*
 * client/service.h: signed calls to a service of Amazon's, or to what speaks its protocol: DynamoDB
 * (client.c), S3 (blob/s3.c), SQS, SNS and EventBridge (sinks/aws.c).
 *
 *     static enum hf_status try_once(struct hf_scope *s, struct service_try *try, void *user)
 *     {
 *         TRY(hf__service_send(s, try, &(struct service_request){.endpoint = ..., ...}));
 *         if (try->answer.status == 200)
 *             return HF_OK;
 *         ... read the code ...
 *         hf__service_refused(try, code);
 *         return hf__fail(s, ...);
 *     }
 *
 *     status = hf__service_call(s, &service, try_once, user);
 *
 * What a request and an answer look like, and what a refusal means, is the caller's matter.
 */
#ifndef HF_CLIENT_SERVICE_H
#define HF_CLIENT_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/config.h"
#include "client/credentials.h"
#include "http/sign.h"
#include "http/transport.h"

enum { SERVICE_RETRY_AFTER_MAX_MS = 60 * 1000 }; /* what a service asks for beyond is cut to this */

struct service_worker;

/* Any thread uses it. */
struct service {
    const struct hf_env *env;        /* as all pointers here, its owner's */
    const char *name;                /* for messages and log lines: "S3" */
    struct transport *transport;     /* set before the first call, as is all that follows */
    struct credentials *credentials; /* who we are */
    struct hf_str agent;             /* User-Agent */
    atomic_int_fast64_t skew_s;      /* what its clock is ahead of ours by */
    pthread_mutex_t lock;            /* guards the list of workers */
    struct service_worker *workers;
};

void hf__service_init(struct service *service, const struct hf_env *env, const char *name);
void hf__service_free(struct service *service);

struct service_request {
    const struct endpoint *endpoint;
    const char *method;
    struct hf_str path;              /* as it is sent */
    struct hf_str query;             /* as it is sent, without '?'; absent: none */
    const struct http_field *fields; /* besides Host, User-Agent and those of the signature */
    size_t fields_len;
    struct hf_bytes body;
    uint32_t timeout_ms;
    size_t answer_max; /* bytes; 0: TRANSPORT_ANSWER_MAX */
};

/* One attempt at a call. */
struct service_try {
    struct service *service;
    struct service_worker *worker;
    struct sign_credentials used;
    struct hf_str account;     /* of the credentials; absent: not known */
    struct http_answer answer; /* after hf__service_send() */
    bool is_head;              /* the request was a HEAD */
    bool again; /* it was refused for a reason that has gone away since: there is another attempt */
};

typedef enum hf_status service_try_fn(struct hf_scope *s, struct service_try *try, void *user);

/* Call `fn` with the credentials of now, and again while it is refused for a reason that goes away:
 * with a corrected clock, with new credentials. Returns what the last one returned. */
enum hf_status hf__service_call(struct hf_scope *s, struct service *service, service_try_fn *fn,
                                void *user);

/* Sign and send. HF_OK is any answer. */
enum hf_status hf__service_send(struct hf_scope *s, struct service_try *try,
                                const struct service_request *request);

/* The service refused with this code, which may be absent. If it is for the clock, and its Date
 * differs from ours, or for the credentials, and there may be others: try->again. */
void hf__service_refused(struct service_try *try, struct hf_str code);

/* "com.amazonaws.sqs#QueueDoesNotExist", "ExpiredTokenException": without a name space, and without
 * "Exception" at its end. */
struct hf_str hf__service_code(struct hf_str code);

/* How long the service asks us to wait, by X-Amz-Retry-After (ms) or Retry-After (s); 0: it does
 * not. */
uint32_t hf__service_retry_after_ms(const struct http_answer *answer);

/* HF_IO: `who` answered with something else than its answer, and may have done what was asked. */
enum hf_status hf__service_unreadable(struct hf_scope *s, struct hf_str who, const char *why);

/* Does the text have one of the secrets that the try was made with? */
bool hf__service_has_secret(const struct service_try *try, struct hf_str text);

/* Words of the service for a line of ours: up to `max` bytes, printable, and "" when one of those
 * secrets is part of them. */
struct hf_str hf__service_quote(struct hf_scope *s, const struct service_try *try,
                                struct hf_str text, size_t max);

/* The same where no secret was sent. */
struct hf_str hf__service_printable(struct hf_scope *s, struct hf_str text, size_t max);

/* Does the service's clock differ by too much from ours, corrected by *skew_s? Then correct that. */
bool hf__service_clock_differs(const struct hf_env *env, const struct http_answer *answer,
                               int64_t *skew_s);

#endif
