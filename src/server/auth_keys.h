/*
 * server/auth_keys.h: what a server knows of its callers: access keys, and signing keys that were used.
 */
#ifndef HF_SERVER_AUTH_KEYS_H
#define HF_SERVER_AUTH_KEYS_H

#include "server/auth.h"

enum {
    KEPT_MAX = 16,       /* signing keys that are kept */
    KEPT_REGION_MAX = 64 /* bytes of a region whose key is kept */
};

struct kept_key {
    size_t owner; /* index of the key, plus one; 0: nothing here */
    char date[SIGN_DATE];
    char region[KEPT_REGION_MAX];
    size_t region_len;
    uint8_t key[SIGN_HASH];
};

struct auth {
    struct hf_env env;
    struct signer *signer;
    struct sign_credentials *keys; /* their texts are in `text` */
    size_t keys_len;
    char *text;
    size_t text_len;
    int64_t window_s;
    bool unsigned_body; /* a signature need not cover the body: (3) of auth.c */
    char *region;       /* that signatures must name; NULL: any */
    size_t region_len;
    struct kept_key kept[KEPT_MAX];
    size_t kept_next; /* the place that is used next */
};

/* The signing key that access key number `key` has for that date and region; NULL: it is not kept. */
struct kept_key *hf__auth_find_key(struct auth *auth, size_t key, const struct sign_claim *claim);

/* It has verified a signature: keep it, in the place of the one that was kept first. */
void hf__auth_keep_key(struct auth *auth, size_t key, const struct sign_claim *claim,
                       const uint8_t signing_key[SIGN_HASH]);

#endif
