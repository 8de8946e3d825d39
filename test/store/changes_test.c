/*
 * store/changes_test.c: reading changes from the journal of a store that is open, and what is kept
 * of it for that.
 */
#include "store/store.h"

#include <stdlib.h>
#include <unistd.h>

#include "kinds.h"

enum { SMALL = 256 * 1024, VALUE = 4096, MANY = 600 };

struct reader {
    struct hf_scope *s;
    uint64_t first, last; /* of the changes that were read */
    size_t ops;
};

static enum hf_status take(struct hf_scope *s, uint64_t ticket, struct hf_bytes record, void *user)
{
    struct reader *r = user;
    struct store_batch batch = {.ops = {.scope = s}};
    struct hf__mark mark = hf__scope_mark(s);

    CHECK(!r->last || ticket == r->last + 1);
    r->first = r->first ? r->first : ticket;
    r->last = ticket;
    CHECK_OK(hf__batch_add_change(s, &batch, ticket, record));
    CHECK_STATUS(HF_CORRUPT, hf__batch_add_change(s, &batch, ticket + 1, record));
    r->ops += batch.count / 2;
    hf__scope_error_clear(s);
    hf__scope_rewind(s, mark);
    return HF_OK;
}

static void open_store(struct test *t, struct fixture *f, uint64_t keep_bytes)
{
    const struct store_options options = {.sync = STORE_SYNC_NONE,
                                          .memtable_bytes = SMALL,
                                          .keep_bytes = keep_bytes};

    if (!f->s)
        *f = (struct fixture){.s = hf_scope_new(test_env(t)), .path = test_quick_directory(t)};
    CHECK_OK(hf__store_open_disk(f->s, test_env(t), hf_str_from(f->path), &options, &f->store));
}

static void write_many(struct fixture *f, uint32_t from, uint32_t count)
{
    uint8_t value[VALUE] = {0}, key[4];

    for (uint32_t i = from; i < from + count; i++) {
        store_u32be(key, i);
        CHECK_OK(put_bytes(f->s, f->store, hf_bytes_of(key, 4), hf_bytes_of(value, VALUE)));
    }
}

static enum hf_status read_on(struct fixture *f, struct store_changes *at, struct reader *r)
{
    uint64_t upto = hf__store_durable(f->store);
    enum hf_status status = HF_OK;

    while (status == HF_OK && at->after < upto)
        status = hf__store_changes(f->s, f->store, at, upto, 64 * 1024, take, r);
    return status;
}

/* Over many files, in pieces, while they are written, and after the store was killed or closed. */
TEST(store_changes, every_change_once_and_in_order)
{
    struct store_changes at = {.after = 0};
    struct fixture f = {.s = NULL};
    struct reader r = {.ops = 0};

    open_store(t, &f, 64 << 20);
    for (uint32_t i = 0; i < 4; i++) {
        write_many(&f, i * MANY / 4, MANY / 4);
        CHECK_OK(read_on(&f, &at, &r));
        CHECK_INT(hf__store_written(f.store), at.after);
    }
    CHECK_INT(MANY, r.ops);
    at = (struct store_changes){.after = 17}; /* somebody who begins in the middle */
    r = (struct reader){.ops = 0};
    CHECK_OK(read_on(&f, &at, &r));
    CHECK_INT(18, r.first);
    CHECK_INT(hf__store_written(f.store), r.last);
    hf__store_close(f.store);
    open_store(t, &f, 64 << 20);
    write_many(&f, MANY, 10);
    CHECK_OK(read_on(&f, &at, &r)); /* a clean close leaves no file, and the next change is there */
    CHECK_INT(MANY + 10, r.last);
    at = (struct store_changes){.after = 17};
    r = (struct reader){.ops = 0};
    CHECK_STATUS(HF_NOT_FOUND, read_on(&f, &at, &r));
    fixture_close(&f);
}

/* Without keep_bytes, and beyond it, files go as soon as tables have them. */
TEST(store_changes, what_is_not_kept_is_gone)
{
    for (int keep = 0; keep < 2; keep++) {
        struct store_changes at = {.after = 0};
        struct fixture f = {.s = NULL};
        struct store_stats stats;

        open_store(t, &f, keep ? SMALL : 0);
        write_many(&f, 0, 2 * MANY);
        for (int i = 0; i < 12000; i++) { /* its thread removes them: this only ends a hang */
            hf__store_stats(f.store, &stats);
            if (stats.kept_bytes < 3 * 1024 * 1024)
                break;
            usleep(5000);
        }
        CHECK(stats.kept_bytes < 3 * 1024 * 1024);
        CHECK_STATUS(HF_NOT_FOUND, read_on(&f, &at, &(struct reader){.ops = 0}));
        fixture_close(&f);
    }
}

/* The ticket of a snapshot says exactly what is in it. */
TEST(store_changes, a_snapshot_and_its_ticket)
{
    struct hf__store_snapshot *snapshot;
    struct fixture f = {.s = NULL};
    struct hf_bytes value;
    uint64_t ticket;
    uint8_t key[4];

    open_store(t, &f, 64 << 20);
    write_many(&f, 0, 5);
    CHECK_OK(hf__store_snapshot_at(f.s, f.store, &snapshot, &ticket));
    CHECK_INT(5, ticket);
    write_many(&f, 5, 5);
    for (uint32_t i = 0; i < 10; i++) {
        store_u32be(key, i);
        CHECK_OK(hf__store_get(f.s, f.store, snapshot, hf_bytes_of(key, 4), &value));
        CHECK((value.ptr != NULL) == (i < 5));
    }
    hf__store_snapshot_close(f.store, snapshot);
    CHECK(hf__store_id(f.store) != 0);
    fixture_close(&f);
}

TEST(store_changes, a_store_in_memory_has_none)
{
    struct store_changes at = {.after = 0};
    struct hf__store_snapshot *snapshot;
    struct fixture f;
    uint64_t ticket;

    fixture_open(t, &f, KIND_MEMORY);
    put(&f, "a", "b");
    CHECK_STATUS(HF_UNSUPPORTED, hf__store_changes(f.s, f.store, &at, 1, 1, take, NULL));
    CHECK_STATUS(HF_UNSUPPORTED, hf__store_snapshot_at(f.s, f.store, &snapshot, &ticket));
    CHECK_INT(0, hf__store_id(f.store));
    hf__store_changes_release(f.store, 1);
    fixture_close(&f);
}

/* Anything that is not a record is refused. */
TEST(store_changes, records_that_are_none)
{
    static const uint8_t none[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9, 9, 9};
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t len = 0; len <= sizeof(none); len++) {
        struct store_batch batch = {.ops = {.scope = s}};

        CHECK_STATUS(HF_CORRUPT, hf__batch_add_change(s, &batch, 1, hf_bytes_of(none, len)));
    }
    hf_scope_free(s);
}
