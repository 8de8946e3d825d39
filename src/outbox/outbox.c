/*
 * outbox/outbox.c: an outbox: opening it, who listens, which kind of work it is for, and the two
 * ways in which its files write. outbox_item.c says how events are stored, outbox_emit.c stores
 * them, outbox_work.c is what relays do, outbox_claim.c what those do who claim events one by one,
 * outbox_list.c looks, outbox_admin.c changes by hand.
 *
 * What always holds, in all of these files:
 *
 *  (1) How many buckets there are is written into the table once, and all processes use that number.
 *      Otherwise one would emit into a bucket that the other never reads.
 *  (2) An event that was emitted is in p until it was delivered, became a dead letter (f) or was
 *      discarded. It moves in one transaction; where there are none it is put into its new place
 *      first and then removed from the old one, so a crash in between leaves it in both, never in
 *      none.
 *  (3) Only emitting, retrying and replaying put an event into p: all other writes are conditional on
 *      it being there. Only publishing changes h.
 *  (4) A claim is taken, extended, completed and released with its token and fence in the condition.
 *  (5) A waker that was removed is not called any more, and none is called while a mutex is held.
 *
 * Delivery is at least once. A put whose answer got lost is sent again; if the event was delivered
 * meanwhile, that stores it again, with the same id.
 */
#include "outbox/outbox.h"

#include <holdfast/table.h>

#include "coord/placeholders.h"

enum {
    ATTEMPTS = 5,
    FIRST_DELAY_MS = 20,
    MODE_FRESH_MS = 60000, /* for so long the stamp is not read again */
    MODE_OVER_MS = 600000, /* a stamp that is older counts no more */
    MODE_ROUNDS = 5
};

/* ---- the table ------------------------------------------------------------------------------ */

#define EXPIRES "ttl"                    /* the default name of the time to live */
#define EXPIRES_ATTR "expires_attribute" /* in the config: its name, if it is another */

/* Attributes of its items: those of outbox_item.c, of ids, of the config, of relays and buckets. */
static const char *const own[] = {"id",        "type",        "key",          "content_type",
                                  "schema",    "source",      "tenant",       "correlation",
                                  "causation", "aggregate",   "destination",  "aggregate_type",
                                  "sequence",  "trace_state", "trace_parent", "time",
                                  "due",       "payload",     "headers",      "blob",
                                  "blob_size", "attempts",    "crashes",      "begun",
                                  "tried",     "next",        "error",        "error_text",
                                  "cause",     "ended",       "owner",        "lease",
                                  "token",     "opener",      "ahead",        "suspect",
                                  "fence",     "put",         "try",          "let",
                                  "done",      "from",        "seq",          "buckets",
                                  FORMAT_ATTR, KIND_ATTR,     "mode",         "mode_at",
                                  "beat",      "lease_ms",    "only",         "stopped",
                                  "relay",     "window",      "urgent",       EXPIRES_ATTR,
                                  "paused",    NULL};

/* What hf_create_table points to. */
struct spec {
    struct hf_attribute_definition attributes[2];
    struct hf_key_element keys[2];
};

static struct hf_create_table spec_of(const struct hf_outbox *outbox,
                                      const struct hf_stream_spec *stream, struct spec *room)
{
    const struct pattern_at *at = &outbox->at;

    *room = (struct spec){.attributes = {{at->hash, HF_SCALAR_S}, {at->sort, HF_SCALAR_S}},
                          .keys = {{at->hash, HF_KEY_HASH}, {at->sort, HF_KEY_RANGE}}};
    return (struct hf_create_table){.table = outbox->table,
                                    .attributes = room->attributes,
                                    .attributes_len = ARRAY_LEN(room->attributes),
                                    .key_schema = room->keys,
                                    .key_schema_len = ARRAY_LEN(room->keys),
                                    .stream = stream};
}

static struct hf_item config_key(struct hf_scope *s, const struct hf_outbox *outbox)
{
    return hf__outbox_key_of(s, outbox, HF_STR("c"), HF_STR("config"));
}

static int64_t number_of(struct hf_item item, const char *name)
{
    int64_t number;

    return hf_value_i64(hf_item_get(item, hf_str_from(name)), &number) ? number : -1;
}

static enum hf_status check_config(struct hf_scope *s, struct hf_outbox *outbox,
                                   struct hf_item config, uint32_t wanted)
{
    struct hf_str kind = hf_value_str(hf_item_get(config, HF_STR(KIND_ATTR)));
    struct hf_str expires = hf_value_str(hf_item_get(config, HF_STR(EXPIRES_ATTR)));
    int64_t buckets = number_of(config, "buckets");

    if (!kind.len && buckets > 0) /* the first ones did not say what they are */
        kind = hf__kind_name(KIND_OUTBOX);
    TRY(hf__kind_check(s, outbox->table, KIND_OUTBOX, kind,
                       hf_item_get(config, HF_STR(FORMAT_ATTR))));
    if (buckets < 1 || buckets > HF_OUTBOX_BUCKETS_MAX)
        return hf_scope_fail(s, HF_CORRUPT, "table %.*s does not say how many buckets it has",
                             HF_FMT(outbox->table));
    if (wanted && buckets != wanted)
        return hf_scope_fail(s, HF_INVALID, "outbox %.*s has %d buckets, expected %u",
                             HF_FMT(outbox->table), (int)buckets, wanted);
    if (!hf_str_equal(expires.ptr ? expires : HF_STR(EXPIRES), outbox->at.expires))
        return hf_scope_fail(s, HF_INVALID,
                             "outbox %.*s has its time to live in the attribute \"%.*s\", not in "
                             "\"%.*s\". Open it with the first as its expires_attribute, or use "
                             "another table",
                             HF_FMT(outbox->table), HF_FMT(expires.ptr ? expires : HF_STR(EXPIRES)),
                             HF_FMT(outbox->at.expires));
    outbox->buckets = (uint32_t)buckets;
    assert(outbox->buckets && outbox->at.expires.len);
    return hf_scope_ok(s);
}

/* (1) Store the number of buckets, and the name of the time to live if it is not EXPIRES; or read what
 * another process has stored. */
static enum hf_status agree_on_buckets(struct hf_scope *s, struct hf_outbox *outbox,
                                       uint32_t wanted, bool adopt)
{
    struct hf_item key = config_key(s, outbox), found;
    struct spec room;
    const struct hf_create_table spec = spec_of(outbox, NULL, &room);
    const struct hf_attr config[] = {HF_N("buckets", wanted ? wanted : HF_OUTBOX_BUCKETS),
                                     HF_N(FORMAT_ATTR, hf__kind_format(KIND_OUTBOX)),
                                     HF_S(KIND_ATTR, hf__kind_name(KIND_OUTBOX)),
                                     HF_S(EXPIRES_ATTR, outbox->at.expires)};
    bool usual = hf_str_equal(outbox->at.expires, HF_STR(EXPIRES));
    struct hf_put_item put = {.table = outbox->table,
                              .item = hf_item_with(s, key, config, ARRAY_LEN(config) - usual),
                              .condition = HF_STR("attribute_not_exists(#pk)"),
                              .names = HF_ITEM(s, HF_S("#pk", outbox->at.hash))};
    const struct kind_table of = {.db = outbox->db,
                                  .spec = &spec,
                                  .kind = KIND_OUTBOX,
                                  .adopt = adopt};
    enum hf_status status;

    TRY(hf__kind_read(s, &of, key, &found));
    if (!found.ptr) {
        status = hf__kind_put(s, &of, &(struct hf_transact_write){.put = &put}, key, &found);
        if (status != HF_OK && status != HF_CONDITION)
            return status;
        if (status == HF_OK)
            found = put.item;
    }
    return call_ends(s, check_config(s, outbox, found, wanted));
}

static enum hf_status table_ensure(struct hf_scope *s, struct hf_outbox *outbox,
                                   const struct hf_outbox_options *o)
{
    const struct hf_stream_spec stream = {.enabled = HF_YES, .view = HF_VIEW_NEW_AND_OLD_IMAGES};
    struct spec room;
    const struct hf_create_table spec = spec_of(outbox, o->stream ? &stream : NULL, &room);
    struct pattern_open how = {KIND_OUTBOX, .no_create = o->no_create, .adopt = o->adopt};

    TRY(hf__pattern_table_begin(s, outbox->db, &spec, outbox->at.expires, &how));
    TRY(agree_on_buckets(s, outbox, o->buckets, o->adopt));
    return hf__pattern_table_end(s, outbox->db, &spec, outbox->at.expires, &how);
}

static enum hf_status outbox_fill(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_outbox_options *o)
{
    outbox->names = hf_scope_new(&outbox->env);
    if (!outbox->names)
        return hf_scope_fail(s, HF_NOMEM, "no memory for an outbox");
    outbox->table = hf_scope_copy(outbox->names, o->table.len ? o->table : HF_STR("outbox"));
    outbox->source = hf_scope_copy(outbox->names, o->source.len ? o->source : HF_STR("holdfast"));
    outbox->at =
        (struct pattern_at){.table = outbox->table,
                            .hash = name_or(outbox->names, o->hash_attribute, "pk"),
                            .sort = name_or(outbox->names, o->sort_attribute, "sk"),
                            .expires = name_or(outbox->names, o->expires_attribute, EXPIRES)};
    if (hf_scope_built(outbox->names) != HF_OK)
        return hf_scope_fail(s, HF_NOMEM, "no memory for an outbox");
    TRY(hf__pattern_names(s, &outbox->at, own));
    outbox->history_s = o->history_s;
    outbox->unique_s = o->unique_s ? o->unique_s : HF_OUTBOX_HISTORY_S;
    if (o->buckets > HF_OUTBOX_BUCKETS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_OUTBOX_BUCKETS_MAX, o->buckets),
                                   "%u buckets are more than %d", o->buckets,
                                   HF_OUTBOX_BUCKETS_MAX);
    if (o->source.len > HF_EVENT_TEXT_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_EVENT_TEXT_MAX, o->source.len),
                                   "the source has %zu bytes, more than %d", o->source.len,
                                   HF_EVENT_TEXT_MAX);
    TRY(hf_db_supports(s, outbox->db, HF_FEATURE_TRANSACTIONS, &outbox->transactions));
    if (o->blob_over > HF_EVENT_SIZE_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_EVENT_SIZE_MAX, o->blob_over),
                                   "blob_over is %u, more than the %d bytes of an event",
                                   o->blob_over, HF_EVENT_SIZE_MAX);
    outbox->blob_over = o->blob_over ? o->blob_over : HF_OUTBOX_BLOB_OVER;
    if (o->blobs)
        TRY(hf_blobs_part_of(s, o->blobs, outbox->db, outbox->table, &outbox->blobs));
    return table_ensure(s, outbox, o);
}

enum hf_status hf_outbox_open(struct hf_scope *s, struct hf_db *db,
                              const struct hf_outbox_options *options, struct hf_outbox **outbox)
{
    struct hf_outbox_options o;
    struct hf_outbox *made;
    enum hf_status status;
    uint32_t random;

    *outbox = NULL;
    OPTIONS_COPY(&o, options);
    if (!db)
        return hf_scope_fail(s, HF_INVALID, "hf_outbox_open() was called without a database");
    made = hf__env_zalloc(hf_scope_env(s), sizeof(*made));
    if (!made)
        return hf_scope_fail(s, HF_NOMEM, "no memory for an outbox");
    made->env = *hf_scope_env(s);
    made->db = db;
    made->env.random(&random, sizeof(random), made->env.user);
    made->last_count = (uint64_t)random << 7; /* half of the room is left to count up in */
    pthread_mutex_init(&made->mutex, NULL);
    hf__wakers_init(&made->wakers, OUTBOX_WAKERS_MAX);
    status = outbox_fill(s, made, &o);
    if (status != HF_OK) {
        hf_outbox_close(made);
        return status;
    }
    *outbox = made;
    return HF_OK;
}

void hf_outbox_close(struct hf_outbox *outbox)
{
    struct hf_env env;

    if (!outbox)
        return;
    env = outbox->env;
    hf_blobs_close(outbox->blobs);
    hf__wakers_destroy(&outbox->wakers);
    pthread_mutex_destroy(&outbox->mutex);
    hf_scope_free(outbox->names);
    hf__env_free(&env, outbox, sizeof(*outbox));
}

/* ---- wakers --------------------------------------------------------------------------------- */

bool hf__outbox_listen(struct hf_outbox *outbox, outbox_wake_fn *wake, void *user)
{
    return hf__wakers_add(&outbox->wakers, (waker_fn *)wake, user);
}

void hf__outbox_unlisten(struct hf_outbox *outbox, outbox_wake_fn *wake, void *user)
{
    hf__wakers_remove(&outbox->wakers, (waker_fn *)wake, user);
}

struct news {
    uint32_t bucket;
    bool urgent;
};

static void waker_call(waker_fn *wake, void *user, const void *what)
{
    const struct news *news = what;

    ((outbox_wake_fn *)wake)(user, news->bucket, news->urgent);
}

void hf__outbox_wake(struct hf_outbox *outbox, uint32_t bucket, bool urgent)
{
    assert(bucket < outbox->buckets || bucket == UINT32_MAX);
    hf__wakers_call(&outbox->wakers, waker_call,
                    &(struct news){.bucket = bucket, .urgent = urgent});
}

void hf_outbox_wake(struct hf_outbox *outbox)
{
    hf__outbox_wake(outbox, UINT32_MAX, true);
}

/* ---- ordered or competing ------------------------------------------------------------------- */

static struct hf_str mode_name(enum outbox_mode mode)
{
    assert(mode != OUTBOX_UNUSED);
    return mode == OUTBOX_ORDERED ? HF_STR("ordered") : HF_STR("competing");
}

/* The write that stamps the mode, unless the stamp has changed since it was read. */
static struct hf_update_item mode_request(struct hf_scope *s, struct hf_outbox *outbox,
                                          enum outbox_mode mode, struct hf_item found)
{
    struct holders h = {.s = s, .at = &outbox->at};
    int64_t seen = number_of(found, "mode_at");

    NAMES(&h, "#pk", "#mode", "#mode_at");
    VALUE(&h, HF_S(":mode", mode_name(mode)));
    VALUE(&h, HF_N(":now", hf__env_wall_ms(&outbox->env)));
    if (seen >= 0)
        VALUE(&h, HF_N(":seen", seen));
    return (struct hf_update_item){
        .table = outbox->table,
        .key = config_key(s, outbox),
        .update = HF_STR("SET #mode = :mode, #mode_at = :now"),
        .condition = seen >= 0 ? HF_STR("attribute_exists(#pk) AND #mode_at = :seen")
                               : HF_STR("attribute_exists(#pk) AND attribute_not_exists(#mode_at)"),
        .names = hf_item_make(s, h.names, h.names_len),
        .values = hf_item_make(s, h.values, h.values_len)};
}

/* Are there items of relays that have not ended? */
static enum hf_status find_relay(struct hf_scope *s, struct hf_outbox *outbox, struct hf_str *relay)
{
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_query query = {.table = outbox->table,
                             .key_condition = HF_STR("#pk = :c AND begins_with(#sk, :m)"),
                             .filter = HF_STR("attribute_not_exists(#stopped)"),
                             .consistent = HF_YES};
    struct hf_query_result result;

    *relay = hf_str_of(NULL, 0);
    NAMES(&h, "#pk", "#sk", "#stopped");
    VALUE(&h, HF_S(":c", HF_STR("c")));
    VALUE(&h, HF_S(":m", HF_STR("m.")));
    query.names = hf_item_make(s, h.names, h.names_len);
    query.values = hf_item_make(s, h.values, h.values_len);
    TRY(hf_scope_built(s));
    do {
        TRY(hf_query(s, outbox->db, &query, &result));
        if (result.items_len)
            *relay = sk_of(outbox, result.items[0]);
        query.start = result.last;
    } while (!relay->len && query.start.ptr);
    return HF_OK;
}

/* HF_INVALID: work of the other kind may be active. */
static enum hf_status check_other_mode(struct hf_scope *s, struct hf_outbox *outbox,
                                       enum outbox_mode mode, struct hf_item found)
{
    int64_t since_ms = hf__env_wall_ms(&outbox->env) - number_of(found, "mode_at");
    struct hf_str relay;

    if (since_ms < MODE_OVER_MS)
        return hf_scope_fail(s, HF_INVALID,
                             "outbox %.*s is for %s work, which was active %d seconds ago",
                             HF_FMT(outbox->table),
                             mode == OUTBOX_COMPETING ? "ordered" : "competing",
                             (int)(since_ms > 0 ? since_ms / 1000 : 0));
    TRY(find_relay(s, outbox, &relay));
    if (mode == OUTBOX_COMPETING && relay.len)
        return hf_scope_fail(s, HF_INVALID, "outbox %.*s is for ordered work: it has a relay, %.*s",
                             HF_FMT(outbox->table), HF_FMT(relay));
    return HF_OK;
}

static enum hf_status stamp_mode(struct hf_scope *s, struct hf_outbox *outbox,
                                 enum outbox_mode mode)
{
    struct hf_update_item update;
    struct hf_item found;
    enum hf_status status;

    for (int round = 0; round < MODE_ROUNDS; round++) {
        struct hf_str name;
        int64_t at;

        TRY(hf__pattern_read(s, outbox->db, outbox->table, config_key(s, outbox), &found));
        name = hf_value_str(hf_item_get(found, HF_STR("mode")));
        at = number_of(found, "mode_at");
        if (name.len && !hf_str_equal(name, mode_name(mode)))
            TRY(check_other_mode(s, outbox, mode, found));
        else if (name.len && hf__env_wall_ms(&outbox->env) - at < MODE_FRESH_MS)
            return HF_OK;
        update = mode_request(s, outbox, mode, found);
        TRY(hf_scope_built(s));
        status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.update = &update},
                                   update.key, &found);
        if (status != HF_CONDITION)
            return status;
    }
    return hf_scope_fail(s, HF_IN_USE,
                         "outbox %.*s is used for ordered and competing work at the same time",
                         HF_FMT(outbox->table));
}

enum hf_status hf__outbox_take_mode(struct hf_scope *s, struct hf_outbox *outbox, bool competing)
{
    enum outbox_mode mode = competing ? OUTBOX_COMPETING : OUTBOX_ORDERED;
    int64_t now_us = hf__env_elapsed_us(&outbox->env);
    bool known;

    pthread_mutex_lock(&outbox->mutex);
    known = outbox->mode == mode && now_us < outbox->mode_until_us;
    pthread_mutex_unlock(&outbox->mutex);
    if (known)
        return HF_OK;
    TRY(stamp_mode(s, outbox, mode));
    pthread_mutex_lock(&outbox->mutex);
    outbox->mode = mode;
    outbox->mode_until_us = now_us + (int64_t)MODE_FRESH_MS * 1000;
    pthread_mutex_unlock(&outbox->mutex);
    return hf_scope_ok(s);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Did it fail only because of another transaction at the same time? */
static bool is_conflict(const struct hf_error *error)
{
    bool conflict = error->status == HF_TX_CONFLICT || error->status == HF_TX_IN_PROGRESS;

    for (size_t i = 0; error->status == HF_TX_CANCELED && i < error->reasons_len; i++) {
        if (hf_str_equal(error->reasons[i].code, HF_STR("TransactionConflict")))
            conflict = true;
        else if (!hf_str_equal(error->reasons[i].code, HF_STR("None")))
            return false;
    }
    return conflict;
}

enum hf_status hf__outbox_transact(struct hf_scope *s, struct hf_outbox *outbox,
                                   const struct hf_transact_write *actions, size_t len)
{
    struct pattern_id token = hf__pattern_id_make(&outbox->env);
    struct hf_transact_write_items request = {.actions = actions,
                                              .actions_len = len,
                                              .token = id_str(&token)};
    struct backoff backoff = {.first_ms = FIRST_DELAY_MS, .max_ms = UINT32_MAX};
    bool doubtful = false;
    enum hf_status status;

    for (int attempt = 1;; attempt++) {
        const struct hf_error *error;

        status = hf_transact_write_items(s, outbox->db, &request, NULL);
        if (status == HF_OK)
            return status;
        error = hf_scope_error(s);
        doubtful = doubtful || error->may_have_happened;
        if (attempt == ATTEMPTS || (!doubtful && !is_conflict(error)) ||
            (status == HF_TX_CANCELED && !is_conflict(error)))
            break;
        status = hf__backoff_sleep(s, &backoff);
        if (status != HF_OK)
            break;
    }
    return doubtful ? hf_scope_doubt(s) : status;
}

enum hf_status hf__outbox_write_many(struct hf_scope *s, struct hf_outbox *outbox,
                                     const struct hf_write *writes, size_t len)
{
    struct backoff backoff = {.first_ms = FIRST_DELAY_MS, .max_ms = UINT32_MAX};
    bool doubtful = false;
    enum hf_status status;

    for (int attempt = 1;; attempt++) {
        struct hf_write_many_result result;
        struct hf_write *left;

        status = hf_write_many(s, outbox->db, writes, len, NULL, &result);
        if (status == HF_OK || !(doubtful = doubtful || hf_scope_error(s)->may_have_happened) ||
            attempt == ATTEMPTS)
            break;
        status = hf__backoff_sleep(s, &backoff);
        if (status != HF_OK)
            break;
        left = hf_scope_alloc(s, (result.left_len + 1) * sizeof(*left));
        if (!left) {
            status = hf_scope_built(s);
            break;
        }
        for (size_t i = 0; i < result.left_len; i++)
            left[i] = writes[result.left[i]];
        writes = left;
        len = result.left_len;
    }
    return status != HF_OK && doubtful ? hf_scope_doubt(s) : status;
}
