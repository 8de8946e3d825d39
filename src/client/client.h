/*
 * client/client.h: one attempt at an operation over the network. hf_connect() in connect.c makes a
 * client of what the URL, the options and AWS's files say, and wraps it.
 */
#ifndef HF_CLIENT_CLIENT_H
#define HF_CLIENT_CLIENT_H

#include <holdfast/client.h>

#include "client/config.h"
#include "client/credentials.h"
#include "db/db.h"
#include "http/transport.h"

/* What a client is made of. It takes over all of it when it could be opened. */
struct client_parts {
    struct hf_env env;
    struct hf_scope *memory; /* where the strings live */
    struct config *config;
    struct transport *transport;
    struct credentials *credentials;
    struct hf_str region;
    enum hf_flag fips;
    enum hf_flag dual_stack;
    struct endpoint fixed; /* from the URL; its origin is absent when the region decides */
    struct hf_str agent;   /* User-Agent */
    uint32_t attempt_ms;
    bool gzip;
};

/* HF_NOMEM; HF_INVALID when there is no endpoint for the region. */
enum hf_status hf__client_open(struct hf_scope *s, const struct client_parts *parts,
                               struct hf_db **db);

/*
 * Make the parts of a client of a service from options, as hf_connect() does; of the parts, `env`
 * and `fixed` are set before, and `memory` may be. `service` is what signatures call it, `say` how
 * a URL names a region, for messages: "dynamodb://REGION". On failure what is there is left for
 * hf__client_parts_free().
 *
 * HF_INVALID, HF_IO as hf_connect() says; HF_NOMEM
 */
enum hf_status hf__client_parts_make(struct hf_scope *s, const struct hf_client_options *options,
                                     struct hf_str service, const char *say,
                                     struct client_parts *parts);

/*
 * The same for the URL of a DynamoDB, whose parameters go to the options; `options` has all its
 * members. On failure there is nothing to free.
 */
enum hf_status hf__client_parts_of(struct hf_scope *s, struct hf_str url,
                                   struct hf_client_options *options, struct client_parts *parts);

/* What was given, and zero for members that the caller's version does not have. */
struct hf_client_options hf__client_options(const struct hf_client_options *options);

/* Free what is there of the parts. */
void hf__client_parts_free(struct client_parts *parts);

#endif
