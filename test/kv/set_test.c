/*
 * kv/set_test.c: sets, one feature at a time, on every kind of database; and many threads on
 * one set. (n) is an invariant of kv/set.c. Histories under bad luck are in kv_sim_test.c.
 */
#include <holdfast/engine.h>
#include <holdfast/set.h>

#include <pthread.h>
#include <stdio.h>

#include "kit.h"

#include "kv/kv.h"

static struct hf_kv *open_kv(struct kit *k)
{
    struct hf_kv *kv;

    CHECK_OK(hf_kv_open(k->scope, k->db,
                        HF_OPTIONS(hf_kv_options, .table = k->table, .partitioned = true,
                                   .consistent = true, .any_ttl = true),
                        &kv));
    return kv;
}

static struct hf_kv_key tags(void)
{
    return hf_kv_in(HF_STR("user-123"), HF_STR("profile"), HF_STR("tags"));
}

static struct hf_value text(struct kit *k, const char *chars)
{
    return hf_value_make(k->scope, (struct hf_attr)HF_S("", hf_str_from(chars)));
}

/* An element with a name and a number: {"n": name, "v": number}. */
static struct hf_value pair(struct kit *k, const char *name, int number)
{
    return hf_item_value(HF_ITEM(k->scope, HF_S("n", hf_str_from(name)), HF_N("v", number)));
}

static struct hf_str name_of(struct hf_value element)
{
    return hf_value_str(hf_value_get(element, HF_STR("n")));
}

static bool same_name(struct hf_value element, struct hf_value other, void *user)
{
    (void)user;
    return hf_str_equal(name_of(element), name_of(other));
}

/* The set, as "a b c", with the numbers of pairs: "a=1 b=2". */
static struct hf_str all(struct kit *k, struct hf_kv *kv)
{
    struct hf_str out = HF_STR("");
    struct hf_set set;

    CHECK_OK(hf_set_get(k->scope, kv, tags(), NULL, &set));
    if (!set.version.ptr)
        return HF_STR("none");
    for (size_t i = 0; i < set.len; i++) {
        struct hf_str one = hf_value_str(set.elements[i]);
        int64_t number = 0;

        if (!one.ptr) {
            CHECK(hf_value_i64(hf_value_get(set.elements[i], HF_STR("v")), &number));
            one = hf_scope_format(k->scope, "%.*s=%lld", HF_FMT(name_of(set.elements[i])),
                                  (long long)number);
        }
        out = hf_scope_format(k->scope, "%.*s%s%.*s", HF_FMT(out), i ? " " : "", HF_FMT(one));
    }
    return out;
}

static struct hf_str version(struct kit *k, struct hf_kv *kv)
{
    struct hf_set set;

    CHECK_OK(hf_set_get(k->scope, kv, tags(), NULL, &set));
    return set.version;
}

/* ---- changes -------------------------------------------------------------------------------- */

/* (1) (2) */
KIT_TEST(set, add)
{
    struct hf_kv *kv = open_kv(k);
    struct hf_value c = text(k, "c"), sql = text(k, "sql"), go = text(k, "go");
    struct hf_value all_three[] = {sql, go, c, go};
    struct hf_set_change change;
    struct hf_str before;

    CHECK_STR("none", all(k, kv));
    CHECK_OK(hf_set_add(k->scope, kv, tags(), &c, 1, NULL, &change));
    CHECK(!change.found);
    CHECK_INT(1, change.added);
    CHECK_INT(0, change.removed);
    CHECK_INT(1, change.len);
    CHECK(hf_str_equal(change.version, version(k, kv)));
    CHECK_OK(hf_set_add(k->scope, kv, tags(), all_three, 4, NULL, &change));
    CHECK(change.found);
    CHECK_INT(2, change.added);
    CHECK_INT(3, change.len);
    CHECK_STR("c sql go", all(k, kv));
    /* What is there already is not written again. */
    before = version(k, kv);
    CHECK_OK(hf_set_add(k->scope, kv, tags(), all_three, 4, NULL, &change));
    CHECK_INT(0, change.added);
    CHECK_INT(3, change.len);
    CHECK(hf_str_equal(before, change.version));
    CHECK(hf_str_equal(before, version(k, kv)));
    CHECK_OK(hf_set_add(k->scope, kv, tags(), all_three, 0, NULL, NULL));
    CHECK(hf_str_equal(before, version(k, kv)));
    hf_kv_close(kv);
}

KIT_TEST(set, remove)
{
    struct hf_kv *kv = open_kv(k);
    struct hf_value three[] = {text(k, "a"), text(k, "b"), text(k, "c")}, no = text(k, "no");
    struct hf_set_change change;
    struct hf_kv_entry entry;
    struct hf_str before;

    CHECK_OK(hf_set_remove(k->scope, kv, tags(), three, 3, NULL, &change));
    CHECK(!change.found && change.removed == 0 && !change.version.ptr);
    CHECK_STR("none", all(k, kv));
    CHECK_OK(hf_set_add(k->scope, kv, tags(), three, 3, NULL, NULL));
    CHECK_OK(hf_set_remove(k->scope, kv, tags(), &three[1], 1, NULL, &change));
    CHECK(change.found);
    CHECK_INT(1, change.removed);
    CHECK_INT(2, change.len);
    CHECK_STR("a c", all(k, kv));
    before = version(k, kv);
    CHECK_OK(hf_set_remove(k->scope, kv, tags(), &no, 1, NULL, &change));
    CHECK(change.found);
    CHECK_INT(0, change.removed);
    CHECK_INT(2, change.len);
    CHECK(hf_str_equal(before, version(k, kv)));
    CHECK_OK(hf_set_remove(k->scope, kv, tags(), three, 3, NULL, &change));
    CHECK_INT(2, change.removed);
    CHECK_INT(0, change.len);
    CHECK_STR("", all(k, kv));
    CHECK_OK(hf_set_add(k->scope, kv, tags(), three, 1, NULL, NULL));
    CHECK_OK(hf_set_remove(k->scope, kv, tags(), three, 1,
                           HF_OPTIONS(hf_set_options, .delete_empty = true), &change));
    CHECK_INT(1, change.removed);
    CHECK(!change.version.ptr);
    CHECK_OK(hf_kv_get(k->scope, kv, tags(), NULL, &entry));
    CHECK(!entry.value.ptr);
    hf_kv_close(kv);
}

static bool is_below(struct hf_value element, void *user)
{
    int64_t number;

    return hf_value_i64(hf_value_get(element, HF_STR("v")), &number) && number < *(int *)user;
}

KIT_TEST(set, remove_if)
{
    struct hf_kv *kv = open_kv(k);
    struct hf_value three[] = {pair(k, "a", 1), pair(k, "b", 5), pair(k, "c", 2)};
    int bound = 3;
    struct hf_set_options *below = HF_OPTIONS(hf_set_options, .user = &bound);
    struct hf_set_change change;

    CHECK_OK(hf_set_remove_if(k->scope, kv, tags(), is_below, below, &change));
    CHECK(!change.found);
    CHECK_OK(hf_set_add(k->scope, kv, tags(), three, 3, NULL, NULL));
    CHECK_OK(hf_set_remove_if(k->scope, kv, tags(), is_below, below, &change));
    CHECK_INT(2, change.removed);
    CHECK_STR("b=5", all(k, kv));
    CHECK_OK(hf_set_remove_if(k->scope, kv, tags(), is_below, below, &change));
    CHECK(change.found);
    CHECK_INT(0, change.removed);
    hf_kv_close(kv);
}

static bool is_b(struct hf_value element, void *user)
{
    (void)user;
    return hf_str_equal(name_of(element), HF_STR("b"));
}

/* (2): what matches goes, the element comes last; also when none does, but not without a set. */
KIT_TEST(set, update)
{
    struct hf_kv *kv = open_kv(k);
    struct hf_value three[] = {pair(k, "a", 1), pair(k, "b", 5), pair(k, "c", 2)};
    struct hf_set_options *by_name = HF_OPTIONS(hf_set_options, .equal = same_name);
    struct hf_set_change change;
    struct hf_str before;

    CHECK_OK(hf_set_update(k->scope, kv, tags(), three[0], NULL, NULL, &change));
    CHECK(!change.found && change.added == 0);
    CHECK_STR("none", all(k, kv));
    CHECK_OK(hf_set_add(k->scope, kv, tags(), three, 3, NULL, NULL));
    CHECK_OK(hf_set_update(k->scope, kv, tags(), pair(k, "x", 9), is_b, NULL, &change));
    CHECK_INT(1, change.added);
    CHECK_INT(1, change.removed);
    CHECK_STR("a=1 c=2 x=9", all(k, kv));
    CHECK_OK(hf_set_update(k->scope, kv, tags(), pair(k, "y", 7), is_b, NULL, &change));
    CHECK_INT(1, change.added);
    CHECK_INT(0, change.removed);
    CHECK_STR("a=1 c=2 x=9 y=7", all(k, kv));
    CHECK_OK(hf_set_update(k->scope, kv, tags(), pair(k, "c", 3), NULL, by_name, &change));
    CHECK_STR("a=1 x=9 y=7 c=3", all(k, kv));
    before = version(k, kv);
    CHECK_OK(hf_set_update(k->scope, kv, tags(), pair(k, "c", 3), NULL, NULL, &change));
    CHECK_INT(0, change.added + change.removed);
    CHECK_INT(4, change.len);
    CHECK(hf_str_equal(before, version(k, kv)));
    hf_kv_close(kv);
}

KIT_TEST(set, equality_of_ones_own)
{
    struct hf_kv *kv = open_kv(k);
    struct hf_set_options *by_name = HF_OPTIONS(hf_set_options, .equal = same_name);
    struct hf_value elements[] = {pair(k, "a", 1), pair(k, "a", 2), pair(k, "b", 1)};
    struct hf_set_change change;
    bool contains;

    CHECK_OK(hf_set_contains(k->scope, kv, tags(), elements[0], NULL, &contains));
    CHECK(!contains);
    CHECK_OK(hf_set_add(k->scope, kv, tags(), elements, 3, by_name, &change));
    CHECK_INT(2, change.added);
    CHECK_STR("a=1 b=1", all(k, kv));
    CHECK_OK(hf_set_contains(k->scope, kv, tags(), elements[1], NULL, &contains));
    CHECK(!contains);
    CHECK_OK(hf_set_contains(k->scope, kv, tags(), elements[1], by_name, &contains));
    CHECK(contains);
    CHECK_OK(hf_set_contains(k->scope, kv, tags(), elements[2], NULL, &contains));
    CHECK(contains);
    CHECK_OK(hf_set_remove(k->scope, kv, tags(), &elements[1], 1, NULL, &change));
    CHECK_INT(0, change.removed);
    CHECK_OK(hf_set_remove(k->scope, kv, tags(), &elements[1], 1, by_name, &change));
    CHECK_INT(1, change.removed);
    CHECK_STR("b=1", all(k, kv));
    hf_kv_close(kv);
}

/* ---- with plain values ---------------------------------------------------------------------- */

/* A list that was set as it is, a set that is replaced, deleted, made again. */
KIT_TEST(set, with_plain_writes)
{
    struct hf_kv *kv = open_kv(k);
    struct hf_value list =
        HF_LIST(k->scope, HF_S("", HF_STR("x")), HF_S("", HF_STR("x")), HF_S("", HF_STR("y")));
    struct hf_value z = text(k, "z"), x = text(k, "x");
    struct hf_set_change change;
    struct hf_str before;

    CHECK_OK(hf_kv_set(k->scope, kv, tags(), list, NULL, NULL));
    CHECK_OK(hf_set_add(k->scope, kv, tags(), &z, 1, NULL, &change));
    CHECK_STR("x x y z", all(k, kv));
    before = change.version;
    CHECK_OK(hf_kv_set(k->scope, kv, tags(), list, NULL, NULL));
    CHECK_STATUS(HF_CONDITION,
                 hf_kv_set(k->scope, kv, tags(), list,
                           HF_OPTIONS(hf_kv_set_options, .if_version = before), NULL));
    CHECK_OK(hf_set_remove(k->scope, kv, tags(), &x, 1, NULL, &change));
    CHECK_INT(2, change.removed);
    CHECK_STR("y", all(k, kv));
    CHECK_OK(hf_kv_delete(k->scope, kv, tags(), NULL, NULL));
    CHECK_OK(hf_set_remove(k->scope, kv, tags(), &x, 1, NULL, &change));
    CHECK(!change.found);
    CHECK_OK(hf_set_add(k->scope, kv, tags(), &z, 1, NULL, &change));
    CHECK(!change.found);
    CHECK_STR("z", all(k, kv));
    hf_kv_close(kv);
}

KIT_TEST(set, what_is_not_a_set)
{
    struct hf_kv *kv = open_kv(k);
    struct hf_value z = text(k, "z"), absent = {0};
    struct hf_set_change change;
    struct hf_set set;
    bool contains;

    CHECK_OK(hf_kv_set(k->scope, kv, tags(), z, NULL, NULL));
    CHECK_STATUS(HF_INVALID, hf_set_add(k->scope, kv, tags(), &z, 1, NULL, &change));
    CHECK_ERROR(HF_INVALID, "key \"tags\" is not a set: its value is not a list", k->scope);
    CHECK_STATUS(HF_INVALID, hf_set_get(k->scope, kv, tags(), NULL, &set));
    CHECK_STATUS(HF_INVALID, hf_set_contains(k->scope, kv, tags(), z, NULL, &contains));
    CHECK_OK(hf_kv_delete(k->scope, kv, tags(), NULL, NULL));
    CHECK_STATUS(HF_INVALID, hf_set_add(k->scope, kv, tags(), &absent, 1, NULL, &change));
    CHECK_ERROR(HF_INVALID, "key \"tags\": element 0 of a set is absent", k->scope);
    CHECK_STR("none", all(k, kv));
    hf_kv_close(kv);
}

KIT_TEST(set, time_to_live)
{
    struct hf_kv *kv = open_kv(k);
    struct hf_value a = text(k, "a"), b = text(k, "b");
    struct hf_kv_entry first, second;

    CHECK_OK(
        hf_set_add(k->scope, kv, tags(), &a, 1, HF_OPTIONS(hf_set_options, .ttl_s = 60), NULL));
    CHECK_OK(hf_kv_get(k->scope, kv, tags(), NULL, &first));
    CHECK(first.expires_s > 0);
    test_advance_ms(k->t, 30000);
    CHECK_OK(hf_set_add(k->scope, kv, tags(), &b, 1, NULL, NULL));
    CHECK_OK(hf_kv_get(k->scope, kv, tags(), NULL, &second));
    CHECK_INT(first.expires_s, second.expires_s);
    test_advance_ms(k->t, 31000);
    CHECK_STR("none", all(k, kv));
    CHECK_OK(hf_set_add(k->scope, kv, tags(), &b, 1, NULL, NULL));
    CHECK_STR("b", all(k, kv));
    hf_kv_close(kv);
}

/* A set that is full says so, and stays as it is. */
KIT_TEST(set, a_full_set)
{
    struct hf_kv *kv = open_kv(k);
    char *chars = hf_scope_alloc(k->scope, 100 * 1024);
    struct hf_set_change change;
    int added = 0;

    memset(chars, 'x', 100 * 1024);
    for (;; added++) {
        struct hf_value large;
        enum hf_status status;

        chars[0] = (char)('a' + added);
        large = hf_value_make(k->scope, (struct hf_attr)HF_S("", hf_str_of(chars, 100 * 1024)));
        status = hf_set_add(k->scope, kv, tags(), &large, 1, NULL, &change);
        if (status != HF_OK)
            break;
    }
    CHECK_INT(3, added);
    CHECK_INT(HF_INVALID, hf_scope_error(k->scope)->status);
    CHECK(strstr(hf_scope_error_text(k->scope), "key \"tags\""));
    hf_kv_close(kv);
}

/* ---- transactions --------------------------------------------------------------------------- */

/* With a token of its own: tests have the same randomness, and other databases a memory. */
static enum hf_status transact(struct kit *k, const struct hf_transact_write *actions, size_t len)
{
    struct hf_transact_write_items request = {
        .actions = actions,
        .actions_len = len,
        .token = hf_scope_format(k->scope, "set-%016llx", (unsigned long long)test_random(k->t))};

    return hf_transact_write_items(k->scope, k->db, &request, NULL);
}

KIT_TEST(set, in_transactions)
{
    struct hf_kv *kv = open_kv(k);
    struct hf_kv_key other = hf_kv_in(HF_STR("p"), HF_STR(""), HF_STR("other"));
    struct hf_value a = text(k, "a"), b = text(k, "b");
    struct hf_transact_write actions[2];
    struct hf_set_change change;

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) {
        hf_kv_close(kv);
        return;
    }
    CHECK_OK(hf_set_add_tx(k->scope, kv, tags(), &a, 1, NULL, &actions[0], &change));
    CHECK_INT(1, change.added);
    CHECK_OK(hf_set_add_tx(k->scope, kv, other, &b, 1, NULL, &actions[1], NULL));
    CHECK_STR("none", all(k, kv));
    CHECK_OK(transact(k, actions, 2));
    CHECK_STR("a", all(k, kv));
    CHECK(hf_str_equal(change.version, version(k, kv)));
    CHECK_STATUS(HF_TX_CANCELED, transact(k, actions, 2));
    /* Nothing to change: the action is that it stays so. */
    CHECK_OK(hf_set_remove_tx(k->scope, kv, tags(), &b, 1, NULL, &actions[0], &change));
    CHECK_INT(0, change.removed);
    CHECK(actions[0].check);
    CHECK_OK(transact(k, actions, 1));
    CHECK_OK(hf_set_add(k->scope, kv, tags(), &b, 1, NULL, NULL));
    CHECK_STATUS(HF_TX_CANCELED, transact(k, actions, 1));
    CHECK_OK(hf_set_remove_tx(k->scope, kv, tags(), &a, 1, NULL, &actions[0], &change));
    CHECK_OK(transact(k, actions, 1));
    CHECK_STR("b", all(k, kv));
    hf_kv_close(kv);
}

/* ---- memory of calls that hand nothing out -------------------------------------------------- */

static bool same_mark(struct hf_scope_mark a, struct hf_scope_mark b)
{
    return a.chunk == b.chunk && a.used == b.used;
}

KIT_TEST(set, what_hands_nothing_out_leaves_nothing)
{
    struct hf_kv *kv = open_kv(k);
    struct hf_kv_range range = {.partition = HF_STR("user-123"), .all_spaces = true};
    struct hf_value a = text(k, "a"), list = HF_LIST(k->scope, HF_S("", HF_STR("b")));
    struct hf_scope_mark mark = {0};
    bool yes;

    for (int round = 0; round < 4; round++) {
        CHECK_OK(hf_kv_set(k->scope, kv, tags(), list, NULL, NULL));
        CHECK_OK(hf_set_add(k->scope, kv, tags(), &a, 1, NULL, NULL));
        CHECK_OK(hf_set_contains(k->scope, kv, tags(), a, NULL, &yes));
        CHECK(yes);
        CHECK_OK(hf_kv_exists(k->scope, kv, tags(), NULL, &yes));
        CHECK(yes);
        CHECK_OK(hf_kv_delete(k->scope, kv, tags(), NULL, NULL));
        CHECK_OK(hf_kv_set(k->scope, kv, tags(), list, NULL, NULL));
        CHECK_OK(hf_kv_clear(k->scope, kv, &range, NULL, NULL));
        if (round == 0) /* by now there is as much room as it takes */
            mark = hf_scope_mark(k->scope);
        CHECK(same_mark(mark, hf_scope_mark(k->scope)));
        CHECK_INT(HF_OK, hf_scope_error(k->scope)->status);
    }
    hf_kv_close(kv);
}

/* ---- many at once --------------------------------------------------------------------------- */

enum { THREADS = 8, ADDS = 12 };

struct adder {
    struct hf_kv *kv;
    int first;
    int failures;
};

static void *add_some(void *user)
{
    struct adder *adder = user;
    struct hf_scope *s = hf_scope_new(NULL);

    for (int i = 0; i < ADDS; i++) {
        struct hf_value element = hf_value_make(s, (struct hf_attr)HF_N("", adder->first + i));
        struct hf_set_change change;

        if (hf_set_add(s, adder->kv, tags(), &element, 1,
                       HF_OPTIONS(hf_set_options, .max_attempts = 100000), &change) != HF_OK ||
            change.added != 1)
            adder->failures++;
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

/* All that was added is there, once, and what each thread added is in its order. */
TEST(set, many_threads_add_to_one_set)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct adder adders[THREADS];
    pthread_t threads[THREADS];
    int next[THREADS] = {0};
    struct hf_set set;
    struct hf_kv *kv;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true),
                     &db));
    CHECK_OK(
        hf_kv_open(s, db, HF_OPTIONS(hf_kv_options, .partitioned = true, .consistent = true), &kv));
    for (int i = 0; i < THREADS; i++) {
        adders[i] = (struct adder){.kv = kv, .first = i * ADDS};
        CHECK_INT(0, pthread_create(&threads[i], NULL, add_some, &adders[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(0, pthread_join(threads[i], NULL));
        CHECK_INT(0, adders[i].failures);
    }
    CHECK_OK(hf_set_get(s, kv, tags(), NULL, &set));
    CHECK_INT(THREADS * ADDS, set.len);
    for (size_t i = 0; i < set.len; i++) {
        int64_t number;

        CHECK(hf_value_i64(set.elements[i], &number));
        CHECK_INT(next[number / ADDS], number % ADDS);
        next[number / ADDS]++;
    }
    hf_kv_close(kv);
    hf_db_close(db);
    hf_scope_free(s);
}

/* ---- memory --------------------------------------------------------------------------------- */

static enum hf_status everything(struct hf_scope *s, struct hf_db *db)
{
    struct hf_value element = hf_value_make(s, (struct hf_attr)HF_S("", HF_STR("a")));
    struct hf_kv_pair pairs[2] = {{.key = hf_kv_in(HF_STR("p"), HF_STR(""), HF_STR("1"))},
                                  {.key = hf_kv_in(HF_STR("p"), HF_STR(""), HF_STR("2"))}};
    struct hf_kv_key keys[2] = {pairs[0].key, pairs[1].key};
    struct hf_transact_write action;
    struct hf_kv *kv = NULL;
    struct hf_kv_many many;
    struct hf_kv_page page;
    enum hf_status status;

    pairs[0].value = pairs[1].value = element;
    status = hf_kv_open(s, db, HF_OPTIONS(hf_kv_options, .partitioned = true), &kv);
    if (status == HF_OK)
        status = hf_set_add(s, kv, tags(), &element, 1, NULL, NULL);
    if (status == HF_OK)
        status = hf_set_remove(s, kv, tags(), &element, 1, NULL, NULL);
    if (status == HF_OK)
        status = hf_kv_set(s, kv, tags(), element, HF_OPTIONS(hf_kv_set_options, .ttl_s = 5), NULL);
    if (status == HF_OK)
        status = hf_kv_set_many(s, kv, pairs, 2, NULL, NULL);
    if (status == HF_OK)
        status = hf_kv_get_many(s, kv, keys, 2, NULL, &many);
    if (status == HF_OK)
        status = hf_kv_set_tx(s, kv, tags(), element, NULL, &action, NULL);
    if (status == HF_OK)
        status =
            hf_kv_page(s, kv, &(struct hf_kv_range){.partition = HF_STR("p"), .from = HF_STR("1")},
                       NULL, &page);
    if (status == HF_OK)
        CHECK_INT(2, page.entries_len);
    if (status == HF_OK)
        status = hf_kv_clear(s, kv, &(struct hf_kv_range){.all_spaces = true}, NULL, NULL);
    if (status == HF_OK)
        status = hf_kv_delete(s, kv, tags(), NULL, NULL);
    hf_kv_close(kv);
    return status;
}

/* Whatever allocation fails, that is what is told, and nothing is leaked. */
TEST(set, any_failed_allocation_is_told)
{
    struct hf_scope *first = hf_scope_new(NULL);
    struct hf_engine_options options = {.size = sizeof(options), .no_upkeep_thread = true};
    struct hf_db *db;

    CHECK_OK(hf_open(first, HF_STR("memory:"), &options, &db));
    CHECK_OK(everything(first, db));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        enum hf_status status = s ? everything(s, db) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        hf_scope_free(s);
        hf_scope_reset(first);
        CHECK_OK(everything(first, db));
    }
    hf_db_close(db);
    hf_scope_free(first);
}
