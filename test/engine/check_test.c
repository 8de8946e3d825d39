/*
 * engine/check_test.c: hf_engine_check_with(): how far it is, how it is ended, and what it finds of
 * indexes and of files that were damaged after they were read.
 */
#include "help.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "engine/engine.h"
#include "engine/layout.h"
#include "store/store.h"

enum { ITEMS = 1200, VALUE = 500 };

#define WITH_INDEX                                                                                 \
    "{'TableName':'tab','BillingMode':'PAY_PER_REQUEST','KeySchema':[{'AttributeName':'pk',"       \
    "'KeyType':'HASH'}],'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"       \
    "{'AttributeName':'g','AttributeType':'S'}],'GlobalSecondaryIndexes':[{'IndexName':'by_g',"    \
    "'KeySchema':[{'AttributeName':'g','KeyType':'HASH'}],'Projection':{'ProjectionType':"         \
    "'ALL'}}]}"

static void fill_table(struct world *w, int items)
{
    char value[VALUE + 1];

    memset(value, 'v', VALUE);
    value[VALUE] = '\0';
    world_ok(w, "CreateTable", WITH_INDEX);
    for (int i = 0; i < items; i++)
        callf(w, "PutItem",
              "{'TableName':'tab','Item':{'pk':{'S':'k%d'},'g':{'S':'g%d'},'v':{'S':'%s'}}}", i, i,
              value);
}

struct seen {
    struct hf_check_progress last;
    int calls;
    int steps_back;
    uint64_t cancel_keys; /* cancel when so many keys were compared, and bytes were read */
    struct hf_scope *cancel;
    enum hf_status answer;
};

static enum hf_status on_progress(const struct hf_check_progress *progress, void *user)
{
    struct seen *seen = user;

    seen->calls++;
    seen->steps_back += progress->keys < seen->last.keys || progress->bytes < seen->last.bytes ||
                        progress->about_bytes < progress->bytes;
    seen->last = *progress;
    if (seen->cancel && progress->bytes > 0 && progress->keys >= seen->cancel_keys)
        hf_scope_cancel(seen->cancel);
    return seen->answer;
}

static enum hf_status check_seen(struct world *w, struct seen *seen, struct hf_check_report *report)
{
    return hf_engine_check_with(w->scope, w->db,
                                HF_OPTIONS(hf_check_options, .on_progress = on_progress,
                                           .user = seen),
                                report);
}

static void check_progress(struct test *t, const char *kind, bool in_tables)
{
    struct world w = world_open(t, kind);
    struct hf_check_report report;
    struct seen seen = {0};
    uint64_t least = (uint64_t)2 * ITEMS * VALUE; /* items, and entries of the index */

    fill_table(&w, ITEMS);
    if (in_tables)
        world_reopen(&w);
    CHECK_OK(check_seen(&w, &seen, &report));
    CHECK_INT(ITEMS, report.items);
    CHECK(seen.calls >= 2 * ITEMS / STORE_WATCH_KEYS);
    CHECK_INT(0, seen.steps_back);
    CHECK(seen.last.keys >= 2 * ITEMS);
    CHECK(seen.last.bytes == seen.last.about_bytes);
    CHECK(seen.last.bytes > least * (in_tables ? 2 : 1));
    CHECK(seen.last.bytes < least * (in_tables ? 3 : 2));
    world_close(&w);
}

TEST(check, progress_of_what_is_in_tables)
{
    check_progress(t, "disk:", true);
}

TEST(check, progress_of_what_is_in_memory)
{
    check_progress(t, "memory:", false);
}

/* The estimate at the start is of the right size: the sum of the files, and what is in memory. */
TEST(check, the_first_estimate_is_about_right)
{
    struct world w = world_open(t, "disk:");
    struct seen first = {.answer = HF_LIMIT};
    struct seen whole = {0};

    fill_table(&w, ITEMS);
    world_reopen(&w);
    CHECK_STATUS(HF_LIMIT, check_seen(&w, &first, NULL));
    CHECK_INT(1, first.calls);
    CHECK_OK(check_seen(&w, &whole, NULL));
    CHECK(first.last.about_bytes > whole.last.bytes / 2);
    CHECK(first.last.about_bytes < whole.last.bytes * 2);
    world_close(&w);
}

TEST(check, cancellation_ends_it_while_files_are_read_and_while_keys_are_compared)
{
    struct world w = world_open(t, "disk:");

    fill_table(&w, ITEMS);
    world_reopen(&w);
    for (uint64_t keys = 0; keys <= STORE_WATCH_KEYS; keys += STORE_WATCH_KEYS) {
        struct seen seen = {.cancel = w.scope, .cancel_keys = keys};

        CHECK_STATUS(HF_CANCELED, check_seen(&w, &seen, NULL));
        CHECK(seen.last.keys < keys + 2 * STORE_WATCH_KEYS);
        CHECK(keys > 0 || seen.last.keys == 0);
        hf_scope_reset(w.scope);
    }
    world_close(&w);
}

/* ---- what it finds -------------------------------------------------------------------------- */

static void flip_in_tables(const char *dir)
{
    DIR *listing = opendir(dir);
    struct dirent *entry;
    int flipped = 0;

    CHECK(listing);
    while ((entry = readdir(listing))) {
        const char *ending = strrchr(entry->d_name, '.');
        char path[1024];
        char byte = 0;
        int fd;

        if (!ending || strcmp(ending, ".sst") != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        fd = open(path, O_RDWR | O_CLOEXEC);
        CHECK(fd >= 0 && pread(fd, &byte, 1, 100) == 1);
        byte = (char)(byte ^ 1);
        CHECK(pwrite(fd, &byte, 1, 100) == 1);
        close(fd);
        flipped++;
    }
    closedir(listing);
    CHECK(flipped > 0);
}

/* Reads go on from the cache; a check reads the file. */
TEST(check, a_table_that_is_damaged_while_it_is_in_the_cache)
{
    struct world w = world_open(t, "disk:");
    char dir[1024];

    fill_table(&w, 20);
    world_reopen(&w);
    world_ok(&w, "Scan", "{'TableName':'tab'}");
    CHECK_OK(hf_engine_check(w.scope, w.db, NULL));
    world_ok(&w, "Scan", "{'TableName':'tab'}");
    snprintf(dir, sizeof(dir), "%s/db", w.url + strlen("embedded:"));
    flip_in_tables(dir);
    CHECK_STATUS(HF_CORRUPT, hf_engine_check(w.scope, w.db, NULL));
    CHECK(strstr(hf_scope_error_text(w.scope), ".sst"));
    flip_in_tables(dir);
    world_close(&w);
}

static struct hf__store *open_on_memory(struct world *w, struct test *t)
{
    struct hf__store *store;

    *w = (struct world){.t = t, .scope = hf_scope_new(test_env(t)), .url = "memory:"};
    w->options = (struct hf_engine_options){.size = sizeof(w->options),
                                            .env = test_env(t),
                                            .no_upkeep_thread = true};
    CHECK_OK(hf__store_open_memory(w->scope, test_env(t), &store));
    CHECK_OK(hf__engine_open_on(w->scope, store, &w->options, &w->db));
    fill_table(w, 3);
    CHECK_OK(hf_engine_check(w->scope, w->db, NULL));
    return store;
}

/* The first entry of an index. */
static void first_entry(struct world *w, struct hf__store *store, struct hf_bytes *key,
                        struct hf_bytes *value)
{
    const uint8_t lower[] = {SPACE_INDEX};
    const struct store_range range = {.lower = {lower, 1}};
    struct hf__store_iter *iter;
    struct hf_str k, v;
    bool found;

    CHECK_OK(hf__store_iter_open(w->scope, store, NULL, &range, &iter));
    CHECK_OK(hf__store_iter_next(w->scope, iter, &found, key, value));
    CHECK(found && key->ptr[0] == SPACE_INDEX);
    k = hf_scope_copy(w->scope, hf_str_of((const char *)key->ptr, key->len));
    v = hf_scope_copy(w->scope, hf_str_of((const char *)value->ptr, value->len));
    *key = hf_bytes_of(k.ptr, k.len);
    *value = hf_bytes_of(v.ptr, v.len);
    hf__store_iter_close(iter);
}

/* Put the value there, or delete what is there when it is absent. */
static void write_entry(struct world *w, struct hf__store *store, struct hf_bytes key,
                        struct hf_bytes value)
{
    struct store_batch batch = {.ops = {.scope = w->scope}};
    uint64_t ticket;

    if (value.ptr)
        hf__batch_put(&batch, key, value);
    else
        hf__batch_delete(&batch, key);
    CHECK_OK(hf__store_write(w->scope, store, &batch, &ticket));
}

static void check_finds(struct world *w, const char *problem)
{
    struct hf_check_report report;

    CHECK_STATUS(HF_CORRUPT, hf_engine_check(w->scope, w->db, &report));
    CHECK(report.problems > 0);
    if (!memmem(report.first_problem.ptr, report.first_problem.len, problem, strlen(problem)))
        fail_msg("%.*s", HF_FMT(report.first_problem));
}

TEST(check, entries_of_an_index_that_are_missing_stray_or_damaged)
{
    const struct hf_bytes none = {NULL, 0};
    struct world w;
    struct hf__store *store = open_on_memory(&w, t);
    struct hf_bytes key, value;
    uint8_t *stray;

    first_entry(&w, store, &key, &value);
    write_entry(&w, store, key, none);
    check_finds(&w, "an item has no entry in an index");
    write_entry(&w, store, key, hf_bytes_of(value.ptr, value.len - 1));
    check_finds(&w, "an index entry");
    write_entry(&w, store, key, value);
    CHECK_OK(hf_engine_check(w.scope, w.db, NULL));

    stray = hf_scope_alloc(w.scope, key.len + 1);
    memcpy(stray, key.ptr, key.len);
    stray[key.len] = 'x';
    write_entry(&w, store, hf_bytes_of(stray, key.len + 1), value);
    check_finds(&w, "an index entry has no item");
    write_entry(&w, store, hf_bytes_of(stray, key.len + 1), none);
    world_close(&w);
}
