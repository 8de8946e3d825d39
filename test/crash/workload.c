/*
 * test/crash/workload.c: the process that is killed. See crash.h for its tables and its log.
 *
 * Everything that a call writes follows from the thread, the key and the number of the call, so an
 * entry of the log is enough to say what must be in the database.
 */
#include "crash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PAD_MAX = 700, MEMTABLE = 256 * 1024, FAR_FUTURE = 4000000000u };

uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- items ----------------------------------------------------------------------------------- */

struct hf_str key_name(struct hf_scope *s, unsigned thread, uint32_t key)
{
    return hf_scope_format(s, "w/%u/%u", thread, key);
}

static struct hf_str group_of(struct hf_scope *s, uint64_t n)
{
    return hf_scope_format(s, "group %u", (unsigned)(n % GROUPS));
}

static struct hf_bytes pad_of(struct hf_scope *s, unsigned thread, uint64_t n)
{
    uint64_t state = n * WRITERS + thread;
    size_t len = next_random(&state) % PAD_MAX;
    uint8_t *bytes = hf_scope_alloc(s, PAD_MAX);

    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)next_random(&state);
    return hf_bytes_of(bytes, len);
}

struct hf_item item_a(struct hf_scope *s, unsigned thread, uint32_t key, uint64_t n, int64_t c)
{
    struct hf_item item =
        HF_ITEM(s, HF_S("pk", key_name(s, thread, key)), HF_N("n", n), HF_N("c", c),
                HF_S("g", group_of(s, n)), HF_B("filler", pad_of(s, thread, n)),
                HF_N("expires", FAR_FUTURE));

    if (n % 2)
        item = hf_item_with(s, item, (struct hf_attr[]){HF_S("h", group_of(s, n / 2))}, 1);
    return item;
}

/* It expired a minute ago, whenever it is made: the n decides, so that it can be made again. */
struct hf_item item_expiring(struct hf_scope *s, unsigned thread, uint64_t n)
{
    return HF_ITEM(s, HF_S("pk", hf_scope_format(s, "x/%u", thread)), HF_N("n", n),
                   HF_S("g", group_of(s, n)), HF_N("expires", 1770000000 + n));
}

struct hf_item item_b(struct hf_scope *s, unsigned thread, uint32_t key, uint64_t n)
{
    return HF_ITEM(s, HF_S("pk", key_name(s, thread, key)), HF_N("n", n));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static enum hf_status add_one(struct hf_scope *s, struct hf_db *db, struct hf_str counter)
{
    struct hf_update_item add = {.table = HF_STR("crash_c"),
                                 .key = HF_ITEM(s, HF_S("pk", counter)),
                                 .update = HF_STR("ADD c :one"),
                                 .values = HF_ITEM(s, HF_N(":one", 1))};

    return hf_update_item(s, db, &add, NULL);
}

static struct hf_update_item update_of(struct hf_scope *s, const struct entry *e)
{
    bool has_h = e->n % 2;
    struct hf_item values =
        HF_ITEM(s, HF_N(":n", e->n), HF_S(":g", group_of(s, e->n)), HF_N(":one", 1),
                HF_B(":pad", pad_of(s, e->thread, e->n)), HF_N(":prev", e->prev));

    if (has_h)
        values = hf_item_with(s, values, (struct hf_attr[]){HF_S(":h", group_of(s, e->n / 2))}, 1);
    return (struct hf_update_item){
        .table = HF_STR("crash_a"),
        .key = HF_ITEM(s, HF_S("pk", key_name(s, e->thread, e->key))),
        .update = has_h ? HF_STR("SET n = :n, g = :g, filler = :pad, h = :h ADD c :one")
                        : HF_STR("SET n = :n, g = :g, filler = :pad REMOVE h ADD c :one"),
        .condition = HF_STR("n = :prev"),
        .values = values};
}

enum hf_status send_transaction(struct hf_scope *s, struct hf_db *db, const struct entry *e)
{
    struct hf_put_item put_a = {.table = HF_STR("crash_a"),
                                .item = item_a(s, e->thread, e->key, e->n, 0)};
    struct hf_put_item put_b = {.table = HF_STR("crash_b"),
                                .item = item_b(s, e->thread, e->key, e->n)};
    struct hf_update_item count = {.table = HF_STR("crash_c"),
                                   .key = HF_ITEM(s, HF_S("pk",
                                                          hf_scope_format(s, "own/%u", e->thread))),
                                   .update = HF_STR("ADD c :one"),
                                   .values = HF_ITEM(s, HF_N(":one", 1))};
    struct hf_condition_check check = {.table = HF_STR("crash_b"),
                                       .key = HF_ITEM(s, HF_S("pk", HF_STR("nobody"))),
                                       .condition = HF_STR("attribute_exists(pk)")};
    struct hf_transact_write actions[4] = {{.put = &put_a}, {.put = &put_b}, {.update = &count}};
    struct hf_transact_write_items request = {.actions = actions, .actions_len = 3};

    if (e->what == DO_DOOMED)
        actions[request.actions_len++] = (struct hf_transact_write){.check = &check};
    request.token = hf_scope_format(s, "token %u %llu", e->thread, (unsigned long long)e->n);
    return hf_transact_write_items(s, db, &request, NULL);
}

static enum hf_status send_batch(struct hf_scope *s, struct hf_db *db, const struct entry *e)
{
    struct hf_put_request puts[2] = {
        {item_a(s, e->thread, e->key, e->n, 0)},
        {item_a(s, e->thread, (e->key + 1) % KEYS, e->n, 0)},
    };
    struct hf_write_request writes[2] = {{.put = &puts[0]}, {.put = &puts[1]}};
    struct hf_table_writes table = {HF_STR("crash_a"), writes, 2};
    struct hf_batch_write_item request = {.tables = &table, .tables_len = 1};

    return hf_batch_write_item(s, db, &request, NULL);
}

static enum hf_status send(struct hf_scope *s, struct hf_db *db, const struct entry *e)
{
    struct hf_put_item put = {.table = HF_STR("crash_a")};
    struct hf_delete_item del = {.table = HF_STR("crash_a")};
    struct hf_update_item update;

    switch ((enum what)e->what) {
    case DO_PUT:
        put.item = item_a(s, e->thread, e->key, e->n, 0);
        return hf_put_item(s, db, &put, NULL);
    case DO_EXPIRING:
        put.item = item_expiring(s, e->thread, e->n);
        return hf_put_item(s, db, &put, NULL);
    case DO_UPDATE:
    case DO_REFUSED:
        update = update_of(s, e);
        return hf_update_item(s, db, &update, NULL);
    case DO_DELETE:
        del.key = HF_ITEM(s, HF_S("pk", key_name(s, e->thread, e->key)));
        return hf_delete_item(s, db, &del, NULL);
    case DO_TRANSACT:
    case DO_DOOMED:
        return send_transaction(s, db, e);
    case DO_COUNT:
        return add_one(s, db, HF_STR("shared"));
    case DO_BATCH:
        return send_batch(s, db, e);
    case DO_SCHEMA:
        break;
    }
    abort();
}

/* ---- opening --------------------------------------------------------------------------------- */

struct hf_db *open_database(struct hf_scope *s, const char *dir, bool upkeep)
{
    struct hf_str url = hf_scope_format(s, "embedded:%s", dir);
    struct hf_engine_options *options =
        HF_OPTIONS(hf_engine_options, .memtable_bytes = MEMTABLE, .no_upkeep_thread = !upkeep);
    struct hf_db *db;

    if (hf_open(s, url, options, &db) == HF_OK)
        return db;
    fprintf(stderr, "%s: %s\n", dir, hf_scope_error_text(s));
    return NULL;
}

static const struct hf_attribute_definition attributes[] = {{{"pk", sizeof("pk") - 1}, HF_SCALAR_S},
                                                            {{"g", sizeof("g") - 1}, HF_SCALAR_S},
                                                            {{"h", sizeof("h") - 1}, HF_SCALAR_S},
                                                            {{"n", sizeof("n") - 1}, HF_SCALAR_N}};
static const struct hf_key_element key_pk[] = {{{"pk", sizeof("pk") - 1}, HF_KEY_HASH}};
static const struct hf_key_element key_g[] = {{{"g", sizeof("g") - 1}, HF_KEY_HASH}};
static const struct hf_key_element key_h[] = {{{"h", sizeof("h") - 1}, HF_KEY_HASH},
                                              {{"n", sizeof("n") - 1}, HF_KEY_RANGE}};
static const struct hf_projection project_all = {.type = HF_PROJECT_ALL};
static const struct hf_projection project_keys = {.type = HF_PROJECT_KEYS_ONLY};
static const struct hf_stream_spec stream_on = {HF_YES, HF_VIEW_NEW_AND_OLD_IMAGES};
static const struct hf_stream_spec stream_off = {.enabled = HF_NO};
static const struct hf_index indexes[] = {{.name = {"by_g", sizeof("by_g") - 1},
                                           .key_schema = key_g,
                                           .key_schema_len = 1,
                                           .projection = &project_all},
                                          {.name = {"by_h", sizeof("by_h") - 1},
                                           .key_schema = key_h,
                                           .key_schema_len = 2,
                                           .projection = &project_keys}};

static enum hf_status make_table(struct hf_scope *s, struct hf_db *db, const char *name,
                                 size_t indexes_len)
{
    struct hf_create_table create = {.table = hf_str_from(name),
                                     .attributes = attributes,
                                     .attributes_len = indexes_len == 2   ? 4
                                                       : indexes_len == 1 ? 2
                                                                          : 1,
                                     .key_schema = key_pk,
                                     .key_schema_len = 1,
                                     .global_indexes = indexes_len ? indexes : NULL,
                                     .global_indexes_len = indexes_len,
                                     .billing = HF_BILLING_PAY_PER_REQUEST,
                                     .stream = indexes_len ? &stream_on : NULL};

    return hf_create_table(s, db, &create, NULL);
}

/* A table that is there already is as good; the time to live comes in a second step. */
static enum hf_status make_tables(struct hf_scope *s, struct hf_db *db)
{
    static const char *const names[] = {"crash_a", "crash_b", "crash_c"};
    struct hf_ttl_spec spec = {HF_YES, HF_STR("expires")};
    struct hf_update_time_to_live ttl = {.table = HF_STR("crash_a"), .spec = &spec};
    struct hf_describe_time_to_live describe = {.table = HF_STR("crash_a")};
    struct hf_describe_time_to_live_result described;
    enum hf_status status;

    for (unsigned i = 0; i < 3; i++) {
        status = make_table(s, db, names[i], i == 0 ? 2 : 0);
        if (status != HF_OK && status != HF_IN_USE)
            return status;
    }
    status = hf_describe_time_to_live(s, db, &describe, &described);
    if (status == HF_OK && described.description->status == HF_TTL_DISABLED)
        status = hf_update_time_to_live(s, db, &ttl, NULL);
    return status;
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
    struct hf_db *db;
    int log;
    unsigned thread;
    uint64_t random;
    uint64_t calls;
    struct thread_state state;
    struct entry schema;
    atomic_bool *stop;
};

/* An answer that no client may get: say so and die, so that the round fails. */
static void wrong_answer(struct hf_scope *s, const struct entry *e, enum hf_status status)
{
    fprintf(stderr, "thread %u, call %llu, what %u, key %u: %s: %s\n", e->thread,
            (unsigned long long)e->n, e->what, e->key, hf_status_name(status),
            hf_scope_error_text(s));
    _exit(EXIT_BAD);
}

static struct entry choose(struct worker *w)
{
    static const uint8_t odds[] = {DO_PUT,      DO_PUT,      DO_PUT,     DO_UPDATE,   DO_UPDATE,
                                   DO_UPDATE,   DO_UPDATE,   DO_REFUSED, DO_DELETE,   DO_DELETE,
                                   DO_COUNT,    DO_COUNT,    DO_BATCH,   DO_TRANSACT, DO_TRANSACT,
                                   DO_TRANSACT, DO_TRANSACT, DO_DOOMED,  DO_EXPIRING};
    struct entry e = {.phase = INTENT,
                      .what = odds[next_random(&w->random) % sizeof(odds)],
                      .thread = (uint16_t)w->thread,
                      .key = (uint32_t)(next_random(&w->random) % KEYS),
                      .n = w->state.next++};
    const struct key_state *key = &w->state.keys[e.key];

    if (e.what == DO_UPDATE && !key->there)
        e.what = DO_PUT;
    e.prev = e.what == DO_UPDATE ? key->n : UINT32_MAX;
    return e;
}

static void remember(struct worker *w, const struct entry *e)
{
    struct key_state *key = &w->state.keys[e->key];

    if (e->what == DO_DELETE)
        key->there = false;
    if (e->what == DO_PUT || e->what == DO_UPDATE || e->what == DO_TRANSACT || e->what == DO_BATCH)
        *key = (struct key_state){.there = true, .n = e->n};
    if (e->what == DO_BATCH)
        w->state.keys[(e->key + 1) % KEYS] = (struct key_state){.there = true, .n = e->n};
}

static void *writer(void *user)
{
    struct worker *w = user;
    struct hf_scope *s = hf_scope_new(NULL);

    for (uint64_t i = 0; i < w->calls; i++) {
        struct entry e = choose(w);
        enum hf_status status, want = HF_OK;

        if (e.what == DO_REFUSED)
            want = HF_CONDITION;
        if (e.what == DO_DOOMED)
            want = HF_TX_CANCELED;
        log_add(w->log, e);
        status = send(s, w->db, &e);
        if (status != want)
            wrong_answer(s, &e, status);
        e.phase = want == HF_OK ? DONE : NOT_DONE;
        log_add(w->log, e);
        remember(w, &e);
        /* Now and then the same again: a token is good for one effect. */
        if (e.what == DO_TRANSACT && e.n % 3 == 0 &&
            (status = send_transaction(s, w->db, &e)) != HF_OK)
            wrong_answer(s, &e, status);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

/* Reads what others write, and does the upkeep that would otherwise come once a second. */
static void *reader(void *user)
{
    struct worker *w = user;
    struct hf_scope *s = hf_scope_new(NULL);
    struct entry e = {.thread = 99};

    while (!atomic_load(w->stop)) {
        struct hf_scan scan = {.table = HF_STR("crash_a"), .limit = 7};
        struct hf_query query = {.table = HF_STR("crash_a"),
                                 .index = HF_STR("by_g"),
                                 .key_condition = HF_STR("g = :g"),
                                 .values =
                                     HF_ITEM(s, HF_S(":g", group_of(s, next_random(&w->random))))};
        enum hf_status status = hf_scan(s, w->db, &scan, NULL);

        if (status == HF_OK)
            status = hf_query(s, w->db, &query, NULL);
        if (status == HF_OK)
            status = hf_engine_upkeep(s, w->db, NULL);
        if (status != HF_OK)
            wrong_answer(s, &e, status);
        hf_scope_reset(s);
        usleep(3000);
    }
    hf_scope_free(s);
    return NULL;
}

/* ---- tables come and go ---------------------------------------------------------------------- */

static enum hf_status fill_scratch(struct hf_scope *s, struct hf_db *db)
{
    for (unsigned i = 0; i < SCRATCH_ITEMS; i++) {
        struct hf_put_item put = {.table = HF_STR("scratch"), .item = item_a(s, 0, i, i, 0)};
        enum hf_status status = hf_put_item(s, db, &put, NULL);

        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* What upkeep is in the middle of, it finishes first. */
static enum hf_status restore_again(struct hf_scope *s, struct hf_db *db)
{
    struct hf_delete_table del = {.table = HF_STR("again")};
    struct hf_restore_table_from_backup restore = {.table = HF_STR("again")};
    struct hf_list_backups_result list;
    enum hf_status status = hf_engine_upkeep(s, db, NULL);

    if (status == HF_OK)
        status = hf_delete_table(s, db, &del, NULL);
    if (status == HF_OK || status == HF_NOT_FOUND)
        status = hf_list_backups(s, db, &(struct hf_list_backups){.limit = 100}, &list);
    if (status != HF_OK)
        return status;
    restore.backup_arn = list.backups[list.backups_len - 1].arn;
    return hf_restore_table_from_backup(s, db, &restore, NULL);
}

static enum hf_status delete_backups(struct hf_scope *s, struct hf_db *db)
{
    struct hf_list_backups_result list;
    enum hf_status status = hf_engine_upkeep(s, db, NULL);

    if (status == HF_OK)
        status = hf_list_backups(s, db, &(struct hf_list_backups){.limit = 100}, &list);
    for (size_t i = 0; status == HF_OK && i < list.backups_len; i++)
        status =
            hf_delete_backup(s, db, &(struct hf_delete_backup){.arn = list.backups[i].arn}, NULL);
    return status;
}

static enum hf_status send_step(struct hf_scope *s, struct hf_db *db, enum step step)
{
    struct hf_index_change change = {.create = &indexes[1]};
    struct hf_update_table add_index = {.table = HF_STR("scratch"),
                                        .attributes = attributes,
                                        .attributes_len = 4,
                                        .index_changes = &change,
                                        .index_changes_len = 1};
    struct hf_update_table no_stream = {.table = HF_STR("scratch"), .stream = &stream_off};
    struct hf_delete_table del = {.table = HF_STR("scratch")};
    struct hf_create_backup back_up = {.table = HF_STR("scratch"), .name = HF_STR("scratch")};

    switch (step) {
    case STEP_CREATE:
        return make_table(s, db, "scratch", 1);
    case STEP_FILL:
        return fill_scratch(s, db);
    case STEP_BACK_UP:
        return hf_create_backup(s, db, &back_up, NULL);
    case STEP_RESTORE:
        return restore_again(s, db);
    case STEP_CLEAN:
        return delete_backups(s, db);
    case STEP_ADD_INDEX:
        return hf_update_table(s, db, &add_index, NULL);
    case STEP_BUILD:
        return hf_engine_upkeep(s, db, NULL);
    case STEP_STREAM_OFF:
        return hf_update_table(s, db, &no_stream, NULL);
    case STEP_DELETE:
    case STEPS:
        return hf_delete_table(s, db, &del, NULL);
    }
    abort();
}

/* The first step after a crash is to delete what may be left. */
static void *schema_writer(void *user)
{
    struct worker *w = user;
    struct hf_scope *s = hf_scope_new(NULL);
    enum step step = STEP_DELETE;

    while (!atomic_load(w->stop)) {
        struct entry e = {.phase = INTENT, .what = DO_SCHEMA, .thread = 98, .key = step};
        enum hf_status status;

        log_add(w->log, e);
        status = send_step(s, w->db, step);
        if (status != HF_OK && !(step == STEP_DELETE && status == HF_NOT_FOUND))
            wrong_answer(s, &e, status);
        e.phase = DONE;
        log_add(w->log, e);
        hf_scope_reset(s);
        step = (step + 1) % STEPS;
    }
    hf_scope_free(s);
    return NULL;
}

/* ---- the processes --------------------------------------------------------------------------- */

int work(const char *dir, const char *log, uint64_t seed, uint64_t calls)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = open_database(s, dir, true);
    struct worker workers[WRITERS + 2];
    pthread_t ids[WRITERS + 2];
    struct model model;
    atomic_bool stop = false;
    int fd;

    if (!db)
        return EXIT_BAD;
    if (make_tables(s, db) != HF_OK) {
        fprintf(stderr, "tables: %s\n", hf_scope_error_text(s));
        return EXIT_BAD;
    }
    model_read(log, &model);
    fd = log_open(log);
    for (unsigned i = 0; i < WRITERS + 2; i++) {
        workers[i] = (struct worker){
            .db = db, .log = fd, .thread = i, .random = seed + i, .calls = calls, .stop = &stop};
        if (i < WRITERS)
            workers[i].state = model.threads[i];
        pthread_create(&ids[i], NULL,
                       i < WRITERS    ? writer
                       : i == WRITERS ? reader
                                      : schema_writer,
                       &workers[i]);
    }
    for (unsigned i = 0; i < WRITERS + 2; i++) {
        if (i == WRITERS)
            atomic_store(&stop, true);
        pthread_join(ids[i], NULL);
    }
    hf_db_close(db);
    hf_scope_free(s);
    model_free(&model);
    return EXIT_GOOD;
}

int reopen(const char *dir)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = open_database(s, dir, true);
    int result = EXIT_BAD;

    if (db && hf_engine_upkeep(s, db, NULL) == HF_OK)
        result = EXIT_GOOD;
    hf_db_close(db);
    hf_scope_free(s);
    return result;
}
