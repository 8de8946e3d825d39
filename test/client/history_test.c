/*
 * client/history_test.c: is what many clients see, through a network that fails, the history of one
 * register per key? (L1, small)
 *
 * A register is an item with a version and the id of the write that made it. A client reads it
 * consistently and then puts the next version on condition that the version is still the one it
 * saw. The table's stream, read from the engine in the end, is the true history: each write that
 * happened, in order. Then per key:
 *
 *  (1) versions in the history go up by one: no conditional write happened twice or out of turn;
 *  (2) a write that was acked is in the history once, one that failed is not, one that may have
 *      happened is there at most once; nothing else is there;
 *  (3) what a read saw is in the history, and its write had been begun when the read ended;
 *  (4) no read and no condition goes back: what was known to be there when a call began (acked, or
 *      read) is still there for it, or something newer is.
 *
 * With versions that go up by one this is all of linearizability: the order of writes is given, and
 * (3) and (4) say that every call fits in between its beginning and its end.
 *
 * HF_CHAOS_HISTORIES=n makes so many.
 */
#include <holdfast/client.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "requests.h"
#include "rig.h"

enum {
    HISTORIES = 6,
    AT_ONCE = 6, /* histories at a time: they mostly wait */
    CLIENTS = 8,
    KEYS = 5,
    CALLS = 120, /* of each client: a read and a write each */
    WRITES_MAX = CLIENTS * CALLS,
    CALL_MS = 500
};

enum fate { UNUSED, ACKED, UNKNOWN, FAILED };

struct write {
    enum fate fate;
    int key;
    int64_t version;
    int64_t floor; /* highest version known of the key when the call began */
    int64_t begun_us;
    unsigned times; /* in the true history */
};

struct read {
    bool done;
    int key;
    int64_t version;
    int64_t id; /* of the write that was seen; -1: there was no item */
    int64_t floor;
    int64_t ended_us;
};

struct history {
    struct rig rig;
    struct hf_db *db;
    struct client {
        struct history *h;
        size_t number;
        pthread_t thread;
        struct hf_scope *s;
    } clients[CLIENTS];
    uint64_t seed;
    _Atomic int64_t known[KEYS]; /* the highest version that somebody was told of */
    struct write writes[WRITES_MAX];
    struct read reads[WRITES_MAX];
    int64_t ids[KEYS][WRITES_MAX + 1]; /* the true history: version -> id */
    int64_t versions[KEYS];
};

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void learn(struct history *h, int key, int64_t version)
{
    int64_t known = atomic_load(&h->known[key]);

    while (known < version && !atomic_compare_exchange_weak(&h->known[key], &known, version))
        continue;
}

/* ---- clients --------------------------------------------------------------------------------- */

static struct hf_str key_name(struct hf_scope *s, int key)
{
    return hf_scope_format(s, "key %d", key);
}

static void read_register(struct client *c, struct read *read)
{
    struct hf_scope *s = c->s;
    struct hf_get_item_result got;
    struct hf_get_item get = {.table = HF_STR("tab"),
                              .key = HF_ITEM(s, HF_S("pk", key_name(s, read->key))),
                              .consistent = HF_YES};

    read->floor = atomic_load(&c->h->known[read->key]);
    hf_scope_timeout_ms(s, CALL_MS);
    read->done = hf_get_item(s, c->h->db, &get, &got) == HF_OK;
    read->ended_us = now_us();
    read->id = -1;
    if (read->done && got.item.ptr) {
        MUST(hf_value_i64(hf_item_get(got.item, HF_STR("version")), &read->version));
        MUST(hf_value_i64(hf_item_get(got.item, HF_STR("id")), &read->id));
    }
    if (read->done)
        learn(c->h, read->key, read->version);
    hf_scope_reset(s);
}

/* Put the version behind the one that was seen. */
static void write_register(struct client *c, const struct read *seen, struct write *write)
{
    struct hf_scope *s = c->s;
    struct hf_put_item put = {.table = HF_STR("tab"),
                              .item = HF_ITEM(s, HF_S("pk", key_name(s, seen->key)),
                                              HF_N("version", seen->version + 1),
                                              HF_N("id", write - c->h->writes)),
                              .condition = seen->version ? HF_STR("version = :seen")
                                                         : HF_STR("attribute_not_exists(pk)")};
    enum hf_status status;

    if (seen->version)
        put.values = HF_ITEM(s, HF_N(":seen", seen->version));
    write->key = seen->key;
    write->version = seen->version + 1;
    write->floor = atomic_load(&c->h->known[seen->key]);
    write->begun_us = now_us();
    hf_scope_timeout_ms(s, CALL_MS);
    status = hf_put_item(s, c->h->db, &put, NULL);
    write->fate = status == HF_OK ? ACKED : hf_scope_error(s)->may_have_happened ? UNKNOWN : FAILED;
    if (status == HF_OK)
        learn(c->h, write->key, write->version);
    hf_scope_reset(s);
}

static void *run_client(void *user)
{
    struct client *c = user;
    uint64_t dice = c->h->seed + c->number;

    c->s = hf_scope_new(NULL);
    MUST(c->s != NULL);
    for (size_t i = 0; i < CALLS; i++) {
        size_t nth = c->number * CALLS + i;
        struct read *read = &c->h->reads[nth];

        dice = dice * 6364136223846793005u + 1442695040888963407u;
        read->key = (int)(dice >> 33) % KEYS;
        read_register(c, read);
        if (read->done)
            write_register(c, read, &c->h->writes[nth]);
    }
    hf_scope_free(c->s);
    return NULL;
}

/* ---- the true history ------------------------------------------------------------------------ */

static void take_record(struct history *h, const struct hf_record *record)
{
    struct hf_str name = hf_value_str(hf_item_get(record->change->keys, HF_STR("pk")));
    int key = name.ptr[name.len - 1] - '0';
    int64_t version, id;

    MUST(key >= 0 && key < KEYS);
    CHECK(hf_value_i64(hf_item_get(record->change->new_image, HF_STR("version")), &version));
    CHECK(hf_value_i64(hf_item_get(record->change->new_image, HF_STR("id")), &id));
    CHECK_INT(h->versions[key] + 1, version); /* (1) */
    CHECK(id >= 0 && id < WRITES_MAX);        /* (2) */
    CHECK_INT(h->writes[id].version, version);
    CHECK_INT(h->writes[id].key, key);
    h->writes[id].times++;
    h->versions[key] = version;
    h->ids[key][version] = id;
}

static void take_shard(struct history *h, struct hf_str arn, struct hf_str shard)
{
    struct hf_scope *s = h->rig.truth.scope;
    struct hf_get_shard_iterator_result got;
    struct hf_get_records_result page;

    CHECK_OK(
        hf_get_shard_iterator(s, h->rig.truth.db,
                              &(struct hf_get_shard_iterator){.arn = arn,
                                                              .shard = shard,
                                                              .type = HF_ITERATOR_TRIM_HORIZON},
                              &got));
    do {
        CHECK_OK(hf_get_records(s, h->rig.truth.db,
                                &(struct hf_get_records){.iterator = got.iterator}, &page));
        for (size_t i = 0; i < page.records_len; i++)
            take_record(h, &page.records[i]);
        got.iterator = page.next;
    } while (page.records_len && page.next.ptr);
}

static void take_stream(struct history *h)
{
    struct hf_scope *s = h->rig.truth.scope;
    struct hf_describe_table_result table;
    struct hf_describe_stream_result stream;

    hf_scope_reset(s);
    CHECK_OK(hf_describe_table(s, h->rig.truth.db,
                               &(struct hf_describe_table){.table = HF_STR("tab")}, &table));
    CHECK_OK(hf_describe_stream(s, h->rig.truth.db,
                                &(struct hf_describe_stream){.arn = table.table->stream_arn},
                                &stream));
    for (size_t i = 0; i < stream.stream->shards_len; i++)
        take_shard(h, stream.stream->arn, stream.stream->shards[i].id);
}

/* ---- judging --------------------------------------------------------------------------------- */

static void judge_write(const struct history *h, size_t nth)
{
    const struct write *write = &h->writes[nth];

    if (write->fate == ACKED && write->times != 1)
        fail_msg("write %zu was acked and happened %u times", nth, write->times);
    if (write->fate == UNKNOWN && write->times > 1)
        fail_msg("write %zu happened %u times", nth, write->times);
    if ((write->fate == FAILED || write->fate == UNUSED) && write->times)
        fail_msg("write %zu did not happen, it was said", nth);
    if (write->fate == ACKED && write->version <= write->floor) /* (4) */
        fail_msg("write %zu made version %lld, when %lld was known", nth, (long long)write->version,
                 (long long)write->floor);
}

static void judge_read(const struct history *h, size_t nth)
{
    const struct read *read = &h->reads[nth];

    if (!read->done)
        return;
    if (read->version < read->floor) /* (4) */
        fail_msg("read %zu saw version %lld, when %lld was known", nth, (long long)read->version,
                 (long long)read->floor);
    if (read->id < 0)
        return;
    if (read->version > h->versions[read->key] ||
        h->ids[read->key][read->version] != read->id) /* (3) */
        fail_msg("read %zu saw version %lld of write %lld, which never was", nth,
                 (long long)read->version, (long long)read->id);
    CHECK(h->writes[read->id].begun_us <= read->ended_us);
}

/* ---- a history ------------------------------------------------------------------------------- */

/* Eight faults of all. An answer that comes later than the next request cannot be told from that
 * request's own, so the fault that says such things is not among them. */
static void choose_faults(uint64_t seed, struct chaos_script *script)
{
    *script = (struct chaos_script){.odds = 4, .ms = 120, .seed = seed, .len = CHAOS_SCRIPT_MAX};
    for (size_t i = 0; i < CHAOS_SCRIPT_MAX; i++) {
        do {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            script->faults[i] = (enum chaos_fault)((seed >> 33) % CHAOS_FAULTS);
        } while (script->faults[i] == CHAOS_SPEAK_BEHIND);
    }
}

static void open_history(struct history *h)
{
    struct hf_client_options options = {
        .size = sizeof(options),
        .region = HF_STR("us-east-1"),
        .credentials = {.access_key = HF_STR("key"), .secret_key = HF_STR("secret")},
        .proxy = HF_STR("none"),
        .no_aws_config = true,
        .attempt_ms = 80,
        .retry = {.max_attempts = 3, .backoff_ms = 2, .throttle_ms = 4, .backoff_max_ms = 20}};
    struct chaos_script script;

    rig_open(&h->rig);
    rig_do(&h->rig, "CreateTable",
           "{'TableName':'tab','BillingMode':'PAY_PER_REQUEST',"
           "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],"
           "'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],"
           "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_IMAGE'}}");
    choose_faults(h->seed, &script);
    chaos_play(h->rig.chaos, &script);
    CHECK_OK(
        hf_connect(h->rig.truth.scope, rig_url(&h->rig, h->rig.truth.scope), &options, &h->db));
}

static struct history *start_history(uint64_t seed)
{
    struct history *h = calloc(1, sizeof(*h));

    CHECK(h != NULL);
    h->seed = seed;
    open_history(h);
    for (size_t i = 0; i < CLIENTS; i++) {
        h->clients[i] = (struct client){.h = h, .number = i};
        MUST(pthread_create(&h->clients[i].thread, NULL, run_client, &h->clients[i]) == 0);
    }
    return h;
}

static void end_history(struct history *h, long fates[4], long *happened)
{
    for (size_t i = 0; i < CLIENTS; i++)
        pthread_join(h->clients[i].thread, NULL);
    hf_db_close(h->db);
    CHECK(chaos_quiet(h->rig.chaos, 30000));
    take_stream(h);
    for (size_t i = 0; i < WRITES_MAX; i++) {
        judge_write(h, i);
        judge_read(h, i);
        fates[h->writes[i].fate]++;
        *happened += h->writes[i].fate == UNKNOWN && h->writes[i].times;
    }
    rig_close(&h->rig);
    free(h);
}

TEST(history, conditional_writes_are_one_history)
{
    const char *histories = getenv("HF_CHAOS_HISTORIES");
    size_t wanted = histories ? strtoul(histories, NULL, 10) : test_times(HISTORIES);
    long fates[4] = {0}, happened = 0;

    for (size_t done = 0; done < wanted; done += AT_ONCE) {
        struct history *running[AT_ONCE];
        size_t some = wanted - done < AT_ONCE ? wanted - done : AT_ONCE;

        for (size_t i = 0; i < some; i++)
            running[i] = start_history(test_random(t));
        for (size_t i = 0; i < some; i++)
            end_history(running[i], fates, &happened);
    }
    print_message("%zu histories: %ld writes acked, %ld failed, %ld unknown, of which %ld "
                  "happened\n",
                  wanted, fates[ACKED], fates[FAILED], fates[UNKNOWN], happened);
    CHECK(fates[ACKED] > 10);
}
