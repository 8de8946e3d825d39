/*
 * once/once_item.c: how do-once is stored, and the requests that change it. Nothing is sent
 * here.
 *
 *     user        S  the hash key; it, the range key and expires may be named otherwise
 *     key         S  the range key
 *     state       S  "running", "done" or "failed"
 *     attempt     S  the id of the attempt that runs or that completed it
 *     tries       N  how often it was begun
 *     owner       S  who made that attempt, for people
 *     began_ms    N  when, by its wall clock
 *     beat        N  running: grows with each heartbeat
 *     timeout_ms  N  running: how long it may be silent
 *     renewed_ms  N  running: the last heartbeat, by its wall clock
 *     opener      S  running: through which opening of a directory (opener.c); may be absent
 *     done_ms     N  completed: when, by the wall clock of who did
 *     result      M  completed: what came out; may be absent
 *     until_ms    N  completed: how long it is kept; absent: forever
 *     hash        S  SHA-256 of the payload; may be absent
 *     expires     N  time to live in seconds, for the database; never before until_ms
 *
 *  (1) An attempt's id is random and new for each call that begins one, and every write for it is
 *      conditional on it. A completion needs "running" as well, so that a record is completed at
 *      most once.
 *  (2) What begins is refused once it was done: the state is there then, or the attempt that it
 *      follows is not. So is what completes, marks or removes. A heartbeat that comes late or twice
 *      has a beat that is not higher, and is refused, too.
 *  (3) until_ms is there only in a completed record, so its comparison cannot let an attempt be
 *      taken for a forgotten result.
 */
#include <openssl/evp.h>

#include "coord/placeholders.h"
#include "once/once.h"

static const struct hf_str states[] = {
    [HF_ONCE_RUNNING] = HF_STR_INIT("running"),
    [HF_ONCE_DONE] = HF_STR_INIT("done"),
    [HF_ONCE_FAILED] = HF_STR_INIT("failed"),
};

_Static_assert(ARRAY_LEN(states) == HF_ONCE_FAILED + 1, "every state has a name");
_Static_assert(ONCE_HASH_LEN == 2 * 32, "SHA-256 in hexadecimal");

/* ---- names ---------------------------------------------------------------------------------- */

struct hf_item hf__once_key(struct hf_scope *s, const struct once_name *name)
{
    const struct hf_attr key[] = {{.name = name->at->hash, .type = HF_TYPE_S, .text = name->user},
                                  {.name = name->at->sort, .type = HF_TYPE_S, .text = name->key}};

    return hf_item_make(s, key, ARRAY_LEN(key));
}

enum hf_status hf__once_name_check(struct hf_scope *s, const struct once_name *name)
{
    if (name->user.len == 0 || name->key.len == 0)
        return hf_scope_fail(s, HF_INVALID, "a do-once record needs a user and a key");
    if (hf__kind_is_mark(name->user))
        return hf_scope_fail(s, HF_INVALID,
                             "a user cannot be named \"%.*s\": the table's mark has that name",
                             HF_FMT(name->user));
    if (name->user.len > HF_ONCE_USER_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_ONCE_USER_MAX, name->user.len),
                                   "once %.32s...: a user of %zu bytes is longer than %d",
                                   name->user.ptr, name->user.len, HF_ONCE_USER_MAX);
    if (name->key.len > HF_ONCE_KEY_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_ONCE_KEY_MAX, name->key.len),
                                   "once %.*s/%.32s...: a key of %zu bytes is longer than %d",
                                   HF_FMT(name->user), name->key.ptr, name->key.len,
                                   HF_ONCE_KEY_MAX);
    return HF_OK;
}

enum hf_status hf__once_hash(struct hf_scope *s, struct hf_bytes payload, struct hf_str *hash)
{
    uint8_t digest[ONCE_HASH_LEN / 2];
    unsigned len = sizeof(digest);
    char *text;

    *hash = (struct hf_str){0};
    if (!payload.ptr)
        return HF_OK;
    text = hf_scope_alloc(s, ONCE_HASH_LEN);
    if (!text)
        return hf_scope_built(s);
    if (EVP_Digest(payload.ptr, payload.len, digest, &len, EVP_sha256(), NULL) != 1)
        return hf_scope_fail(s, HF_NOMEM, "no memory for the hash of a payload");
    hex_write(text, digest, sizeof(digest));
    *hash = hf_str_of(text, ONCE_HASH_LEN);
    return HF_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool read_u64(struct hf_item item, const char *name, bool needed, uint64_t *out)
{
    struct hf_value value = hf_item_get(item, hf_str_from(name));
    int64_t number;

    *out = 0;
    if (!value.ptr)
        return !needed;
    if (!hf_value_i64(value, &number) || number < 0 || number > INT64_MAX / 1000)
        return false;
    *out = (uint64_t)number;
    return true;
}

static enum hf_once_state state_of(struct hf_str text)
{
    for (size_t i = HF_ONCE_RUNNING; i <= HF_ONCE_FAILED; i++)
        if (hf_str_equal(text, states[i]))
            return (enum hf_once_state)i;
    return HF_ONCE_NONE;
}

static bool read_all(struct hf_item item, struct once_view *view)
{
    struct hf_once_record *r = &view->record;
    bool running = r->state == HF_ONCE_RUNNING;
    uint64_t timeout_ms, renewed_ms, done_ms, until_ms, began_ms;

    if (!r->state || !r->attempt.ptr || !r->owner.ptr ||
        !read_u64(item, "tries", false, &r->tries) ||
        !read_u64(item, "began_ms", running, &began_ms) ||
        !read_u64(item, "beat", running, &view->beat) ||
        !read_u64(item, "timeout_ms", running, &timeout_ms) ||
        !read_u64(item, "renewed_ms", running, &renewed_ms) ||
        !read_u64(item, "done_ms", !running, &done_ms) ||
        !read_u64(item, "until_ms", false, &until_ms) || timeout_ms > UINT32_MAX)
        return false;
    r->timeout_ms = (uint32_t)timeout_ms;
    r->began_us = (int64_t)began_ms * 1000;
    r->renewed_us = (int64_t)renewed_ms * 1000;
    r->at_us = (int64_t)done_ms * 1000;
    r->until_us = (int64_t)until_ms * 1000;
    return true;
}

enum hf_status hf__once_view(struct hf_scope *s, const struct pattern_at *at, struct hf_item item,
                             int64_t now_ms, struct once_view *view)
{
    struct hf_once_record *r = &view->record;

    *view = (struct once_view){.there = item.ptr != NULL};
    if (!item.ptr)
        return HF_OK;
    r->user = hf_value_str(hf_item_get(item, at->hash));
    r->key = hf_value_str(hf_item_get(item, at->sort));
    r->state = state_of(hf_value_str(hf_item_get(item, HF_STR("state"))));
    r->attempt = hf_value_str(hf_item_get(item, HF_STR("attempt")));
    r->owner = hf_value_str(hf_item_get(item, HF_STR("owner")));
    r->result = hf_value_item(hf_item_get(item, HF_STR("result")));
    view->hash = hf_value_str(hf_item_get(item, HF_STR("hash")));
    view->opener = hf_value_str(hf_item_get(item, HF_STR("opener")));
    if (!read_all(item, view))
        return hf_scope_fail(s, HF_CORRUPT, "item %.*s/%.*s of table %.*s is not a do-once record",
                             HF_FMT(r->user), HF_FMT(r->key), HF_FMT(at->table));
    if (r->state != HF_ONCE_RUNNING && r->until_us && r->until_us / 1000 <= now_ms) {
        struct hf_once_record forgotten = {.user = r->user, .key = r->key, .attempt = r->attempt};

        *r = forgotten;
        view->hash = (struct hf_str){0};
    }
    return HF_OK;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Names that are reserved words of DynamoDB's, or that callers choose, have placeholders; the others
 * cost less without. */

static struct hf_update_item update_of(struct holders *h, const struct once_name *name,
                                       struct hf_str update, struct hf_str condition)
{
    return (struct hf_update_item){
        .table = name->at->table,
        .key = hf__once_key(h->s, name),
        .update = update,
        .condition = condition,
        .names = hf_item_make(h->s, h->names, h->names_len),
        .values = hf_item_make(h->s, h->values, h->values_len),
        .returns = HF_RETURN_ALL_NEW,
    };
}

int64_t hf__once_orphan_s(int64_t now_ms, uint32_t timeout_ms, uint32_t keep_s)
{
    if (!keep_s)
        return 0;
    return (now_ms + timeout_ms) / 1000 + (keep_s > ONCE_ORPHAN_S ? keep_s : ONCE_ORPHAN_S);
}

struct hf_update_item hf__once_take_request(struct hf_scope *s, const struct once_take *take)
{
    struct holders h = {.s = s};
    int64_t expires_s = hf__once_orphan_s(take->now_ms, take->timeout_ms, take->keep_s);
    struct hf_str update, condition;

    assert(take->id.len == PATTERN_ID_LEN && take->beat > 0 && take->timeout_ms > 0);
    /* In the order in which items keep them: then nothing has to be sorted. */
    holders_name(&h, HF_STR("#expires"), take->name.at->expires);
    NAMES(&h, "#hash", "#owner", "#result", "#state");
    VALUE(&h, HF_N(":beat", take->beat));
    if (expires_s)
        VALUE(&h, HF_N(":expires", expires_s));
    if (take->hash.ptr)
        VALUE(&h, HF_S(":hash", take->hash));
    VALUE(&h, HF_S(":me", take->id));
    VALUE(&h, HF_N(":now", take->now_ms));
    VALUE(&h, HF_N(":one", 1));
    if (take->opener.len)
        VALUE(&h, HF_S(":opener", take->opener));
    VALUE(&h, HF_S(":owner", take->owner));
    VALUE(&h, HF_S(":running", states[HF_ONCE_RUNNING]));
    VALUE(&h, HF_N(":timeout", take->timeout_ms));
    VALUE(&h, HF_N(":zero", 0));
    update = hf_scope_format(s,
                             "SET attempt = :me, beat = :beat, began_ms = :now, #owner = :owner, "
                             "renewed_ms = :now, #state = :running, timeout_ms = :timeout, "
                             "tries = if_not_exists(tries, :zero) + :one%s%s%s "
                             "REMOVE done_ms, #result, until_ms%s%s%s",
                             take->hash.ptr ? ", #hash = :hash" : "",
                             expires_s ? ", #expires = :expires" : "",
                             take->opener.len ? ", opener = :opener" : "",
                             take->hash.ptr ? "" : ", #hash", expires_s ? "" : ", #expires",
                             take->opener.len ? "" : ", opener");
    if (take->follows.ptr) {
        condition = HF_STR("attempt = :seen AND beat = :seen_beat AND #state = :running");
        VALUE(&h, HF_S(":seen", take->follows));
        VALUE(&h, HF_N(":seen_beat", take->follows_beat));
    } else {
        condition = HF_STR("attribute_not_exists(#state) OR until_ms <= :now");
    }
    return update_of(&h, &take->name, update, condition);
}

struct hf_update_item hf__once_beat_request(struct hf_scope *s, const struct once_name *name,
                                            struct hf_str id, uint64_t beat, int64_t now_ms,
                                            int64_t expires_s)
{
    struct holders h = {.s = s};
    struct hf_str update = HF_STR("SET beat = :beat, renewed_ms = :now");

    assert(id.len == PATTERN_ID_LEN && beat > 1 && "a heartbeat follows the beat that began it");
    NAMES(&h, "#state");
    VALUE(&h, HF_S(":running", states[HF_ONCE_RUNNING]));
    VALUE(&h, HF_S(":me", id));
    VALUE(&h, HF_N(":beat", beat));
    VALUE(&h, HF_N(":now", now_ms));
    if (expires_s) {
        holders_name(&h, HF_STR("#expires"), name->at->expires);
        VALUE(&h, HF_N(":expires", expires_s));
        update = HF_STR("SET beat = :beat, renewed_ms = :now, #expires = :expires");
    }
    return update_of(&h, name, update,
                     HF_STR("attempt = :me AND #state = :running AND beat < :beat"));
}

/* What a completion sets and removes, in every form. */
static struct hf_str completion_text(struct holders *h, const struct once_end *end,
                                     const char *more)
{
    int64_t until_ms = end->now_ms + (int64_t)end->keep_s * 1000;

    assert(end->state == HF_ONCE_DONE || end->state == HF_ONCE_FAILED);
    assert(end->id.len == PATTERN_ID_LEN && "(1)");
    holders_name(h, HF_STR("#expires"), end->name.at->expires);
    NAMES(h, "#result", "#state");
    if (end->keep_s)
        VALUE(h, HF_N(":expires", until_ms / 1000 + 1));
    VALUE(h, HF_N(":now", end->now_ms));
    if (end->result.ptr)
        VALUE(h, HF_M(":result", end->result));
    VALUE(h, HF_S(":state", states[end->state]));
    if (end->keep_s)
        VALUE(h, HF_N(":until", until_ms));
    return hf_scope_format(
        h->s,
        "SET done_ms = :now, #state = :state%s%s%s REMOVE beat, opener, renewed_ms, "
        "timeout_ms%s%s",
        end->keep_s ? ", #expires = :expires, until_ms = :until" : "",
        end->result.ptr ? ", #result = :result" : "", more,
        end->keep_s ? "" : ", #expires, until_ms", end->result.ptr ? "" : ", #result");
}

struct hf_update_item hf__once_end_request(struct hf_scope *s, const struct once_end *end)
{
    struct holders h = {.s = s};
    struct hf_str update = completion_text(&h, end, "");

    VALUE(&h, HF_S(":running", states[HF_ONCE_RUNNING]));
    VALUE(&h, HF_S(":me", end->id));
    return update_of(&h, &end->name, update, HF_STR("attempt = :me AND #state = :running"));
}

struct hf_update_item hf__once_mark_request(struct hf_scope *s, const struct once_end *mark,
                                            struct hf_str owner, struct hf_str hash,
                                            bool over_running)
{
    struct holders h = {.s = s};
    struct hf_str update =
        completion_text(&h, mark,
                        hash.ptr ? ", attempt = :me, #owner = :owner, tries = :zero, #hash = :hash"
                                 : ", attempt = :me, #owner = :owner, tries = :zero");
    struct hf_str condition = HF_STR("attribute_not_exists(#state) OR until_ms <= :now");

    NAMES(&h, "#owner", "#hash");
    VALUE(&h, HF_S(":me", mark->id));
    VALUE(&h, HF_S(":owner", owner));
    VALUE(&h, HF_N(":zero", 0));
    if (hash.ptr)
        VALUE(&h, HF_S(":hash", hash));
    update = hf_scope_format(s, "%.*s, began_ms%s", HF_FMT(update), hash.ptr ? "" : ", #hash");
    if (over_running) {
        VALUE(&h, HF_S(":running", states[HF_ONCE_RUNNING]));
        condition = hash.ptr ? HF_STR("attribute_not_exists(#state) OR until_ms <= :now OR "
                                      "(#state = :running AND "
                                      "(attribute_not_exists(#hash) OR #hash = :hash))")
                             : HF_STR("attribute_not_exists(#state) OR until_ms <= :now OR "
                                      "#state = :running");
    }
    return update_of(&h, &mark->name, update, condition);
}

struct hf_delete_item hf__once_remove_request(struct hf_scope *s, const struct once_name *name,
                                              struct hf_str id, bool only_running)
{
    struct holders h = {.s = s};

    VALUE(&h, HF_S(":me", id));
    if (only_running) {
        NAMES(&h, "#state");
        VALUE(&h, HF_S(":running", states[HF_ONCE_RUNNING]));
    }
    return (struct hf_delete_item){
        .table = name->at->table,
        .key = hf__once_key(s, name),
        .condition =
            only_running ? HF_STR("attempt = :me AND #state = :running") : HF_STR("attempt = :me"),
        .names = only_running ? hf_item_make(s, h.names, h.names_len) : (struct hf_item){0},
        .values = hf_item_make(s, h.values, h.values_len),
    };
}
