/*
 * store/memtable_test.c: maps in front of tables. Random changes, freezes and tables, and after
 * each of them gets and walks, of the newest state and of views that were opened before, are
 * compared with an array that has a place for every key. Then the parts that a store adds: tables
 * that cannot be written for a while, and writers that are faster than tables are.
 */
#include "store/memtable.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "child.h"
#include "kinds.h"

enum { KEYS = 120, VIEWS = 4, STEPS = 6000, BATCH = 5 };

/* The value of each key, 0: none. */
struct model {
    uint32_t values[KEYS];
};

struct bench {
    struct hf_scope *s;
    struct tables *tables;
    struct memtable memtable;
    struct model model;
    struct memtable_view views[VIEWS];
    struct model then[VIEWS]; /* what the view has to show */
    bool open[VIEWS];
    uint64_t changes;
    uint64_t freezes, tabled, walked; /* so that a test that does nothing is noticed */
};

static struct hf_bytes key_of(struct hf_scope *s, uint32_t key)
{
    struct hf_str text = hf_scope_format(s, "key/%03u%s", key, key % 3 ? "" : "/with a longer end");

    return hf_bytes_of(text.ptr, text.len);
}

static void bench_open(struct test *t, struct bench *b, const char *path)
{
    struct tables_options options = {.env = test_env(t),
                                     .path = path,
                                     .table_bytes = 1 << 20,
                                     .cache_bytes = 1 << 20,
                                     .missing = true};
    struct hf_str db;

    memset(b, 0, sizeof(*b));
    b->s = hf_scope_new(test_env(t));
    db = hf_scope_format(b->s, "%s/db", path);
    options.db_path = db.ptr;
    CHECK_OK(hf__tables_open(b->s, &options, &b->tables));
    CHECK_OK(hf__memtable_open(b->s, &b->memtable, test_env(t), hf__tables_newest(b->tables)));
}

static void bench_close(struct bench *b)
{
    for (int i = 0; i < VIEWS; i++)
        if (b->open[i])
            hf__memtable_view_close(&b->views[i]);
    hf__memtable_close(&b->memtable);
    hf__tables_close(b->tables);
    hf_scope_free(b->s);
}

/* A batch of puts and deletes; the same key may come more than once. */
static void change(struct test *t, struct bench *b)
{
    struct map_entry *entries[BATCH];
    size_t len = 1 + test_random(t) % BATCH;

    for (size_t i = 0; i < len; i++) {
        uint32_t key = (uint32_t)(test_random(t) % KEYS);
        uint32_t value = test_random(t) % 3 ? (uint32_t)test_random(t) | 1 : 0;

        entries[i] = hf__map_entry_make(test_env(t), key_of(b->s, key), hf_bytes_of(NULL, 0),
                                        hf_bytes_of(&value, value ? sizeof(value) : 0));
        CHECK(entries[i]);
        entries[i]->gone = !value;
        entries[i]->fresh = value && !b->model.values[key] && test_random(t) % 4;
        b->model.values[key] = value;
    }
    CHECK(hf__memtable_prepare(&b->memtable, entries, len));
    hf__memtable_apply(&b->memtable, entries, len, ++b->changes);
}

static void freeze_or_flush(struct bench *b)
{
    char error[TABLES_ERROR_MAX];
    const struct map_node *root;
    struct tables_mark mark = {.id = 7};
    uint64_t last;

    if (!hf__memtable_frozen(&b->memtable, &root, &last)) {
        CHECK(hf__memtable_freeze(&b->memtable));
        b->freezes++;
        return;
    }
    mark.last = last;
    CHECK_OK(hf__tables_add(b->tables, root, &mark, error));
    hf__memtable_flushed(&b->memtable, hf__tables_newest(b->tables));
    CHECK_OK(hf__tables_mark(b->s, b->tables, &mark));
    CHECK(mark.whole && mark.last == last && mark.id == 7);
    b->tabled = last;
}

static void check_get(struct bench *b, const struct memtable_view *view, const struct model *model,
                      uint32_t key)
{
    struct hf_bytes value = hf_bytes_of(NULL, 0);

    CHECK_OK(hf__memtable_get(b->s, &b->memtable, view, key_of(b->s, key), &value));
    if (model->values[key])
        CHECK(value.len == 4 && memcmp(value.ptr, &model->values[key], 4) == 0);
    else
        CHECK(!value.ptr);
}

/* The keys in [from, to), all of them from a `to` that is KEYS. */
static void check_walk(struct bench *b, const struct memtable_view *view, const struct model *model,
                       uint32_t from, uint32_t to, bool reverse)
{
    struct store_range range = {.lower = key_of(b->s, from), .reverse = reverse};
    struct memtable_walk *walk;
    struct hf_bytes key, value;
    bool found;

    if (to < KEYS)
        range.upper = key_of(b->s, to);
    CHECK_OK(hf__memtable_walk_open(b->s, &b->memtable, view, &range, &walk));
    for (uint32_t i = from; i < to; i++) {
        uint32_t at = reverse ? to - 1 - (i - from) : i;
        struct hf_bytes want = key_of(b->s, at);

        if (!model->values[at])
            continue;
        CHECK_OK(hf__memtable_walk_next(b->s, walk, &found, &key, &value));
        CHECK(found && key.len == want.len && memcmp(key.ptr, want.ptr, want.len) == 0);
        CHECK(value.len == 4 && memcmp(value.ptr, &model->values[at], 4) == 0);
        b->walked++;
    }
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hf__memtable_walk_next(b->s, walk, &found, &key, &value));
        CHECK(!found);
    }
    hf__memtable_walk_close(walk);
}

static void look(struct test *t, struct bench *b)
{
    int at = (int)(test_random(t) % (VIEWS + 1));
    const struct memtable_view *view = at < VIEWS && b->open[at] ? &b->views[at] : NULL;
    const struct model *model = view ? &b->then[at] : &b->model;
    uint32_t from = (uint32_t)(test_random(t) % KEYS);
    uint32_t to = from + (uint32_t)(test_random(t) % (KEYS + 1 - from));

    check_get(b, view, model, (uint32_t)(test_random(t) % KEYS));
    check_walk(b, view, model, from, to, test_random(t) & 1);
}

static void toggle_view(struct test *t, struct bench *b)
{
    int at = (int)(test_random(t) % VIEWS);

    if (b->open[at])
        hf__memtable_view_close(&b->views[at]);
    else
        hf__memtable_view(&b->memtable, &b->views[at]);
    b->then[at] = b->model;
    b->open[at] = !b->open[at];
}

TEST(store_memtable, layers_read_as_one)
{
    struct bench b;

    bench_open(t, &b, test_directory(t));
    for (int i = 0; i < STEPS; i++) {
        struct hf__mark mark = hf__scope_mark(b.s);
        uint64_t dice = test_random(t) % 100;

        if (dice < 45)
            change(t, &b);
        else if (dice < 48)
            freeze_or_flush(&b);
        else if (dice < 55)
            toggle_view(t, &b);
        else
            look(t, &b);
        hf__scope_rewind(b.s, mark);
    }
    CHECK(b.freezes > 20 && b.tabled > 100 && b.walked > 10000);
    CHECK(hf__memtable_check(&b.memtable));
    CHECK_OK(hf__tables_verify(b.s, b.tables, NULL));
    bench_close(&b);
}

static void change_one(struct test *t, struct bench *b, uint32_t key, bool gone, bool fresh)
{
    struct map_entry *entry =
        hf__map_entry_make(test_env(t), key_of(b->s, key), hf_bytes_of("12", gone ? 0 : 2),
                           hf_bytes_of("34", gone ? 0 : 2));

    CHECK(entry);
    entry->gone = gone;
    entry->fresh = fresh;
    CHECK(hf__memtable_prepare(&b->memtable, &entry, 1));
    hf__memtable_apply(&b->memtable, &entry, 1, ++b->changes);
}

static void check_gone(struct bench *b, uint32_t key)
{
    struct hf_bytes value = hf_bytes_of(NULL, 0);

    CHECK_OK(hf__memtable_get(b->s, &b->memtable, NULL, key_of(b->s, key), &value));
    CHECK(!value.ptr);
}

/* Only where nothing is behind it a deleted key leaves nothing; a map may have nothing but changes
 * that it saw, and its table says so. */
TEST(store_memtable, what_comes_and_goes_leaves_no_trace)
{
    const char *path = test_directory(t);
    struct memtable_view view;
    struct bench b;
    size_t empty;

    bench_open(t, &b, path);
    change_one(t, &b, 1, false, true);
    change_one(t, &b, 2, false, true);
    change_one(t, &b, 2, false, false); /* still the only one of its key */
    hf__memtable_view(&b.memtable, &view);
    change_one(t, &b, 1, true, false);
    hf__memtable_view_close(&view);
    change_one(t, &b, 2, true, false);
    CHECK_INT(0, hf__memtable_active_bytes(&b.memtable));
    freeze_or_flush(&b);
    freeze_or_flush(&b);
    CHECK_INT(b.changes, b.tabled);

    change_one(t, &b, 3, false, true);
    freeze_or_flush(&b);
    change_one(t, &b, 3, true, false); /* the frozen map has it */
    CHECK(hf__memtable_active_bytes(&b.memtable) > 0);
    check_gone(&b, 3);
    freeze_or_flush(&b);
    check_gone(&b, 3); /* now the tables */
    empty = hf__memtable_active_bytes(&b.memtable);
    change_one(t, &b, 3, false, true); /* there was one that says that it is gone */
    change_one(t, &b, 3, true, false);
    CHECK_INT(empty, hf__memtable_active_bytes(&b.memtable));
    check_gone(&b, 3);
    freeze_or_flush(&b);
    change_one(t, &b, 3, false, true); /* the frozen map says so */
    change_one(t, &b, 3, true, false);
    CHECK_INT(0, hf__memtable_active_bytes(&b.memtable));
    check_gone(&b, 3);
    freeze_or_flush(&b);
    check_gone(&b, 3);
    CHECK(hf__memtable_check(&b.memtable));
    bench_close(&b);
}

/* ---- stores --------------------------------------------------------------------------------- */

enum { WRITERS = 4, EACH = 4000, SMALL = 256 * 1024 };

struct writer {
    struct test *t;
    struct hf__store *store;
    unsigned number;
    enum hf_status status;
    uint64_t most; /* bytes of memory seen */
};

static void *write_all(void *user)
{
    struct writer *writer = user;
    struct hf_scope *s = hf_scope_new(test_env(writer->t));

    for (uint32_t n = 1; writer->status == HF_OK && n <= EACH; n++) {
        struct hf__mark mark = hf__scope_mark(s);
        struct store_stats stats;

        writer->status = write_items(s, writer->store, writer->number, n, n, false);
        if (n % 100 == 0) {
            hf__store_stats(writer->store, &stats);
            if (stats.memory_bytes > writer->most)
                writer->most = stats.memory_bytes;
        }
        hf__scope_rewind(s, mark);
    }
    hf_scope_free(s);
    return NULL;
}

/* Who writes faster than tables are written waits for them: memory stays within what was given. */
TEST(store_memtable, writers_wait_for_tables)
{
    struct store_options options = {.sync = STORE_SYNC_NONE, .memtable_bytes = SMALL};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    struct acked acked = {{0}};
    struct hf__store *store;
    const char *path = test_directory(t);

    CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store));
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.t = t, .store = store, .number = i};
        acked.by_thread[i] = EACH;
        CHECK(pthread_create(&threads[i], NULL, write_all, &writers[i]) == 0);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_OK(writers[i].status);
        CHECK(writers[i].most < 4 * SMALL + (8 << 20)); /* and the cache of blocks */
    }
    CHECK(acked_is_there(s, store, &acked));
    hf__store_close(store);
    CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store));
    CHECK(acked_is_there(s, store, &acked));
    hf__store_close(store);
    hf_scope_free(s);
}

/* A queue: each key is there for a moment. */
static void pass_by(struct hf_scope *s, struct hf__store *store, uint32_t from, uint32_t to)
{
    for (uint32_t n = from; n < to; n++) {
        struct hf__mark mark = hf__scope_mark(s);
        struct store_batch batch = {.ops = {.scope = s}};
        uint64_t ticket;

        hf__batch_put_parts(&batch, key_of(s, n), hf_bytes_of(NULL, 0), hf_bytes_of("something", 9),
                            true);
        if (n > from)
            hf__batch_delete(&batch, key_of(s, n - 1));
        CHECK_OK(hf__store_write(s, store, &batch, &ticket));
        hf__scope_rewind(s, mark);
    }
}

TEST(store_memtable, a_queue_makes_no_tables)
{
    enum { PASSED = 20000 };
    struct store_options options = {.sync = STORE_SYNC_NONE, .memtable_bytes = SMALL};
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *path = test_directory(t);
    struct hf_bytes value;
    struct store_stats stats;
    struct hf__store *store;

    CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store));
    pass_by(s, store, 1, PASSED);
    hf__store_stats(store, &stats);
    CHECK(stats.memory_bytes < 16384);
    for (int again = 0; again < 2; again++) {
        uint32_t last = PASSED - 1;

        CHECK_OK(hf__store_get(s, store, NULL, key_of(s, last), &value));
        CHECK(value.len == 9);
        CHECK_OK(hf__store_get(s, store, NULL, key_of(s, last - 1), &value));
        CHECK(!value.ptr);
        hf__store_close(store);
        CHECK_OK(hf__store_open_disk(s, test_env(t), hf_str_from(path), &options, &store));
    }
    CHECK_OK(hf__store_verify(s, store, NULL));
    hf__store_close(store);
    hf_scope_free(s);
}
