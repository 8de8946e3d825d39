/*
 * coord/kind_kit.h: the kinds of tables, opened in one form.
 */
#ifndef HF_TEST_PATTERNS_KIND_KIT_H
#define HF_TEST_PATTERNS_KIND_KIT_H

#include <holdfast/counter.h>
#include <holdfast/events.h>
#include <holdfast/kv.h>
#include <holdfast/limit.h>
#include <holdfast/lock.h>
#include <holdfast/once.h>
#include <holdfast/outbox.h>
#include <holdfast/records.h>
#include <holdfast/table.h>

#include "kit.h"

struct how {
    bool no_create, adopt;
};

static enum hf_status open_locks(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                 struct how how)
{
    struct hf_lock_table *locks;
    enum hf_status status =
        hf_lock_table_open(s, db,
                           HF_OPTIONS(hf_lock_table_options, .table = table, .no_threads = true,
                                      .no_create = how.no_create, .adopt = how.adopt),
                           &locks);

    hf_lock_table_close(locks);
    return status;
}

static enum hf_status open_once(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                struct how how)
{
    struct hf_once_table *onces;
    enum hf_status status =
        hf_once_table_open(s, db,
                           HF_OPTIONS(hf_once_table_options, .table = table, .no_threads = true,
                                      .no_create = how.no_create, .adopt = how.adopt),
                           &onces);

    hf_once_table_close(onces);
    return status;
}

static enum hf_status open_limits(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                  struct how how)
{
    struct hf_limit_table *limits;
    enum hf_status status =
        hf_limit_table_open(s, db,
                            HF_OPTIONS(hf_limit_table_options, .table = table,
                                       .no_create = how.no_create, .adopt = how.adopt),
                            &limits);

    hf_limit_table_close(limits);
    return status;
}

static enum hf_status open_values(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                  struct how how)
{
    struct hf_kv *kv;
    enum hf_status status = hf_kv_open(s, db,
                                       HF_OPTIONS(hf_kv_options, .table = table,
                                                  .no_create = how.no_create, .adopt = how.adopt),
                                       &kv);

    hf_kv_close(kv);
    return status;
}

/* Values that share a table with counters. */
static inline enum hf_status open_partitions(struct hf_scope *s, struct hf_db *db,
                                             struct hf_str table, struct how how)
{
    struct hf_kv *kv;
    enum hf_status status =
        hf_kv_open(s, db,
                   HF_OPTIONS(hf_kv_options, .table = table, .partitioned = true,
                              .no_create = how.no_create, .adopt = how.adopt),
                   &kv);

    hf_kv_close(kv);
    return status;
}

static enum hf_status open_counters(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                    struct how how)
{
    struct hf_counters *counters;
    enum hf_status status =
        hf_counters_open(s, db,
                         HF_OPTIONS(hf_counters_options, .table = table, .partitioned = true,
                                    .no_create = how.no_create, .adopt = how.adopt),
                         &counters);

    hf_counters_close(counters);
    return status;
}

static enum hf_status open_records(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                   struct how how)
{
    struct hf_records *records;
    enum hf_status status =
        hf_records_open(s, db,
                        HF_OPTIONS(hf_records_options, .table = table, .no_create = how.no_create,
                                   .adopt = how.adopt),
                        &records);

    hf_records_close(records);
    return status;
}

static enum hf_status open_outbox(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                  struct how how)
{
    struct hf_outbox *outbox;
    enum hf_status status =
        hf_outbox_open(s, db,
                       HF_OPTIONS(hf_outbox_options, .table = table, .no_create = how.no_create,
                                  .adopt = how.adopt),
                       &outbox);

    hf_outbox_close(outbox);
    return status;
}

static enum hf_status open_events(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                  struct how how)
{
    struct hf_events *store;
    enum hf_status status =
        hf_events_open(s, db,
                       HF_OPTIONS(hf_events_options, .table = table, .no_create = how.no_create,
                                  .adopt = how.adopt),
                       &store);

    hf_events_close(store);
    return status;
}

typedef enum hf_status open_fn(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                               struct how how);

static const struct kind_case {
    const char *what;
    open_fn *open;
    const char *hash, *range;           /* attributes of its key; range NULL: none */
    const char *mark_hash, *mark_range; /* where its mark is */
    const char *format;                 /* the attribute that has it; NULL: holdfast.NAME */
    const char *name;                   /* NAME */
} cases[] = {
    {"a table of locks", open_locks, "name", NULL, "holdfast:table", NULL, NULL, "locks"},
    {"a do-once table", open_once, "user", "key", "holdfast:table", "holdfast:table", NULL, "once"},
    {"a table of limits", open_limits, "name", NULL, "holdfast:table", NULL, NULL, "limits"},
    {"a table of values", open_values, "key", NULL, "holdfast:table", NULL, NULL, "values"},
    {"a table of counters", open_counters, "partition", "sort", "holdfast:table", "holdfast:table",
     NULL, "counters"},
    {"a table of records", open_records, "AccountId", "RunTime", "holdfast:records", "shards",
     "Format", NULL},
    {"an outbox", open_outbox, "pk", "sk", "c", "config", "format", NULL},
    {"an event store", open_events, "pk", "sk", "c", "config", "format", NULL},
};

static inline struct hf_item key_of(struct hf_scope *s, const struct kind_case *c, const char *hash,
                                    const char *range)
{
    struct hf_attr key[2] = {{.name = hf_str_from(c->hash),
                              .type = HF_TYPE_S,
                              .text = hf_str_from(hash)},
                             {.name = c->range ? hf_str_from(c->range) : HF_STR(""),
                              .type = HF_TYPE_S,
                              .text = range ? hf_str_from(range) : HF_STR("")}};

    return hf_item_make(s, key, c->range ? 2 : 1);
}

static inline void drop_table(struct kit *k)
{
    CHECK_OK(hf_delete_table(k->scope, k->db, &(struct hf_delete_table){.table = k->table}, NULL));
    CHECK_OK(hf_table_wait(k->scope, k->db, k->table, HF_TABLE_UNTIL_GONE, NULL));
}

/* Make the table as the pattern does, and take its mark away. */
static inline bool make_bare(struct kit *k, const struct kind_case *c)
{
    struct hf_delete_item del = {.table = k->table,
                                 .key = key_of(k->scope, c, c->mark_hash, c->mark_range)};
    enum hf_status status = c->open(k->scope, k->db, k->table, (struct how){false, false});

    if (status == HF_UNSUPPORTED) /* an event store where there are no transactions */
        return false;
    CHECK_OK(status);
    CHECK_OK(hf_delete_item(k->scope, k->db, &del, NULL));
    return true;
}

static inline size_t count_items(struct kit *k)
{
    struct hf_scan scan = {.table = k->table, .consistent = HF_YES};
    struct hf_scan_result result;

    CHECK_OK(hf_scan(k->scope, k->db, &scan, &result));
    return result.items_len;
}

#endif
