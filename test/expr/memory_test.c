/* expr/memory_test.c: every allocation that can fail, failed once. */
#include "expr/private.h"

#include "help.h"

typedef enum hf_status work_fn(struct hf_scope *s, struct hf_item names, struct hf_item values,
                               struct hf_item item);

enum { ROOM_MAX = 8192, ROOM_STEP = 16 }; /* bytes; scopes hand out memory in such steps */

/* Leave so much in the scope's one chunk, and no more to be had from the env. */
static void leave_room(struct test *t, struct hf_scope *s, size_t room)
{
    CHECK(hf_scope_alloc(s, 2 * ROOM_MAX));
    t->fail_at = -1;
    hf_scope_reset(s);
    CHECK(hf_scope_alloc(s, 2 * ROOM_MAX - room));
}

/*
 * Work with no memory at all, then with 16 bytes, and so on until it is enough: so each allocation
 * is the one that fails.
 */
static void sweep(struct test *t, work_fn *work)
{
    struct hf_scope *made = hf_scope_new(test_env(t));
    struct hf_item names = HF_ITEM(made, HF_S("#a", HF_STR("a")), HF_S("#m", HF_STR("m")));
    struct hf_item values = HF_ITEM(made, HF_N(":n", 1), HF_L(":l", HF_LIST(made, HF_N("", 1))));
    struct hf_item item = HF_ITEM(made, HF_S("pk", HF_STR("k")), HF_N("a", 1),
                                  HF_M("m", HF_ITEM(made, HF_N("x", 1), HF_N("y", 2))),
                                  HF_L("l", HF_LIST(made, HF_N("", 1))));
    enum hf_status status = HF_NOMEM;
    size_t room;

    for (room = 0; status != HF_OK; room += ROOM_STEP) {
        struct hf_scope *s = hf_scope_new(test_env(t));

        CHECK(room < ROOM_MAX);
        leave_room(t, s, room);
        status = work(s, names, values, item);
        t->fail_at = 0;
        CHECK(status == HF_OK || status == HF_NOMEM);
        if (status == HF_NOMEM)
            CHECK_INT(HF_NOMEM, hf_scope_error(s)->status);
        hf_scope_free(s);
    }
    CHECK(room > 2 * ROOM_STEP);
    hf_scope_free(made);
}

static enum hf_status bind_text(struct hf_scope *s, enum expr_kind kind, const char *text,
                                struct hf_item names, struct hf_item values,
                                struct expr_bound **bound)
{
    const struct expr *expr;
    struct expr_params params;

    TRY(hf__expr_compile(s, kind, hf_str_from(text), &expr));
    TRY(hf__expr_params(s, names, values, &params));
    TRY(hf__expr_bind(s, expr, &params, bound));
    return hf__expr_unused(s, &params);
}

static enum hf_status condition_work(struct hf_scope *s, struct hf_item names,
                                     struct hf_item values, struct hf_item item)
{
    struct expr_bound *bound;

    TRY(bind_text(s, EXPR_CONDITION, "#a = :n AND (size(#m) > :n OR :l = l)", names, values,
                  &bound));
    CHECK(hf__expr_match(bound, item));
    return HF_OK;
}

static enum hf_status key_work(struct hf_scope *s, struct hf_item names, struct hf_item values,
                               struct hf_item item)
{
    struct expr_bound *bound;
    const struct expr_key_term *terms;
    size_t len;

    (void)item;
    TRY(bind_text(s, EXPR_KEY_CONDITION, "#a = :n AND #m = :l", names, values, &bound));
    hf__expr_key_terms(bound, &terms, &len);
    CHECK_INT(2, len);
    return HF_OK;
}

static enum hf_status update_work(struct hf_scope *s, struct hf_item names, struct hf_item values,
                                  struct hf_item item)
{
    struct expr_bound *bound;
    struct hf_item out;
    struct hf_item touched;

    TRY(bind_text(s, EXPR_UPDATE,
                  "SET #a = #a + :n, l = list_append(l, :l), #m.z = :n REMOVE #m.x ADD c :n", names,
                  values, &bound));
    TRY(hf__expr_update(s, bound, NO_ITEM, item, &out));
    CHECK(hf__item_valid(out.ptr, out.len));
    CHECK_INT(5, hf_item_count(out));
    TRY(hf__expr_touched(s, bound, out, &touched));
    CHECK_INT(4, hf_item_count(touched));
    return HF_OK;
}

static enum hf_status project_work(struct hf_scope *s, struct hf_item names, struct hf_item values,
                                   struct hf_item item)
{
    struct expr_bound *bound;
    struct hf_item out;

    (void)values;
    TRY(bind_text(s, EXPR_PROJECTION, "#a, #m.x, l[0]", names, NO_ITEM, &bound));
    TRY(hf__expr_project(s, bound, item, &out));
    CHECK_INT(3, hf_item_count(out));
    return HF_OK;
}

static enum hf_status legacy_work(struct hf_scope *s, struct hf_item names, struct hf_item values,
                                  struct hf_item item)
{
    struct hf_value n = hf_item_get(values, HF_STR(":n"));
    struct expr_legacy_condition condition = {.name = HF_STR("a"),
                                              .compare = COMPARE_EQ,
                                              .values = &n,
                                              .values_len = 1};
    struct expr_legacy_update update = {HF_STR("a"), ACTION_ADD, n};
    struct hf_str name = HF_STR("a");
    struct expr_bound *bound;
    struct hf_item out;

    (void)names;
    TRY(hf__expr_legacy_condition(s, &condition, 1, false, &bound));
    CHECK(hf__expr_match(bound, item));
    TRY(hf__expr_legacy_key(s, &condition, 1, &bound));
    TRY(hf__expr_legacy_update(s, &update, 1, &bound));
    TRY(hf__expr_update(s, bound, NO_ITEM, item, &out));
    return hf__expr_legacy_projection(s, &name, 1, &bound);
}

TEST(expr_memory, conditions)
{
    sweep(t, condition_work);
}

TEST(expr_memory, key_conditions)
{
    sweep(t, key_work);
}

TEST(expr_memory, updates)
{
    sweep(t, update_work);
}

TEST(expr_memory, projections)
{
    sweep(t, project_work);
}

TEST(expr_memory, legacy)
{
    sweep(t, legacy_work);
}
