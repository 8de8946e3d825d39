/*
 * test/patterns/kit.c: databases for tests of patterns.
 *
 * Engines are opened once for each test: memory in microseconds, a directory in about ten
 * milliseconds. Tables get names of their own all the same, as a database behind a URL is not ours
 * to empty.
 */
#include "kit.h"

#include <holdfast/client.h>
#include <holdfast/engine.h>

#include <stdio.h>
#include <string.h>

#include "rig.h"

enum { SCOPES_MAX = 16 };

struct kit_inside {
    struct kit kit;
    struct hf_scope *scopes[SCOPES_MAX];
    size_t scopes_len;
    bool serves;
    struct rig rig;
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
        url = hf_scope_format(k->scope, "embedded:%s/db", test_directory(k->t));
    if (hf_open(k->scope, url, &options, &db) != HF_OK)
        fail_msg("cannot open %s: %s", kind, hf_scope_error_text(k->scope));
    return db;
}

/* The server has the system's clocks and memory, what is before it has the test's. */
static struct hf_db *open_server(struct kit_inside *inside)
{
    struct kit *k = &inside->kit;
    struct hf_client_options options = {.size = sizeof(options),
                                        .env = test_env(k->t),
                                        .no_aws_config = true,
                                        .region = HF_STR("us-east-1"),
                                        .credentials = {.access_key = HF_STR("kit"),
                                                        .secret_key = HF_STR("kit")}};
    struct hf_db *db;

    rig_open(&inside->rig);
    inside->serves = true;
    CHECK_OK(hf_connect(k->scope,
                        hf_scope_format(k->scope, "http://127.0.0.1:%u", inside->rig.port),
                        &options, &db));
    return db;
}

void kit_run(struct test *t, const char *kind, kit_fn *run)
{
    struct kit_inside inside = {.kit = {.t = t, .scope = hf_scope_new(test_env(t))}};
    struct kit *k = &inside.kit;
    struct hf_scope *names = hf_scope_new(test_env(t));
    struct hf_db *inner =
        strcmp(kind, "server:") == 0 ? open_server(&inside) : open_engine(k, kind);

    k->table = hf_scope_format(names, "kit.%016llx", (unsigned long long)test_random(t));
    CHECK_OK(hf_faulty_open(k->scope, inner, &k->db));
    run(k);
    hf_db_close(k->db);
    for (size_t i = 0; i < inside.scopes_len; i++)
        hf_scope_free(inside.scopes[i]);
    hf_scope_free(names);
    hf_scope_free(k->scope);
    if (inside.serves)
        rig_close(&inside.rig);
}

struct hf_scope *kit_scope(struct kit *k)
{
    struct kit_inside *inside = (struct kit_inside *)(void *)k;

    CHECK(inside->scopes_len < SCOPES_MAX);
    return inside->scopes[inside->scopes_len++] = hf_scope_new(test_env(k->t));
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
