/*
 * server/auth_keys.c: the access keys that a server has, and the signing keys that were made of them.
 *
 * Deriving a signing key takes four keyed hashes, and clients use the same one all day, so the last
 * few are kept, after they have verified a signature ((2) of auth.c).
 */
#include "server/auth_keys.h"

#include <openssl/crypto.h>

#include "base/buf.h"

/* ---- keys ----------------------------------------------------------------------------------- */

static struct hf_str take_text(char **at, struct hf_str text)
{
    struct hf_str copy = {*at, text.len};

    if (!text.ptr)
        return text;
    if (text.len)
        memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return copy;
}

static enum hf_status copy_keys(struct hf_scope *s, struct auth *auth,
                                const struct sign_credentials *keys, size_t len)
{
    size_t text_len = 1; /* so that there is something to point to */
    char *at;

    for (size_t i = 0; i < len; i++) {
        if (!keys[i].access_key.len || !keys[i].secret_key.len)
            return hf__fail(s, HF_INVALID, "An access key or its secret is empty");
        text_len += keys[i].access_key.len + keys[i].secret_key.len + keys[i].session_token.len;
    }
    if (!len)
        return HF_OK;
    auth->text = hf__env_alloc(&auth->env, text_len);
    auth->text_len = auth->text ? text_len : 0;
    auth->keys = hf__env_alloc(&auth->env, len * sizeof(*auth->keys));
    auth->keys_len = auth->keys ? len : 0;
    if (!auth->text || !auth->keys)
        return hf__fail_nomem(s);
    at = auth->text;
    for (size_t i = 0; i < len; i++) {
        auth->keys[i].access_key = take_text(&at, keys[i].access_key);
        auth->keys[i].secret_key = take_text(&at, keys[i].secret_key);
        auth->keys[i].session_token = take_text(&at, keys[i].session_token);
    }
    assert(at < auth->text + auth->text_len);
    return HF_OK;
}

/*
 * Derive a key that is not used. The command loads the library of digests at the first call: if
 * that is missing, the server must fail before it serves anybody.
 */
static void try_digests(struct auth *auth)
{
    uint8_t key[SIGN_HASH];

    hf__sign_key(auth->signer, auth->keys[0].secret_key, HF_STR("20060102"), HF_STR("us-east-1"),
                 HF_STR("dynamodb"), key);
    OPENSSL_cleanse(key, sizeof(key));
}

enum hf_status hf__auth_new(struct hf_scope *s, const struct hf_env *env,
                            const struct sign_credentials *keys, size_t len, uint32_t window_s,
                            struct auth **auth)
{
    struct hf_env whole = hf__env_fill(env);
    struct auth *made = hf__env_alloc(&whole, sizeof(*made));
    enum hf_status status;

    *auth = NULL;
    if (!made)
        return hf__fail_nomem(s);
    *made = (struct auth){.env = whole, .window_s = window_s ? window_s : AUTH_WINDOW_S};
    status = hf__signer_new(s, env, &made->signer);
    if (status == HF_OK)
        status = copy_keys(s, made, keys, len);
    if (status != HF_OK) {
        hf__auth_free(made);
        return status;
    }
    if (made->keys_len)
        try_digests(made);
    *auth = made;
    return HF_OK;
}

enum hf_status hf__auth_set_region(struct hf_scope *s, struct auth *auth, struct hf_str region)
{
    char *copy = hf__env_alloc(&auth->env, region.len + 1);

    if (!copy)
        return hf__fail_nomem(s);
    if (region.len)
        memcpy(copy, region.ptr, region.len);
    if (auth->region)
        hf__env_free(&auth->env, auth->region, auth->region_len + 1);
    auth->region = copy;
    auth->region_len = region.len;
    return HF_OK;
}

void hf__auth_allow_unsigned_body(struct auth *auth)
{
    auth->unsigned_body = true;
}

void hf__auth_free(struct auth *auth)
{
    struct hf_env env;

    if (!auth)
        return;
    env = auth->env;
    if (auth->text) {
        OPENSSL_cleanse(auth->text, auth->text_len);
        hf__env_free(&env, auth->text, auth->text_len);
    }
    if (auth->keys)
        hf__env_free(&env, auth->keys, auth->keys_len * sizeof(*auth->keys));
    if (auth->region)
        hf__env_free(&env, auth->region, auth->region_len + 1);
    hf__signer_free(auth->signer);
    OPENSSL_cleanse(auth, sizeof(*auth));
    hf__env_free(&env, auth, sizeof(*auth));
}

struct kept_key *hf__auth_find_key(struct auth *auth, size_t key, const struct sign_claim *claim)
{
    assert(key < auth->keys_len && claim->date.len == SIGN_DATE);
    for (size_t i = 0; i < KEPT_MAX; i++) {
        struct kept_key *kept = &auth->kept[i];

        if (kept->owner == key + 1 && memcmp(kept->date, claim->date.ptr, SIGN_DATE) == 0 &&
            hf_str_equal(hf_str_of(kept->region, kept->region_len), claim->region))
            return kept;
    }
    return NULL;
}

void hf__auth_keep_key(struct auth *auth, size_t key, const struct sign_claim *claim,
                       const uint8_t signing_key[SIGN_HASH])
{
    struct kept_key *kept = &auth->kept[auth->kept_next];

    if (claim->region.len > KEPT_REGION_MAX)
        return;
    assert(key < auth->keys_len && claim->date.len == SIGN_DATE && auth->kept_next < KEPT_MAX);
    auth->kept_next = (auth->kept_next + 1) % KEPT_MAX;
    kept->owner = key + 1;
    memcpy(kept->date, claim->date.ptr, SIGN_DATE);
    if (claim->region.len)
        memcpy(kept->region, claim->region.ptr, claim->region.len);
    kept->region_len = claim->region.len;
    memcpy(kept->key, signing_key, SIGN_HASH);
}
