/*
 * kv/kv_list.c: many keys: lists, pages of them, and clearing.
 *
 * In a partition a list is a Query: keys that begin alike are stored side by side (kv_item.c (1)).
 * Without partitions a list of one namespace is a Query of the index of namespaces, if the table
 * has it (kv_item.c (5)), and its items are read by the keys that are found there. A global index
 * is eventually consistent, so a consistent list does not use it. All other lists, and those over
 * all partitions, are a Scan of the whole table with a filter.
 *
 *  (1) The database may be asked for more than is wanted; every entry that is handed out has passed
 *      is_wanted(). So a filter that the database cannot have (a Query knows none on keys) is no
 *      different.
 *  (2) A step either succeeds, or fails and changes nothing.
 *  (3) A page without items does not end a list; only a page without a `last` does.
 *  (4) The list's memory is two pages, however long it is.
 */
#include "kv/kv.h"

enum {
    SCAN_MIN = 1000, /* items to look at per Scan, at least */
    INDEX_PAGE = 100 /* keys per Query of the index: their items may be large, and come together */
};

struct hf_kv_list {
    struct hf_env env;
    const struct hf_kv *kv;
    struct hf_scope *names;  /* the range and the request live here */
    struct hf_scope *memory; /* of the page, and what comes of it */
    struct hf_scope *spare;  /* of the next one, until it has arrived (2) */
    struct hf_scope *parsed; /* the key of the entry that was handed out */
    struct hf_kv_range range;
    struct hf_str space; /* absent: all */
    bool everything;     /* not only values */
    bool by_index;       /* of namespaces */
    struct hf_str head;  /* what the index has for the namespace */
    struct hf_query query;
    struct hf_scan scan;
    bool ended; /* there are no more pages */
    struct hf_item start;
    const struct hf_item *items;
    size_t items_len, at;
    struct hf_str hash, sort; /* of the last item that was looked at; absent: none was */
    struct hf_str after;
    uint64_t limit, handed_out;
    uint32_t delay_ms;
    int64_t asked_us; /* when the last page was asked for; 0: none was */
};

/* ---- the request ---------------------------------------------------------------------------- */

static enum hf_status bad_range(struct hf_scope *s, const struct hf_kv *kv, const char *why)
{
    return hf_scope_fail(s, HF_INVALID, "a list of table %.*s: %s", HF_FMT(kv->table), why);
}

static enum hf_flag consistency_of(const struct hf_kv *kv, const struct hf_kv_list_options *o)
{
    return o->consistent ? o->consistent : kv->consistent ? HF_YES : HF_UNSET;
}

static bool can_use_index(const struct hf_kv *kv, const struct hf_kv_range *r,
                          const struct hf_kv_list_options *o)
{
    return kv->indexed && !r->all_spaces && !o->segments && consistency_of(kv, o) != HF_YES;
}

static enum hf_status range_check(struct hf_scope *s, const struct hf_kv *kv,
                                  const struct hf_kv_range *r, const struct hf_kv_list_options *o)
{
    bool whole = !r->partition.ptr && !can_use_index(kv, r, o);

    if (r->partition.ptr && !kv->sort.ptr)
        return bad_range(s, kv, "the table has no partitions");
    if (r->partition.ptr && r->partition.len == 0)
        return bad_range(s, kv, "the partition is empty");
    if (r->all_spaces && (r->space.ptr || r->prefix.len || r->from.len || r->before.len))
        return bad_range(s, kv, "prefix, from and before need one namespace");
    if (whole && o->backward)
        return bad_range(s, kv,
                         "backward needs a partition, or the index of namespaces, which consistent "
                         "lists do not use");
    if (!whole && o->segments)
        return bad_range(s, kv, "segments are for lists that read the whole table");
    if (o->segments ? o->segment >= o->segments : o->segment)
        return bad_range(s, kv, "the segment does not exist");
    return HF_OK;
}

/* "a" comes before "b". */
static bool is_before(struct hf_str a, struct hf_str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;

    return order ? order < 0 : a.len < b.len;
}

static bool begins_with(struct hf_str text, struct hf_str prefix)
{
    return text.len >= prefix.len &&
           (prefix.len == 0 || memcmp(text.ptr, prefix.ptr, prefix.len) == 0);
}

static bool has_part(struct hf_str text, struct hf_str part)
{
    for (size_t i = 0; part.len && i + part.len <= text.len; i++)
        if (memcmp(text.ptr + i, part.ptr, part.len) == 0)
            return true;
    return part.len == 0;
}

static struct hf_attr name_attr(const char *placeholder, struct hf_str name)
{
    return (struct hf_attr){.name = hf_str_from(placeholder), .type = HF_TYPE_S, .text = name};
}

static struct hf_attr value_attr(const char *placeholder, struct hf_str text)
{
    return (struct hf_attr){.name = hf_str_from(placeholder), .type = HF_TYPE_S, .text = text};
}

/* A value; or whatever is not the memory of a deleted key. */
static struct hf_str filter_of(const struct hf_kv_list *list)
{
    return list->everything ? HF_STR("(attribute_exists(#data) OR attribute_not_exists(#version))")
                            : HF_STR("attribute_exists(#data)");
}

/* The last key of a namespace would come before this: '/' is what follows the dot. */
static struct hf_str end_of(struct hf_scope *s, struct hf_str space)
{
    return hf_scope_format(s, "%.*s/", HF_FMT(hf__pattern_key(s, &space, 1)));
}

static void build_query(struct hf_kv_list *list, const struct hf_kv_list_options *o)
{
    const struct hf_kv *kv = list->kv;
    const struct hf_kv_range *r = &list->range;
    struct hf_scope *s = list->names;
    struct hf_attr names[4], values[3];
    size_t names_len = 0, values_len = 0;
    struct hf_query *q = &list->query;

    names[names_len++] = name_attr("#hash", list->by_index ? HF_STR(KV_SPACE) : kv->hash);
    values[values_len++] = value_attr(":hash", list->by_index ? list->head : r->partition);
    if (!list->by_index) {
        names[names_len++] = name_attr("#data", kv->data);
        q->filter = filter_of(list);
    } else {
        q->index = HF_STR(KV_SPACES);
    }
    if (!list->by_index && list->everything)
        names[names_len++] = name_attr("#version", kv->version);
    q->key_condition = HF_STR("#hash = :hash");
    if (list->space.ptr) {
        names[names_len++] = name_attr("#sort", list->by_index ? kv->hash : kv->sort);
        if (r->from.len || r->before.len) {
            struct hf_str from = is_before(r->from, r->prefix) ? r->prefix : r->from;
            struct hf_str low = hf__kv_join(s, list->space, from);
            struct hf_str high =
                r->before.len ? hf__kv_join(s, list->space, r->before) : end_of(s, list->space);

            list->ended = !is_before(low, high);
            q->key_condition = HF_STR("#hash = :hash AND #sort BETWEEN :low AND :high");
            values[values_len++] = value_attr(":low", low);
            values[values_len++] = value_attr(":high", high);
        } else {
            q->key_condition = HF_STR("#hash = :hash AND begins_with(#sort, :head)");
            values[values_len++] = value_attr(":head", hf__kv_join(s, list->space, r->prefix));
        }
    }
    assert(names_len <= ARRAY_LEN(names) && values_len <= ARRAY_LEN(values));
    q->table = kv->table;
    q->names = hf_item_make(s, names, names_len);
    q->values = hf_item_make(s, values, values_len);
    q->forward = o->backward ? HF_NO : HF_UNSET;
}

static void build_scan(struct hf_kv_list *list, const struct hf_kv_list_options *o)
{
    const struct hf_kv *kv = list->kv;
    const struct hf_kv_range *r = &list->range;
    struct hf_scope *s = list->names;
    struct hf_attr names[3], values[2];
    size_t names_len = 0, values_len = 0;
    struct hf_scan *scan = &list->scan;
    bool spaced = list->space.ptr != NULL, part = r->id_contains.len != 0;

    names[names_len++] = name_attr("#data", kv->data);
    if (list->everything)
        names[names_len++] = name_attr("#version", kv->version);
    if (spaced || part)
        names[names_len++] = name_attr("#key", kv->sort.ptr ? kv->sort : kv->hash);
    if (spaced)
        values[values_len++] = value_attr(":head", hf__kv_join(s, list->space, r->prefix));
    if (part)
        values[values_len++] = value_attr(":part", r->id_contains);
    scan->filter = hf_scope_format(s, "%.*s%s%s", HF_FMT(filter_of(list)),
                                   spaced ? " AND begins_with(#key, :head)" : "",
                                   part ? " AND contains(#key, :part)" : "");
    assert(names_len <= ARRAY_LEN(names) && values_len <= ARRAY_LEN(values));
    scan->table = kv->table;
    scan->names = hf_item_make(s, names, names_len);
    if (values_len)
        scan->values = hf_item_make(s, values, values_len);
    scan->segment = o->segment;
    scan->total_segments = o->segments;
}

/* ---- open and close ------------------------------------------------------------------------- */

void hf_kv_list_free(struct hf_kv_list *list)
{
    struct hf_env env;

    if (!list)
        return;
    env = list->env;
    hf_scope_free(list->parsed);
    hf_scope_free(list->spare);
    hf_scope_free(list->memory);
    hf_scope_free(list->names);
    hf__env_free(&env, list, sizeof(*list));
}

static struct hf_str text_keep(struct hf_kv_list *list, struct hf_str text)
{
    return text.ptr ? hf_scope_copy(list->names, text) : text;
}

/* The cursor is the key where it ended, in the table or in the index: with different numbers of
 * parts, as their orders differ, too. */
static size_t cursor_parts(const struct hf_kv_list *list)
{
    return list->kv->sort.ptr || list->by_index ? 2 : 1;
}

static enum hf_status start_after(struct hf_scope *s, struct hf_kv_list *list)
{
    struct hf_str parts[2] = {{NULL, 0}, {NULL, 0}};
    const struct hf_kv *kv = list->kv;

    if (!list->after.ptr)
        return HF_OK;
    if (hf__pattern_key_parts(list->names, list->after, parts, cursor_parts(list)) != HF_OK ||
        (list->range.partition.ptr && !hf_str_equal(parts[0], list->range.partition)) ||
        (list->by_index && !hf_str_equal(parts[0], list->head)))
        return bad_range(s, kv, "invalid cursor");
    if (list->by_index) {
        const struct hf_attr key[] = {HF_S(KV_SPACE, parts[0]),
                                      {.name = kv->hash, .type = HF_TYPE_S, .text = parts[1]}};

        list->start = hf_item_make(list->names, key, ARRAY_LEN(key));
        return HF_OK;
    }
    list->start = hf__kv_item_key(list->names, kv, parts[0], parts[1]);
    return HF_OK;
}

static enum hf_status list_prepare(struct hf_scope *s, struct hf_kv_list *list,
                                   const struct hf_kv_range *range,
                                   const struct hf_kv_list_options *o)
{
    int64_t page = o->page;

    list->range = (struct hf_kv_range){.partition = text_keep(list, range->partition),
                                       .prefix = text_keep(list, range->prefix),
                                       .from = text_keep(list, range->from),
                                       .before = text_keep(list, range->before),
                                       .id_contains = text_keep(list, range->id_contains)};
    if (!range->all_spaces)
        list->space = text_keep(list, range->space.ptr ? range->space : list->kv->space);
    list->by_index = can_use_index(list->kv, range, o);
    assert((!list->by_index || !list->kv->sort.ptr) &&
           "the index is for tables without partitions");
    if (list->by_index)
        list->head = hf__kv_join(list->names, list->space, HF_STR(""));
    list->after = text_keep(list, o->after);
    list->limit = o->limit ? o->limit : UINT64_MAX;
    list->delay_ms = o->delay_ms;
    /* Most of a whole table may be others': then small pages would be many. */
    if (page == 0 && o->limit && !list->by_index)
        page = range->partition.ptr || o->limit > SCAN_MIN ? o->limit : SCAN_MIN;
    if (page == 0 && list->by_index)
        page = o->limit && o->limit < INDEX_PAGE ? o->limit : INDEX_PAGE;
    if (list->range.partition.ptr || list->by_index)
        build_query(list, o);
    else
        build_scan(list, o);
    list->query.limit = list->scan.limit = page;
    list->query.consistent = list->scan.consistent = consistency_of(list->kv, o);
    TRY(start_after(s, list));
    if (hf_scope_built(list->names) != HF_OK)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a list");
    return HF_OK;
}

static enum hf_status open_list(struct hf_scope *s, const struct hf_kv *kv,
                                const struct hf_kv_range *range, const struct hf_kv_list_options *o,
                                bool everything, struct hf_kv_list **out)
{
    static const struct hf_kv_range all;
    struct hf_kv_list *list;
    enum hf_status status;

    *out = NULL;
    range = range ? range : &all;
    TRY(range_check(s, kv, range, o));
    list = hf__env_zalloc(hf_scope_env(s), sizeof(*list));
    if (!list)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a list");
    list->env = *hf_scope_env(s);
    list->kv = kv;
    list->everything = everything;
    list->names = hf_scope_new(&list->env);
    list->memory = hf_scope_new(&list->env);
    list->spare = hf_scope_new(&list->env);
    list->parsed = hf_scope_new(&list->env);
    status = list->names && list->memory && list->spare && list->parsed
                 ? list_prepare(s, list, range, o)
                 : hf_scope_fail(s, HF_NOMEM, "no memory for a list");
    if (status != HF_OK) {
        hf_kv_list_free(list);
        return status;
    }
    *out = list;
    return HF_OK;
}

enum hf_status hf_kv_list_open(struct hf_scope *s, struct hf_kv *kv,
                               const struct hf_kv_range *range,
                               const struct hf_kv_list_options *options, struct hf_kv_list **list)
{
    struct hf_kv_list_options o;

    call_begins(s);
    OPTIONS_COPY(&o, options);
    return open_list(s, kv, range, &o, false, list);
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* The page moves in, and the one before it out. (2) */
static enum hf_status move_in(struct hf_scope *s, struct hf_kv_list *list,
                              const struct hf_item *items, size_t len, struct hf_item last)
{
    struct hf_scope *to = list->spare;
    struct hf_item *moved, start;
    struct hf_str hash, sort;

    hf_scope_reset(to);
    moved = hf_scope_alloc(to, (len + 1) * sizeof(*moved));
    for (size_t i = 0; moved && i < len; i++)
        moved[i] = hf_item_copy(to, items[i]);
    start = last.ptr ? hf_item_copy(to, last) : last;
    hash = list->hash.ptr ? hf_scope_copy(to, list->hash) : list->hash;
    sort = list->sort.ptr ? hf_scope_copy(to, list->sort) : list->sort;
    if (hf_scope_built(to) != HF_OK)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a page of a list");
    list->spare = list->memory;
    list->memory = to;
    list->items = moved;
    list->items_len = len;
    list->at = 0;
    list->start = start;
    list->ended = !last.ptr;
    list->hash = hash;
    list->sort = sort;
    return HF_OK;
}

/* The items that a page of the index has the keys of. Some may have gone, and what remembers a
 * deleted key is no item of a list. */
static enum hf_status read_items(struct hf_scope *s, const struct hf_kv_list *list,
                                 const struct hf_query_result *page, struct hf_item **items,
                                 size_t *len)
{
    const struct hf_kv *kv = list->kv;
    struct hf_get *gets = hf_scope_alloc(s, (page->items_len + 1) * sizeof(*gets));
    struct hf_get_many_result got;

    *items = hf_scope_alloc(s, (page->items_len + 1) * sizeof(**items));
    *len = 0;
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < page->items_len; i++)
        gets[i] = (struct hf_get){
            .table = kv->table,
            .key = hf__kv_item_key(s, kv, hf_value_str(hf_item_get(page->items[i], kv->hash)),
                                   hf_str_of(NULL, 0))};
    TRY(hf_scope_built(s));
    TRY(hf_get_many(s, kv->db, gets, page->items_len, NULL, &got));
    for (size_t i = 0; i < got.items_len; i++)
        if (hf_item_get(got.items[i], kv->data).ptr ||
            (got.items[i].ptr && list->everything && !hf_item_get(got.items[i], kv->version).ptr))
            (*items)[(*len)++] = got.items[i];
    return HF_OK;
}

static enum hf_status page_fetch(struct hf_scope *s, struct hf_kv_list *list)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    int64_t now_us = hf__env_elapsed_us(hf_scope_env(s));
    int64_t wait_us = list->asked_us + (int64_t)list->delay_ms * 1000 - now_us;
    enum hf_status status;

    assert(!list->ended && list->at == list->items_len);
    if (list->asked_us && list->delay_ms && wait_us > 0)
        TRY(hf_scope_sleep_ms(s, (uint32_t)((wait_us + 999) / 1000)));
    list->asked_us = hf__env_elapsed_us(hf_scope_env(s));
    if (list->by_index) {
        struct hf_query_result page;
        struct hf_item *items;
        size_t len;

        list->query.start = list->start;
        TRY(hf_query(s, list->kv->db, &list->query, &page));
        TRY(read_items(s, list, &page, &items, &len));
        status = move_in(s, list, items, len, page.last);
    } else if (list->range.partition.ptr) {
        struct hf_query_result page;

        list->query.start = list->start;
        TRY(hf_query(s, list->kv->db, &list->query, &page));
        status = move_in(s, list, page.items, page.items_len, page.last);
    } else {
        struct hf_scan_result page;

        list->scan.start = list->start;
        TRY(hf_scan(s, list->kv->db, &list->scan, &page));
        status = move_in(s, list, page.items, page.items_len, page.last);
    }
    if (status == HF_OK)
        hf_scope_rewind(s, mark);
    return status;
}

/* (1) */
static bool is_wanted(const struct hf_kv_list *list, const struct hf_kv_key *key)
{
    const struct hf_kv_range *r = &list->range;

    return (!list->space.ptr || hf_str_equal(key->space, list->space)) &&
           begins_with(key->id, r->prefix) && !is_before(key->id, r->from) &&
           (r->before.len == 0 || is_before(key->id, r->before)) &&
           has_part(key->id, r->id_contains);
}

/* The table's own mark stays, also when all else is cleared. */
static bool is_mark(const struct hf_kv *kv, struct hf_item item)
{
    return hf__kind_is_mark(hf_value_str(hf_item_get(item, kv->hash))) &&
           (!kv->sort.ptr || hf__kind_is_mark(hf_value_str(hf_item_get(item, kv->sort))));
}

/* The next item that is wanted, and its key; absent at the end. */
static enum hf_status next_item(struct hf_scope *s, struct hf_kv_list *list, struct hf_item *item,
                                struct hf_kv_key *key)
{
    for (;;) {
        enum hf_status status;

        assert(list->at <= list->items_len);
        if (list->at == list->items_len) {
            *item = (struct hf_item){0};
            if (list->ended)
                return HF_OK;
            TRY(page_fetch(s, list));
            continue;
        }
        *item = list->items[list->at];
        if (is_mark(list->kv, *item)) {
            list->at++;
            continue;
        }
        hf_scope_reset(list->parsed);
        status = hf__kv_key_of(list->parsed, list->kv, *item, key);
        if (status == HF_NOMEM)
            return hf_scope_fail(s, HF_NOMEM, "no memory for a key of a list");
        list->at++;
        list->hash = hf_value_str(hf_item_get(*item, list->kv->hash));
        if (list->kv->sort.ptr)
            list->sort = hf_value_str(hf_item_get(*item, list->kv->sort));
        /* What is not ours has no namespace: only all of them have it in them. */
        if (status == HF_OK ? is_wanted(list, key) : list->everything && !list->space.ptr)
            return HF_OK;
    }
}

enum hf_status hf_kv_list_next(struct hf_scope *s, struct hf_kv_list *list,
                               struct hf_kv_entry *entry)
{
    call_begins(s);
    *entry = (struct hf_kv_entry){0};
    while (list->handed_out < list->limit) {
        struct hf_kv_key key;
        struct hf_item item;
        struct kv_view view;

        TRY(next_item(s, list, &item, &key));
        if (!item.ptr)
            break;
        TRY(hf__kv_view(s, list->kv, item, &view));
        if (!view.live)
            continue;
        if (view.blob.len) {
            struct kv_place place;

            TRY(hf__kv_place(s, list->kv, key, &place));
            TRY(hf__kv_load(s, list->kv, &place, &view));
            if (!view.live)
                continue; /* gone, since the page was read */
        }
        *entry = hf__kv_entry(key, &view);
        list->handed_out++;
        break;
    }
    return HF_OK;
}

enum hf_status hf_kv_list_cursor(struct hf_scope *s, struct hf_kv_list *list, struct hf_str *cursor)
{
    struct hf_str parts[2] = {list->by_index ? list->head : list->hash,
                              list->by_index ? list->hash : list->sort};

    call_begins(s);
    *cursor = hf_str_of(NULL, 0);
    if (list->ended && list->at == list->items_len)
        return HF_OK;
    if (list->hash.ptr)
        *cursor = hf__pattern_key(s, parts, cursor_parts(list));
    else if (list->after.ptr)
        *cursor = hf_scope_copy(s, list->after);
    return hf_scope_built(s);
}

/* ---- a page at once ------------------------------------------------------------------------- */

/* An entry of the list's memory, in the scope. */
static struct hf_kv_entry copy_entry(struct hf_scope *s, const struct hf_kv_entry *from)
{
    struct hf_kv_entry to = *from;
    struct hf_item held = HF_ITEM(s, HF_V("v", from->value));

    to.value = hf_item_get(held, HF_STR("v"));
    to.version = from->version.ptr ? hf_scope_copy(s, from->version) : from->version;
    to.key.id = hf_scope_copy(s, from->key.id);
    to.key.space = hf_scope_copy(s, from->key.space);
    if (from->key.partition.ptr)
        to.key.partition = hf_scope_copy(s, from->key.partition);
    return to;
}

static enum hf_status entry_add(struct hf_scope *s, struct hf_kv_entry **entries, size_t *len,
                                size_t *cap, const struct hf_kv_entry *entry)
{
    if (*len == *cap) {
        size_t more = *cap ? *cap * 2 : 16;
        struct hf_kv_entry *moved = hf_scope_alloc(s, more * sizeof(*moved));

        if (!moved)
            return hf_scope_built(s);
        if (*len)
            memcpy(moved, *entries, *len * sizeof(*moved));
        *entries = moved;
        *cap = more;
    }
    (*entries)[(*len)++] = copy_entry(s, entry);
    return hf_scope_built(s);
}

enum hf_status hf_kv_page(struct hf_scope *s, struct hf_kv *kv, const struct hf_kv_range *range,
                          const struct hf_kv_list_options *options, struct hf_kv_page *page)
{
    struct hf_kv_list_options o;
    struct hf_kv_entry *entries = NULL, entry;
    struct hf_kv_list *list;
    size_t len = 0, cap = 0;
    enum hf_status status;

    *page = (struct hf_kv_page){0};
    OPTIONS_COPY(&o, options);
    o.limit = o.limit ? o.limit : KV_PAGE_DEFAULT;
    TRY(open_list(s, kv, range, &o, false, &list));
    for (;;) {
        status = hf_kv_list_next(s, list, &entry);
        if (status != HF_OK || !entry.value.ptr)
            break;
        status = entry_add(s, &entries, &len, &cap, &entry);
        if (status != HF_OK)
            break;
    }
    if (status == HF_OK)
        status = hf_kv_list_cursor(s, list, &page->next);
    if (status == HF_OK) {
        page->entries = entries;
        page->entries_len = len;
    }
    hf_kv_list_free(list);
    return status;
}

/* ---- clearing ------------------------------------------------------------------------------- */

/* Remove one item if it is what was seen. */
static enum hf_status remove_exactly(struct hf_scope *s, struct hf_kv_list *list,
                                     struct hf_item item, uint64_t *cleared)
{
    const struct hf_kv *kv = list->kv;
    struct kv_base base = {.kind = KV_BASE_SEEN};
    struct kv_place place = {.hash = list->hash, .sort = list->sort};
    struct kv_request request;
    enum hf_status status;
    struct kv_view now;

    TRY(hf__kv_view(s, kv, item, &base.seen));
    hf__kv_delete_request(s, kv, &place, &base, &request);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, kv->db, &(struct hf_transact_write){.del = &request.del},
                               request.key, &item);
    if (status == HF_CONDITION) {
        bool doubtful = hf_scope_error(s)->may_have_happened;

        TRY(hf__kv_view(s, kv, item, &now));
        if (doubtful && hf__kv_judge_removal(&base, &now) == KV_DONE)
            status = HF_OK;
    }
    *cleared += status == HF_OK;
    return status == HF_CONDITION ? HF_OK : status;
}

enum { CLEAR_MAX = 100 }; /* keys that are removed by one call of hf_write_many() */

static enum hf_status remove_some(struct hf_scope *s, struct hf_kv_list *list, bool exact,
                                  uint64_t *cleared, bool *more)
{
    struct hf_write writes[CLEAR_MAX];
    struct hf_write_many_result result = {0};
    enum hf_status status;
    size_t len = 0;

    *more = true;
    while (*more && len < CLEAR_MAX) {
        struct hf_kv_key key;
        struct hf_item item;

        TRY(next_item(s, list, &item, &key));
        *more = item.ptr != NULL;
        if (*more && exact)
            TRY(remove_exactly(s, list, item, cleared));
        else if (*more)
            writes[len++] =
                (struct hf_write){.table = list->kv->table,
                                  .del = hf__kv_item_key(s, list->kv, list->hash, list->sort)};
        if (exact)
            break;
    }
    if (len == 0)
        return HF_OK;
    assert(len <= CLEAR_MAX && !exact);
    status = hf_write_many(s, list->kv->db, writes, len, NULL, &result);
    assert(result.left_len <= len);
    *cleared += len - result.left_len;
    return status;
}

enum hf_status hf_kv_clear(struct hf_scope *s, struct hf_kv *kv, const struct hf_kv_range *range,
                           const struct hf_kv_clear_options *options, uint64_t *cleared)
{
    struct hf_kv_clear_options o;
    struct hf_kv_list_options all = {.size = sizeof(all)};
    enum hf_status status = HF_OK;
    struct hf_kv_list *list;
    uint64_t ignored;
    bool more = true;

    cleared = cleared ? cleared : &ignored;
    *cleared = 0;
    OPTIONS_COPY(&o, options);
    all.delay_ms = o.delay_ms;
    all.consistent = o.eventual ? HF_NO : HF_YES;
    TRY(open_list(s, kv, range, &all, true, &list));
    while (more && status == HF_OK) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        status = remove_some(s, list, o.exact, cleared, &more);
        if (status == HF_OK)
            hf_scope_rewind(s, mark);
    }
    hf_kv_list_free(list);
    return status == HF_OK ? hf_scope_ok(s) : status;
}
