/*
 * kv/set.c: sets as lists: each change is a function from one list to the next, which
 * hf_kv_change() applies to what is there.
 *
 *  (1) No two elements of a set are equal in the eyes of whoever added the second; a list that was
 *      set as it is may have equals, and keeps them until somebody touches them.
 *  (2) Elements keep their order; what is new, or replaces others, comes last.
 *  (3) What is counted is counted in the round that was written.
 */
#include <holdfast/set.h>

#include "coord/pattern.h"

struct call {
    struct hf_set_options o;
    const struct hf_value *elements;
    size_t len;
    hf_set_match_fn *match;
    enum { ADD = 1, REMOVE, UPDATE } kind;
    struct hf_set_change done; /* by the last round (3) */
};

static bool is_same(const struct call *call, struct hf_value element, struct hf_value other)
{
    return call->o.equal ? call->o.equal(element, other, call->o.user)
                         : hf_value_equal(element, other);
}

/* The elements of a list, in the scope. */
static enum hf_status elements_of(struct hf_scope *s, const struct hf_kv_entry *now, size_t room,
                                  struct hf_value **elements, size_t *len)
{
    struct hf_value_walk walk = {.index = 0};

    *len = hf_value_count(now->value);
    if (now->value.ptr && hf_value_type(now->value) != HF_TYPE_L)
        return hf_scope_fail(s, HF_INVALID, "key \"%.*s\" is not a set: its value is not a list",
                             HF_FMT(now->key.id));
    *elements = hf_scope_alloc(s, (*len + room + 1) * sizeof(**elements));
    if (!*elements)
        return hf_scope_built(s);
    while (hf_value_next(s, now->value, &walk)) {
        assert(walk.index < *len);
        (*elements)[walk.index] = walk.value;
    }
    return HF_OK;
}

static bool is_meant(const struct call *call, struct hf_value element)
{
    if (call->match)
        return call->match(element, call->o.user);
    for (size_t i = 0; i < call->len; i++)
        if (is_same(call, element, call->elements[i]))
            return true;
    return false;
}

/* Those that are meant go; returns how many are left. */
static size_t take_out(struct call *call, struct hf_value *elements, size_t len)
{
    size_t left = 0;

    for (size_t i = 0; i < len; i++)
        if (is_meant(call, elements[i]))
            call->done.removed++;
        else
            elements[left++] = elements[i];
    assert(left <= len);
    return left;
}

/* Those that are not there yet come last. (1) (2) */
static size_t put_in(struct call *call, struct hf_value *elements, size_t len)
{
    for (size_t i = 0; i < call->len; i++) {
        bool there = false;

        for (size_t j = 0; j < len && !there; j++)
            there = is_same(call, elements[j], call->elements[i]);
        if (!there) {
            elements[len++] = call->elements[i];
            call->done.added++;
        }
    }
    return len;
}

static struct hf_value list_of(struct hf_scope *s, const struct hf_value *elements, size_t len)
{
    struct hf_attr *attrs = hf_scope_alloc(s, (len + 1) * sizeof(*attrs));

    if (!attrs)
        return (struct hf_value){0};
    for (size_t i = 0; i < len; i++)
        attrs[i] = (struct hf_attr){.name = HF_STR(""), .value = elements[i]};
    return hf_list_make(s, attrs, len);
}

/* An hf_kv_change_fn. */
static enum hf_status call_apply(struct hf_scope *s, const struct hf_kv_entry *now,
                                 struct hf_value *value, void *user)
{
    struct call *call = user;
    struct hf_value *elements, before = now->value;
    size_t len;

    assert(call->kind >= ADD && call->kind <= UPDATE);
    assert(call->kind != UPDATE || call->len == 1);
    call->done = (struct hf_set_change){.found = before.ptr != NULL};
    TRY(elements_of(s, now, call->len, &elements, &len));
    call->done.len = len;
    if (!before.ptr && call->kind != ADD)
        return HF_OK;
    if (call->kind != ADD)
        len = take_out(call, elements, len);
    if (call->kind == UPDATE) {
        elements[len++] = call->elements[0];
        call->done.added++;
    } else if (call->kind == ADD) {
        len = put_in(call, elements, len);
    }
    if (call->done.added == 0 && call->done.removed == 0)
        return HF_OK;
    *value = list_of(s, elements, len);
    TRY(hf_scope_built(s));
    if (len == 0 && call->o.delete_empty)
        *value = (struct hf_value){0};
    else if (before.ptr && hf_value_equal(before, *value)) /* replaced by itself, in its place */
        call->done.added = call->done.removed = 0;
    call->done.len = len;
    return HF_OK;
}

static enum hf_status call_new(struct hf_scope *s, struct hf_kv_key key, struct call *call,
                               const struct hf_set_options *options, struct hf_set_change *change)
{
    if (change)
        *change = (struct hf_set_change){0};
    OPTIONS_COPY(&call->o, options);
    for (size_t i = 0; i < call->len; i++)
        if (!call->elements[i].ptr)
            return hf_scope_fail(s, HF_INVALID, "key \"%.*s\": element %zu of a set is absent",
                                 HF_FMT(key.id), i);
    return HF_OK;
}

static void change_report(const struct call *call, const struct hf_kv_entry *entry,
                          struct hf_set_change *change)
{
    if (!change)
        return;
    *change = call->done;
    change->version = entry->version;
}

static enum hf_status call_run(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                               struct call call, const struct hf_set_options *options,
                               struct hf_set_change *change)
{
    struct hf_kv_change_options o = {.size = sizeof(o)};
    struct hf_kv_entry entry;

    TRY(call_new(s, key, &call, options, change));
    o.ttl_s = call.o.ttl_s;
    o.max_attempts = call.o.max_attempts;
    if (!change)
        return hf_kv_change(s, kv, key, call_apply, &call, &o, NULL);
    TRY(hf_kv_change(s, kv, key, call_apply, &call, &o, &entry));
    change_report(&call, &entry, change);
    return HF_OK;
}

static enum hf_status run_tx(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                             struct call call, const struct hf_set_options *options,
                             struct hf_transact_write *action, struct hf_set_change *change)
{
    struct hf_kv_change_options o = {.size = sizeof(o)};
    struct hf_kv_entry entry;

    memset(action, 0, sizeof(*action));
    TRY(call_new(s, key, &call, options, change));
    o.ttl_s = call.o.ttl_s;
    TRY(hf_kv_change_tx(s, kv, key, call_apply, &call, &o, action, &entry));
    change_report(&call, &entry, change);
    return HF_OK;
}

/* ---- calls ---------------------------------------------------------------------------------- */

enum hf_status hf_set_add(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                          const struct hf_value *elements, size_t len,
                          const struct hf_set_options *options, struct hf_set_change *change)
{
    return call_run(s, kv, key, (struct call){.kind = ADD, .elements = elements, .len = len},
                    options, change);
}

enum hf_status hf_set_remove(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                             const struct hf_value *elements, size_t len,
                             const struct hf_set_options *options, struct hf_set_change *change)
{
    return call_run(s, kv, key, (struct call){.kind = REMOVE, .elements = elements, .len = len},
                    options, change);
}

enum hf_status hf_set_remove_if(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                                hf_set_match_fn *match, const struct hf_set_options *options,
                                struct hf_set_change *change)
{
    return call_run(s, kv, key, (struct call){.kind = REMOVE, .match = match}, options, change);
}

enum hf_status hf_set_update(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                             struct hf_value element, hf_set_match_fn *match,
                             const struct hf_set_options *options, struct hf_set_change *change)
{
    return call_run(s, kv, key,
                    (struct call){.kind = UPDATE, .elements = &element, .len = 1, .match = match},
                    options, change);
}

enum hf_status hf_set_add_tx(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                             const struct hf_value *elements, size_t len,
                             const struct hf_set_options *options, struct hf_transact_write *action,
                             struct hf_set_change *change)
{
    return run_tx(s, kv, key, (struct call){.kind = ADD, .elements = elements, .len = len}, options,
                  action, change);
}

enum hf_status hf_set_remove_tx(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                                const struct hf_value *elements, size_t len,
                                const struct hf_set_options *options,
                                struct hf_transact_write *action, struct hf_set_change *change)
{
    return run_tx(s, kv, key, (struct call){.kind = REMOVE, .elements = elements, .len = len},
                  options, action, change);
}

/* ---- reading -------------------------------------------------------------------------------- */

enum hf_status hf_set_get(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                          const struct hf_set_options *options, struct hf_set *set)
{
    struct hf_kv_get_options get = {.size = sizeof(get)};
    struct hf_set_options o;
    struct hf_kv_entry entry;
    struct hf_value *elements;
    size_t len;

    *set = (struct hf_set){0};
    OPTIONS_COPY(&o, options);
    get.consistent = o.consistent;
    TRY(hf_kv_get(s, kv, key, &get, &entry));
    TRY(elements_of(s, &entry, 0, &elements, &len));
    *set = (struct hf_set){.elements = elements, .len = len, .version = entry.version};
    return HF_OK;
}

enum hf_status hf_set_contains(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                               struct hf_value element, const struct hf_set_options *options,
                               bool *contains)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct call call = {0};
    struct hf_set set;

    *contains = false;
    OPTIONS_COPY(&call.o, options);
    TRY(hf_set_get(s, kv, key, options, &set));
    for (size_t i = 0; i < set.len && !*contains; i++)
        *contains = is_same(&call, set.elements[i], element);
    hf_scope_rewind(s, mark);
    return HF_OK;
}
