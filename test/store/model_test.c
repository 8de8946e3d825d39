/*
 * store/model_test.c: random batches, reads, walks and snapshots, compared with a sorted array.
 * Keys come from few letters and share long prefixes, so that heads, prefixes and separators of
 * the memory store are all put to work.
 */
#include "kinds.h"

#include <stdlib.h>

enum { MODEL_MAX = 20000, KEY_MAX = 48, VALUE_MAX = 40 };

struct pair {
    uint8_t key[KEY_MAX];
    size_t key_len;
    uint8_t value[VALUE_MAX];
    size_t value_len;
};

struct model {
    struct pair *pairs;
    size_t len;
};

static size_t model_find(const struct model *m, struct hf_bytes key, bool *equal)
{
    size_t lo = 0, hi = m->len;

    *equal = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = bytes_compare(m->pairs[mid].key, m->pairs[mid].key_len, key.ptr, key.len);

        if (order == 0)
            *equal = true;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void model_put(struct model *m, struct hf_bytes key, struct hf_bytes value)
{
    bool equal;
    size_t i = model_find(m, key, &equal);

    if (!equal) {
        CHECK(m->len < MODEL_MAX);
        memmove(m->pairs + i + 1, m->pairs + i, (m->len - i) * sizeof(m->pairs[0]));
        m->len++;
    }
    memcpy(m->pairs[i].key, key.ptr, key.len);
    m->pairs[i].key_len = key.len;
    memcpy(m->pairs[i].value, value.ptr, value.len);
    m->pairs[i].value_len = value.len;
}

static void model_cut(struct model *m, size_t from, size_t to)
{
    if (from >= to)
        return;
    memmove(m->pairs + from, m->pairs + to, (m->len - to) * sizeof(m->pairs[0]));
    m->len -= to - from;
}

static void model_copy(struct model *to, const struct model *from)
{
    to->len = from->len;
    memcpy(to->pairs, from->pairs, from->len * sizeof(from->pairs[0]));
}

/* May be empty. */
static struct hf_bytes random_bound(struct test *t, uint8_t *to)
{
    static const char prefix[] = "a-long-prefix-of-one-partition-";
    size_t len = test_random_below(t, 3) ? test_random_below(t, 2) * (sizeof(prefix) - 1) : 0;
    size_t tail = test_random_below(t, 9);

    memcpy(to, prefix, len);
    for (size_t i = 0; i < tail; i++)
        to[len++] = (uint8_t)("\0ab\xff"[test_random_below(t, 4)]);
    return hf_bytes_of(to, len);
}

static struct hf_bytes random_key(struct test *t, uint8_t *to)
{
    struct hf_bytes key = random_bound(t, to);

    to[0] = key.len ? to[0] : '\0';
    return hf_bytes_of(to, key.len ? key.len : 1);
}

static void check_walk(struct test *t, struct fixture *f, const struct hf__store_snapshot *snapshot,
                       const struct model *m)
{
    uint8_t lower_bytes[KEY_MAX], upper_bytes[KEY_MAX];
    struct store_range range = {.lower = random_bound(t, lower_bytes),
                                .upper = random_bound(t, upper_bytes),
                                .reverse = test_random_below(t, 2)};
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    size_t from, to;
    bool equal, found;

    if (test_random_below(t, 4) == 0)
        range.upper.len = 0;
    from = model_find(m, range.lower, &equal);
    to = range.upper.len ? model_find(m, range.upper, &equal) : m->len;
    CHECK_OK(hf__store_iter_open(f->s, f->store, snapshot, &range, &iter));
    while (from < to) {
        const struct pair *want = range.reverse ? &m->pairs[--to] : &m->pairs[from++];

        CHECK_OK(hf__store_iter_next(f->s, iter, &found, &key, &value));
        CHECK(found);
        CHECK(bytes_compare(want->key, want->key_len, key.ptr, key.len) == 0);
        CHECK(bytes_compare(want->value, want->value_len, value.ptr, value.len) == 0);
    }
    CHECK_OK(hf__store_iter_next(f->s, iter, &found, &key, &value));
    CHECK(!found);
    hf__store_iter_close(iter);
}

static void check_gets(struct test *t, struct fixture *f, const struct hf__store_snapshot *snapshot,
                       const struct model *m)
{
    for (int i = 0; i < 50; i++) {
        uint8_t key_bytes[KEY_MAX];
        struct hf_bytes key = random_key(t, key_bytes);
        struct hf_bytes value;
        bool equal;
        size_t at = model_find(m, key, &equal);

        CHECK_OK(hf__store_get(f->s, f->store, snapshot, key, &value));
        CHECK(equal == (value.ptr != NULL));
        if (equal)
            CHECK(bytes_compare(m->pairs[at].value, m->pairs[at].value_len, value.ptr, value.len) ==
                  0);
    }
}

static void random_batch(struct test *t, struct model *m, struct store_batch *batch, bool shrink)
{
    size_t count = 1 + test_random_below(t, test_random_below(t, 10) ? 40 : 1000);

    while (count-- > 0) {
        uint8_t key_bytes[KEY_MAX], other[KEY_MAX], value_bytes[VALUE_MAX];
        struct hf_bytes key = random_key(t, key_bytes);
        uint64_t dice = test_random_below(t, 100);
        bool equal;

        if (test_random_below(t, shrink ? 500 : 5000) == 0) {
            struct hf_bytes upper = random_bound(t, other);

            hf__batch_delete_range(batch, key, upper);
            model_cut(m, model_find(m, key, &equal), model_find(m, upper, &equal));
        } else if (dice < (shrink ? 80 : 30)) {
            size_t at = model_find(m, key, &equal);

            hf__batch_delete(batch, key);
            model_cut(m, at, at + equal);
        } else {
            struct hf_bytes value = hf_bytes_of(value_bytes, test_random_below(t, VALUE_MAX));

            memset(value_bytes, (int)test_random(t), sizeof(value_bytes));
            hf__batch_put(batch, key, value);
            model_put(m, key, value);
        }
    }
}

static void run_model(struct test *t, enum kind kind, int rounds)
{
    struct fixture f;
    struct model now = {.pairs = calloc(MODEL_MAX, sizeof(struct pair))};
    struct model then = {.pairs = calloc(MODEL_MAX, sizeof(struct pair))};
    struct hf__store_snapshot *snapshot = NULL;

    fixture_open(t, &f, kind);
    for (int round = 0; round < rounds; round++) {
        struct store_batch batch = {.ops = {.scope = f.s}};
        uint64_t ticket;

        if (test_random_below(t, 4) == 0) {
            hf__store_snapshot_close(f.store, snapshot);
            snapshot = NULL;
            if (test_random_below(t, 2)) {
                CHECK_OK(hf__store_snapshot_open(f.s, f.store, &snapshot));
                model_copy(&then, &now);
            }
        }
        random_batch(t, &now, &batch, round / 50 % 2);
        CHECK_OK(hf__store_write(f.s, f.store, &batch, &ticket));
        CHECK_INT(ticket, hf__store_written(f.store));
        check_gets(t, &f, NULL, &now);
        check_walk(t, &f, NULL, &now);
        if (snapshot) {
            check_gets(t, &f, snapshot, &then);
            check_walk(t, &f, snapshot, &then);
        }
        if (round % 10 == 0)
            CHECK_OK(hf__store_verify(f.s, f.store, NULL));
        hf_scope_reset(f.s);
    }
    hf__store_snapshot_close(f.store, snapshot);
    fixture_close(&f);
    free(now.pairs);
    free(then.pairs);
}

TEST(store_model, memory)
{
    run_model(t, KIND_MEMORY, 1500);
}

TEST(store_model, faulty_without_faults)
{
    run_model(t, KIND_FAULTY, 100);
}

TEST(store_model, rocksdb)
{
    run_model(t, KIND_DISK, 300);
}
