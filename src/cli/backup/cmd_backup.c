/*
 * cli/backup/cmd_backup.c: `holdfast backup`: continuous backups made of a directory, looked at,
 * verified and restored. The library does the work (backup.h).
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/options/time_arg.h"
#include "cli/frame/output/progress.h"
#include "cli/frame/process/child.h"

#include <holdfast/copy.h>
#include <holdfast/engine.h>

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POLL_MS = 200, DAMAGES_SHOWN = 1000 };

#define MINUTE_MS (60 * 1000)
#define GIB (UINT64_C(1024) * 1024 * 1024)

struct settings {
    struct database_settings database;
    struct hf_str key_file;
    struct hf_str at;
    struct option_list tables;
    bool progress;
    bool once;
    uint64_t window_ms;
    uint64_t snapshot_ms;
    uint64_t retain_ms;
    uint64_t journal_bytes;
};

#define BACKUP_KEY                                                                                 \
    OPT_TEXT(                                                                                      \
        "key-file", "FILE", key_file,                                                              \
        "The key of an encrypted backup: 32 bytes or 64 hexadecimal digits, as 'openssl rand "     \
        "-hex 32' prints. Only its owner may be able to read the file.",                           \
        .letter = 'k')

#define BACKUP_OUTPUT                                                                              \
    DATABASE_JSON(struct settings), DATABASE_QUIET(struct settings),                               \
        OPT_FLAG("progress", progress,                                                             \
                 "Print progress on standard error, a line a second, also if it is no terminal."), \
        OPT_TIME("timeout", database.timeout_ms, 1, DATABASE_TIMEOUT_MAX_MS,                       \
                 "Time limit for opening; then the exit code is 7.", .fallback = "30s")

#define BACKUP_PLACE                                                                               \
    "dir:PATH or s3://BUCKET/PREFIX, with ?endpoint=URL, ?region=NAME, ?path_style=1 and "         \
    "?create=1 as in 'holdfast blobs'"

/* ---- arguments ------------------------------------------------------------------------------ */

static enum hf_status backup_check(struct command_ctx *c)
{
    c->without_db = true; /* a place is none */
    return HF_OK;
}

static const struct settings *settings_of(const struct command_ctx *c)
{
    return c->settings;
}

static enum hf_status place_open(struct command_ctx *c, struct hf_backup **backup)
{
    *backup = NULL;
    hf_scope_timeout_ms(c->scope, (uint32_t)c->database->timeout_ms);
    TRY(hf_backup_open(c->scope, hf__command_operand(c, 0),
                       HF_OPTIONS(hf_backup_open_options, .key_file = settings_of(c)->key_file),
                       backup));
    hf_scope_timeout_ms(c->scope, 0);
    return HF_OK;
}

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec backup_ls_specs[] = {
    OPT_FLAG("snapshots", once, "List its snapshots.", .letter = 's'),
    BACKUP_KEY,
    BACKUP_OUTPUT,
};

static const struct option_example backup_ls_examples[] = {
    {"holdfast backup ls s3://backups/shop", "What is there, and which moments can be restored."},
};

const struct options_table hf__backup_ls_options = {
    .name = "backup ls",
    .operands = "PLACE",
    .about =
        "Show what a backup has: its moments, its objects, what they take. PLACE is " BACKUP_PLACE
        ". Only the manifest and the list of objects are read.",
    COMMAND_SPECS(backup_ls),
    .notes =
        "'oldest' and 'newest' are the moments between which any can be restored with 'holdfast "
        "backup restore --at'.",
};

/* Times are shown in milliseconds: one that can be given to --at must not be before the first. */
static int64_t rounded_up(int64_t us)
{
    return (us + 999) / 1000 * 1000;
}

static enum hf_status list_snapshots(struct command_ctx *c, const struct hf_backup *backup)
{
    const struct hf_backup_snapshot_info *list;
    struct rows *rows;
    size_t len;

    TRY(hf_backup_snapshots(c->scope, backup, &list, &len));
    rows = hf__command_rows(c, "snapshots");
    for (size_t i = 0; i < len; i++)
        COMMAND_ROW(rows, hf__rows_time(c->cli, "time", rounded_up(list[i].time_us)),
                    hf__rows_number(c->cli, "change", list[i].change),
                    hf__rows_number(c->cli, "entries", list[i].entries),
                    hf__rows_number(c->cli, "parts", list[i].parts),
                    hf__rows_number(c->cli, "bytes", list[i].bytes));
    return HF_OK;
}

static enum hf_status backup_ls(struct command_ctx *c)
{
    struct hf_backup_info info;
    struct hf_backup *backup;
    enum hf_status status;

    TRY(place_open(c, &backup));
    hf_backup_info(backup, &info);
    if (settings_of(c)->once)
        status = list_snapshots(c, backup);
    else
        status = COMMAND_PRINT(c,
                               hf__rows_text("database",
                                             hf_scope_format(c->scope, "%016llx",
                                                             (unsigned long long)info.database)),
                               hf__rows_time(c->cli, "oldest", rounded_up(info.oldest_us)),
                               hf__rows_time(c->cli, "newest", info.newest_us),
                               hf__rows_number(c->cli, "snapshots", info.snapshots),
                               hf__rows_number(c->cli, "segments", info.segments),
                               hf__rows_number(c->cli, "objects", info.objects),
                               hf__rows_number(c->cli, "bytes", info.bytes),
                               hf__rows_number(c->cli, "epoch", info.epoch),
                               hf__rows_bool("closed", info.closed),
                               hf__rows_bool("encrypted", info.encrypted),
                               hf__rows_number(c->cli, "unneeded", info.unneeded));
    hf_backup_close(backup);
    return status;
}

COMMAND_OF(backup_ls, backup_ls, COMMAND_SETTINGS(struct settings), .check = backup_check, .min = 1,
           .max = 1);

/* ---- progress ------------------------------------------------------------------------------- */

struct job {
    struct command_ctx *c;
    struct progress progress;
    uint64_t shown; /* damages */
};

static enum hf_status progress_show(struct hf_scope *s, uint64_t bytes, uint64_t total, void *user)
{
    struct job *job = user;

    (void)s;
    if (hf__progress_due(&job->progress, false))
        hf__progress_print(&job->progress, "%.1f of %.1f MB, %.1f MB/s", (double)bytes / 1e6,
                           (double)(total > bytes ? total : bytes) / 1e6,
                           hf__progress_rate(&job->progress, bytes) / 1e6);
    return HF_OK;
}

static void damage_show(struct hf_str text, void *user)
{
    struct job *job = user;

    if (job->shown++ >= DAMAGES_SHOWN)
        return;
    hf__progress_end(&job->progress);
    hf__cli_notice(job->c->cli, job->c->name, "%.*s", HF_FMT(text));
}

/* ---- verify --------------------------------------------------------------------------------- */

static const struct option_spec backup_verify_specs[] = {
    BACKUP_KEY,
    BACKUP_OUTPUT,
};

static const struct option_example backup_verify_examples[] = {
    {"holdfast backup verify s3://backups/shop", "Once a week, for example."},
};

const struct options_table hf__backup_verify_options = {
    .name = "backup verify",
    .operands = "PLACE",
    .about =
        "Read all of a backup and verify it: every object is whole and where it belongs, no segment "
        "is missing, every snapshot has all its parts. PLACE is " BACKUP_PLACE ".",
    COMMAND_SPECS(backup_verify),
    .notes = "Every damage is named on standard error. Exit code 8: there is some.",
};

static enum hf_status backup_verify(struct command_ctx *c)
{
    struct job job = {.c = c};
    struct hf_backup_report report = {.objects = 0};
    struct hf_backup *backup;
    enum hf_status status;

    TRY(place_open(c, &backup));
    hf__progress_begin(&job.progress, c->cli, c->database->quiet, settings_of(c)->progress);
    status = hf_backup_verify(c->scope, backup,
                              HF_OPTIONS(hf_backup_verify_options, .progress = progress_show,
                                         .damage = damage_show, .user = &job),
                              &report);
    hf__progress_end(&job.progress);
    hf_backup_close(backup);
    TRY(status);
    if (c->database->quiet)
        return HF_OK;
    return COMMAND_PRINT(c, hf__rows_number(c->cli, "objects", report.objects),
                         hf__rows_number(c->cli, "bytes", report.bytes),
                         hf__rows_number(c->cli, "entries", report.entries),
                         hf__rows_number(c->cli, "changes", report.changes));
}

COMMAND_OF(backup_verify, backup_verify, COMMAND_SETTINGS(struct settings), .check = backup_check,
           .min = 1, .max = 1, .guarded = true);

/* ---- restore -------------------------------------------------------------------------------- */

static const struct option_spec backup_restore_specs[] = {
    OPT_TEXT(
        "at", "TIME", at,
        "The moment: 2026-11-15T09:30:00.25Z or 2026-11-15T10:30:00+01:00, or how long ago, such "
        "as 15m. By default the newest.",
        .letter = 'a'),
    OPT_LIST(
        "tables", "NAMES", tables,
        "Only these tables, with commas between them, copied into DST; may be repeated. DST may "
        "be any database then; the tables must not be there.",
        .letter = 't'),
    BACKUP_KEY,
    BACKUP_OUTPUT,
};

static const struct option_example backup_restore_examples[] = {
    {"holdfast backup restore s3://backups/shop shop.db", "The newest state, to a new directory."},
    {"holdfast backup restore s3://backups/shop old.db --at 15m", "As it was 15 minutes ago."},
    {"holdfast backup restore dir:/mnt/nas/shop http://127.0.0.1:8000 --tables orders \\\n"
     "      --at 2026-11-15T09:30:00Z",
     "One table, into a running server."},
};

const struct options_table hf__backup_restore_options = {
    .name = "backup restore",
    .operands = "PLACE DST",
    .about =
        "Make a database as it was at a moment. DST is a new directory; with --tables it may be any "
        "database: embedded:DIR, http://HOST:PORT, https://HOST:PORT, dynamodb://REGION, or @NAME. "
        "PLACE is " BACKUP_PLACE ".",
    COMMAND_SPECS(backup_restore),
    .notes =
        "Everything is verified before it is used, and the directory appears when it is complete. What "
        "was acknowledged by the moment is in it, but for the last tenth of a second before it; nothing "
        "that was begun later is.\n\nThe new database has an identity of its own: give it a place of "
        "its own for its backups. Large values that patterns keep as blobs are not part of a "
        "backup.\n\nExit codes: 3 the backup does not have that moment; 8 something is damaged. For "
        "others see holdfast(1).",
};

static enum hf_status restore_check(struct command_ctx *c)
{
    int64_t at_us;

    c->without_db = true;
    if (settings_of(c)->at.ptr && !hf__time_arg_parse(c->scope, settings_of(c)->at.ptr, &at_us))
        return hf__command_fail(c, CLI_USAGE,
                                "--at: '%s' is no time; write 2026-11-15T09:30:00Z, or 15m for 15 "
                                "minutes ago",
                                settings_of(c)->at.ptr);
    return HF_OK;
}

static enum hf_status restore_whole(struct command_ctx *c, struct hf_str path,
                                    struct hf_backup_report *report)
{
    struct hf_backup_restore_options o = {.size = sizeof(o), .progress = progress_show};
    struct job job = {.c = c};
    struct hf_backup *backup;
    enum hf_status status;

    TRY(place_open(c, &backup));
    if (settings_of(c)->at.ptr)
        (void)hf__time_arg_parse(c->scope, settings_of(c)->at.ptr, &o.at_us);
    hf__progress_begin(&job.progress, c->cli, c->database->quiet, settings_of(c)->progress);
    o.user = &job;
    status = hf_backup_restore(c->scope, backup, path, &o, report);
    hf__progress_end(&job.progress);
    hf_backup_close(backup);
    return status;
}

static enum hf_status restore_show(struct command_ctx *c, const struct hf_backup_report *report)
{
    if (c->database->quiet)
        return HF_OK;
    return COMMAND_PRINT(c, hf__rows_time(c->cli, "at", report->at_us),
                         hf__rows_number(c->cli, "objects", report->objects),
                         hf__rows_number(c->cli, "bytes", report->bytes),
                         hf__rows_number(c->cli, "entries", report->entries),
                         hf__rows_number(c->cli, "changes", report->changes));
}

/* "a,b" and "c" are three. */
static enum hf_status tables_split(struct command_ctx *c, struct hf_copy_options *o)
{
    const struct option_list *list = &settings_of(c)->tables;
    size_t room = list->len, len = 0;
    struct hf_str *names;

    for (size_t i = 0; i < list->len; i++)
        for (size_t j = 0; j < list->values[i].len; j++)
            room += list->values[i].ptr[j] == ',';
    names = hf_scope_alloc(c->scope, (room + 1) * sizeof(*names));
    if (!names)
        return hf_scope_fail(c->scope, HF_NOMEM, "out of memory");
    for (size_t i = 0; i < list->len; i++) {
        struct hf_str rest = list->values[i];

        while (rest.len) {
            struct hf_str name = str_cut(&rest, ',');

            if (name.len)
                names[len++] = name;
        }
    }
    o->tables = names;
    o->tables_len = len;
    return HF_OK;
}

static enum hf_status copy_tables(struct command_ctx *c, struct hf_db *from, struct hf_db *to,
                                  uint64_t *items)
{
    struct hf_copy_options o = {.size = sizeof(o)};
    struct hf_copy_progress progress;
    struct hf_copy_result result;
    struct hf_copy *copy = NULL;
    enum hf_status status;

    o.source_name = hf__command_operand(c, 0);
    o.restart = true; /* another copy of the same backup is none of this one */
    TRY(tables_split(c, &o));
    status = hf_copy_open(c->scope, from, to, &o, &copy);
    if (status == HF_OK)
        status = hf_copy_run(c->scope, copy);
    if (status == HF_OK)
        status = hf_copy_verify(c->scope, copy, NULL, NULL, &result);
    if (status == HF_OK && result.missing + result.different > 0)
        status = hf__command_fail(c, CLI_FAILED,
                                  "%llu items are not in the target as they were in the backup: "
                                  "somebody else writes there",
                                  (unsigned long long)(result.missing + result.different));
    if (status == HF_OK) {
        hf_copy_progress(copy, &progress);
        *items = progress.items;
    }
    hf_copy_close(copy);
    return status;
}

/* A directory of a store: files, and folders with files. */
static void remove_directory(const char *path)
{
    DIR *listing = opendir(path);
    struct dirent *entry;

    while (listing && (entry = readdir(listing))) {
        char *below = NULL;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            asprintf(&below, "%s/%s", path, entry->d_name) < 0)
            continue;
        if (unlink(below) != 0 && (errno == EISDIR || errno == EPERM))
            remove_directory(below);
        free(below);
    }
    if (listing)
        closedir(listing);
    rmdir(path);
}

static enum hf_status restore_tables(struct command_ctx *c)
{
    struct database_settings settings = {.url = hf__command_operand(c, 1),
                                         .timeout_ms = c->database->timeout_ms,
                                         .json = c->database->json,
                                         .quiet = c->database->quiet,
                                         .create = true};
    struct hf_str aside = hf_scope_format(c->scope, "holdfast-restore-%ld.db", (long)getpid());
    struct hf_backup_report report = {.objects = 0};
    struct hf_db *from = NULL, *to = NULL;
    enum hf_status status;
    uint64_t items = 0;

    if (!memchr(settings.url.ptr, ':', settings.url.len) && settings.url.ptr[0] != '@')
        settings.url = hf_scope_format(c->scope, "embedded:%.*s", HF_FMT(settings.url));
    if (!aside.ptr || !settings.url.ptr)
        return hf_scope_fail(c->scope, HF_NOMEM, "out of memory");
    if (!hf__database_resolve(c->cli, c->name, &settings, &c->ends) ||
        !hf__database_open(c->cli, c->name, &settings, &to, &c->ends))
        return hf__command_shown(c, c->ends);
    hf_scope_timeout_ms(c->scope, 0);
    status = restore_whole(c, aside, &report);
    if (status == HF_OK)
        status =
            hf_open(c->scope, hf_scope_format(c->scope, "embedded:%s", aside.ptr), NULL, &from);
    if (status == HF_OK)
        status = copy_tables(c, from, to, &items);
    hf_db_close(from);
    remove_directory(aside.ptr);
    hf__database_close(c->cli, to);
    TRY(status);
    if (c->database->quiet)
        return HF_OK;
    return COMMAND_PRINT(c, hf__rows_time(c->cli, "at", report.at_us),
                         hf__rows_number(c->cli, "items", items),
                         hf__rows_number(c->cli, "objects", report.objects),
                         hf__rows_number(c->cli, "bytes", report.bytes));
}

static enum hf_status backup_restore(struct command_ctx *c)
{
    struct hf_str path = hf__command_operand(c, 1), rest;
    struct hf_backup_report report = {.objects = 0};

    if (settings_of(c)->tables.len)
        return restore_tables(c);
    if (str_after(path, HF_STR("embedded:"), &rest))
        path = rest;
    else if (path.ptr[0] == '@' || memmem(path.ptr, path.len, "://", 3))
        return hf__command_fail(c, CLI_USAGE,
                                "'%s' is no directory: without --tables the whole database is "
                                "restored, to a new directory",
                                c->operands[1]);
    TRY(restore_whole(c, path, &report));
    return restore_show(c, &report);
}

COMMAND_OF(backup_restore, backup_restore, COMMAND_SETTINGS(struct settings),
           .check = restore_check, .min = 2, .max = 2, .guarded = true);

/* ---- run ------------------------------------------------------------------------------------ */

static const struct option_spec backup_run_specs[] = {
    OPT_FLAG("once", once, "End when everything was shipped.", .letter = '1'),
    OPT_TIME("window", window_ms, 50, 60 * MINUTE_MS,
             "How old a change may become before it is shipped.", .fallback = "1s",
             .heading = "Backup"),
    OPT_TIME("snapshot", snapshot_ms, 1000, 365 * (uint64_t)OPTION_DAY_MS,
             "How often a snapshot of everything is taken.", .fallback = "24h"),
    OPT_TIME("retain", retain_ms, 1000, 3650 * (uint64_t)OPTION_DAY_MS,
             "How far back a restore reaches.", .fallback = "168h"),
    OPT_SIZE(
        "journal", journal_bytes, 1024 * 1024, 1024 * GIB,
        "Journal that is kept while the place cannot be reached; beyond that a new snapshot is "
        "taken when it is back.",
        .fallback = "1GiB"),
    BACKUP_KEY,
    BACKUP_OUTPUT,
};

static const struct option_example backup_run_examples[] = {
    {"holdfast backup run shop.db dir:/mnt/nas/shop --once", "A backup of a directory."},
    {"holdfast serve --db-path shop.db --backup-to dir:/mnt/nas/shop",
     "The same, all the time, while it is served."},
};

const struct options_table hf__backup_run_options = {
    .name = "backup run",
    .operands = "DIR PLACE",
    .about =
        "Back up a data directory that no other process has open: with --once until everything is "
        "there, otherwise until a signal. A server that has the directory open does it by itself, with "
        "'holdfast serve --backup-to'. PLACE is " BACKUP_PLACE ".",
    COMMAND_SPECS(backup_run),
    .notes = "Each run goes on where the last one ended, if the directory was not changed by a "
             "process without --backup-to in between; then it begins with a new snapshot.",
};

static enum hf_status run_show(struct command_ctx *c, const struct hf_backup_health *health)
{
    if (c->database->quiet)
        return HF_OK;
    return COMMAND_PRINT(c,
                         hf__rows_text("state", hf_str_from(hf_backup_state_name(health->state))),
                         hf__rows_time(c->cli, "oldest", rounded_up(health->oldest_us)),
                         hf__rows_time(c->cli, "newest", health->newest_us),
                         hf__rows_number(c->cli, "snapshots", health->snapshots),
                         hf__rows_number(c->cli, "segments", health->segments),
                         hf__rows_number(c->cli, "objects_put", health->objects),
                         hf__rows_number(c->cli, "bytes_put", health->bytes),
                         hf__rows_number(c->cli, "requests", health->requests));
}

/* Until a signal; expiry and other maintenance of the database go on meanwhile. */
static enum hf_status run_on(struct command_ctx *c, struct hf_db *db)
{
    struct hf_backup_health health;

    for (;;) {
        enum hf_status status = hf_scope_sleep_ms(c->scope, POLL_MS);

        if (status == HF_CANCELED && hf__guard_signal(c->guard))
            return hf_scope_ok(c->scope);
        TRY(status);
        hf_backup_health(db, &health);
        if (health.state == HF_BACKUP_FENCED)
            return hf_scope_fail(c->scope, HF_LOST, "another process ships to the place now");
    }
}

static enum hf_status backup_run(struct command_ctx *c)
{
    const struct settings *settings = settings_of(c);
    struct hf_backup_options backup = {.size = sizeof(backup),
                                       .to = hf__command_operand(c, 1),
                                       .window_ms = (uint32_t)settings->window_ms,
                                       .snapshot_ms = settings->snapshot_ms,
                                       .retain_ms = settings->retain_ms,
                                       .journal_bytes = settings->journal_bytes,
                                       .key_file = settings->key_file};
    struct hf_str path = hf__command_operand(c, 0), rest;
    struct hf_backup_health health;
    enum hf_status status;
    struct hf_db *db;

    if (str_after(path, HF_STR("embedded:"), &rest))
        path = rest;
    path = hf_scope_format(c->scope, "embedded:%.*s", HF_FMT(path));
    if (!path.ptr)
        return hf_scope_fail(c->scope, HF_NOMEM, "out of memory");
    TRY(hf_open(c->scope, path, HF_OPTIONS(hf_engine_options, .no_create = true, .backup = &backup),
                &db));
    hf_scope_timeout_ms(c->scope, settings->once ? (uint32_t)c->database->timeout_ms : 0);
    status = hf_backup_wait(c->scope, db);
    if (status == HF_OK && !settings->once)
        status = run_on(c, db);
    hf_backup_health(db, &health);
    hf_db_close(db);
    TRY(status);
    return run_show(c, &health);
}

COMMAND_OF(backup_run, backup_run, COMMAND_SETTINGS(struct settings), .check = backup_check,
           .min = 2, .max = 2, .guarded = true);
