/*
 * kv/kv_test.c: keys and values, one feature at a time, on every kind of database, by a
 * virtual clock. (n) is an invariant of kv/kv.c unless another file is named.
 */
#include "kv_stage.h"

/* ---- one key -------------------------------------------------------------------------------- */

KIT_TEST(kv, set_get_delete)
{
    struct hf_kv *kv = open_plain(k);
    struct hf_kv_entry entry;
    bool exists;

    CHECK(!get(k, kv, id("a")));
    CHECK_OK(hf_kv_exists(k->scope, kv, id("a"), NULL, &exists));
    CHECK(!exists);
    CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "one"), NULL, &entry));
    CHECK_STR("one", hf_value_str(entry.value));
    CHECK_STR("global", entry.key.space);
    CHECK_STR("a", entry.key.id);
    CHECK(hf_str_equal(entry.version, version(k, kv, id("a"))));
    CHECK_INT(0, entry.expires_s);
    CHECK(same("one", get(k, kv, id("a"))));
    CHECK(!get(k, kv, id("b")));
    CHECK_OK(hf_kv_exists(k->scope, kv, id("a"), NULL, &exists));
    CHECK(exists);
    set(k, kv, id("a"), "two");
    CHECK(same("two", get(k, kv, id("a"))));
    CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, &entry));
    CHECK_STR("two", hf_value_str(entry.value));
    CHECK(!get(k, kv, id("a")));
    CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, &entry));
    CHECK(!entry.value.ptr);
    set(k, kv, id("a"), "three");
    CHECK(same("three", get(k, kv, id("a"))));
    hf_kv_close(kv);
}

/* Values are of any type, and come back as they were. */
KIT_TEST(kv, any_value)
{
    struct hf_kv *kv = open_plain(k);
    struct hf_item map = HF_ITEM(k->scope, HF_S("name", HF_STR("ann")), HF_N("age", 41));
    const struct hf_value values[] = {
        hf_item_value(map),
        hf_value_make(k->scope, (struct hf_attr)HF_NUM("", HF_STR("0.1"))),
        hf_value_make(k->scope, (struct hf_attr)HF_NULL("")),
        hf_value_make(k->scope, (struct hf_attr)HF_BOOL("", false)),
        hf_value_make(k->scope, (struct hf_attr)HF_S("", HF_STR(""))),
        hf_value_make(k->scope, (struct hf_attr)HF_B("", hf_bytes_of("\0\377", 2))),
        HF_LIST(k->scope, HF_N("", 1), HF_M("", map)),
    };
    struct hf_kv_entry entry;

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        CHECK_OK(hf_kv_set(k->scope, kv, id("a"), values[i], NULL, NULL));
        CHECK_OK(hf_kv_get(k->scope, kv, id("a"), NULL, &entry));
        CHECK(hf_value_equal(values[i], entry.value));
    }
    hf_kv_close(kv);
}

/* What keys there are: those with the same parts, and no others. */
KIT_TEST(kv, keys_do_not_collide)
{
    struct hf_kv *kv = open_partitioned(k);
    const struct hf_kv_key keys[] = {
        in("p", "a.b", "c"), in("p", "a", "b.c"), in("p", "", "a.b.c"), in("p", "a%2Eb", "c"),
        in("p", "a%", "c"),  in("p", "a", "%.c"), in("p", "a.", "c"),   in("p.a", "b", "c"),
        in("p", "", "."),    in("p", "%2E", "."), in("p", "a", "c"),    in("p", "", "c"),
        in("p", "a", "c."),  in("p", "a/", "c"),  in("p.", "a", "c"),   in("p", ".", "."),
    };
    struct hf_kv_page page;
    char value[32];

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        snprintf(value, sizeof(value), "%zu", i);
        set(k, kv, keys[i], value);
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        snprintf(value, sizeof(value), "%zu", i);
        CHECK(same(value, get(k, kv, keys[i])));
    }
    CHECK_OK(hf_kv_page(k->scope, kv, &(struct hf_kv_range){.all_spaces = true}, NULL, &page));
    CHECK_INT(ARRAY_LEN(keys), page.entries_len);
    for (size_t i = 0; i < page.entries_len; i++) {
        struct hf_kv_entry entry;

        CHECK_OK(hf_kv_get(k->scope, kv, page.entries[i].key, NULL, &entry));
        CHECK(hf_str_equal(entry.version, page.entries[i].version));
    }
    hf_kv_close(kv);
}

/* An id with a NUL in it is an id. */
KIT_TEST(kv, ids_are_any_text)
{
    struct hf_kv *kv = open_plain(k);
    struct hf_kv_key nul = hf_kv_id(hf_str_of("a\0b", 3));

    set(k, kv, nul, "nul");
    CHECK(!get(k, kv, id("a")));
    CHECK(same("nul", get(k, kv, nul)));
    hf_kv_close(kv);
}

KIT_TEST(kv, two_namespaces_of_one_table)
{
    struct hf_kv *users = open_with(k, (struct hf_kv_options){.space = HF_STR("users")});
    struct hf_kv *events = open_with(k, (struct hf_kv_options){.space = HF_STR("events")});
    struct hf_kv_key key = id("7");
    struct hf_kv_page page;

    set(k, users, key, "ann");
    set(k, events, key, "login");
    CHECK(same("ann", get(k, users, key)));
    CHECK(same("login", get(k, events, key)));
    key.space = HF_STR("users");
    CHECK(same("ann", get(k, events, key)));
    CHECK_OK(hf_kv_page(k->scope, users, NULL, NULL, &page));
    CHECK_INT(1, page.entries_len);
    CHECK_STR("7", page.entries[0].key.id);
    CHECK_STR("users", page.entries[0].key.space);
    hf_kv_close(users);
    hf_kv_close(events);
}

KIT_TEST(kv, attributes_can_have_other_names)
{
    struct hf_kv *kv = open_with(k, (struct hf_kv_options){.partitioned = true,
                                                           .hash_attribute = HF_STR("partitionKey"),
                                                           .sort_attribute = HF_STR("sortKey"),
                                                           .data_attribute = HF_STR("value"),
                                                           .version_attribute = HF_STR("size"),
                                                           .expires_attribute = HF_STR("ttl")});
    struct hf_item item;

    CHECK_OK(hf_kv_set(k->scope, kv, in("p", "n", "s"), text(k, "x"),
                       HF_OPTIONS(hf_kv_set_options, .ttl_s = 60), NULL));
    item = raw(k, HF_ITEM(k->scope, HF_S("partitionKey", HF_STR("p")),
                          HF_S("sortKey", HF_STR("n.s"))));
    CHECK_STR("x", hf_value_str(hf_item_get(item, HF_STR("value"))));
    CHECK_INT(34, hf_value_str(hf_item_get(item, HF_STR("size"))).len);
    CHECK_INT(HF_TYPE_N, hf_value_type(hf_item_get(item, HF_STR("ttl"))));
    CHECK(same("x", get(k, kv, in("p", "n", "s"))));
    hf_kv_close(kv);
    CHECK_STATUS(HF_INVALID, hf_kv_open(k->scope, k->db,
                                        HF_OPTIONS(hf_kv_options, .table = HF_STR("another"),
                                                   .data_attribute = HF_STR("key")),
                                        &kv));
    CHECK_ERROR(HF_INVALID, "table another: two attributes have the name \"key\"", k->scope);
    CHECK(!kv);
}

/* ---- conditions ----------------------------------------------------------------------------- */

/* (2): of those who saw the same version one is done, and the others see what is there. */
KIT_TEST(kv, compare_and_set)
{
    struct hf_kv *kv = open_plain(k);
    struct hf_kv_entry entry;
    struct hf_str first, second;

    set(k, kv, id("a"), "one");
    first = version(k, kv, id("a"));
    CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "two"),
                       HF_OPTIONS(hf_kv_set_options, .if_version = first), &entry));
    second = entry.version;
    CHECK(!hf_str_equal(first, second));
    CHECK_STATUS(HF_CONDITION,
                 hf_kv_set(k->scope, kv, id("a"), text(k, "three"),
                           HF_OPTIONS(hf_kv_set_options, .if_version = first), &entry));
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    CHECK_STR("two", hf_value_str(entry.value));
    CHECK(hf_str_equal(second, entry.version));
    CHECK(same("two", get(k, kv, id("a"))));
    CHECK_STATUS(HF_CONDITION,
                 hf_kv_delete(k->scope, kv, id("a"),
                              HF_OPTIONS(hf_kv_delete_options, .if_version = first), &entry));
    CHECK_STR("two", hf_value_str(entry.value));
    CHECK_OK(hf_kv_delete(k->scope, kv, id("a"),
                          HF_OPTIONS(hf_kv_delete_options, .if_version = second), &entry));
    CHECK_STR("two", hf_value_str(entry.value));
    CHECK_STATUS(HF_CONDITION,
                 hf_kv_set(k->scope, kv, id("a"), text(k, "four"),
                           HF_OPTIONS(hf_kv_set_options, .if_version = second), &entry));
    CHECK(!entry.value.ptr);
    CHECK(!get(k, kv, id("a")));
    hf_kv_close(kv);
}

/* (1): changed and changed back, or deleted and made again, is another version. */
KIT_TEST(kv, a_version_does_not_come_back)
{
    for (int way = 0; way < 2; way++) {
        struct hf_kv *kv = open_with(k, (struct hf_kv_options){.no_tombstones = way == 1});
        struct hf_str before;

        set(k, kv, id("a"), "one");
        before = version(k, kv, id("a"));
        CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, NULL));
        set(k, kv, id("a"), "one");
        CHECK_STATUS(HF_CONDITION,
                     hf_kv_set(k->scope, kv, id("a"), text(k, "two"),
                               HF_OPTIONS(hf_kv_set_options, .if_version = before), NULL));
        CHECK_OK(hf_kv_set_many(k->scope, kv,
                                &(struct hf_kv_pair){.key = id("a"), .value = text(k, "one")}, 1,
                                NULL, NULL));
        CHECK(!hf_str_equal(before, version(k, kv, id("a"))));
        hf_kv_close(kv);
    }
}

KIT_TEST(kv, set_if_absent)
{
    for (int way = 0; way < 2; way++) {
        struct hf_kv *kv = open_with(k, (struct hf_kv_options){.no_tombstones = way == 1});
        struct hf_kv_set_options *absent = HF_OPTIONS(hf_kv_set_options, .if_absent = true);
        struct hf_kv_entry entry;

        CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "one"), absent, &entry));
        CHECK_STR("one", hf_value_str(entry.value));
        CHECK_STATUS(HF_CONDITION,
                     hf_kv_set(k->scope, kv, id("a"), text(k, "two"), absent, &entry));
        CHECK_STR("one", hf_value_str(entry.value));
        CHECK(!hf_scope_error(k->scope)->may_have_happened);
        CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, NULL));
        CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "three"), absent, &entry));
        CHECK(same("three", get(k, kv, id("a"))));
        CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, NULL));
        hf_kv_close(kv);
    }
}

static enum hf_status count_up(struct hf_scope *s, const struct hf_kv_entry *now,
                               struct hf_value *value, void *user)
{
    int64_t number = 0;

    (void)hf_value_i64(now->value, &number);
    if (number == *(int64_t *)user)
        *value = (struct hf_value){0};
    else if (number != -1)
        *value = hf_value_make(s, (struct hf_attr)HF_N("", number + 1));
    return number == 99 ? hf_scope_fail(s, HF_LIMIT, "enough") : HF_OK;
}

KIT_TEST(kv, change)
{
    struct hf_kv *kv = open_plain(k);
    int64_t last = 3, none = -2;
    struct hf_kv_entry entry;
    struct hf_str before;
    int64_t number;

    for (int i = 1; i <= 3; i++) {
        CHECK_OK(hf_kv_change(k->scope, kv, id("a"), count_up, &last, NULL, &entry));
        CHECK(hf_value_i64(entry.value, &number) && number == i);
        CHECK(hf_str_equal(entry.version, version(k, kv, id("a"))));
    }
    CHECK_OK(hf_kv_change(k->scope, kv, id("a"), count_up, &last, NULL, &entry));
    CHECK(!entry.value.ptr && !entry.version.ptr);
    CHECK(!get(k, kv, id("a")));
    /* What is to stay is not written. */
    CHECK_OK(hf_kv_set(k->scope, kv, id("a"), hf_value_make(k->scope, (struct hf_attr)HF_N("", -1)),
                       NULL, NULL));
    before = version(k, kv, id("a"));
    CHECK_OK(hf_kv_change(k->scope, kv, id("a"), count_up, &none, NULL, &entry));
    CHECK(hf_str_equal(before, entry.version));
    CHECK(hf_str_equal(before, version(k, kv, id("a"))));
    /* A failure of the function is the outcome. */
    CHECK_OK(hf_kv_set(k->scope, kv, id("a"), hf_value_make(k->scope, (struct hf_attr)HF_N("", 99)),
                       NULL, NULL));
    CHECK_STATUS(HF_LIMIT, hf_kv_change(k->scope, kv, id("a"), count_up, &none, NULL, &entry));
    CHECK_ERROR(HF_LIMIT, "enough", k->scope);
    hf_kv_close(kv);
}

struct meddler {
    struct kit *k;
    struct hf_kv *kv;
    struct hf_scope *scope;
    int calls, meddle;
};

/* Somebody else writes the key between the look and the write. */
static enum hf_status meddle(struct hf_scope *s, const struct hf_kv_entry *now,
                             struct hf_value *value, void *user)
{
    struct meddler *m = user;

    (void)now;
    if (m->calls++ < m->meddle)
        CHECK_OK(hf_kv_set(m->scope, m->kv, id("a"),
                           hf_value_make(m->scope, (struct hf_attr)HF_N("", m->calls)), NULL,
                           NULL));
    *value = hf_value_make(s, (struct hf_attr)HF_S("", HF_STR("mine")));
    return HF_OK;
}

/* (2): who was too slow starts from what is there, as often as it was told, and no more often. */
KIT_TEST(kv, a_change_is_tried_again_and_bounded)
{
    struct hf_kv *kv = open_plain(k);
    struct meddler m = {.k = k, .kv = kv, .scope = kit_scope(k), .meddle = 4};
    struct hf_kv_change_options *five = HF_OPTIONS(hf_kv_change_options, .max_attempts = 5);
    int64_t before = k->t->elapsed_us;
    struct hf_kv_entry entry;

    CHECK_OK(hf_kv_change(k->scope, kv, id("a"), meddle, &m, five, NULL));
    CHECK_INT(5, m.calls);
    CHECK(same("mine", get(k, kv, id("a"))));
    CHECK(k->t->elapsed_us > before);
    m = (struct meddler){.k = k, .kv = kv, .scope = m.scope, .meddle = 5};
    set(k, kv, id("a"), "not mine");
    CHECK_STATUS(HF_TX_CONFLICT, hf_kv_change(k->scope, kv, id("a"), meddle, &m, five, &entry));
    CHECK_INT(5, m.calls);
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    CHECK(hf_scope_error(k->scope)->may_retry);
    CHECK(strstr(hf_scope_error_text(k->scope), "key \"a\""));
    CHECK(strstr(hf_scope_error_text(k->scope), "others changed it first, 5 times"));
    CHECK_OK(hf_kv_get(k->scope, kv, id("a"), NULL, &entry));
    CHECK_INT(HF_TYPE_N, hf_value_type(entry.value));
    /* A deadline ends it, too. */
    m = (struct meddler){.k = k, .kv = kv, .scope = m.scope, .meddle = 1000};
    hf_scope_timeout_ms(k->scope, 100);
    CHECK_STATUS(HF_TIMEOUT,
                 hf_kv_change(k->scope, kv, id("a"), meddle, &m,
                              HF_OPTIONS(hf_kv_change_options, .max_attempts = 1000), NULL));
    CHECK(m.calls > 2 && m.calls < 100);
    hf_kv_close(kv);
}

/* kv_memory.c: who wrote a key last sets it again in one write; who did not looks, and so does who
 * was mistaken. */
KIT_TEST(kv, setting_again_takes_one_write)
{
    struct hf_kv *ann = open_with(k, (struct hf_kv_options){.remember = 1, .consistent = true});
    struct hf_kv *ben = open_plain(k);
    const struct {
        struct hf_kv *kv;
        const char *id;
        int looks;
    } sets[] = {
        {ann, "a", 1}, {ann, "a", 0},  {ann, "a", 0}, {ben, "a", 1},
        {ben, "a", 0}, {ann, "a", -1}, /* refused, with what is there: not every database tells */
        {ann, "a", 0}, {ann, "b", 1},  {ann, "a", 1}, /* there is room for one */
        {ben, "b", 1}, {ben, "a", -1}, {ben, "b", 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        const char *value = hf_scope_format(k->scope, "%zu", i).ptr;
        struct hf_fault look = {.kind = HF_FAULT_LATENCY,
                                .operation = HF_STR("GetItem"),
                                .latency_ms = 1};

        CHECK_OK(hf_faulty_set(k->scope, k->db, &look, 1));
        set(k, sets[i].kv, id(sets[i].id), value);
        CHECK(sets[i].looks == (int)struck(k) || (sets[i].looks == -1 && struck(k) <= 1));
        kit_no_faults(k);
        CHECK(same(value, get(k, ben, id(sets[i].id))));
    }
    CHECK_OK(hf_kv_delete(k->scope, ben, id("a"), NULL, NULL));
    set(k, ann, id("a"), "again");
    CHECK(same("again", get(k, ben, id("a"))));
    set(k, ben, id("a"), "and again");
    CHECK(same("and again", get(k, ann, id("a"))));
    hf_kv_close(ann);
    hf_kv_close(ben);
}

/* ---- time to live --------------------------------------------------------------------------- */

/* (4): gone at the second, whether the database has removed it or not. */
KIT_TEST(kv, time_to_live_is_honoured_on_read)
{
    struct hf_kv *kv = open_plain(k);
    struct hf_kv_set_options *minute = HF_OPTIONS(hf_kv_set_options, .ttl_s = 60);
    struct hf_kv_key keys[] = {id("a")};
    struct hf_kv_entry entry;
    struct hf_kv_page page;
    struct hf_kv_many many;
    struct hf_str old;

    test_advance_ms(k->t, 1000 - (k->t->wall_us / 1000) % 1000);
    CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "x"), minute, &entry));
    old = entry.version;
    CHECK_INT(k->t->wall_us / 1000000 + 60, entry.expires_s);
    CHECK_OK(hf_kv_get(k->scope, kv, id("a"), NULL, &entry));
    CHECK_INT(k->t->wall_us / 1000000 + 60, entry.expires_s);
    test_advance_ms(k->t, 59999);
    CHECK(same("x", get(k, kv, id("a"))));
    test_advance_ms(k->t, 1);
    CHECK(!get(k, kv, id("a")));
    CHECK(raw(k, HF_ITEM(k->scope, HF_S("key", HF_STR("global.a")))).ptr);
    CHECK_OK(hf_kv_page(k->scope, kv, NULL, NULL, &page));
    CHECK_INT(0, page.entries_len);
    CHECK_OK(hf_kv_get_many(k->scope, kv, keys, 1, NULL, &many));
    CHECK(!many.entries[0].value.ptr);
    /* For writers, too. */
    CHECK_STATUS(HF_CONDITION, hf_kv_set(k->scope, kv, id("a"), text(k, "y"),
                                         HF_OPTIONS(hf_kv_set_options, .if_version = old), &entry));
    CHECK(!entry.value.ptr);
    CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, &entry));
    CHECK(!entry.value.ptr);
    CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "y"),
                       HF_OPTIONS(hf_kv_set_options, .if_absent = true), &entry));
    CHECK_INT(0, entry.expires_s);
    test_advance_ms(k->t, 1000000000);
    CHECK(same("y", get(k, kv, id("a"))));
    hf_kv_close(kv);
}

/* Whoever opens it sees to it that the database removes what has expired. */
KIT_TEST(kv, the_table_has_a_time_to_live)
{
    struct hf_describe_time_to_live describe = {.table = k->table};
    struct hf_describe_time_to_live_result ttl;
    struct hf_kv *kv;

    if (!kit_has(k, HF_FEATURE_TIME_TO_LIVE))
        return;
    CHECK_OK(hf_kv_open(k->scope, k->db,
                        HF_OPTIONS(hf_kv_options, .table = k->table, .any_ttl = true), &kv));
    hf_kv_close(kv);
    CHECK_OK(hf_describe_time_to_live(k->scope, k->db, &describe, &ttl));
    CHECK_INT(HF_TTL_DISABLED, ttl.description->status);
    CHECK_OK(hf_kv_open(k->scope, k->db, HF_OPTIONS(hf_kv_options, .table = k->table), &kv));
    hf_kv_close(kv);
    CHECK_OK(hf_describe_time_to_live(k->scope, k->db, &describe, &ttl));
    CHECK_INT(HF_TTL_ENABLED, ttl.description->status);
    CHECK_STR("expires", ttl.description->attribute);
}

/* A time to live begins in the middle of a second: it is not cut short. */
KIT_TEST(kv, time_to_live_is_at_least_what_was_asked_for)
{
    struct hf_kv *kv = open_plain(k);

    test_advance_ms(k->t, 1500 - (k->t->wall_us / 1000) % 1000);
    CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "x"),
                       HF_OPTIONS(hf_kv_set_options, .ttl_s = 1), NULL));
    test_advance_ms(k->t, 1499);
    CHECK(same("x", get(k, kv, id("a"))));
    test_advance_ms(k->t, 1);
    CHECK(!get(k, kv, id("a")));
    hf_kv_close(kv);
}

KIT_TEST(kv, a_change_keeps_the_time_to_live_and_a_set_does_not)
{
    struct hf_kv *kv = open_plain(k);
    struct hf_kv_entry made, entry;

    CHECK_OK(hf_kv_set(k->scope, kv, id("a"), text(k, "x"),
                       HF_OPTIONS(hf_kv_set_options, .ttl_s = 60), &made));
    CHECK_OK(hf_kv_change(k->scope, kv, id("a"), append_x, NULL, NULL, &entry));
    CHECK_INT(made.expires_s, entry.expires_s);
    CHECK_OK(hf_kv_change(k->scope, kv, id("a"), append_x, NULL,
                          HF_OPTIONS(hf_kv_change_options, .ttl_s = 100), &entry));
    CHECK_INT(made.expires_s + 40, entry.expires_s);
    CHECK(same("xxx", get(k, kv, id("a"))));
    set(k, kv, id("a"), "y");
    CHECK_OK(hf_kv_get(k->scope, kv, id("a"), NULL, &entry));
    CHECK_INT(0, entry.expires_s);
    hf_kv_close(kv);
}

/* kv_change.c (4): what was deleted is remembered, unseen, with an end. */
KIT_TEST(kv, a_deleted_key_is_remembered_unseen)
{
    struct hf_kv *kv = open_with(k, (struct hf_kv_options){.tombstone_s = 100, .consistent = true});
    struct hf_item item;
    struct hf_kv_page page;
    int64_t expires;

    set(k, kv, id("a"), "x");
    CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, NULL));
    item = raw(k, HF_ITEM(k->scope, HF_S("key", HF_STR("global.a"))));
    CHECK(item.ptr && !hf_item_get(item, HF_STR("data")).ptr);
    CHECK(hf_value_i64(hf_item_get(item, HF_STR("expires")), &expires));
    CHECK(expires - k->t->wall_us / 1000000 >= 100 && expires - k->t->wall_us / 1000000 <= 101);
    CHECK_OK(hf_kv_page(k->scope, kv, NULL, NULL, &page));
    CHECK_INT(0, page.entries_len);
    hf_kv_close(kv);
    kv = open_with(k, (struct hf_kv_options){.no_tombstones = true});
    set(k, kv, id("a"), "x");
    CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, NULL));
    CHECK(!raw(k, HF_ITEM(k->scope, HF_S("key", HF_STR("global.a")))).ptr);
    hf_kv_close(kv);
}

/* ---- what others wrote ---------------------------------------------------------------------- */

KIT_TEST(kv, items_without_a_version)
{
    struct hf_kv *kv = open_plain(k);
    struct hf_kv_entry entry;
    struct hf_kv_page page;

    put_raw(k, HF_ITEM(k->scope, HF_S("key", HF_STR("global.old")),
                       HF_S("data", HF_STR("{\"a\":1}"))));
    put_raw(k, HF_ITEM(k->scope, HF_S("key", HF_STR("global.count")), HF_N("count", 7)));
    put_raw(k, HF_ITEM(k->scope, HF_S("key", HF_STR("nodot")), HF_S("data", HF_STR("x"))));
    CHECK_OK(hf_kv_get(k->scope, kv, id("old"), NULL, &entry));
    CHECK_STR("{\"a\":1}", hf_value_str(entry.value));
    CHECK(!entry.version.ptr);
    CHECK_OK(hf_kv_get(k->scope, kv, id("count"), NULL, &entry));
    CHECK(!entry.value.ptr);
    CHECK_OK(hf_kv_page(k->scope, kv, NULL, NULL, &page));
    CHECK_INT(1, page.entries_len);
    CHECK_STR("old", page.entries[0].key.id);
    CHECK_STATUS(HF_CONDITION, hf_kv_set(k->scope, kv, id("old"), text(k, "x"),
                                         HF_OPTIONS(hf_kv_set_options, .if_absent = true), NULL));
    CHECK_OK(hf_kv_change(k->scope, kv, id("old"), append_x, NULL, NULL, &entry));
    CHECK_STR("{\"a\":1}x", hf_value_str(entry.value));
    CHECK_INT(32, entry.version.len);
    CHECK_OK(hf_kv_delete(k->scope, kv, id("old"), NULL, NULL));
    CHECK_OK(hf_kv_set(k->scope, kv, id("count"), text(k, "x"), NULL, NULL));
    CHECK(same("x", get(k, kv, id("count"))));
    put_raw(k, HF_ITEM(k->scope, HF_S("key", HF_STR("global.odd")), HF_N("version", 7)));
    CHECK_STATUS(HF_CORRUPT, hf_kv_get(k->scope, kv, id("odd"), NULL, &entry));
    CHECK(strstr(hf_scope_error_text(k->scope), "\"global.odd\""));
    hf_kv_close(kv);
}

/* An item without a version that changes under a change is seen to. */
KIT_TEST(kv, items_without_a_version_are_compared_by_value)
{
    struct hf_kv *kv = open_plain(k);
    struct kv_place place;
    struct kv_base base = {.kind = KV_BASE_SEEN, .seen = {.there = true, .value = text(k, "one")}};
    struct kv_content content = {.value = text(k, "x"), .version = HF_STR("v")};
    struct kv_request request;
    struct hf_item item;

    put_raw(k, HF_ITEM(k->scope, HF_S("key", HF_STR("global.old")), HF_S("data", HF_STR("two"))));
    CHECK_OK(hf__kv_place(k->scope, kv, id("old"), &place));
    hf__kv_put_request(k->scope, kv, &place, &base, &content, &request);
    CHECK_STATUS(HF_CONDITION, hf__pattern_write(k->scope, k->db,
                                                 &(struct hf_transact_write){.put = &request.put},
                                                 request.key, &item));
    base.seen.value = text(k, "two");
    hf__kv_put_request(k->scope, kv, &place, &base, &content, &request);
    CHECK_OK(hf__pattern_write(k->scope, k->db, &(struct hf_transact_write){.put = &request.put},
                               request.key, &item));
    hf_kv_close(kv);
}

/* ---- limits --------------------------------------------------------------------------------- */

static struct hf_str long_text(struct kit *k, size_t len)
{
    char *chars = hf_scope_alloc(k->scope, len + 1);

    memset(chars, 'x', len);
    chars[len] = '\0';
    return hf_str_of(chars, len);
}

KIT_TEST(kv, limits)
{
    struct hf_kv *kv = open_plain(k);
    size_t overhead = strlen("keyglobal.adataversion") + 32 + 2;
    struct hf_kv_entry entry;
    struct hf_kv_key key = id("a");

    key.id = long_text(k, HF_KV_KEY_MAX - strlen("global."));
    set(k, kv, key, "longest");
    CHECK(same("longest", get(k, kv, key)));
    key.id = long_text(k, HF_KV_KEY_MAX - strlen("global.") + 1);
    CHECK_STATUS(HF_INVALID, hf_kv_get(k->scope, kv, key, NULL, &entry));
    CHECK(strstr(hf_scope_error_text(k->scope),
                 "it has 2049 bytes with its namespace, more than 2048"));
    CHECK_STATUS(HF_INVALID, hf_kv_get(k->scope, kv, id(""), NULL, &entry));
    CHECK_STATUS(HF_INVALID, hf_kv_get(k->scope, kv, in("p", "n", "a"), NULL, &entry));
    CHECK_OK(
        hf_kv_set(k->scope, kv, id("a"),
                  hf_value_make(k->scope,
                                (struct hf_attr)HF_S("", long_text(k, KV_ITEM_MAX - overhead))),
                  NULL, NULL));
    CHECK_OK(hf_kv_delete(k->scope, kv, id("a"), NULL, NULL));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_set(k->scope, kv, id("b"),
                           hf_value_make(k->scope,
                                         (struct hf_attr)HF_S("", long_text(k, KV_ITEM_MAX -
                                                                                   overhead + 1))),
                           NULL, NULL));
    CHECK_ERROR(HF_INVALID, "key \"b\": with its value it has 409601 bytes, more than 409600",
                k->scope);
    CHECK(!get(k, kv, id("b")));
    CHECK_STATUS(HF_INVALID, hf_kv_set(k->scope, kv, id("a"), (struct hf_value){0}, NULL, NULL));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_set(k->scope, kv, id("a"), text(k, "x"),
                           HF_OPTIONS(hf_kv_set_options, .if_absent = true, .blind = true), NULL));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_set(k->scope, kv, id("a"),
                           hf_value_make(k->scope, (struct hf_attr)HF_NUM("", HF_STR("no"))), NULL,
                           NULL));
    hf_kv_close(kv);
}

KIT_TEST(kv, limits_of_partitions)
{
    struct hf_kv *kv = open_partitioned(k);
    struct hf_kv_key key = in("p", "n", "a");
    struct hf_kv_entry entry;

    key.id = long_text(k, HF_KV_SORT_MAX - 2);
    key.partition = long_text(k, HF_KV_KEY_MAX);
    set(k, kv, key, "longest");
    CHECK(same("longest", get(k, kv, key)));
    key.partition = long_text(k, HF_KV_KEY_MAX + 1);
    CHECK_STATUS(HF_INVALID, hf_kv_get(k->scope, kv, key, NULL, &entry));
    CHECK(strstr(hf_scope_error_text(k->scope), "its partition has 2049 bytes"));
    key = in("p", "n", "a");
    key.id = long_text(k, HF_KV_SORT_MAX - 1);
    CHECK_STATUS(HF_INVALID, hf_kv_get(k->scope, kv, key, NULL, &entry));
    CHECK(strstr(hf_scope_error_text(k->scope),
                 "it has 1025 bytes with its namespace, more than 1024"));
    CHECK_STATUS(HF_INVALID, hf_kv_get(k->scope, kv, id("a"), NULL, &entry));
    CHECK(strstr(hf_scope_error_text(k->scope), "key \"a\""));
    CHECK(strstr(hf_scope_error_text(k->scope), "it has no partition"));
    hf_kv_close(kv);
}

KIT_TEST(kv, a_table_of_another_kind_is_refused)
{
    struct hf_kv *kv = open_plain(k), *other;

    hf_kv_close(kv);
    CHECK_STATUS(HF_INVALID,
                 hf_kv_open(k->scope, k->db,
                            HF_OPTIONS(hf_kv_options, .table = k->table, .partitioned = true),
                            &other));
    CHECK(!other);
    CHECK_STATUS(HF_NOT_FOUND, hf_kv_open(k->scope, k->db,
                                          HF_OPTIONS(hf_kv_options, .table = HF_STR("missing"),
                                                     .no_create = true),
                                          &other));
    CHECK_STATUS(HF_INVALID, hf_kv_open(k->scope, NULL, NULL, &other));
    hf_kv_close(NULL);
}
