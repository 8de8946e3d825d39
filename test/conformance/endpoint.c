/*
 * test/conformance/endpoint.c: see endpoint.h. Other databases have accounts and regions of their
 * own, and take their time to make and delete tables.
 */
#include "endpoint.h"

#include <holdfast/client.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "ops/fields.h"

#define OURS "us-east-1:123456789012"

enum { POLLS = 2000, POLL_MS = 5, SHOWN_MAX = 300 };

/* "region:account" of the endpoint, once it is known. */
static char theirs[128];

bool endpoint_given(void)
{
    const char *url = getenv("HF_ENDPOINT");

    return url && *url;
}

static void pause_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0) {
    }
}

/* ---- tables --------------------------------------------------------------------------------- */

static bool is_settled(const struct hf_table_description *table)
{
    if (table->status && table->status != HF_TABLE_ACTIVE)
        return false;
    for (size_t i = 0; i < table->global_indexes_len; i++)
        if (table->global_indexes[i].status && table->global_indexes[i].status != HF_TABLE_ACTIVE)
            return false;
    return true;
}

/* Wait until the table is as it was asked to be, or is gone. */
static void wait_for(struct hf_scope *s, struct hf_db *db, struct hf_str table)
{
    struct hf_describe_table_result told;

    for (int i = 0; i < POLLS; i++) {
        if (hf_describe_table(s, db, &(struct hf_describe_table){.table = table}, &told) != HF_OK ||
            !told.table || is_settled(told.table))
            return;
        pause_ms(POLL_MS);
    }
    fail_msg("table %.*s does not settle", HF_FMT(table));
}

static void delete_all(struct hf_scope *s, struct hf_db *db)
{
    struct hf_list_tables_result tables;

    for (;;) {
        if (hf_list_tables(s, db, &(struct hf_list_tables){.limit = 0}, &tables) != HF_OK)
            fail_msg("%s", hf_scope_error_text(s));
        if (tables.tables_len == 0)
            return;
        for (size_t i = 0; i < tables.tables_len; i++) {
            const struct hf_delete_table gone = {.table = tables.tables[i]};
            const struct hf_update_table unprotected = {.table = tables.tables[i],
                                                        .deletion_protection = HF_NO};

            if (hf_delete_table(s, db, &gone, NULL) != HF_OK) {
                (void)!hf_update_table(s, db, &unprotected, NULL);
                wait_for(s, db, gone.table);
                if (hf_delete_table(s, db, &gone, NULL) != HF_OK)
                    fail_msg("%s", hf_scope_error_text(s));
            }
            wait_for(s, db, gone.table);
        }
    }
}

/* The ARN of a table shows region and account. */
static void learn_account(struct hf_scope *s, struct hf_db *db)
{
    const struct hf_attribute_definition attribute = {HF_STR("pk"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("pk"), HF_KEY_HASH};
    const struct hf_create_table request = {.table = HF_STR("probe"),
                                            .attributes = &attribute,
                                            .attributes_len = 1,
                                            .key_schema = &key,
                                            .key_schema_len = 1,
                                            .billing = HF_BILLING_PAY_PER_REQUEST};
    struct hf_create_table_result made;
    struct hf_str arn, rest = HF_STR("");
    const char *end;

    if (hf_create_table(s, db, &request, &made) != HF_OK)
        fail_msg("%s", hf_scope_error_text(s));
    wait_for(s, db, request.table);
    arn = made.table->arn;
    end = arn.ptr ? memmem(arn.ptr, arn.len, ":table/", 7) : NULL;
    if (!end || !str_after(arn, HF_STR("arn:aws:dynamodb:"), &rest))
        fail_msg("the table's ARN is %.*s", HF_FMT(arn));
    snprintf(theirs, sizeof(theirs), "%.*s", (int)(end - rest.ptr), rest.ptr);
}

struct hf_db *endpoint_open(struct test *t, struct hf_scope *s)
{
    struct hf_str url = hf_scope_format(s, "%s?retry=off&attempt_ms=5000", getenv("HF_ENDPOINT"));
    const struct hf_client_options options = {.size = sizeof(options),
                                              .env = test_env(t),
                                              .no_aws_config = true};
    struct hf_db *db;

    if (hf_connect(s, url, &options, &db) != HF_OK)
        fail_msg("%s", hf_scope_error_text(s));
    delete_all(s, db);
    if (!theirs[0]) {
        learn_account(s, db);
        delete_all(s, db);
    }
    return db;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static struct hf_str replace(struct hf_scope *s, struct hf_str text, const char *from,
                             const char *to)
{
    struct hf__buf buf = {.scope = s};
    const char *found;

    while (text.len && (found = memmem(text.ptr, text.len, from, strlen(from))) != NULL) {
        hf__buf_put(&buf, text.ptr, (size_t)(found - text.ptr));
        hf__buf_put_str(&buf, hf_str_from(to));
        text.len -= (size_t)(found - text.ptr) + strlen(from);
        text.ptr = found + strlen(from);
    }
    hf__buf_put_str(&buf, text);
    return hf_str_of((const char *)buf.ptr, buf.len);
}

bool endpoint_exchange(struct world *w, const char *operation, struct hf_str body,
                       struct hf_str *answer)
{
    static const char *const slow[] = {"CreateTable", "UpdateTable", "DeleteTable",
                                       "RestoreTableFromBackup"};
    bool good =
        world_exchange(w, operation, replace(w->scope, body, OURS, theirs), answer) == HF_OK;
    json_t *request;

    *answer = replace(w->scope, *answer, theirs, OURS);
    for (size_t i = 0; good && i < sizeof(slow) / sizeof(slow[0]); i++) {
        if (strcmp(operation, slow[i]) != 0)
            continue;
        request = json_loadb(body.ptr, body.len, JSON_ALLOW_NUL, NULL);
        wait_for(w->scope, w->db,
                 hf_str_from(json_string_value(
                     json_object_get(request, i == 3 ? "TargetTableName" : "TableName"))));
        json_decref(request);
    }
    return good;
}

/* ---- differences ---------------------------------------------------------------------------- */

static json_t *shown(const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
    size_t len = text ? strlen(text) : 0;
    json_t *cut;

    while (len > SHOWN_MAX || (text && len > 0 && (text[len] & 0xC0) == 0x80))
        len--;
    cut = json_stringn(text ? text : "", len);
    free(text);
    return cut;
}

void endpoint_differs(const char *file, size_t step, const json_t *asked, const char *why,
                      const json_t *expected, const json_t *got)
{
    const char *path = getenv("HF_DIFFERENCES");
    FILE *out = path ? fopen(path, "a") : NULL;
    json_t *line;

    if (!out)
        fail_msg("HF_DIFFERENCES names no file that can be written");
    line = json_pack("{s:s, s:i, s:o?, s:o, s:s, s:o, s:o}", "file", file, "step", (int)step,
                     "call", json_deep_copy(json_object_get(asked, "call")), "asked",
                     shown(json_object_get(asked, "request")), "why", why, "expected",
                     shown(expected), "got", shown(got));
    if (!line || json_dumpf(line, out, JSON_COMPACT) != 0 || fputc('\n', out) == EOF)
        fail_msg("a difference cannot be written down");
    json_decref(line);
    fclose(out);
}
