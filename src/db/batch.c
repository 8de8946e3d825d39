/*
 * db/batch.c: what batch_sender.c sends for hf_write_many() and hf_get_many(), and how answers are matched
 * with entries.
 *
 * Services hand back what they did not process, and items in any order, so both are recognised by
 * their bytes: items and keys are canonical, equal ones have equal bytes.
 *
 *  (1) What was handed back and is not recognised lets the whole batch be sent again: writing the
 *      same twice is the same as once.
 *  (2) A key that comes several times is one entry for the service: only the first place of it is
 *      sent, and the others get its item in the end.
 */
#include <holdfast/batch.h>

#include "base/buf.h"
#include "base/fnv.h"
#include "db/batch_sender.h"
#include "model/value.h"

enum {
    BODY_MAX = 16 * 1024 * 1024 - 64 * 1024, /* of a request, with room for what is not items */
    WIRE_FACTOR = 40, /* JSON is at most so much longer: 1E+125 is 4 bytes here, 135 there */
    WIRE_SMALL = BODY_MAX / BATCH_WRITES_MAX / WIRE_FACTOR
};

static bool same_bytes(struct hf_item a, struct hf_item b)
{
    return a.ptr && b.ptr && a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

static const struct hf_write *write_at(const struct batch_sender *m, size_t entry)
{
    return &((const struct hf_write *)m->entries)[entry];
}

static struct hf_str write_table(const struct batch_sender *m, size_t entry)
{
    return write_at(m, entry)->table;
}

/* Bytes on the wire, at most. */
static size_t wire_size(struct hf_scope *s, struct hf_item item)
{
    struct hf__mark mark = hf__scope_mark(s);
    size_t size;

    if (item.len <= WIRE_SMALL)
        return item.len * WIRE_FACTOR;
    size = hf_item_to_json(s, item).len;
    hf__scope_rewind(s, mark);
    return size ? size : item.len * 2; /* no memory: the service will say if it is too much */
}

static size_t fit_writes(struct hf_scope *s, const struct batch_sender *m, size_t n)
{
    size_t total = 0;

    for (size_t i = 0; i < n; i++) {
        const struct hf_write *write = write_at(m, m->pending[i]);

        total += wire_size(s, write->put.ptr ? write->put : write->del);
        if (total > BODY_MAX && i > 0)
            return i;
    }
    return n;
}

/* A batch as the request has it: grouped by table, each group in the order of the entries. */
struct write_batch {
    struct hf_put_request puts[BATCH_WRITES_MAX];
    struct hf_delete_request dels[BATCH_WRITES_MAX];
    struct hf_write_request writes[BATCH_WRITES_MAX];
    struct hf_table_writes tables[BATCH_WRITES_MAX];
    size_t tables_len;
};

static void add_write(struct write_batch *b, size_t at, const struct hf_write *write)
{
    b->puts[at].item = write->put;
    b->dels[at].key = write->del;
    b->writes[at] = write->put.ptr ? (struct hf_write_request){.put = &b->puts[at]}
                                   : (struct hf_write_request){.del = &b->dels[at]};
}

static void group_writes(const struct batch_sender *m, size_t n, struct write_batch *b)
{
    bool taken[BATCH_WRITES_MAX] = {false};
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        struct hf_table_writes *table = &b->tables[b->tables_len];

        if (taken[i])
            continue;
        *table = (struct hf_table_writes){.table = write_table(m, m->pending[i]),
                                          .writes = &b->writes[at]};
        for (size_t j = i; j < n; j++)
            if (!taken[j] && hf_str_equal(write_table(m, m->pending[j]), table->table)) {
                taken[j] = true;
                add_write(b, at++, write_at(m, m->pending[j]));
                table->writes_len++;
            }
        b->tables_len++;
    }
}

/* False: it is none of this batch. */
static bool mark_unprocessed(const struct batch_sender *m, size_t n, struct hf_str table,
                             const struct hf_write_request *write, bool *done)
{
    bool found = false;

    for (size_t i = 0; i < n; i++) {
        const struct hf_write *sent = write_at(m, m->pending[i]);

        if (hf_str_equal(sent->table, table) &&
            ((write->put && same_bytes(write->put->item, sent->put)) ||
             (write->del && same_bytes(write->del->key, sent->del)))) {
            done[i] =
                false; /* and equal ones behind it: the answer does not say which of them it is */
            found = true;
        }
    }
    return found;
}

static enum hf_status send_writes(struct hf_scope *s, struct batch_sender *m, size_t n, bool *done)
{
    struct write_batch batch = {.tables_len = 0};
    struct hf_batch_write_item request = {.tables = batch.tables};
    struct hf_batch_write_item_result result;
    bool known = true;

    assert(n <= BATCH_WRITES_MAX);
    group_writes(m, n, &batch);
    request.tables_len = batch.tables_len;
    TRY(hf_batch_write_item(s, m->db, &request, &result));
    memset(done, true, n);
    for (size_t i = 0; i < result.unprocessed_len; i++)
        for (size_t j = 0; j < result.unprocessed[i].writes_len; j++)
            known = mark_unprocessed(m, n, result.unprocessed[i].table,
                                     &result.unprocessed[i].writes[j], done) &&
                    known;
    if (!known) /* (1) */
        memset(done, false, n);
    return HF_OK;
}

static enum hf_status check_writes(struct hf_scope *s, const struct batch_sender *m)
{
    for (size_t i = 0; i < m->len; i++) {
        const struct hf_write *write = write_at(m, i);
        enum hf_status status = HF_OK;

        if (!write->put.ptr == !write->del.ptr)
            status = hf__fail(s, HF_INVALID, "it has %s",
                              write->put.ptr ? "an item to put and a key to delete"
                                             : "neither an item to put nor a key to delete");
        else
            status = hf_item_check(s, write->put.ptr ? write->put : write->del);
        if (status != HF_OK)
            return hf__db_batch_name_entry(s, m, i, status);
    }
    return HF_OK;
}

enum hf_status hf_write_many(struct hf_scope *s, struct hf_db *db, const struct hf_write *writes,
                             size_t len, const struct hf_many_options *options,
                             struct hf_write_many_result *result)
{
    struct batch_sender m = {.db = db,
                             .send = send_writes,
                             .fit = fit_writes,
                             .table = write_table,
                             .entries = writes,
                             .len = len,
                             .batch_max = BATCH_WRITES_MAX,
                             .what = "writes"};
    enum hf_status status;

    hf__scope_error_clear(s);
    if (result)
        *result = (struct hf_write_many_result){.left = NULL};
    TRY(hf__db_batch_start(s, &m, options));
    status = check_writes(s, &m);
    if (status == HF_OK)
        status = hf__db_batch_run(s, &m);
    if (result)
        *result = (struct hf_write_many_result){.left = m.pending,
                                                .left_len = m.pending_len,
                                                .calls = m.calls};
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reading {
    struct batch_sender sender; /* first, as hf__db_batch_run() hands it back */
    struct hf_item *items;
    size_t *same;         /* per entry: the first one with its key, perhaps itself */
    size_t *slots;        /* a hash table of entries + 1, 0 where there is none */
    size_t mask;          /* slots - 1 */
    size_t *left;         /* (4) of batch_sender.c */
    struct hf_item *keys; /* of a batch, grouped by table */
    struct hf_table_gets *tables;
};

static const struct hf_get *get_at(const struct batch_sender *m, size_t entry)
{
    return &((const struct hf_get *)m->entries)[entry];
}

static struct hf_str get_table(const struct batch_sender *m, size_t entry)
{
    return get_at(m, entry)->table;
}

/* Of the values that `item` has under the names of `key`. */
static uint64_t key_hash(struct hf_str table, struct hf_item key, struct hf_item item)
{
    uint64_t hash = fnv_add(FNV_BEGIN, table.ptr, table.len);
    struct hf_item_walk walk = {.next = 0};

    while (hf_item_next(key, &walk)) {
        struct hf_value value = hf_item_get(item, walk.name);

        hash = fnv_add(hash, value.ptr, value.len);
    }
    return fnv_fold(hash);
}

static bool has_key(struct hf_item key, struct hf_item item)
{
    struct hf_item_walk walk = {.next = 0};

    while (hf_item_next(key, &walk))
        if (!hf_value_equal(walk.value, hf_item_get(item, walk.name)))
            return false;
    return true;
}

/* The slot of the entry whose key `item` has, or the empty one where it would be. `like` is a key
 * with the same names. */
static size_t *slot_of(const struct reading *r, struct hf_str table, struct hf_item like,
                       struct hf_item item)
{
    size_t at = (size_t)key_hash(table, like, item) & r->mask;

    while (r->slots[at]) {
        const struct hf_get *get = get_at(&r->sender, r->slots[at] - 1);

        if (hf_str_equal(get->table, table) && hf_item_count(get->key) == hf_item_count(like) &&
            has_key(get->key, item))
            break;
        at = (at + 1) & r->mask;
    }
    return &r->slots[at];
}

static size_t place_in_batch(const struct batch_sender *m, size_t n, size_t entry)
{
    for (size_t i = 0; i < n; i++)
        if (m->pending[i] == entry)
            return i;
    return n;
}

static size_t group_gets(struct reading *r, size_t n)
{
    const struct batch_sender *m = &r->sender;
    bool taken[BATCH_GETS_MAX] = {false};
    size_t at = 0, tables = 0;

    for (size_t i = 0; i < n; i++) {
        struct hf_table_gets *table = &r->tables[tables];

        if (taken[i])
            continue;
        *table = (struct hf_table_gets){.table = get_table(m, m->pending[i]),
                                        .keys = &r->keys[at],
                                        .consistent = m->options.consistent ? HF_YES : HF_UNSET};
        for (size_t j = i; j < n; j++)
            if (!taken[j] && hf_str_equal(get_table(m, m->pending[j]), table->table)) {
                taken[j] = true;
                r->keys[at++] = get_at(m, m->pending[j])->key;
                table->keys_len++;
            }
        tables++;
    }
    return tables;
}

static struct hf_item any_key(const struct reading *r, size_t tables, struct hf_str table)
{
    for (size_t i = 0; i < tables; i++)
        if (hf_str_equal(r->tables[i].table, table))
            return r->tables[i].keys[0];
    return (struct hf_item){NULL, 0};
}

static enum hf_status send_gets(struct hf_scope *s, struct batch_sender *m, size_t n, bool *done)
{
    struct reading *r = (struct reading *)(void *)m;
    size_t tables = group_gets(r, n);
    const struct hf_batch_get_item request = {.tables = r->tables, .tables_len = tables};
    struct hf_batch_get_item_result result;

    TRY(hf_batch_get_item(s, m->db, &request, &result));
    for (size_t i = 0; i < result.tables_len; i++)
        for (size_t j = 0; j < result.tables[i].items_len; j++) {
            struct hf_item item = result.tables[i].items[j];
            struct hf_str table = result.tables[i].table;
            size_t entry = *slot_of(r, table, any_key(r, tables, table), item);

            if (!entry)
                return hf__fail(s, HF_INTERNAL, "the answer has an item that was not asked for");
            r->items[entry - 1] = item;
        }
    memset(done, true, n);
    for (size_t i = 0; i < result.unprocessed_len; i++)
        for (size_t j = 0; j < result.unprocessed[i].keys_len; j++) {
            struct hf_item key = result.unprocessed[i].keys[j];
            size_t entry = *slot_of(r, result.unprocessed[i].table, key, key);
            size_t at = entry ? place_in_batch(m, n, entry - 1) : n;

            if (at < n)
                done[at] = false;
            else
                memset(done, false, n);
        }
    return HF_OK;
}

/* (2): entries that are like an earlier one are not pending. */
static enum hf_status index_gets(struct hf_scope *s, struct reading *r)
{
    struct batch_sender *m = &r->sender;

    m->pending_len = 0;
    for (size_t i = 0; i < m->len; i++) {
        const struct hf_get *get = get_at(m, i);
        enum hf_status status =
            get->key.ptr ? hf_item_check(s, get->key) : hf__fail(s, HF_INVALID, "it has no key");
        size_t *slot;

        if (status != HF_OK)
            return hf__db_batch_name_entry(s, m, i, status);
        slot = slot_of(r, get->table, get->key, get->key);
        if (!*slot) {
            *slot = i + 1;
            m->pending[m->pending_len++] = i;
        }
        r->same[i] = *slot - 1;
    }
    return HF_OK;
}

static enum hf_status start_reading(struct hf_scope *s, struct reading *r,
                                    const struct hf_many_options *options)
{
    struct batch_sender *m = &r->sender;
    size_t slots = 16;

    while (slots / 2 < m->len && slots < SIZE_MAX / 4)
        slots *= 2;
    r->mask = slots - 1;
    TRY(hf__db_batch_start(s, m, options));
    r->items = hf__scope_array(s, m->len, sizeof(*r->items));
    r->same = hf__scope_array(s, m->len, sizeof(*r->same));
    r->left = hf__scope_array(s, m->len, sizeof(*r->left));
    r->slots = hf__scope_array(s, slots, sizeof(*r->slots));
    r->keys = hf__scope_array(s, BATCH_GETS_MAX, sizeof(*r->keys));
    r->tables = hf__scope_array(s, BATCH_GETS_MAX, sizeof(*r->tables));
    if (!r->items || !r->same || !r->left || !r->slots || !r->keys || !r->tables)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < m->len; i++)
        r->left[i] = i;
    return HF_OK;
}

/* The numbers of all entries that were not read; of the pending ones and those like them. */
static size_t list_left(struct reading *r)
{
    const struct batch_sender *m = &r->sender;
    size_t len = 0;

    memset(r->slots, 0, (r->mask + 1) * sizeof(*r->slots));
    for (size_t i = 0; i < m->pending_len; i++)
        r->slots[m->pending[i]] = 1;
    for (size_t i = 0; i < m->len; i++)
        if (r->slots[r->same[i]])
            r->left[len++] = i;
    return len;
}

enum hf_status hf_get_many(struct hf_scope *s, struct hf_db *db, const struct hf_get *gets,
                           size_t len, const struct hf_many_options *options,
                           struct hf_get_many_result *result)
{
    struct reading r = {.sender = {.db = db,
                                   .send = send_gets,
                                   .table = get_table,
                                   .entries = gets,
                                   .len = len,
                                   .batch_max = BATCH_GETS_MAX,
                                   .keep_memory = true,
                                   .what = "reads"}};
    enum hf_status status;

    hf__scope_error_clear(s);
    *result = (struct hf_get_many_result){.items = NULL};
    TRY(start_reading(s, &r, options));
    *result = (struct hf_get_many_result){.items = r.items,
                                          .items_len = len,
                                          .left = r.left,
                                          .left_len = len};
    TRY(index_gets(s, &r));
    status = hf__db_batch_run(s, &r.sender);
    for (size_t i = 0; i < len; i++)
        r.items[i] = r.items[r.same[i]];
    result->left_len = list_left(&r);
    result->calls = r.sender.calls;
    return status;
}
