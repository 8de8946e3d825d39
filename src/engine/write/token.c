/*
 * engine/write/token.c: client tokens of transactions.
 *
 * A token is kept for ten minutes with a digest of its request, and with the sizes of the items
 * that the request was charged for: a replay is charged for reading those. The same token with the
 * same request is a success without effect; with another request it is refused. After ten minutes
 * the token is as good as new, whether or not maintenance has dropped it yet.
 */
#include "engine/write/token.h"
#include "base/buf.h"
#include "engine/engine.h"
#include "engine/item/latch.h"
#include "engine/layout.h"
#include "ops/fields.h"
#include "store/store.h"

#include <xxhash.h>

#include "wire/wire.h"

#define TOKEN_LIFE_US (10 * 60 * INT64_C(1000000))

/* Few at a time: a round holds the latches of all its tokens, and writers wait for them. */
enum { TOKENS_A_ROUND = 32 };

size_t hf__token_latch(struct hf_str token)
{
    return (size_t)XXH64(token.ptr, token.len, SPACE_TOKEN) & (LATCH_COUNT - 1);
}

static enum hf_status digest_of(struct hf_scope *s, const struct hf__buf *bytes,
                                struct token_digest *digest)
{
    XXH128_canonical_t canonical;

    if (bytes->failed)
        return hf__fail_nomem(s);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes->ptr, bytes->len));
    memcpy(digest->bytes, canonical.digest, sizeof(digest->bytes));
    return HF_OK;
}

/* Hash a field after its length, so that different lists of fields have different hashes. */
static void put_bytes(struct hf__buf *buf, const void *bytes, size_t len)
{
    uint8_t head[8];

    store_u64be(head, bytes ? len : UINT64_MAX);
    hf__buf_put(buf, head, sizeof(head));
    if (bytes)
        hf__buf_put(buf, bytes, len);
}

static void put_str(struct hf__buf *buf, struct hf_str text)
{
    put_bytes(buf, text.ptr, text.len);
}

/* Equal items have equal bytes. */
static void put_item(struct hf__buf *buf, struct hf_item item)
{
    put_bytes(buf, item.ptr, item.len);
}

static void put_condition(struct hf__buf *buf, struct hf_str condition, struct hf_item names,
                          struct hf_item values, enum hf_return_on_failure returns)
{
    put_str(buf, condition);
    put_item(buf, names);
    put_item(buf, values);
    hf__buf_put_byte(buf, (uint8_t)returns);
}

static void put_action(struct hf__buf *buf, const struct hf_transact_write *action)
{
    const struct hf_condition_check *check = action->check;
    const struct hf_put_item *put = action->put;
    const struct hf_delete_item *del = action->del;
    const struct hf_update_item *update = action->update;

    hf__buf_put_byte(buf, check ? 'c' : put ? 'p' : del ? 'd' : 'u');
    if (check) {
        put_str(buf, check->table);
        put_item(buf, check->key);
        put_condition(buf, check->condition, check->names, check->values,
                      check->returns_on_failure);
    } else if (put) {
        put_str(buf, put->table);
        put_item(buf, put->item);
        put_condition(buf, put->condition, put->names, put->values, put->returns_on_failure);
    } else if (del) {
        put_str(buf, del->table);
        put_item(buf, del->key);
        put_condition(buf, del->condition, del->names, del->values, del->returns_on_failure);
    } else {
        put_str(buf, update->table);
        put_item(buf, update->key);
        put_str(buf, update->update);
        put_condition(buf, update->condition, update->names, update->values,
                      update->returns_on_failure);
    }
}

/* Options for the answer are not part of the digest. It hashes the bytes of the items: JSON would
 * cost a third of all the work of the server for such a request. */
enum hf_status hf__token_digest(struct hf_scope *s, const struct hf_transact_write_items *request,
                                struct token_digest *digest)
{
    struct hf__mark mark = hf__scope_mark(s);
    struct hf__buf bytes = {.scope = s};

    for (size_t i = 0; i < request->actions_len; i++)
        put_action(&bytes, &request->actions[i]);
    TRY(digest_of(s, &bytes, digest));
    hf__scope_rewind(s, mark);
    return HF_OK;
}

enum hf_status hf__token_digest_statements(struct hf_scope *s,
                                           const struct hf_execute_transaction *request,
                                           struct token_digest *digest)
{
    struct hf_execute_transaction counted = *request;
    struct hf__buf json = {.scope = s};

    counted.return_capacity = 0;
    hf__wire_write(&json, hf__op(HF_OP_EXECUTE_TRANSACTION)->request, &counted);
    return digest_of(s, &json, digest);
}

/* UTF-8 never begins with this byte, so it is never a token of TransactWriteItems. */
struct hf_str hf__token_of_statements(struct hf_scope *s, struct hf_str token)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_byte(&buf, 0xFF);
    hf__buf_put_str(&buf, token);
    return buf.failed ? hf_str_of(NULL, 0) : hf_str_of((const char *)buf.ptr, buf.len);
}

static void token_key(struct hf__buf *buf, struct hf_str token)
{
    hf__buf_put_byte(buf, SPACE_TOKEN);
    hf__buf_put_str(buf, token);
}

static void age_key(struct hf__buf *buf, uint64_t time_us, struct hf_str token)
{
    uint8_t bytes[8];

    store_u64be(bytes, time_us);
    hf__buf_put_byte(buf, SPACE_TOKEN_AGE);
    hf__buf_put(buf, bytes, sizeof(bytes));
    hf__buf_put_str(buf, token);
}

enum hf_status hf__token_look(struct hf_scope *s, struct engine *e, struct hf_str token,
                              const struct token_digest *digest, bool *seen, struct hf_bytes *sizes)
{
    struct hf__buf key = {.scope = s};
    struct hf_bytes value;
    int64_t age;

    assert(token.len > 0);
    ASSERT_HELD(&e->latches[hf__token_latch(token)].lock);
    *seen = false;
    token_key(&key, token);
    if (key.failed)
        return hf__fail_nomem(s);
    TRY(hf__store_get(s, e->store, NULL, hf_bytes_of(key.ptr, key.len), &value));
    if (value.len < TOKEN_HEAD)
        return HF_OK;
    age = hf__env_wall_us(&e->env) - (int64_t)load_u64be(value.ptr);
    if (age >= TOKEN_LIFE_US)
        return HF_OK;
    if (memcmp(value.ptr + 8, digest->bytes, sizeof(digest->bytes)) != 0)
        return hf__fail(s, HF_TOKEN_MISMATCH,
                        "The request uses the same client token as a previous, but non-identical "
                        "request. Do not reuse a client token with different requests, unless the "
                        "requests are identical");
    *seen = true;
    *sizes = hf_bytes_of(value.ptr + TOKEN_HEAD, value.len - TOKEN_HEAD);
    return HF_OK;
}

_Static_assert(sizeof(struct token_digest) == 16, "128 bits, as they are stored");
_Static_assert(TOKEN_HEAD == 8 + sizeof(struct token_digest) && TOKEN_SIZE == 4,
               "u64be time, digest, u32be for each action");

void hf__token_add(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                   struct hf_str token, const struct token_digest *digest, struct hf_bytes sizes)
{
    struct hf__buf key = {.scope = s};
    struct hf__buf age = {.scope = s};
    struct hf__buf value = {.scope = s};
    uint64_t now = (uint64_t)hf__env_wall_us(&e->env);
    uint8_t head[TOKEN_HEAD];

    assert(token.len > 0 && sizes.len > 0 && sizes.len % TOKEN_SIZE == 0);
    ASSERT_HELD(&e->latches[hf__token_latch(token)].lock);
    store_u64be(head, now);
    memcpy(head + 8, digest->bytes, sizeof(digest->bytes));
    token_key(&key, token);
    age_key(&age, now, token);
    hf__buf_put(&value, head, sizeof(head));
    hf__buf_put(&value, sizes.ptr, sizes.len);
    if (key.failed || age.failed || value.failed) {
        batch->ops.failed = true;
        return;
    }
    hf__batch_put(batch, hf_bytes_of(key.ptr, key.len), hf_bytes_of(value.ptr, value.len));
    hf__batch_put(batch, hf_bytes_of(age.ptr, age.len), hf_bytes_of(NULL, 0));
}

/* ---- dropping ------------------------------------------------------------------------------- */

/* Collect tokens that are too old. They are checked again before they are deleted, as one may have
 * been used again. */
static enum hf_status collect_old(struct hf_scope *s, struct engine *e, uint64_t before,
                                  struct store_batch *batch, struct latch_set *latches,
                                  struct hf_str *tokens, size_t *len)
{
    struct hf__buf lower = {.scope = s};
    struct hf__buf upper = {.scope = s};
    struct hf__store_iter *iter;
    struct store_range range;
    enum hf_status status;
    bool found = true;

    hf__buf_put_byte(&lower, SPACE_TOKEN_AGE);
    age_key(&upper, before, hf_str_of(NULL, 0));
    if (lower.failed || upper.failed)
        return hf__fail_nomem(s);
    range = (struct store_range){.lower = {lower.ptr, lower.len}, .upper = {upper.ptr, upper.len}};
    TRY(hf__store_iter_open(s, e->store, NULL, &range, &iter));
    while (*len < TOKENS_A_ROUND) {
        struct hf_bytes key, value;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status != HF_OK || !found)
            break;
        if (key.len < 1 + 8) {
            status = hf__fail(s, HF_CORRUPT, "The age of a token is damaged");
            break;
        }
        tokens[*len] = hf_scope_copy(s, hf_str_of((const char *)key.ptr + 9, key.len - 9));
        if (!tokens[*len].ptr) {
            status = hf__fail_nomem(s);
            break;
        }
        hf__batch_delete(batch, key);
        hf__latch_want(latches, hf__token_latch(tokens[*len]));
        (*len)++;
    }
    hf__store_iter_close(iter);
    return *len == TOKENS_A_ROUND ? HF_OK : status;
}

static enum hf_status drop_latched(struct hf_scope *s, struct engine *e, uint64_t before,
                                   struct store_batch *batch, const struct hf_str *tokens,
                                   size_t len)
{
    uint64_t ticket;

    for (size_t i = 0; i < len; i++) {
        struct hf__buf key = {.scope = s};
        struct hf_bytes value;

        token_key(&key, tokens[i]);
        if (key.failed)
            return hf__fail_nomem(s);
        TRY(hf__store_get(s, e->store, NULL, hf_bytes_of(key.ptr, key.len), &value));
        if (value.len >= TOKEN_HEAD && load_u64be(value.ptr) < before)
            hf__batch_delete(batch, hf_bytes_of(key.ptr, key.len));
    }
    if (batch->ops.failed)
        return hf__fail_nomem(s);
    return hf__store_write(s, e->store, batch, &ticket);
}

/* One round; *len is the number of tokens it dropped. */
static enum hf_status drop_round(struct hf_scope *s, struct engine *e, uint64_t before, size_t *len)
{
    struct store_batch batch = {.ops = {.scope = s}, .frees = true};
    struct hf_str *tokens = hf__scope_array(s, TOKENS_A_ROUND, sizeof(*tokens));
    struct latch_set latches;
    enum hf_status status;

    *len = 0;
    if (!tokens)
        return hf__fail_nomem(s);
    TRY(hf__latch_set(s, TOKENS_A_ROUND, &latches));
    TRY(collect_old(s, e, before, &batch, &latches, tokens, len));
    if (*len == 0)
        return HF_OK;
    hf__latch_all(e, &latches);
    status = drop_latched(s, e, before, &batch, tokens, *len);
    hf__unlatch_all(e, &latches, 0);
    return status;
}

enum hf_status hf__tokens_drop(struct hf_scope *s, struct engine *e, uint64_t *dropped)
{
    int64_t before = hf__env_wall_us(&e->env) - TOKEN_LIFE_US;
    enum hf_status status = HF_OK;
    size_t len = TOKENS_A_ROUND;

    while (before >= 0 && len == TOKENS_A_ROUND && status == HF_OK) {
        struct hf__mark mark = hf__scope_mark(s);

        status = drop_round(s, e, (uint64_t)before, &len);
        if (status == HF_OK) {
            *dropped += len;
            hf__scope_rewind(s, mark);
        }
    }
    return status;
}
