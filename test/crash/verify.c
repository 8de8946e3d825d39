/*
 * test/crash/verify.c: the judge. Opens a directory after a crash and compares it with the log.
 *
 * First the deep check. Then everything is read: the tables, the indexes, the whole stream. Of each
 * writer's open call it is decided from the data whether it happened, a transaction wholly or not
 * at all. From then on the model is exact, and everything must agree with it: no key more, none
 * less, no other content, and the stream of each item tells exactly the states that it went
 * through. Last, transactions are sent again with their tokens, and nothing may change.
 */
#include "crash.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEEN_MAX = 64, ITEMS_MAX = 256 };

/* What the stream says of one item. */
struct seen {
    struct hf_str pk;
    struct hf_item image; /* the newest */
    uint64_t *states;     /* n of each new image, 0 for a removal */
    size_t len;
    size_t cap;
};

struct items {
    struct hf_item list[ITEMS_MAX];
    size_t len;
};

struct judge {
    struct hf_scope *s;
    struct hf_db *db;
    struct model model;
    int log;
    struct items a, b, c;
    struct seen seen[SEEN_MAX];
    size_t seen_len;
    unsigned problems;
};

static void problem(struct judge *j, const char *format, ...) HF_PRINTF(2, 3);
static void problem(struct judge *j, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "verify: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    j->problems++;
}

static bool good(struct judge *j, enum hf_status status, const char *what)
{
    if (status != HF_OK)
        problem(j, "%s: %s: %s", what, hf_status_name(status), hf_scope_error_text(j->s));
    return status == HF_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct hf_str pk_of(struct hf_item item)
{
    return hf_value_str(hf_item_get(item, HF_STR("pk")));
}

static int64_t number_of(struct hf_item item, const char *name)
{
    int64_t value = -1;

    hf_value_i64(hf_item_get(item, hf_str_from(name)), &value);
    return value;
}

static struct hf_item find(const struct items *items, struct hf_str pk)
{
    for (size_t i = 0; i < items->len; i++)
        if (hf_str_equal(pk_of(items->list[i]), pk))
            return items->list[i];
    return (struct hf_item){NULL, 0};
}

/* All items of a table or an index; -1 when it cannot be read. */
static int64_t scan(struct judge *j, const char *table, const char *index, struct items *items)
{
    struct hf_scan request = {.table = hf_str_from(table),
                              .index = hf_str_from(index),
                              .limit = 9,
                              .consistent = index ? HF_UNSET : HF_YES};
    struct hf_scan_result page;
    int64_t count = 0;

    do {
        if (!good(j, hf_scan(j->s, j->db, &request, &page), table))
            return -1;
        for (size_t i = 0; items && i < page.items_len && items->len < ITEMS_MAX; i++)
            items->list[items->len++] = page.items[i];
        count += page.count;
        request.start = page.last;
    } while (page.last.ptr);
    return count;
}

static struct seen *seen_of(struct judge *j, struct hf_str pk)
{
    for (size_t i = 0; i < j->seen_len; i++)
        if (hf_str_equal(j->seen[i].pk, pk))
            return &j->seen[i];
    if (j->seen_len == SEEN_MAX) {
        problem(j, "the stream has too many items");
        return NULL;
    }
    j->seen[j->seen_len].pk = pk;
    return &j->seen[j->seen_len++];
}

static void take_record(struct judge *j, const struct hf_record *record)
{
    const struct hf_stream_change *change = record->change;
    struct seen *seen = seen_of(j, pk_of(change->keys));
    enum hf_change_kind want = !change->old_image.ptr   ? HF_CHANGE_INSERT
                               : !change->new_image.ptr ? HF_CHANGE_REMOVE
                                                        : HF_CHANGE_MODIFY;

    if (!seen)
        return;
    if (record->event != want || (change->old_image.ptr == NULL) != (seen->image.ptr == NULL) ||
        (seen->image.ptr && !hf_item_equal(seen->image, change->old_image)))
        problem(j, "%.*s: record %zu of the stream does not follow the one before",
                HF_FMT(seen->pk), seen->len);
    seen->image = change->new_image;
    if (seen->len == seen->cap) {
        seen->cap = seen->cap ? 2 * seen->cap : 64;
        seen->states = realloc(seen->states, seen->cap * sizeof(*seen->states));
        if (!seen->states)
            abort();
    }
    seen->states[seen->len++] =
        change->new_image.ptr ? (uint64_t)number_of(change->new_image, "n") : 0;
}

static bool read_shard(struct judge *j, struct hf_str arn, struct hf_str shard)
{
    struct hf_get_shard_iterator get = {.arn = arn,
                                        .shard = shard,
                                        .type = HF_ITERATOR_TRIM_HORIZON};
    struct hf_get_shard_iterator_result got;
    struct hf_get_records read = {0};
    struct hf_get_records_result records;
    struct hf_str last = {NULL, 0};

    if (!good(j, hf_get_shard_iterator(j->s, j->db, &get, &got), "GetShardIterator"))
        return false;
    read.iterator = got.iterator;
    do {
        if (!good(j, hf_get_records(j->s, j->db, &read, &records), "GetRecords"))
            return false;
        for (size_t i = 0; i < records.records_len; i++) {
            struct hf_str sequence = records.records[i].change->sequence;

            /* Of one length, so they compare as texts. */
            if (last.ptr &&
                (last.len != sequence.len || memcmp(last.ptr, sequence.ptr, sequence.len) >= 0))
                problem(j, "sequence number %.*s comes after %.*s", HF_FMT(sequence), HF_FMT(last));
            last = sequence;
            take_record(j, &records.records[i]);
        }
        read.iterator = records.next;
    } while (records.records_len && records.next.ptr);
    return true;
}

static bool read_stream(struct judge *j, struct hf_str arn)
{
    struct hf_describe_stream describe = {.arn = arn};
    struct hf_describe_stream_result described;

    if (!good(j, hf_describe_stream(j->s, j->db, &describe, &described), "DescribeStream"))
        return false;
    for (size_t i = 0; i < described.stream->shards_len; i++)
        if (!read_shard(j, arn, described.stream->shards[i].id))
            return false;
    return true;
}

static const struct hf_table_description *describe(struct judge *j, const char *table)
{
    struct hf_describe_table request = {.table = hf_str_from(table)};
    struct hf_describe_table_result result;
    enum hf_status status = hf_describe_table(j->s, j->db, &request, &result);

    if (status == HF_NOT_FOUND)
        return NULL;
    return good(j, status, "DescribeTable") ? result.table : NULL;
}

/* DescribeTable's counts are those of a scan, of the table and of its indexes. */
static void check_counts(struct judge *j, const struct hf_table_description *d, int64_t items)
{
    const char *table = hf_scope_copy(j->s, d->name).ptr;

    if (d->item_count != items)
        problem(j, "%s: %lld items by its count, %lld by a scan", table, (long long)d->item_count,
                (long long)items);
    for (size_t i = 0; i < d->global_indexes_len; i++) {
        const struct hf_index_description *index = &d->global_indexes[i];
        int64_t entries;

        if (index->status != HF_TABLE_ACTIVE) /* it cannot be read yet */
            continue;
        entries = scan(j, table, hf_scope_copy(j->s, index->name).ptr, NULL);

        if (index->item_count != entries)
            problem(j, "%s.%.*s: %lld entries by its count, %lld by a scan", table,
                    HF_FMT(index->name), (long long)index->item_count, (long long)entries);
    }
}

/* ---- open calls ------------------------------------------------------------------------------ */

static bool is_a(struct judge *j, unsigned thread, uint32_t key, bool there, uint64_t n, int64_t c)
{
    struct hf_item found = find(&j->a, key_name(j->s, thread, key));

    if (!there || !found.ptr)
        return !there && !found.ptr;
    return hf_item_equal(found, item_a(j->s, thread, key, n, c));
}

/* All of an open transaction happened, or nothing: it left three traces. */
static bool transaction_happened(struct judge *j, const struct thread_state *thread)
{
    const struct entry *e = &thread->open;
    struct hf_item own = find(&j->c, hf_scope_format(j->s, "own/%u", e->thread));
    unsigned traces = is_a(j, e->thread, e->key, true, e->n, 0);

    traces += (uint64_t)number_of(find(&j->b, key_name(j->s, e->thread, e->key)), "n") == e->n;
    traces += own.ptr && number_of(own, "c") == thread->own + 1;
    if (traces != 0 && traces != 3)
        problem(j, "thread %u: %u of the 3 writes of transaction %llu happened", e->thread, traces,
                (unsigned long long)e->n);
    return traces > 0;
}

static bool in_stream(struct judge *j, struct hf_str pk, uint64_t n)
{
    struct seen *seen = seen_of(j, pk);

    for (size_t i = 0; seen && i < seen->len; i++)
        if (seen->states[i] == n)
            return true;
    return false;
}

static bool happened(struct judge *j, const struct thread_state *thread, uint32_t key)
{
    const struct entry *e = &thread->open;

    switch ((enum what)e->what) {
    case DO_PUT:
    case DO_BATCH:
        return is_a(j, e->thread, key, true, e->n, 0);
    case DO_UPDATE:
        return is_a(j, e->thread, key, true, e->n, thread->keys[key].c + 1);
    case DO_DELETE:
        return thread->keys[key].there && is_a(j, e->thread, key, false, 0, 0);
    case DO_TRANSACT:
        return transaction_happened(j, thread);
    case DO_EXPIRING: /* it may have come and gone: only the stream knows */
        return in_stream(j, hf_scope_format(j->s, "x/%u", e->thread), e->n);
    case DO_COUNT: /* decided by bounds */
    case DO_REFUSED:
    case DO_DOOMED:
    case DO_SCHEMA:
        break;
    }
    return false;
}

static void settle_key(struct judge *j, struct thread_state *thread, uint32_t key)
{
    struct entry e = thread->open;
    bool yes = happened(j, thread, key);

    e.key = key;
    e.phase = yes ? SETTLED_YES : SETTLED_NO;
    log_add(j->log, e);
    if (yes)
        model_apply(&j->model, &thread->open, key);
}

static void settle_all(struct judge *j)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        struct thread_state *thread = &j->model.threads[i];

        if (!thread->has_open)
            continue;
        settle_key(j, thread, thread->open.key);
        if (thread->open.what == DO_BATCH)
            settle_key(j, thread, (thread->open.key + 1) % KEYS);
    }
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void compare_history(struct judge *j, struct hf_str pk, const struct key_state *key,
                            bool expires)
{
    struct seen *seen = seen_of(j, pk);
    size_t at = 0;

    for (size_t i = 0; seen && i < seen->len; i++) {
        if (expires && seen->states[i] == 0)
            continue;
        if (at >= key->history_len || key->history[at] != seen->states[i]) {
            problem(j, "%.*s: record %zu of the stream is of call %llu, expected %llu of %zu",
                    HF_FMT(pk), i, (unsigned long long)seen->states[i],
                    (unsigned long long)(at < key->history_len ? key->history[at] : 0),
                    key->history_len);
            return;
        }
        at++;
    }
    if (at != key->history_len)
        problem(j, "%.*s: the stream has %zu of %zu changes", HF_FMT(pk), at, key->history_len);
}

static void compare_thread(struct judge *j, unsigned i)
{
    const struct thread_state *thread = &j->model.threads[i];
    struct hf_str expiring = hf_scope_format(j->s, "x/%u", i);
    struct hf_item own = find(&j->c, hf_scope_format(j->s, "own/%u", i));
    struct hf_item x = find(&j->a, expiring);
    struct seen *seen = seen_of(j, expiring);

    for (uint32_t k = 0; k < KEYS; k++) {
        const struct key_state *key = &thread->keys[k];
        struct hf_str pk = key_name(j->s, i, k);
        struct hf_item in_b = find(&j->b, pk);

        if (!is_a(j, i, k, key->there, key->n, key->c))
            problem(j, "%.*s: not as call %llu left it (there %d, c %lld); it is %.*s", HF_FMT(pk),
                    (unsigned long long)key->n, key->there, (long long)key->c,
                    HF_FMT(hf_item_to_json(j->s, find(&j->a, pk))));
        if (thread->in_b[k] ? !in_b.ptr || !hf_item_equal(in_b, item_b(j->s, i, k, thread->in_b[k]))
                            : in_b.ptr != NULL)
            problem(j, "%.*s: crash_b is not as call %llu left it", HF_FMT(pk),
                    (unsigned long long)thread->in_b[k]);
        compare_history(j, pk, key, false);
    }
    if (thread->own ? number_of(own, "c") != thread->own : own.ptr != NULL)
        problem(j, "own/%u is %lld, not %lld", i, (long long)number_of(own, "c"),
                (long long)thread->own);
    compare_history(j, expiring, &thread->expiring, true);
    if (x.ptr && (!seen || !hf_item_equal(x, seen->image) ||
                  !hf_item_equal(x, item_expiring(j->s, i, thread->expiring.n))))
        problem(j, "x/%u is not as call %llu left it", i, (unsigned long long)thread->expiring.n);
    if (!x.ptr && seen && seen->image.ptr)
        problem(j, "x/%u is gone, and the stream does not say so", i);
}

/* A key that no writer has. */
static void compare_keys(struct judge *j, const struct items *items, const char *table)
{
    for (size_t i = 0; i < items->len; i++) {
        struct hf_str pk = pk_of(items->list[i]);
        bool known = strcmp(table, "crash_c") == 0 && hf_str_equal(pk, HF_STR("shared"));

        for (unsigned t = 0; t < WRITERS && !known; t++) {
            for (uint32_t k = 0; k < KEYS; k++)
                known |= hf_str_equal(pk, key_name(j->s, t, k));
            known |= hf_str_equal(pk, hf_scope_format(j->s, "x/%u", t));
            known |= hf_str_equal(pk, hf_scope_format(j->s, "own/%u", t));
        }
        if (!known)
            problem(j, "%s: nobody wrote %.*s", table, HF_FMT(pk));
    }
}

static void compare_shared(struct judge *j)
{
    struct hf_item shared = find(&j->c, HF_STR("shared"));
    int64_t value = shared.ptr ? number_of(shared, "c") : 0;

    if (value < j->model.shared_low || value > j->model.shared_high)
        problem(j, "the shared counter is %lld, not in [%lld, %lld]", (long long)value,
                (long long)j->model.shared_low, (long long)j->model.shared_high);
    log_add(j->log, (struct entry){.phase = OBSERVED, .what = DO_COUNT, .n = (uint64_t)value});
}

/* ---- the table that comes and goes ---------------------------------------------------------- */

static void compare_scratch(struct judge *j)
{
    const struct hf_table_description *d = describe(j, "scratch");
    const struct entry *last = &j->model.schema;
    enum step step = j->model.has_schema ? (enum step)last->key : STEP_DELETE;
    bool done = !j->model.has_schema || last->phase == DONE;
    bool may_be = !(done && step == STEP_DELETE);
    bool must_be = done ? step != STEP_DELETE : step != STEP_DELETE && step != STEP_CREATE;
    bool filled = must_be && (done ? step >= STEP_FILL : step > STEP_FILL);
    bool indexed = must_be && (done ? step >= STEP_ADD_INDEX : step > STEP_ADD_INDEX);
    int64_t items;

    if (d ? !may_be : must_be)
        problem(j, "scratch is %s after step %d (%s)", d ? "there" : "not there", (int)step,
                done ? "done" : "begun");
    if (!d)
        return;
    items = scan(j, "scratch", NULL, NULL);
    check_counts(j, d, items);
    if (filled && items != SCRATCH_ITEMS)
        problem(j, "scratch has %lld items after step %d", (long long)items, (int)step);
    if (indexed && d->global_indexes_len != 2)
        problem(j, "scratch has %zu indexes after step %d", d->global_indexes_len, (int)step);
}

/* After upkeep no index is half built. */
static void compare_scratch_built(struct judge *j)
{
    const struct hf_table_description *d = describe(j, "scratch");
    int64_t items = d ? scan(j, "scratch", NULL, NULL) : 0;

    if (!d)
        return;
    check_counts(j, d, items);
    for (size_t i = 0; i < d->global_indexes_len; i++) {
        bool all = hf_str_equal(d->global_indexes[i].name, HF_STR("by_g"));
        int64_t want = all ? items : items / 2;

        if (d->global_indexes[i].status != HF_TABLE_ACTIVE)
            problem(j, "an index of scratch is not active");
        if (items == SCRATCH_ITEMS && d->global_indexes[i].item_count != want)
            problem(j, "an index of scratch has %lld entries, not %lld",
                    (long long)d->global_indexes[i].item_count, (long long)want);
    }
}

/* After upkeep every backup is made, and has all that scratch had. */
static void compare_backups(struct judge *j)
{
    const struct entry *last = &j->model.schema;
    bool done = last->phase == DONE;
    bool must_be = j->model.has_schema &&
                   (done ? last->key >= STEP_BACK_UP : last->key > STEP_BACK_UP) &&
                   last->key < STEP_CLEAN;
    bool may_be = !(j->model.has_schema && done && last->key == STEP_CLEAN);
    struct hf_list_backups_result list;

    if (!good(j, hf_list_backups(j->s, j->db, &(struct hf_list_backups){.limit = 100}, &list),
              "ListBackups"))
        return;
    if (list.backups_len ? !may_be : must_be)
        problem(j, "there are %zu backups after step %u", list.backups_len, last->key);
    for (size_t i = 0; i < list.backups_len; i++) {
        struct hf_describe_backup request = {.arn = list.backups[i].arn};
        struct hf_describe_backup_result result;

        if (!good(j, hf_describe_backup(j->s, j->db, &request, &result), "DescribeBackup"))
            continue;
        if (result.backup->details->status != HF_BACKUP_AVAILABLE)
            problem(j, "a backup is not available after upkeep");
        if (result.backup->table->item_count != SCRATCH_ITEMS)
            problem(j, "a backup has %lld items", (long long)result.backup->table->item_count);
    }
}

/* And what was restored from one is whole. */
static void compare_again(struct judge *j)
{
    const struct hf_table_description *d = describe(j, "again");
    int64_t items;

    if (!d)
        return;
    if (d->status != HF_TABLE_ACTIVE) {
        problem(j, "a restored table is not active after upkeep");
        return;
    }
    items = scan(j, "again", NULL, NULL);
    check_counts(j, d, items);
    if (items != SCRATCH_ITEMS)
        problem(j, "a restored table has %lld items", (long long)items);
}

/* ---- once more with the same token ---------------------------------------------------------- */

static void send_again(struct judge *j)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        struct thread_state *thread = &j->model.threads[i];
        struct entry e = thread->open;

        if (thread->has_open && e.what == DO_TRANSACT && e.n % 2) {
            e.phase = INTENT;
            if (!(thread->has_last_tx && thread->last_tx.n == e.n)) {
                /* It did not happen: now it does. */
                log_add(j->log, e);
                if (!good(j, send_transaction(j->s, j->db, &e), "a transaction that was lost"))
                    continue;
                e.phase = DONE;
                log_add(j->log, e);
                model_apply(&j->model, &e, e.key);
            }
        }
        if (thread->has_last_tx)
            good(j, send_transaction(j->s, j->db, &thread->last_tx), "a repeated transaction");
    }
}

static bool read_all(struct judge *j)
{
    static const char *const names[] = {"crash_a", "crash_b", "crash_c"};
    struct items *lists[] = {&j->a, &j->b, &j->c};

    for (size_t i = 0; i < j->seen_len; i++)
        j->seen[i].len = 0, j->seen[i].image.ptr = NULL;
    for (int i = 0; i < 3; i++) {
        const struct hf_table_description *d = describe(j, names[i]);

        if (!d) { /* the process died while it made its tables */
            if (j->model.acked)
                problem(j, "%s is gone", names[i]);
            return false;
        }
        lists[i]->len = 0;
        check_counts(j, d, scan(j, names[i], NULL, lists[i]));
        compare_keys(j, lists[i], names[i]);
        if (i == 0 && !read_stream(j, d->stream_arn))
            return false;
    }
    return true;
}

static void compare_all(struct judge *j)
{
    for (unsigned i = 0; i < WRITERS; i++)
        compare_thread(j, i);
}

static void judge_open(struct judge *j)
{
    struct hf_check_report report;

    good(j, hf_engine_check(j->s, j->db, &report), "check");
    compare_scratch(j);
    if (!read_all(j))
        return;
    settle_all(j);
    compare_all(j);
    compare_shared(j);
    send_again(j);
    good(j, hf_engine_upkeep(j->s, j->db, NULL), "upkeep");
    compare_scratch_built(j);
    compare_backups(j);
    compare_again(j);
    if (read_all(j))
        compare_all(j);
    good(j, hf_engine_check(j->s, j->db, &report), "check after upkeep");
}

int verify(const char *dir, const char *log, bool quiet)
{
    struct judge *j = calloc(1, sizeof(*j));

    if (!j)
        abort();
    j->s = hf_scope_new(NULL);
    model_read(log, &j->model);
    j->log = log_open(log);
    j->db = open_database(j->s, dir, false);
    if (!j->db)
        return EXIT_BAD;
    judge_open(j);
    if (!quiet)
        printf("%llu %llu %llu\n", (unsigned long long)j->model.acked,
               (unsigned long long)j->model.open, (unsigned long long)j->model.refused);
    fflush(stdout);
    /* Every second time the database is left as a crash would. */
    if (j->model.acked % 2 || j->problems)
        _exit(j->problems ? EXIT_BAD : EXIT_GOOD);
    hf_db_close(j->db);
    hf_scope_free(j->s);
    model_free(&j->model);
    for (size_t i = 0; i < j->seen_len; i++)
        free(j->seen[i].states);
    close(j->log);
    free(j);
    return EXIT_GOOD;
}
