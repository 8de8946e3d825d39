/*
 * lock/lock_guard.c: fences where they count: in the conditions of what a lock protects.
 *
 * Two forms. In a transaction the lock's own item is checked: the grant still lasts, so nobody else
 * has it at that very moment. In a single write the protected item remembers the highest fence that
 * has written it: whoever comes with a lower one comes too late. The second form refuses a former
 * holder only from the first write of its successor on, which is enough: before that, to write is
 * the same as to have written in time.
 */
#include "lock/lock.h"

enum hf_status hf_lock_guard(struct hf_scope *s, const struct hf_lock *lock,
                             struct hf_transact_write *action)
{
    struct hf_condition_check *check = hf_scope_alloc(s, sizeof(*check));
    struct hf_str holder = hf_scope_format(s, "f:%.*s", HF_FMT(lock_id(lock)));

    call_begins(s);
    memset(action, 0, sizeof(*action));
    if (!lock->table->db)
        return hf_scope_fail(s, HF_UNSUPPORTED,
                             "lock %.*s is a no-op lock, so there is no item to check",
                             HF_FMT(lock->name));
    TRY(hf_scope_built(s));
    *check = (struct hf_condition_check){
        .table = hf_scope_copy(s, lock->table->at.table),
        .key = hf__lock_key(s, &lock->table->at, lock->name),
        .condition = HF_STR("#hf_fence = :hf_fence"),
        .names = HF_ITEM(s, HF_S("#hf_fence", holder)),
        .values = HF_ITEM(s, HF_N(":hf_fence", lock->fence)),
    };
    action->check = check;
    return hf_scope_built(s);
}

/* ---- single writes -------------------------------------------------------------------------- */

static struct hf_str attribute_or_default(struct hf_str attribute)
{
    return attribute.len ? attribute : HF_STR("fence");
}

/* The condition, and what it names; the request's own have to hold, too. */
static void add_condition(struct hf_scope *s, const struct hf_lock *lock, struct hf_str attribute,
                          struct hf_str *condition, struct hf_item *names, struct hf_item *values)
{
    const struct hf_attr name[] = {HF_S("#hf_fence", attribute)};
    const struct hf_attr value[] = {HF_N(":hf_fence", lock->fence)};
    const char *guard = "attribute_not_exists(#hf_fence) OR #hf_fence <= :hf_fence";

    *condition = condition->len ? hf_scope_format(s, "(%.*s) AND (%s)", HF_FMT(*condition), guard)
                                : hf_scope_format(s, "%s", guard);
    *names = hf_item_with(s, *names, name, 1);
    *values = hf_item_with(s, *values, value, 1);
}

enum hf_status hf_lock_guard_put(struct hf_scope *s, const struct hf_lock *lock,
                                 struct hf_str attribute, struct hf_put_item *put)
{
    struct hf_attr fence = HF_N("", lock->fence);

    call_begins(s);
    if (!put->item.ptr)
        return hf_scope_fail(s, HF_INVALID, "hf_lock_guard_put() was called without an item");
    fence.name = attribute_or_default(attribute);
    put->item = hf_item_with(s, put->item, &fence, 1);
    add_condition(s, lock, fence.name, &put->condition, &put->names, &put->values);
    return hf_scope_built(s);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '#' || c == ':' || c == '.';
}

/*
 * Where the assignments of the SET clause begin, or 0 when there is none. SET is a reserved word,
 * so no attribute has that name in an expression; placeholders and parts of paths are other words.
 */
static size_t after_set(struct hf_str update)
{
    for (size_t i = 0; i + 4 <= update.len; i++) {
        const char *at = update.ptr + i;

        if ((at[0] == 'S' || at[0] == 's') && (at[1] == 'E' || at[1] == 'e') &&
            (at[2] == 'T' || at[2] == 't') && !is_word(at[3]) && (i == 0 || !is_word(at[-1])))
            return i + 3;
    }
    return 0;
}

enum hf_status hf_lock_guard_update(struct hf_scope *s, const struct hf_lock *lock,
                                    struct hf_str attribute, struct hf_update_item *update)
{
    struct hf_str text = update->update;
    size_t at = after_set(text);

    call_begins(s);
    if (!text.len)
        return hf_scope_fail(s, HF_INVALID,
                             "hf_lock_guard_update() was called without an update expression");
    if (at)
        update->update = hf_scope_format(s, "%.*s #hf_fence = :hf_fence,%.*s", (int)at, text.ptr,
                                         (int)(text.len - at), text.ptr + at);
    else
        update->update = hf_scope_format(s, "%.*s SET #hf_fence = :hf_fence", HF_FMT(text));
    add_condition(s, lock, attribute_or_default(attribute), &update->condition, &update->names,
                  &update->values);
    return hf_scope_built(s);
}
