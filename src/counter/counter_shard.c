/*
 * counter/counter_shard.c: counters that are spread over many items; and reading and removing, for
 * which it matters whether they are.
 *
 * The counter's own item is the first shard, and says in `shards` how many there are. A writer adds
 * to any one of them, by chance, or where its request id points to.
 *
 *  (1) Before anything is added to shard n the first item says that there are more than n; and it
 *      never says less than before. So a reader that reads as many as it says misses none.
 *  (2) The sum is read in one transaction, together with the first item, where there are any. Else
 *      each part is some value of its own during the call.
 */
#include <holdfast/batch.h>

#include "counter/counter.h"

enum { TRIES_MAX = 20 };

/* ---- adding --------------------------------------------------------------------------------- */

/* (1): let the first item say how many there are. Doing it again changes nothing. */
static enum hf_status shards_announce(struct hf_scope *s, struct hf_counters *c,
                                      const struct counter_at *first)
{
    struct hf_update_item update = {.table = c->table,
                                    .key = first->key,
                                    .update = HF_STR("SET #shards = :shards"),
                                    .condition = HF_STR(
                                        "attribute_not_exists(#shards) OR #shards < :shards"),
                                    .names = HF_ITEM(s, HF_S("#shards", HF_STR("shards"))),
                                    .values = HF_ITEM(s, HF_N(":shards", c->shards))};
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, c->db, &(struct hf_transact_write){.update = &update}, first->key,
                               &item);
    return status == HF_CONDITION ? hf_scope_ok(s) : status;
}

/* Once for each counter, as long as we remember it: as a mark that no item has. */
static enum hf_status announce_once(struct hf_scope *s, struct hf_counters *c,
                                    const struct counter_at *first)
{
    struct hf_str text = hf_scope_format(s, "shards of %.*s", HF_FMT(first->text));
    enum hf_status status = HF_OK;
    struct mark *mark;

    TRY(hf_scope_built(s));
    mark = hf__counter_mark_take(&c->marks, text);
    if (!mark || !mark->last)
        status = shards_announce(s, c, first);
    if (mark)
        mark->last = 1;
    hf__counter_mark_give(&c->marks, mark, status == HF_OK);
    return status;
}

enum hf_status hf__counter_spread(struct hf_scope *s, struct hf_counters *c,
                                  struct hf_counter_key key, struct hf_str request,
                                  struct counter_at *at)
{
    uint64_t draw = fnv_add(FNV_BEGIN, request.ptr, request.len);

    assert(c->shards > 1 && c->shards <= HF_COUNTER_SHARDS_MAX);
    TRY(announce_once(s, c, at));
    if (!request.ptr)
        c->env.random(&draw, sizeof(draw), c->env.user);
    return hf__counter_at(s, c, key, (uint32_t)((draw ^ (draw >> 32)) % c->shards), at);
}

/* ---- the sum -------------------------------------------------------------------------------- */

/* The items, in order, at one moment if that can be (2). */
static enum hf_status read_at_once(struct hf_scope *s, struct hf_counters *c,
                                   const struct counter_at *at, uint32_t len, struct hf_item *items)
{
    struct hf_transact_get *actions = hf_scope_alloc(s, len * sizeof(*actions));
    struct hf_get_item *gets = hf_scope_alloc(s, len * sizeof(*gets));
    struct hf_item names =
        HF_ITEM(s, HF_S("#count", HF_STR("count")), HF_S("#shards", HF_STR("shards")));
    struct hf_transact_get_items request = {.actions = actions, .actions_len = len};
    struct hf_transact_get_items_result result;
    enum hf_status status;

    TRY(hf_scope_built(s));
    for (uint32_t i = 0; i < len; i++) {
        gets[i] = (struct hf_get_item){.table = c->table,
                                       .key = at[i].key,
                                       .projection = HF_STR("#count, #shards"),
                                       .names = names};
        actions[i] = (struct hf_transact_get){.get = &gets[i]};
    }
    for (int round = 1;; round++) {
        status = hf_transact_get_items(s, c->db, &request, &result);
        if ((status != HF_TX_CANCELED && status != HF_TX_CONFLICT) || round == TRIES_MAX)
            break; /* else a transaction was in the way */
        TRY(hf_scope_sleep_ms(s, hf__backoff_jitter_ms(&c->env, 20)));
    }
    for (uint32_t i = 0; i < len && status == HF_OK; i++)
        items[i] = result.items[i].item;
    return status;
}

static enum hf_status read_each(struct hf_scope *s, struct hf_counters *c,
                                const struct counter_at *at, uint32_t len, struct hf_item *items)
{
    struct hf_get *gets = hf_scope_alloc(s, len * sizeof(*gets));
    struct hf_get_many_result result;

    TRY(hf_scope_built(s));
    for (uint32_t i = 0; i < len; i++)
        gets[i] = (struct hf_get){.table = c->table, .key = at[i].key};
    TRY(hf_get_many(s, c->db, gets, len, HF_OPTIONS(hf_many_options, .consistent = true), &result));
    memcpy(items, result.items, len * sizeof(*items));
    return HF_OK;
}

static enum hf_status add_up(struct hf_scope *s, const struct counter_at *at, uint32_t len,
                             const struct hf_item *items, struct hf_counter_value *value,
                             uint32_t *shards)
{
    struct counter_seen seen;

    value->value = 0;
    value->found = false;
    for (uint32_t i = 0; i < len; i++) {
        TRY(hf__counter_see(s, &at[i], items[i], (struct counter_mark){0}, &seen));
        if (__builtin_add_overflow(value->value, seen.value, &value->value))
            return hf_scope_fail(s, HF_LIMIT, "the sum of %.*s does not fit into 64 bits",
                                 HF_FMT(hf__counter_name(s, at)));
        value->found = value->found || seen.found;
        if (i == 0)
            *shards = seen.shards;
    }
    return HF_OK;
}

enum hf_status hf__counter_sum(struct hf_scope *s, struct hf_counters *c, struct hf_counter_key key,
                               uint32_t shards, struct hf_counter_value *value)
{
    uint32_t len;
    bool at_once;

    assert(shards > 0);
    TRY(hf_db_supports(s, c->db, HF_FEATURE_TRANSACTIONS, &at_once));
    do {
        struct counter_at *at;
        struct hf_item *items;

        len = shards;
        at = hf_scope_alloc(s, len * sizeof(*at));
        items = hf_scope_alloc(s, len * sizeof(*items));
        TRY(hf_scope_built(s));
        for (uint32_t i = 0; i < len; i++)
            TRY(hf__counter_at(s, c, key, i, &at[i]));
        TRY(at_once ? read_at_once(s, c, at, len, items) : read_each(s, c, at, len, items));
        TRY(add_up(s, at, len, items, value, &shards));
    } while (shards > len); /* it has grown */
    return HF_OK;
}

/* ---- many ----------------------------------------------------------------------------------- */

enum hf_status hf_counter_get_many(struct hf_scope *s, struct hf_counters *c,
                                   const struct hf_counter_key *keys, size_t len,
                                   struct hf_counter_value *values)
{
    struct hf_scope_mark memory = hf_scope_mark(s);
    struct counter_at *at;
    struct hf_get *gets;
    struct hf_get_many_result result;

    call_begins(s);
    for (size_t i = 0; i < len; i++)
        values[i] = (struct hf_counter_value){.key = keys[i]};
    if (len == 0)
        return HF_OK;
    if (len > SIZE_MAX / sizeof(*at))
        return hf_scope_fail(s, HF_INVALID, "%zu counters are too many", len);
    at = hf_scope_alloc(s, len * sizeof(*at));
    gets = hf_scope_alloc(s, len * sizeof(*gets));
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++) {
        TRY(hf__counter_at(s, c, keys[i], 0, &at[i]));
        gets[i] = (struct hf_get){.table = c->table, .key = at[i].key};
    }
    TRY(hf_get_many(s, c->db, gets, len, HF_OPTIONS(hf_many_options, .consistent = true), &result));
    for (size_t i = 0; i < len; i++) {
        struct counter_seen seen;

        TRY(hf__counter_see(s, &at[i], result.items[i], (struct counter_mark){0}, &seen));
        values[i].value = seen.value;
        values[i].found = seen.found;
        if (seen.shards > 1)
            TRY(hf__counter_sum(s, c, keys[i], seen.shards, &values[i]));
    }
    hf_scope_rewind(s, memory);
    return HF_OK;
}

/* ---- removing ------------------------------------------------------------------------------- */

/*
 * Put `successor` in its place, or nothing when that is absent, if it is still the item that was
 * seen. *gone: that one is there no more. An item that was never changed under a mark cannot be
 * told from what it becomes when it is: then it has to be looked at again.
 */
static enum hf_status item_replace(struct hf_scope *s, struct hf_counters *c,
                                   const struct counter_at *at, const struct counter_seen *seen,
                                   struct hf_item successor, bool *gone)
{
    struct hf_str condition =
        seen->born.ptr ? HF_STR("#born = :born") : HF_STR("attribute_not_exists(#born)");
    struct hf_item names = HF_ITEM(s, HF_S("#born", HF_STR("born"))), values = {0}, item;
    struct hf_put_item put = {.table = c->table, .item = successor};
    struct hf_delete_item del = {.table = c->table, .key = at->key};
    struct hf_transact_write write = {0};
    enum hf_status status;

    if (seen->born.ptr)
        values = HF_ITEM(s, HF_S(":born", seen->born));
    put.condition = del.condition = condition;
    put.names = del.names = names;
    put.values = del.values = values;
    if (successor.ptr)
        write.put = &put;
    else
        write.del = &del;
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, c->db, &write, at->key, &item);
    *gone = status == HF_OK || seen->born.ptr || hf_scope_error(s)->may_have_happened;
    return status == HF_CONDITION ? hf_scope_ok(s) : status;
}

/* What is left of the first item when there are others: how many, and that all marks are gone. */
static struct hf_item stub_of(struct hf_scope *s, struct hf_counters *c,
                              const struct counter_at *at, const struct counter_seen *seen)
{
    struct pattern_id id = hf__pattern_id_make(&c->env);
    const struct hf_attr attrs[] = {HF_N("shards", seen->shards), HF_N("rev", seen->rev + 1),
                                    HF_N("gone", seen->rev + 1),
                                    HF_S("born", hf_str_of(id.text, MARK_LEN))};

    return hf_item_with(s, at->key, attrs, ARRAY_LEN(attrs));
}

static enum hf_status remove_one(struct hf_scope *s, struct hf_counters *c,
                                 struct hf_counter_key key, uint32_t shard, uint32_t *shards)
{
    struct counter_at at;
    bool gone = false;

    TRY(hf__counter_at(s, c, key, shard, &at));
    while (!gone) {
        struct hf_item item, left = {0};
        struct counter_seen seen;

        TRY(hf__pattern_read(s, c->db, c->table, at.key, &item));
        if (!item.ptr)
            return HF_OK;
        TRY(hf__counter_see(s, &at, item, (struct counter_mark){0}, &seen));
        if (shard == 0)
            *shards = seen.shards;
        if (shard == 0 && seen.shards > 1)
            left = stub_of(s, c, &at, &seen);
        TRY(item_replace(s, c, &at, &seen, left, &gone));
    }
    return HF_OK;
}

enum hf_status hf_counter_delete(struct hf_scope *s, struct hf_counters *c,
                                 struct hf_counter_key key)
{
    struct hf_scope_mark memory = hf_scope_mark(s);
    uint32_t shards = 1;

    TRY(remove_one(s, c, key, 0, &shards));
    for (uint32_t shard = 1; shard < shards; shard++)
        TRY(remove_one(s, c, key, shard, &shards));
    hf_scope_rewind(s, memory);
    return HF_OK;
}
