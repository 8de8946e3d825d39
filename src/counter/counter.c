/*
 * counter/counter.c: numbers that many add to, each add counted once.
 *
 * What makes a counter hard is the answer that gets lost: to add again may count twice, not to add
 * may count never. So every add is made under a mark in the counter's item (counter_item.c). The
 * item has, for each mark, the revision of the last add under it, and an add is conditional on that
 * being the one its writer knows. Sent again, it is refused once it was done, and the item that
 * comes back with the refusal shows the mark with another revision, and what came out.
 *
 * A mark belongs to one writer and has one add under way at a time (counter_mark.c). So there are
 * as many marks as there were adds at the same moment, not as many as adds; but processes end and
 * leave theirs behind. When there are twice as many as are to be kept those that were used longest
 * ago are dropped, and the item notes the revision at which that happened.
 *
 * What always holds:
 *
 *  (1) An add is done once at most. Under a mark that the item has, since its revision changes.
 *      Under a new mark, since a write makes it only if it is not there and no marks were dropped
 *      since the writer looked: whatever comes late or twice finds the mark, or finds that marks
 *      were dropped. Both hold without any clock.
 *  (2) What is not known to be done or not done is reported as such. That is so when all tries
 *      fail, and when the item has forgotten our mark at the moment we need it (HF_EXPIRED).
 *  (3) A request id is a mark that the caller names, and that is used for one add.
 *  (4) Dropping marks is never needed for an add, so its failures do not matter.
 *
 * An add under a mark that is known is one write. The first one of a writer is one as well, as it
 * guesses that no marks were dropped, unless the refusal teaches it otherwise.
 *
 * Deleting the item deletes the marks: an add that is under way then may find an empty place, and
 * be done for the second time. The header says so; hf_counter_reset() avoids it.
 */
#include "counter/counter.h"

#include <holdfast/table.h>

/* ---- the table ------------------------------------------------------------------------------ */

static enum hf_status table_ensure(struct hf_scope *s, const struct hf_counters *c,
                                   const struct hf_counters_options *o)
{
    const struct hf_attribute_definition attributes[] = {{c->hash, HF_SCALAR_S},
                                                         {c->sort, HF_SCALAR_S}};
    const struct hf_key_element keys[] = {{c->hash, HF_KEY_HASH}, {c->sort, HF_KEY_RANGE}};
    size_t len = c->partitioned ? 2 : 1;
    struct hf_create_table spec = {.table = c->table,
                                   .attributes = attributes,
                                   .attributes_len = len,
                                   .key_schema = keys,
                                   .key_schema_len = len};
    struct hf_table_options *ensure = HF_OPTIONS(hf_table_options, .no_create = o->no_create);

    TRY(hf__kind_keys(s, c->db, spec.table, KIND_COUNTERS,
                      hf_table_ensure(s, c->db, &spec, ensure)));
    return hf__kind_open(s, &(struct kind_table){.db = c->db,
                                                 .spec = &spec,
                                                 .kind = KIND_COUNTERS,
                                                 .adopt = o->adopt});
}

void hf_counters_close(struct hf_counters *c)
{
    struct hf_env env;

    if (!c)
        return;
    env = c->env;
    hf__counter_marks_free(&c->marks);
    hf_scope_free(c->names);
    hf__env_free(&env, c, sizeof(*c));
}

static struct hf_counters *counters_new(struct hf_scope *s, struct hf_db *db,
                                        const struct hf_counters_options *o)
{
    struct hf_counters *c = hf__env_zalloc(hf_scope_env(s), sizeof(*c));
    struct hf_str table = o->partitioned ? HF_STR("partitioned_keys") : HF_STR("keys");
    struct hf_str hash = o->partitioned ? HF_STR("partition") : HF_STR("key");
    struct hf_str space = o->partitioned ? HF_STR("") : HF_STR("global");

    if (!c)
        return NULL;
    c->env = *hf_scope_env(s);
    c->db = db;
    c->partitioned = o->partitioned;
    c->plain = o->plain;
    c->writers = o->writers ? o->writers : WRITERS_DEFAULT;
    c->requests = o->requests ? o->requests : REQUESTS_DEFAULT;
    c->shards = o->shards ? o->shards : 1;
    hf__counter_marks_init(&c->marks, &c->env);
    c->names = hf_scope_new(&c->env);
    if (c->names) {
        c->table = hf_scope_copy(c->names, o->table.len ? o->table : table);
        c->space = hf_scope_copy(c->names, o->space.ptr ? o->space : space);
        c->hash = hf_scope_copy(c->names, o->hash_attribute.len ? o->hash_attribute : hash);
        c->sort =
            hf_scope_copy(c->names, o->sort_attribute.len ? o->sort_attribute : HF_STR("sort"));
    }
    if (!c->names || hf_scope_built(c->names) != HF_OK) {
        hf_counters_close(c);
        return NULL;
    }
    return c;
}

static enum hf_status check_options(struct hf_scope *s, const struct hf_counters_options *o)
{
    if (o->writers > HF_COUNTER_WRITERS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_COUNTER_WRITERS_MAX, o->writers),
                                   "a counter has marks of %d writers at most",
                                   HF_COUNTER_WRITERS_MAX);
    if (o->requests > HF_COUNTER_REQUESTS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_COUNTER_REQUESTS_MAX, o->requests),
                                   "a counter remembers %d requests at most",
                                   HF_COUNTER_REQUESTS_MAX);
    if (o->shards > HF_COUNTER_SHARDS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_COUNTER_SHARDS_MAX, o->shards),
                                   "a counter has %d shards at most", HF_COUNTER_SHARDS_MAX);
    if (o->shards > 1 && o->partitioned)
        return hf_scope_fail(
            s, HF_INVALID,
            "a partition is stored in one place: shards and partitioned exclude each other");
    return HF_OK;
}

/* The keys' attributes are none of those that a counter's item has besides. */
static enum hf_status check_names(struct hf_scope *s, const struct hf_counters *c)
{
    const struct hf_str names[] = {c->hash, c->sort};

    for (size_t i = 0; i < (c->partitioned ? 2u : 1u); i++)
        if (hf__counter_has(names[i]) || (i && hf_str_equal(names[0], names[1])))
            return hf_scope_fail(s, HF_INVALID,
                                 "table %.*s: a counter has another attribute that is called "
                                 "\"%.*s\"",
                                 HF_FMT(c->table), HF_FMT(names[i]));
    return HF_OK;
}

enum hf_status hf_counters_open(struct hf_scope *s, struct hf_db *db,
                                const struct hf_counters_options *options,
                                struct hf_counters **counters)
{
    struct hf_counters_options o;
    struct hf_counters *c;
    enum hf_status status;

    *counters = NULL;
    OPTIONS_COPY(&o, options);
    if (!db)
        return hf_scope_fail(s, HF_INVALID, "hf_counters_open() was called without a database");
    TRY(check_options(s, &o));
    c = counters_new(s, db, &o);
    if (!c)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a table of counters");
    status = check_names(s, c);
    if (status == HF_OK)
        status = table_ensure(s, c, &o);
    if (status != HF_OK) {
        hf_counters_close(c);
        return status;
    }
    *counters = c;
    return HF_OK;
}

/* ---- one change ----------------------------------------------------------------------------- */

enum hf_status hf__counter_limit(struct hf_scope *s, const struct counter_at *at, int64_t by,
                                 int64_t value)
{
    return hf_scope_fail(s, HF_LIMIT, "%.*s is %lld: adding %lld would exceed its bounds",
                         HF_FMT(hf__counter_name(s, at)), (long long)value, (long long)by);
}

/* How a refusal is to be taken. */
enum verdict {
    ACCEPTED = 1, /* there was no refusal */
    DONE,         /* the change was made before */
    LIMIT,        /* the value is out of bounds */
    AGAIN,        /* by now it may be possible */
    NEW_MARK,     /* the item has dropped our mark, and nothing was sent that may have been done */
    FORGOTTEN     /* the item has dropped our mark: whether the change was made is not known */
};

/* A change on its way. */
struct attempt {
    struct counter_change change;
    bool doubtful; /* something that was sent may have been done, or may still be */
    enum verdict verdict;
    struct counter_seen seen;
    struct hf_item item; /* whole, unless the mark was known and it was accepted */
};

static enum verdict refusal_judge(const struct attempt *a)
{
    const struct counter_change *change = &a->change;
    const struct counter_seen *seen = &a->seen;

    assert(change->mark.id.ptr);
    if (change->known) {
        if (!seen->marked)
            return a->doubtful ? FORGOTTEN : NEW_MARK;
        if (seen->last != change->last)
            return DONE;
    } else {
        if (seen->marked)
            return DONE;
        if (seen->gone != change->gone)
            return a->doubtful ? FORGOTTEN : AGAIN;
    }
    return seen->value >= change->low && seen->value <= change->high ? AGAIN : LIMIT;
}

/* One round: send it, and see what came of it. */
static enum hf_status one_round(struct hf_scope *s, struct hf_counters *c,
                                const struct counter_at *at, struct attempt *a)
{
    struct hf_update_item update = hf__counter_change_request(s, c, at, &a->change);
    enum hf_status status;

    if (!a->change.known)
        update.returns = HF_RETURN_ALL_NEW;
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, c->db, &(struct hf_transact_write){.update = &update}, at->key,
                               &a->item);
    if (status != HF_OK)
        a->doubtful = a->doubtful || hf_scope_error(s)->may_have_happened;
    if (status != HF_OK && status != HF_CONDITION)
        return status;
    TRY(hf__counter_see(s, at, a->item, a->change.mark, &a->seen));
    a->verdict = status == HF_OK ? ACCEPTED : refusal_judge(a);
    if (a->verdict == LIMIT)
        return hf__counter_limit(s, at, a->change.by, a->seen.value);
    if (a->verdict == FORGOTTEN)
        return hf_scope_fail(s, HF_EXPIRED,
                             "%.*s has too many writers to know whether this add was counted",
                             HF_FMT(hf__counter_name(s, at)));
    return HF_OK;
}

/* Rounds until there is a verdict, under one mark. */
static enum hf_status change_rounds(struct hf_scope *s, struct hf_counters *c,
                                    const struct counter_at *at, struct attempt *a)
{
    struct hf_scope_mark memory = hf_scope_mark(s);

    assert(a->change.mark.id.ptr);
    a->change.guarded = !a->change.known;
    a->change.gone = hf__counter_mark_hint(&c->marks, at->text);
    for (int round = 1;; round++) {
        TRY(one_round(s, c, at, a));
        if (a->verdict != AGAIN)
            return HF_OK;
        if (round == ROUNDS_MAX)
            return hf_scope_fail(s, HF_THROTTLED, "%.*s has too many writers",
                                 HF_FMT(hf__counter_name(s, at)));
        hf_scope_rewind(s, memory);
        if (round > 2)
            TRY(hf_scope_sleep_ms(s, hf__backoff_jitter_ms(&c->env, round < 20 ? 10 : 100)));
        a->change.gone = a->seen.gone;
        hf__counter_mark_set_hint(&c->marks, at->text, a->seen.gone);
    }
}

/* (4) */
static void drop_some(struct hf_scope *s, struct hf_counters *c, const struct counter_at *at,
                      const struct attempt *a)
{
    struct counter_drops drops;
    struct hf_update_item update;
    struct hf_update_item_result result;

    hf__counter_drops(s, c, a->item, &drops);
    if (!drops.len)
        return;
    update = hf__counter_drop_request(s, c, at, a->seen.gone, &drops);
    if (hf_scope_built(s) == HF_OK && hf_update_item(s, c->db, &update, &result) == HF_OK) {
        struct counter_seen seen;

        if (hf__counter_see(s, at, result.attributes, (struct counter_mark){0}, &seen) == HF_OK)
            hf__counter_mark_set_hint(&c->marks, at->text, seen.gone);
    }
}

/* Under marks of ours, until there is one that the item knows or takes. */
static enum hf_status under_own_mark(struct hf_scope *s, struct hf_counters *c,
                                     const struct counter_at *at, struct attempt *a)
{
    for (;;) {
        struct mark *mark = hf__counter_mark_take(&c->marks, at->text);
        enum hf_status status;
        bool known, done;

        if (!mark)
            return hf_scope_fail(s, HF_NOMEM, "no memory for a mark in a counter");
        known = a->change.known = mark->last != 0;
        a->change.last = mark->last;
        a->change.mark.id = hf_str_of(mark->id, MARK_LEN);
        a->verdict = 0;
        status = change_rounds(s, c, at, a);
        assert((status != HF_OK || a->verdict) && "rounds end with a verdict");
        done = status == HF_OK && a->verdict != NEW_MARK;
        if (done)
            mark->last = a->seen.last;
        /* What failed without a doubt has left a mark that the item knows as it was. */
        hf__counter_mark_give(&c->marks, mark, done || (known && status != HF_OK && !a->doubtful));
        if (status != HF_OK || done)
            return status;
    }
}

/* Under no mark: one try. */
static enum hf_status under_none(struct hf_scope *s, struct hf_counters *c,
                                 const struct counter_at *at, struct attempt *a)
{
    struct hf_update_item update = hf__counter_change_request(s, c, at, &a->change);
    struct hf_update_item_result result;
    enum hf_status status;

    if (a->change.set)
        update.returns = HF_RETURN_UPDATED_OLD;
    TRY(hf_scope_built(s));
    status = hf_update_item(s, c->db, &update, &result);
    if (status != HF_OK && status != HF_CONDITION) {
        a->doubtful = hf_scope_error(s)->may_have_happened;
        return status;
    }
    a->item = status == HF_OK ? result.attributes : hf_scope_error(s)->item;
    if (status == HF_CONDITION && !a->item.ptr) /* not all databases return it with a refusal */
        TRY(hf__pattern_read(s, c->db, c->table, at->key, &a->item));
    TRY(hf__counter_see(s, at, a->item, a->change.mark, &a->seen));
    a->seen.out = a->seen.value;
    return status == HF_OK ? HF_OK : hf__counter_limit(s, at, a->change.by, a->seen.value);
}

/* The database called the update invalid, as it does when the value is not a number. HF_CORRUPT if
 * the item is not a counter's, because another program wrote it; HF_INVALID otherwise. */
static enum hf_status refusal_explain(struct hf_scope *s, struct hf_counters *c,
                                      const struct counter_at *at, struct counter_mark mark)
{
    struct hf_str message = hf_scope_copy(s, hf_scope_error(s)->message);
    struct counter_seen seen;
    struct hf_item item;

    TRY(hf__pattern_read(s, c->db, c->table, at->key, &item));
    TRY(hf__counter_see(s, at, item, mark, &seen));
    return hf_scope_fail(s, HF_INVALID, "%.*s", HF_FMT(message));
}

enum hf_status hf__counter_change(struct hf_scope *s, struct hf_counters *c,
                                  const struct counter_at *at, struct counter_change change,
                                  int64_t *out, bool *again)
{
    struct attempt a = {.change = change};
    enum hf_status status;

    *out = 0;
    *again = false;
    if (change.mark.id.ptr)
        status = change_rounds(s, c, at, &a);
    else if (c->plain)
        status = under_none(s, c, at, &a);
    else
        status = under_own_mark(s, c, at, &a);
    if (status == HF_INVALID && !a.doubtful)
        status = refusal_explain(s, c, at, a.change.mark);
    if (status != HF_OK) {
        *out = status == HF_LIMIT ? a.seen.value : 0;
        return a.doubtful ? hf_scope_doubt(s) : status; /* (2) */
    }
    *out = a.seen.out;
    *again = a.verdict == DONE && !a.doubtful;
    if (!a.change.known && !(c->plain && !change.mark.id.ptr))
        drop_some(s, c, at, &a);
    return hf_scope_ok(s);
}

/* ---- adding --------------------------------------------------------------------------------- */

/* A bound as the options have it. */
static int64_t option_bound(int64_t option, int64_t none)
{
    return option == 0 ? none : option == HF_ZERO ? 0 : option;
}

enum hf_status hf__counter_bounds(struct hf_scope *s, const struct counter_at *at, int64_t by,
                                  const struct hf_counter_options *options,
                                  struct counter_change *change)
{
    struct hf_counter_options o;
    int64_t floor, ceiling;
    bool never = false;

    OPTIONS_COPY(&o, options);
    floor = option_bound(o.floor, INT64_MIN);
    ceiling = option_bound(o.ceiling, INT64_MAX);
    if (floor > ceiling)
        return hf_scope_fail(s, HF_INVALID, "%.*s: the floor is above the ceiling",
                             HF_FMT(hf__counter_name(s, at)));
    *change = (struct counter_change){.by = by, .low = INT64_MIN, .high = INT64_MAX};
    if (by < 0)
        never = __builtin_sub_overflow(floor, by, &change->low);
    if (by > 0)
        never = __builtin_sub_overflow(ceiling, by, &change->high);
    if (never) { /* no value is so far off that this would lead inside */
        change->low = INT64_MAX;
        change->high = INT64_MIN;
    }
    return HF_OK;
}

/* What a caller asks to be added. */
struct addition {
    struct hf_counter_key key;
    struct hf_str request; /* an id: add it once; absent: each time */
    int64_t by;
    const struct hf_counter_options *options;
};

/* Where to add, and what. */
static enum hf_status add_prepare(struct hf_scope *s, struct hf_counters *c,
                                  const struct addition *a, struct counter_at *at,
                                  struct counter_change *change)
{
    const struct hf_counter_options *options = a->options;
    const struct hf_str request = a->request;

    TRY(hf__counter_at(s, c, a->key, 0, at));
    TRY(hf__counter_bounds(s, at, a->by, options, change));
    if (request.ptr && (request.len == 0 || request.len > HF_COUNTER_REQUEST_MAX))
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_COUNTER_REQUEST_MAX, request.len),
                                   "%.*s: a request id has 1 to %d bytes",
                                   HF_FMT(hf__counter_name(s, at)), HF_COUNTER_REQUEST_MAX);
    change->mark = (struct counter_mark){.id = request, .request = request.ptr != NULL};
    if (c->shards == 1)
        return HF_OK;
    if (options && (options->floor || options->ceiling))
        return hf_scope_fail(s, HF_INVALID, "%.*s has shards, and so no floor and no ceiling",
                             HF_FMT(hf__counter_name(s, at)));
    return hf__counter_spread(s, c, a->key, request, at);
}

static enum hf_status counter_add(struct hf_scope *s, struct hf_counters *c,
                                  const struct addition *a, int64_t *value, bool *again)
{
    struct hf_scope_mark memory = hf_scope_mark(s);
    struct counter_at at;
    struct counter_change change;
    enum hf_status status;
    int64_t out = 0;

    if (value)
        *value = 0;
    *again = false;
    TRY(add_prepare(s, c, a, &at, &change));
    status = hf__counter_change(s, c, &at, change, &out, again);
    if (status == HF_OK)
        hf_scope_rewind(s, memory);
    if (value && c->shards > 1 && status == HF_OK)
        return hf_counter_get(s, c, a->key, value);
    if (value)
        *value = out;
    return status;
}

enum hf_status hf_counter_add(struct hf_scope *s, struct hf_counters *c, struct hf_counter_key key,
                              int64_t by, const struct hf_counter_options *options, int64_t *value)
{
    const struct addition a = {.key = key, .by = by, .options = options};
    bool again;

    return counter_add(s, c, &a, value, &again);
}

enum hf_status hf_counter_incr(struct hf_scope *s, struct hf_counters *c, struct hf_counter_key key,
                               int64_t by, int64_t *value)
{
    return hf_counter_add(s, c, key, by, NULL, value);
}

enum hf_status hf_counter_decr(struct hf_scope *s, struct hf_counters *c, struct hf_counter_key key,
                               int64_t by, int64_t *value)
{
    if (value)
        *value = 0;
    if (by == INT64_MIN)
        return hf_scope_fail(s, HF_INVALID, "counter %.*s: %lld cannot be subtracted in 64 bits",
                             HF_FMT(key.id), (long long)by);
    return hf_counter_add(s, c, key, -by, NULL, value);
}

enum hf_status hf_counter_add_once(struct hf_scope *s, struct hf_counters *c,
                                   struct hf_counter_key key, struct hf_str request, int64_t by,
                                   const struct hf_counter_options *options, int64_t *value,
                                   bool *again)
{
    const struct addition a = {.key = key,
                               .request = request.ptr ? request : HF_STR(""),
                               .by = by,
                               .options = options};
    bool unasked;

    return counter_add(s, c, &a, value, again ? again : &unasked);
}

enum hf_status hf_counter_add_tx(struct hf_scope *s, struct hf_counters *c,
                                 struct hf_counter_key key, struct hf_str request, int64_t by,
                                 const struct hf_counter_options *options,
                                 struct hf_transact_write *action)
{
    struct hf_update_item *update = hf_scope_alloc(s, sizeof(*update));
    struct counter_drops drops = {.len = 0};
    struct counter_at at;
    struct counter_change change;
    struct hf_item item;

    call_begins(s);
    memset(action, 0, sizeof(*action));
    TRY(add_prepare(
        s, c, &(struct addition){.key = key, .request = request, .by = by, .options = options}, &at,
        &change));
    if (request.ptr) { /* nobody sees the answer, so it is before that old ids are dropped */
        TRY(hf__pattern_read(s, c->db, c->table, at.key, &item));
        hf__counter_drops(s, c, item, &drops);
        change.drops = &drops;
    }
    TRY(hf_scope_built(s));
    *update = hf__counter_change_request(s, c, &at, &change);
    action->update = update;
    return hf_scope_built(s);
}

/* ---- reading and setting -------------------------------------------------------------------- */

enum hf_status hf_counter_get(struct hf_scope *s, struct hf_counters *c, struct hf_counter_key key,
                              int64_t *value)
{
    struct hf_counter_value one;

    *value = 0;
    TRY(hf_counter_get_many(s, c, &key, 1, &one));
    *value = one.value;
    return HF_OK;
}

/* One item, if it is to be `value` from now on. */
static enum hf_status set_one(struct hf_scope *s, struct hf_counters *c, struct hf_counter_key key,
                              uint32_t shard, int64_t value, int64_t *was)
{
    struct counter_change change = {.set = true, .by = value, .low = INT64_MIN, .high = INT64_MAX};
    struct counter_at at;
    bool again;

    TRY(hf__counter_at(s, c, key, shard, &at));
    return hf__counter_change(s, c, &at, change, was, &again);
}

enum hf_status hf_counter_set(struct hf_scope *s, struct hf_counters *c, struct hf_counter_key key,
                              int64_t value, int64_t *was)
{
    struct hf_scope_mark memory = hf_scope_mark(s);
    int64_t part, sum = 0;
    struct counter_at at;
    struct counter_seen seen;
    struct hf_item item;

    if (was)
        *was = 0;
    TRY(hf__counter_at(s, c, key, 0, &at));
    TRY(hf__pattern_read(s, c->db, c->table, at.key, &item));
    TRY(hf__counter_see(s, &at, item, (struct counter_mark){0}, &seen));
    for (uint32_t shard = seen.shards; shard-- > 0;) {
        TRY(set_one(s, c, key, shard, shard ? 0 : value, &part));
        if (__builtin_add_overflow(sum, part, &sum))
            return hf_scope_fail(s, HF_LIMIT, "the sum of %.*s did not fit into 64 bits",
                                 HF_FMT(hf__counter_name(s, &at)));
    }
    if (was)
        *was = sum;
    hf_scope_rewind(s, memory);
    return HF_OK;
}

enum hf_status hf_counter_reset(struct hf_scope *s, struct hf_counters *c,
                                struct hf_counter_key key, int64_t *was)
{
    return hf_counter_set(s, c, key, 0, was);
}
