/*
 * kv/kv_space_test.c: tables of keys and values with an index of namespaces: what lists read,
 * that no value is missing there, and that other tables are not taken for such. (5) is an invariant
 * of kv/kv_item.c. How a table gets the index later: kv_index_test.c.
 */
#include <holdfast/kv.h>
#include <holdfast/set.h>
#include <holdfast/table.h>

#include <string.h>

#include "../db/between.h"
#include "kit.h"

#include "kv/kv.h"

enum { FEW = 5, MANY = 150 };

static enum hf_status open_in(struct hf_scope *s, struct hf_db *db, struct hf_str table, bool index,
                              struct hf_kv **kv)
{
    return hf_kv_open(s, db,
                      HF_OPTIONS(hf_kv_options, .table = table, .any_ttl = true,
                                 .space_index = index),
                      kv);
}

static struct hf_kv *open_spaced(struct kit *k, struct hf_db *db)
{
    struct hf_kv *kv = NULL;

    CHECK_OK(open_in(k->scope, db, k->table, true, &kv));
    CHECK(kv->spaced && hf_kv_has_space_index(kv));
    return kv;
}

static struct hf_kv_key in(const char *space, struct hf_str id)
{
    return (struct hf_kv_key){.space = hf_str_from(space), .id = id};
}

static struct hf_value text(struct kit *k, const char *of)
{
    return hf_value_make(k->scope, (struct hf_attr)HF_S("", hf_str_from(of)));
}

static void set(struct kit *k, struct hf_kv *kv, const char *space, const char *id)
{
    CHECK_OK(hf_kv_set(k->scope, kv, in(space, hf_str_from(id)), text(k, id), NULL, NULL));
}

/* FEW keys of "few", from "0" on, and many of "many". */
static void fill(struct kit *k, struct hf_kv *kv)
{
    struct hf_kv_pair pairs[MANY];

    for (int i = 0; i < MANY; i++)
        pairs[i] = (struct hf_kv_pair){.key = in(i < FEW ? "few" : "many",
                                                 hf_scope_format(k->scope, "%d", i)),
                                       .value = text(k, "x")};
    CHECK_OK(hf_kv_set_many(k->scope, kv, pairs, MANY, NULL, NULL));
}

/* The ids of a list, as "a b c ". */
static struct hf_str ids(struct kit *k, struct hf_kv *kv, struct hf_kv_range range,
                         const struct hf_kv_list_options *options)
{
    struct hf_str all = HF_STR("");
    struct hf_kv_entry entry;
    struct hf_kv_list *list;

    CHECK_OK(hf_kv_list_open(k->scope, kv, &range, options, &list));
    for (;;) {
        CHECK_OK(hf_kv_list_next(k->scope, list, &entry));
        if (!entry.value.ptr)
            break;
        all = hf_scope_format(k->scope, "%.*s%.*s ", HF_FMT(all), HF_FMT(entry.key.id));
    }
    hf_kv_list_free(list);
    return all;
}

static struct hf_kv_range space(const char *name)
{
    return (struct hf_kv_range){.space = hf_str_from(name)};
}

/* ---- what is read --------------------------------------------------------------------------- */

static struct reading {
    int64_t scanned, queried, got;
} reading;

/* Count the items that each call looks at. */
static enum hf_status counted(struct hf_scope *s, struct between *b, enum hf_op op,
                              const void *request, void *response)
{
    enum hf_status status = between_pass(s, b, op, request, response);

    if (status == HF_OK && op == HF_OP_SCAN)
        reading.scanned += ((const struct hf_scan_result *)response)->scanned_count;
    if (status == HF_OK && op == HF_OP_QUERY)
        reading.queried += ((const struct hf_query_result *)response)->scanned_count;
    if (status == HF_OK && op == HF_OP_BATCH_GET_ITEM)
        for (size_t i = 0; i < ((const struct hf_batch_get_item *)request)->tables_len; i++)
            reading.got += (int64_t)((const struct hf_batch_get_item *)request)->tables[i].keys_len;
    return status;
}

static void check_read(int64_t scanned, int64_t queried, int64_t got)
{
    CHECK_INT(scanned, reading.scanned);
    CHECK_INT(queried, reading.queried);
    CHECK_INT(got, reading.got);
    reading = (struct reading){0};
}

KIT_TEST(kv_space, a_list_reads_its_namespace_and_nothing_else)
{
    struct between b = between_of(k->db);
    struct hf_kv_range range = space("few");
    struct hf_kv *kv;

    b.on_call = counted;
    kv = open_spaced(k, &b.db);
    fill(k, kv);
    reading = (struct reading){0};
    CHECK_STR("0 1 2 3 4 ", ids(k, kv, range, NULL));
    check_read(0, FEW, FEW);
    CHECK_STR("4 3 2 1 0 ", ids(k, kv, range, HF_OPTIONS(hf_kv_list_options, .backward = true)));
    check_read(0, FEW, FEW);
    range.prefix = HF_STR("3");
    CHECK_STR("3 ", ids(k, kv, range, NULL));
    check_read(0, 1, 1);
    range =
        (struct hf_kv_range){.space = HF_STR("few"), .from = HF_STR("1"), .before = HF_STR("3")};
    CHECK_STR("1 2 ", ids(k, kv, range, NULL));
    CHECK(reading.queried <= 3); /* BETWEEN has its end in it */
    reading = (struct reading){0};
    CHECK_STR("", ids(k, kv, space("none"), NULL));
    check_read(0, 0, 0);
    hf_kv_close(kv);
}

/* What is to be consistent is not read from an index; the mark is one more item. */
KIT_TEST(kv_space, consistent_lists_read_the_table)
{
    struct between b = between_of(k->db);
    struct hf_kv_list_options *now = HF_OPTIONS(hf_kv_list_options, .consistent = HF_YES);
    struct hf_kv_list *list;
    uint64_t cleared;
    struct hf_kv *kv;

    b.on_call = counted;
    kv = open_spaced(k, &b.db);
    fill(k, kv);
    reading = (struct reading){0};
    CHECK_INT(FEW * 2, ids(k, kv, space("few"), now).len);
    check_read(MANY + 1, 0, 0);
    now->backward = true;
    CHECK_STATUS(HF_INVALID, hf_kv_list_open(k->scope, kv, &(struct hf_kv_range){0}, now, &list));
    CHECK(strstr(hf_scope_error_text(k->scope), "consistent lists do not use"));
    CHECK_OK(hf_kv_clear(k->scope, kv,
                         &(struct hf_kv_range){.space = HF_STR("few"), .prefix = HF_STR("0")}, NULL,
                         &cleared));
    CHECK_INT(1, cleared);
    CHECK(reading.scanned > MANY);
    reading = (struct reading){0};
    for (int exact = 0; exact < 2; exact++) {
        struct hf_kv_range range = {.space = HF_STR("few"),
                                    .prefix = exact ? HF_STR("") : HF_STR("1")};

        CHECK_OK(hf_kv_clear(k->scope, kv, &range,
                             HF_OPTIONS(hf_kv_clear_options, .exact = exact, .eventual = true),
                             &cleared));
        CHECK_INT(exact ? FEW - 2 : 1, cleared);
        check_read(0, exact ? FEW - 2 : 1, exact ? FEW - 2 : 1);
    }
    CHECK_STR("", ids(k, kv, space("few"), NULL));
    CHECK_OK(hf_kv_clear(k->scope, kv, &(struct hf_kv_range){.all_spaces = true}, NULL, &cleared));
    CHECK_INT(MANY - FEW, cleared);
    hf_kv_close(kv);
    kv = open_spaced(k, k->db); /* the mark is there still */
    hf_kv_close(kv);
}

/* ---- no value is missing (5) ---------------------------------------------------------------- */

static enum hf_status change(struct hf_scope *s, const struct hf_kv_entry *now,
                             struct hf_value *value, void *user)
{
    (void)now, (void)user;
    *value = hf_value_make(s, (struct hf_attr)HF_N("", 2));
    return HF_OK;
}

/* By whichever call a value was stored, and by whoever opens the table without the option. */
KIT_TEST(kv_space, all_writes_are_in_the_index)
{
    struct hf_kv *made = open_spaced(k, k->db), *kv;
    struct hf_value member = text(k, "m");
    struct hf_transact_write action;

    CHECK_OK(open_in(k->scope, k->db, k->table, false, &kv));
    CHECK(kv->spaced);
    set(k, kv, "n", "a");
    CHECK_OK(hf_kv_set(k->scope, kv, in("n", HF_STR("b")), text(k, "1"),
                       HF_OPTIONS(hf_kv_set_options, .blind = true), NULL));
    CHECK_OK(hf_kv_set(k->scope, kv, in("n", HF_STR("c")), text(k, "1"),
                       HF_OPTIONS(hf_kv_set_options, .if_absent = true, .ttl_s = 60), NULL));
    CHECK_OK(hf_kv_change(k->scope, kv, in("n", HF_STR("d")), change, NULL, NULL, NULL));
    CHECK_OK(hf_kv_set_tx(k->scope, kv, in("n", HF_STR("e")), text(k, "1"), NULL, &action, NULL));
    CHECK_OK(hf_put_item(k->scope, k->db, action.put, NULL));
    CHECK_OK(hf_set_add(k->scope, kv, in("n", HF_STR("s")), &member, 1, NULL, NULL));
    set(k, kv, "n", "a");
    set(k, kv, "n.", "f");
    set(k, kv, "", "n.g");
    set(k, kv, "n/", "h");
    CHECK_STR("a b c d e s ", ids(k, made, space("n"), NULL));
    CHECK_STR("f ", ids(k, made, space("n."), NULL));
    CHECK_STR("n.g ", ids(k, made, space(""), NULL));
    CHECK_STR("h ", ids(k, made, space("n/"), NULL));
    CHECK_OK(hf_kv_delete(k->scope, kv, in("n", HF_STR("a")), NULL, NULL));
    CHECK_STR("b c d e s ", ids(k, made, space("n"), NULL));
    test_advance_ms(k->t, 61000);
    CHECK_STR("b d e s ", ids(k, made, space("n"), NULL));
    set(k, kv, "n", "a");
    CHECK_STR("a b d e s ", ids(k, made, space("n"), NULL));
    hf_kv_close(kv);
    hf_kv_close(made);
}

static struct hf_kv *deleter;

/* A key is deleted when the index was read and its item was not. */
static enum hf_status delete_between(struct hf_scope *s, struct between *b, enum hf_op op,
                                     const void *request, void *response)
{
    if (op == HF_OP_BATCH_GET_ITEM)
        CHECK_OK(hf_kv_delete(b->own, deleter, in("n", HF_STR("a")), NULL, NULL));
    return between_pass(s, b, op, request, response);
}

/* What an index still has is not taken for what is there; what remembers a deleted key stays. */
KIT_TEST(kv_space, an_index_that_is_behind)
{
    struct between b = between_of(k->db);
    struct hf_item key = HF_ITEM(k->scope, HF_S("key", HF_STR("n.a")));
    struct hf_get_item_result got;
    struct hf_kv *kv;
    uint64_t cleared;

    b.own = kit_scope(k);
    deleter = open_spaced(k, k->db);
    kv = open_spaced(k, &b.db);
    for (int round = 0; round < 2; round++) {
        set(k, deleter, "n", "a");
        set(k, deleter, "n", "b");
        b.on_call = delete_between;
        if (round)
            CHECK_OK(hf_kv_clear(k->scope, kv, &(struct hf_kv_range){.space = HF_STR("n")},
                                 HF_OPTIONS(hf_kv_clear_options, .eventual = true), &cleared));
        else
            CHECK_STR("b ", ids(k, kv, space("n"), NULL));
        b.on_call = NULL;
        CHECK_OK(hf_get_item(k->scope, k->db, &(struct hf_get_item){.table = k->table, .key = key},
                             &got));
        CHECK(got.item.ptr && !hf_item_get(got.item, HF_STR("data")).ptr);
    }
    CHECK_INT(1, cleared);
    hf_kv_close(kv);
    hf_kv_close(deleter);
}

/* ---- pages ---------------------------------------------------------------------------------- */

KIT_TEST(kv_space, cursors_of_the_index)
{
    struct hf_kv *kv = open_spaced(k, k->db);
    struct hf_kv_page page, whole;
    struct hf_kv_list *list;

    fill(k, kv);
    for (uint32_t limit = 1; limit <= FEW + 1; limit++) {
        struct hf_kv_list_options o = {.size = sizeof(o), .limit = limit, .page = limit % 3};
        struct hf_kv_range range = space("few");
        size_t seen = 0, pages = 0;

        do {
            CHECK_OK(hf_kv_page(k->scope, kv, &range, &o, &page));
            for (size_t i = 0; i < page.entries_len; i++)
                CHECK_INT('0' + (int)seen++, page.entries[i].key.id.ptr[0]);
            o.after = page.next;
            CHECK(++pages <= FEW + 1);
        } while (page.next.ptr);
        CHECK_INT(FEW, seen);
    }
    /* The orders of table and index differ: the cursor of one is none of the other. */
    CHECK_OK(hf_kv_page(k->scope, kv, &(struct hf_kv_range){.space = HF_STR("many")},
                        HF_OPTIONS(hf_kv_list_options, .limit = 2), &page));
    CHECK_OK(hf_kv_page(k->scope, kv, &(struct hf_kv_range){.space = HF_STR("many")},
                        HF_OPTIONS(hf_kv_list_options, .limit = 2, .page = 5, .consistent = HF_YES),
                        &whole));
    CHECK(page.next.ptr && whole.next.ptr);
    CHECK_STATUS(HF_INVALID,
                 hf_kv_list_open(k->scope, kv, &(struct hf_kv_range){.space = HF_STR("many")},
                                 HF_OPTIONS(hf_kv_list_options, .after = whole.next), &list));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_list_open(k->scope, kv, &(struct hf_kv_range){.space = HF_STR("many")},
                                 HF_OPTIONS(hf_kv_list_options, .after = page.next,
                                            .consistent = HF_YES),
                                 &list));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_list_open(k->scope, kv, &(struct hf_kv_range){.space = HF_STR("few")},
                                 HF_OPTIONS(hf_kv_list_options, .after = page.next), &list));
    hf_kv_close(kv);
}

/* More than a page of the index; and a step that failed is made again. */
KIT_TEST(kv_space, a_failed_step_can_be_tried_again)
{
    struct hf_kv *kv = open_spaced(k, k->db);
    struct hf_kv_range range = space("many");
    struct hf_kv_entry entry;
    struct hf_kv_list *list;
    int len = 0, failures = 0;

    fill(k, kv);
    CHECK_OK(hf_kv_list_open(k->scope, kv, &range, NULL, &list));
    for (;;) {
        if (len % 100 == 0)
            kit_fault(k, HF_FAULT_ERROR, len ? "BatchGetItem" : "Query", 1);
        if (hf_kv_list_next(k->scope, list, &entry) != HF_OK) {
            failures++;
            kit_no_faults(k);
            CHECK_OK(hf_kv_list_next(k->scope, list, &entry));
        }
        if (!entry.value.ptr)
            break;
        len++;
    }
    kit_no_faults(k);
    CHECK_INT(MANY - FEW, len);
    CHECK(failures >= 1);
    hf_kv_list_free(list);
    hf_kv_close(kv);
}

/* ---- tables --------------------------------------------------------------------------------- */

/* The table alone, without a mark; `range` is the range key of the index, NULL: it has none. */
static void make_table(struct kit *k, const char *range)
{
    const struct hf_attribute_definition attributes[] = {{HF_STR("key"), HF_SCALAR_S},
                                                         {HF_STR("space"), HF_SCALAR_S}};
    const struct hf_key_element key = {HF_STR("key"), HF_KEY_HASH};
    const struct hf_key_element index_key[] = {{HF_STR("space"), HF_KEY_HASH},
                                               {hf_str_from(range), HF_KEY_RANGE}};
    const struct hf_projection keys_only = {.type = HF_PROJECT_KEYS_ONLY};
    const struct hf_index index = {.name = HF_STR("spaces"),
                                   .key_schema = index_key,
                                   .key_schema_len = range ? 2 : 1,
                                   .projection = &keys_only};
    const struct hf_create_table spec = {.table = k->table,
                                         .attributes = attributes,
                                         .attributes_len = 2,
                                         .key_schema = &key,
                                         .key_schema_len = 1,
                                         .global_indexes = &index,
                                         .global_indexes_len = 1};

    CHECK_OK(hf_table_ensure(k->scope, k->db, &spec, NULL));
}

/* A table that is marked as one without it is one without, also if it has an index of that form:
 * values that were there before are not in it. */
KIT_TEST(kv_space, a_table_that_was_made_without_is_scanned)
{
    for (int has = 0; has < 2; has++) {
        struct hf_kv *kv, *other;

        if (has)
            make_table(k, "key");
        CHECK_OK(
            hf_kv_open(k->scope, k->db,
                       HF_OPTIONS(hf_kv_options, .table = k->table, .any_ttl = true, .adopt = has),
                       &kv));
        CHECK(!kv->spaced);
        set(k, kv, "n", "a");
        CHECK_STATUS(HF_INVALID, open_in(k->scope, k->db, k->table, true, &other));
        CHECK(strstr(hf_scope_error_text(k->scope), "has no index of namespaces with all of its"));
        CHECK(strstr(hf_scope_error_text(k->scope), "open it without space_index"));
        CHECK_OK(open_in(k->scope, k->db, k->table, false, &other));
        CHECK(!other->spaced);
        CHECK_STR("a ", ids(k, other, space("n"), NULL));
        hf_kv_close(other);
        hf_kv_close(kv);
        CHECK_OK(
            hf_delete_table(k->scope, k->db, &(struct hf_delete_table){.table = k->table}, NULL));
        CHECK_OK(hf_table_wait(k->scope, k->db, k->table, HF_TABLE_UNTIL_GONE, NULL));
    }
}

KIT_TEST(kv_space, an_index_of_another_form_is_not_used)
{
    struct hf_kv *kv;

    make_table(k, NULL);
    CHECK_STATUS(HF_INVALID, open_in(k->scope, k->db, k->table, true, &kv));
    CHECK_OK(open_in(k->scope, k->db, k->table, false, &kv));
    CHECK(!kv->spaced);
    set(k, kv, "n", "a");
    CHECK_STR("a ", ids(k, kv, space("n"), NULL));
    hf_kv_close(kv);
}

/* Who adopts a table may find values of others in it. */
KIT_TEST(kv_space, who_adopts_does_without)
{
    struct hf_kv *kv;

    make_table(k, "key");
    CHECK_STATUS(HF_INVALID,
                 hf_kv_open(k->scope, k->db,
                            HF_OPTIONS(hf_kv_options, .table = k->table, .any_ttl = true,
                                       .adopt = true, .space_index = true),
                            &kv));
    CHECK(strstr(hf_scope_error_text(k->scope), "exclude each other"));
    CHECK_OK(
        hf_kv_open(k->scope, k->db,
                   HF_OPTIONS(hf_kv_options, .table = k->table, .any_ttl = true, .adopt = true),
                   &kv));
    CHECK(!kv->spaced);
    hf_kv_close(kv);
}

static struct race {
    struct hf_str table;
    int at, calls; /* another opens it before this call of ours; calls so far */
} race;

static enum hf_status open_before(struct hf_scope *s, struct between *b, enum hf_op op,
                                  const void *request, void *response)
{
    struct hf_kv *kv;

    if (race.calls++ == race.at) {
        enum hf_status status = hf_kv_open(b->own, b->inner,
                                           HF_OPTIONS(hf_kv_options, .table = race.table,
                                                      .any_ttl = true, .no_create = true),
                                           &kv);

        /* Without transactions it is taken for ScyllaDB, whose new tables get a tag. */
        if (status == HF_INVALID &&
            strstr(hf_scope_error_text(b->own), "write isolation is not set"))
            status = HF_NOT_FOUND;
        if (status != HF_NOT_FOUND) {
            CHECK_INT(HF_OK, status);
            CHECK(kv->spaced);
        }
        hf_kv_close(kv);
    }
    return between_pass(s, b, op, request, response);
}

/* One makes the table with the option, another opens it without at any moment: both use it. */
KIT_TEST(kv_space, those_who_open_at_once_agree)
{
    struct hf_scope *own = kit_scope(k);
    bool between_calls = true;

    for (int at = 0; between_calls; at++) {
        struct between b = between_of(k->db);

        b.on_call = open_before;
        b.own = own;
        race = (struct race){.table = k->table, .at = at};
        hf_kv_close(open_spaced(k, &b.db));
        between_calls = race.calls > at;
        CHECK_OK(
            hf_delete_table(k->scope, k->db, &(struct hf_delete_table){.table = k->table}, NULL));
        CHECK_OK(hf_table_wait(k->scope, k->db, k->table, HF_TABLE_UNTIL_GONE, NULL));
        CHECK(at < 30);
    }
}

/* ---- limits --------------------------------------------------------------------------------- */

KIT_TEST(kv_space, keys_are_shorter)
{
    struct hf_kv *kv = open_spaced(k, k->db);
    char id[HF_KV_SORT_MAX];

    memset(id, 'x', sizeof(id));
    CHECK_OK(
        hf_kv_set(k->scope, kv, in("n", hf_str_of(id, sizeof(id) - 2)), text(k, "1"), NULL, NULL));
    CHECK_STATUS(HF_INVALID, hf_kv_set(k->scope, kv, in("n", hf_str_of(id, sizeof(id) - 1)),
                                       text(k, "1"), NULL, NULL));
    CHECK(strstr(hf_scope_error_text(k->scope), "1025 bytes with its namespace, more than 1024"));
    CHECK_INT(sizeof(id) - 1, ids(k, kv, space("n"), NULL).len);
    hf_kv_close(kv);
}

KIT_TEST(kv_space, options_that_contradict_it)
{
    struct hf_kv *kv;

    CHECK_STATUS(HF_INVALID, hf_kv_open(k->scope, k->db,
                                        HF_OPTIONS(hf_kv_options, .table = k->table,
                                                   .partitioned = true, .space_index = true),
                                        &kv));
    CHECK(strstr(hf_scope_error_text(k->scope), "open it without space_index"));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_open(k->scope, k->db,
                            HF_OPTIONS(hf_kv_options, .table = k->table,
                                       .data_attribute = HF_STR("space"), .space_index = true),
                            &kv));
    CHECK(strstr(hf_scope_error_text(k->scope), "two attributes have the name \"space\""));
    hf_kv_close(open_spaced(k, k->db));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_open(k->scope, k->db,
                            HF_OPTIONS(hf_kv_options, .table = k->table, .any_ttl = true,
                                       .data_attribute = HF_STR("space")),
                            &kv));
}
