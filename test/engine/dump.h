/*
 * engine/dump.h: all that a database holds, as text: what its store has, settings aside, and what
 * callers are told of tables and streams, counts included.
 */
#ifndef HF_TEST_ENGINE_DUMP_H
#define HF_TEST_ENGINE_DUMP_H

#include "help.h"

#include "base/buf.h"
#include "engine/engine.h"
#include "engine/layout.h"
#include "store/store.h"

/* Every entry of the store; the settings (the next id, the secret) are not restored. */
__attribute__((unused)) static void dump_store(struct world *w, struct hf__buf *text)
{
    static const uint8_t first[] = {SPACE_TABLE};
    const struct store_range range = {.lower = {first, 1}};
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    bool found = true;

    CHECK_OK(hf__store_iter_open(w->scope, hf__engine_of(w->db)->store, NULL, &range, &iter));
    while (found) {
        CHECK_OK(hf__store_iter_next(w->scope, iter, &found, &key, &value));
        if (!found)
            break;
        for (size_t i = 0; i < key.len; i++)
            hf__buf_format(text, "%02x", key.ptr[i]);
        hf__buf_put_byte(text, ':');
        for (size_t i = 0; i < value.len; i++)
            hf__buf_format(text, "%02x", value.ptr[i]);
        hf__buf_put_byte(text, '\n');
    }
    hf__store_iter_close(iter);
}

/* Without what the clock and upkeep do to it. The caller frees it. */
__attribute__((unused)) static char *dump(struct world *w)
{
    struct hf__buf text = {.scope = w->scope};
    struct hf_list_tables_result tables;
    struct hf_list_streams_result streams;
    char *copy;

    if (hf_engine_check(w->scope, w->db, NULL) != HF_OK)
        fail_msg("check: %s", hf_scope_error_text(w->scope));
    CHECK_OK(hf_list_tables(w->scope, w->db, &(struct hf_list_tables){.limit = 100}, &tables));
    for (size_t i = 0; i < tables.tables_len; i++) {
        hf__buf_put_str(&text, callf(w, "DescribeTable", "{'TableName':'%.*s'}",
                                     HF_FMT(tables.tables[i])));
        hf__buf_put_str(&text, callf(w, "Scan", "{'TableName':'%.*s','ConsistentRead':true}",
                                     HF_FMT(tables.tables[i])));
        hf__buf_put_str(&text, callf(w, "DescribeTimeToLive", "{'TableName':'%.*s'}",
                                     HF_FMT(tables.tables[i])));
    }
    CHECK_OK(hf_list_streams(w->scope, w->db, &(struct hf_list_streams){.limit = 100}, &streams));
    for (size_t i = 0; i < streams.streams_len; i++)
        hf__buf_put_str(&text, callf(w, "DescribeStream", "{'StreamArn':'%.*s'}",
                                     HF_FMT(streams.streams[i].arn)));
    hf__buf_put_str(&text, world_call(w, "ListBackups", "{}"));
    dump_store(w, &text);
    CHECK(!text.failed);
    copy = calloc(1, text.len + 1);
    CHECK(copy != NULL);
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    return copy;
}

/* The database is as it was when `expected` was written down. */
#define CHECK_DUMP(w, expected) check_dump((w), (expected), __FILE__, __LINE__)
__attribute__((unused)) static void check_dump(struct world *w, const char *expected,
                                               const char *file, int line)
{
    char *now = dump(w);
    size_t at = 0;

    while (now[at] && now[at] == expected[at])
        at++;
    if (now[at] != expected[at])
        fail_msg("%s:%d: the database differs from\n  %.200s\nit has\n  %.200s", file, line,
                 expected + (at > 60 ? at - 60 : 0), now + (at > 60 ? at - 60 : 0));
    free(now);
}

#endif
