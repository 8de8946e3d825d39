/*
 * events/store/events.c: an event store: opening it, its table, listeners, reset. events.h has
 * the table and why nothing is skipped.
 *
 *  (1) How many shards there are, and whether there is a chain, is written into the table once, and
 *      everybody goes by that. With two opinions one would append where the other never looks.
 *  (2) No listener is called after hf_events_unlisten(), and none while a mutex is held.
 */
#include "events/store/events.h"

#include <holdfast/table.h>

enum { HEADS = 4096, TABLE_NAME_MAX = 255 };

/* ---- the table ------------------------------------------------------------------------------ */

static const struct hf_attribute_definition attributes[] = {{HF_STR_INIT("pk"), HF_SCALAR_S},
                                                            {HF_STR_INIT("sk"), HF_SCALAR_S}};
static const struct hf_key_element keys[] = {{HF_STR_INIT("pk"), HF_KEY_HASH},
                                             {HF_STR_INIT("sk"), HF_KEY_RANGE}};

static enum hf_status table_ensure(struct hf_scope *s, const struct hf_events *store,
                                   bool no_create)
{
    const struct hf_throughput throughput = {store->read_units ? store->read_units : 1,
                                             store->write_units ? store->write_units : 1};
    const bool provisioned = store->read_units || store->write_units;
    const struct hf_create_table spec = {.table = store->table,
                                         .attributes = attributes,
                                         .attributes_len = ARRAY_LEN(attributes),
                                         .key_schema = keys,
                                         .key_schema_len = ARRAY_LEN(keys),
                                         .billing = provisioned ? HF_BILLING_PROVISIONED : 0,
                                         .throughput = provisioned ? &throughput : NULL};

    return hf__pattern_table(s, store->db, &spec, hf_str_of(NULL, 0), no_create);
}

static struct hf_item config_key(struct hf_scope *s)
{
    return HF_ITEM(s, HF_S("pk", HF_STR("c")), HF_S("sk", HF_STR("config")));
}

static int64_t number_of(struct hf_item item, struct hf_str name)
{
    int64_t number;

    return hf_value_i64(hf_item_get(item, name), &number) ? number : -1;
}

static enum hf_status check_config(struct hf_scope *s, struct hf_events *store,
                                   struct hf_item found, uint32_t wanted)
{
    int64_t shards = number_of(found, HF_STR("shards"));

    TRY(hf__kind_check(s, store->table, KIND_EVENTS,
                       hf_value_str(hf_item_get(found, HF_STR(KIND_ATTR))),
                       hf_item_get(found, HF_STR(FORMAT_ATTR))));
    if (shards < 1 || shards > HF_EVENTS_SHARDS_MAX)
        return hf_scope_fail(s, HF_CORRUPT, "table %.*s does not say how many shards it has",
                             HF_FMT(store->table));
    if (wanted && shards != wanted)
        return hf_scope_fail(s, HF_INVALID, "event store %.*s has %d shards, expected %u",
                             HF_FMT(store->table), (int)shards, wanted);
    store->shards = (uint32_t)shards;
    store->chain = hf_value_true(hf_item_get(found, HF_STR("chain")));
    return hf_scope_ok(s);
}

/* (1) */
static enum hf_status config_agree(struct hf_scope *s, struct hf_events *store, uint32_t shards,
                                   bool chain, bool adopt)
{
    struct hf_item key = config_key(s), found;
    const struct hf_create_table spec = {.table = store->table,
                                         .key_schema = keys,
                                         .key_schema_len = ARRAY_LEN(keys)};
    const struct hf_attr config[] = {HF_BOOL("chain", chain),
                                     HF_N(FORMAT_ATTR, hf__kind_format(KIND_EVENTS)),
                                     HF_S(KIND_ATTR, hf__kind_name(KIND_EVENTS)),
                                     HF_N("shards", shards ? shards : HF_EVENTS_SHARDS)};
    struct hf_put_item put = {.table = store->table,
                              .item = hf_item_with(s, key, config, ARRAY_LEN(config)),
                              .condition = HF_STR("attribute_not_exists(#pk)"),
                              .names = store->names_pk};
    const struct kind_table of = {.db = store->db,
                                  .spec = &spec,
                                  .kind = KIND_EVENTS,
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
    return call_ends(s, check_config(s, store, found, shards));
}

/* ---- opening -------------------------------------------------------------------------------- */

static enum hf_status no_memory(struct hf_scope *s)
{
    return hf_scope_fail(s, HF_NOMEM, "no memory for an event store");
}

static enum hf_status store_name(struct hf_scope *s, struct hf_events *store,
                                 const struct hf_events_options *o)
{
    struct hf_scope *kept = hf_scope_new(&store->env);

    if (!kept)
        return no_memory(s);
    store->kept = kept;
    store->table = hf__pattern_join(kept, o->prefix, o->table.len ? o->table : HF_STR("events"));
    store->names_pk = HF_ITEM(kept, HF_S("#pk", HF_STR("pk")));
    store->names_marker = HF_ITEM(kept, HF_S("#c", HF_STR("c")));
    if (hf_scope_built(kept) != HF_OK)
        return no_memory(s);
    if (store->table.len > TABLE_NAME_MAX)
        return hf_scope_fail(s, HF_INVALID, "the table name has %zu bytes, at most %d are allowed",
                             store->table.len, TABLE_NAME_MAX);
    return HF_OK;
}

/* The placeholders of the update of a head, known once it is known whether there is a chain. */
static enum hf_status store_name_head(struct hf_scope *s, struct hf_events *store)
{
    store->names_head = store->chain
                            ? HF_ITEM(store->kept, HF_S("#h", HF_STR("h")), HF_S("#p", HF_STR("p")),
                                      HF_S("#v", HF_STR("v")), HF_S("#x", HF_STR("x")))
                            : HF_ITEM(store->kept, HF_S("#p", HF_STR("p")), HF_S("#v", HF_STR("v")),
                                      HF_S("#x", HF_STR("x")));
    return hf_scope_built(store->kept) == HF_OK ? HF_OK : no_memory(s);
}

static enum hf_status store_open(struct hf_scope *s, struct hf_events *store,
                                 const struct hf_events_options *o)
{
    bool transactions;

    if (o->shards > HF_EVENTS_SHARDS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_EVENTS_SHARDS_MAX, o->shards),
                                   "shards is %u, at most %d are allowed", o->shards,
                                   HF_EVENTS_SHARDS_MAX);
    if (o->blob_bytes > HF_EVENTS_BLOB_BYTES)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_EVENTS_BLOB_BYTES, o->blob_bytes),
                                   "blob_bytes is %u, at most %d are allowed", o->blob_bytes,
                                   HF_EVENTS_BLOB_BYTES);
    store->blob_bytes = o->blob_bytes ? o->blob_bytes : HF_EVENTS_BLOB_BYTES;
    store->read_units = o->read_units;
    store->write_units = o->write_units;
    TRY(store_name(s, store, o));
    TRY(hf__events_heads_new(s, store, o->heads ? o->heads : HEADS));
    TRY(hf__events_gates_new(s, store));
    TRY(hf_db_supports(s, store->db, HF_FEATURE_TRANSACTIONS, &transactions));
    if (!transactions)
        return hf_scope_fail(s, HF_UNSUPPORTED,
                             "this database has no transactions, which an event store needs");
    TRY(table_ensure(s, store, o->no_create));
    TRY(config_agree(s, store, o->shards, !o->no_chain, o->adopt));
    assert(store->shards >= 1 && store->shards <= HF_EVENTS_SHARDS_MAX);
    TRY(hf__events_blobs_open(s, store, o->blobs));
    return store_name_head(s, store);
}

enum hf_status hf_events_open(struct hf_scope *s, struct hf_db *db,
                              const struct hf_events_options *options, struct hf_events **store)
{
    struct hf_events_options o;
    struct hf_events *made;
    enum hf_status status;
    uint32_t random;

    *store = NULL;
    OPTIONS_COPY(&o, options);
    if (!db)
        return hf_scope_fail(s, HF_INVALID, "hf_events_open() was called without a database");
    made = hf__env_zalloc(hf_scope_env(s), sizeof(*made));
    if (!made)
        return no_memory(s);
    made->env = *hf_scope_env(s);
    made->db = db;
    made->env.random(&random, sizeof(random), made->env.user);
    atomic_init(&made->next_shard,
                random); /* programs that start together begin at different shards */
    hf__wakers_init(&made->wakers, EVENTS_WAKERS_MAX);
    status = store_open(s, made, &o);
    if (status != HF_OK) {
        hf_events_close(made);
        return status;
    }
    *store = made;
    return HF_OK;
}

void hf_events_close(struct hf_events *store)
{
    struct hf_env env;

    if (!store)
        return;
    env = store->env;
    hf__wakers_destroy(&store->wakers);
    hf__events_blobs_close(store);
    hf__events_gates_free(store);
    hf__events_heads_free(store);
    hf_scope_free(store->kept);
    hf__env_free(&env, store, sizeof(*store));
}

enum hf_status hf_events_reset(struct hf_scope *s, struct hf_events *store)
{
    struct hf_delete_table request = {.table = store->table};
    enum hf_status status = hf_delete_table(s, store->db, &request, NULL);

    /* Not there: somebody else is doing the same, or an earlier attempt did that much. */
    if (status != HF_OK && status != HF_NOT_FOUND && status != HF_IN_USE &&
        !hf_scope_error(s)->may_have_happened)
        return status;
    TRY(hf_table_wait(s, store->db, store->table, HF_TABLE_UNTIL_GONE, NULL));
    hf__events_heads_clear(store);
    for (size_t i = 0; i < HF_EVENTS_SHARDS_MAX; i++)
        atomic_store(&store->marked[i], 0);
    TRY(table_ensure(s, store, false));
    return config_agree(s, store, store->shards, store->chain, false);
}

struct hf_events_abilities hf_events_abilities(const struct hf_events *store)
{
    return (struct hf_events_abilities){.append_many = true,
                                        .streams = true,
                                        .snapshots = true,
                                        .by_id = true,
                                        .by_cause = true,
                                        .all = true,
                                        .chain = store->chain,
                                        .blobs = store->blobs != NULL};
}

/* ---- listeners ------------------------------------------------------------------------------ */

enum hf_status hf_events_listen(struct hf_scope *s, struct hf_events *store,
                                hf_events_wake_fn *wake, void *user)
{
    call_begins(s);
    if (!hf__wakers_add(&store->wakers, (waker_fn *)wake, user))
        return hf_scope_fail(s, HF_LIMIT, "event store %.*s already has %d listeners",
                             HF_FMT(store->table), EVENTS_WAKERS_MAX);
    return HF_OK;
}

void hf_events_unlisten(struct hf_events *store, hf_events_wake_fn *wake, void *user)
{
    hf__wakers_remove(&store->wakers, (waker_fn *)wake, user);
}

static void waker_call(waker_fn *wake, void *user, const void *what)
{
    (void)what;
    ((hf_events_wake_fn *)wake)(user);
}

void hf__events_wake(struct hf_events *store)
{
    hf__wakers_call(&store->wakers, waker_call, NULL);
}
