/*
 * kv/kv_index_test.c: a table of keys and values gets an index of namespaces while it has
 * values. (n) is an invariant of kv/kv_table.c.
 *
 * dynalite adds no index to a table that is there: its UpdateTable changes throughput only. It has
 * no transactions either, which is how KIT_TEST_TX() leaves it out.
 */
#include <holdfast/kv.h>
#include <holdfast/table.h>

#include <string.h>

#include "../db/between.h"
#include "kit.h"

#include "kv/kv.h"

static struct hf_kv_options *options(struct hf_str table)
{
    static struct hf_kv_options o;

    o = (struct hf_kv_options){.size = sizeof(o), .table = table, .any_ttl = true};
    return &o;
}

static struct hf_kv *open_kv(struct kit *k, struct hf_db *db)
{
    struct hf_kv *kv = NULL;

    CHECK_OK(hf_kv_open(k->scope, db, options(k->table), &kv));
    return kv;
}

static struct hf_kv_key in(const char *space, const char *id)
{
    return (struct hf_kv_key){.space = hf_str_from(space), .id = hf_str_from(id)};
}

static struct hf_value text(struct kit *k, const char *of)
{
    return hf_value_make(k->scope, (struct hf_attr)HF_S("", hf_str_from(of)));
}

static void set(struct kit *k, struct hf_kv *kv, const char *space, const char *id)
{
    CHECK_OK(hf_kv_set(k->scope, kv, in(space, id), text(k, id), NULL, NULL));
}

/* The ids of the namespace "n", as "a b c ", by a list that is not consistent. */
static struct hf_str ids(struct kit *k, struct hf_kv *kv)
{
    struct hf_str all = HF_STR("");
    struct hf_kv_page page;

    CHECK_OK(hf_kv_page(k->scope, kv, &(struct hf_kv_range){.space = HF_STR("n")}, NULL, &page));
    for (size_t i = 0; i < page.entries_len; i++)
        all = hf_scope_format(k->scope, "%.*s%.*s ", HF_FMT(all), HF_FMT(page.entries[i].key.id));
    return all;
}

static void drop(struct kit *k)
{
    CHECK_OK(hf_delete_table(k->scope, k->db, &(struct hf_delete_table){.table = k->table}, NULL));
    CHECK_OK(hf_table_wait(k->scope, k->db, k->table, HF_TABLE_UNTIL_GONE, NULL));
}

static struct scene {
    struct kit *k;
    int64_t scanned; /* items that Scan looked at */
    int deny;        /* which call fails; -1: none */
    int calls;
    bool denied;
    void (*before_update)(void); /* once, before a value gets its namespace */
    struct kit other;            /* for that: with a scope of its own */
} scene;

/* The database builds its index when it is looked at. */
static enum hf_status on_call(struct hf_scope *s, struct between *b, enum hf_op op,
                              const void *request, void *response)
{
    const struct hf_update_item *update = request;
    enum hf_status status;

    if (scene.calls++ == scene.deny) {
        scene.denied = true;
        return hf_scope_fail(s, HF_DENIED, "not this one");
    }
    if (op == HF_OP_DESCRIBE_TABLE)
        kit_upkeep(scene.k);
    if (op == HF_OP_UPDATE_ITEM && scene.before_update &&
        hf_str_equal(update->update, HF_STR("SET #space = :space"))) {
        void (*before)(void) = scene.before_update;

        scene.before_update = NULL;
        before();
    }
    status = between_pass(s, b, op, request, response);
    if (status == HF_OK && op == HF_OP_SCAN)
        scene.scanned += ((const struct hf_scan_result *)response)->scanned_count;
    return status;
}

static struct between scene_open(struct kit *k)
{
    struct between b = between_of(k->db);

    b.on_call = on_call;
    scene = (struct scene){.k = k, .deny = -1};
    return b;
}

static uint64_t add_index(struct kit *k, struct between *b)
{
    uint64_t added = 0;

    CHECK_OK(hf_kv_add_space_index(k->scope, &b->db, options(k->table), &added));
    return added;
}

/* (2) (3): all values are in it, none has another version, and a list reads its namespace alone. */
KIT_TEST_TX(kv_index, a_table_with_values_gets_it)
{
    struct between b = scene_open(k);
    struct hf_kv *kv = open_kv(k, &b.db);
    struct hf_kv_entry entry;

    set(k, kv, "n", "b");
    set(k, kv, "n", "gone");
    CHECK_OK(hf_kv_delete(k->scope, kv, in("n", "gone"), NULL, NULL));
    for (int i = 0; i < 40; i++)
        set(k, kv, "other", hf_scope_format(k->scope, "%d", i).ptr);
    CHECK_OK(hf_kv_set(k->scope, kv, in("n", "a"), text(k, "1"), NULL, &entry));
    CHECK_OK(
        hf_put_item(k->scope, k->db,
                    &(struct hf_put_item){.table =
                                              k->table, /* another program's, without a version */
                                          .item = HF_ITEM(k->scope, HF_S("key", HF_STR("n.c")),
                                                          HF_S("data", HF_STR("1")))},
                    NULL));
    CHECK(!hf_kv_has_space_index(kv));
    CHECK_INT(43, add_index(k, &b));
    CHECK_INT(HF_OK, hf_scope_error(k->scope)->status);
    CHECK(!hf_kv_has_space_index(kv));
    hf_kv_close(kv);
    kv = open_kv(k, &b.db);
    CHECK(hf_kv_has_space_index(kv));
    scene.scanned = 0;
    CHECK_STR("a b c ", ids(k, kv));
    CHECK_INT(0, scene.scanned);
    CHECK_OK(hf_kv_set(k->scope, kv, in("n", "a"), text(k, "2"),
                       HF_OPTIONS(hf_kv_set_options, .if_version = entry.version), NULL));
    CHECK_INT(0, add_index(k, &b));
    hf_kv_close(kv);
}

/* (4): what such a program writes is not in the index until the next call finds it. */
KIT_TEST_TX(kv_index, who_had_it_open_opens_it_again)
{
    struct between b = scene_open(k);
    struct hf_kv *before = open_kv(k, &b.db), *kv;

    set(k, before, "n", "a");
    CHECK_INT(1, add_index(k, &b));
    kv = open_kv(k, &b.db);
    set(k, before, "n", "b");
    CHECK_INT(4, ids(k, before).len); /* in no order */
    CHECK_STR("a ", ids(k, kv));
    hf_kv_close(before);
    CHECK_INT(1, add_index(k, &b));
    CHECK_STR("a b ", ids(k, kv));
    hf_kv_close(kv);
}

/* (2): whichever call fails, no list misses a value, and the next call goes on. */
KIT_TEST_TX(kv_index, adding_can_be_begun_again)
{
    bool denied = true;

    for (int at = 0; denied; at++) {
        struct between b = scene_open(k);
        struct hf_kv *kv = open_kv(k, &b.db);
        uint64_t added, more = 0;
        enum hf_status status;

        set(k, kv, "n", "a");
        set(k, kv, "n", "b");
        hf_kv_close(kv);
        scene.calls = 0;
        scene.deny = at;
        status = hf_kv_add_space_index(k->scope, &b.db, options(k->table), &added);
        denied = scene.denied;
        CHECK_INT(denied ? HF_DENIED : HF_OK, status);
        scene.deny = -1;
        kv = open_kv(k, &b.db);
        CHECK_INT(4, ids(k, kv).len);
        set(k, kv, "n", "c");
        CHECK_INT(6, ids(k, kv).len);
        hf_kv_close(kv);
        more = add_index(k, &b);
        CHECK(added + more >= 2 && added + more <= 3);
        kv = open_kv(k, &b.db);
        CHECK(hf_kv_has_space_index(kv));
        CHECK_STR("a b c ", ids(k, kv));
        hf_kv_close(kv);
        drop(k);
        CHECK(at < 60);
    }
}

/* One value is deleted, one is set again, and one comes, by a program that opened the table just
 * now. */
static void change_between(void)
{
    struct kit *k = &scene.other;
    struct hf_kv *kv = open_kv(k, k->db);

    CHECK(kv->spaced && !hf_kv_has_space_index(kv));
    CHECK_OK(hf_kv_delete(k->scope, kv, in("n", "a"), NULL, NULL));
    set(k, kv, "n", "b");
    set(k, kv, "n", "c");
    hf_kv_close(kv);
}

/* (3): what remembers a deleted key gets no namespace. */
KIT_TEST_TX(kv_index, others_work_meanwhile)
{
    struct between b = scene_open(k);
    struct hf_kv *kv = open_kv(k, &b.db);

    set(k, kv, "n", "a");
    set(k, kv, "n", "b");
    hf_kv_close(kv);
    scene.other = *k;
    scene.other.scope = kit_scope(k);
    scene.before_update = change_between;
    CHECK_INT(0, add_index(k, &b));
    kv = open_kv(k, &b.db);
    CHECK(hf_kv_has_space_index(kv));
    CHECK_STR("b c ", ids(k, kv));
    hf_kv_close(kv);
}

/* A key at the limit is in the index; one past it is found before anything was changed. */
KIT_TEST_TX(kv_index, keys_that_are_too_long_for_it)
{
    struct between b = scene_open(k);
    struct hf_kv *kv = open_kv(k, &b.db);
    struct hf_describe_table_result described;
    char id[HF_KV_SORT_MAX];
    struct hf_kv_key key = {.space = HF_STR("n"), .id = hf_str_of(id, sizeof(id) - 1)};
    uint64_t added;

    memset(id, 'x', sizeof(id));
    set(k, kv, "n", "a");
    CHECK_OK(hf_kv_set(k->scope, kv, key, text(k, "1"), NULL, NULL));
    CHECK_STATUS(HF_INVALID, hf_kv_add_space_index(k->scope, &b.db, options(k->table), &added));
    CHECK(strstr(hf_scope_error_text(k->scope), "has 1025 bytes with its namespace, and an "
                                                "index of namespaces takes at most 1024"));
    CHECK_OK(hf_describe_table(k->scope, k->db, &(struct hf_describe_table){.table = k->table},
                               &described));
    CHECK_INT(0, described.table->global_indexes_len);
    hf_kv_close(kv);
    kv = open_kv(k, &b.db);
    CHECK(!kv->spaced);
    CHECK_OK(hf_kv_delete(k->scope, kv, key, NULL, NULL));
    key.id.len--;
    CHECK_OK(hf_kv_set(k->scope, kv, key, text(k, "1"), NULL, NULL));
    CHECK_INT(2, add_index(k, &b));
    hf_kv_close(kv);
    kv = open_kv(k, &b.db);
    CHECK_INT(2 + sizeof(id) - 1, ids(k, kv).len);
    hf_kv_close(kv);
}

KIT_TEST(kv_index, tables_that_are_missing_or_have_partitions)
{
    struct between b = scene_open(k);
    struct hf_kv_options o = *options(k->table);
    struct hf_kv *kv;

    o.no_create = true;
    CHECK_STATUS(HF_NOT_FOUND, hf_kv_add_space_index(k->scope, &b.db, &o, NULL));
    CHECK_INT(0, add_index(k, &b));
    kv = open_kv(k, &b.db);
    CHECK(hf_kv_has_space_index(kv));
    hf_kv_close(kv);
    o = *options(k->other);
    o.partitioned = true;
    CHECK_STATUS(HF_NOT_FOUND, hf_kv_add_space_index(k->scope, &b.db, &o, NULL));
    CHECK_OK(hf_kv_open(k->scope, &b.db, &o, &kv));
    hf_kv_close(kv);
    CHECK_STATUS(HF_INVALID, hf_kv_add_space_index(k->scope, &b.db, &o, NULL));
    CHECK(strstr(hf_scope_error_text(k->scope), "has partitions"));
    o = *options(k->table);
    o.data_attribute = HF_STR("space");
    CHECK_STATUS(HF_INVALID, hf_kv_add_space_index(k->scope, &b.db, &o, NULL));
}
