/*
 * lock/lock_admin.c: looking at locks from outside, and breaking them.
 *
 * A list reads the whole table, page by page, with consistent reads: what was held when the list
 * began and still is when it ends is in it. To break a lock costs a fence, so that a lock with the
 * fence of its holder has not been broken.
 */
#include "lock/lock.h"

enum hf_status hf_lock_inspect(struct hf_scope *s, struct hf_lock_table *locks, struct hf_str name,
                               struct hf_lock_info *info)
{
    struct lock_view view;
    struct hf_item item = {0};

    *info = (struct hf_lock_info){0};
    if (name.len == 0)
        return hf_scope_fail(s, HF_INVALID, "a lock needs a name");
    if (locks->db)
        TRY(hf__pattern_read(s, locks->db, locks->at.table, hf__lock_key(s, &locks->at, name),
                             &item));
    if (!item.ptr)
        return hf_scope_fail(s, HF_NOT_FOUND, "nobody ever held lock %.*s", HF_FMT(name));
    TRY(hf__lock_view(s, &locks->at, item, &view));
    *info = view.info;
    return HF_OK;
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* A list that grows in the scope. */
struct gathered {
    struct hf_lock_info *infos;
    size_t len, cap;
};

static enum hf_status list_append(struct hf_scope *s, struct gathered *all,
                                  const struct hf_lock_info *info)
{
    if (all->len == all->cap) {
        size_t cap = all->cap ? all->cap * 2 : 16;
        struct hf_lock_info *moved = hf_scope_alloc(s, cap * sizeof(*moved));

        if (!moved)
            return hf_scope_built(s);
        if (all->len)
            memcpy(moved, all->infos, all->len * sizeof(*moved));
        all->infos = moved;
        all->cap = cap;
    }
    all->infos[all->len++] = *info;
    return HF_OK;
}

static struct hf_scan page_request(struct hf_scope *s, struct hf_lock_table *locks,
                                   const struct hf_lock_list_options *o, struct hf_item start)
{
    struct hf_scan scan = {.table = locks->at.table, .start = start, .consistent = HF_YES};
    struct hf_attr names[2], values[2];
    size_t len = 0;

    if (o->prefix.len) {
        names[len] = (struct hf_attr)HF_S("#name", locks->at.hash);
        values[len++] = (struct hf_attr)HF_S(":prefix", o->prefix);
        scan.filter = HF_STR("begins_with(#name, :prefix)");
    }
    if (!o->free_too) {
        names[len] = (struct hf_attr)HF_S("#held", HF_STR("held"));
        values[len++] = (struct hf_attr)HF_N(":zero", 0);
        scan.filter = len == 2 ? HF_STR("begins_with(#name, :prefix) AND #held > :zero")
                               : HF_STR("#held > :zero");
    }
    if (len) {
        scan.names = hf_item_make(s, names, len);
        scan.values = hf_item_make(s, values, len);
    }
    return scan;
}

enum hf_status hf_lock_list(struct hf_scope *s, struct hf_lock_table *locks,
                            const struct hf_lock_list_options *options, struct hf_lock_list *list)
{
    struct hf_lock_list_options o;
    struct gathered all = {0};
    struct hf_item start = {0};
    struct hf_scan_result page = {0};

    call_begins(s);
    *list = (struct hf_lock_list){0};
    OPTIONS_COPY(&o, options);
    if (o.after.len)
        start = hf__lock_key(s, &locks->at, o.after);
    do {
        struct hf_scan scan = page_request(s, locks, &o, start);

        if (!locks->db)
            break;
        TRY(hf_scan(s, locks->db, &scan, &page));
        for (size_t i = 0; i < page.items_len; i++) {
            struct lock_view view;

            if (hf__kind_is_mark(hf_value_str(hf_item_get(page.items[i], locks->at.hash))))
                continue;
            if (o.limit && all.len == o.limit) {
                list->next = all.infos[all.len - 1].name;
                break;
            }
            TRY(hf__lock_view(s, &locks->at, page.items[i], &view));
            TRY(list_append(s, &all, &view.info));
        }
        start = page.last;
    } while (page.last.ptr && !list->next.ptr);
    list->locks = all.infos;
    list->locks_len = all.len;
    return HF_OK;
}

/* ---- breaking ------------------------------------------------------------------------------- */

/* The holders to evict, at most EVICT_MAX of them. */
static size_t victims_select(const struct lock_view *view, struct hf_str id,
                             struct lock_evict *evict)
{
    size_t len = 0;

    for (size_t i = 0; i < view->info.holders_len && len < EVICT_MAX; i++)
        if (!id.ptr || hf_str_equal(view->info.holders[i].id, id))
            evict[len++] = (struct lock_evict){.id = view->info.holders[i].id, .any_beat = true};
    return len;
}

enum hf_status hf_lock_break(struct hf_scope *s, struct hf_lock_table *locks, struct hf_str name,
                             struct hf_str id, size_t *broken)
{
    size_t count = 0;
    bool first = true;

    if (broken)
        *broken = 0;
    for (;;) {
        struct lock_evict evict[EVICT_MAX];
        struct lock_take take = {.at = &locks->at,
                                 .name = name,
                                 .wall_ms = hf__env_wall_ms(&locks->env),
                                 .evict = evict};
        struct hf_update_item update;
        struct hf_item item = {0};
        struct lock_view view;
        enum hf_status status;

        if (locks->db)
            TRY(hf__pattern_read(s, locks->db, locks->at.table, hf__lock_key(s, &locks->at, name),
                                 &item));
        TRY(hf__lock_view(s, &locks->at, item, &view));
        take.evict_len = victims_select(&view, id, evict);
        if (first && (!item.ptr || (id.ptr && !take.evict_len)))
            return hf_scope_fail(s, HF_NOT_FOUND, "nobody %s lock %.*s%s",
                                 item.ptr ? "holds" : "ever held", HF_FMT(name),
                                 id.ptr ? " under that id" : "");
        first = false;
        if (take.evict_len == 0)
            break;
        update = hf__lock_take_request(s, &take);
        TRY(hf_scope_built(s));
        status = hf__pattern_write(s, locks->db, &(struct hf_transact_write){.update = &update},
                                   update.key, &item);
        if (status != HF_OK && status != HF_CONDITION)
            return status;
        count += status == HF_OK || hf_scope_error(s)->may_have_happened ? take.evict_len : 0;
    }
    if (broken)
        *broken = count;
    return hf_scope_ok(s);
}
