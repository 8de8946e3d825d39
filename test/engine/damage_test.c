/*
 * engine/damage_test.c: what is stored and makes no sense ends in HF_CORRUPT where it is read, and
 * not in an assert, or in ids that are given out for the second time.
 */
#include "help.h"

#include "engine/engine.h"
#include "engine/layout.h"
#include "engine/table/schema.h"
#include "store/store.h"

#define STREAM_TABLE                                                                               \
    "{'TableName':'tab','BillingMode':'PAY_PER_REQUEST','KeySchema':[{'AttributeName':'pk',"       \
    "'KeyType':'HASH'}],'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],"      \
    "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_IMAGE'}}"

static void put_entry(struct world *w, const void *key, size_t key_len, struct hf_bytes value)
{
    struct store_batch batch = {.ops = {.scope = w->scope}};
    uint64_t ticket;

    hf__batch_put(&batch, hf_bytes_of(key, key_len), value);
    CHECK_OK(hf__store_write(w->scope, hf__engine_of(w->db)->store, &batch, &ticket));
}

/* Close it, and find that it is not opened again, for this reason. */
static void check_refused(struct world *w, const char *reason)
{
    hf_db_close(w->db);
    hf_scope_reset(w->scope);
    CHECK_STATUS(HF_CORRUPT, hf_open(w->scope, hf_str_from(w->url), &w->options, &w->db));
    if (!strstr(hf_scope_error_text(w->scope), reason))
        fail_msg("%s", hf_scope_error_text(w->scope));
    hf_scope_free(w->scope);
}

static void close_plain(struct world *w)
{
    hf_db_close(w->db);
    hf_scope_free(w->scope);
}

TEST(damage, a_next_id_that_is_in_use)
{
    static const char key[] = "\0next_id";
    static const uint8_t one[4] = {0, 0, 0, 1};
    struct world w = world_open(t, "disk:");

    world_ok(&w, "CreateTable", STREAM_TABLE);
    put_entry(&w, key, sizeof(key) - 1, hf_bytes_of(one, sizeof(one)));
    check_refused(&w, "The record of the next id is damaged: it says 1, but ");
}

/* Numbers of stream records would begin at 0 again, below those that readers have seen. */
TEST(damage, a_sequence_number_that_nobody_reaches)
{
    static const char key[] = "\0sequence";
    static const uint8_t last[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    struct world w = world_open(t, "disk:");

    world_ok(&w, "CreateTable", STREAM_TABLE);
    put_entry(&w, key, sizeof(key) - 1, hf_bytes_of(last, sizeof(last)));
    check_refused(&w, "The next sequence number is damaged");
}

TEST(damage, the_record_of_a_table_under_another_name)
{
    static const char key[] = {SPACE_TABLE, 't', 'a', 'b'};
    static const char other[] = {SPACE_TABLE, 't', 'o', 'p'};
    struct world w = world_open(t, "disk:");
    struct hf_bytes record;

    world_ok(&w, "CreateTable", STREAM_TABLE);
    CHECK_OK(hf__store_get(w.scope, hf__engine_of(w.db)->store, NULL, hf_bytes_of(key, sizeof(key)),
                           &record));
    CHECK(record.len > 0);
    put_entry(&w, other, sizeof(other), record);
    check_refused(&w, "The record of a table is damaged");
}

/* A store with this record of stream 77 and nothing else. */
static void check_stream(struct test *t, const char *json)
{
    static const uint8_t key[] = {SPACE_STREAM, 0, 0, 0, 77};
    struct world w = {.t = t,
                      .scope = hf_scope_new(test_env(t)),
                      .options = {.size = sizeof(w.options),
                                  .env = test_env(t),
                                  .no_upkeep_thread = true}};
    struct hf_str text = world_json(&w, json);
    struct store_batch batch = {.ops = {.scope = w.scope}};
    struct hf__store *store;
    uint64_t ticket;

    hf__batch_put(&batch, hf_bytes_of(key, sizeof(key)), hf_bytes_of(text.ptr, text.len));
    CHECK_OK(hf__store_open_memory(w.scope, test_env(t), &store));
    CHECK_OK(hf__store_write(w.scope, store, &batch, &ticket));
    CHECK_STATUS(HF_CORRUPT, hf__engine_open_on(w.scope, store, &w.options, &w.db));
    CHECK_ERROR(HF_CORRUPT, "The record of a stream is damaged", w.scope);
    hf_scope_free(w.scope);
}

#define STREAM_RECORD(id, view, shards)                                                            \
    "{'Id':" id ",'Arn':'a','Label':'l','Table':'tab','View':" view ",'Created':1,"                \
    "'KeySchema':[{'Name':'pk','Type':'HASH'}],'Shards':[" shards "]}"

TEST(damage, the_record_of_a_stream)
{
    check_stream(t, STREAM_RECORD("77", "1", ""));
    check_stream(t, STREAM_RECORD("78", "1", "{'Id':'s','First':1}"));
    check_stream(t, STREAM_RECORD("77", "9", "{'Id':'s','First':1}"));
    check_stream(t, STREAM_RECORD("77", "1", "{'Id':'s','First':7,'Last':6}"));
}

TEST(damage, keys_that_are_too_short_for_upkeep)
{
    static const uint8_t age[] = {SPACE_TOKEN_AGE, 0, 0};
    struct world w = world_open(t, "memory:");
    uint8_t expiry[] = {SPACE_EXPIRY, 0, 0, 0, 0, 0, 0, 0, 0, 0x65}; /* in the last five years */

    put_entry(&w, age, sizeof(age), hf_bytes_of("", 0));
    CHECK_STATUS(HF_CORRUPT, hf_engine_upkeep(w.scope, w.db, NULL));
    CHECK_ERROR(HF_CORRUPT, "The age of a token is damaged", w.scope);
    close_plain(&w);

    w = world_open(t, "memory:");
    world_ok(&w, "CreateTable", STREAM_TABLE);
    world_ok(&w, "UpdateTimeToLive",
             "{'TableName':'tab','TimeToLiveSpecification':{'Enabled':true,"
             "'AttributeName':'until'}}");
    store_u32be(expiry + 1, hf__engine_of(w.db)->catalog.tables[0]->ttl_id);
    put_entry(&w, expiry, sizeof(expiry), hf_bytes_of("", 0));
    CHECK_STATUS(HF_CORRUPT, hf_engine_upkeep(w.scope, w.db, NULL));
    CHECK_ERROR(HF_CORRUPT, "An expiry entry is damaged", w.scope);
    close_plain(&w);
}
