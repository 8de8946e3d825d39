/*
 * coord/actions.c: the actions of a transaction, which are added one by one.
 *
 *  (1) Each is exactly one of check, put, delete and update, and there are no more than a transaction may have.
 *  (2) The caller's structs are copied; the items and texts they point to are not.
 */
#include "coord/pattern.h"

static void actions_check(const struct actions *actions)
{
    assert(actions->len <= actions->cap || !actions->cap);
    assert(actions->len <= HF_TX_ACTIONS_MAX && "(1)");
    assert(actions->list || !actions->len);
}

static const void *request_copy(struct hf_scope *s, const void *request, size_t size)
{
    void *copy = request ? hf_scope_alloc(s, size) : NULL;

    return copy ? memcpy(copy, request, size) : NULL;
}

enum hf_status hf__actions_add(struct hf_scope *s, struct actions *actions,
                               const struct hf_transact_write *action)
{
    void *list = actions->list;
    struct hf_transact_write own;

    actions_check(actions);
    if (!!action->check + !!action->put + !!action->del + !!action->update != 1)
        return hf_scope_fail(
            s, HF_INVALID,
            "an action of a transaction is exactly one check, put, delete or update");
    if (actions->len == HF_TX_ACTIONS_MAX)
        return hf_scope_fail_limit(s, HF_LIMIT, HF_ERROR_LIMIT(HF_TX_ACTIONS_MAX, actions->len + 1),
                                   "a transaction has at most %d actions", HF_TX_ACTIONS_MAX);
    TRY(hf__pattern_grow(s, &list, actions->len, &actions->cap, sizeof(own)));
    actions->list = list;
    own =
        (struct hf_transact_write){.check = request_copy(s, action->check, sizeof(*action->check)),
                                   .put = request_copy(s, action->put, sizeof(*action->put)),
                                   .del = request_copy(s, action->del, sizeof(*action->del)),
                                   .update =
                                       request_copy(s, action->update, sizeof(*action->update))};
    TRY(hf_scope_built(s));
    actions->list[actions->len++] = own;
    actions_check(actions);
    return HF_OK;
}
