/*
 * kv/kv_batch_test.c: batches of keys, lost answers, and transactions, on every kind of database,
 * by a virtual clock. (n) is an invariant of kv/kv.c unless another file is named.
 */
#include "kv_stage.h"

/* ---- batches -------------------------------------------------------------------------------- */

enum { MANY = 260 };

static struct hf_kv_key numbered(struct kit *k, int i)
{
    return hf_kv_id(hf_scope_format(k->scope, "key-%03d", i));
}

static void set_numbered(struct kit *k, struct hf_kv *kv, int len)
{
    struct hf_kv_pair pairs[MANY];

    for (int i = 0; i < len; i++)
        pairs[i] =
            (struct hf_kv_pair){.key = numbered(k, i),
                                .value = hf_value_make(k->scope, (struct hf_attr)HF_N("", i))};
    CHECK_OK(hf_kv_set_many(k->scope, kv, pairs, (size_t)len, NULL, NULL));
}

/* More than one call takes, some handed back as unprocessed, repeated, missing: all have a place.
 */
KIT_TEST(kv, batches_keep_keys_and_order)
{
    struct hf_kv *kv = open_plain(k);
    struct hf_kv_key keys[MANY + 2];
    struct hf_kv_many many;

    kit_fault(k, HF_FAULT_UNPROCESSED, "BatchWriteItem", 3);
    set_numbered(k, kv, MANY);
    CHECK_INT(3, struck(k));
    kit_fault(k, HF_FAULT_UNPROCESSED, "BatchGetItem", 3);
    for (int i = 0; i < MANY; i++)
        keys[i] = numbered(k, MANY - 1 - i);
    keys[MANY] = id("missing");
    keys[MANY + 1] = numbered(k, 7);
    CHECK_OK(hf_kv_get_many(k->scope, kv, keys, MANY + 2, NULL, &many));
    CHECK_INT(3, struck(k));
    CHECK_INT(MANY + 2, many.entries_len);
    CHECK_INT(0, many.left_len);
    for (int i = 0; i < MANY + 2; i++) {
        int64_t number = -1, expected = i < MANY ? MANY - 1 - i : i == MANY ? -1 : 7;

        CHECK(hf_str_equal(keys[i].id, many.entries[i].key.id));
        CHECK_STR("global", many.entries[i].key.space);
        (void)hf_value_i64(many.entries[i].value, &number);
        CHECK_INT(expected, number);
        CHECK((expected == -1) == !many.entries[i].value.ptr);
    }
    CHECK_OK(hf_kv_get_many(k->scope, kv, keys, 0, NULL, &many));
    CHECK_INT(0, many.entries_len);
    hf_kv_close(kv);
}

/* A batch also removes; each pair has its own time to live; the last of equals wins. */
KIT_TEST(kv, batches_of_different_pairs)
{
    struct hf_kv *kv = open_plain(k);
    struct hf_kv_entry entry;

    set(k, kv, id("a"), "old");
    CHECK_OK(
        hf_kv_set_many(k->scope, kv,
                       (struct hf_kv_pair[]){{.key = id("a")},
                                             {.key = id("b"), .value = text(k, "b1")},
                                             {.key = id("c"), .value = text(k, "c"), .ttl_s = 10},
                                             {.key = id("b"), .value = text(k, "b2")}},
                       4, NULL, NULL));
    CHECK(!get(k, kv, id("a")));
    CHECK(same("b2", get(k, kv, id("b"))));
    CHECK_OK(hf_kv_get(k->scope, kv, id("c"), NULL, &entry));
    CHECK(entry.expires_s > 0);
    test_advance_ms(k->t, 11000);
    CHECK(!get(k, kv, id("c")));
    hf_kv_close(kv);
}

KIT_TEST(kv, batches_say_what_is_left)
{
    struct hf_kv *kv = open_plain(k);
    struct hf_many_options *twice = HF_OPTIONS(hf_many_options, .max_attempts = 2, .backoff_ms = 1);
    struct hf_kv_key keys[] = {id("a"), id("b"), id("")};
    struct hf_write_many_result result;
    struct hf_kv_many many;

    kit_fault(k, HF_FAULT_UNPROCESSED, "BatchWriteItem", 0);
    CHECK_STATUS(HF_THROTTLED,
                 hf_kv_set_many(k->scope, kv,
                                (struct hf_kv_pair[]){{.key = id("a"), .value = text(k, "1")},
                                                      {.key = id("b"), .value = text(k, "2")},
                                                      {.key = id("c"), .value = text(k, "3")},
                                                      {.key = id("d"), .value = text(k, "4")}},
                                4, twice, &result));
    CHECK(result.left_len > 0 && result.left_len < 4);
    kit_no_faults(k);
    for (size_t i = 0, left = 0; i < 4; i++) {
        bool is_left = left < result.left_len && result.left[left] == i;

        CHECK(is_left == !get(k, kv, id((const char *[]){"a", "b", "c", "d"}[i])));
        left += is_left;
    }
    CHECK_STATUS(HF_INVALID, hf_kv_get_many(k->scope, kv, keys, 3, NULL, &many));
    CHECK_INT(3, many.left_len);
    CHECK_STATUS(HF_INVALID,
                 hf_kv_set_many(k->scope, kv,
                                (struct hf_kv_pair[]){{.key = id("x"), .value = text(k, "1")},
                                                      {.key = id("")}},
                                2, NULL, &result));
    CHECK_INT(2, result.left_len);
    CHECK(!get(k, kv, id("x")));
    hf_kv_close(kv);
}

/* ---- lost answers --------------------------------------------------------------------------- */

/* (3): each write is done once, and reported as done, when its answer or request is lost. */
KIT_TEST(kv, lost_answers_and_requests)
{
    const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        for (int physical = 0; physical < 2; physical++) {
            struct hf_kv *kv =
                open_with(k, (struct hf_kv_options){.no_tombstones = physical, .consistent = true});
            struct hf_kv_set_options absent = {.size = sizeof(absent), .if_absent = true};
            struct hf_kv_set_options swap = {.size = sizeof(swap)};
            const char *deletes = physical ? "DeleteItem" : "PutItem";
            struct hf_kv_entry entry;

            kit_fault(k, kinds[i], "PutItem", 1);
            CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "1"), &absent, &entry));
            CHECK_INT(1, struck(k));
            CHECK(hf_str_equal(entry.version, version(k, kv, id("a"))));
            kit_fault(k, kinds[i], "PutItem", 1);
            swap.if_version = entry.version;
            CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "2"), &swap, &entry));
            CHECK(hf_str_equal(entry.version, version(k, kv, id("a"))));
            kit_fault(k, kinds[i], "PutItem", 1);
            CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "3"), NULL, &entry));
            CHECK(hf_str_equal(entry.version, version(k, kv, id("a"))));
            kit_fault(k, kinds[i], "PutItem", 1);
            CHECK_OK(hf_kv_change(k->scope, kv, id("a"), append_x, NULL, NULL, &entry));
            CHECK(same("3x", get(k, kv, id("a"))));
            kit_fault(k, kinds[i], "PutItem", 1);
            CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "4"),
                               HF_OPTIONS(hf_kv_set_options, .blind = true), &entry));
            CHECK(hf_str_equal(entry.version, version(k, kv, id("a"))));
            kit_fault(k, kinds[i], deletes, 1);
            CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, &entry));
            CHECK_INT(1, struck(k));
            CHECK_STR("4", hf_value_str(entry.value));
            CHECK(!get(k, kv, id("a")));
            kit_no_faults(k);
            set(k, kv, id("a"), "5");
            kit_fault(k, kinds[i], deletes, 1);
            CHECK_OK(hf_kv_delete(k->scope, kv, id("a"),
                                  HF_OPTIONS(hf_kv_delete_options,
                                             .if_version = version(k, kv, id("a"))),
                                  NULL));
            CHECK(!get(k, kv, id("a")));
            kit_no_faults(k);
            hf_kv_close(kv);
        }
}

/* (3): when there is no answer at all the doubt is told. */
KIT_TEST(kv, doubt_is_told)
{
    struct hf_kv *kv = open_plain(k);
    struct hf_kv_entry entry;

    kit_fault(k, HF_FAULT_LOST_REQUEST, "PutItem", 0);
    CHECK(hf_kv_set(k->scope, kv, id("a"), text(k, "1"), NULL, &entry) != HF_OK);
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    CHECK(!entry.version.ptr);
    kit_fault(k, HF_FAULT_THROTTLE, "PutItem", 0);
    CHECK_STATUS(HF_THROTTLED, hf_kv_set(k->scope, kv, id("a"), text(k, "1"), NULL, &entry));
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    kit_no_faults(k);
    CHECK(!get(k, kv, id("a")));
    hf_kv_close(kv);
}

static struct kv_view stored(struct kit *k, struct hf_kv *kv, struct hf_kv_key key)
{
    struct kv_place place;
    struct kv_view view;

    CHECK_OK(hf__kv_place(k->scope, kv, key, &place));
    CHECK_OK(hf__kv_view(k->scope, kv,
                         raw(k, hf__kv_item_key(k->scope, kv, place.hash, place.sort)), &view));
    return view;
}

/* kv_item.c (3) (4): what became of a write is read from what is there, up to a depth. */
KIT_TEST(kv, what_is_there_tells_what_was_done)
{
    struct hf_kv *kv = open_plain(k);
    struct kv_base nothing = {.kind = KV_BASE_SEEN}, base = {.kind = KV_BASE_SEEN};
    struct hf_str mine, first, other = HF_STR("0123456789abcdef0123456789abcdef");
    struct kv_view now = {0};

    CHECK_INT(KV_UNKNOWN, hf__kv_judge_write(&nothing, other, &now, true));
    set(k, kv, id("a"), "1");
    now = stored(k, kv, id("a"));
    first = now.version;
    CHECK_INT(34, first.len);
    CHECK_INT(KV_DONE, hf__kv_judge_write(&nothing, first, &now, true));
    CHECK_INT(KV_NOT_DONE, hf__kv_judge_write(&nothing, other, &now, true));
    CHECK_INT(KV_UNKNOWN, hf__kv_judge_write(&nothing, other, &now, false));
    set(k, kv, id("a"), "2");
    base.seen = stored(k, kv, id("a"));
    set(k, kv, id("a"), "3");
    mine = version(k, kv, id("a"));
    for (int i = 0; i < 2 * KV_PAST_MAX; i++) {
        now = stored(k, kv, id("a"));
        CHECK(now.version.len <= 32 + KV_PAST_MAX * 17 + 1);
        /* Our id, and that of what it was based on, are forgotten in their turn; the first not. */
        CHECK_INT(i < KV_PAST_MAX ? KV_DONE : KV_UNKNOWN,
                  hf__kv_judge_write(&base, mine, &now, true));
        CHECK_INT(i < KV_PAST_MAX - 1 ? KV_NOT_DONE : KV_UNKNOWN,
                  hf__kv_judge_write(&base, other, &now, true));
        CHECK_INT(KV_NOT_DONE, hf__kv_judge_write(&nothing, other, &now, true));
        CHECK_INT(KV_DONE, hf__kv_judge_write(&nothing, first, &now, true));
        /* The first is there, but not always what came right after it. */
        CHECK_INT(i < KV_PAST_MAX - 2 ? KV_NOT_DONE : KV_UNKNOWN,
                  hf__kv_judge_write(&(struct kv_base){.kind = KV_BASE_SEEN,
                                                       .seen = {.there = true, .version = first}},
                                     other, &now, true));
        if (i == 1) /* also across a deletion */
            CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, NULL));
        else if (i == 3) /* and a conditional write */
            CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "4"),
                               HF_OPTIONS(hf_kv_set_options, .if_version = now.version), NULL));
        else
            set(k, kv, id("a"), "5");
    }
    base.seen = stored(k, kv, id("a"));
    CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "x"),
                       HF_OPTIONS(hf_kv_set_options, .blind = true), NULL));
    now = stored(k, kv, id("a"));
    CHECK_INT(32, now.version.len);
    CHECK_INT(KV_UNKNOWN, hf__kv_judge_write(&base, other, &now, true));
    CHECK_INT(KV_UNKNOWN, hf__kv_judge_write(&nothing, other, &now, true));
    set(k, kv, id("a"), "y");
    now = stored(k, kv, id("a"));
    CHECK_INT(32 + 17, now.version.len);
    CHECK_INT(KV_UNKNOWN, hf__kv_judge_write(&base, other, &now, true));
    hf_kv_close(kv);
}

KIT_TEST(kv, what_is_there_tells_what_was_removed)
{
    struct hf_kv *kv = open_with(k, (struct hf_kv_options){.no_tombstones = true});
    struct kv_base base = {.kind = KV_BASE_SEEN};
    struct kv_view now = {0};

    set(k, kv, id("a"), "1");
    base.seen = stored(k, kv, id("a"));
    CHECK_INT(KV_DONE, hf__kv_judge_removal(&base, &now));
    now = base.seen;
    CHECK_INT(KV_NOT_DONE, hf__kv_judge_removal(&base, &now));
    set(k, kv, id("a"), "2");
    now = stored(k, kv, id("a"));
    CHECK_INT(KV_NOT_DONE, hf__kv_judge_removal(&base, &now));
    CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, NULL));
    set(k, kv, id("a"), "3");
    now = stored(k, kv, id("a"));
    CHECK_INT(KV_DONE, hf__kv_judge_removal(&base, &now));
    for (int i = 0; i < KV_PAST_MAX; i++)
        set(k, kv, id("a"), "4");
    now = stored(k, kv, id("a"));
    CHECK_INT(KV_UNKNOWN, hf__kv_judge_removal(&base, &now));
    CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "x"),
                       HF_OPTIONS(hf_kv_set_options, .blind = true), NULL));
    now = stored(k, kv, id("a"));
    CHECK_INT(KV_UNKNOWN, hf__kv_judge_removal(&base, &now));
    hf_kv_close(kv);
}

/* ---- transactions --------------------------------------------------------------------------- */

/* With a token of its own: tests have the same randomness, and other databases a memory. */
static enum hf_status transact(struct kit *k, const struct hf_transact_write *actions, size_t len)
{
    struct hf_transact_write_items request = {
        .actions = actions,
        .actions_len = len,
        .token = hf_scope_format(k->scope, "kv-%016llx", (unsigned long long)test_random(k->t))};

    return hf_transact_write_items(k->scope, k->db, &request, NULL);
}

KIT_TEST(kv, in_transactions)
{
    struct hf_kv *kv = open_partitioned(k);
    struct hf_kv_key a = in("p", "n", "a"), b = in("p", "n", "b"), c = in("p", "n", "c");
    struct hf_transact_write actions[3];
    struct hf_kv_entry entry, changed;

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) {
        hf_kv_close(kv);
        return;
    }
    CHECK_OK(hf_kv_set_tx(k->scope, kv, a, text(k, "1"),
                          HF_OPTIONS(hf_kv_set_options, .if_absent = true), &actions[0], &entry));
    CHECK_OK(hf_kv_set_tx(k->scope, kv, b, text(k, "1"), NULL, &actions[1], NULL));
    CHECK_OK(hf_kv_check_tx(k->scope, kv, c, hf_str_of(NULL, 0), &actions[2]));
    CHECK_OK(transact(k, actions, 3));
    CHECK(hf_str_equal(entry.version, version(k, kv, a)));
    CHECK(same("1", get(k, kv, b)));
    CHECK_STATUS(HF_TX_CANCELED, transact(k, actions, 3)); /* a is there now */
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(k->scope)->reasons[0].code);
    CHECK_STR("None", hf_scope_error(k->scope)->reasons[1].code);

    CHECK_OK(hf_kv_set_tx(k->scope, kv, a, text(k, "2"),
                          HF_OPTIONS(hf_kv_set_options, .if_version = entry.version, .ttl_s = 50),
                          &actions[0], NULL));
    CHECK_OK(hf_kv_change_tx(k->scope, kv, b, append_x, NULL, NULL, &actions[1], &changed));
    CHECK_OK(hf_kv_delete_tx(k->scope, kv, c, NULL, &actions[2]));
    CHECK_OK(transact(k, actions, 3));
    CHECK(same("2", get(k, kv, a)));
    CHECK(same("1x", get(k, kv, b)));
    CHECK(hf_str_equal(changed.version, version(k, kv, b)));
    CHECK(!get(k, kv, c));
    CHECK_STATUS(HF_TX_CANCELED, transact(k, actions, 3)); /* both have changed */
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(k->scope)->reasons[0].code);
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(k->scope)->reasons[1].code);

    CHECK_OK(hf_kv_check_tx(k->scope, kv, b, changed.version, &actions[0]));
    CHECK_OK(hf_kv_delete_tx(k->scope, kv, a,
                             HF_OPTIONS(hf_kv_delete_options, .if_version = entry.version),
                             &actions[1]));
    CHECK_STATUS(HF_TX_CANCELED, transact(k, actions, 2));
    CHECK_STR("None", hf_scope_error(k->scope)->reasons[0].code);
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(k->scope)->reasons[1].code);
    CHECK_OK(hf_kv_delete_tx(k->scope, kv, a,
                             HF_OPTIONS(hf_kv_delete_options, .if_version = version(k, kv, a)),
                             &actions[1]));
    CHECK_OK(transact(k, actions, 2));
    CHECK(!get(k, kv, a));
    /* What has expired, or was deleted, is absent for checks. */
    CHECK_OK(hf_kv_check_tx(k->scope, kv, a, hf_str_of(NULL, 0), &actions[0]));
    CHECK_OK(transact(k, actions, 1));
    hf_kv_close(kv);
}
