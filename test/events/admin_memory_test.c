/*
 * test/events/admin_memory_test.c: any allocation may fail: then the call says HF_NOMEM, nothing
 * leaks, and what it was about can be done again.
 */
#include <holdfast/engine.h>
#include <holdfast/events.h>

#include "test.h"

struct text {
    char bytes[8000];
    size_t len, at;
};

static enum hf_status write_text(struct hf_scope *s, const void *bytes, size_t len, void *user)
{
    struct text *text = user;

    if (sizeof(text->bytes) - text->len < len)
        return hf_scope_fail(s, HF_LIMIT, "the text is full");
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
    return HF_OK;
}

static enum hf_status read_text(struct hf_scope *s, void *bytes, size_t cap, size_t *len,
                                void *user)
{
    struct text *text = user;

    (void)s;
    *len = text->len - text->at < cap ? text->len - text->at : cap;
    memcpy(bytes, text->bytes + text->at, *len);
    text->at += *len;
    return HF_OK;
}

static const struct hf_event_stream_key stream = {{"order", 5}, {"7", 1}};

static enum hf_status append(struct hf_scope *s, struct hf_events *store, const char *id)
{
    struct hf_new_event event = {.id = hf_str_from(id),
                                 .type = HF_STR("t"),
                                 .payload = hf_bytes_of("{}", 2),
                                 .causation = HF_STR("cause"),
                                 .correlation = HF_STR("cause")};
    struct hf_append one = {.stream = stream, .events = &event, .events_len = 1};

    return hf_events_append(s, store, &one, 1, NULL, NULL);
}

typedef enum hf_status use_fn(struct hf_scope *s, struct hf_events *store);

static enum hf_status use_related(struct hf_scope *s, struct hf_events *store)
{
    const struct hf_stored_event *events;
    struct hf_event_tree tree;
    enum hf_status status;
    size_t len;

    status = hf_events_caused_by(s, store, HF_STR("cause"), &events, &len);
    if (status == HF_OK)
        status = hf_events_correlated(s, store, HF_STR("cause"), &events, &len);
    return status == HF_OK ? hf_events_tree(s, store, HF_STR("a"), 0, &tree) : status;
}

static enum hf_status use_archive(struct hf_scope *s, struct hf_events *store)
{
    enum hf_status status = hf_events_archive(s, store, stream);

    return status == HF_OK ? hf_events_unarchive(s, store, stream) : status;
}

static enum hf_status use_limits(struct hf_scope *s, struct hf_events *store)
{
    struct hf_event_stream_info info;
    enum hf_status status = hf_events_limit_stream(s, store, stream, 10000000, 100);

    if (status == HF_OK)
        status = hf_events_truncate(s, store, stream, 1);
    return status == HF_OK ? hf_events_stream_info(s, store, stream, &info) : status;
}

static enum hf_status use_verify(struct hf_scope *s, struct hf_events *store)
{
    return hf_events_verify(s, store, NULL, NULL, NULL);
}

static enum hf_status use_export(struct hf_scope *s, struct hf_events *store)
{
    struct text text = {.len = 0};
    enum hf_status status = hf_events_export(s, store, NULL, write_text, &text, NULL);

    return status == HF_OK ? hf_events_import(s, store, NULL, read_text, &text, NULL) : status;
}

/* There is something to sweep each time. */
static enum hf_status use_sweep(struct hf_scope *s, struct hf_events *store)
{
    const struct hf_event_stream_key other = {HF_STR("order"), HF_STR("swept")};
    struct hf_new_event event = {.type = HF_STR("t")};
    struct hf_append one = {.stream = other, .events = &event, .events_len = 1};
    struct hf_events_swept swept;
    struct hf_appended done;
    enum hf_status status = hf_events_append(s, store, &one, 1, NULL, &done);

    if (status == HF_OK)
        status = hf_events_truncate(s, store, other, done.last + 1);
    if (status == HF_OK)
        status = hf_scope_sleep_ms(s, 5000);
    return status == HF_OK ? hf_events_sweep(s, store, 1, &swept) : status;
}

static void sweep_memory(struct test *t, use_fn *use)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_events *store;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &db));
    CHECK_OK(hf_events_open(s, db, NULL, &store));
    CHECK_OK(append(s, store, "a"));
    CHECK_OK(append(s, store, "b"));
    for (int i = 0; i < 3; i++) /* what the database keeps is there before we count */
        CHECK_OK(use(s, store));
    hf_scope_free(s);
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *own = hf_scope_new(test_env(t));
        enum hf_status status = own ? use(own, store) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || t->alloc_failed);
        if (status != HF_OK && own) { /* and again */
            hf_scope_reset(own);
            CHECK_OK(use(own, store));
        }
        hf_scope_free(own);
    }
    s = hf_scope_new(test_env(t));
    CHECK_OK(hf_events_verify(s, store, NULL, NULL, NULL));
    hf_events_close(store);
    hf_db_close(db);
    hf_scope_free(s);
}

TEST(admin_memory, related)
{
    sweep_memory(t, use_related);
}

TEST(admin_memory, archive)
{
    sweep_memory(t, use_archive);
}

TEST(admin_memory, limits)
{
    sweep_memory(t, use_limits);
}

TEST(admin_memory, verify)
{
    sweep_memory(t, use_verify);
}

TEST(admin_memory, export_and_import)
{
    sweep_memory(t, use_export);
}

/* The database keeps the tokens of transactions for a while, so its memory grows, and what leaks is
 * found in the end. */
TEST(admin_memory, sweep)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_events *store;
    struct hf_db *db;
    size_t failed = 0;

    CHECK_OK(hf_open(s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &db));
    CHECK_OK(hf_events_open(s, db, NULL, &store));
    hf_scope_free(s);
    for (int64_t nth = 1;; nth++) {
        enum hf_status status;

        t->alloc_failed = false;
        t->fail_at = (int64_t)t->allocs + nth;
        s = hf_scope_new(test_env(t));
        status = s ? use_sweep(s, store) : HF_NOMEM;
        t->fail_at = 0;
        CHECK(status == HF_OK || (status == HF_NOMEM && t->alloc_failed));
        hf_scope_free(s);
        failed += status != HF_OK;
        if (!t->alloc_failed)
            break;
    }
    CHECK(failed > 20);
    s = hf_scope_new(test_env(t));
    CHECK_OK(use_sweep(s, store));
    CHECK_OK(hf_events_verify(s, store, NULL, NULL, NULL));
    hf_events_close(store);
    hf_db_close(db);
    hf_scope_free(s);
}
