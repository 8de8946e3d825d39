/*
 * kv/kv_list_test.c: lists of keys and values, and clearing, on every kind of database. (n)
 * is an invariant of kv/kv_list.c.
 */
#include <holdfast/kv.h>

#include <stdio.h>

#include "kit.h"

#include "kv/kv.h"

static struct hf_kv *open_as(struct kit *k, bool partitioned)
{
    struct hf_kv *kv;

    CHECK_OK(hf_kv_open(k->scope, k->db,
                        HF_OPTIONS(hf_kv_options, .table = k->table, .partitioned = partitioned,
                                   .consistent = true, .any_ttl = true),
                        &kv));
    return kv;
}

static struct hf_kv_key in(const char *partition, const char *space, const char *id)
{
    return hf_kv_in(hf_str_from(partition), hf_str_from(space), hf_str_from(id));
}

static void set(struct kit *k, struct hf_kv *kv, struct hf_kv_key key)
{
    CHECK_OK(hf_kv_set(k->scope, kv, key, hf_value_make(k->scope, (struct hf_attr)HF_S("", key.id)),
                       NULL, NULL));
}

/* The ids of a list, as "a b c". */
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
        CHECK(hf_str_equal(entry.key.id, hf_value_str(entry.value)));
        CHECK(entry.version.len >= 32);
        all = hf_scope_format(k->scope, "%.*s%s%.*s", HF_FMT(all), all.len ? " " : "",
                              HF_FMT(entry.key.id));
    }
    CHECK_OK(hf_kv_list_next(k->scope, list, &entry));
    CHECK(!entry.value.ptr);
    hf_kv_list_free(list);
    return all;
}

static void calls(struct kit *k, const char *operation)
{
    CHECK_OK(hf_faulty_set(k->scope, k->db,
                           &(struct hf_fault){.kind = HF_FAULT_LATENCY,
                                              .operation = hf_str_from(operation),
                                              .latency_ms = 1},
                           1));
}

static uint64_t called(struct kit *k)
{
    const struct hf_fault *faults;
    uint64_t struck;
    size_t len;

    CHECK_OK(hf_faulty_get(k->scope, k->db, &faults, &len));
    struck = faults[0].struck;
    kit_no_faults(k);
    return struck;
}

/* ---- in a partition ------------------------------------------------------------------------- */

static struct hf_kv *open_letters(struct kit *k)
{
    static const char *const letters[] = {"a",  "ab", "abc", "b",  "b.c", "b-d",
                                          "b/", "c",  "%",   "%2", "."};
    struct hf_kv *kv = open_as(k, true);

    for (size_t i = 0; i < ARRAY_LEN(letters); i++)
        set(k, kv, in("p", "n", letters[i]));
    set(k, kv, in("p", "n.", "a"));
    set(k, kv, in("p", "m", "z"));
    set(k, kv, in("p", "", "n.a"));
    set(k, kv, in("p", "n/", "a"));
    set(k, kv, in("q", "n", "a"));
    return kv;
}

#define IN_P(...)                                                                                  \
    ((struct hf_kv_range){.partition = HF_STR("p"), .space = HF_STR("n"), __VA_ARGS__})

static struct hf_kv_range in_space(const char *space)
{
    return (struct hf_kv_range){.partition = HF_STR("p"), .space = hf_str_from(space)};
}

KIT_TEST(kv_list, a_partition_in_the_order_of_ids)
{
    struct hf_kv *kv = open_letters(k);

    CHECK_STR("% %2 . a ab abc b b-d b.c b/ c", ids(k, kv, IN_P(.prefix = {0}), NULL));
    CHECK_STR("c b/ b.c b-d b abc ab a . %2 %",
              ids(k, kv, IN_P(.prefix = {0}), HF_OPTIONS(hf_kv_list_options, .backward = true)));
    CHECK_STR("a", ids(k, kv, in_space("n."), NULL));
    CHECK_STR("n.a", ids(k, kv, in_space(""), NULL));
    CHECK_STR("", ids(k, kv, in_space("none"), NULL));
    hf_kv_close(kv);
}

KIT_TEST(kv_list, prefixes_and_ranges)
{
    struct hf_kv *kv = open_letters(k);

    CHECK_STR("a ab abc", ids(k, kv, IN_P(.prefix = HF_STR("a")), NULL));
    CHECK_STR("ab abc", ids(k, kv, IN_P(.prefix = HF_STR("ab")), NULL));
    CHECK_STR("b.c", ids(k, kv, IN_P(.prefix = HF_STR("b.")), NULL));
    CHECK_STR("% %2", ids(k, kv, IN_P(.prefix = HF_STR("%")), NULL));
    CHECK_STR("", ids(k, kv, IN_P(.prefix = HF_STR("x")), NULL));
    CHECK_STR("ab abc b b-d",
              ids(k, kv, IN_P(.from = HF_STR("ab"), .before = HF_STR("b.c")), NULL));
    CHECK_STR("b/ c", ids(k, kv, IN_P(.from = HF_STR("b/")), NULL));
    CHECK_STR("% %2 .", ids(k, kv, IN_P(.before = HF_STR("a")), NULL));
    CHECK_STR("", ids(k, kv, IN_P(.before = HF_STR("%")), NULL));
    CHECK_STR("", ids(k, kv, IN_P(.from = HF_STR("c"), .before = HF_STR("b")), NULL));
    CHECK_STR("", ids(k, kv, IN_P(.from = HF_STR("b"), .before = HF_STR("b")), NULL));
    CHECK_STR("b/ b.c", ids(k, kv, IN_P(.from = HF_STR("b."), .prefix = HF_STR("b")),
                            HF_OPTIONS(hf_kv_list_options, .backward = true)));
    CHECK_STR("b b-d", ids(k, kv, IN_P(.before = HF_STR("b."), .prefix = HF_STR("b")), NULL));
    CHECK_STR("ab abc b b-d b.c b/", ids(k, kv, IN_P(.id_contains = HF_STR("b")), NULL));
    CHECK_STR("b-d", ids(k, kv, IN_P(.id_contains = HF_STR("-"), .prefix = HF_STR("b")), NULL));
    hf_kv_close(kv);
}

/* Only what is asked for is read. */
KIT_TEST(kv_list, ranges_are_read_and_nothing_else)
{
    struct hf_kv *kv = open_letters(k);

    calls(k, "Query");
    CHECK_STR("ab abc",
              ids(k, kv, IN_P(.prefix = HF_STR("ab")), HF_OPTIONS(hf_kv_list_options, .page = 2)));
    CHECK(called(k) <= 2);
    calls(k, "Query");
    CHECK_STR("ab abc", ids(k, kv, IN_P(.from = HF_STR("ab"), .before = HF_STR("b")),
                            HF_OPTIONS(hf_kv_list_options, .page = 3)));
    CHECK(called(k) <= 2);
    calls(k, "Query");
    CHECK_STR("", ids(k, kv, IN_P(.from = HF_STR("b"), .before = HF_STR("a")), NULL));
    CHECK_INT(0, called(k));
    hf_kv_close(kv);
}

/* (3): pages of one item, of which most are filtered out. */
KIT_TEST(kv_list, pages_without_entries_do_not_end_a_list)
{
    struct hf_kv *kv = open_as(k, true);

    for (int i = 0; i < 20; i++)
        set(k, kv, in("p", "n", hf_scope_format(k->scope, "%02d", i).ptr));
    for (int i = 1; i < 19; i++)
        CHECK_OK(hf_kv_delete(k->scope, kv, in("p", "n", hf_scope_format(k->scope, "%02d", i).ptr),
                              NULL, NULL));
    CHECK_STR("00 19", ids(k, kv, IN_P(.prefix = {0}), HF_OPTIONS(hf_kv_list_options, .page = 1)));
    CHECK_STR("19 00", ids(k, kv, IN_P(.prefix = {0}),
                           HF_OPTIONS(hf_kv_list_options, .page = 1, .backward = true)));
    CHECK_STR("00 19", ids(k, kv, (struct hf_kv_range){.space = HF_STR("n")},
                           HF_OPTIONS(hf_kv_list_options, .page = 1)));
    hf_kv_close(kv);
}

/* Page after page, from cursor to cursor, gives what one list gives; both ways. */
KIT_TEST(kv_list, cursors_go_on)
{
    struct hf_kv *kv = open_letters(k);

    for (int way = 0; way < 2; way++)
        for (uint32_t limit = 1; limit < 13; limit++) {
            struct hf_kv_list_options o = {.size = sizeof(o),
                                           .limit = limit,
                                           .backward = way,
                                           .page = limit % 3};
            struct hf_str all = HF_STR("");
            struct hf_kv_page page;
            size_t pages = 0;

            do {
                CHECK_OK(hf_kv_page(k->scope, kv, &IN_P(.prefix = {0}), &o, &page));
                CHECK(page.entries_len <= limit);
                CHECK(page.entries_len == limit || !page.next.ptr);
                for (size_t i = 0; i < page.entries_len; i++)
                    all = hf_scope_format(k->scope, "%.*s%s%.*s", HF_FMT(all), all.len ? " " : "",
                                          HF_FMT(page.entries[i].key.id));
                o.after = page.next;
                CHECK(++pages < 20);
            } while (page.next.ptr);
            CHECK_STR(way ? "c b/ b.c b-d b abc ab a . %2 %" : "% %2 . a ab abc b b-d b.c b/ c",
                      all);
        }
    hf_kv_close(kv);
}

KIT_TEST(kv_list, cursors_of_a_list)
{
    struct hf_kv *kv = open_letters(k);
    struct hf_kv_list *list;
    struct hf_kv_entry entry;
    struct hf_str cursor;

    CHECK_OK(hf_kv_list_open(k->scope, kv, &IN_P(.prefix = HF_STR("a")), NULL, &list));
    CHECK_OK(hf_kv_list_cursor(k->scope, list, &cursor));
    CHECK(!cursor.ptr);
    CHECK_OK(hf_kv_list_next(k->scope, list, &entry));
    CHECK_OK(hf_kv_list_cursor(k->scope, list, &cursor));
    hf_kv_list_free(list);
    CHECK_STR("ab abc", ids(k, kv, IN_P(.prefix = HF_STR("a")),
                            HF_OPTIONS(hf_kv_list_options, .after = cursor)));
    CHECK_OK(hf_kv_list_open(k->scope, kv, &IN_P(.prefix = HF_STR("a")),
                             HF_OPTIONS(hf_kv_list_options, .after = cursor), &list));
    CHECK_OK(hf_kv_list_cursor(k->scope, list, &cursor));
    CHECK(cursor.ptr);
    for (int i = 0; i < 3; i++)
        CHECK_OK(hf_kv_list_next(k->scope, list, &entry));
    CHECK_OK(hf_kv_list_cursor(k->scope, list, &cursor));
    CHECK(!cursor.ptr);
    hf_kv_list_free(list);
    CHECK_STATUS(HF_INVALID,
                 hf_kv_list_open(k->scope, kv, &IN_P(.prefix = {0}),
                                 HF_OPTIONS(hf_kv_list_options, .after = HF_STR("x")), &list));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_list_open(k->scope, kv, &IN_P(.prefix = {0}),
                                 HF_OPTIONS(hf_kv_list_options, .after = HF_STR("q.n")), &list));
    CHECK(!list);
    hf_kv_list_free(NULL);
    hf_kv_close(kv);
}

KIT_TEST(kv_list, what_cannot_be_listed)
{
    struct hf_kv *kv = open_as(k, true);
    struct hf_kv_list *list;
    const struct hf_kv_range ranges[] = {
        {.partition = HF_STR("")},
        {.all_spaces = true, .prefix = HF_STR("a")},
        {.all_spaces = true, .space = HF_STR("")},
    };

    for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
        CHECK_STATUS(HF_INVALID, hf_kv_list_open(k->scope, kv, &ranges[i], NULL, &list));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_list_open(k->scope, kv, NULL,
                                 HF_OPTIONS(hf_kv_list_options, .backward = true), &list));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_list_open(k->scope, kv, NULL,
                                 HF_OPTIONS(hf_kv_list_options, .segment = 2, .segments = 2),
                                 &list));
    CHECK_STATUS(HF_INVALID,
                 hf_kv_list_open(k->scope, kv, &(struct hf_kv_range){.partition = HF_STR("p")},
                                 HF_OPTIONS(hf_kv_list_options, .segments = 2), &list));
    CHECK(
        strstr(hf_scope_error_text(k->scope), "segments are for lists that read the whole table"));
    hf_kv_close(kv);
}

/* ---- without partitions --------------------------------------------------------------------- */

static struct hf_kv *open_many(struct kit *k, int len)
{
    struct hf_kv *kv = open_as(k, false);
    struct hf_kv_pair pairs[300];

    CHECK(len <= 300);
    for (int i = 0; i < len; i++) {
        struct hf_str id = hf_scope_format(k->scope, "key-%03d", i);

        pairs[i] =
            (struct hf_kv_pair){.key = {.space = i % 2 ? HF_STR("odd") : HF_STR("even"), .id = id},
                                .value = hf_value_make(k->scope, (struct hf_attr)HF_S("", id))};
    }
    CHECK_OK(hf_kv_set_many(k->scope, kv, pairs, (size_t)len, NULL, NULL));
    return kv;
}

/* How many there are, each of them once. */
static int count(struct kit *k, struct hf_kv *kv, struct hf_kv_range range,
                 const struct hf_kv_list_options *options)
{
    struct hf_kv_entry entry;
    struct hf_kv_list *list;
    bool seen[300] = {false};
    int len = 0, number;

    CHECK_OK(hf_kv_list_open(k->scope, kv, &range, options, &list));
    for (;; len++) {
        CHECK_OK(hf_kv_list_next(k->scope, list, &entry));
        if (!entry.value.ptr)
            break;
        CHECK_INT(1, sscanf(hf_scope_copy(k->scope, entry.key.id).ptr, "key-%d", &number));
        CHECK(!seen[number]);
        seen[number] = true;
        CHECK_STR(number % 2 ? "odd" : "even", entry.key.space);
    }
    hf_kv_list_free(list);
    return len;
}

KIT_TEST(kv_list, a_whole_table)
{
    struct hf_kv *kv = open_many(k, 300);

    CHECK_INT(300, count(k, kv, (struct hf_kv_range){.all_spaces = true}, NULL));
    CHECK_INT(150, count(k, kv, (struct hf_kv_range){.space = HF_STR("odd")}, NULL));
    CHECK_INT(0, count(k, kv, (struct hf_kv_range){.space = {0}}, NULL));
    CHECK_INT(50,
              count(k, kv, (struct hf_kv_range){.space = HF_STR("odd"), .prefix = HF_STR("key-1")},
                    NULL));
    CHECK_INT(150,
              count(k, kv, (struct hf_kv_range){.all_spaces = true, .id_contains = HF_STR("-1")},
                    NULL) +
                  count(k, kv,
                        (struct hf_kv_range){.space = HF_STR("even"), .id_contains = HF_STR("y-0")},
                        HF_OPTIONS(hf_kv_list_options, .page = 7)));
    CHECK_INT(0,
              count(k, kv, (struct hf_kv_range){.all_spaces = true, .id_contains = HF_STR("odd")},
                    NULL));
    CHECK_INT(10, count(k, kv,
                        (struct hf_kv_range){.space = HF_STR("odd"),
                                             .from = HF_STR("key-100"),
                                             .before = HF_STR("key-120")},
                        NULL));
    CHECK_INT(33, count(k, kv, (struct hf_kv_range){.all_spaces = true},
                        HF_OPTIONS(hf_kv_list_options, .limit = 33)));
    CHECK_INT(300, count(k, kv, (struct hf_kv_range){.all_spaces = true},
                         HF_OPTIONS(hf_kv_list_options, .segments = 3)) +
                       count(k, kv, (struct hf_kv_range){.all_spaces = true},
                             HF_OPTIONS(hf_kv_list_options, .segments = 3, .segment = 1)) +
                       count(k, kv, (struct hf_kv_range){.all_spaces = true},
                             HF_OPTIONS(hf_kv_list_options, .segments = 3, .segment = 2)));
    hf_kv_close(kv);
}

KIT_TEST(kv_list, pages_of_a_whole_table)
{
    struct hf_kv *kv = open_many(k, 300);
    struct hf_kv_list_options o = {.size = sizeof(o), .limit = 40};
    struct hf_kv_range range = {.space = HF_STR("odd")};
    struct hf_kv_page page;
    size_t all = 0;

    do {
        CHECK_OK(hf_kv_page(k->scope, kv, &range, &o, &page));
        CHECK(page.entries_len <= 40);
        all += page.entries_len;
        o.after = page.next;
    } while (page.next.ptr);
    CHECK_INT(150, all);
    hf_kv_close(kv);
}

/* From one page to the next at least the delay passes; what the reader takes counts. */
KIT_TEST(kv_list, a_delay_between_pages)
{
    struct hf_kv *kv = open_many(k, 40);
    struct hf_kv_list_options *slow = HF_OPTIONS(hf_kv_list_options, .page = 10, .delay_ms = 1000);
    int64_t before = k->t->elapsed_us;
    struct hf_kv_entry entry;
    struct hf_kv_list *list;

    CHECK_INT(40, count(k, kv, (struct hf_kv_range){.all_spaces = true}, slow));
    CHECK(k->t->elapsed_us - before >= 3000000);
    CHECK(k->t->elapsed_us - before <= 4100000);
    CHECK_OK(hf_kv_list_open(k->scope, kv, &(struct hf_kv_range){.all_spaces = true}, slow, &list));
    for (int i = 0; i < 40; i++) {
        CHECK_OK(hf_kv_list_next(k->scope, list, &entry));
        CHECK(entry.value.ptr);
        if (i % 10 == 0) {
            CHECK(i == 0 || k->t->elapsed_us == before); /* the reader was slower */
            test_advance_ms(k->t, 1500);
        }
        before = k->t->elapsed_us;
    }
    hf_kv_list_free(list);
    hf_kv_close(kv);
}

/* (2): a step that failed is made again, and nothing is lost or doubled. */
KIT_TEST(kv_list, a_failed_step_can_be_tried_again)
{
    struct hf_kv *kv = open_many(k, 40);
    struct hf_kv_entry entry;
    struct hf_kv_list *list;
    int len = 0, failures = 0;

    CHECK_OK(hf_kv_list_open(k->scope, kv, &(struct hf_kv_range){.all_spaces = true},
                             HF_OPTIONS(hf_kv_list_options, .page = 3), &list));
    for (;;) {
        enum hf_status status;

        if (len % 3 == 0) /* a page is at its end then, or one key later */
            kit_fault(k, HF_FAULT_ERROR, "Scan", 1);
        status = hf_kv_list_next(k->scope, list, &entry);
        if (status != HF_OK) {
            failures++;
            kit_no_faults(k);
            CHECK_OK(hf_kv_list_next(k->scope, list, &entry));
        }
        if (!entry.value.ptr)
            break;
        len++;
    }
    CHECK_INT(40, len);
    CHECK(failures > 10);
    hf_kv_list_free(list);
    hf_kv_close(kv);
}

/* ---- clearing ------------------------------------------------------------------------------- */

KIT_TEST(kv_list, clear_a_partition)
{
    for (int exact = 0; exact < 2; exact++) {
        struct hf_kv *kv = open_letters(k);
        struct hf_kv_clear_options o = {.size = sizeof(o), .exact = exact};
        struct hf_kv_range p = {.partition = HF_STR("p"), .all_spaces = true};
        uint64_t cleared;

        CHECK_OK(hf_kv_clear(k->scope, kv, &IN_P(.prefix = HF_STR("a")), &o, &cleared));
        CHECK_INT(3, cleared);
        CHECK_STR("% %2 . b b-d b.c b/ c", ids(k, kv, IN_P(.prefix = {0}), NULL));
        CHECK_OK(hf_kv_clear(k->scope, kv, &p, &o, &cleared));
        CHECK_INT(12, cleared);
        CHECK_STR("", ids(k, kv, p, NULL));
        p.partition = HF_STR("q");
        CHECK_STR("a", ids(k, kv, p, NULL));
        CHECK_OK(hf_kv_clear(k->scope, kv, &p, &o, NULL));
        CHECK_OK(hf_kv_clear(k->scope, kv, &p, &o, &cleared));
        CHECK_INT(0, cleared);
        hf_kv_close(kv);
    }
}

/* What is not a value is cleared with all namespaces, and what has expired always. */
KIT_TEST(kv_list, clear_takes_what_is_not_seen)
{
    struct hf_kv *kv = open_as(k, false);
    struct hf_put_item put = {.table = k->table};
    struct hf_scan scan = {.table = k->table, .consistent = HF_YES};
    struct hf_scan_result rest;
    uint64_t cleared;

    put.item = HF_ITEM(k->scope, HF_S("key", HF_STR("global.count")), HF_N("count", 7));
    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
    put.item = HF_ITEM(k->scope, HF_S("key", HF_STR("foreign")), HF_N("count", 7));
    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
    CHECK_OK(hf_kv_set(k->scope, kv, hf_kv_id(HF_STR("short")),
                       hf_value_make(k->scope, (struct hf_attr)HF_N("", 1)),
                       HF_OPTIONS(hf_kv_set_options, .ttl_s = 1), NULL));
    test_advance_ms(k->t, 5000);
    CHECK_OK(hf_kv_clear(k->scope, kv, NULL, NULL, &cleared));
    CHECK_INT(2, cleared);
    CHECK_OK(hf_kv_clear(k->scope, kv, &(struct hf_kv_range){.all_spaces = true}, NULL, &cleared));
    CHECK_INT(1, cleared);
    CHECK_OK(hf_scan(k->scope, k->db, &scan, &rest));
    CHECK_INT(1, rest.items_len); /* the table's mark */
    CHECK_STR("holdfast:table", hf_value_str(hf_item_get(rest.items[0], HF_STR("key"))));
    hf_kv_close(kv);
}

/* A clear that failed in the midst goes on where it was. */
KIT_TEST(kv_list, clear_can_be_resumed)
{
    for (int exact = 0; exact < 2; exact++) {
        struct hf_kv *kv = open_many(k, 300);
        struct hf_kv_clear_options o = {.size = sizeof(o), .exact = exact};
        struct hf_fault fault = {.kind = HF_FAULT_LOST_REQUEST,
                                 .operation =
                                     exact ? HF_STR("DeleteItem") : HF_STR("BatchWriteItem"),
                                 .skip = exact ? 100 : 5};
        struct hf_kv_range odd = {.space = HF_STR("odd")};
        uint64_t first, second;

        CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
        CHECK(hf_kv_clear(k->scope, kv, &odd, &o, &first) != HF_OK);
        CHECK(first >= 100 && first < 150);
        kit_no_faults(k);
        CHECK_INT(150 - first, count(k, kv, odd, NULL));
        CHECK_OK(hf_kv_clear(k->scope, kv, &odd, &o, &second));
        CHECK_INT(150, first + second);
        CHECK_INT(0, count(k, kv, odd, NULL));
        CHECK_INT(150, count(k, kv, (struct hf_kv_range){.space = HF_STR("even")}, NULL));
        hf_kv_close(kv);
    }
}

/* An exact clear with lost answers counts each key once. */
KIT_TEST(kv_list, clear_exactly_survives_lost_answers)
{
    struct hf_kv *kv = open_letters(k);
    struct hf_fault fault = {.kind = HF_FAULT_LOST_ANSWER,
                             .operation = HF_STR("DeleteItem"),
                             .skip = 3,
                             .count = 1};
    uint64_t cleared;

    CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
    CHECK_OK(hf_kv_clear(k->scope, kv, &IN_P(.prefix = {0}),
                         HF_OPTIONS(hf_kv_clear_options, .exact = true), &cleared));
    CHECK_INT(1, called(k));
    CHECK_INT(11, cleared);
    CHECK_STR("", ids(k, kv, IN_P(.prefix = {0}), NULL));
    hf_kv_close(kv);
}
