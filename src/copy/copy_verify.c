/*
 * copy/copy_verify.c: is the target as the source?
 *
 * Two databases have their items in different orders, so ranges are by a hash of the key of our own:
 * each item belongs to one of many ranges, and each range has a digest, the sum of its items' (copy_digest.c)
 * and their number. Sums do not depend on the order.
 *
 *     1  read all of both: the digests of all ranges
 *     2  read both again: the items of ranges that differ, as many as fit into memory at once
 *     3  read each item that differs once more from both, consistently
 *
 *  (1) Equal digests of a range mean equal items, but for one case in 2^64.
 *  (2) What is written while we read makes ranges differ that are none: 3 finds out. When changes are being
 *      applied, those that are due are applied before 3, and an item that still differs is looked at
 *      again, a few times. If the source has changed it each time, it is counted as moving.
 *  (3) Only what differs in 3 is reported: each item once, with both of its states.
 *  (4) Memory is bounded: ranges are taken in parts, each for one more reading of both.
 */
#include "copy/private.h"

#include <string.h>

enum { RANGES_MIN = 1 << 10, RANGES_MAX = 1 << 20, ITEMS_PER_RANGE = 64, PART_ITEMS = 500000 };
enum { LOOKS = 6 };

struct range {
    uint64_t sum;
    uint64_t count;
};

/* One item of a range that differs. */
struct found {
    struct hf_item key;
    uint64_t hash; /* of the key */
    uint64_t digest;
};

struct side {
    struct hf_db *db;
    struct hf_str table;
    struct range *ranges;
    uint64_t items;
    struct found *found;
    size_t found_len, found_cap;
};

struct verify {
    struct copy_table *table;
    struct side source, target;
    size_t ranges_len;
    uint8_t *wanted; /* of 2: a range is looked into now */
    struct hf_scope *memory;
    hf_copy_difference_fn *difference;
    void *user;
    struct hf_copy_result *result;
};

/* ---- reading all of a table ----------------------------------------------------------------- */

typedef enum hf_status item_fn(struct hf_scope *s, struct verify *v, struct side *side,
                               struct hf_item item);

struct reader {
    struct verify *verify;
    struct side *side;
    item_fn *each;
    uint32_t segment;
    const struct hf_scope *outer;
    struct hf_scope *s;
    struct hf_scope *start;
    enum hf_status status;
    pthread_t thread;
    bool started;
};

static enum hf_status page_each(struct reader *r, const struct hf_scan_result *page)
{
    struct hf_copy *c = r->verify->table->copy;

    for (size_t i = 0; i < page->items_len; i++)
        TRY(r->each(r->s, r->verify, r->side, page->items[i]));
    pthread_mutex_lock(&c->mutex);
    r->side->items += page->items_len;
    c->progress.compared += page->items_len;
    pthread_mutex_unlock(&c->mutex);
    return HF_OK;
}

static enum hf_status pages_read(struct reader *r)
{
    struct hf_copy *c = r->verify->table->copy;
    uint32_t segments = c->o.segments, wait_ms;
    struct hf_scan request = {.table = r->side->table,
                              .consistent = c->o.eventual ? HF_UNSET : HF_YES,
                              .segment = r->segment ? r->segment : HF_ZERO,
                              .total_segments = segments};
    struct hf_scan_result page;
    struct hf_scope_capacity used;

    if (segments == 1)
        request.segment = request.total_segments = 0;
    do {
        hf_scope_reset(r->s);
        hf__scope_follow(r->s, r->outer);
        hf_scope_count_capacity(r->s, true);
        TRY(hf_scan(r->s, r->side->db, &request, &page));
        used = hf_scope_capacity(r->s);
        TRY(page_each(r, &page));
        hf_scope_reset(r->start);
        request.start = hf_item_copy(r->start, page.last);
        wait_ms = hf__copy_spend(c, page.items_len, used.read_units, 0);
        if (wait_ms)
            TRY(hf_scope_sleep_ms(r->s, wait_ms));
    } while (page.last.ptr);
    return HF_OK;
}

static void *reader_run(void *user)
{
    struct reader *r = user;

    r->status = r->s && r->start ? pages_read(r) : HF_NOMEM;
    return NULL;
}

static enum hf_status side_read(struct hf_scope *s, struct verify *v, struct side *side,
                                item_fn *each)
{
    struct hf_copy *c = v->table->copy;
    struct reader *readers = hf__scope_array(s, c->o.segments, sizeof(*readers));
    enum hf_status status = HF_OK;

    if (!readers)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    side->items = 0;
    for (uint32_t i = 0; i < c->o.segments; i++) {
        struct reader *r = &readers[i];

        *r = (struct reader){.verify = v,
                             .side = side,
                             .each = each,
                             .segment = i,
                             .outer = s,
                             .s = hf_scope_new(&c->env),
                             .start = hf_scope_new(&c->env)};
        r->started = c->o.segments > 1 && pthread_create(&r->thread, NULL, reader_run, r) == 0;
        if (!r->started)
            reader_run(r);
    }
    for (uint32_t i = 0; i < c->o.segments; i++) {
        struct reader *r = &readers[i];

        if (r->started)
            pthread_join(r->thread, NULL);
        if (r->status != HF_OK && status == HF_OK)
            status = r->s ? hf_scope_fail_from(s, r->status, r->s)
                          : hf_scope_fail(s, HF_NOMEM, "out of memory");
        hf_scope_free(r->start);
        hf_scope_free(r->s);
    }
    return status;
}

/* ---- 1: digests ----------------------------------------------------------------------------- */

static uint64_t key_hash(struct hf_scope *s, const struct verify *v, struct hf_item item,
                         struct hf_item *key)
{
    *key = hf__copy_key(s, v->table, item);
    return hf__copy_digest(s, v->table->copy, *key);
}

static enum hf_status range_add(struct hf_scope *s, struct verify *v, struct side *side,
                                struct hf_item item)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_item key;
    struct range *range = &side->ranges[key_hash(s, v, item, &key) & (v->ranges_len - 1)];

    __atomic_fetch_add(&range->sum, hf__copy_digest(s, v->table->copy, item), __ATOMIC_RELAXED);
    __atomic_fetch_add(&range->count, 1, __ATOMIC_RELAXED);
    hf_scope_rewind(s, mark);
    return hf_scope_built(s);
}

static bool range_differs(const struct verify *v, size_t i)
{
    return v->source.ranges[i].sum != v->target.ranges[i].sum ||
           v->source.ranges[i].count != v->target.ranges[i].count;
}

/* ---- 2: items of ranges that differ --------------------------------------------------------- */

static enum hf_status found_add(struct hf_scope *s, struct verify *v, struct side *side,
                                struct hf_item item)
{
    struct hf_copy *c = v->table->copy;
    struct hf_item key;
    uint64_t hash = key_hash(s, v, item, &key);
    enum hf_status status;

    if (!v->wanted[hash & (v->ranges_len - 1)])
        return HF_OK;
    pthread_mutex_lock(&c->mutex);
    status = hf__pattern_grow(v->memory, (void **)&side->found, side->found_len, &side->found_cap,
                              sizeof(*side->found));
    if (status == HF_OK) {
        struct found *found = &side->found[side->found_len];

        *found = (struct found){.hash = hash, .digest = hf__copy_digest(s, c, item)};
        found->key = hf_item_copy(v->memory, key);
        if (found->key.ptr)
            side->found_len++;
        else
            status = HF_NOMEM;
    }
    pthread_mutex_unlock(&c->mutex);
    return status == HF_OK ? HF_OK : hf_scope_fail(s, HF_NOMEM, "out of memory");
}

static int found_compare(const void *a, const void *b)
{
    const struct found *one = a, *other = b;

    return one->hash < other->hash ? -1 : one->hash > other->hash;
}

/* ---- 3: each item --------------------------------------------------------------------------- */

static bool items_equal(struct hf_item one, struct hf_item other)
{
    return one.ptr && other.ptr ? hf_item_equal(one, other) : !one.ptr && !other.ptr;
}

/* (2) *moving: the source had another item at each look. */
static enum hf_status item_look(struct hf_scope *s, struct verify *v, struct hf_copy_difference *is,
                                bool *equal, bool *moving)
{
    struct hf_copy *c = v->table->copy;
    bool follows = v->table->following && v->table->state == HF_COPY_FOLLOWING;
    uint64_t last = 0, digest;

    *moving = false;
    for (int i = 0; i < LOOKS; i++) {
        TRY(hf__pattern_read(s, c->source, v->source.table, is->key, &is->source));
        TRY(hf__pattern_read(s, c->target, v->target.table, is->key, &is->target));
        *equal = items_equal(is->source, is->target);
        digest = hf__copy_digest(s, c, is->source);
        *moving = i > 0 && digest != last;
        last = digest;
        if (*equal || !follows || (i > 1 && !*moving))
            break;
        TRY(v->table->claimed
                ? hf__copy_catch_up(s, c, false) /* else another process applies them */
                : hf_scope_sleep_ms(s, 2 * c->o.poll_ms));
    }
    return HF_OK;
}

static enum hf_status difference_note(struct hf_scope *s, struct verify *v, struct hf_item key)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_copy_difference is = {.table = v->table->source, .key = key};
    struct hf_copy_result *result = v->result;
    bool equal, moving;

    TRY(item_look(s, v, &is, &equal, &moving));
    if (equal) {
        hf_scope_rewind(s, mark);
        return HF_OK;
    }
    if (moving) {
        result->moving++;
        return HF_OK;
    }
    is.kind = !is.target.ptr ? HF_COPY_MISSING : !is.source.ptr ? HF_COPY_EXTRA : HF_COPY_DIFFERENT;
    result->missing += is.kind == HF_COPY_MISSING;
    result->extra += is.kind == HF_COPY_EXTRA;
    result->different += is.kind == HF_COPY_DIFFERENT;
    if (v->difference)
        TRY(v->difference(s, &is, v->user));
    hf_scope_rewind(s, mark);
    return HF_OK;
}

/* (3) Both lists are sorted; each item that is not the same in both. */
static enum hf_status found_match(struct hf_scope *s, struct verify *v)
{
    const struct side *a = &v->source, *b = &v->target;
    size_t i = 0, j = 0;

    if (a->found_len)
        qsort(a->found, a->found_len, sizeof(*a->found), found_compare);
    if (b->found_len)
        qsort(b->found, b->found_len, sizeof(*b->found), found_compare);
    while (i < a->found_len || j < b->found_len) {
        const struct found *one = i < a->found_len ? &a->found[i] : NULL;
        const struct found *other = j < b->found_len ? &b->found[j] : NULL;

        if (one && (!other || one->hash < other->hash)) {
            TRY(difference_note(s, v, one->key));
            i++;
        } else if (other && (!one || other->hash < one->hash)) {
            TRY(difference_note(s, v, other->key));
            j++;
        } else {
            assert(one && other);
            if (one->digest != other->digest)
                TRY(difference_note(s, v, one->key));
            i++;
            j++;
        }
    }
    return HF_OK;
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* (4) Mark ranges from `from` on, until there are enough. Returns where to go on. */
static size_t part_mark(struct verify *v, size_t from, bool *any)
{
    uint64_t items = 0;
    size_t i;

    memset(v->wanted, 0, v->ranges_len);
    *any = false;
    for (i = from; i < v->ranges_len && items < PART_ITEMS; i++)
        if (range_differs(v, i)) {
            v->wanted[i] = 1;
            *any = true;
            items += v->source.ranges[i].count + v->target.ranges[i].count;
        }
    return i;
}

static enum hf_status part_verify(struct hf_scope *s, struct verify *v)
{
    enum hf_status status;
    uint64_t source_items = v->source.items, target_items = v->target.items;

    hf_scope_reset(v->memory);
    v->source.found = v->target.found = NULL;
    v->source.found_len = v->target.found_len = v->source.found_cap = v->target.found_cap = 0;
    status = side_read(s, v, &v->source, found_add);
    if (status == HF_OK)
        status = side_read(s, v, &v->target, found_add);
    v->source.items = source_items;
    v->target.items = target_items;
    return status == HF_OK ? found_match(s, v) : status;
}

static enum hf_status table_verify(struct hf_scope *s, struct verify *v)
{
    bool any = true;

    TRY(side_read(s, v, &v->source, range_add));
    TRY(side_read(s, v, &v->target, range_add));
    v->result->source_items += v->source.items;
    v->result->target_items += v->target.items;
    for (size_t from = 0; from < v->ranges_len;) {
        from = part_mark(v, from, &any);
        if (any)
            TRY(part_verify(s, v));
    }
    return HF_OK;
}

static size_t ranges_for(const struct copy_table *t)
{
    size_t len = RANGES_MIN;

    while (len < RANGES_MAX && len * ITEMS_PER_RANGE < t->items_total)
        len *= 2;
    return len;
}

static enum hf_status verify_run(struct hf_scope *s, struct copy_table *t, struct verify *v)
{
    const struct hf_env *env = &t->copy->env;
    size_t len = ranges_for(t);
    enum hf_status status;

    v->ranges_len = len;
    v->table = t;
    v->source.db = t->copy->source;
    v->source.table = t->source;
    v->target.db = t->copy->target;
    v->target.table = t->target;
    v->source.ranges = hf__env_zalloc(env, len * sizeof(struct range));
    v->target.ranges = hf__env_zalloc(env, len * sizeof(struct range));
    v->wanted = hf__env_zalloc(env, len);
    v->memory = hf_scope_new(env);
    status = v->source.ranges && v->target.ranges && v->wanted && v->memory
                 ? table_verify(s, v)
                 : hf_scope_fail(s, HF_NOMEM, "out of memory");
    hf_scope_free(v->memory);
    hf__env_free(env, v->wanted, len);
    hf__env_free(env, v->target.ranges, len * sizeof(struct range));
    hf__env_free(env, v->source.ranges, len * sizeof(struct range));
    return status;
}

static enum hf_status definitions_compare(struct hf_scope *s, struct copy_table *t)
{
    TRY(hf__copy_table_compare(s, t));
    if (t->make)
        return hf_scope_fail(s, HF_INVALID, "table %.*s is not in the target", HF_FMT(t->target));
    return HF_OK;
}

static void comparing_show(struct hf_copy *c, bool comparing)
{
    pthread_mutex_lock(&c->mutex);
    c->progress.comparing = comparing;
    c->progress.compared = 0;
    pthread_mutex_unlock(&c->mutex);
}

enum hf_status hf__copy_verify(struct hf_scope *s, struct hf_copy *c,
                               hf_copy_difference_fn *difference, void *user,
                               struct hf_copy_result *result)
{
    enum hf_status status = HF_OK;

    *result = (struct hf_copy_result){.tables = 0};
    comparing_show(c, true);
    for (size_t i = 0; status == HF_OK && i < c->tables_len; i++) {
        struct verify v = {.difference = difference, .user = user, .result = result};

        status = definitions_compare(s, &c->tables[i]);
        if (status == HF_OK)
            status = verify_run(s, &c->tables[i], &v);
        result->tables++;
        result->conflicts += c->tables[i].conflicts;
    }
    comparing_show(c, false);
    result->changes = c->progress.changes;
    return status;
}

enum hf_status hf_copy_verify(struct hf_scope *s, struct hf_copy *copy,
                              hf_copy_difference_fn *difference, void *user,
                              struct hf_copy_result *result)
{
    struct hf_copy_result own;

    call_begins(s);
    return call_ends(s, hf__copy_verify(s, copy, difference, user, result ? result : &own));
}
