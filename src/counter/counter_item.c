/*
 * counter/counter_item.c: how a counter is stored, and the requests that change it. Nothing is
 * sent here.
 *
 *     key           S  or partition and sort, or as they are to be called
 *     count         N  the value
 *     rev           N  how many changes there were under a mark
 *     w:MARK        N  of each writer: the revision of its last change
 *     x:MARK        N  and what came out of that
 *     q:ID, r:ID    N  the same for changes with a request id
 *     gone          N  the revision at which marks were dropped last; absent: never
 *     born          S  the first mark it had: another one is another item in its place
 *     shards        N  over how many items it is spread; absent: over this one
 *
 * The key is "%count." and then the namespace and the name, joined by hf__pattern_key(), and the
 * number of the shard, if it is not the first. No other key that patterns make begins with '%' but
 * as "%2" for an escaped character, so a table can be shared with them.
 *
 *  (1) A mark's revision changes with every change that is made under it, and never comes twice.
 *  (2) gone grows whenever a mark is removed. So if a mark is not there, and gone is what it was
 *      before, then it was not there in the meantime.
 */
#include <stdio.h>
#include <stdlib.h>

#include "counter/counter.h"

enum { NAMES_MAX = 8 + 2 * DROPS_MAX, VALUES_MAX = 12, EXPRESSION_MAX = 2048 };

_Static_assert(DROPS_MAX * sizeof(", #d39, #e39") + sizeof(" REMOVE ") < EXPRESSION_MAX,
               "there is room for all marks that one write drops");

/* ---- keys ----------------------------------------------------------------------------------- */

static struct hf_item key_of(struct hf_scope *s, const struct hf_counters *c, struct hf_str hash,
                             struct hf_str sort)
{
    const struct hf_attr attrs[] = {{.name = c->hash, .type = HF_TYPE_S, .text = hash},
                                    {.name = c->sort, .type = HF_TYPE_S, .text = sort}};

    return hf_item_make(s, attrs, c->partitioned ? 2 : 1);
}

enum hf_status hf__counter_at(struct hf_scope *s, const struct hf_counters *c,
                              struct hf_counter_key key, uint32_t shard, struct counter_at *at)
{
    struct hf_str space = key.space.ptr ? key.space : c->space, text;
    char number[12];

    assert(shard < HF_COUNTER_SHARDS_MAX);
    *at = (struct counter_at){.name = key, .table = c->table};
    if (key.id.len == 0)
        return hf_scope_fail(s, HF_INVALID, "a counter needs a name");
    if (c->partitioned != (key.partition.len > 0))
        return hf_scope_fail(s, HF_INVALID, "counter %.*s: table %.*s has %s", HF_FMT(key.id),
                             HF_FMT(c->table), c->partitioned ? "partitions" : "no partitions");
    if (shard) {
        snprintf(number, sizeof(number), "%u", shard);
        text = PATTERN_KEY(s, space, key.id, hf_str_from(number));
    } else {
        text = PATTERN_KEY(s, space, key.id);
    }
    text = hf__pattern_join(s, HF_STR("%count."), text);
    if (c->partitioned) {
        at->key = key_of(s, c, key.partition, text);
        at->text = PATTERN_KEY(s, key.partition, text);
    } else {
        at->key = key_of(s, c, text, text);
        at->text = text;
    }
    return hf_scope_built(s);
}

bool hf__counter_has(struct hf_str name)
{
    static const char *const names[] = {"count", "rev", "gone", "born", "shards"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (hf_str_equal(name, hf_str_from(names[i])))
            return true;
    return name.len >= 2 && name.ptr[1] == ':' && char_in(name.ptr[0], "wxqr");
}

struct hf_str hf__counter_name(struct hf_scope *s, const struct counter_at *at)
{
    if (at->name.partition.len)
        return hf_scope_format(s, "counter %.*s of %.*s", HF_FMT(at->name.id),
                               HF_FMT(at->name.partition));
    return hf_scope_format(s, "counter %.*s", HF_FMT(at->name.id));
}

/* ---- reading -------------------------------------------------------------------------------- */

/* True when there is none, or it is a whole number of at least `least`. */
static bool read_number(struct hf_item item, struct hf_str name, int64_t least, int64_t *out)
{
    struct hf_value value = hf_item_get(item, name);

    return !value.ptr || (hf_value_i64(value, out) && *out >= least);
}

static struct hf_str rev_name(struct hf_scope *s, struct counter_mark mark)
{
    return hf__pattern_join(s, mark.request ? HF_STR("q:") : HF_STR("w:"), mark.id);
}

static struct hf_str out_name(struct hf_scope *s, struct counter_mark mark)
{
    return hf__pattern_join(s, mark.request ? HF_STR("r:") : HF_STR("x:"), mark.id);
}

enum hf_status hf__counter_see(struct hf_scope *s, const struct counter_at *at, struct hf_item item,
                               struct counter_mark mark, struct counter_seen *seen)
{
    int64_t shards = 1;
    bool right;

    *seen = (struct counter_seen){.shards = 1};
    if (!item.ptr)
        return HF_OK;
    right = read_number(item, HF_STR("count"), INT64_MIN, &seen->value) &&
            read_number(item, HF_STR("rev"), 0, &seen->rev) &&
            read_number(item, HF_STR("gone"), 1, &seen->gone) &&
            read_number(item, HF_STR("shards"), 1, &shards) && shards <= HF_COUNTER_SHARDS_MAX;
    seen->found = hf_item_get(item, HF_STR("count")).ptr != NULL;
    seen->born = hf_value_str(hf_item_get(item, HF_STR("born")));
    seen->shards = (uint32_t)shards;
    if (right && mark.id.ptr) {
        struct hf_str rev = rev_name(s, mark), out = out_name(s, mark);

        TRY(hf_scope_built(s));
        seen->marked = hf_item_get(item, rev).ptr != NULL;
        right =
            read_number(item, rev, 1, &seen->last) && read_number(item, out, INT64_MIN, &seen->out);
    }
    if (!right)
        return hf_scope_fail(s, HF_CORRUPT, "the item of %.*s in table %.*s is not a counter's",
                             HF_FMT(hf__counter_name(s, at)), HF_FMT(at->table));
    return HF_OK;
}

/* ---- marks that are too many ---------------------------------------------------------------- */

struct aged {
    struct hf_str name;
    int64_t rev;
};

static int by_age(const void *a, const void *b)
{
    int64_t one = ((const struct aged *)a)->rev, other = ((const struct aged *)b)->rev;

    return one < other ? -1 : one > other;
}

static void drops_of_kind(struct hf_scope *s, struct hf_item item, char kind, size_t keep,
                          struct counter_drops *drops)
{
    struct hf_item_walk walk = {0};
    struct aged *marks;
    size_t len = 0;

    while (hf_item_next(item, &walk))
        len += walk.name.len > 2 && walk.name.ptr[0] == kind && walk.name.ptr[1] == ':';
    if (len <= 2 * keep)
        return;
    marks = hf_scope_alloc(s, len * sizeof(*marks));
    if (!marks)
        return;
    len = 0;
    walk = (struct hf_item_walk){0};
    while (hf_item_next(item, &walk))
        if (walk.name.len > 2 && walk.name.ptr[0] == kind && walk.name.ptr[1] == ':') {
            marks[len] = (struct aged){.name = walk.name};
            (void)hf_value_i64(walk.value, &marks[len++].rev);
        }
    qsort(marks, len, sizeof(*marks), by_age);
    for (size_t i = 0; i + keep < len && drops->len < DROPS_MAX; i++)
        drops->names[drops->len++] = marks[i].name;
}

void hf__counter_drops(struct hf_scope *s, const struct hf_counters *c, struct hf_item item,
                       struct counter_drops *drops)
{
    drops->len = 0;
    drops_of_kind(s, item, 'w', c->writers, drops);
    drops_of_kind(s, item, 'q', c->requests, drops);
    assert(drops->len <= DROPS_MAX);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Texts and placeholders of one request. What does not fit is our own mistake, but for memory. */
struct builder {
    struct hf_scope *s;
    struct hf_str remove;
    struct hf_attr names[NAMES_MAX], values[VALUES_MAX];
    size_t names_len, values_len;
};

static void name_add(struct builder *b, struct hf_str placeholder, struct hf_str name)
{
    assert(b->names_len < NAMES_MAX);
    b->names[b->names_len++] =
        (struct hf_attr){.name = placeholder, .type = HF_TYPE_S, .text = name};
}

static void value_add(struct builder *b, struct hf_attr value)
{
    assert(b->values_len < VALUES_MAX);
    b->values[b->values_len++] = value;
}

#define NAME(b, placeholder, name) name_add((b), HF_STR(placeholder), HF_STR(name))
#define NUMBER(b, placeholder, number) value_add((b), (struct hf_attr)HF_N(placeholder, number))

/* The marks that go, as the REMOVE clause. */
static void drops_add(struct builder *b, const struct counter_drops *drops)
{
    char *text = hf_scope_alloc(b->s, EXPRESSION_MAX);
    size_t len = 0;

    for (size_t i = 0; text && i < drops->len; i++) {
        struct hf_str rev = drops->names[i], rest = hf_str_of(rev.ptr + 2, rev.len - 2);
        struct counter_mark mark = {.id = rest, .request = rev.ptr[0] == 'q'};

        len += (size_t)snprintf(text + len, EXPRESSION_MAX - len, "%s#d%zu, #e%zu",
                                i ? ", " : " REMOVE ", i, i);
        assert(len < EXPRESSION_MAX);
        name_add(b, hf_scope_format(b->s, "#d%zu", i), rev);
        name_add(b, hf_scope_format(b->s, "#e%zu", i), out_name(b->s, mark));
    }
    b->remove = hf_str_of(text, len);
}

static struct hf_update_item request_make(struct builder *b, const struct hf_counters *c,
                                          const struct counter_at *at, struct hf_str update,
                                          struct hf_str condition)
{
    struct hf_update_item request = {
        .table = hf_scope_copy(b->s, c->table),
        .key = at->key,
        .update = update,
        .condition = condition,
        .names = hf_item_make(b->s, b->names, b->names_len),
        .returns = HF_RETURN_UPDATED_NEW,
        .returns_on_failure = HF_ON_FAILURE_ALL_OLD,
    };

    if (b->values_len)
        request.values = hf_item_make(b->s, b->values, b->values_len);
    return request;
}

/* Which values it may find. Absent when any. */
static struct hf_str bounds_condition(struct builder *b, const struct counter_change *change)
{
    bool low = change->low > INT64_MIN, high = change->high < INT64_MAX;
    bool absent = change->low <= 0 && change->high >= 0;

    if (!low && !high)
        return hf_str_of(NULL, 0);
    if (low)
        NUMBER(b, ":low", change->low);
    if (high)
        NUMBER(b, ":high", change->high);
    return hf_scope_format(b->s, "(%s%s%s%s)", absent ? "attribute_not_exists(#count) OR " : "",
                           low ? "#count >= :low" : "", low && high ? " AND " : "",
                           high ? "#count <= :high" : "");
}

/* If nothing has changed since. Absent when that does not matter. */
static struct hf_str pin_condition(struct builder *b, const struct counter_change *change)
{
    if (!change->pinned)
        return hf_str_of(NULL, 0);
    if (!change->rev)
        return HF_STR("attribute_not_exists(#rev)");
    NUMBER(b, ":rev", change->rev);
    return HF_STR("#rev = :rev");
}

static struct hf_str conditions_join(struct builder *b, struct hf_str one, struct hf_str other)
{
    if (!one.ptr || !other.ptr)
        return one.ptr ? one : other;
    return hf_scope_format(b->s, "%.*s AND %.*s", HF_FMT(one), HF_FMT(other));
}

/* Under which circumstances our mark may be set. */
static struct hf_str mark_condition(struct builder *b, const struct counter_change *change)
{
    if (change->known) {
        NUMBER(b, ":last", change->last);
        return HF_STR("#rev_of = :last");
    }
    if (!change->guarded)
        return HF_STR("attribute_not_exists(#rev_of)");
    NAME(b, "#gone", "gone");
    if (!change->gone)
        return HF_STR("attribute_not_exists(#rev_of) AND attribute_not_exists(#gone)");
    NUMBER(b, ":gone", change->gone);
    return HF_STR("attribute_not_exists(#rev_of) AND #gone = :gone");
}

#define NEXT_REV "if_not_exists(#rev, :zero) + :one"
#define SUM "if_not_exists(#count, :zero) + :by"
#define MARKS ", #rev = " NEXT_REV ", #rev_of = " NEXT_REV ", #born = if_not_exists(#born, :mark)"

/* What a change under a mark sets, and which marks it removes; mostly none. */
static struct hf_str marked_update(struct builder *b, bool set)
{
    struct hf_str update =
        set ? HF_STR("SET #count = :by, #out_of = if_not_exists(#count, :zero)" MARKS)
            : HF_STR("SET #count = " SUM ", #out_of = " SUM MARKS);

    if (!b->remove.len)
        return update;
    return hf_scope_format(b->s, "%.*s, #gone = " NEXT_REV "%.*s", HF_FMT(update),
                           HF_FMT(b->remove));
}

struct hf_update_item hf__counter_change_request(struct hf_scope *s, const struct hf_counters *c,
                                                 const struct counter_at *at,
                                                 const struct counter_change *change)
{
    struct builder b = {.s = s, .remove = HF_STR("")};
    struct hf_str update, within, where;

    assert((change->mark.id.ptr || !change->known) && "a change is known by its mark");
    assert((!change->known || change->last > 0) && (!change->guarded || !change->known));
    assert(!change->drops || change->drops->len <= DROPS_MAX);
    NAME(&b, "#count", "count");
    NUMBER(&b, ":by", change->by);
    if (change->mark.id.ptr || !change->set)
        NUMBER(&b, ":zero", 0);
    if (change->mark.id.ptr || change->pinned) {
        NUMBER(&b, ":one", 1);
        NAME(&b, "#rev", "rev");
    }
    within = conditions_join(&b, bounds_condition(&b, change), pin_condition(&b, change));
    if (!change->mark.id.ptr) {
        update = hf_scope_format(s, "SET #count = %s%s", change->set ? ":by" : SUM,
                                 change->pinned ? ", #rev = " NEXT_REV : "");
        return request_make(&b, c, at, update, within);
    }
    NAME(&b, "#born", "born");
    value_add(&b, (struct hf_attr)HF_S(":mark", change->mark.id));
    name_add(&b, HF_STR("#rev_of"), rev_name(s, change->mark));
    name_add(&b, HF_STR("#out_of"), out_name(s, change->mark));
    where = mark_condition(&b, change);
    if (change->drops && change->drops->len) {
        drops_add(&b, change->drops);
        if (!change->guarded)
            NAME(&b, "#gone", "gone");
    }
    update = marked_update(&b, change->set);
    return request_make(&b, c, at, update, conditions_join(&b, where, within));
}

struct hf_update_item hf__counter_drop_request(struct hf_scope *s, const struct hf_counters *c,
                                               const struct counter_at *at, int64_t gone,
                                               const struct counter_drops *drops)
{
    struct builder b = {.s = s};
    struct hf_str update;

    assert(drops->len > 0 && drops->len <= DROPS_MAX);
    NAME(&b, "#rev", "rev");
    NAME(&b, "#gone", "gone");
    NUMBER(&b, ":one", 1);
    if (gone)
        NUMBER(&b, ":gone", gone);
    drops_add(&b, drops);
    update =
        hf_scope_format(s, "SET #gone = #rev + :one, #rev = #rev + :one%.*s", HF_FMT(b.remove));
    return request_make(&b, c, at, update,
                        gone ? HF_STR("attribute_exists(#rev) AND #gone = :gone")
                             : HF_STR("attribute_exists(#rev) AND attribute_not_exists(#gone)"));
}
