/*
 * copy/copy_apply.c: one change of the source, applied to the target, so that repeating it does no harm and
 * nothing of others is overwritten.
 *
 * A record of the stream has the item before (old) and after (new) the change; either may be absent.
 *
 *     target == old   write new
 *     target == new   nothing to do
 *     else            leave it: the item is a *suspect*
 *
 * Why that is right. Let v(0), v(1), ... be the states of one item in the source, where record i
 * changes v(i-1) to v(i), and let the target have v(m) when record i comes, with m >= i-1. It
 * begins so: the position is older than the item that was copied (copy_stream.c, (1)), and after a
 * crash the target is ahead of the position, never behind. Then
 *
 *     target == v(i-1)          v(i) is written; m is i
 *     target == v(i)            m is at least i
 *     neither                   m > i, as m is neither i-1 nor i: it is left, and m stays
 *
 * so m >= i holds when the next record comes. Equal states of different times (A, B, A) only mean
 * that m may be chosen in several ways; each is right. After the last record m is that one.
 *
 * So a suspect is either ahead of its record, and a later record meets it, or it was written by
 * somebody else, and none does. When all changes were applied, suspects that are left are read once
 * more from both databases: what differs is a conflict, and is reported. Keys of suspects are stored
 * before a position behind their records is. Should the source write the item so that a later record meets it, it is none any more.
 *
 *  (1) The write is conditional on the attributes of the old item. An expression cannot say "and no other
 *      attributes", so the write returns what it replaced: if that was not the old item, it is put
 *      back, on the condition that it is still ours, and the item is a suspect.
 *  (2) The old item may have more attributes than a condition has room for; then the condition has as
 *      many as fit, and (1) does the rest.
 *  (3) An answer that was lost is no question: the record comes again, and meets "target == new".
 *  (4) Suspects are kept by key, for the whole table: a key's later records may be in another shard.
 *  (5) The records of a page are shared out to threads by their keys, so those of one item stay in order.
 *      A suspect is used by the thread of its key alone; the copy's mutex guards the lists.
 */
#include "copy/private.h"

#include "base/fnv.h"

enum {
    CONDITION_ATTRS = 100,        /* of the old item, at most */
    CONDITION_BYTES = 512 * 1024, /* of their values */
    LANES = 16,
    RECORDS_PER_LANE = 2
};

/* ---- suspects ------------------------------------------------------------------------------- */

static struct copy_suspect **suspect_slot(struct copy_table *t, uint64_t hash)
{
    return &t->suspects[hash % COPY_SUSPECT_SLOTS];
}

/* (4) The same in every run, unlike digests: it is stored. */
static uint64_t key_hash(struct hf_item key)
{
    return fnv_fold(fnv_add(FNV_BEGIN, key.ptr, key.len));
}

/* NULL: it is none. What is found is the caller's until he drops it: (5). */
static struct copy_suspect *suspect_find(struct copy_table *t, struct hf_item key)
{
    struct hf_copy *c = t->copy;
    struct copy_suspect *at = NULL;
    uint64_t hash = key_hash(key);

    pthread_mutex_lock(&c->mutex);
    if (t->suspects_len)
        for (at = *suspect_slot(t, hash); at; at = at->next)
            if (at->hash == hash && hf_item_equal(at->key, key))
                break;
    pthread_mutex_unlock(&c->mutex);
    return at;
}

static enum hf_status suspects_make(struct hf_scope *s, struct copy_table *t)
{
    if (!t->suspects)
        t->suspects =
            hf__env_zalloc(&t->copy->env, COPY_SUSPECT_SLOTS * sizeof(struct copy_suspect *));
    return t->suspects ? HF_OK : hf_scope_fail(s, HF_NOMEM, "out of memory");
}

enum hf_status hf__copy_suspect_add(struct hf_scope *s, struct copy_table *t, struct hf_item key,
                                    struct hf_item theirs, bool stored)
{
    struct hf_copy *c = t->copy;
    struct copy_suspect *suspect = hf__env_zalloc(&c->env, sizeof(*suspect));
    enum hf_status status = suspect ? hf__copy_item_set(s, c, &suspect->key, key)
                                    : hf_scope_fail(s, HF_NOMEM, "out of memory");

    if (status != HF_OK) {
        hf__env_free(&c->env, suspect, sizeof(*suspect));
        return status;
    }
    suspect->hash = key_hash(key);
    suspect->image = hf__copy_digest(s, c, theirs);
    suspect->stored = stored;
    assert(key.ptr && !suspect_find(t, key)); /* (4) */
    pthread_mutex_lock(&c->mutex);
    status = suspects_make(s, t);
    if (status == HF_OK) {
        suspect->next = *suspect_slot(t, suspect->hash);
        *suspect_slot(t, suspect->hash) = suspect;
        t->suspects_len++;
        t->unstored += !stored;
    }
    pthread_mutex_unlock(&c->mutex);
    if (status != HF_OK) {
        (void)!hf__copy_item_set(NULL, c, &suspect->key, (struct hf_item){0});
        hf__env_free(&c->env, suspect, sizeof(*suspect));
    }
    return status;
}

static void suspect_drop(struct copy_table *t, struct copy_suspect *suspect)
{
    struct hf_copy *c = t->copy;
    struct copy_suspect **at;

    pthread_mutex_lock(&c->mutex);
    for (at = suspect_slot(t, suspect->hash); *at != suspect; at = &(*at)->next)
        assert(*at && "a suspect is in the list until it is dropped");
    *at = suspect->next;
    assert(t->suspects_len > 0 && (!suspect->reported || t->conflicts > 0));
    assert(suspect->stored || t->unstored > 0);
    t->conflicts -= suspect->reported;
    t->unstored -= !suspect->stored;
    t->suspects_len--;
    assert(t->unstored <= t->suspects_len);
    pthread_mutex_unlock(&c->mutex);
    (void)!hf__copy_item_set(NULL, c, &suspect->key, (struct hf_item){0});
    hf__env_free(&c->env, suspect, sizeof(*suspect));
}

void hf__copy_suspects_free(struct copy_table *t)
{
    if (!t->suspects)
        return;
    for (size_t i = 0; i < COPY_SUSPECT_SLOTS; i++)
        while (t->suspects[i])
            suspect_drop(t, t->suspects[i]);
    assert(!t->suspects_len && !t->unstored);
    hf__env_free(&t->copy->env, t->suspects, COPY_SUSPECT_SLOTS * sizeof(struct copy_suspect *));
    t->suspects = NULL;
}

/* It is none: what is stored of it goes, too. */
static enum hf_status suspect_clear(struct hf_scope *s, struct copy_table *t,
                                    struct copy_suspect *suspect)
{
    if (suspect->stored) {
        TRY(hf__copy_conflict_save(s, t, suspect, false));
        pthread_mutex_lock(&t->copy->mutex);
        t->unstored++;
        pthread_mutex_unlock(&t->copy->mutex);
    }
    suspect_drop(t, suspect);
    return HF_OK;
}

static enum hf_status suspect_store(struct hf_scope *s, struct copy_table *t,
                                    struct copy_suspect *suspect)
{
    if (suspect->stored)
        return HF_OK;
    TRY(hf__copy_conflict_save(s, t, suspect, true));
    assert(t->unstored > 0 && suspect->stored);
    t->unstored--;
    return HF_OK;
}

enum hf_status hf__copy_suspects_store(struct hf_scope *s, struct copy_table *t)
{
    for (size_t i = 0; t->unstored && i < COPY_SUSPECT_SLOTS; i++)
        for (struct copy_suspect *suspect = t->suspects[i]; suspect; suspect = suspect->next)
            TRY(suspect_store(s, t, suspect));
    return HF_OK;
}

/* ---- a write -------------------------------------------------------------------------------- */

struct change {
    struct copy_table *table;
    struct hf_item key, old, new;
    bool
        scalars; /* the condition compares only scalar attributes: not every database compares others */
};

struct expression {
    struct hf_scope *s;
    struct hf_attr names[CONDITION_ATTRS + 1], values[CONDITION_ATTRS];
    size_t names_len, values_len, bytes;
    struct hf_str text;
};

static bool is_scalar(struct hf_value value)
{
    enum hf_type type = hf_value_type(value);

    return type == HF_TYPE_S || type == HF_TYPE_N || type == HF_TYPE_B || type == HF_TYPE_BOOL ||
           type == HF_TYPE_NULL;
}

static void expression_add(struct expression *e, struct hf_item_walk *attr)
{
    struct hf_str name = hf_scope_format(e->s, "#a%zu", e->names_len);
    struct hf_str value = hf_scope_format(e->s, ":a%zu", e->values_len);

    e->names[e->names_len++] = hf_attr_of_str(name, attr->name);
    e->values[e->values_len++] = hf_attr_of_value(value, attr->value);
    e->bytes += attr->name.len + attr->value.len;
    e->text =
        hf_scope_format(e->s, "%.*s AND %.*s = %.*s", HF_FMT(e->text), HF_FMT(name), HF_FMT(value));
}

/* (1) (2): it is as it was. */
static void condition_make(struct expression *e, const struct change *change)
{
    const struct copy_table *t = change->table;
    struct hf_item_walk attr = {.next = 0};

    e->names[e->names_len++] = hf_attr_of_str(HF_STR("#key"), t->hash);
    if (!change->old.ptr) {
        e->text = HF_STR("attribute_not_exists(#key)");
        return;
    }
    e->text = HF_STR("attribute_exists(#key)");
    while (e->values_len < CONDITION_ATTRS && hf_item_next(change->old, &attr))
        if (!hf_str_equal(attr.name, t->hash) && !hf_str_equal(attr.name, t->range) &&
            e->bytes + attr.value.len <= CONDITION_BYTES &&
            (!change->scalars || is_scalar(attr.value)))
            expression_add(e, &attr);
}

/* As hf__pattern_write(): *item is what was replaced, or what is there. */
static enum hf_status change_send(struct hf_scope *s, const struct change *change,
                                  struct hf_item *item)
{
    struct copy_table *t = change->table;
    struct expression e = {.s = s};
    struct hf_put_item put = {.table = t->target, .item = change->new};
    struct hf_delete_item del = {.table = t->target, .key = change->key};
    struct hf_transact_write write = {.put = NULL};

    condition_make(&e, change);
    put.condition = del.condition = e.text;
    put.names = del.names = hf_item_make(s, e.names, e.names_len);
    if (e.values_len)
        put.values = del.values = hf_item_make(s, e.values, e.values_len);
    put.returns = del.returns = HF_RETURN_ALL_OLD;
    if (change->new.ptr)
        write.put = &put;
    else
        write.del = &del;
    TRY(hf_scope_built(s));
    return hf__pattern_write(s, t->copy->target, &write, change->key, item);
}

/* (1) Their item comes back, unless somebody has written it since. */
static enum hf_status change_undo(struct hf_scope *s, const struct change *change,
                                  struct hf_item theirs)
{
    struct change back = {.table = change->table,
                          .key = change->key,
                          .old = change->new,
                          .new = theirs,
                          .scalars = change->scalars};
    struct hf_item there;
    enum hf_status status = change_send(s, &back, &there);

    return status == HF_CONDITION ? hf_scope_ok(s) : status;
}

/* *suspect: the item is neither; *theirs is what it is. */
static enum hf_status change_write(struct hf_scope *s, struct change *change, bool *suspect,
                                   struct hf_item *theirs)
{
    enum hf_status status = change_send(s, change, theirs);

    *suspect = false;
    if (status == HF_CONDITION) {
        bool same =
            change->new.ptr ? theirs->ptr &&hf_item_equal(*theirs, change->new) : !theirs->ptr;

        hf_scope_ok(s);
        if (same)
            return HF_OK;
        if (!change->scalars && change->old.ptr && theirs->ptr &&
            hf_item_equal(*theirs, change->old)) {
            change->scalars = true; /* it is as it was, but the database cannot tell */
            return change_write(s, change, suspect, theirs);
        }
        *suspect = true;
        return HF_OK;
    }
    TRY(status);
    if (change->old.ptr && theirs->ptr && !hf_item_equal(*theirs, change->old) &&
        !(change->new.ptr &&hf_item_equal(*theirs, change->new))) {
        *suspect = true;
        return change_undo(s, change, *theirs);
    }
    return HF_OK;
}

/* ---- a record ------------------------------------------------------------------------------- */

static enum hf_status record_check(struct hf_scope *s, const struct copy_table *t,
                                   const struct hf_record *record)
{
    if (record->change && record->change->keys.ptr &&
        (record->event == HF_CHANGE_REMOVE || record->change->new_image.ptr) &&
        (record->event == HF_CHANGE_INSERT || record->change->old_image.ptr))
        return HF_OK;
    return hf_scope_fail(s, HF_CORRUPT, "a record of the stream of table %.*s lacks an image",
                         HF_FMT(t->source));
}

static enum hf_status record_apply(struct hf_scope *s, struct copy_table *t,
                                   const struct hf_record *record)
{
    struct change change = {.table = t,
                            .key = record->change->keys,
                            .old = record->change->old_image,
                            .new = record->change->new_image};
    struct copy_suspect *known = suspect_find(t, change.key);
    struct hf_item theirs;
    bool suspect;

    assert(change.key.ptr && (change.old.ptr || change.new.ptr)); /* record_check() */
    if (known) {
        if (known->image == hf__copy_digest(s, t->copy, change.new))
            return suspect_clear(s, t, known);
        if (known->image != hf__copy_digest(s, t->copy, change.old))
            return HF_OK;
        TRY(suspect_clear(s, t, known));
    }
    TRY(change_write(s, &change, &suspect, &theirs));
    return suspect ? hf__copy_suspect_add(s, t, change.key, theirs, false) : HF_OK;
}

/* ---- a page --------------------------------------------------------------------------------- */

/* (5) One of several threads, or the caller's alone. */
struct lane {
    struct copy_table *table;
    const struct hf_record *records;
    size_t len;
    size_t number, of;
    const struct hf_scope *outer;
    struct hf_scope *s;
    double units;
    enum hf_status status;
    pthread_t thread;
    bool started;
};

static enum hf_status lane_apply(struct lane *lane)
{
    struct hf_scope *s = lane->s;

    assert(lane->number < lane->of && lane->of <= LANES);
    hf__scope_follow(s, lane->outer);
    hf_scope_count_capacity(s, true);
    hf_scope_sync_later(s, true);
    for (size_t i = 0; i < lane->len; i++) {
        const struct hf_record *record = &lane->records[i];
        struct hf_scope_mark mark = hf_scope_mark(s);

        if (key_hash(record->change->keys) % lane->of != lane->number)
            continue;
        TRY(record_apply(s, lane->table, record));
        hf_scope_rewind(s, mark);
    }
    TRY(hf_db_sync(s, lane->table->copy->target));
    lane->units = hf_scope_capacity(s).write_units;
    return HF_OK;
}

static void *lane_run(void *user)
{
    struct lane *lane = user;

    lane->status = lane->s ? lane_apply(lane) : HF_NOMEM;
    return NULL;
}

static size_t lanes_for(const struct copy_table *t, size_t len)
{
    size_t lanes = len / RECORDS_PER_LANE + 1;

    return t->copy->o.segments == 1 ? 1 : lanes < LANES ? lanes : LANES;
}

enum hf_status hf__copy_apply(struct hf_scope *s, struct copy_table *t,
                              const struct hf_record *records, size_t len, double *units)
{
    struct lane lanes[LANES];
    size_t lanes_len = lanes_for(t, len);
    enum hf_status status = HF_OK;

    assert(lanes_len >= 1 && lanes_len <= LANES);
    *units = 0;
    for (size_t i = 0; i < len; i++)
        TRY(record_check(s, t, &records[i]));
    for (size_t i = 0; i < lanes_len; i++) {
        struct lane *lane = &lanes[i];

        *lane = (struct lane){.table = t,
                              .records = records,
                              .len = len,
                              .number = i,
                              .of = lanes_len,
                              .outer = s,
                              .s = hf_scope_new(&t->copy->env)};
        lane->started =
            i + 1 < lanes_len && pthread_create(&lane->thread, NULL, lane_run, lane) == 0;
        if (!lane->started)
            lane_run(lane);
    }
    for (size_t i = 0; i < lanes_len; i++) {
        struct lane *lane = &lanes[i];

        if (lane->started)
            pthread_join(lane->thread, NULL);
        *units += lane->units;
        if (lane->status != HF_OK && status == HF_OK)
            status = lane->s ? hf_scope_fail_from(s, lane->status, lane->s)
                             : hf_scope_fail(s, HF_NOMEM, "out of memory");
        hf_scope_free(lane->s);
    }
    return status;
}

/* ---- what is left --------------------------------------------------------------------------- */

static enum hf_status suspect_judge(struct hf_scope *s, struct copy_table *t,
                                    struct copy_suspect *suspect)
{
    struct hf_copy *c = t->copy;
    struct hf_item source, target;

    if (suspect->reported)
        return HF_OK;
    TRY(hf__pattern_read(s, c->source, t->source, suspect->key, &source));
    TRY(hf__pattern_read(s, c->target, t->target, suspect->key, &target));
    if (source.ptr && target.ptr ? hf_item_equal(source, target) : !source.ptr && !target.ptr)
        return suspect_clear(s, t, suspect);
    suspect->image = hf__copy_digest(s, c, target);
    suspect->reported = true;
    t->conflicts++;
    if (c->o.on_conflict)
        c->o.on_conflict(t->source, suspect->key, target, c->o.user);
    return suspect_store(s, t, suspect);
}

enum hf_status hf__copy_suspects_settle(struct hf_scope *s, struct copy_table *t)
{
    if (!t->suspects_len)
        return HF_OK;
    for (size_t i = 0; i < COPY_SUSPECT_SLOTS; i++)
        for (struct copy_suspect *suspect = t->suspects[i], *next; suspect; suspect = next) {
            struct hf_scope_mark mark = hf_scope_mark(s);

            next = suspect->next;
            TRY(suspect_judge(s, t, suspect));
            hf_scope_rewind(s, mark);
        }
    return HF_OK;
}
