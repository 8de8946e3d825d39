/*
 * test/coord/kit.c: databases for tests of patterns.
 *
 * Engines are opened once for each test: memory in microseconds, a directory in about ten
 * milliseconds. Tables get names of their own all the same, as a database behind a URL is not ours
 * to empty.
 */
#include "kit.h"

#include <holdfast/client.h>
#include <holdfast/engine.h>
#include <holdfast/table.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rig.h"

enum { SCOPES_MAX = 16 };

struct kit_inside {
    struct kit kit;
    struct rig *rig;      /* when it is a server */
    struct hf_db *engine; /* when it is in this process, and no server */
    struct hf_scope *scopes[SCOPES_MAX];
    size_t scopes_len;
};

static struct hf_db *open_engine(struct kit *k, const char *kind)
{
    struct hf_engine_options options = {.size = sizeof(options),
                                        .env = test_env(k->t),
                                        .no_upkeep_thread = true,
                                        .sync = HF_SYNC_NONE};
    struct hf_str url = hf_str_from(kind);
    struct hf_db *db;

    if (strcmp(kind, "disk:") == 0)
        url = hf_scope_format(k->scope, "embedded:%s/db", test_quick_directory(k->t));
    if (hf_open(k->scope, url, &options, &db) != HF_OK)
        fail_msg("cannot open %s: %s", kind, hf_scope_error_text(k->scope));
    return db;
}

static struct hf_db *connect_to(struct kit *k, struct hf_str url)
{
    struct hf_client_options options = {.size = sizeof(options),
                                        .env = test_env(k->t),
                                        .region = HF_STR("eu-central-1"),
                                        .credentials = {.access_key = HF_STR("kit"),
                                                        .secret_key = HF_STR("kit")},
                                        .no_aws_config = true};
    struct hf_db *db;

    if (hf_connect(k->scope, url, &options, &db) != HF_OK)
        fail_msg("cannot connect to %.*s: %s", HF_FMT(url), hf_scope_error_text(k->scope));
    return db;
}

/* A database of others removes by its own clock what has expired: so that is in its future. Whole
 * days later, as some tests care about the time of day. */
static void live_later(struct test *t)
{
    const int64_t day_us = INT64_C(24) * 3600 * 1000000;

    while (t->wall_us < (int64_t)time(NULL) * 1000000 + 30 * day_us)
        t->wall_us += day_us;
}

static struct hf_db *open_kind(struct kit_inside *inside, const char *kind)
{
    struct kit *k = &inside->kit;

    if (strcmp(kind, "url:") == 0) {
        live_later(k->t);
        return connect_to(k, hf_str_from(getenv("HF_KIT_URL")));
    }
    if (strcmp(kind, "server:") != 0)
        return inside->engine = open_engine(k, kind);
    rig_open(inside->rig);
    return connect_to(k, hf_scope_format(k->scope, "http://127.0.0.1:%u",
                                         (unsigned)inside->rig->port));
}

/* What is not ours to throw away is left as it was. */
static void delete_tables(struct kit *k)
{
    struct hf_scope *s = hf_scope_new(test_env(k->t));

    (void)!hf_delete_table(s, k->db, &(struct hf_delete_table){.table = k->table}, NULL);
    (void)!hf_delete_table(s, k->db, &(struct hf_delete_table){.table = k->other}, NULL);
    hf_scope_free(s);
}

void kit_run(struct test *t, const char *kind, kit_fn *run)
{
    struct rig rig;
    struct kit_inside inside = {.kit = {.t = t, .scope = hf_scope_new(test_env(t))}};
    struct kit *k = &inside.kit;
    struct hf_scope *names = hf_scope_new(test_env(t));
    unsigned long long number = test_random(t); /* of this test: it has names of its own */

    if (strcmp(kind, "url:") != 0 || getenv("HF_KIT_URL")) {
        inside.rig = strcmp(kind, "server:") == 0 ? &rig : NULL;
        k->table = hf_scope_format(names, "kit.%016llx", number);
        k->other = hf_scope_format(names, "kit.%016llx.other", number);
        CHECK_OK(hf_faulty_open(k->scope, open_kind(&inside, kind), &k->db));
        run(k);
        kit_no_faults(k);
        delete_tables(k);
        hf_db_close(k->db);
        if (inside.rig)
            rig_close(inside.rig);
    }
    for (size_t i = 0; i < inside.scopes_len; i++)
        hf_scope_free(inside.scopes[i]);
    hf_scope_free(names);
    hf_scope_free(k->scope);
}

void kit_make_table(struct kit *k, struct hf_str table)
{
    struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_S};
    struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table spec = {.table = table,
                                   .attributes = &id,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1};

    CHECK_OK(hf_table_ensure(k->scope, k->db, &spec, NULL));
}

bool kit_has(struct kit *k, enum hf_feature feature)
{
    bool has;

    CHECK_OK(hf_db_supports(k->scope, k->db, feature, &has));
    return has;
}

bool kit_refusal_has_item(struct kit *k)
{
    struct hf_put_item put = {.table = k->other,
                              .item = HF_ITEM(k->scope, HF_S("id", HF_STR("x"))),
                              .condition = HF_STR("attribute_not_exists(id)"),
                              .returns_on_failure = HF_ON_FAILURE_ALL_OLD};

    kit_make_table(k, k->other);
    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
    CHECK_STATUS(HF_CONDITION, hf_put_item(k->scope, k->db, &put, NULL));
    return hf_scope_error(k->scope)->item.ptr != NULL;
}

struct hf_scope *kit_scope(struct kit *k)
{
    struct kit_inside *inside = (struct kit_inside *)(void *)k;

    CHECK(inside->scopes_len < SCOPES_MAX);
    return inside->scopes[inside->scopes_len++] = hf_scope_new(test_env(k->t));
}

void kit_upkeep(struct kit *k)
{
    struct kit_inside *inside = (struct kit_inside *)(void *)k;
    struct hf_db *engine = inside->rig ? inside->rig->truth.db : inside->engine;
    struct hf_scope *s = hf_scope_new(test_env(k->t));

    if (engine)
        CHECK_OK(hf_engine_upkeep(s, engine, NULL));
    hf_scope_free(s);
}

void kit_fault(struct kit *k, enum hf_fault_kind kind, const char *operation, uint32_t count)
{
    struct hf_fault fault = {.kind = kind, .operation = hf_str_from(operation), .count = count};

    CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
}

void kit_no_faults(struct kit *k)
{
    CHECK_OK(hf_faulty_set(k->scope, k->db, NULL, 0));
}
