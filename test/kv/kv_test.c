/*
 * kv/kv_test.c: keys and values, one feature at a time, on every kind of database, by a
 * virtual clock. (n) is an invariant of kv/kv.c unless another file is named.
 */
#include <holdfast/kv.h>

#include <stdio.h>

#include "kit.h"

#include "kv/kv.h"

static struct hf_kv *open_with(struct kit *k, struct hf_kv_options options)
{
    struct hf_kv *kv;

    options.size = sizeof(options);
    options.table = k->table;
    options.any_ttl = true; /* the clock of a database that is not ours is another one */
    CHECK_OK(hf_kv_open(k->scope, k->db, &options, &kv));
    return kv;
}

static struct hf_kv *open_plain(struct kit *k)
{
    return open_with(k, (struct hf_kv_options){.consistent = true});
}

static struct hf_kv *open_partitioned(struct kit *k)
{
    return open_with(k, (struct hf_kv_options){.consistent = true, .partitioned = true});
}

static struct hf_kv_key id(const char *text)
{
    return hf_kv_id(hf_str_from(text));
}

static struct hf_kv_key in(const char *partition, const char *space, const char *text)
{
    return hf_kv_in(hf_str_from(partition), hf_str_from(space), hf_str_from(text));
}

static struct hf_value text(struct kit *k, const char *chars)
{
    return hf_value_make(k->scope, (struct hf_attr)HF_S("", hf_str_from(chars)));
}

static void set(struct kit *k, struct hf_kv *kv, struct hf_kv_key key, const char *chars)
{
    CHECK_OK(hf_kv_set(k->scope, kv, key, text(k, chars), NULL, NULL));
}

/* What is there, as text; NULL: nothing is. */
static const char *get(struct kit *k, struct hf_kv *kv, struct hf_kv_key key)
{
    struct hf_kv_entry entry;

    CHECK_OK(hf_kv_get(k->scope, kv, key, NULL, &entry));
    CHECK(!entry.value.ptr == !entry.version.ptr);
    return entry.value.ptr ? hf_scope_copy(k->scope, hf_value_str(entry.value)).ptr : NULL;
}

static struct hf_str version(struct kit *k, struct hf_kv *kv, struct hf_kv_key key)
{
    struct hf_kv_entry entry;

    CHECK_OK(hf_kv_get(k->scope, kv, key, NULL, &entry));
    CHECK(entry.version.len >= 32);
    return entry.version;
}

static bool same(const char *expected, const char *actual)
{
    return expected && actual ? strcmp(expected, actual) == 0 : expected == actual;
}

static struct hf_item raw(struct kit *k, struct hf_item key)
{
    struct hf_item item;

    CHECK_OK(hf__pattern_read(k->scope, k->db, k->table, key, &item));
    return item;
}

static void put_raw(struct kit *k, struct hf_item item)
{
    CHECK_OK(
        hf_put_item(k->scope, k->db, &(struct hf_put_item){.table = k->table, .item = item}, NULL));
}

static uint64_t struck(struct kit *k)
{
    const struct hf_fault *faults;
    size_t len;

    CHECK_OK(hf_faulty_get(k->scope, k->db, &faults, &len));
    return len ? faults[0].struck : 0;
}

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

static enum hf_status append_x(struct hf_scope *s, const struct hf_kv_entry *now,
                               struct hf_value *value, void *user)
{
    (void)user;
    *value = hf_value_make(
        s, (struct hf_attr)HF_S("", hf_scope_format(s, "%.*sx", HF_FMT(hf_value_str(now->value)))));
    return HF_OK;
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
