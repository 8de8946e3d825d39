/*
 * once/once_admin.c: looking at records, marking and clearing them, without an attempt.
 *
 * A mark is a completion by hand: whatever runs is lost by it. To clear is to remove what was read,
 * by its attempt's id: a request that arrives late finds another id, and removes nothing.
 */
#include "once/once.h"

enum { CLEAR_ROUNDS = 20 };

enum hf_status hf_once_get(struct hf_scope *s, struct hf_once_table *onces, struct hf_str user,
                           struct hf_str key, struct hf_once_record *record)
{
    struct once_name name = {.at = &onces->at, .user = user, .key = key};
    struct once_view view;
    struct hf_item item;

    *record = (struct hf_once_record){0};
    TRY(hf__once_name_check(s, &name));
    TRY(hf__pattern_read(s, onces->db, onces->at.table, hf__once_key(s, &name), &item));
    TRY(hf__once_view(s, &onces->at, item, hf__env_wall_ms(&onces->env), &view));
    *record = view.record;
    if (record->state == HF_ONCE_NONE)
        *record =
            (struct hf_once_record){.user = hf_scope_copy(s, user), .key = hf_scope_copy(s, key)};
    return hf_scope_built(s);
}

enum hf_status hf_once_mark_done(struct hf_scope *s, struct hf_once_table *onces,
                                 struct hf_str user, struct hf_str key,
                                 const struct hf_once_options *options, struct hf_item result,
                                 struct hf_once_record *record)
{
    struct pattern_id id = hf__pattern_id_make(&onces->env);
    struct once_end mark = {.name = {.at = &onces->at, .user = user, .key = key},
                            .id = id_str(&id),
                            .state = HF_ONCE_DONE,
                            .result = result,
                            .now_ms = hf__env_wall_ms(&onces->env)};
    struct hf_update_item update;
    struct hf_once_options o;
    struct once_view view;
    struct hf_item item;
    struct hf_str hash;
    enum hf_status status;

    if (record)
        *record = (struct hf_once_record){0};
    TRY(hf__once_options(s, &mark.name, options, &o));
    TRY(hf__once_hash(s, o.payload, &hash));
    TRY(hf__once_result_check(s, &mark.name, result));
    mark.keep_s = o.keep_s;
    update = hf__once_mark_request(s, &mark, onces->owner, hash, true);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, onces->db, &(struct hf_transact_write){.update = &update},
                               update.key, &item);
    if (status != HF_OK && status != HF_CONDITION)
        return status;
    atomic_fetch_add_explicit(hf__once_ended(onces, key), 1, memory_order_relaxed);
    TRY(hf__once_view(s, &onces->at, item, mark.now_ms, &view));
    view.record.did = hf_str_equal(view.record.attempt, mark.id);
    if (!view.record.did) {
        bool doubtful = hf_scope_error(s)->may_have_happened;

        TRY(hf__once_hash_check(s, &view, hash));
        if (view.record.state == HF_ONCE_NONE || view.record.state == HF_ONCE_RUNNING) {
            /* It was done by us or by another, and has been cleared since the refusal. */
            (void)hf_scope_fail(s, HF_LOST, "once %.*s/%.*s was cleared", HF_FMT(user),
                                HF_FMT(key));
            return doubtful ? hf_scope_doubt(s) : HF_LOST;
        }
    }
    if (record)
        *record = view.record;
    return hf_scope_ok(s);
}

enum hf_status hf_once_clear(struct hf_scope *s, struct hf_once_table *onces, struct hf_str user,
                             struct hf_str key, bool *cleared)
{
    struct once_name name = {.at = &onces->at, .user = user, .key = key};

    if (cleared)
        *cleared = false;
    TRY(hf__once_name_check(s, &name));
    for (int round = 0; round < CLEAR_ROUNDS; round++) {
        struct hf_delete_item del;
        struct hf_item item;
        struct hf_str id;
        enum hf_status status;

        TRY(hf__pattern_read(s, onces->db, onces->at.table, hf__once_key(s, &name), &item));
        if (!item.ptr)
            return hf_scope_ok(s);
        id = hf_value_str(hf_item_get(item, HF_STR("attempt")));
        if (!id.ptr)
            return hf_scope_fail(s, HF_CORRUPT,
                                 "item %.*s/%.*s of table %.*s is not a do-once record",
                                 HF_FMT(user), HF_FMT(key), HF_FMT(onces->at.table));
        del = hf__once_remove_request(s, &name, id, false);
        TRY(hf_scope_built(s));
        status = hf__pattern_write(s, onces->db, &(struct hf_transact_write){.del = &del}, del.key,
                                   &item);
        if (status != HF_OK && status != HF_CONDITION)
            return status;
        atomic_fetch_add_explicit(hf__once_ended(onces, key), 1, memory_order_relaxed);
        if (cleared && (status == HF_OK || hf_scope_error(s)->may_have_happened))
            *cleared = true;
        if (status == HF_OK || !item.ptr)
            return hf_scope_ok(s);
    }
    return hf_scope_fail(s, HF_IN_USE,
                         "once %.*s/%.*s was not cleared: new attempts keep beginning",
                         HF_FMT(user), HF_FMT(key));
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* A list that grows in the scope. */
struct gathered {
    struct hf_once_record *records;
    size_t len, cap;
};

static enum hf_status list_append(struct hf_scope *s, struct gathered *all,
                                  const struct hf_once_record *record)
{
    if (all->len == all->cap) {
        size_t cap = all->cap ? all->cap * 2 : 16;
        struct hf_once_record *moved = hf_scope_alloc(s, cap * sizeof(*moved));

        if (!moved)
            return hf_scope_built(s);
        if (all->len)
            memcpy(moved, all->records, all->len * sizeof(*moved));
        all->records = moved;
        all->cap = cap;
    }
    all->records[all->len++] = *record;
    return HF_OK;
}

static struct hf_query page_request(struct hf_scope *s, const struct once_name *name,
                                    struct hf_str prefix, struct hf_item start)
{
    struct hf_attr names[] = {HF_S("#user", name->at->hash), HF_S("#key", name->at->sort)};
    struct hf_attr values[] = {HF_S(":user", name->user), HF_S(":prefix", prefix)};
    size_t len = prefix.len ? 2 : 1;

    return (struct hf_query){.table = name->at->table,
                             .key_condition =
                                 prefix.len ? HF_STR("#user = :user AND begins_with(#key, :prefix)")
                                            : HF_STR("#user = :user"),
                             .names = hf_item_make(s, names, len),
                             .values = hf_item_make(s, values, len),
                             .start = start,
                             .consistent = HF_YES};
}

enum hf_status hf_once_list(struct hf_scope *s, struct hf_once_table *onces, struct hf_str user,
                            const struct hf_once_list_options *options, struct hf_once_list *list)
{
    struct once_name name = {.at = &onces->at, .user = user, .key = HF_STR("-")};
    struct hf_query_result page = {0};
    struct hf_once_list_options o;
    struct gathered all = {0};
    struct hf_item start = {0};

    *list = (struct hf_once_list){0};
    OPTIONS_COPY(&o, options);
    TRY(hf__once_name_check(s, &name));
    if (o.after.len) {
        name.key = o.after;
        start = hf__once_key(s, &name);
    }
    do {
        struct hf_query query = page_request(s, &name, o.prefix, start);

        TRY(hf_query(s, onces->db, &query, &page));
        for (size_t i = 0; i < page.items_len; i++) {
            struct once_view view;

            TRY(hf__once_view(s, &onces->at, page.items[i], hf__env_wall_ms(&onces->env), &view));
            if (view.record.state == HF_ONCE_NONE)
                continue;
            if (o.limit && all.len == o.limit) {
                list->next = all.records[all.len - 1].key;
                break;
            }
            TRY(list_append(s, &all, &view.record));
        }
        start = page.last;
    } while (page.last.ptr && !list->next.ptr);
    list->records = all.records;
    list->records_len = all.len;
    return HF_OK;
}
