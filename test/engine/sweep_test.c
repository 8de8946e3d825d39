/*
 * engine/sweep_test.c: every operation while something fails underneath it: the nth allocation, or
 * the nth call of the store, for every n until none is left to fail.
 *
 * A round makes a new database in memory, always the same one, looks at all of it (dump()), arms
 * the fault, does the operation, and looks again. What must hold:
 *
 *  (1) The operation succeeds with the answer that it gives without a fault, or reports an error.
 *      It never reports success when a call of the store failed.
 *  (2) After an error the database is as before, or as after the operation; in the second case the
 *      error has may_have_happened. Nothing lies in between.
 *  (3) may_have_happened is only set when a write or a sync failed, or when the write is there.
 *  (4) The database goes on: it passes a check, and after an error without effect the operation
 *      can be done.
 *  (5) A copy of the store as it is now, opened as after a crash, is as (2) says and passes a
 *      check.
 *  (6) Nothing leaks.
 *  (7) What upkeep was in the middle of, it finishes after a crash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/engine.h"
#include "ops/fields.h"
#include "store/store.h"
#include "sweep_operations.h"
#include "wire/wire.h"
#include "world.h"

/* ---- the database --------------------------------------------------------------------------- */

struct bench {
    struct test *t;
    struct world w;
    struct store_faults faults;
    struct hf__store *store;
    struct hf_str arn;      /* of the stream */
    struct hf_str shard;    /* one of its shards that has records */
    struct hf_str iterator; /* into that */
    struct hf_str backup;   /* the ARN of one, once it is asked for */
};

static void open_on(struct bench *b, struct hf__store *inner)
{
    CHECK_OK(hf__store_open_with_faults(b->w.scope, test_env(b->t), inner, &b->faults, &b->store));
    b->w.options = (struct hf_engine_options){.size = sizeof(b->w.options),
                                              .env = test_env(b->t),
                                              .stream_shards = 1,
                                              .buckets = HF_STR("dir:/dev/null"),
                                              .no_upkeep_thread = true};
    CHECK_OK(hf__engine_open_on(b->w.scope, b->store, &b->w.options, &b->w.db));
}

static void find_stream(struct bench *b)
{
    struct hf_list_streams_result streams;
    struct hf_describe_stream_result stream;
    struct hf_get_shard_iterator_result iterator;
    struct hf_scope *s = b->w.scope;

    CHECK_OK(hf_list_streams(s, b->w.db, &(struct hf_list_streams){.limit = 1}, &streams));
    b->arn = streams.streams[0].arn;
    CHECK_OK(hf_describe_stream(s, b->w.db, &(struct hf_describe_stream){.arn = b->arn}, &stream));
    b->shard = stream.stream->shards[0].id;
    CHECK_OK(
        hf_get_shard_iterator(s, b->w.db,
                              &(struct hf_get_shard_iterator){.arn = b->arn,
                                                              .shard = b->shard,
                                                              .type = HF_ITERATOR_TRIM_HORIZON},
                              &iterator));
    b->iterator = iterator.iterator;
}

/* Always the same: clocks and randomness start again. In memory when there is no path. */
static void bench_open_in(struct bench *b, struct test *t, const char *path)
{
    const struct store_options plain = {.sync = STORE_SYNC_NONE};
    struct hf__store *inner;
    struct hf_str due;

    *b = (struct bench){.t = t};
    test_env(t);
    t->seed = 7;
    t->wall_us = 1767225600000000;
    b->w = (struct world){.t = t, .scope = hf_scope_new(test_env(t)), .url = "memory:"};
    if (path)
        CHECK_OK(hf__store_open_disk(b->w.scope, test_env(t), hf_str_from(path), &plain, &inner));
    else
        CHECK_OK(hf__store_open_memory(b->w.scope, test_env(t), &inner));
    open_on(b, inner);
    world_ok(&b->w, "CreateTable", TABLE);
    world_ok(&b->w, "UpdateTimeToLive",
             "{'TableName':'all','TimeToLiveSpecification':{'Enabled':true,'AttributeName':'t'}}");
    world_ok(&b->w, "PutItem",
             "{'TableName':'all','Item':{'pk':{'S':'a'},'sk':{'N':'1'},'g':{'S':'g'},'k':{'S':"
             "'k'},'x':{'S':'x'},'n':{'N':'1'},'l':{'L':[{'S':'long enough to be moved'}]}}}");
    world_ok(&b->w, "PutItem",
             "{'TableName':'all','Item':{'pk':{'S':'a'},'sk':{'N':'2'},'g':{'S':'g'},'x':{'S':"
             "'y'}}}");
    due = hf_scope_format(b->w.scope,
                          "{'TableName':'all','Item':{'pk':{'S':'b'},'sk':{'N':'1'},"
                          "'g':{'S':'h'},'t':{'N':'%lld'}}}",
                          (long long)(t->wall_us / 1000000 + 60));
    world_ok(&b->w, "PutItem", due.ptr);
    world_ok(&b->w, "TransactWriteItems",
             "{'TransactItems':[{'Put':{'TableName':'all','Item':{'pk':{'S':'c'},'sk':{'N':'1'},"
             "'k':{'S':'k'}}}}],'ClientRequestToken':'seen'}");
    find_stream(b);
}

static void bench_open(struct bench *b, struct test *t)
{
    bench_open_in(b, t, NULL);
}

static void bench_close(struct bench *b)
{
    ALLOC_SWEEP_STOP(b->t);
    b->faults.fail_at = 0;
    hf_db_close(b->w.db);
    hf_scope_free(b->w.scope);
}

/* ---- looking at all of it ------------------------------------------------------------------- */

/* Does the text, up to and including `at`, end in `mark`? */
static bool ends_in(struct hf_str text, size_t at, const char *mark)
{
    size_t len = strlen(mark);

    return at + 1 >= len && memcmp(text.ptr + at + 1 - len, mark, len) == 0;
}

/* Add the text without the ids of tables, shards and backups, which are random. */
static void add(struct hf__buf *buf, struct hf_str text)
{
    enum { TABLE_ID_LEN = 36, SHARD_ID_LEN = 37, BACKUP_ID_LEN = 23 };

    for (size_t i = 0; i < text.len; i++) {
        hf__buf_put_byte(buf, (uint8_t)text.ptr[i]);
        if (ends_in(text, i, "\"TableId\":\""))
            i += TABLE_ID_LEN;
        else if (ends_in(text, i, "\"ShardId\":\""))
            i += SHARD_ID_LEN;
        else if (ends_in(text, i, "/backup/") || ends_in(text, i, "/export/") ||
                 ends_in(text, i, "/import/"))
            i += BACKUP_ID_LEN;
    }
    hf__buf_put_byte(buf, '\n');
}

static struct hf_str with_name(struct world *w, const char *format, struct hf_str name)
{
    return hf_scope_format(w->scope, format, HF_FMT(name));
}

/* Everything that a caller can see. */
static struct hf_str dump(struct world *w)
{
    static const char *const of_table[][2] = {
        {"DescribeTable", "{'TableName':'%.*s'}"},
        {"Scan", "{'TableName':'%.*s'}"},
        {"DescribeTimeToLive", "{'TableName':'%.*s'}"},
        {"ListTagsOfResource",
         "{'ResourceArn':'arn:aws:dynamodb:us-east-1:123456789012:table/%.*s'}"}};
    struct hf__buf buf = {.scope = w->scope};
    struct hf_list_tables_result tables;
    struct hf_list_streams_result streams;
    struct hf_list_backups_result backups;
    struct hf_check_report report;

    if (hf_engine_check(w->scope, w->db, &report) != HF_OK)
        fail_msg("check: %s", hf_scope_error_text(w->scope));
    add(&buf, hf_scope_format(w->scope, "records %llu tokens %llu expiries %llu",
                              (unsigned long long)report.stream_records,
                              (unsigned long long)report.tokens,
                              (unsigned long long)report.expiry_entries));
    CHECK_OK(hf_list_tables(w->scope, w->db, &(struct hf_list_tables){.limit = 100}, &tables));
    for (size_t i = 0; i < tables.tables_len; i++) {
        struct hf_describe_table_result described;
        struct hf_describe_table of = {.table = tables.tables[i]};

        CHECK_OK(hf_describe_table(w->scope, w->db, &of, &described));
        for (size_t j = 0; j < ARRAY_LEN(of_table); j++)
            if (j == 0 || described.table->status != HF_TABLE_CREATING)
                add(&buf, world_ok(w, of_table[j][0],
                                   with_name(w, of_table[j][1], tables.tables[i]).ptr));
        for (size_t j = 0; j < described.table->global_indexes_len; j++) {
            struct hf_str name = described.table->global_indexes[j].name;

            if (described.table->global_indexes[j].status == HF_TABLE_ACTIVE)
                add(&buf,
                    world_ok(w, "Scan",
                             hf_scope_format(w->scope, "{'TableName':'%.*s','IndexName':'%.*s'}",
                                             HF_FMT(tables.tables[i]), HF_FMT(name))
                                 .ptr));
        }
    }
    CHECK_OK(hf_list_backups(w->scope, w->db, &(struct hf_list_backups){.limit = 100}, &backups));
    for (size_t i = 0; i < backups.backups_len; i++)
        add(&buf, world_ok(w, "DescribeBackup",
                           with_name(w, "{'BackupArn':'%.*s'}", backups.backups[i].arn).ptr));
    add(&buf, world_ok(w, "ListExports", "{}"));
    add(&buf, world_ok(w, "ListImports", "{}"));
    for (size_t i = 0; i < tables.tables_len; i++)
        add(&buf, world_call(w, "GetResourcePolicy",
                             with_name(w, "{'ResourceArn':'" ARN_OF "'}", tables.tables[i]).ptr));
    CHECK_OK(hf_list_streams(w->scope, w->db, &(struct hf_list_streams){.limit = 100}, &streams));
    for (size_t i = 0; i < streams.streams_len; i++)
        add(&buf, world_ok(w, "DescribeStream",
                           with_name(w, "{'StreamArn':'%.*s'}", streams.streams[i].arn).ptr));
    hf__buf_put_byte(&buf, 0);
    CHECK(!buf.failed);
    return hf_str_of((const char *)buf.ptr, buf.len - 1);
}

/* A store in memory with what this one holds now, as if the process had been killed. */
static struct hf__store *copy_store(struct bench *b)
{
    struct store_batch batch = {.ops = {.scope = b->w.scope}};
    const struct store_range all = {.fill_cache = true};
    struct hf__store *copy;
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    uint64_t ticket;
    bool found = true;

    CHECK_OK(hf__store_iter_open(b->w.scope, b->store, NULL, &all, &iter));
    while (found) {
        CHECK_OK(hf__store_iter_next(b->w.scope, iter, &found, &key, &value));
        if (found)
            hf__batch_put(&batch, key, value);
    }
    hf__store_iter_close(iter);
    CHECK_OK(hf__store_open_memory(b->w.scope, test_env(b->t), &copy));
    CHECK_OK(hf__store_write(b->w.scope, copy, &batch, &ticket));
    return copy;
}

static struct hf_str dump_after_crash(struct bench *b)
{
    struct bench copy = {.t = b->t};
    struct hf_str text;

    copy.w = (struct world){.t = b->t, .scope = hf_scope_new(test_env(b->t))};
    open_on(&copy, copy_store(b));
    text = hf_scope_copy(b->w.scope, dump(&copy.w));
    bench_close(&copy);
    return text;
}

/* The same, after upkeep has done what the other had begun. */
static struct hf_str dump_finished_after_crash(struct bench *b)
{
    struct bench copy = {.t = b->t};
    struct hf_str text;

    copy.w = (struct world){.t = b->t, .scope = hf_scope_new(test_env(b->t))};
    open_on(&copy, copy_store(b));
    CHECK_OK(hf_engine_upkeep(copy.w.scope, copy.w.db, NULL));
    text = hf_scope_copy(b->w.scope, dump(&copy.w));
    bench_close(&copy);
    return text;
}

/* ---- operations ----------------------------------------------------------------------------- */

static const struct op *op_of(const char *name)
{
    const struct op *op = hf__op_of_name(OP_DYNAMODB, hf_str_from(name));

    return op ? op : hf__op_of_name(OP_STREAMS, hf_str_from(name));
}

/* It is of the table as it is now, and made. */
static struct hf_str find_backup(struct bench *b)
{
    struct hf_create_backup_result made;
    struct hf_create_backup request = {.table = HF_STR("all"), .name = HF_STR("kept")};

    if (b->backup.ptr)
        return b->backup;
    CHECK_OK(hf_create_backup(b->w.scope, b->w.db, &request, &made));
    b->backup = made.details->arn;
    CHECK_OK(hf_engine_upkeep(b->w.scope, b->w.db, NULL));
    return b->backup;
}

/* The request with what only this database knows. */
static const char *request_text(struct bench *b, const char *json)
{
    struct hf__buf buf = {.scope = b->w.scope};

    for (; *json; json++) {
        if (*json != '%') {
            hf__buf_put_byte(&buf, (uint8_t)*json);
            continue;
        }
        json++;
        hf__buf_put_str(&buf, *json == 'A'   ? b->arn
                              : *json == 'S' ? b->shard
                              : *json == 'B' ? find_backup(b)
                                             : b->iterator);
    }
    hf__buf_put_byte(&buf, 0);
    CHECK(!buf.failed);
    return (const char *)buf.ptr;
}

/* An operation, ready to be done while something fails. */
struct ready {
    const struct op *op; /* NULL: upkeep */
    void *request;
    void *response;
};

static struct ready get_ready(struct bench *b, const struct operation *o)
{
    struct ready ready = {.op = op_of(o->name)};
    struct hf_scope *s = b->w.scope;

    if (o->before)
        world_ok(&b->w, o->before, request_text(b, o->json));
    if (o->then)
        world_ok(&b->w, o->then, o->then_json);
    test_advance_ms(b->t, o->wait_ms);
    if (!ready.op)
        return ready;
    ready.request = hf_scope_alloc(s, ready.op->request->size);
    ready.response = hf_scope_alloc(s, ready.op->response->size);
    memset(ready.request, 0, ready.op->request->size);
    CHECK_OK(hf__wire_read(s, ready.op->request, world_json(&b->w, request_text(b, o->json)),
                           ready.request));
    return ready;
}

static enum hf_status go(struct bench *b, struct hf_scope *s, const struct ready *ready)
{
    struct hf_upkeep_report report;

    if (!ready->op)
        return hf_engine_upkeep(s, b->w.db, &report);
    return hf_db_call(s, b->w.db, ready->op->op, ready->request, ready->response);
}

/* The error without its words: those give way to the status's own when there is no memory. */
static void add_error(struct bench *b, struct hf__buf *text, const struct hf_error *error)
{
    add(text, hf_str_from(hf_status_name(error->status)));
    if (error->item.ptr)
        add(text, hf_item_to_json(b->w.scope, error->item));
    for (size_t i = 0; i < error->reasons_len; i++) {
        add(text, error->reasons[i].code);
        if (error->reasons[i].item.ptr)
            add(text, hf_item_to_json(b->w.scope, error->reasons[i].item));
    }
}

static struct hf_str answer_text(struct bench *b, const struct ready *ready, struct hf_scope *s,
                                 enum hf_status status)
{
    struct hf__buf buf = {.scope = b->w.scope};
    struct hf__buf text = {.scope = b->w.scope};

    if (!ready->op)
        return HF_STR("");
    if (status != HF_OK) {
        add_error(b, &text, hf_scope_error(s));
    } else {
        hf__wire_write(&buf, ready->op->response, ready->response);
        CHECK(!buf.failed);
        add(&text, hf_str_of((const char *)buf.ptr, buf.len));
    }
    CHECK(!text.failed);
    return hf_str_of((const char *)text.ptr, text.len);
}

/* How the database looks before and after the operation when nothing fails; and its answer. */
struct course {
    char *before, *after, *answer;
    bool several; /* it consists of several writes: other states lie between the two */
    bool reads;   /* it changes nothing */
};

static char *keep(struct hf_str text)
{
    char *copy = calloc(1, text.len + 1);

    CHECK(copy != NULL);
    memcpy(copy, text.ptr, text.len);
    return copy;
}

static struct course clean_course(struct test *t, const struct operation *o)
{
    struct course course = {.several = strcmp(o->name, "Upkeep") == 0};
    struct bench b;
    struct ready ready;

    bench_open(&b, t);
    ready = get_ready(&b, o);
    course.before = keep(dump(&b.w));
    CHECK_STATUS(o->fails, go(&b, b.w.scope, &ready));
    course.answer = keep(answer_text(&b, &ready, b.w.scope, o->fails));
    course.after = keep(dump(&b.w));
    course.reads = strcmp(course.before, course.after) == 0;
    bench_close(&b);
    return course;
}

static void free_course(struct course *course)
{
    free(course->before);
    free(course->after);
    free(course->answer);
}

static bool is(const char *text, struct hf_str other)
{
    return hf_str_equal(hf_str_from(text), other);
}

/* Where two texts begin to differ, and a little before. */
static size_t same(const char *text, struct hf_str other)
{
    size_t at = 0;

    while (at < other.len && text[at] == other.ptr[at])
        at++;
    return at > 100 ? at - 100 : 0;
}

/* Which state this is; ends the test when it is neither, unless others may lie between. */
enum state { BEFORE, AFTER, BETWEEN };

static enum state state_of(const struct operation *o, const struct course *course, int64_t nth,
                           struct hf_str now)
{
    if (is(course->before, now))
        return BEFORE;
    if (is(course->after, now))
        return AFTER;
    if (!course->several)
        fail_msg("%s with fault %lld: neither before nor after; after is\n  %.300s\nnow\n  %.300s",
                 o->name, (long long)nth, course->after + same(course->after, now),
                 now.ptr + same(course->after, now));
    return BETWEEN;
}

/* (4): the operation can be done now, in the same scope, and leads where it should. */
static void finish_it(struct bench *b, const struct operation *o, const struct course *course,
                      const struct ready *ready, struct hf_scope *failed, int64_t nth)
{
    struct hf_scope *s = failed ? failed : b->w.scope;
    enum hf_status status = go(b, s, ready);

    if (status != o->fails)
        fail_msg("%s after fault %lld: %s", o->name, (long long)nth, hf_scope_error_text(s));
    if (state_of(o, course, nth, dump(&b->w)) != AFTER && !course->reads)
        fail_msg("%s after fault %lld does not reach its end", o->name, (long long)nth);
}

/* ---- allocations ---------------------------------------------------------------------------- */

/*
 * A scope takes memory in chunks, so that most operations ask for none. Here is one with only
 * `room` bytes left in its first chunk: with all values of `room`, every place where an operation
 * takes memory is one where a new chunk is needed.
 */
static struct hf_scope *filled_scope(struct test *t, size_t room)
{
    struct hf_scope *probe = hf_scope_new(test_env(t));
    struct hf_scope *s = hf_scope_new(test_env(t));
    size_t allocs, pieces = 1;

    CHECK(probe && s && hf_scope_alloc(probe, 1));
    for (allocs = t->allocs; t->allocs == allocs; pieces++)
        CHECK(hf_scope_alloc(probe, 1));
    pieces--;
    hf_scope_free(probe);
    for (size_t i = room / 16; i < pieces; i++)
        CHECK(hf_scope_alloc(s, 1));
    return s;
}

enum { FRESH = 0 }; /* as room: a new scope, made while allocations may fail */

static void one_alloc_round(struct test *t, const struct operation *o, const struct course *course,
                            size_t room, int64_t nth)
{
    struct bench b;
    struct ready ready;
    struct hf_scope *s = NULL;
    enum hf_status status;
    enum state state;
    bool may_have_happened;

    ALLOC_SWEEP_STOP(t);
    bench_open(&b, t);
    ready = get_ready(&b, o);
    if (room != FRESH)
        s = filled_scope(t, room);
    t->alloc_failed = false;
    t->fail_at = (int64_t)t->allocs + nth;
    if (!s)
        s = hf_scope_new(test_env(t));
    status = s ? go(&b, s, &ready) : HF_NOMEM;
    ALLOC_SWEEP_STOP(t);
    may_have_happened = s && hf_scope_error(s)->may_have_happened;
    if (status != o->fails && status != HF_NOMEM)
        fail_msg("%s with allocation %lld failing: %s", o->name, (long long)nth,
                 hf_scope_error_text(s));
    if (status == o->fails && !is(course->answer, answer_text(&b, &ready, s, status)))
        fail_msg("%s with allocation %lld failing answered %.*s instead of %s", o->name,
                 (long long)nth, HF_FMT(answer_text(&b, &ready, s, status)), course->answer);
    state = state_of(o, course, nth, dump(&b.w));
    if (room == FRESH)
        (void)state_of(o, course, nth, dump_after_crash(&b));
    if (status == HF_OK && state != AFTER && !course->reads)
        fail_msg("%s with allocation %lld failing: success without effect", o->name,
                 (long long)nth);
    if (status != HF_OK && !course->reads && !course->several &&
        may_have_happened != (state == AFTER))
        fail_msg("%s with allocation %lld failing: may_have_happened is %d, it did %shappen",
                 o->name, (long long)nth, may_have_happened, state == AFTER ? "" : "not ");
    if (status != HF_OK && state != AFTER)
        finish_it(&b, o, course, &ready, s, nth);
    hf_scope_free(s);
    bench_close(&b);
}

TEST(sweep, every_allocation_of_every_operation)
{
    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        struct course course = clean_course(t, &operations[i]);
        long long rounds = 0;

        ALLOC_SWEEP (t, nth) {
            one_alloc_round(t, &operations[i], &course, FRESH, nth);
            rounds++;
        }
        if (getenv("HF_TEST_LOG"))
            print_message("%s: %lld allocations\n", operations[i].name, rounds - 1);
        free_course(&course);
    }
}

/* All rooms take half a minute, and several under a sanitizer: a run takes an eighth of them, by
 * its seed, one with a sanitizer a quarter of that, and all with HF_SWEEP_ALL. */
TEST(sweep, every_place_where_an_operation_takes_memory)
{
    enum { STEP = 48, ROOM_MAX = 6000, PART = 8, SHARES = 4 };
    size_t part = getenv("HF_SWEEP_ALL") ? 1 : PART * SHARES / test_times(SHARES);

    if (part == 0) /* by HF_TEST_TIMES */
        part = 1;
    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        struct course course = clean_course(t, &operations[i]);

        for (size_t room = 16 + STEP * test_random_below(t, part); room < ROOM_MAX;
             room += STEP * part)
            ALLOC_SWEEP (t, nth) {
                one_alloc_round(t, &operations[i], &course, room, nth);
            }
        free_course(&course);
    }
}

/* Opening and closing: an error, or a database with all that was in it. */
TEST(sweep, every_allocation_of_opening_and_closing)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_engine_options options = {.size = sizeof(options),
                                            .env = test_env(t),
                                            .no_upkeep_thread = nth % 2 == 0};
        struct hf_db *db = NULL;
        enum hf_status status = s ? hf_open(s, HF_STR("memory:"), &options, &db) : HF_NOMEM;

        CHECK((status == HF_OK) == (db != NULL));
        CHECK(status == HF_OK || status == HF_NOMEM);
        hf_db_close(db); /* its allocations fail as well */
        ALLOC_SWEEP_STOP(t);
        hf_scope_free(s);
    }
}

/* Open what a crash left; it is all there, or there is an error. */
static void open_copy(struct bench *b, struct hf__store *store, const struct course *course,
                      int64_t nth, enum hf_status expected, struct store_faults *faults)
{
    struct world w = b->w;
    enum hf_status status = hf__engine_open_on(b->w.scope, store, &b->w.options, &w.db);

    ALLOC_SWEEP_STOP(b->t);
    faults->fail_at = 0;
    CHECK(status == HF_OK || status == expected);
    CHECK((status == HF_OK) == (w.db != NULL));
    CHECK(status != HF_OK || !faults->struck);
    if (w.db)
        CHECK_INT(BEFORE, state_of(&unfinished, course, nth, dump(&w)));
    hf_db_close(w.db);
}

TEST(sweep, every_allocation_of_opening_what_a_crash_left)
{
    struct course course = clean_course(t, &unfinished);

    ALLOC_SWEEP (t, nth) {
        struct hf__store *copy;
        struct bench b;

        ALLOC_SWEEP_STOP(t);
        bench_open(&b, t);
        get_ready(&b, &unfinished);
        copy = copy_store(&b);
        t->alloc_failed = false;
        t->fail_at = (int64_t)t->allocs + nth;
        open_copy(&b, copy, &course, nth, HF_NOMEM, &b.faults);
        bench_close(&b);
    }
    free_course(&course);
}

TEST(sweep, every_call_of_the_store_while_opening)
{
    struct course course = clean_course(t, &unfinished);
    struct store_faults faults = {.fail_at = 0};

    for (uint64_t nth = 1; nth == 1 || faults.struck; nth++) {
        struct hf__store *faulty;
        struct bench b;

        bench_open(&b, t);
        get_ready(&b, &unfinished);
        faults = (struct store_faults){.fail_at = 0};
        CHECK_OK(
            hf__store_open_with_faults(b.w.scope, test_env(t), copy_store(&b), &faults, &faulty));
        faults.fail_at = nth;
        open_copy(&b, faulty, &course, (int64_t)nth, HF_IO, &faults);
        bench_close(&b);
    }
    free_course(&course);
}

/* A database that cannot save its counts when it is closed counts again when it is opened. */
TEST(sweep, every_call_of_the_store_while_closing)
{
    struct course course = clean_course(t, &operations[0]);
    const char *struck = "";

    for (uint64_t nth = 1; struck; nth++) {
        const char *path = test_directory(t);
        struct hf_engine_options options = {.size = sizeof(options),
                                            .env = test_env(t),
                                            .no_upkeep_thread = true};
        struct bench b;

        bench_open_in(&b, t, path);
        b.faults = (struct store_faults){.fail_at = nth};
        hf_db_close(b.w.db);
        struck = b.faults.struck;
        CHECK_OK(
            hf_open(b.w.scope, hf_scope_format(b.w.scope, "embedded:%s", path), &options, &b.w.db));
        (void)state_of(&operations[0], &course, (int64_t)nth, dump(&b.w));
        bench_close(&b);
    }
    free_course(&course);
}

/* ---- the store ------------------------------------------------------------------------------ */

struct fault {
    enum hf_status status;
    bool after;
};

/* Write something that changes nothing and is not synced, so that consistent reads have to sync. */
static void leave_unsynced(struct bench *b)
{
    struct store_batch batch = {.ops = {.scope = b->w.scope}};
    const struct store_range all = {.fill_cache = true};
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    uint64_t ticket;
    bool found;

    CHECK_OK(hf__store_iter_open(b->w.scope, b->store, NULL, &all, &iter));
    CHECK_OK(hf__store_iter_next(b->w.scope, iter, &found, &key, &value));
    CHECK(found);
    hf__batch_put(&batch, key, value);
    hf__store_iter_close(iter);
    CHECK_OK(hf__store_write(b->w.scope, b->store, &batch, &ticket));
}

/* One round; false when the operation makes fewer than `nth` calls. */
static bool one_store_round(struct test *t, const struct operation *o, const struct course *course,
                            struct fault fault, uint64_t nth)
{
    struct bench b;
    struct ready ready;
    struct hf_scope *s;
    enum hf_status status;
    enum state state;
    bool writing, may, stopped;
    const char *struck;

    bench_open(&b, t);
    ready = get_ready(&b, o);
    if (course->reads)
        leave_unsynced(&b);
    s = hf_scope_new(test_env(t));
    b.faults = (struct store_faults){.fail_at = nth, .status = fault.status, .after = fault.after};
    status = go(&b, s, &ready);
    struck = b.faults.struck;
    b.faults.fail_at = 0;
    if (!struck) {
        CHECK_STATUS(o->fails, status);
        hf_scope_free(s);
        bench_close(&b);
        return false;
    }
    writing = strcmp(struck, "write") == 0;
    stopped = fault.status == HF_IO && (writing || strcmp(struck, "sync") == 0);
    may = hf_scope_error(s)->may_have_happened;
    if (status != fault.status) /* (1) */
        fail_msg("%s: the %s, call %llu, failed with %d, the operation with %d: %s", o->name,
                 struck, (unsigned long long)nth, (int)fault.status, (int)status,
                 hf_scope_error_text(s));
    state = state_of(o, course, (int64_t)nth, dump_after_crash(&b));
    if (course->several && !is(course->after, dump_finished_after_crash(&b))) /* (7) */
        fail_msg("upkeep, its %s, call %llu, failed, does not reach its end after a crash", struck,
                 (unsigned long long)nth);
    if (!stopped || !fault.after) /* what memory says of a write that failed and is there is open */
        (void)state_of(o, course, (int64_t)nth, dump(&b.w));
    if (!course->several && !course->reads &&
        may != (state == AFTER || (writing && fault.status == HF_IO))) /* (3) */
        fail_msg("%s: the %s, call %llu, failed with %d: may_have_happened is %d, it did %shappen",
                 o->name, struck, (unsigned long long)nth, (int)fault.status, may,
                 state == AFTER ? "" : "not ");
    if (course->reads && may)
        fail_msg("%s, which changes nothing, may have happened: the %s, call %llu, failed", o->name,
                 struck, (unsigned long long)nth);
    if (!stopped && state != AFTER)
        finish_it(&b, o, course, &ready, s, (int64_t)nth);
    if (stopped && !course->reads && strcmp(o->name, "Upkeep") != 0)
        CHECK(go(&b, b.w.scope, &ready) != HF_OK);
    hf_scope_free(s);
    bench_close(&b);
    return true;
}

static void sweep_store(struct test *t, struct fault fault)
{
    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        struct course course = clean_course(t, &operations[i]);
        uint64_t nth = 1;

        while (one_store_round(t, &operations[i], &course, fault, nth))
            nth++;
        free_course(&course);
    }
}

TEST(sweep, every_call_of_the_store_with_io_errors)
{
    sweep_store(t, (struct fault){HF_IO, false});
}

TEST(sweep, every_call_of_the_store_with_io_errors_that_come_after_the_write)
{
    sweep_store(t, (struct fault){HF_IO, true});
}

TEST(sweep, every_call_of_the_store_without_space)
{
    sweep_store(t, (struct fault){HF_NO_SPACE, false});
}

TEST(sweep, every_call_of_the_store_without_memory)
{
    sweep_store(t, (struct fault){HF_NOMEM, false});
}
