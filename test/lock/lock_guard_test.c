/* lock/lock_guard_test.c: what a lock protects refuses who comes too late. */
#include <holdfast/lock.h>

#include "kit.h"

struct pair {
    struct hf_lock_table *locks;
    struct hf_lock *old, *new; /* the first lost it to the second */
};

static struct pair open_pair(struct kit *k)
{
    struct pair p;

    kit_make_table(k, k->other);
    CHECK_OK(
        hf_lock_table_open(k->scope, k->db,
                           HF_OPTIONS(hf_lock_table_options, .table = k->table, .no_threads = true),
                           &p.locks));
    CHECK_OK(hf_lock_try(k->scope, p.locks, HF_STR("job"), NULL, &p.old));
    return p;
}

static void take_over(struct kit *k, struct pair *p)
{
    CHECK_OK(hf_lock_break(k->scope, p->locks, HF_STR("job"), hf_str_of(NULL, 0), NULL));
    CHECK_OK(hf_lock_try(k->scope, p->locks, HF_STR("job"), NULL, &p->new));
}

static void close_pair(struct kit *k, struct pair *p)
{
    CHECK_STATUS(HF_LOST, hf_lock_release(k->scope, p->old));
    CHECK_OK(hf_lock_release(k->scope, p->new));
    hf_lock_table_close(p->locks);
}

static enum hf_status put_in_transaction(struct kit *k, const struct hf_lock *lock)
{
    struct hf_put_item put = {.table = k->other,
                              .item = HF_ITEM(k->scope, HF_S("id", HF_STR("x")))};
    struct hf_transact_write actions[2] = {{.put = &put}};
    struct hf_transact_write_items both = {.actions = actions, .actions_len = 2};

    CHECK_OK(hf_lock_guard(k->scope, lock, &actions[1]));
    return hf_transact_write_items(k->scope, k->db, &both, NULL);
}

KIT_TEST(lock_guard, a_transaction_of_a_former_holder_is_canceled)
{
    struct pair p;

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS))
        return;
    p = open_pair(k);
    CHECK_OK(put_in_transaction(k, p.old));
    CHECK_OK(hf_lock_extend(k->scope, p.old, 0));
    CHECK_OK(put_in_transaction(k, p.old));
    take_over(k, &p);
    CHECK_STATUS(HF_TX_CANCELED, put_in_transaction(k, p.old));
    CHECK_INT(2, hf_scope_error(k->scope)->reasons_len);
    CHECK_STR("None", hf_scope_error(k->scope)->reasons[0].code);
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(k->scope)->reasons[1].code);
    CHECK_OK(put_in_transaction(k, p.new));
    close_pair(k, &p);
}

static enum hf_status put_guarded(struct kit *k, const struct hf_lock *lock, const char *condition)
{
    struct hf_put_item put = {.table = k->other,
                              .item = HF_ITEM(k->scope, HF_S("id", HF_STR("x"))),
                              .condition = hf_str_from(condition)};

    CHECK_OK(hf_lock_guard_put(k->scope, lock, HF_STR("highest"), &put));
    return hf_put_item(k->scope, k->db, &put, NULL);
}

KIT_TEST(lock_guard, a_put_with_a_lower_fence_is_refused)
{
    struct pair p = open_pair(k);
    struct hf_put_item nothing = {.table = k->other};

    CHECK_OK(put_guarded(k, p.old, NULL));
    CHECK_OK(put_guarded(k, p.old, "attribute_exists(id)"));
    CHECK_STATUS(HF_CONDITION, put_guarded(k, p.old, "attribute_not_exists(id)"));
    take_over(k, &p);
    CHECK_OK(put_guarded(k, p.old, NULL)); /* nobody wrote after it: as if it had been in time */
    CHECK_OK(put_guarded(k, p.new, NULL));
    CHECK_STATUS(HF_CONDITION, put_guarded(k, p.old, NULL));
    CHECK_STATUS(HF_CONDITION,
                 put_guarded(k, p.old, "attribute_exists(id) OR attribute_not_exists(id)"));
    CHECK_OK(put_guarded(k, p.new, NULL));
    CHECK_STATUS(HF_INVALID, hf_lock_guard_put(k->scope, p.new, HF_STR("highest"), &nothing));
    close_pair(k, &p);
}

/* Update `text` under guard; then the fence is there, and `expected` is v. */
static enum hf_status update_guarded(struct kit *k, const struct hf_lock *lock, const char *text,
                                     int64_t expected)
{
    struct hf_scope *s = k->scope;
    struct hf_update_item update = {.table = k->other,
                                    .key = HF_ITEM(s, HF_S("id", HF_STR("x"))),
                                    .update = hf_str_from(text),
                                    .values = HF_ITEM(s, HF_N(":n", 7)),
                                    .returns = HF_RETURN_ALL_NEW};
    struct hf_update_item_result got;
    int64_t fence, v;
    enum hf_status status;

    CHECK_OK(hf_lock_guard_update(s, lock, hf_str_of(NULL, 0), &update));
    status = hf_update_item(s, k->db, &update, &got);
    if (status == HF_OK) {
        CHECK(hf_value_i64(hf_item_get(got.attributes, HF_STR("fence")), &fence));
        CHECK_INT(hf_lock_fence(lock), fence);
        CHECK(hf_value_i64(hf_item_get(got.attributes, HF_STR("v")), &v));
        CHECK_INT(expected, v);
    }
    return status;
}

KIT_TEST(lock_guard, an_update_with_a_lower_fence_is_refused)
{
    struct pair p = open_pair(k);
    struct hf_update_item nothing = {.table = k->other};

    CHECK_OK(update_guarded(k, p.old, "SET v = :n", 7));
    CHECK_OK(update_guarded(k, p.old, "ADD v :n", 14));
    CHECK_OK(update_guarded(k, p.old, "set v=:n", 7));
    CHECK_STATUS(HF_INVALID, update_guarded(k, p.old, "ADD v :n SET a.b = :n", 0)); /* no such a */
    CHECK_OK(update_guarded(k, p.old, "ADD v :n REMOVE resets, upset", 14));
    CHECK_OK(update_guarded(k, p.old, "ADD v :n\tSET\tw = :n", 21));
    take_over(k, &p);
    CHECK_OK(update_guarded(k, p.new, "SET v = :n", 7));
    CHECK_STATUS(HF_CONDITION, update_guarded(k, p.old, "SET v = :n", 7));
    CHECK_STATUS(HF_CONDITION, update_guarded(k, p.old, "ADD v :n", 7));
    CHECK_STATUS(HF_INVALID, hf_lock_guard_update(k->scope, p.new, hf_str_of(NULL, 0), &nothing));
    close_pair(k, &p);
}
