/*
 * cli/copy/cmd_copy.c: `holdfast copy` and `holdfast cutover`: tables from one database to another. The library
 * does the work (copy.h); this opens two databases, shows progress, and says what came out.
 *
 * The library blocks, so a thread of its own prints progress.
 */
#include "base/base.h"
#include "base/cond_monotonic.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"
#include "cli/frame/output/mask.h"
#include "cli/frame/output/progress.h"
#include "cli/frame/process/child.h"

#include <holdfast/copy.h>
#include <holdfast/fence.h>

#include <string.h>
#include <unistd.h>

enum { PROGRESS_MS = 200, DIFFERENCES_SHOWN = 1000 };

struct settings {
    struct database_settings database;
    struct option_list tables;
    struct option_list map;
    bool follow;
    bool until_caught_up;
    bool verify;
    bool verify_only;
    bool overwrite;
    bool restart;
    bool eventual;
    bool dry_run;
    bool progress;
    bool abort;
    bool no_verify;
    uint64_t segments;
    uint64_t items_per_s;
    uint64_t units_per_s;
    uint64_t settle_ms;
    uint64_t wait_ms;
};

#define COPY_TABLES                                                                                \
    OPT_LIST(                                                                                      \
        "tables", "NAMES", tables,                                                                 \
        "Only these tables of SRC, with commas between them; may be repeated. By default all.",    \
        .letter = 't'),                                                                            \
        OPT_LIST("map", "OLD=NEW", map,                                                            \
                 "The table OLD of SRC is called NEW in DST; may be repeated.", .letter = 'm')

#define COPY_SPEED                                                                                 \
    OPT_NUMBER("segments", segments, 1, HF_COPY_SEGMENTS_MAX,                                      \
               "Number of segments of a table that are read at once.", .fallback = "4",            \
               .heading = "Speed"),                                                                \
        OPT_NUMBER("max-items", items_per_s, 1, UINT32_MAX,                                        \
                   "Largest number of items per second."),                                         \
        OPT_NUMBER("max-units", units_per_s, 1, UINT32_MAX,                                        \
                   "Largest number of read units of SRC, and of write units of DST, per second.")

#define COPY_OUTPUT                                                                                \
    DATABASE_JSON(struct settings), DATABASE_QUIET(struct settings),                               \
        OPT_FLAG("progress", progress,                                                             \
                 "Print progress to standard error every second, even if it is not a terminal."),  \
        OPT_TIME("timeout", database.timeout_ms, 1, DATABASE_TIMEOUT_MAX_MS,                       \
                 "Time limit for opening the databases; then the exit code is 7.",                 \
                 .fallback = "30s")

static const struct option_spec copy_specs[] = {
    COPY_TABLES,
    OPT_FLAG("follow", follow,
             "Go on applying the changes that are made to SRC, until a signal. Tables without "
             "a stream get one.",
             .letter = 'f'),
    OPT_FLAG("until-caught-up", until_caught_up,
             "With --follow: end when all changes made so far are applied."),
    OPT_FLAG("verify", verify, "Compare all items afterwards, and print each one that differs."),
    OPT_FLAG("verify-only", verify_only, "Only compare."),
    OPT_FLAG("overwrite", overwrite,
             "Accept tables of DST that have items: those with the same key are replaced, the "
             "others stay."),
    OPT_FLAG("restart", restart, "Begin again: first remove from DST what this copy has written."),
    OPT_FLAG("eventual", eventual,
             "Read with eventually consistent reads, at half the price; not with --follow."),
    OPT_FLAG("dry-run", dry_run, "Copy nothing: print what would be copied.", .letter = 'n'),
    COPY_SPEED,
    COPY_OUTPUT,
};

static const struct option_example copy_examples[] = {
    {"holdfast copy embedded:shop.db http://127.0.0.1:8000",
     "Copy all tables of a directory to a server. After an interruption, run it again."},
    {"holdfast copy embedded:shop.db dynamodb://eu-central-1 --dry-run",
     "What would be copied, and how much it is."},
    {"holdfast copy http://127.0.0.1:8000 dynamodb://eu-central-1 --follow --max-units 500",
     "Copy while programs go on writing, and follow their changes until 'holdfast cutover'."},
    {"holdfast copy @live @test --tables orders --map orders=orders-test --verify",
     "Copy one table to another name, and compare."},
};

#define COPY_NOTES                                                                                 \
    "The progress of a copy is stored in the table holdfast.copy of DST. After a crash run the "   \
    "same command again.\n\nExit codes: 1 there are differences, or it failed; 2 a table of DST "  \
    "differs or has items. For others see holdfast(1)."

const struct options_table hf__copy_options = {
    .name = "copy",
    .operands = "SRC DST",
    .about =
        "Copy tables from the database SRC to the database DST: their definitions (keys, indexes, "
        "stream, expiry, tags, billing) and their items. Both are URLs as for --db: embedded:DIR, "
        "http://HOST:PORT, https://HOST:PORT, dynamodb://REGION, or @NAME.",
    COMMAND_SPECS(copy),
    .notes = COPY_NOTES,
};

static const struct option_spec cutover_specs[] = {
    COPY_TABLES,
    OPT_FLAG("abort", abort,
             "Undo a cutover: SRC can be written again. What was written to DST since then is "
             "not copied back."),
    OPT_TIME("settle", settle_ms, 1, OPTION_DAY_MS,
             "How long to wait until all writers know of the fence: more than twice the "
             "check_ms of programs that use hf_fenced_open(). 1ms is enough if SRC is a "
             "directory or a holdfast server, which know at once.",
             .fallback = "3s"),
    OPT_TIME("wait", wait_ms, 1, OPTION_DAY_MS,
             "Undo it if it takes longer, as SRC cannot be written meanwhile.", .fallback = "10m"),
    OPT_FLAG("no-verify", no_verify, "Do not compare the items."),
    COPY_SPEED,
    COPY_OUTPUT,
};

static const struct option_example cutover_examples[] = {
    {"holdfast cutover http://127.0.0.1:8000 dynamodb://eu-central-1",
     "Finish a copy with --follow, after you have stopped that."},
    {"holdfast cutover http://127.0.0.1:8000 dynamodb://eu-central-1 --abort",
     "Let SRC be written again."},
};

const struct options_table hf__cutover_options = {
    .name = "cutover",
    .operands = "SRC DST",
    .about = "Let DST take over from SRC, at the end of 'holdfast copy --follow': fence the "
             "tables of SRC, apply the remaining changes, compare all items, and enable expiry "
             "in DST. If "
             "anything fails, SRC can be written again.",
    COMMAND_SPECS(cutover),
    .notes =
        "A holdfast server refuses writes to a fenced table. So does a directory, to every program "
        "that opens it, and so do programs that use hf_fenced_open(). Stop all other "
        "programs first: the fence is an item of the table holdfast.fence, which they do "
        "not know.\n\nExit codes: 1 they differ, or it failed; 2 "
        "the tables are not ready. For others see holdfast(1).",
};

/* ---- arguments ------------------------------------------------------------------------------ */

static const char *equals_find(struct hf_str text)
{
    return text.len ? memchr(text.ptr, '=', text.len) : NULL;
}

static enum hf_status copy_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (settings->until_caught_up && !settings->follow)
        return hf__command_fail(c, CLI_USAGE, "--until-caught-up needs --follow");
    if (settings->eventual && settings->follow)
        return hf__command_fail(c, CLI_USAGE, "--eventual and --follow exclude each other");
    if (settings->restart && settings->verify_only)
        return hf__command_fail(c, CLI_USAGE, "--restart and --verify-only exclude each other");
    for (size_t i = 0; i < settings->map.len; i++) {
        const char *equals = equals_find(settings->map.values[i]);

        if (!equals || equals == settings->map.values[i].ptr || !equals[1])
            return hf__command_fail(c, CLI_USAGE, "--map: '%s' is not OLD=NEW",
                                    settings->map.values[i].ptr);
    }
    if (strcmp(c->operands[0], c->operands[1]) == 0 && !settings->map.len)
        return hf__command_fail(c, CLI_USAGE,
                                "'%s' and '%s' are the same database; name another one, or give "
                                "tables another name with --map",
                                c->operands[0], c->operands[1]);
    c->without_db = true; /* there are two */
    return HF_OK;
}

/* "a,b" and "c" are three. */
static enum hf_status names_split(struct command_ctx *c, const struct option_list *list,
                                  struct hf_copy_options *o)
{
    struct hf_str *names;
    size_t len = 0, room = list->len;

    for (size_t i = 0; i < list->len; i++)
        for (size_t j = 0; j < list->values[i].len; j++)
            room += list->values[i].ptr[j] == ',';
    names = hf_scope_alloc(c->scope, (room + 1) * sizeof(*names));
    if (!names)
        return hf_scope_fail(c->scope, HF_NOMEM, "out of memory");
    for (size_t i = 0; i < list->len; i++) {
        struct hf_str rest = list->values[i];

        while (rest.len) {
            const char *comma = memchr(rest.ptr, ',', rest.len);
            size_t part = comma ? (size_t)(comma - rest.ptr) : rest.len;

            if (part)
                names[len++] = hf_str_of(rest.ptr, part);
            rest = hf_str_of(rest.ptr + part + (comma != NULL), rest.len - part - (comma != NULL));
        }
    }
    o->tables = names;
    o->tables_len = len;
    return HF_OK;
}

static enum hf_status map_split(struct command_ctx *c, const struct option_list *list,
                                struct hf_copy_options *o)
{
    struct hf_copy_name *names = hf_scope_alloc(c->scope, (list->len + 1) * sizeof(*names));

    if (!names)
        return hf_scope_fail(c->scope, HF_NOMEM, "out of memory");
    for (size_t i = 0; i < list->len; i++) {
        const char *equals = equals_find(list->values[i]);

        names[i].source = hf_str_of(list->values[i].ptr, (size_t)(equals - list->values[i].ptr));
        names[i].target = hf_str_from(equals + 1);
    }
    o->names = names;
    o->names_len = list->len;
    return HF_OK;
}

/* ---- what is shown -------------------------------------------------------------------------- */

struct job {
    struct command_ctx *c;
    struct hf_db *source, *target;
    struct hf_copy *copy;
    struct hf_copy_result result;
    struct progress progress;
    uint64_t shown; /* differences */
    bool compared;
    bool stopped;         /* by a signal, in order */
    pthread_mutex_t lock; /* guards standard error and `ended` */
    pthread_cond_t wake;
    bool ended;
};

static void progress_print(struct job *job)
{
    struct hf_copy_progress now;

    hf_copy_progress(job->copy, &now);
    if (now.comparing) {
        hf__progress_print(&job->progress, "comparing: %llu items read",
                           (unsigned long long)now.compared);
    } else if (now.caught_up || now.changes) {
        hf__progress_print(&job->progress, "%llu changes, %s%llu conflicts",
                           (unsigned long long)now.changes,
                           now.caught_up ? "caught up, " : "catching up, ",
                           (unsigned long long)now.conflicts);
    } else {
        double rate = hf__progress_rate(&job->progress, now.items_now);
        uint64_t left = now.items_total > now.items ? now.items_total - now.items : 0;
        uint64_t left_s = rate > 0 ? (uint64_t)((double)left / rate) : 0;

        hf__progress_print(&job->progress,
                           "%s: %llu of about %llu items, %.0f/s, %.0f read units, %.0f write "
                           "units, %llum %02llus left",
                           now.table, (unsigned long long)now.items,
                           (unsigned long long)now.items_total, rate, now.read_units,
                           now.write_units, (unsigned long long)(left_s / 60),
                           (unsigned long long)(left_s % 60));
    }
}

static void *progress_run(void *user)
{
    struct job *job = user;

    pthread_mutex_lock(&job->lock);
    while (!job->ended) {
        cond_wait_ms(&job->wake, &job->lock, PROGRESS_MS);
        if (hf__progress_due(&job->progress, job->ended))
            progress_print(job);
    }
    pthread_mutex_unlock(&job->lock);
    return NULL;
}

static void note_show(struct hf_str table, struct hf_str text, void *user)
{
    struct job *job = user;

    if (job->c->database->quiet)
        return;
    pthread_mutex_lock(&job->lock);
    hf__progress_end(&job->progress);
    hf__cli_notice(job->c->cli, job->c->name, "table %.*s: %.*s", HF_FMT(table), HF_FMT(text));
    pthread_mutex_unlock(&job->lock);
}

static struct hf_str item_text(struct hf_scope *s, struct hf_item item)
{
    return item.ptr ? hf_item_to_json(s, item) : HF_STR("none");
}

static void conflict_show(struct hf_str table, struct hf_item key, struct hf_item theirs,
                          void *user)
{
    struct job *job = user;
    struct hf_scope *own = hf_scope_new(NULL);

    (void)theirs;
    if (!own)
        return;
    pthread_mutex_lock(&job->lock);
    hf__progress_end(&job->progress);
    hf__cli_notice(job->c->cli, job->c->name,
                   "table %.*s: the item %.*s of the target was written by somebody else; it stays "
                   "as it is",
                   HF_FMT(table), HF_FMT(item_text(own, key)));
    pthread_mutex_unlock(&job->lock);
    hf_scope_free(own);
}

/* One line each on standard output; with --json too, before the result. */
static enum hf_status difference_show(struct hf_scope *s, const struct hf_copy_difference *is,
                                      void *user)
{
    static const char *const kinds[] = {"", "missing", "extra", "different"};
    _Static_assert(ARRAY_LEN(kinds) == HF_COPY_DIFFERENT + 1, "every one has a name");
    struct job *job = user;
    FILE *out = job->c->database->json ? job->c->cli->err : job->c->cli->out;

    if (job->shown++ >= DIFFERENCES_SHOWN && job->c->cli->terminal)
        return HF_OK;
    pthread_mutex_lock(&job->lock);
    hf__progress_end(&job->progress);
    fprintf(out, "%s\t%.*s\t", kinds[is->kind], HF_FMT(is->table));
    hf__rows_print(out, item_text(s, is->key));
    fputc('\n', out);
    pthread_mutex_unlock(&job->lock);
    return HF_OK;
}

static const char *const state_words[] = {"",          "new",    "copying", "copied",
                                          "following", "fenced", "cut over"};

static enum hf_status plan_show(struct job *job)
{
    struct command_ctx *c = job->c;
    const struct hf_copy_table *tables;
    struct rows *rows;
    size_t len;

    TRY(hf_copy_tables(c->scope, job->copy, &tables, &len));
    rows = hf__command_rows(c, "tables");
    for (size_t i = 0; i < len; i++)
        COMMAND_ROW(rows, hf__rows_text("table", tables[i].source),
                    hf__rows_text("to", tables[i].target),
                    hf__rows_text("state", hf_str_from(state_words[tables[i].state])),
                    hf__rows_bool("create", tables[i].make),
                    hf__rows_number(c->cli, "items", tables[i].items),
                    hf__rows_number(c->cli, "bytes", tables[i].items_bytes),
                    hf__rows_number(c->cli, "copied", tables[i].copied),
                    hf__rows_number(c->cli, "indexes", tables[i].indexes),
                    hf__rows_bool("stream", tables[i].has_stream),
                    hf__rows_text("expiry", tables[i].ttl_attribute));
    return HF_OK;
}

static struct rows_field units_field(struct command_ctx *c, const char *name, double units)
{
    return (struct rows_field){.name = name,
                               .text = hf_scope_format(c->scope, "%.1f", units),
                               .kind = ROWS_RAW};
}

static enum hf_status result_show(struct job *job, bool compared)
{
    struct command_ctx *c = job->c;
    const struct hf_copy_result *r = &job->result;
    struct hf_copy_progress now;
    struct cli *cli = c->cli;

    if (c->database->quiet)
        return HF_OK;
    hf_copy_progress(job->copy, &now);
    if (!compared)
        return COMMAND_PRINT(c, hf__rows_number(cli, "tables", now.tables),
                             hf__rows_number(cli, "items", now.items),
                             hf__rows_number(cli, "bytes", now.bytes),
                             hf__rows_number(cli, "changes", now.changes),
                             hf__rows_number(cli, "conflicts", now.conflicts),
                             units_field(c, "read_units", now.read_units),
                             units_field(c, "write_units", now.write_units));
    return COMMAND_PRINT(c, hf__rows_number(cli, "tables", now.tables),
                         hf__rows_number(cli, "items", now.items),
                         hf__rows_number(cli, "changes", now.changes),
                         hf__rows_number(cli, "compared", r->source_items),
                         hf__rows_number(cli, "missing", r->missing),
                         hf__rows_number(cli, "extra", r->extra),
                         hf__rows_number(cli, "different", r->different),
                         hf__rows_number(cli, "moving", r->moving),
                         hf__rows_number(cli, "conflicts", r->conflicts),
                         units_field(c, "read_units", now.read_units),
                         units_field(c, "write_units", now.write_units));
}

/* ---- opening -------------------------------------------------------------------------------- */

static bool is_dry(const struct command_ctx *c)
{
    return ((const struct settings *)c->settings)->dry_run;
}

static bool is_missing_directory(struct hf_str url)
{
    static const char scheme[] = "embedded:";

    return url.len > sizeof(scheme) - 1 && memcmp(url.ptr, scheme, sizeof(scheme) - 1) == 0 &&
           access(url.ptr + sizeof(scheme) - 1, F_OK) != 0;
}

static bool side_open(struct command_ctx *c, size_t operand, bool create, bool read_only,
                      struct hf_db **db)
{
    struct database_settings settings = {.url = hf__command_operand(c, operand),
                                         .timeout_ms = c->database->timeout_ms,
                                         .json = c->database->json,
                                         .quiet = c->database->quiet,
                                         .create = create,
                                         .read_only = read_only};

    if (is_dry(c) && operand == 1 && is_missing_directory(settings.url))
        settings.url = HF_STR("memory:"); /* as empty as it is */
    if (hf__database_resolve(c->cli, c->name, &settings, &c->ends) &&
        hf__database_open(c->cli, c->name, &settings, db, &c->ends))
        return true;
    return false;
}

/* Directories have no other writers than us; what reaches them through us is fenced, too. */
static enum hf_status sides_open(struct job *job, bool reads_only)
{
    struct command_ctx *c = job->c;
    const struct settings *settings = c->settings;

    if (!side_open(c, 0, false, reads_only, &job->source))
        return HF_INVALID;
    if (strcmp(c->operands[0], c->operands[1]) == 0) {
        job->target = job->source;
        return HF_OK;
    }
    return side_open(c, 1, !settings->dry_run && !settings->verify_only, false, &job->target)
               ? HF_OK
               : HF_INVALID;
}

static struct hf_copy_options job_options(struct job *job)
{
    const struct settings *settings = job->c->settings;
    struct hf_copy_options o = {.size = sizeof(o),
                                .segments = (uint32_t)settings->segments,
                                .items_per_s = settings->items_per_s,
                                .units_per_s = settings->units_per_s,
                                .follow = settings->follow,
                                .overwrite = settings->overwrite || settings->verify_only,
                                .restart = settings->restart,
                                .eventual = settings->eventual,
                                .on_note = note_show,
                                .on_conflict = conflict_show,
                                .user = job};

    o.source_name = hf__cli_mask(job->c->scope, hf__command_operand(job->c, 0));
    o.target_name = hf__cli_mask(job->c->scope, hf__command_operand(job->c, 1));
    return o;
}

typedef enum hf_status job_fn(struct job *job);

/* Open all, do it while progress is shown, close all. */
static enum hf_status job_run(struct command_ctx *c, bool reads_only, bool follow, job_fn *work,
                              job_fn *show)
{
    const struct settings *settings = c->settings;
    struct job job = {.c = c};
    struct hf_copy_options o = job_options(&job);
    enum hf_status status = sides_open(&job, reads_only);
    pthread_t thread;
    bool started = false;

    pthread_mutex_init(&job.lock, NULL);
    cond_monotonic_init(&job.wake);
    o.follow = follow;
    if (status != HF_OK)
        status = hf__command_shown(c, c->ends);
    if (status == HF_OK)
        status = names_split(c, &settings->tables, &o);
    if (status == HF_OK)
        status = map_split(c, &settings->map, &o);
    hf_scope_timeout_ms(c->scope, 0);
    if (status == HF_OK)
        status = hf_copy_open(c->scope, job.source, job.target, &o, &job.copy);
    if (status == HF_OK) {
        hf__progress_begin(&job.progress, c->cli, c->database->quiet, settings->progress);
        started = job.progress.kind != PROGRESS_HIDDEN &&
                  pthread_create(&thread, NULL, progress_run, &job) == 0;
        status = work(&job);
        pthread_mutex_lock(&job.lock);
        job.ended = true;
        pthread_cond_broadcast(&job.wake);
        pthread_mutex_unlock(&job.lock);
        if (started)
            pthread_join(thread, NULL);
        hf__progress_end(&job.progress);
        if (status == HF_OK)
            status = show(&job);
    }
    hf_copy_close(job.copy);
    if (job.target != job.source)
        hf__database_close(c->cli, job.target);
    hf__database_close(c->cli, job.source);
    pthread_cond_destroy(&job.wake);
    pthread_mutex_destroy(&job.lock);
    return status;
}

/* ---- copy ----------------------------------------------------------------------------------- */

/* A signal ends following in order: what was applied is stored. */
static enum hf_status job_follow(struct job *job)
{
    const struct settings *settings = job->c->settings;
    enum hf_status status = hf_copy_follow(job->c->scope, job->copy, settings->until_caught_up);

    if (status == HF_CANCELED && hf__guard_signal(job->c->guard)) {
        job->stopped = true;
        return hf_scope_ok(job->c->scope);
    }
    return status;
}

static enum hf_status copy_work(struct job *job)
{
    const struct settings *settings = job->c->settings;
    struct hf_scope *s = job->c->scope;

    if (settings->dry_run)
        return HF_OK;
    if (!settings->verify_only) {
        TRY(hf_copy_run(s, job->copy));
        if (settings->follow)
            TRY(job_follow(job));
    }
    if (job->stopped || (!settings->verify && !settings->verify_only))
        return HF_OK;
    job->compared = true;
    return hf_copy_verify(s, job->copy, difference_show, job, &job->result);
}

static enum hf_status copy_show(struct job *job)
{
    const struct settings *settings = job->c->settings;
    const struct hf_copy_result *r = &job->result;

    if (settings->dry_run)
        return plan_show(job);
    TRY(result_show(job, job->compared));
    if (r->missing || r->extra || r->different || r->moving)
        return hf__command_end(job->c, CLI_FAILED);
    return HF_OK;
}

static enum hf_status copy_body(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    bool reads_only = !settings->follow || settings->dry_run || settings->verify_only;

    return job_run(c, reads_only, settings->follow, copy_work, copy_show);
}

const struct command hf__copy_command = {COMMAND_SETTINGS(struct settings),
                                         .min = 2,
                                         .max = 2,
                                         .guarded = true,
                                         .check = copy_check,
                                         .body = copy_body};

/* ---- cutover -------------------------------------------------------------------------------- */

static enum hf_status cutover_work(struct job *job)
{
    const struct settings *settings = job->c->settings;
    struct hf_copy_cutover_options o = {.size = sizeof(o),
                                        .settle_ms = (uint32_t)settings->settle_ms,
                                        .wait_ms = (uint32_t)settings->wait_ms,
                                        .unverified = settings->no_verify,
                                        .difference = difference_show,
                                        .user = job};

    if (settings->abort)
        return hf_copy_abort(job->c->scope, job->copy);
    job->compared = true;
    return hf_copy_cutover(job->c->scope, job->copy, &o, &job->result);
}

static enum hf_status cutover_show(struct job *job)
{
    const struct settings *settings = job->c->settings;

    if (!settings->abort)
        return result_show(job, true);
    if (job->c->database->quiet)
        return HF_OK;
    return COMMAND_PRINT(job->c, hf__rows_bool("fenced", false));
}

static enum hf_status cutover_body(struct command_ctx *c)
{
    return job_run(c, false, true, cutover_work, cutover_show);
}

const struct command hf__cutover_command = {COMMAND_SETTINGS(struct settings),
                                            .min = 2,
                                            .max = 2,
                                            .guarded = true,
                                            .check = copy_check,
                                            .body = cutover_body};
