/*
 * records/records_list.c: lists of records.
 *
 * The index has keys in a state; what they name is read by a batch of consistent reads, and what is
 * in another state by now is left out. So a list shows nothing that is no longer true, whatever the
 * index is behind.
 *
 *  (1) A cursor names the last record that was looked at, and where it was: shard, account and run
 *      time. It can be kept and used elsewhere.
 *  (2) A limit counts what is handed out. Nothing that was looked at behind the last one handed out
 *      is passed over by the cursor.
 */
#include <holdfast/batch.h>
#include <holdfast/pages.h>

#include <inttypes.h>
#include <stdlib.h>

#include "records/records.h"

enum { BATCH = 100 };

/* ---- what is built -------------------------------------------------------------------------- */

struct record_key hf__records_key_of(const struct hf_records *records, struct hf_item item)
{
    return (struct record_key){hf_value_str(hf_item_get(item, records->account)),
                               hf_value_str(hf_item_get(item, records->run_time))};
}

struct hf_query hf__records_shard_query(struct hf_scope *s, const struct hf_records *records,
                                        enum hf_record_state state, uint32_t shard,
                                        struct hf_item start)
{
    return (struct hf_query){
        .table = records->table,
        .index = records->index,
        .key_condition = HF_STR("#shard = :shard"),
        .names = hf__records_names(s, records, "#shard", NULL),
        .values = HF_ITEM(s, HF_S(":shard", hf__records_shard_text(s, state, shard))),
        .start = start,
    };
}

/* A list that grows in the scope. */
struct grower {
    struct hf_record_info *records;
    size_t len, cap;
};

static enum hf_status list_append(struct hf_scope *s, struct grower *list,
                                  struct hf_record_info info)
{
    void *records = list->records;

    TRY(hf__pattern_grow(s, &records, list->len, &list->cap, sizeof(info)));
    list->records = records;
    list->records[list->len++] = info;
    return HF_OK;
}

/* The records of a list, which is freed. *last is where it can go on: absent when it was all. */
static enum hf_status pages_collect(struct hf_scope *s, struct hf_records *records,
                                    struct hf_pages *pages, uint64_t limit,
                                    struct hf_record_list *list, struct hf_item *last)
{
    struct grower out = {0};
    struct hf_item item;
    enum hf_status status;

    *last = (struct hf_item){NULL, 0};
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_record_info info;

        item = hf_item_copy(s, item);
        if ((status = hf_scope_built(s)) != HF_OK ||
            (status = hf__records_view(s, records, item, &info)) != HF_OK ||
            (status = list_append(s, &out, info)) != HF_OK)
            break;
    }
    if (status == HF_OK && limit && out.len == limit)
        status = hf_pages_cursor(s, pages, last);
    hf_pages_free(pages);
    if (status != HF_OK)
        return status;
    list->records = out.records;
    list->records_len = out.len;
    return HF_OK;
}

/* ---- by account ----------------------------------------------------------------------------- */

static struct hf_query account_query(struct hf_scope *s, const struct hf_records *records,
                                     struct hf_str account, const struct hf_record_list_options *o)
{
    const char *text = o->from.len && o->to.len
                           ? "#account = :account AND #run_time BETWEEN :from AND :to"
                       : o->from.len ? "#account = :account AND #run_time >= :from"
                       : o->to.len   ? "#account = :account AND #run_time <= :to"
                                     : "#account = :account";
    struct hf_attr values[3] = {HF_S(":account", account)};
    size_t len = 1;

    if (o->from.len)
        values[len++] = (struct hf_attr)HF_S(":from", o->from);
    if (o->to.len)
        values[len++] = (struct hf_attr)HF_S(":to", o->to);
    return (struct hf_query){.table = records->table,
                             .key_condition = hf_str_from(text),
                             .names = hf__records_names(s, records, text, NULL),
                             .values = hf_item_make(s, values, len),
                             .forward = o->newest_first ? HF_NO : HF_YES,
                             .consistent = HF_YES};
}

static bool is_behind(struct hf_str a, struct hf_str b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);

    return order > 0 || (order == 0 && a.len > b.len);
}

enum hf_status hf_records_by_account(struct hf_scope *s, struct hf_records *records,
                                     struct hf_str account,
                                     const struct hf_record_list_options *options,
                                     struct hf_record_list *list)
{
    struct hf_record_list_options o;
    struct hf_query query;
    struct hf_pages *pages;
    struct hf_item item;

    *list = (struct hf_record_list){0};
    OPTIONS_COPY(&o, options);
    if (!account.len)
        return hf_scope_fail(s, HF_INVALID,
                             "hf_records_by_account() was called without an account");
    if (o.from.len && o.to.len && is_behind(o.from, o.to))
        return hf_scope_ok(s); /* BETWEEN would complain: nothing is there */
    query = account_query(s, records, account, &o);
    if (o.after.len)
        query.start = hf__records_key(s, records, (struct record_key){account, o.after});
    if (o.limit && o.limit < 1000)
        query.limit = (int64_t)o.limit;
    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, records->db, &query, HF_OPTIONS(hf_pages_options, .limit = o.limit),
                       &pages));
    TRY(pages_collect(s, records, pages, o.limit, list, &item));
    if (item.ptr)
        list->next = hf__records_key_of(records, item).run_time;
    return HF_OK;
}

/* ---- by state ------------------------------------------------------------------------------- */

static bool same_state(const struct hf_record_info *info, enum hf_record_state state)
{
    return info->item.ptr && info->state == state;
}

/* A list of the records in one state that is being made. */
struct state_list {
    struct hf_records *records;
    enum hf_record_state state;
    uint64_t limit; /* 0: none */
    struct grower out;
};

static bool is_full(const struct state_list *l)
{
    return l->limit && l->out.len == l->limit;
}

/* Read what the keys name, and keep what is in that state, until the limit: *taken keys were used.
 */
static enum hf_status keys_read(struct hf_scope *s, struct state_list *l, const struct hf_get *gets,
                                size_t len, size_t *taken)
{
    struct hf_get_many_result got;

    *taken = 0;
    TRY(hf_get_many(s, l->records->db, gets, len, HF_OPTIONS(hf_many_options, .consistent = true),
                    &got));
    for (size_t i = 0; i < len; i++) {
        struct hf_record_info info;

        TRY(hf__records_view(s, l->records, got.items[i], &info));
        if (same_state(&info, l->state))
            TRY(list_append(s, &l->out, info));
        *taken = i + 1;
        if (is_full(l))
            break;
    }
    return HF_OK;
}

/* One shard, from `start` on. *last is the key that was looked at last, if not all were (2). */
static enum hf_status list_shard(struct hf_scope *s, struct state_list *l, uint32_t shard,
                                 struct hf_item start, struct record_key *last)
{
    struct hf_records *records = l->records;
    struct hf_query query = hf__records_shard_query(s, records, l->state, shard, start);
    enum hf_status status = HF_OK;
    struct hf_pages *pages;
    bool ended = false;

    *last = (struct record_key){0};
    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, records->db, &query, NULL, &pages));
    while (status == HF_OK && !ended && !last->account.ptr) {
        struct hf_get gets[BATCH];
        struct hf_item item;
        size_t len = 0, taken = 0;

        while (len < BATCH && (status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr)
            gets[len++] =
                (struct hf_get){records->table,
                                hf__records_key(s, records, hf__records_key_of(records, item))};
        ended = status == HF_OK && len < BATCH;
        if (status == HF_OK && len)
            status = keys_read(s, l, gets, len, &taken);
        if (status == HF_OK && is_full(l) && (taken < len || !ended))
            *last = hf__records_key_of(records, gets[taken - 1].key);
        assert(taken <= len && (!l->limit || l->out.len <= l->limit));
    }
    hf_pages_free(pages);
    return status;
}

static struct hf_str cursor_make(struct hf_scope *s, uint32_t shard, struct record_key last)
{
    return PATTERN_KEY(s, hf_scope_format(s, "%" PRIu32, shard),
                       last.account.ptr ? last.account : HF_STR(""),
                       last.run_time.ptr ? last.run_time : HF_STR(""));
}

/* What cursor_make() wrote for the shard. */
static bool shard_read(struct hf_str text, uint32_t shards, uint32_t *shard)
{
    *shard = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || *shard >= shards)
            return false;
        *shard = *shard * 10 + (uint32_t)(text.ptr[i] - '0');
    }
    return text.len > 0 && *shard < shards;
}

/* (1) */
static enum hf_status cursor_read(struct hf_scope *s, const struct hf_records *records,
                                  struct hf_str text, uint32_t *shard, struct record_key *last)
{
    struct hf_str parts[3];

    *shard = 0;
    *last = (struct record_key){0};
    if (!text.len)
        return HF_OK;
    if (hf__pattern_key_parts(s, text, parts, 3) == HF_OK &&
        shard_read(parts[0], records->shards, shard)) {
        *last = (struct record_key){parts[1], parts[2]};
        return HF_OK;
    }
    return hf_scope_fail(s, HF_INVALID, "\"%.*s\" is not a cursor of a list of records",
                         HF_FMT(text));
}

static enum hf_status list_index(struct hf_scope *s, struct hf_records *records,
                                 enum hf_record_state state,
                                 const struct hf_record_list_options *options,
                                 struct hf_record_list *list)
{
    struct hf_record_list_options o;
    struct state_list l = {.records = records, .state = state};
    struct record_key last;
    uint32_t shard;

    *list = (struct hf_record_list){0};
    OPTIONS_COPY(&o, options);
    l.limit = o.limit;
    TRY(cursor_read(s, records, o.after, &shard, &last));
    for (; shard < records->shards; shard++) {
        struct hf_item start = {0};
        const struct hf_attr place[] = {{.name = records->shard,
                                         .type = HF_TYPE_S,
                                         .text = hf__records_shard_text(s, state, shard)}};

        if (last.account.len)
            start = hf_item_with(s, hf__records_key(s, records, last), place, 1);
        TRY(list_shard(s, &l, shard, start, &last));
        if (is_full(&l))
            break;
    }
    list->records = l.out.records;
    list->records_len = l.out.len;
    if (last.account.len)
        list->next = cursor_make(s, shard, last);
    else if (is_full(&l) && shard + 1 < records->shards)
        list->next = cursor_make(s, shard + 1, last);
    return hf_scope_built(s);
}

/* Without an index: the whole table. */
static enum hf_status list_scan(struct hf_scope *s, struct hf_records *records,
                                const struct hf_record_list_options *options,
                                struct hf_record_list *list)
{
    struct hf_record_list_options o;
    struct hf_scan scan = {.table = records->table,
                           .filter = HF_STR("#processed = :one"),
                           .names = hf__records_names(s, records, "#processed", NULL),
                           .values = HF_ITEM(s, HF_N(":one", 1)),
                           .consistent = HF_YES};
    struct record_key last;
    struct hf_pages *pages;
    struct hf_item item;
    uint32_t shard;

    *list = (struct hf_record_list){0};
    OPTIONS_COPY(&o, options);
    TRY(cursor_read(s, records, o.after, &shard, &last));
    if (last.account.len)
        scan.start = hf__records_key(s, records, last);
    TRY(hf_scope_built(s));
    TRY(hf_pages_scan(s, records->db, &scan, HF_OPTIONS(hf_pages_options, .limit = o.limit),
                      &pages));
    TRY(pages_collect(s, records, pages, o.limit, list, &item));
    if (item.ptr)
        list->next = cursor_make(s, 0, hf__records_key_of(records, item));
    return hf_scope_built(s);
}

enum hf_status hf_records_unprocessed(struct hf_scope *s, struct hf_records *records,
                                      const struct hf_record_list_options *options,
                                      struct hf_record_list *list)
{
    return list_index(s, records, HF_RECORD_UNPROCESSED, options, list);
}

enum hf_status hf_records_processed(struct hf_scope *s, struct hf_records *records,
                                    const struct hf_record_list_options *options,
                                    struct hf_record_list *list)
{
    return records->index_processed ? list_index(s, records, HF_RECORD_PROCESSED, options, list)
                                    : list_scan(s, records, options, list);
}

enum hf_status hf_records_failed(struct hf_scope *s, struct hf_records *records,
                                 const struct hf_record_list_options *options,
                                 struct hf_record_list *list)
{
    return list_index(s, records, HF_RECORD_FAILED, options, list);
}

enum hf_status hf_records_count(struct hf_scope *s, struct hf_records *records,
                                enum hf_record_state state, uint64_t *count)
{
    *count = 0;
    if (state == HF_RECORD_PROCESSED && !records->index_processed)
        return hf_scope_fail(s, HF_INVALID, "processed records are not in the index of table %.*s",
                             HF_FMT(records->table));
    for (uint32_t i = 0; i < records->shards; i++) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        struct hf_query query = hf__records_shard_query(s, records, state, i, (struct hf_item){0});

        query.select = HF_SELECT_COUNT;
        TRY(hf_scope_built(s));
        do {
            struct hf_query_result result;

            TRY(hf_query(s, records->db, &query, &result));
            *count += (uint64_t)result.count;
            query.start = result.last;
        } while (query.start.ptr);
        hf_scope_rewind(s, mark);
    }
    return HF_OK;
}
