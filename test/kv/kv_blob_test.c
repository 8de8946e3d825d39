/*
 * kv/kv_blob_test.c: values in a blob store, on every kind of database. (n) is an invariant
 * of kv_blob.c.
 */
#include <holdfast/blob.h>
#include <holdfast/engine.h>
#include <holdfast/kv.h>
#include <holdfast/prefix.h>
#include <holdfast/set.h>

#include <stdio.h>

#include "kit.h"

#include "kv/kv.h"

enum { LARGE = 500 * 1024 };

struct stage {
    struct kit *k;
    struct hf_blobs *store;
    struct hf_blobs *part;
    struct hf_kv *kv;
};

static void stage_open(struct kit *k, struct stage *st, uint32_t over)
{
    *st = (struct stage){.k = k};
    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &st->store));
    CHECK_OK(hf_blobs_part(k->scope, st->store, k->table, &st->part));
    CHECK_OK(hf_kv_open(k->scope, k->db,
                        HF_OPTIONS(hf_kv_options, .table = k->table, .consistent = true,
                                   .any_ttl = true, .blobs = st->store, .blob_over = over),
                        &st->kv));
}

static void stage_close(struct stage *st)
{
    hf_kv_close(st->kv);
    hf_blobs_close(st->part);
    hf_blobs_close(st->store);
}

static struct hf_value text_of(struct kit *k, char c, size_t len)
{
    char *text = hf_scope_alloc(k->scope, len + 1);

    CHECK(text != NULL);
    memset(text, c, len);
    return hf_value_make(k->scope, (struct hf_attr)HF_S("", hf_str_of(text, len)));
}

static struct hf_kv_key key(const char *id)
{
    return hf_kv_id(hf_str_from(id));
}

static void set(struct stage *st, const char *id, struct hf_value value)
{
    CHECK_OK(hf_kv_set(st->k->scope, st->kv, key(id), value, NULL, NULL));
}

static struct hf_kv_entry get(struct stage *st, const char *id)
{
    struct hf_kv_entry entry;

    CHECK_OK(hf_kv_get(st->k->scope, st->kv, key(id), NULL, &entry));
    return entry;
}

static enum hf_status count_one(struct hf_scope *s, const struct hf_blob_info *blob, void *user)
{
    (void)s;
    (void)blob;
    ++*(size_t *)user;
    return HF_OK;
}

static size_t blobs_len(struct stage *st)
{
    size_t len = 0;

    CHECK_OK(hf_blobs_list(st->k->scope, st->part, count_one, &len));
    return len;
}

static uint64_t sweep(struct stage *st)
{
    uint64_t removed;

    test_advance_ms(st->k->t, 100 * 1000);
    CHECK_OK(hf_kv_sweep_blobs(st->k->scope, st->kv, 60, &removed));
    return removed;
}

/* Every type comes back as it was. */
KIT_TEST(kv_blob, values_of_all_types)
{
    struct hf_value large = text_of(k, 'x', LARGE);
    struct hf_value values[6];
    struct stage st;

    stage_open(k, &st, 0);
    values[0] = large;
    values[1] = hf_value_make(k->scope, (struct hf_attr)HF_B("", hf_bytes_of(large.ptr, LARGE)));
    values[2] = hf_item_value(
        HF_ITEM(k->scope, HF_V("text", large), HF_N("number", 42),
                HF_M("inner", HF_ITEM(k->scope, HF_BOOL("yes", true), HF_NULL("nothing")))));
    {
        struct hf_attr list[] = {HF_V("", large), HF_N("", 7)};

        values[3] = hf_list_make(k->scope, list, 2);
    }
    values[4] = hf_value_make(k->scope, (struct hf_attr)HF_NULL("")); /* small, and a NULL */
    values[5] = text_of(k, 'y', 10);
    for (int i = 0; i < 6; i++) {
        const char *id = hf_scope_format(k->scope, "key-%d", i).ptr;

        set(&st, id, values[i]);
        CHECK(hf_value_equal(values[i], get(&st, id).value));
    }
    CHECK_INT(4, blobs_len(&st));
    stage_close(&st);
}

KIT_TEST(kv_blob, threshold_at_and_past)
{
    struct hf_get_item get_item = {.table = k->table, .consistent = HF_YES};
    struct hf_get_item_result got;
    struct hf_kv *other;
    struct stage st;
    size_t size;

    stage_open(k, &st, 2000);
    set(&st, "a", text_of(k, 'x', 1000));
    get_item.key = HF_ITEM(k->scope, HF_S("key", HF_STR("global.a")));
    CHECK_OK(hf_get_item(k->scope, k->db, &get_item, &got));
    size = hf_item_size(got.item);
    CHECK_OK(hf_kv_delete(k->scope, st.kv, key("a"), NULL, NULL));
    CHECK_INT(0, blobs_len(&st));
    /* New keys, so that versions have the same length. */
    set(&st, "b", text_of(k, 'x', 3000 - size));
    CHECK_INT(0, blobs_len(&st));
    set(&st, "c", text_of(k, 'x', 3001 - size));
    CHECK_INT(1, blobs_len(&st));
    CHECK_INT(3001 - size, hf_value_str(get(&st, "c").value).len);
    CHECK_STATUS(HF_INVALID, hf_kv_open(k->scope, k->db,
                                        HF_OPTIONS(hf_kv_options, .table = k->table,
                                                   .blobs = st.store, .blob_over = 400 * 1024 + 1),
                                        &other));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_open(k->scope, k->db,
                            HF_OPTIONS(hf_kv_options, .table = k->table, .blobs = st.store,
                                       .data_attribute = HF_STR("blob")),
                            &other));
    stage_close(&st);
}

static enum hf_status append(struct hf_scope *s, const struct hf_kv_entry *now,
                             struct hf_value *value, void *user)
{
    struct hf_str old = hf_value_str(now->value);

    (void)user;
    *value = hf_value_make(s, (struct hf_attr)HF_S("", hf_scope_format(s, "%.*s!", HF_FMT(old))));
    return hf_scope_built(s);
}

/* Everything that hands out a value has the whole of it. */
KIT_TEST(kv_blob, all_calls_see_the_value)
{
    const struct hf_kv_key keys[] = {key("a"), key("none"), key("b")};
    struct hf_kv_entry entry, made;
    struct hf_kv_many many;
    struct hf_kv_list *list;
    struct stage st;
    bool exists;

    stage_open(k, &st, 0);
    CHECK_OK(hf_kv_set_many(
        k->scope, st.kv,
        (const struct hf_kv_pair[]){{.key = keys[0], .value = text_of(k, 'a', LARGE)},
                                    {.key = keys[2], .value = text_of(k, 'b', 10)}},
        2, NULL, NULL));
    CHECK_OK(hf_kv_get_many(k->scope, st.kv, keys, 3, NULL, &many));
    CHECK_INT(LARGE, hf_value_str(many.entries[0].value).len);
    CHECK(!many.entries[1].value.ptr);
    CHECK_INT(10, hf_value_str(many.entries[2].value).len);
    CHECK_OK(hf_kv_exists(k->scope, st.kv, keys[0], NULL, &exists));
    CHECK(exists);
    CHECK_OK(hf_kv_list_open(k->scope, st.kv, NULL, NULL, &list));
    for (size_t sum = 0;;) {
        CHECK_OK(hf_kv_list_next(k->scope, list, &entry));
        if (!entry.value.ptr) {
            CHECK_INT(LARGE + 10, sum);
            break;
        }
        sum += hf_value_str(entry.value).len;
    }
    hf_kv_list_free(list);
    CHECK_OK(hf_kv_change(k->scope, st.kv, keys[0], append, NULL, NULL, &made));
    CHECK_INT(LARGE + 1, hf_value_str(made.value).len);
    CHECK_INT(LARGE + 1, hf_value_str(get(&st, "a").value).len);
    CHECK_STATUS(HF_CONDITION, hf_kv_set(k->scope, st.kv, keys[0], text_of(k, 'z', 1),
                                         HF_OPTIONS(hf_kv_set_options, .if_absent = true), &entry));
    CHECK_INT(LARGE + 1, hf_value_str(entry.value).len);
    CHECK_STATUS(HF_CONDITION,
                 hf_kv_set(k->scope, st.kv, keys[0], text_of(k, 'z', 1),
                           HF_OPTIONS(hf_kv_set_options, .if_version = HF_STR("no")), &entry));
    CHECK_INT(HF_CONDITION, hf_scope_error(k->scope)->status);
    CHECK_INT(LARGE + 1, hf_value_str(entry.value).len);
    CHECK_OK(hf_kv_delete(k->scope, st.kv, keys[0], NULL, &entry));
    CHECK_INT(LARGE + 1, hf_value_str(entry.value).len);
    CHECK(!get(&st, "a").value.ptr);
    stage_close(&st);
}

/* ---- failures ------------------------------------------------------------------------------- */

KIT_TEST(kv_blob, without_a_store_and_without_the_blob)
{
    struct hf_kv_entry entry;
    struct hf_kv *without;
    struct stage st;
    uint64_t removed;

    stage_open(k, &st, 0);
    set(&st, "a", text_of(k, 'a', LARGE));
    CHECK_OK(hf_kv_open(k->scope, k->db, HF_OPTIONS(hf_kv_options, .table = k->table), &without));
    CHECK_STATUS(HF_UNSUPPORTED, hf_kv_get(k->scope, without, key("a"), NULL, &entry));
    CHECK(!entry.value.ptr);
    CHECK_STATUS(HF_INVALID,
                 hf_kv_set(k->scope, without, key("b"), text_of(k, 'a', LARGE), NULL, NULL));
    CHECK_STATUS(HF_INVALID, hf_kv_sweep_blobs(k->scope, without, 0, &removed));
    hf_kv_close(without);
    {
        struct hf_get_item_result got;

        CHECK_OK(hf_get_item(k->scope, k->db,
                             &(struct hf_get_item){.table = k->table,
                                                   .key = HF_ITEM(k->scope,
                                                                  HF_S("key", HF_STR("global.a"))),
                                                   .consistent = HF_YES},
                             &got));
        CHECK_OK(
            hf_blob_delete(k->scope, st.part, hf_value_str(hf_item_get(got.item, HF_STR("blob")))));
    }
    CHECK_STATUS(HF_CORRUPT, hf_kv_get(k->scope, st.kv, key("a"), NULL, &entry));
    CHECK(strstr(hf_scope_error_text(k->scope), "key \"a\" of table "));
    set(&st, "a", text_of(k, 'b', LARGE)); /* and is set again */
    CHECK_INT(LARGE, hf_value_str(get(&st, "a").value).len);
    stage_close(&st);
}

/* (1): a write that failed leaves its blob, which is used when it is tried again, or swept. */
KIT_TEST(kv_blob, nothing_is_lost_on_retries)
{
    struct stage st;

    stage_open(k, &st, 0);
    kit_fault(k, HF_FAULT_ERROR, "PutItem", 0);
    CHECK(hf_kv_set(k->scope, st.kv, key("a"), text_of(k, 'a', LARGE), NULL, NULL) != HF_OK);
    kit_no_faults(k);
    CHECK_INT(1, blobs_len(&st));
    test_advance_ms(k->t, 90 * 1000);
    set(&st, "a", text_of(k, 'a', LARGE));
    CHECK_INT(0, sweep(&st));
    CHECK_INT(LARGE, hf_value_str(get(&st, "a").value).len);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "PutItem", 1);
    set(&st, "a", text_of(k, 'b', LARGE));
    kit_no_faults(k);
    CHECK_INT('b', hf_value_str(get(&st, "a").value).ptr[0]);
    CHECK_INT(1, sweep(&st)); /* the first one */
    CHECK_INT('b', hf_value_str(get(&st, "a").value).ptr[0]);
    stage_close(&st);
}

KIT_TEST(kv_blob, a_sweep_takes_what_no_key_has)
{
    struct hf_str digest;
    struct stage st;

    stage_open(k, &st, 0);
    CHECK_OK(hf_blob_put(k->scope, st.part, hf_bytes_of("orphan", 6), &digest));
    for (int i = 0; i < 5; i++)
        set(&st, hf_scope_format(k->scope, "key-%d", i).ptr, text_of(k, (char)('a' + i), LARGE));
    set(&st, "same", text_of(k, 'a', LARGE));
    CHECK_INT(6, blobs_len(&st));
    CHECK_INT(1, sweep(&st));
    CHECK_OK(hf_kv_delete(k->scope, st.kv, key("key-0"), NULL, NULL)); /* "same" has it still */
    CHECK_OK(hf_kv_delete(k->scope, st.kv, key("key-1"), NULL, NULL));
    set(&st, "key-2", text_of(k, 'z', 5));
    CHECK_INT(2, sweep(&st));
    CHECK_INT(3, blobs_len(&st));
    CHECK_INT(LARGE, hf_value_str(get(&st, "same").value).len);
    CHECK_INT(LARGE, hf_value_str(get(&st, "key-4").value).len);
    stage_close(&st);
}

/* (3): what was read names a blob that is gone by the time it is fetched. */
KIT_TEST(kv_blob, a_late_reader_reads_again)
{
    struct kv_place place;
    struct kv_view view;
    struct hf_get_item_result got;
    struct stage st;

    stage_open(k, &st, 0);
    set(&st, "a", text_of(k, 'a', LARGE));
    CHECK_OK(hf__kv_place(k->scope, st.kv, key("a"), &place));
    CHECK_OK(hf_get_item(k->scope, k->db,
                         &(struct hf_get_item){.table = k->table,
                                               .key = hf__kv_item_key(k->scope, st.kv, place.hash,
                                                                      place.sort),
                                               .consistent = HF_YES},
                         &got));
    CHECK_OK(hf__kv_view(k->scope, st.kv, got.item, &view));
    set(&st, "a", text_of(k, 'b', LARGE + 1));
    CHECK_INT(1, sweep(&st));
    CHECK_OK(hf__kv_load(k->scope, st.kv, &place, &view));
    CHECK_INT(LARGE + 1, hf_value_str(view.value).len);
    /* Or it is gone as a whole. */
    CHECK_OK(hf__kv_view(k->scope, st.kv, got.item, &view));
    CHECK_OK(hf_kv_delete(k->scope, st.kv, key("a"), NULL, NULL));
    CHECK_OK(hf__kv_load(k->scope, st.kv, &place, &view));
    CHECK(!view.live);
    stage_close(&st);
}

/* Tables of the same name behind two prefixes have one blob store. */
TEST(kv_blob, prefixes_that_share_a_blob_store)
{
    struct kit k = {.t = t, .scope = hf_scope_new(test_env(t))};
    struct stage stages[2];
    struct hf_blobs *blobs;
    struct hf_db *dbs[2];

    CHECK_OK(hf_blobs_open(k.scope, HF_STR("memory:"), NULL, &blobs));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hf_open(k.scope, HF_STR("memory:"),
                         HF_OPTIONS(hf_engine_options, .env = test_env(t)), &dbs[i]));
        CHECK_OK(hf_prefix_open(k.scope, dbs[i], hf_scope_format(k.scope, "p%d-", i), &dbs[i]));
        stages[i] = (struct stage){.k = &k};
        CHECK_OK(hf_kv_open(k.scope, dbs[i],
                            HF_OPTIONS(hf_kv_options, .table = HF_STR("kv"), .blobs = blobs),
                            &stages[i].kv));
        set(&stages[i], "a", text_of(&k, (char)('x' + i), LARGE));
    }
    for (int i = 0; i < 2; i++)
        CHECK_INT(0, sweep(&stages[i]));
    for (int i = 0; i < 2; i++) {
        CHECK_INT(LARGE, hf_value_str(get(&stages[i], "a").value).len);
        hf_kv_close(stages[i].kv);
        hf_db_close(dbs[i]);
    }
    hf_blobs_close(blobs);
    hf_scope_free(k.scope);
}
