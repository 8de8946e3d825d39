/*
 * copy/copy.c: copies of tables: opening one, and the order of what it does.
 *
 *     look       both definitions, the state                          copy_schema.c, copy_state.c
 *     positions  of the source's stream                               copy_stream.c
 *     items      a scan in segments, put in batches                   copy_scan.c
 *     changes    the stream from those positions, each conditional    copy_apply.c
 *     compare    digests by ranges of keys, then the items            copy_verify.c
 *     cut over   fence, changes that are left, compare                copy_cutover.c
 *
 * What always holds:
 *
 *  (1) Nothing is written to the source but the fence, and a stream that is switched on. Nothing is
 *      added to items. The state is a table of the target.
 *  (2) Positions of the stream are older than the first item that is read. So what is not in the
 *      items is in the changes, and each change is there at least once.
 *  (3) Changes are applied after all items were copied, in the order of the stream. Each is a write
 *      that is conditional on the item as it was before the change. copy_apply.c has the proof that
 *      the target ends as the source, whatever was repeated.
 *  (4) Nothing that somebody else has written to the target is overwritten by a change.
 *  (5) Killed at any point, it goes on from what the state says, and (2) to (4) still hold.
 */
#include "copy/private.h"

#include <holdfast/fence.h>
#include <holdfast/pages.h>

#include <stdio.h>
#include <string.h>

/* ---- small things --------------------------------------------------------------------------- */

void hf__copy_note(struct copy_table *t, const char *format, ...)
{
    const struct hf_copy_options *o = &t->copy->o;
    char text[1024];
    va_list args;

    if (!o->on_note)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    o->on_note(t->source, hf_str_from(text), o->user);
}

enum hf_status hf__copy_text_set(struct hf_scope *s, struct hf_copy *c, struct hf_str *text,
                                 struct hf_str to)
{
    char *copy = NULL;

    if (to.ptr) {
        copy = hf__env_alloc(&c->env, to.len + 1);
        if (!copy)
            return hf_scope_fail(s, HF_NOMEM, "out of memory");
        memcpy(copy, to.ptr, to.len);
        copy[to.len] = '\0';
    }
    if (text->ptr)
        hf__env_free(&c->env, (void *)(uintptr_t)text->ptr, text->len + 1);
    *text = copy ? hf_str_of(copy, to.len) : (struct hf_str){0};
    return HF_OK;
}

enum hf_status hf__copy_item_set(struct hf_scope *s, struct hf_copy *c, struct hf_item *item,
                                 struct hf_item to)
{
    uint8_t *copy = NULL;

    if (to.ptr) {
        copy = hf__env_alloc(&c->env, to.len + 1);
        if (!copy)
            return hf_scope_fail(s, HF_NOMEM, "out of memory");
        memcpy(copy, to.ptr, to.len);
    }
    if (item->ptr)
        hf__env_free(&c->env, (void *)(uintptr_t)item->ptr, item->len + 1);
    *item = (struct hf_item){copy, copy ? to.len : 0};
    return HF_OK;
}

struct hf_item hf__copy_key(struct hf_scope *s, const struct copy_table *t, struct hf_item item)
{
    const struct hf_attr key[] = {hf_attr_of_value(t->hash, hf_item_get(item, t->hash)),
                                  hf_attr_of_value(t->range, hf_item_get(item, t->range))};

    return hf_item_make(s, key, t->range.ptr ? 2 : 1);
}

/* ---- segments and shards in memory ---------------------------------------------------------- */

static void text_drop(struct hf_copy *c, struct hf_str *text)
{
    (void)!hf__copy_text_set(NULL, c, text, (struct hf_str){0});
}

void hf__copy_segments_free(struct copy_table *t)
{
    for (size_t i = 0; i < t->segments_len; i++)
        (void)!hf__copy_item_set(NULL, t->copy, &t->segments[i].position, (struct hf_item){0});
    hf__env_free(&t->copy->env, t->segments, t->segments_len * sizeof(*t->segments));
    t->segments = NULL;
    t->segments_len = 0;
}

enum hf_status hf__copy_segments_make(struct hf_scope *s, struct copy_table *t, uint32_t len)
{
    assert(len >= 1 && len <= HF_COPY_SEGMENTS_MAX);
    hf__copy_segments_free(t);
    t->segments = hf__env_zalloc(&t->copy->env, len * sizeof(*t->segments));
    if (!t->segments)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    t->segments_len = len;
    for (uint32_t i = 0; i < len; i++)
        t->segments[i] = (struct copy_segment){.table = t, .number = i};
    return HF_OK;
}

enum hf_status hf__copy_shard_add(struct hf_scope *s, struct copy_table *t, struct hf_str id,
                                  struct hf_str parent, struct copy_shard **shard)
{
    struct hf_copy *c = t->copy;

    if (t->shards_len == t->shards_cap) {
        size_t cap = t->shards_cap ? 2 * t->shards_cap : 8;
        struct copy_shard *grown =
            hf__env_resize(&c->env, t->shards, t->shards_cap * sizeof(*grown),
                           cap * sizeof(*grown));

        if (!grown)
            return hf_scope_fail(s, HF_NOMEM, "out of memory");
        t->shards = grown;
        t->shards_cap = cap;
    }
    *shard = &t->shards[t->shards_len];
    **shard = (struct copy_shard){.listed = true};
    TRY(hf__copy_text_set(s, c, &(*shard)->id, id));
    t->shards_len++;
    return parent.ptr ? hf__copy_text_set(s, c, &(*shard)->parent, parent) : HF_OK;
}

void hf__copy_shards_free(struct copy_table *t)
{
    struct hf_copy *c = t->copy;

    for (size_t i = 0; i < t->shards_len; i++) {
        text_drop(c, &t->shards[i].id);
        text_drop(c, &t->shards[i].parent);
        text_drop(c, &t->shards[i].sequence);
        text_drop(c, &t->shards[i].iterator);
    }
    hf__env_free(&c->env, t->shards, t->shards_cap * sizeof(*t->shards));
    t->shards = NULL;
    t->shards_len = t->shards_cap = 0;
    t->look_us = 0;
}

/* ---- which tables --------------------------------------------------------------------------- */

static struct hf_str target_name(const struct hf_copy *c, struct hf_str source)
{
    for (size_t i = 0; i < c->o.names_len; i++)
        if (hf_str_equal(c->o.names[i].source, source))
            return c->o.names[i].target;
    return source;
}

static enum hf_status table_add(struct hf_scope *s, struct hf_copy *c, struct hf_str name)
{
    struct copy_table *t = &c->tables[c->tables_len];

    for (size_t i = 0; i < c->tables_len; i++)
        if (hf_str_equal(c->tables[i].source, name))
            return HF_OK;
    *t = (struct copy_table){.copy = c, .state = HF_COPY_NEW};
    t->source = hf_scope_copy(c->memory, name);
    t->target = hf_scope_copy(c->memory, target_name(c, name));
    t->pk = PATTERN_KEY(c->memory, HF_STR("copy"), t->target);
    if (!t->source.ptr || !t->target.ptr || !t->pk.ptr)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    for (size_t i = 0; i < c->tables_len; i++)
        if (hf_str_equal(c->tables[i].target, t->target))
            return hf_scope_fail(s, HF_INVALID,
                                 "tables %.*s and %.*s are both copied to %.*s; give one of them "
                                 "another name",
                                 HF_FMT(c->tables[i].source), HF_FMT(t->source), HF_FMT(t->target));
    if (c->source == c->target && hf_str_equal(t->source, t->target))
        return hf_scope_fail(s, HF_INVALID, "table %.*s cannot be copied to itself",
                             HF_FMT(t->source));
    c->tables_len++;
    return HF_OK;
}

static bool is_own_table(struct hf_str name)
{
    return hf_str_equal(name, COPY_STATE_TABLE) || hf_str_equal(name, HF_FENCE_TABLE);
}

static enum hf_status tables_list(struct hf_scope *s, struct hf_copy *c, struct hf_str **names,
                                  size_t *len)
{
    struct hf_pages *pages;
    struct hf_str name = {0};
    enum hf_status status;
    size_t cap = 0;

    *names = NULL;
    *len = 0;
    TRY(hf_pages_list_tables(s, c->source, &(struct hf_list_tables){.limit = 0}, NULL, &pages));
    while ((status = hf_pages_next_table(s, pages, &name)) == HF_OK && name.ptr) {
        if (is_own_table(name))
            continue;
        if ((status = hf__pattern_grow(s, (void **)names, *len, &cap, sizeof(**names))) != HF_OK)
            break;
        (*names)[(*len)++] = hf_scope_copy(s, name);
    }
    hf_pages_free(pages);
    return status;
}

static enum hf_status tables_choose(struct hf_scope *s, struct hf_copy *c)
{
    struct hf_str *listed = NULL;
    const struct hf_str *names = c->o.tables;
    size_t len = c->o.tables_len;

    if (!len) {
        TRY(tables_list(s, c, &listed, &len));
        names = listed;
    }
    c->tables = hf__scope_array(c->memory, len + 1, sizeof(*c->tables));
    if (!c->tables)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    for (size_t i = 0; i < len; i++) {
        if (is_own_table(names[i]))
            return hf_scope_fail(s, HF_INVALID,
                                 "table %.*s has the state of copies, which belongs to its "
                                 "database: it cannot be copied",
                                 HF_FMT(names[i]));
        TRY(table_add(s, c, names[i]));
    }
    for (size_t i = 0; i < c->o.names_len; i++) {
        bool found = false;

        for (size_t j = 0; j < c->tables_len; j++)
            found = found || hf_str_equal(c->tables[j].source, c->o.names[i].source);
        if (!found)
            return hf_scope_fail(s, HF_INVALID,
                                 "table %.*s gets the name %.*s, but it is not copied",
                                 HF_FMT(c->o.names[i].source), HF_FMT(c->o.names[i].target));
    }
    return HF_OK;
}

/* ---- looking -------------------------------------------------------------------------------- */

static enum hf_status target_is_empty(struct hf_scope *s, struct copy_table *t)
{
    struct hf_scan_result page;

    TRY(hf_scan(s, t->copy->target, &(struct hf_scan){.table = t->target, .limit = 1}, &page));
    if (!page.items_len)
        return HF_OK;
    return hf_scope_fail(s, HF_INVALID,
                         "table %.*s of the target has items; copy to another name, or overwrite: "
                         "items with the same key are replaced then, and others stay",
                         HF_FMT(t->target));
}

static enum hf_status view_check(struct hf_scope *s, const struct copy_table *t)
{
    if (!t->view || t->view == HF_VIEW_NEW_AND_OLD_IMAGES)
        return HF_OK;
    return hf_scope_fail(s, HF_INVALID,
                         "the stream of table %.*s has no new and old images, which following "
                         "needs; switch it off and on again with both "
                         "(NEW_AND_OLD_IMAGES), or copy without following",
                         HF_FMT(t->source));
}

static enum hf_status table_look(struct hf_scope *s, struct copy_table *t)
{
    const struct hf_copy_options *o = &t->copy->o;

    t->restart = o->restart;
    TRY(hf__copy_table_look(s, t));
    if (o->follow)
        TRY(view_check(s, t));
    TRY(hf__copy_table_compare(s, t));
    TRY(hf__copy_state_look(s, t));
    if (t->begun && !t->restart && o->follow && !t->following)
        return hf_scope_fail(s, HF_INVALID,
                             "the copy of table %.*s was begun without following: changes that "
                             "were made meanwhile are not known; restart it",
                             HF_FMT(t->source));
    if (t->begun && t->make && !t->restart && t->state != HF_COPY_NEW)
        return hf_scope_fail(s, HF_INVALID,
                             "table %.*s of the target is gone, although this copy has made it; "
                             "restart the copy",
                             HF_FMT(t->target));
    if (t->make || t->begun || o->overwrite || (o->restart && t->known))
        return HF_OK;
    return target_is_empty(s, t);
}

static void totals_count(struct hf_copy *c)
{
    struct hf_copy_progress *p = &c->progress;

    p->tables = c->tables_len;
    p->items = p->bytes = p->items_total = p->conflicts = p->tables_done = 0;
    for (size_t i = 0; i < c->tables_len; i++) {
        const struct copy_table *t = &c->tables[i];

        p->items_total += t->items_total;
        p->conflicts += t->conflicts;
        p->tables_done += t->state >= HF_COPY_COPIED;
        for (size_t j = 0; j < t->segments_len; j++) {
            p->items += t->segments[j].items;
            p->bytes += t->segments[j].bytes;
        }
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

static enum hf_status options_keep(struct hf_scope *s, struct hf_copy *c)
{
    struct hf_copy_options *o = &c->o;
    struct hf_str *tables = hf__scope_array(c->memory, o->tables_len + 1, sizeof(*tables));
    struct hf_copy_name *names = hf__scope_array(c->memory, o->names_len + 1, sizeof(*names));

    if (!tables || !names)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    for (size_t i = 0; i < o->tables_len; i++)
        tables[i] = hf_scope_copy(c->memory, o->tables[i]);
    for (size_t i = 0; i < o->names_len; i++)
        names[i] = (struct hf_copy_name){hf_scope_copy(c->memory, o->names[i].source),
                                         hf_scope_copy(c->memory, o->names[i].target)};
    o->tables = tables;
    o->names = names;
    if (o->source_name.ptr)
        o->source_name = hf_scope_copy(c->memory, o->source_name);
    if (o->target_name.ptr)
        o->target_name = hf_scope_copy(c->memory, o->target_name);
    if (!o->segments)
        o->segments = COPY_SEGMENTS;
    if (!o->poll_ms)
        o->poll_ms = COPY_POLL_MS;
    if (o->segments > HF_COPY_SEGMENTS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_COPY_SEGMENTS_MAX, o->segments),
                                   "%u segments: at most %d are possible", o->segments,
                                   HF_COPY_SEGMENTS_MAX);
    if (o->eventual && o->follow)
        return hf_scope_fail(s, HF_INVALID,
                             "a copy that follows changes has to read items consistently");
    return HF_OK;
}

static enum hf_status copy_look(struct hf_scope *s, struct hf_copy *c)
{
    TRY(options_keep(s, c));
    TRY(tables_choose(s, c));
    for (size_t i = 0; i < c->tables_len; i++)
        TRY(table_look(s, &c->tables[i]));
    totals_count(c);
    return HF_OK;
}

enum hf_status hf_copy_open(struct hf_scope *s, struct hf_db *source, struct hf_db *target,
                            const struct hf_copy_options *options, struct hf_copy **copy)
{
    struct hf_env env;
    struct hf_copy *c;
    enum hf_status status;

    call_begins(s);
    *copy = NULL;
    if (!source || !target)
        return hf_scope_fail(s, HF_INVALID, "hf_copy_open() was called without a database (NULL)");
    env = *hf_scope_env(s);
    c = hf__env_zalloc(&env, sizeof(*c));
    if (!c)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    c->env = env;
    c->source = source;
    c->target = target;
    OPTIONS_COPY(&c->o, options);
    c->run = hf__pattern_id_make(&c->env);
    hf__env_random(&c->env, c->seed, sizeof(c->seed));
    pthread_mutex_init(&c->mutex, NULL);
    c->memory = hf_scope_new(&c->env);
    c->failed = hf_scope_new(&c->env);
    status = c->memory && c->failed ? copy_look(s, c) : hf_scope_fail(s, HF_NOMEM, "out of memory");
    if (status != HF_OK) {
        hf_copy_close(c);
        return status;
    }
    *copy = c;
    return call_ends(s, HF_OK);
}

void hf_copy_close(struct hf_copy *copy)
{
    struct hf_env env;

    if (!copy)
        return;
    for (size_t i = 0; i < copy->tables_len; i++) {
        struct copy_table *t = &copy->tables[i];

        hf__copy_segments_free(t);
        hf__copy_shards_free(t);
        hf__copy_suspects_free(t);
        text_drop(copy, &t->stream);
    }
    hf_scope_free(copy->failed);
    hf_scope_free(copy->memory);
    pthread_mutex_destroy(&copy->mutex);
    env = copy->env;
    hf__env_free(&env, copy, sizeof(*copy));
}

enum hf_status hf_copy_tables(struct hf_scope *s, struct hf_copy *copy,
                              const struct hf_copy_table **tables, size_t *len)
{
    struct hf_copy_table *list = hf__scope_array(s, copy->tables_len + 1, sizeof(*list));

    call_begins(s);
    *tables = NULL;
    *len = 0;
    if (!list)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    for (size_t i = 0; i < copy->tables_len; i++) {
        const struct copy_table *t = &copy->tables[i];

        list[i] = (struct hf_copy_table){.source = t->source,
                                         .target = t->target,
                                         .state = t->state,
                                         .make = t->make,
                                         .has_stream = t->view != 0,
                                         .items = t->items_total,
                                         .items_bytes = t->bytes_total,
                                         .indexes = (uint32_t)(t->spec.local_indexes_len +
                                                               t->spec.global_indexes_len),
                                         .ttl_attribute = t->ttl,
                                         .tags = (uint32_t)t->spec.tags_len};
        for (size_t j = 0; j < t->segments_len; j++)
            list[i].copied += t->segments[j].items;
    }
    *tables = list;
    *len = copy->tables_len;
    return HF_OK;
}

/* ---- running -------------------------------------------------------------------------------- */

static void table_show(struct copy_table *t)
{
    struct hf_copy *c = t->copy;

    pthread_mutex_lock(&c->mutex);
    snprintf(c->progress.table, sizeof(c->progress.table), "%.*s", HF_FMT(t->source));
    pthread_mutex_unlock(&c->mutex);
}

/* What is there is ours: it is of this copy, or the caller has said so. */
static enum hf_status table_begin(struct hf_scope *s, struct copy_table *t)
{
    if (t->clear && !t->make) {
        hf__copy_note(t, "what was copied before is removed from the target");
        TRY(hf__copy_table_clear(s, t));
    }
    t->restart = t->clear = false;
    if (t->make)
        t->made_table = true;
    if (t->following && !t->view)
        TRY(hf__copy_stream_enable(s, t));
    TRY(hf__copy_table_make(s, t));
    t->make = false;
    if (t->following) /* (2) */
        TRY(hf__copy_stream_begin(s, t));
    return hf__copy_state_save(s, t, HF_COPY_ITEMS);
}

static bool segments_done(const struct copy_table *t)
{
    bool done = true;

    for (size_t i = 0; i < t->segments_len; i++)
        done = done && t->segments[i].done;
    return done;
}

static enum hf_status table_run(struct hf_scope *s, struct copy_table *t)
{
    table_show(t);
    TRY(hf__copy_state_claim(s, t));
    if (t->state == HF_COPY_NEW)
        TRY(table_begin(s, t));
    if (t->state == HF_COPY_ITEMS) {
        assert(!t->following || t->positioned);
        TRY(hf__copy_scan(s, t));
        assert(segments_done(t));
        if (!t->following)
            TRY(hf__copy_ttl_enable(s, t));
        TRY(hf__copy_state_save(s, t, HF_COPY_COPIED));
    }
    return HF_OK;
}

enum hf_status hf_copy_run(struct hf_scope *s, struct hf_copy *copy)
{
    enum hf_status status = HF_OK;

    call_begins(s);
    for (size_t i = 0; status == HF_OK && i < copy->tables_len; i++) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        status = table_run(s, &copy->tables[i]);
        if (status == HF_OK)
            hf_scope_rewind(s, mark);
        pthread_mutex_lock(&copy->mutex);
        totals_count(copy);
        pthread_mutex_unlock(&copy->mutex);
    }
    return call_ends(s, status);
}

void hf_copy_progress(struct hf_copy *copy, struct hf_copy_progress *progress)
{
    pthread_mutex_lock(&copy->mutex);
    *progress = copy->progress;
    pthread_mutex_unlock(&copy->mutex);
}
