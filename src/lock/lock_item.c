/*
 * lock/lock_item.c: how a lock is stored, and the requests that change it. Nothing is sent
 * here.
 *
 *     name     S  the key; it and expires may be named otherwise
 *     fence    N  grows by one with every grant and every break; begins at the time of day in ms
 *     held     N  how many hold it
 *     mode     S  "exclusive", "shared" or "permit": how they hold it; means nothing while held
 *                 is 0
 *     h:ID     M  of each holder: owner, beat, lease_ms, since_ms, renewed_ms; opener (opener.c)
 *     f:ID     N  of each holder: its fence
 *     data     M  whatever the holders like to keep there
 *     expires  N  time to live, in seconds; only while it is free, and only if asked for
 *
 * ID is random and belongs to one holding: a later holding of the same lock has another one.
 * Attributes of an ID are written by its holder only, and removed by the holder or by others. A
 * beat is the number of the renewal. A holder's fence has an attribute of its own since the write
 * that makes it computes it.
 *
 *  (1) held is the number of h: and of f: attributes. So a take is refused while its own ID is
 *      there, or a request that comes twice would count twice.
 *  (2) f:ID equals a fence exactly as long as that grant lasts.
 *  (3) fence is never less than any f: that was ever there, and no f: comes twice.
 *  (4) A holder has a beat that no earlier request of the same ID had: a renewal that arrives
 *      after a later one is refused, and a lease that was granted long ago is renewed before it is
 *      handed out. Otherwise somebody may have been watching that beat since long ago.
 */
#include <stdarg.h>
#include <stdio.h>

#include "lock/lock.h"

/* Room for a request, and for each holder that it evicts (_EACH). DynamoDB takes expressions of 4
 * KB. */
enum {
    TEXT_MAX = 512,
    TEXT_EACH = 64,
    NAMES_MAX = 8,
    NAMES_EACH = 2,
    VALUES_MAX = 9,
    VALUES_EACH = 1
};

_Static_assert(TEXT_MAX + EVICT_MAX * TEXT_EACH <= 4096, "an expression that is too long");

static const struct hf_str modes[] = {
    [HF_LOCK_EXCLUSIVE] = HF_STR_INIT("exclusive"),
    [HF_LOCK_SHARED] = HF_STR_INIT("shared"),
    [HF_LOCK_PERMIT] = HF_STR_INIT("permit"),
};

/* ---- reading -------------------------------------------------------------------------------- */

static enum hf_status not_a_lock(struct hf_scope *s, const struct lock_view *view, const char *why)
{
    return hf_scope_fail(s, HF_CORRUPT, "the item \"%.*s\" of table %.*s is not a lock: %s",
                         HF_FMT(view->info.name), HF_FMT(view->table), why);
}

static bool read_u64(struct hf_item item, struct hf_str name, uint64_t *out)
{
    int64_t number;

    if (!hf_value_i64(hf_item_get(item, name), &number) || number < 0)
        return false;
    *out = (uint64_t)number;
    return true;
}

static bool read_holder(struct hf_str id, struct hf_item entry, struct hf_lock_holder *holder,
                        uint64_t *beat, struct hf_str *opener)
{
    uint64_t lease_ms, since_ms, renewed_ms;

    *opener = hf_value_str(hf_item_get(entry, HF_STR("opener")));
    holder->id = id;
    holder->owner = hf_value_str(hf_item_get(entry, HF_STR("owner")));
    if (!holder->owner.ptr || !read_u64(entry, HF_STR("beat"), beat) ||
        !read_u64(entry, HF_STR("lease_ms"), &lease_ms) ||
        !read_u64(entry, HF_STR("since_ms"), &since_ms) ||
        !read_u64(entry, HF_STR("renewed_ms"), &renewed_ms) || lease_ms > UINT32_MAX)
        return false;
    holder->lease_ms = (uint32_t)lease_ms;
    holder->since_us = (int64_t)since_ms * 1000;
    holder->renewed_us = (int64_t)renewed_ms * 1000;
    return true;
}

static enum hf_status read_holders(struct hf_scope *s, struct hf_item item, size_t held,
                                   struct lock_view *view)
{
    struct hf_lock_holder *holders;
    struct hf_str *openers;
    uint64_t *beats;
    struct hf_item_walk walk = {0};
    size_t len = 0;

    if (held > hf_item_count(item))
        return not_a_lock(s, view, "it has fewer holders than it counts");
    holders = hf_scope_alloc(s, (held + 1) * sizeof(*holders));
    beats = hf_scope_alloc(s, (held + 1) * sizeof(*beats));
    openers = hf_scope_alloc(s, (held + 1) * sizeof(*openers));
    if (!holders || !beats || !openers)
        return hf_scope_built(s);
    while (hf_item_next(item, &walk)) {
        struct hf_str id = walk.name;

        if (id.len < 2 || id.ptr[0] != 'h' || id.ptr[1] != ':')
            continue;
        if (len == held)
            return not_a_lock(s, view, "it has more holders than it counts");
        id = hf_str_of(id.ptr + 2, id.len - 2);
        if (!read_holder(id, hf_value_item(walk.value), &holders[len], &beats[len],
                         &openers[len]) ||
            !read_u64(item, hf__pattern_join(s, HF_STR("f:"), id), &holders[len].fence))
            return not_a_lock(s, view, "a holder is incomplete");
        len++;
    }
    if (len < held)
        return not_a_lock(s, view, "it has fewer holders than it counts");
    view->info.holders = holders;
    view->info.holders_len = len;
    view->beats = beats;
    view->openers = openers;
    return HF_OK;
}

enum hf_status hf__lock_view(struct hf_scope *s, const struct pattern_at *at, struct hf_item item,
                             struct lock_view *view)
{
    struct hf_str mode = hf_value_str(hf_item_get(item, HF_STR("mode")));
    uint64_t held;

    *view = (struct lock_view){.table = at->table};
    if (!item.ptr)
        return HF_OK;
    view->info.name = hf_value_str(hf_item_get(item, at->hash));
    view->info.data = hf_value_item(hf_item_get(item, HF_STR("data")));
    if (!read_u64(item, HF_STR("held"), &held) ||
        !read_u64(item, HF_STR("fence"), &view->info.fence))
        return not_a_lock(s, view, "it has no fence");
    for (size_t i = HF_LOCK_EXCLUSIVE; i <= HF_LOCK_PERMIT && held; i++)
        if (hf_str_equal(mode, modes[i]))
            view->info.mode = (enum hf_lock_mode)i;
    if (held && !view->info.mode)
        return not_a_lock(s, view, "it has no valid mode");
    return read_holders(s, item, held, view);
}

size_t hf__lock_view_find(const struct lock_view *view, struct hf_str id)
{
    for (size_t i = 0; i < view->info.holders_len; i++)
        if (hf_str_equal(view->info.holders[i].id, id))
            return i;
    return SIZE_MAX;
}

/* ---- expressions ---------------------------------------------------------------------------- */

/* Texts and placeholders of one request. What does not fit is our own mistake, but for memory. */
struct builder {
    struct hf_scope *s;
    size_t evicts;
    char *update, *condition;
    size_t update_len, condition_len;
    struct hf_attr *names, *values;
    size_t names_len, values_len;
};

static struct builder builder_new(struct hf_scope *s, size_t evicts)
{
    struct builder b = {.s = s, .evicts = evicts};

    b.update = hf_scope_alloc(s, TEXT_MAX + evicts * TEXT_EACH);
    b.condition = hf_scope_alloc(s, TEXT_MAX + evicts * TEXT_EACH);
    b.names = hf_scope_alloc(s, (NAMES_MAX + evicts * NAMES_EACH) * sizeof(*b.names));
    b.values = hf_scope_alloc(s, (VALUES_MAX + evicts * VALUES_EACH) * sizeof(*b.values));
    return b;
}

static void append_format(const struct builder *b, char *text, size_t *len, const char *format,
                          va_list args)
{
    size_t cap = TEXT_MAX + b->evicts * TEXT_EACH;
    int more;

    if (!text)
        return;
    more = vsnprintf(text + *len, cap - *len, format, args);
    assert(more >= 0 && *len + (size_t)more < cap);
    *len += (size_t)more;
}

static void HF_PRINTF(2, 3) update_add(struct builder *b, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    append_format(b, b->update, &b->update_len, format, args);
    va_end(args);
}

static void HF_PRINTF(2, 3) condition_add(struct builder *b, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    append_format(b, b->condition, &b->condition_len, format, args);
    va_end(args);
}

/* The same for texts as they are, which most are: a format would be most of the work. */
static void append_text(const struct builder *b, char *text, size_t *len, struct hf_str more)
{
    if (!text)
        return;
    assert(*len + more.len < TEXT_MAX + b->evicts * TEXT_EACH);
    memcpy(text + *len, more.ptr, more.len);
    *len += more.len;
}

static void update_text(struct builder *b, struct hf_str more)
{
    append_text(b, b->update, &b->update_len, more);
}

static void condition_text(struct builder *b, struct hf_str more)
{
    append_text(b, b->condition, &b->condition_len, more);
}

static void name_add(struct builder *b, struct hf_str placeholder, struct hf_str name)
{
    assert(b->names_len < NAMES_MAX + b->evicts * NAMES_EACH);
    if (b->names)
        b->names[b->names_len++] =
            (struct hf_attr){.name = placeholder, .type = HF_TYPE_S, .text = name};
}

static void value_add(struct builder *b, struct hf_attr value)
{
    assert(b->values_len < VALUES_MAX + b->evicts * VALUES_EACH);
    if (b->values)
        b->values[b->values_len++] = value;
}

#define NAME(b, placeholder, name) name_add((b), HF_STR(placeholder), HF_STR(name))
#define VALUE(b, ...) value_add((b), (struct hf_attr)__VA_ARGS__)

/* The holder's two attributes, as #h and #f. */
static void me_add(struct builder *b, struct hf_str id, bool entry)
{
    if (entry)
        name_add(b, HF_STR("#h"), hf__pattern_join(b->s, HF_STR("h:"), id));
    name_add(b, HF_STR("#f"), hf__pattern_join(b->s, HF_STR("f:"), id));
}

static void data_add(struct builder *b, struct hf_item data)
{
    if (!data.ptr)
        return;
    update_text(b, HF_STR(", #data = :data"));
    NAME(b, "#data", "data");
    VALUE(b, HF_M(":data", data));
}

/* A request whose texts could not be made is one that no database accepts: it names no table. */
static struct hf_update_item request_make(struct builder *b, const struct pattern_at *at,
                                          struct hf_str name)
{
    if (!b->update || !b->condition || !b->names || !b->values)
        return (struct hf_update_item){0};
    return (struct hf_update_item){
        .table = at->table,
        .key = hf__lock_key(b->s, at, name),
        .update = hf_str_of(b->update, b->update_len),
        .condition = hf_str_of(b->condition, b->condition_len),
        .names = hf_item_make(b->s, b->names, b->names_len),
        .values = hf_item_make(b->s, b->values, b->values_len),
        .returns = HF_RETURN_ALL_NEW,
    };
}

/* ---- requests ------------------------------------------------------------------------------- */

struct hf_item hf__lock_key(struct hf_scope *s, const struct pattern_at *at, struct hf_str name)
{
    const struct hf_attr key = {.name = at->hash, .type = HF_TYPE_S, .text = name};

    return hf_item_make(s, &key, 1);
}

struct hf_item hf__lock_entry(struct hf_scope *s, const struct lock_holder *holder)
{
    /* In the order in which items keep them: then nothing has to be sorted. */
    struct hf_attr entry[6] = {HF_N("beat", holder->beat), HF_N("lease_ms", holder->lease_ms)};
    size_t len = 2;

    if (holder->opener.len)
        entry[len++] = (struct hf_attr)HF_S("opener", holder->opener);
    entry[len++] = (struct hf_attr)HF_S("owner", holder->owner);
    entry[len++] = (struct hf_attr)HF_N("renewed_ms", holder->renewed_ms);
    entry[len++] = (struct hf_attr)HF_N("since_ms", holder->since_ms);
    assert(len <= ARRAY_LEN(entry));
    return hf_item_make(s, entry, len);
}

/* Evict these holders, on the condition that their beats are as they were seen. */
static void evict_add(struct builder *b, const struct lock_take *take)
{
    if (take->evict_len)
        NAME(b, "#beat", "beat");
    for (size_t i = 0; i < take->evict_len; i++) {
        const struct lock_evict *gone = &take->evict[i];
        struct hf_str h = hf_scope_format(b->s, "#h%zu", i);
        struct hf_str f = hf_scope_format(b->s, "#f%zu", i);

        update_add(b, ", #h%zu, #f%zu", i, i);
        name_add(b, h, hf__pattern_join(b->s, HF_STR("h:"), gone->id));
        name_add(b, f, hf__pattern_join(b->s, HF_STR("f:"), gone->id));
        if (gone->any_beat) {
            condition_add(b, " AND attribute_exists(#h%zu.#beat)", i);
        } else {
            condition_add(b, " AND #h%zu.#beat = :b%zu", i, i);
            value_add(b, (struct hf_attr){.name = hf_scope_format(b->s, ":b%zu", i),
                                          .type = HF_TYPE_N,
                                          .number = (int64_t)gone->beat});
        }
    }
}

/* The condition that there is room: already, or because holders are evicted. */
static void room_add(struct builder *b, const struct lock_take *take)
{
    bool with_others = take->mode != HF_LOCK_EXCLUSIVE;

    if (take->evict_len == 0) {
        condition_text(b, HF_STR(" AND (attribute_not_exists(#held) OR #held = :zero"));
        if (take->mode == HF_LOCK_SHARED)
            condition_text(b, HF_STR(" OR #mode = :mode"));
        if (take->mode == HF_LOCK_PERMIT) {
            condition_text(b, HF_STR(" OR (#mode = :mode AND #held < :permits)"));
            VALUE(b, HF_N(":permits", take->permits));
        }
        condition_text(b, HF_STR(")"));
    } else if (with_others && take->of == take->mode) {
        condition_text(b, HF_STR(" AND #mode = :mode"));
        if (take->mode == HF_LOCK_PERMIT) {
            condition_text(b, HF_STR(" AND #held < :permits"));
            VALUE(b, HF_N(":permits", (uint64_t)take->permits + take->evict_len));
        }
    } else {
        condition_text(b, HF_STR(" AND #held = :gone"));
        VALUE(b, HF_N(":gone", take->evict_len));
    }
}

struct hf_update_item hf__lock_take_request(struct hf_scope *s, const struct lock_take *take)
{
    struct builder b = builder_new(s, take->evict_len);

    assert(take->evict_len <= EVICT_MAX && take->mode <= HF_LOCK_PERMIT);
    assert((take->mode || take->evict_len) && "a request that does nothing");
    assert(!take->mode || take->id.len == PATTERN_ID_LEN);
    NAME(&b, "#held", "held");
    NAME(&b, "#fence", "fence");
    name_add(&b, HF_STR("#expires"), take->at->expires);
    VALUE(&b, HF_N(":one", 1));
    VALUE(&b, HF_N(":change", (take->mode ? 1 : 0) - (int64_t)take->evict_len));
    VALUE(&b, HF_N(":zero", 0));
    VALUE(&b, HF_N(":first", take->wall_ms));
    update_text(&b, HF_STR("SET #held = if_not_exists(#held, :zero) + :change"
                           ", #fence = if_not_exists(#fence, :first) + :one"));
    if (take->mode) {
        me_add(&b, take->id, true);
        NAME(&b, "#mode", "mode");
        VALUE(&b, HF_M(":me", take->entry));
        value_add(&b, (struct hf_attr){.name = HF_STR(":mode"),
                                       .type = HF_TYPE_S,
                                       .text = modes[take->mode]});
        update_text(&b,
                    HF_STR(", #h = :me, #f = if_not_exists(#fence, :first) + :one, #mode = :mode"));
        condition_text(&b, HF_STR("attribute_not_exists(#f)"));
        room_add(&b, take);
    } else {
        condition_text(&b, HF_STR("attribute_exists(#held)"));
    }
    data_add(&b, take->data);
    update_text(&b, HF_STR(" REMOVE #expires"));
    evict_add(&b, take);
    return request_make(&b, take->at, take->name);
}

struct hf_update_item hf__lock_beat_request(struct hf_scope *s, const struct lock_own *own,
                                            uint64_t beat, struct hf_item entry,
                                            struct hf_item data)
{
    struct builder b = builder_new(s, 0);

    assert(own->fence);
    me_add(&b, own->id, true);
    NAME(&b, "#beat", "beat");
    VALUE(&b, HF_N(":beat", beat));
    VALUE(&b, HF_M(":me", entry));
    VALUE(&b, HF_N(":fence", own->fence));
    update_text(&b, HF_STR("SET #h = :me"));
    condition_text(&b, HF_STR("#f = :fence AND #h.#beat < :beat"));
    data_add(&b, data);
    return request_make(&b, own->at, own->name);
}

struct hf_update_item hf__lock_free_request(struct hf_scope *s, const struct lock_own *own,
                                            struct hf_item data, int64_t expires_s)
{
    struct builder b = builder_new(s, 0);

    me_add(&b, own->id, true);
    NAME(&b, "#held", "held");
    VALUE(&b, HF_N(":one", 1));
    update_text(&b, HF_STR("SET #held = #held - :one"));
    if (own->fence) {
        condition_text(&b, HF_STR("#f = :fence"));
        VALUE(&b, HF_N(":fence", own->fence));
    } else {
        condition_text(&b, HF_STR("attribute_exists(#f)"));
    }
    if (expires_s) {
        update_text(&b, HF_STR(", #expires = :expires"));
        name_add(&b, HF_STR("#expires"), own->at->expires);
        VALUE(&b, HF_N(":expires", expires_s));
    }
    data_add(&b, data);
    update_text(&b, HF_STR(" REMOVE #h, #f"));
    return request_make(&b, own->at, own->name);
}
