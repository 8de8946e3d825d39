/*
 * cli/table/cmd_table_truncate.c: `holdfast table truncate`: delete all items of a table.
 *
 * Workers share the segments of a parallel scan: each reads the keys of a page, and deletes them with
 * BatchWriteItem. Nothing is remembered: what is deleted is not found again, so the same command goes on where
 * one before it was killed. The table itself stays as it is, and its stream has every deletion.
 *
 * In a database of this process a write would wait for the disk each time. The workers leave that out (their
 * scopes have a pending sync), as a deletion that a crash undoes is done again. The last scan, which also sees
 * that nothing is left, waits until everything is durable.
 */
#include "base/base.h"
#include "cli/frame/output/progress.h"
#include "cli/frame/process/confirm.h"
#include "cli/table/table.h"

#include <holdfast/batch.h>
#include <holdfast/pages.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { WORKERS = 4, LOOK_MS = 50, KEY_PARTS = 2 };

struct settings {
    struct database_settings database;
    bool yes;
};

static const struct option_spec truncate_specs[] = {
    OPT_FLAG(
        "yes", yes,
        "Confirm that all items are deleted. Without it you are asked on a terminal; elsewhere "
        "nothing is deleted.",
        .letter = 'y'),
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS_WITH(struct settings, "Time limit for a request; then the exit code is 7."),
};

static const struct option_example truncate_examples[] = {
    {"holdfast table truncate orders --yes", "Delete all items; print how many those were."},
};

const struct options_table hf__table_truncate_options = {
    .name = "table truncate",
    .operands = "NAME",
    .about =
        "Delete all items of a table. The table itself stays, with its keys, indexes, stream, expiry "
        "and tags. A table with deletion protection is refused.\n\n"
        "Items are deleted one by one, so other programs may see some of them gone and others not, and "
        "items that are written meanwhile may stay. If the command is interrupted, run it again: it "
        "deletes what is left.",
    COMMAND_SPECS(truncate),
};

static enum hf_status table_truncate_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf__command_confirm_check(
        c, settings->yes,
        hf_scope_format(c->scope, "deletes all items of table '%s'", c->operands[0]).ptr);
}

/* ---- workers -------------------------------------------------------------------------------- */

struct truncation;

struct truncate_worker {
    struct truncation *all;
    struct hf_scope *scope; /* the worker's; others cancel it */
    pthread_t thread;
    bool started;
    int64_t segment;
    enum hf_status status;
};

struct truncation {
    struct hf_db *db;
    struct hf_str table;
    struct hf_item names; /* of the key, for the projection */
    struct hf_str projection;
    uint32_t timeout_ms;
    atomic_uint_fast64_t deleted;
    atomic_uint running;
    atomic_bool failed;
    struct truncate_worker workers[WORKERS];
};

static enum hf_status page_delete(struct truncate_worker *w, const struct hf_page *page)
{
    struct hf_write *writes = hf_scope_alloc(w->scope, (page->len + 1) * sizeof(*writes));

    if (!writes)
        return hf_scope_fail(w->scope, HF_NOMEM, "out of memory");
    for (size_t i = 0; i < page->len; i++)
        writes[i] = (struct hf_write){.table = w->all->table, .del = page->items[i]};
    TRY(hf_write_many(w->scope, w->all->db, writes, page->len, NULL, NULL));
    atomic_fetch_add(&w->all->deleted, page->len);
    return HF_OK;
}

static enum hf_status segment_delete(struct truncate_worker *w, struct hf_pages *pages)
{
    struct truncation *all = w->all;

    for (;;) {
        struct hf_scope_mark mark = hf_scope_mark(w->scope);
        struct hf_page page;

        hf_scope_timeout_ms(w->scope, all->timeout_ms);
        TRY(hf_pages_next(w->scope, pages, &page));
        if (!page.found)
            return HF_OK;
        hf_scope_timeout_ms(w->scope, all->timeout_ms);
        TRY(page_delete(w, &page));
        hf_scope_rewind(w->scope, mark);
        if (atomic_load(&all->failed))
            return HF_OK; /* the other one has the error */
    }
}

static void *worker_run(void *user)
{
    struct truncate_worker *w = user;
    struct truncation *all = w->all;
    struct hf__pending_sync pending = {.ticket = 0};
    struct hf_pages *pages = NULL;
    struct hf_scan scan = {.table = all->table,
                           .projection = all->projection,
                           .names = all->names,
                           .consistent = HF_YES,
                           .segment = w->segment ? w->segment : HF_ZERO,
                           .total_segments = WORKERS};

    hf__scope_set_pending_sync(w->scope, &pending);
    w->status = hf_pages_scan(w->scope, all->db, &scan, NULL, &pages);
    if (w->status == HF_OK)
        w->status = segment_delete(w, pages);
    hf__scope_set_pending_sync(w->scope, NULL);
    hf_pages_free(pages);
    if (w->status != HF_OK)
        atomic_store(&all->failed, true);
    atomic_fetch_sub(&all->running, 1);
    return NULL;
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* "#k0, #k1", as any name may be a reserved word. */
static enum hf_status projection_make(struct command_ctx *c,
                                      const struct hf_table_description *table,
                                      struct truncation *all)
{
    struct hf_attr attrs[KEY_PARTS] = {{.type = HF_TYPE_NONE}};

    assert(table->key_schema_len >= 1 && table->key_schema_len <= KEY_PARTS);
    attrs[0] = hf_attr_of(HF_STR("#k0"), HF_TYPE_S, table->key_schema[0].name, 0);
    if (table->key_schema_len > 1)
        attrs[1] = hf_attr_of(HF_STR("#k1"), HF_TYPE_S, table->key_schema[1].name, 0);
    all->names = hf_item_make(c->scope, attrs, table->key_schema_len);
    all->projection = table->key_schema_len > 1 ? HF_STR("#k0, #k1") : HF_STR("#k0");
    return hf_scope_built(c->scope);
}

static void workers_start(struct truncation *all)
{
    atomic_store(&all->running, WORKERS);
    for (size_t i = 0; i < WORKERS; i++) {
        struct truncate_worker *w = &all->workers[i];

        w->all = all;
        w->segment = (int64_t)i;
        w->scope = hf_scope_new(NULL);
        w->started = w->scope && pthread_create(&w->thread, NULL, worker_run, w) == 0;
        if (!w->started) {
            w->status = HF_NOMEM;
            atomic_store(&all->failed, true);
            atomic_fetch_sub(&all->running, 1);
        }
    }
}

static void progress_show(struct progress *progress, const struct truncation *all,
                          uint64_t expected, bool done)
{
    uint64_t deleted = atomic_load(&all->deleted);

    if (!hf__progress_due(progress, done))
        return;
    if (expected >= deleted && !done)
        hf__progress_print(progress, "deleted %llu of about %llu items, %.0f/s",
                           (unsigned long long)deleted, (unsigned long long)expected,
                           hf__progress_rate(progress, deleted));
    else
        hf__progress_print(progress, "deleted %llu items, %.0f/s", (unsigned long long)deleted,
                           hf__progress_rate(progress, deleted));
}

/* Wait for the workers. A signal or an error of one of them ends the others. */
static enum hf_status workers_join(struct command_ctx *c, struct truncation *all, uint64_t expected)
{
    struct progress progress;
    enum hf_status status = HF_OK;
    bool canceled = false;

    hf__progress_begin(&progress, c->cli, c->database->quiet, false);
    hf_scope_timeout_ms(c->scope, 0);
    while (atomic_load(&all->running)) {
        if (!canceled &&
            (hf_scope_sleep_ms(c->scope, LOOK_MS) != HF_OK || atomic_load(&all->failed))) {
            canceled = true;
            for (size_t i = 0; i < WORKERS; i++)
                if (all->workers[i].started)
                    hf_scope_cancel(all->workers[i].scope);
        }
        if (canceled) /* they end soon; the scope may be canceled, and cannot sleep */
            break;
        progress_show(&progress, all, expected, false);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        struct truncate_worker *w = &all->workers[i];

        if (w->started)
            pthread_join(w->thread, NULL);
        /* of several errors the one that canceled the others */
        if (w->status != HF_OK && (status == HF_OK || status == HF_CANCELED))
            status = w->scope ? hf_scope_fail_from(c->scope, w->status, w->scope) : w->status;
    }
    for (size_t i = 0; i < WORKERS; i++)
        hf_scope_free(all->workers[i].scope);
    if (atomic_load(&all->deleted))
        progress_show(&progress, all, expected, true);
    hf__progress_end(&progress);
    return status;
}

/* See that nothing is left, and that all of it is durable. */
static enum hf_status rest_count(struct command_ctx *c, const struct truncation *all, bool *empty)
{
    struct hf_scan scan = {.table = all->table, .consistent = HF_YES, .limit = 1};
    struct hf_scan_result result;

    hf_scope_timeout_ms(c->scope, all->timeout_ms);
    TRY(hf_scan(c->scope, c->db, &scan, &result));
    *empty = result.items_len == 0;
    return HF_OK;
}

static enum hf_status table_truncate(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct truncation all = {.db = c->db,
                             .table = hf__command_operand(c, 0),
                             .timeout_ms = (uint32_t)c->database->timeout_ms};
    const struct hf_table_description *table;
    enum hf_status status;
    bool empty = false;

    TRY(hf__cli_table_describe(c, all.table, &table));
    if (table->deletion_protection == HF_YES)
        return hf__command_fail(c, CLI_CONDITION,
                                "table '%.*s' is protected; 'holdfast table update %.*s "
                                "--no-protect' switches that off",
                                HF_FMT(all.table), HF_FMT(all.table));
    TRY(hf__command_confirm(
        c, settings->yes,
        hf_scope_format(c->scope, "Delete all items of table '%.*s', about %llu?",
                        HF_FMT(all.table),
                        (unsigned long long)hf__cli_table_count(table->item_count))));
    TRY(projection_make(c, table, &all));
    workers_start(&all);
    status = workers_join(c, &all, hf__cli_table_count(table->item_count));
    if (status != HF_OK) {
        if (!c->database->quiet)
            hf__cli_notice(c->cli, c->name, "%llu items were deleted; run the command again",
                           (unsigned long long)atomic_load(&all.deleted));
        return status;
    }
    TRY(rest_count(c, &all, &empty));
    if (!empty && !c->database->quiet)
        hf__cli_notice(c->cli, c->name, "the table is not empty: others are writing to it");
    return hf__command_count(c, "deleted", atomic_load(&all.deleted));
}

const struct command hf__table_truncate_command = {COMMAND_SETTINGS(struct settings),
                                                   .min = 1,
                                                   .max = 1,
                                                   .guarded = true,
                                                   .check = table_truncate_check,
                                                   .body = table_truncate};
