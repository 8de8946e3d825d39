/*
 * cli/table/cmd_table_copy.c: `holdfast table copy-schema`: an empty table like another one, in the same
 * database or in another.
 *
 * What is copied: keys, indexes, billing, stream, expiry, protection, table class, tags. What is not:
 * encryption keys, resource policies, replicas and backups, which belong to an account.
 */
#include "base/base.h"
#include "cli/table/table.h"

#include <holdfast/pages.h>
#include <holdfast/table.h>

#include <string.h>

enum { TAGS_MAX = 1000 };

struct settings {
    struct database_settings database;
    struct hf_str from_url;
    bool dry_run;
};

static const struct option_spec copy_specs[] = {
    OPT_TEXT("from-db", "URL", from_url,
             "The database of the table FROM, if that is another one. Its URL may say more: "
             "dynamodb://eu-west-1?profile=work."),
    OPT_FLAG("dry-run", dry_run, "Create nothing: print the request of CreateTable."),
    DATABASE_ONE(struct settings),
};

static const struct option_example copy_examples[] = {
    {"holdfast table copy-schema orders orders-test", "An empty table with the same definition."},
    {"holdfast table copy-schema orders orders --from-db dynamodb://eu-west-1 --db embedded:shop.db",
     "From an AWS account into a directory."},
    {"holdfast table copy-schema orders orders-test --dry-run > orders.json",
     "The definition as a file, for 'table create -f' and for AWS's tools."},
};

const struct options_table hf__table_copy_schema_options = {
    .name = "table copy-schema",
    .operands = "FROM TO",
    .about =
        "Create the table TO with the definition of the table FROM: its keys, indexes, billing, "
        "stream, expiry, protection, class and tags. Items are not copied.",
    COMMAND_SPECS(copy),
};

static enum hf_status table_copy_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (!settings->from_url.ptr && strcmp(c->operands[0], c->operands[1]) == 0)
        return hf__command_fail(c, CLI_USAGE,
                                "'%s' and '%s' are the same table; name another one, or "
                                "another database with --from-db",
                                c->operands[0], c->operands[1]);
    c->without_db = true; /* it is opened below, if at all */
    return HF_OK;
}

/* ---- the definition ------------------------------------------------------------------------- */

/* Tags of AWS's own, such as aws:cloudformation:stack-name, cannot be given to another table. */
static bool is_own_tag(struct hf_str key)
{
    return key.len >= 4 && memcmp(key.ptr, "aws:", 4) == 0;
}

static enum hf_status tags_read(struct command_ctx *c, struct hf_db *db, struct hf_str arn,
                                struct hf_create_table *spec)
{
    struct hf_list_tags_of_resource request = {.arn = arn};
    struct hf_tag *tags = hf_scope_alloc(c->scope, TAGS_MAX * sizeof(*tags));
    struct hf_pages *pages = NULL;
    struct hf_tag tag = {0};
    enum hf_status status;

    if (!tags)
        return HF_NOMEM;
    TRY(hf_pages_list_tags_of_resource(c->scope, db, &request, NULL, &pages));
    while ((status = hf_pages_next_tag(c->scope, pages, &tag)) == HF_OK && tag.key.ptr &&
           spec->tags_len < TAGS_MAX)
        if (!is_own_tag(tag.key))
            tags[spec->tags_len++] = (struct hf_tag){.key = hf_scope_copy(c->scope, tag.key),
                                                     .value = hf_scope_copy(c->scope, tag.value)};
    hf_pages_free(pages);
    spec->tags = spec->tags_len ? tags : NULL;
    if (status == HF_UNSUPPORTED || status == HF_UNKNOWN_OPERATION || status == HF_DENIED) {
        if (!c->database->quiet)
            hf__cli_notice(c->cli, c->name, "tags are not copied: %s",
                           hf_scope_error_text(c->scope));
        return hf_scope_ok(c->scope);
    }
    return status;
}

/* All about the table FROM. */
static enum hf_status source_read(struct command_ctx *c, struct hf_db *db,
                                  struct hf_create_table *spec, struct hf_str *ttl)
{
    struct hf_str name = hf__command_operand(c, 0);
    struct hf_describe_table_result result;

    TRY(hf_describe_table(c->scope, db, &(struct hf_describe_table){.table = name}, &result));
    TRY(hf__cli_table_spec_of(c->scope, result.table, spec));
    spec->table = hf__command_operand(c, 1);
    if (result.table->sse && result.table->sse->kms_key_arn.len && !c->database->quiet)
        hf__cli_notice(c->cli, c->name, "not copied: encryption with the key %.*s",
                       HF_FMT(result.table->sse->kms_key_arn));
    TRY(hf__cli_table_ttl(c, db, name, ttl));
    return tags_read(c, db, result.table->arn, spec);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static enum hf_status request_print(struct command_ctx *c, const struct hf_create_table *spec,
                                    struct hf_str ttl)
{
    struct hf_str json = hf__cli_table_spec_request(c->scope, spec);

    if (!json.ptr)
        return HF_NOMEM;
    fprintf(c->cli->out, "%.*s\n", HF_FMT(json));
    if (ttl.ptr && !c->database->quiet)
        hf__cli_notice(c->cli, c->name,
                       "CreateTable cannot enable expiry: with 'table create' add --ttl %.*s",
                       HF_FMT(ttl));
    return HF_OK;
}

static enum hf_status copy_create(struct command_ctx *c, const struct hf_create_table *spec,
                                  struct hf_str ttl)
{
    const struct hf_table_wait_options wait = {.size = sizeof(wait),
                                               .timeout_ms = (uint32_t)c->database->timeout_ms};
    const struct hf_table_description *table;

    hf_scope_timeout_ms(c->scope, (uint32_t)c->database->timeout_ms);
    TRY(hf_create_table(c->scope, c->db, spec, NULL));
    TRY(hf_table_ensure(c->scope, c->db, spec,
                        HF_OPTIONS(hf_table_options, .ttl_attribute = ttl, .wait = &wait)));
    TRY(hf__cli_table_describe(c, spec->table, &table));
    TRY(hf__cli_table_print(c, table));
    if (c->database->json || c->database->quiet)
        return HF_OK;
    return COMMAND_PRINT(c, hf__rows_text("expiry", ttl),
                         hf__rows_bool("protected", table->deletion_protection == HF_YES),
                         hf__rows_number(c->cli, "tags", spec->tags_len));
}

/* Into the same database, or into another one, which is opened now: it is not made in vain. */
static enum hf_status copy_make(struct command_ctx *c, const struct hf_create_table *spec,
                                struct hf_str ttl)
{
    const struct settings *settings = c->settings;

    if (settings->dry_run)
        return request_print(c, spec, ttl);
    if (settings->from_url.ptr) {
        c->database->create = true;
        if (!hf__database_open(c->cli, c->name, c->database, &c->db, &c->ends))
            return HF_INVALID;
    }
    return copy_create(c, spec, ttl);
}

static enum hf_status table_copy(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct database_settings from = *c->database;
    struct hf_create_table spec;
    struct hf_str ttl = {0};
    struct hf_db *db = NULL;
    enum hf_status status;
    int ends = CLI_OK;

    if (settings->from_url.ptr)
        from = (struct database_settings){.url = settings->from_url,
                                          .timeout_ms = c->database->timeout_ms};
    if (!hf__database_open(c->cli, c->name, &from, &db, &ends))
        return hf__command_shown(c, ends);
    if (!settings->from_url.ptr)
        c->db = db; /* the frame closes it */
    status = source_read(c, db, &spec, &ttl);
    if (status == HF_OK)
        status = copy_make(c, &spec, ttl);
    if (settings->from_url.ptr)
        hf_db_close(db);
    return status;
}

const struct command hf__table_copy_schema_command = {COMMAND_SETTINGS(struct settings), .min = 2,
                                                      .max = 2, .check = table_copy_check,
                                                      .body = table_copy};
