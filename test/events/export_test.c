/*
 * test/events/export_test.c: out as JSON lines and in again; (n) is an invariant of
 * events_import.c, (en) one of events_export.c.
 */
#include "admin_kit.h"

#include "events/store/events.h"

#include <stdlib.h>

/* ---- a file in memory ----------------------------------------------------------------------- */

struct file {
    struct kit *k;
    char *text; /* in the kit's scope */
    size_t len, cap, at;
    size_t piece; /* bytes of one read */
};

static enum hf_status write_file(struct hf_scope *s, const void *bytes, size_t len, void *user)
{
    struct file *file = user;

    (void)s;
    if (file->cap - file->len < len + 1) {
        size_t cap = 2 * (file->cap + len) + 1000;
        char *text = malloc(cap);

        CHECK(text);
        if (file->len)
            memcpy(text, file->text, file->len);
        free(file->text);
        file->text = text;
        file->cap = cap;
    }
    memcpy(file->text + file->len, bytes, len);
    file->len += len;
    file->text[file->len] = '\0';
    return HF_OK;
}

static enum hf_status read_file(struct hf_scope *s, void *bytes, size_t cap, size_t *len,
                                void *user)
{
    struct file *file = user;
    size_t left = file->len - file->at;

    (void)s;
    *len = left < cap ? left : cap;
    if (file->piece && *len > file->piece)
        *len = file->piece;
    if (*len)
        memcpy(bytes, file->text + file->at, *len);
    file->at += *len;
    return HF_OK;
}

static struct file file_of(const char *text)
{
    struct file file = {.len = 0};

    write_file(NULL, text, strlen(text), &file);
    return file;
}

static struct file export_all(struct kit *k, struct hf_events *store)
{
    struct file file = {.k = k};
    uint64_t count;

    write_file(NULL, "", 0, &file);
    CHECK_OK(hf_events_export(k->scope, store, NULL, write_file, &file, &count));
    return file;
}

static enum hf_status import(struct kit *k, struct hf_events *store, struct file *file,
                             uint64_t *count)
{
    file->at = 0;
    return hf_events_import(k->scope, store, NULL, read_file, file, count);
}

static size_t lines_of(const struct file *file)
{
    size_t lines = 0;

    for (size_t i = 0; i < file->len; i++)
        lines += file->text[i] == '\n';
    return lines;
}

static struct hf_events *open_other(struct kit *k)
{
    struct hf_events *store;

    CHECK_OK(
        hf_events_open(k->scope, k->db, HF_OPTIONS(hf_events_options, .table = k->other), &store));
    return store;
}

/* Without what an import makes again: positions and hashes. */
static struct hf_str without_places(struct kit *k, const struct file *file)
{
    char *text = hf_scope_alloc(k->scope, file->len + 1), *to = text;

    for (const char *at = file->text; *at;) {
        size_t skip = strncmp(at, ",\"position\":\"", 13) == 0 ? 13 + HF_POSITION_LEN + 1
                      : strncmp(at, ",\"hash\":\"", 9) == 0    ? 9 + 64 + 1
                                                               : 0;

        if (skip)
            at += skip;
        else
            *to++ = *at++;
    }
    *to = '\0';
    return hf_str_of(text, (size_t)(to - text));
}

/* Streams that take turns, with everything an event can have. */
static void fill(struct kit *k, struct hf_events *store)
{
    struct hf_new_event special[] = {
        {.id = HF_STR("with/all \"of\" it"),
         .type = HF_STR("all"),
         .payload = PAYLOAD("\0\1\2binary\xff"),
         .content_type = HF_STR("application/octet-stream"),
         .schema = 7,
         .time_us = 86400000000,
         .meta = HF_ITEM(k->scope, HF_S("who", HF_STR("ann")), HF_N("n", 1),
                         HF_L("l", HF_LIST(k->scope, HF_NULL("")))),
         .causation = HF_STR("cause"),
         .correlation = HF_STR("tree"),
         .compensates = HF_STR("gone")},
        {.type = HF_STR("empty"), .payload = PAYLOAD("")},
        {.type = HF_STR("null"), .payload = PAYLOAD("null")},
        {.type = HF_STR("pretty"), .payload = PAYLOAD("{\n  \"a\": 1.0\n}")}};
    struct hf_append append = {.stream = {HF_STR("special"), HF_STR("")},
                               .events = special,
                               .events_len = 4};

    append_ids(k, store, "1", 1, 2);
    append_ids(k, store, "2", 1, 1);
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    append_ids(k, store, "1", 3, 40); /* more than a transaction */
    CHECK_OK(append_some(k, store, ORDER("2"), HF_EXPECT_ANY, 0, 3, NULL));
    append_ids(k, store, "1", 43, 1);
}

enum { FILLED = 2 + 1 + 4 + 40 + 3 + 1 };

/* ---- there and back ------------------------------------------------------------------------- */

/* D5.16: ids, times, versions, meta, causes, and the global order; in pieces of any size. */
KIT_TEST_TX(export, everything_comes_back_d5_16)
{
    struct hf_events *store = open_store(k), *other = open_other(k);
    struct file file, again;
    uint64_t count;

    fill(k, store);
    file = export_all(k, store);
    CHECK_INT(FILLED, lines_of(&file));
    file.piece = 7;
    CHECK_OK(import(k, other, &file, &count));
    CHECK_INT(FILLED, count);
    CHECK_STR(all_of(k, store).ptr, all_of(k, other));
    again = export_all(k, other);
    CHECK_STR(without_places(k, &file).ptr, without_places(k, &again));
    CHECK_OK(hf_events_verify(k->scope, other, NULL, NULL, NULL));

    /* What is there is not appended again, neither here nor where it comes from (1). */
    CHECK_OK(import(k, other, &file, &count));
    CHECK_INT(0, count);
    CHECK_OK(import(k, store, &file, &count));
    CHECK_INT(0, count);
    CHECK_OK(import(k, store, &again, &count));
    CHECK_INT(0, count);
    check_sound(k, store, FILLED);
    free(file.text);
    free(again.text);
    hf_events_close(store);
    hf_events_close(other);
}

KIT_TEST_TX(export, an_id_that_is_a_position_elsewhere_is_found)
{
    struct hf_events *store = open_store(k), *other = open_other(k);
    struct hf_stored_event event, there;
    struct hf_appended done;
    struct file file;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 2, &done));
    file = export_all(k, store);
    CHECK_OK(import(k, other, &file, NULL));
    CHECK_OK(hf_events_get(k->scope, other, done.ids[1], &event));
    CHECK_INT(2, event.version);
    CHECK(!hf_str_equal(event.id, event.position));
    CHECK_OK(hf_events_get(k->scope, store, done.ids[1], &there));
    CHECK_INT(there.time_us, event.time_us);
    free(file.text);
    hf_events_close(store);
    hf_events_close(other);
}

/* An append that were larger than a transaction would be placed ahead of the next one. */
KIT_TEST_TX(export, many_streams_keep_their_order)
{
    struct hf_events *store = open_store(k), *other = open_other(k);
    struct hf_str meta = hf_scope_format(k->scope, "%0200000d", 7);
    struct hf_new_event big = {.type = HF_STR("big"),
                               .payload = PAYLOAD("1"),
                               .meta = HF_ITEM(k->scope, HF_S("m", meta))};
    struct hf_append append = {.events = &big, .events_len = 1};
    struct file file;

    for (int i = 0; i < 30; i++) {
        struct hf_str id = hf_scope_format(k->scope, "%d", i);

        append.stream = (struct hf_event_stream_key){HF_STR("big"), id};
        CHECK_OK(hf_events_append(k->scope, other, &append, 1, NULL, NULL));
    }
    for (int i = 0; i < 50; i++) {
        char id[12];

        snprintf(id, sizeof(id), "%d", i);
        append_ids(k, other, id, 1, 1 + (i % 10 == 9));
    }
    file = export_all(k, other);
    CHECK_OK(import(k, store, &file, NULL));
    CHECK_INT(0, count_items(k, "t."));
    CHECK_STR(all_of(k, other).ptr, all_of(k, store));
    check_sound(k, store, 30 + 55);
    free(file.text);
    hf_events_close(store);
    hf_events_close(other);
}

/* A version has 16 digits. */
KIT_TEST_TX(export, versions_come_to_an_end)
{
    struct hf_events *store = open_store(k);
    struct hf_events_page page;
    struct file file =
        file_of("{\"domain\":\"order\",\"stream\":\"1\",\"before\":9999999999999999}\n"
                "{\"domain\":\"order\",\"stream\":\"1\",\"version\":9999999999999999,"
                "\"id\":\"last\",\"type\":\"t\",\"payload\":1}\n");

    CHECK_OK(import(k, store, &file, NULL));
    CHECK_STATUS(HF_LIMIT, append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, NULL));
    CHECK_STATUS(HF_LIMIT, append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 200, NULL));
    CHECK_OK(append_some(k, store, ORDER("2"), HF_EXPECT_ANY, 0, 5, NULL));
    for (int i = 1; i <= 2; i++) {
        struct hf_event_stream_key stream = i == 1 ? ORDER("1") : ORDER("2");

        CHECK_OK(hf_events_read(k->scope, store, stream,
                                HF_OPTIONS(hf_events_read_options, .from = 10000000000000001,
                                           .backward = true),
                                &page));
        CHECK_INT(i == 1 ? 1 : 5, page.events_len);
        CHECK_OK(hf_events_read(k->scope, store, stream,
                                HF_OPTIONS(hf_events_read_options, .from = 10000000000000001),
                                &page));
        CHECK_INT(0, page.events_len);
    }
    check_sound(k, store, 6);
    free(file.text);
    hf_events_close(store);
}

static enum hf_status count_progress(uint64_t done, uint64_t total, void *user)
{
    uint64_t *last = user;

    CHECK_INT(0, total);
    CHECK(done > *last);
    *last = done;
    return HF_OK;
}

static enum hf_status end_progress(uint64_t done, uint64_t total, void *user)
{
    (void)total;
    (void)user;
    return done >= 10 ? HF_CANCELED : HF_OK;
}

KIT_TEST_TX(export, parts_and_progress)
{
    struct hf_events *store = open_store(k), *other = open_other(k);
    struct file file = {.k = k};
    struct hf_stored_event event;
    uint64_t count, told = 0;

    fill(k, store);
    CHECK_OK(
        hf_events_export(k->scope, store,
                         HF_OPTIONS(hf_events_transfer, .batch = 3, .domain = HF_STR("special"),
                                    .on_progress = count_progress, .user = &told),
                         write_file, &file, &count));
    CHECK_INT(4, count);
    CHECK_INT(4, told);
    CHECK_OK(hf_events_get(k->scope, store, HF_STR("2-1"), &event));
    CHECK_OK(hf_events_export(k->scope, store,
                              HF_OPTIONS(hf_events_transfer, .after = event.position), write_file,
                              &file, &count));
    CHECK_INT(FILLED - 3, count);
    CHECK_STATUS(HF_CANCELED, hf_events_export(k->scope, store,
                                               HF_OPTIONS(hf_events_transfer, .batch = 10,
                                                          .on_progress = end_progress),
                                               write_file, &file, &count));
    CHECK(count >= 10 && count < FILLED);

    file.len = file.at = 0;
    CHECK_OK(hf_events_export(k->scope, store, NULL, write_file, &file, NULL));
    told = 0;
    CHECK_OK(hf_events_import(k->scope, other,
                              HF_OPTIONS(hf_events_transfer, .on_progress = count_progress,
                                         .user = &told),
                              read_file, &file, &count));
    CHECK_INT(FILLED, told);
    file.at = 0;
    CHECK_OK(append_some(k, other, ORDER("more"), HF_EXPECT_ANY, 0, 3, NULL));
    CHECK_OK(hf_events_import(k->scope, other, HF_OPTIONS(hf_events_transfer, .replace = true),
                              read_file, &file, &count));
    CHECK_INT(FILLED, count);
    CHECK_STR(all_of(k, store).ptr, all_of(k, other));
    free(file.text);
    hf_events_close(store);
    hf_events_close(other);
}

/* An empty or foreign file replaces nothing. */
KIT_TEST_TX(export, nothing_is_replaced_by_nothing)
{
    static const char *const files[] = {"", "\n  \n", "id;type\n1;a\n"};
    struct hf_events *store = open_store(k);
    struct hf_event_stream_info info;
    uint64_t count;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_NONE, 0, 3, NULL));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct file file = {.text = (char *)(uintptr_t)files[i], .len = strlen(files[i])};

        CHECK_STATUS(HF_SERIALIZATION,
                     hf_events_import(k->scope, store,
                                      HF_OPTIONS(hf_events_transfer, .replace = true), read_file,
                                      &file, &count));
        CHECK_INT(0, count);
        CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("1"), &info));
        CHECK_INT(3, info.version);
    }
    hf_events_close(store);
}

/* (e2), and streams that begin late keep their versions. */
KIT_TEST_TX(export, what_is_not_read_is_not_exported)
{
    struct hf_events *store = open_store(k), *other = open_other(k);
    struct hf_event_stream_info info;
    struct hf_events_page page;
    struct file file, again;
    uint64_t count;

    append_ids(k, store, "cut", 1, 5);
    append_ids(k, store, "gone", 1, 2);
    append_ids(k, store, "archived", 1, 2);
    append_ids(k, store, "cut", 6, 1);
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("cut"), 4));
    CHECK_OK(hf_events_tombstone(k->scope, store, ORDER("gone"), HF_EXPECT_ANY, 0));
    CHECK_OK(hf_events_archive(k->scope, store, ORDER("archived")));
    file = export_all(k, store);
    CHECK(strstr(file.text, "{\"domain\":\"order\",\"stream\":\"cut\",\"before\":4}\n"));
    CHECK(!strstr(file.text, "\"gone\""));
    CHECK_INT(3 + 2 + 1, lines_of(&file));

    CHECK_OK(import(k, other, &file, &count));
    CHECK_INT(5, count);
    CHECK_OK(hf_events_stream_info(k->scope, other, ORDER("cut"), &info));
    CHECK_INT(4, info.first);
    CHECK_INT(6, info.version);
    CHECK_OK(hf_events_read(k->scope, other, ORDER("cut"), NULL, &page));
    CHECK_INT(3, page.events_len);
    CHECK_INT(4, page.events[0].version);
    CHECK_STR("cut-4", page.events[0].id);
    CHECK_OK(hf_events_verify(k->scope, other, NULL, NULL, NULL));
    again = export_all(k, other);
    CHECK_STR(without_places(k, &file).ptr, without_places(k, &again));
    CHECK_OK(import(k, other, &file, &count));
    CHECK_INT(0, count);
    free(file.text);
    free(again.text);
    hf_events_close(store);
    hf_events_close(other);
}

/* Payloads of the blob store are in the file, and find their way into the other's. */
KIT_TEST_TX(export, blobs_are_in_the_file)
{
    struct hf_blobs *blobs[2];
    struct hf_events *store, *other;
    struct hf_stored_event event;
    struct hf_new_event large = {.id = HF_STR("large"), .type = HF_STR("t")};
    struct hf_append append = {.stream = ORDER("1"), .events = &large, .events_len = 1};
    uint8_t bytes[5000];
    struct file file;
    uint64_t count;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7);
    large.payload = hf_bytes_of(bytes, sizeof(bytes));
    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs[0]));
    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs[1]));
    store = open_store_with(k, (struct hf_events_options){.blobs = blobs[0], .blob_bytes = 1000});
    CHECK_OK(hf_events_open(k->scope, k->db,
                            HF_OPTIONS(hf_events_options, .table = k->other, .blobs = blobs[1],
                                       .blob_bytes = 1000),
                            &other));
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    file = export_all(k, store);
    CHECK_OK(import(k, other, &file, &count));
    CHECK_INT(1, count);
    CHECK_OK(import(k, other, &file, &count));
    CHECK_INT(0, count);
    CHECK_OK(hf_events_get(k->scope, other, HF_STR("large"), &event));
    CHECK_INT(HF_BLOB_DIGEST_LEN, event.blob.len);
    CHECK_INT(sizeof(bytes), event.payload.len);
    CHECK(memcmp(bytes, event.payload.ptr, sizeof(bytes)) == 0);
    CHECK_OK(hf_blob_has(k->scope, other->blobs, event.blob, NULL));
    free(file.text);
    hf_events_close(store);
    hf_events_close(other);
    hf_blobs_close(blobs[0]);
    hf_blobs_close(blobs[1]);
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* (2): D5.16, nothing is renumbered unless that is asked for. */
KIT_TEST_TX(export, versions_are_not_changed_silently_d5_16)
{
    struct hf_events *store = open_store(k);
    struct hf_events_page page;
    struct file file;
    uint64_t count;

    append_ids(k, store, "1", 1, 2);
    file = file_of(
        "{\"domain\":\"order\",\"stream\":\"1\",\"version\":3,\"id\":\"a\",\"type\":\"t\"}\n"
        "\n"
        "{\"domain\":\"order\",\"stream\":\"1\",\"version\":5,\"id\":\"b\",\"type\":\"t\"}\n");
    CHECK_STATUS(HF_CONDITION, import(k, store, &file, &count));
    CHECK_ERROR(HF_CONDITION, "line 3: stream \"order/1\" is at version 3, expected version 4",
                k->scope);
    CHECK_INT(1, count); /* (3) */
    free(file.text);

    file = file_of(
        "{\"domain\":\"order\",\"stream\":\"1\",\"version\":1,\"id\":\"c\",\"type\":\"t\"}\n"
        "{\"domain\":\"order\",\"stream\":\"1\",\"version\":2,\"id\":\"d\",\"type\":\"t\"}\n"
        "{\"domain\":\"order\",\"stream\":\"new\",\"version\":7,\"id\":\"e\",\"type\":\"t\"}");
    CHECK_STATUS(HF_CONDITION, import(k, store, &file, &count));
    CHECK_INT(0, count);
    for (int i = 0; i < 2; i++) {
        file.at = 0;
        CHECK_OK(hf_events_import(k->scope, store, HF_OPTIONS(hf_events_transfer, .renumber = true),
                                  read_file, &file, &count));
        CHECK_INT(i ? 0 : 3, count);
    }
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"),
                            HF_OPTIONS(hf_events_read_options, .from = 4), &page));
    CHECK_INT(2, page.events_len);
    CHECK_STR("d", page.events[1].id);
    CHECK_STR("order/1:1 order/1:2 order/1:3 order/1:4 order/1:5 order/new:1", all_of(k, store));
    free(file.text);
    hf_events_close(store);
}

KIT_TEST_TX(export, bad_lines_are_named)
{
#define GOOD(id) "{\"domain\":\"d\",\"stream\":\"s\",\"id\":\"" id "\",\"type\":\"t\"}\n"
    static const struct {
        const char *text, *message;
        enum hf_status status;
        uint64_t in; /* before it */
    } cases[] = {
        {GOOD("1") GOOD("2") "{\"domain\":\"d\"}\n" GOOD("3"), "line 3: the event has no \"type\"",
         HF_SERIALIZATION, 2},
        {GOOD("4") "\n  \nnonsense",
         "line 4: the event is not valid JSON: expected an object at byte 1", HF_SERIALIZATION, 1},
        {"{\"domain\":\"d\",\"type\":\"t\"}\n", "line 1: the event has no \"id\"", HF_SERIALIZATION,
         0},
        {"{\"domain\":\"d\",\"type\":\"t\",\"id\":\"x\",\"typo\":1}\n",
         "line 1: the event has an unknown member \"typo\"", HF_SERIALIZATION, 0},
        {"{\"domain\":\"d\",\"type\":\"t\",\"id\":\"x\",\"blob\":\"00\"}\n",
         "line 1: the event's payload is in a blob store and not in this line", HF_SERIALIZATION,
         0},
        {"{\"domain\":\"d\",\"stream\":\"s\",\"before\":10000000000000000}\n",
         "line 1: \"before\" is not a version", HF_SERIALIZATION, 0},
        {"{\"domain\":\"d\",\"stream\":\"s\",\"version\":10000000000000000,\"id\":\"1\","
         "\"type\":\"t\",\"payload\":1}\n",
         "line 1: the event's \"version\" is too large", HF_SERIALIZATION, 0},
        {"{\"domain\":\"d\",\"stream\":\"s\",\"before\":0}\n",
         "line 1: \"before\" is not a version", HF_SERIALIZATION, 0},
        {"{\"domain\":\"d\",\"stream\":\"s\",\"before\":\"5\"}\n",
         "line 1: \"before\" is not a version", HF_SERIALIZATION, 0},
        {GOOD("5") "{\"domain\":\"d\",\"stream\":\"s\",\"id\":\"5\",\"type\":\"other\"}\n",
         "line 2: id \"5\" is already used by another event: version 4 of stream "
         "\"d/s\"",
         HF_DUPLICATE, 1},
        {"{\"domain\":\"d\",\"stream\":\"s\",\"id\":\"5\",\"type\":\"t\",\"version\":9}\n",
         "line 1: id \"5\" is already used by another event: version 4 of stream "
         "\"d/s\"",
         HF_DUPLICATE,
         0}, /* alone: the append of it is one that was repeated, at another version */
        {GOOD("6") "{\"domain\":\"other\",\"id\":\"5\",\"type\":\"t\"}\n",
         "line 2: id \"5\" is already used by another event: version 4 of stream "
         "\"d/s\"",
         HF_DUPLICATE, 1},
    };
#undef GOOD
    struct hf_events *store = open_store(k);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct file file = file_of(cases[i].text);
        uint64_t count;

        CHECK_STATUS(cases[i].status, import(k, store, &file, &count));
        CHECK_ERROR(cases[i].status, cases[i].message, k->scope);
        CHECK_INT(cases[i].in, count);
        free(file.text);
    }
    CHECK_OK(hf_events_tombstone(k->scope, store,
                                 (struct hf_event_stream_key){HF_STR("d"), HF_STR("s")},
                                 HF_EXPECT_ANY, 0));
    hf_events_close(store);
}

/* ---- interrupted ---------------------------------------------------------------------------- */

/* (1): whichever call is the last one, the import is repeated, and nothing is there twice. */
KIT_TEST_TX(export, an_import_that_was_interrupted_is_repeated)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_REQUEST, HF_FAULT_LOST_ANSWER};
    struct hf_events *store = open_store(k), *other = open_other(k);
    struct hf_str all;
    struct file file;
    int interrupted = 0;

    append_ids(k, store, "1", 1, 25);
    append_ids(k, store, "2", 1, 2);
    append_ids(k, store, "1", 26, 3);
    append_ids(k, store, "3", 1, 5);
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("3"), 3));
    file = export_all(k, store);
    CHECK_OK(hf_events_import(k->scope, other, HF_OPTIONS(hf_events_transfer, .replace = true),
                              read_file, &file, NULL));
    all = all_of(k, other);
    for (size_t kind = 0; kind < 2; kind++) {
        bool ended = false;

        for (uint32_t n = 0; !ended; n++) {
            struct hf_fault fault = {.kind = kinds[kind], .skip = n};
            uint64_t first = 0, then = 0;

            CHECK_OK(hf_events_reset(k->scope, other));
            CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
            ended = import(k, other, &file, &first) == HF_OK;
            kit_no_faults(k);
            interrupted += !ended;
            CHECK_OK(import(k, other, &file, &then));
            CHECK(first + then <= 33); /* some may have been appended without our knowing */
            CHECK(ended ? first == 33 && then == 0 : first + then >= 5);
            CHECK_STR(all.ptr, all_of(k, other));
        }
    }
    CHECK(interrupted >= 10);
    free(file.text);
    hf_events_close(store);
    hf_events_close(other);
}
