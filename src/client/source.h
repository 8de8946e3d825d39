/*
 * client/source.h: what the sources of credentials have from each other and from the chain. Only
 * credentials*.c include it.
 *
 * A source is a function that makes `struct source_keys` of what it was pointed to, or fails with a
 * sentence that names the source. One thread at a time runs sources of one chain, so what they keep
 * in `struct source` needs no lock. What they find lives in the scope or in the config; the chain
 * copies it.
 *
 * No text that came from a source goes into an error, but the codes and messages of AWS's services,
 * cleaned by hf__source_quote().
 */
#ifndef HF_CLIENT_SOURCE_H
#define HF_CLIENT_SOURCE_H

#include "base/base.h"
#include "client/config.h"
#include "http/sign.h"
#include "http/transport.h"

struct source {
    const struct config *config;
    const struct hf_env *env;
    struct transport *transport; /* for AWS's services */
    struct transport *direct;    /* never by a proxy; made when it is needed first */
    struct signer *signer;       /* made when it is needed first */
    struct hf_str region;        /* for STS; may be absent */
    int64_t until_us;            /* by the elapsed clock: sources give up then; 0: never */
    bool metadata_seen; /* the metadata service gave keys before: its silence is an error */
};

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

/* ---- the sources ---------------------------------------------------------------------------- */

/* *found tells whether the variables are set; HF_INVALID when only one of two is. */
enum hf_status hf__source_environment(struct hf_scope *s, struct source *source, bool *found,
                                      struct source_keys *keys);

/* *found tells whether the chosen profile says anything about credentials. */
enum hf_status hf__source_profile(struct hf_scope *s, struct source *source, bool *found,
                                  struct source_keys *keys);

#endif
