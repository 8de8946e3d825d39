/* store/kinds.h: the kinds of store that share one behaviour, and short ways to use them. */
#ifndef HF_TEST_STORE_KINDS_H
#define HF_TEST_STORE_KINDS_H

#include "store/store.h"

#include "test.h"

#include <string.h>

enum kind { KIND_MEMORY, KIND_FAULTY, KIND_DISK, KINDS };

struct fixture {
    struct hf_scope *s;
    struct hf__store *store;
    struct store_faults faults;
    const char *path;
};

static inline struct hf_bytes bytes_from(const char *text)
{
    return hf_bytes_of(text, strlen(text));
}

static inline void fixture_open(struct test *t, struct fixture *f, enum kind kind)
{
    struct hf__store *inner;

    memset(f, 0, sizeof(*f));
    f->s = hf_scope_new(test_env(t));
    CHECK(f->s);
    if (kind == KIND_DISK) {
        struct store_options options = {.sync = STORE_SYNC_NONE, .memtable_bytes = 1 << 20};

        f->path = test_directory(t);
        CHECK_OK(hf__store_open_disk(f->s, test_env(t), hf_str_from(f->path), &options, &f->store));
        return;
    }
    CHECK_OK(hf__store_open_memory(f->s, test_env(t), &f->store));
    if (kind == KIND_FAULTY) {
        inner = f->store;
        CHECK_OK(hf__store_open_with_faults(f->s, test_env(t), inner, &f->faults, &f->store));
    }
}

static inline void fixture_close(struct fixture *f)
{
    hf__store_close(f->store);
    hf_scope_free(f->s);
}

static inline void put(struct fixture *f, const char *key, const char *value)
{
    struct store_batch batch = {.ops = {.scope = f->s}};
    uint64_t ticket;

    hf__batch_put(&batch, bytes_from(key), bytes_from(value));
    CHECK_OK(hf__store_write(f->s, f->store, &batch, &ticket));
}

/* Written and synced; nothing of it stays in the scope. */
static inline enum hf_status put_bytes(struct hf_scope *s, struct hf__store *store,
                                       struct hf_bytes key, struct hf_bytes value)
{
    struct hf__mark mark = hf__scope_mark(s);
    struct store_batch batch = {.ops = {.scope = s}};
    uint64_t ticket;

    hf__batch_put(&batch, key, value);
    TRY(hf__store_write(s, store, &batch, &ticket));
    TRY(hf__store_sync(s, store, ticket));
    hf__scope_rewind(s, mark);
    return HF_OK;
}

enum { HOT_BYTES = 1024 };

/* The nth value of a key that is written again and again. */
static inline enum hf_status put_hot(struct hf_scope *s, struct hf__store *store, uint32_t n)
{
    uint8_t value[HOT_BYTES] = {0};

    store_u32be(value, n);
    return put_bytes(s, store, hf_bytes_of("hot", 3), hf_bytes_of(value, sizeof(value)));
}

/* The value as a string, absent when there is none. */
static inline struct hf_str get(struct fixture *f, const struct hf__store_snapshot *snapshot,
                                const char *key)
{
    struct hf_bytes value;

    CHECK_OK(hf__store_get(f->s, f->store, snapshot, bytes_from(key), &value));
    return hf_str_of((const char *)value.ptr, value.len);
}

/* "k=v k=v ..." of a range. */
static inline struct hf_str walk(struct fixture *f, const struct hf__store_snapshot *snapshot,
                                 const char *lower, const char *upper, bool reverse)
{
    struct store_range range = {.lower = bytes_from(lower),
                                .upper = bytes_from(upper),
                                .reverse = reverse};
    struct hf__buf out = {.scope = f->s};
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    bool found;

    CHECK_OK(hf__store_iter_open(f->s, f->store, snapshot, &range, &iter));
    for (;;) {
        CHECK_OK(hf__store_iter_next(f->s, iter, &found, &key, &value));
        if (!found)
            break;
        if (out.len)
            hf__buf_put_byte(&out, ' ');
        hf__buf_put(&out, key.ptr, key.len);
        hf__buf_put_byte(&out, '=');
        hf__buf_put(&out, value.ptr, value.len);
    }
    /* The end stays the end. */
    CHECK_OK(hf__store_iter_next(f->s, iter, &found, &key, &value));
    CHECK(!found);
    hf__store_iter_close(iter);
    return hf_str_of(out.len ? (const char *)out.ptr : "", out.len);
}

#define EACH_KIND(kind) for (int kind = 0; kind < KINDS; kind++)

#endif
