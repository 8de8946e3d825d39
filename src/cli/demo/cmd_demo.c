/*
 * cli/demo/cmd_demo.c: `holdfast demo`: an order service for a minute, on a database of its own.
 *
 *     choose     a directory: a new one here, or that of --db, which is new or an earlier demo's
 *     open       tables and patterns: demo_shop.c
 *     run        until all orders are placed, or a signal: the view, demo_view.c
 *     finish     what is left is delivered and projected: demo_work.c
 *     check      what always holds: demo_check.c
 *     report     what there is, and commands to look at it
 *
 * The scope of the command is canceled by a signal, so that the work is done on one of its own: a
 * signal ends the first part, and the others follow as always.
 */
#include "base/base.h"
#include "cli/demo/demo.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/child.h"

#include <holdfast/engine.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    QUICK_S = 3,
    NIGHT_S = 10, /* a night every so many seconds */
    NIGHTS_MIN = 2,
    NAMES_MAX = 99,  /* directories holdfast-demo, holdfast-demo-2 and so on */
    LIMIT_SHARE = 9, /* a customer may place one order of so many */
    SHOW_MS = 200,
    FINISH_MS = 30000
};

#define PLACE "holdfast-demo"

struct settings {
    struct database_settings database; /* its output alone is used */
    struct hf_str db;
    uint64_t seconds;
    bool quick;
    uint64_t seed;
};

static const struct option_spec demo_specs[] = {
    OPT_NUMBER("seconds", seconds, 1, DEMO_SECONDS_MAX, "How long orders are placed.",
               .letter = 's', .fallback = "60", .heading = "Demo"),
    OPT_FLAG("quick", quick, "Three seconds instead of a minute."),
    OPT_NUMBER("seed", seed, 0, UINT64_MAX,
               "The same seed and time give the same orders, refusals, payments and dead letters.",
               .fallback = "1"),
    OPT_TEXT("db", "DIR", db,
             "Directory of the database, also as embedded:DIR: a new one, or one that an earlier "
             "demo made, whose tables are deleted first. By default a new one here, " PLACE "."),
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
};

static const struct option_example demo_examples[] = {
    {"holdfast demo", "A minute. Then look at the data with the commands that it prints."},
    {"holdfast demo --quick --seed 7 --json | jq .checks", "What was checked, for a script."},
};

const struct options_table hf__demo_options = {
    .name = "demo",
    .about =
        "Run a small order service on a database in a directory, and show what each part does. "
        "Orders are placed in transactions, with events in an outbox and in an event store. A bus "
        "delivers the events: payments are made once, some shipments fail and become dead "
        "letters. A projection adds up the sales. Two workers compete for the lock of a nightly "
        "job. A limit refuses orders of a customer who places too many.\n"
        "\n"
        "At the end the demo reads the database and checks that nothing was lost, doubled or out "
        "of order. The data stays; commands that show it are printed.",
    COMMAND_SPECS(demo),
    .notes = "Ctrl-C ends it early and in order: what was placed is delivered and checked. The "
             "exit code is 0 if all checks hold, also after Ctrl-C, and 1 otherwise.",
};

/* ---- the directory -------------------------------------------------------------------------- */

/* What is at a path. */
enum place { PLACE_FREE, PLACE_DIRECTORY, PLACE_OTHER };

static enum place place_look(const char *path)
{
    struct stat found;

    if (stat(path, &found) != 0)
        return errno == ENOENT || errno == ENOTDIR ? PLACE_FREE : PLACE_OTHER;
    return S_ISDIR(found.st_mode) ? PLACE_DIRECTORY : PLACE_OTHER;
}

/* A name here that nothing has; absent: they all have something. */
static struct hf_str place_new(struct hf_scope *s)
{
    for (int i = 1; i <= NAMES_MAX; i++) {
        struct hf_str path = i == 1 ? HF_STR(PLACE) : hf_scope_format(s, PLACE "-%d", i);

        if (path.ptr && place_look(path.ptr) == PLACE_FREE)
            return path;
    }
    return hf_str_of(NULL, 0);
}

/* The directory that --db names. */
static enum hf_status place_named(struct command_ctx *c, struct hf_str db, struct hf_str *path)
{
    const struct hf_str scheme = HF_STR("embedded:");

    if (db.len > scheme.len && memcmp(db.ptr, scheme.ptr, scheme.len) == 0)
        db = hf_str_of(db.ptr + scheme.len, db.len - scheme.len);
    if (memmem(db.ptr, db.len, "://", 3) || hf_str_equal(db, HF_STR("memory:")) ||
        hf_str_equal(db, scheme) || (db.len && db.ptr[0] == '@'))
        return hf__command_fail(c, CLI_USAGE,
                                "--db %.*s: the demo needs a directory of its own: --db DIR",
                                HF_FMT(db));
    *path = db;
    return HF_OK;
}

/* Show the error of opening that directory. */
static enum hf_status open_failed(struct command_ctx *c, const char *path)
{
    if (hf_scope_error(c->scope)->status == HF_LOCKED)
        return hf__command_shown(c, hf__database_taken(c->cli, c->name, path));
    hf__command_failed(c);
    return HF_INVALID;
}

/* Was the making of a database there interrupted? Then there is nothing in it, and the next open finishes it. */
static bool is_unfinished(struct hf_scope *s, struct hf_str path)
{
    struct hf_str done = hf_scope_format(s, "%.*s/HOLDFAST", HF_FMT(path));
    struct hf_str begun = hf_scope_format(s, "%.*s/HOLDFAST.new", HF_FMT(path));

    return done.ptr && begun.ptr && access(begun.ptr, F_OK) == 0 && access(done.ptr, F_OK) != 0;
}

/* Is the database at the path an earlier demo's? It is only read. `fresh`: there is none at all. */
static enum hf_status place_check(struct command_ctx *c, struct hf_str path, struct hf_str url,
                                  bool *fresh)
{
    struct hf_describe_table_result described;
    enum place place = place_look(path.ptr);
    enum hf_status status;
    struct hf_db *db;

    *fresh = place == PLACE_FREE || is_unfinished(c->scope, path);
    if (*fresh)
        return HF_OK;
    status = hf_open(c->scope, url, HF_OPTIONS(hf_engine_options, .read_only = true), &db);
    if (status == HF_NOT_FOUND) { /* an empty directory */
        *fresh = true;
        return hf_scope_ok(c->scope);
    }
    if (status != HF_OK)
        return open_failed(c, path.ptr);
    status = hf_describe_table(c->scope, db, &(struct hf_describe_table){.table = DEMO_MARK},
                               &described);
    hf_db_close(db);
    if (status == HF_NOT_FOUND)
        return hf__command_fail(c, CLI_USAGE,
                                "%s has a database that no demo made; choose another directory",
                                path.ptr);
    return status;
}

static enum hf_status place_open(struct command_ctx *c, struct demo *demo, struct hf_str *path)
{
    const struct settings *settings = c->settings;
    struct hf_str url;
    bool fresh = true;

    if (settings->db.ptr) {
        TRY(place_named(c, settings->db, path));
    } else {
        *path = place_new(c->scope);
        if (!path->ptr)
            return hf__command_fail(c, CLI_FAILED,
                                    "there are %d directories " PLACE "-N here; delete some, or "
                                    "use --db DIR",
                                    (int)NAMES_MAX);
    }
    url = hf_scope_format(c->scope, "embedded:%.*s", HF_FMT(*path));
    if (!url.ptr)
        return HF_NOMEM;
    TRY(place_check(c, *path, url, &fresh));
    if (hf_open(c->scope, url, NULL, &demo->db) != HF_OK)
        return open_failed(c, path->ptr);
    return fresh ? HF_OK : hf__demo_erase(c->scope, demo->db);
}

/* ---- the end -------------------------------------------------------------------------------- */

static struct hf_str checks_json(struct hf_scope *s, const struct demo_result *result)
{
    struct hf_str text = HF_STR("{");

    for (size_t i = 0; i < DEMO_CHECKS; i++)
        text = hf_scope_format(s, "%.*s%s\"%s\":%s", HF_FMT(text), i ? "," : "", result->keys[i],
                               result->held[i] ? "true" : "false");
    return hf_scope_format(s, "%.*s}", HF_FMT(text));
}

static int report_json(struct command_ctx *c, struct demo *demo, struct hf_str path,
                       const struct demo_result *result, bool early)
{
    const struct settings *settings = c->settings;
    struct cli *cli = c->cli;
    const struct rows_field fields[] = {
        hf__rows_text("db", hf_scope_format(cli->scope, "embedded:%.*s", HF_FMT(path))),
        hf__rows_number(cli, "seed", settings->seed),
        hf__rows_number(cli, "seconds", demo->seconds),
        hf__rows_bool("ended_early", early),
        hf__rows_number(cli, "orders", result->orders),
        hf__rows_number(cli, "refused", atomic_load(&demo->refused)),
        hf__rows_number(cli, "revenue_cents", result->cents),
        hf__rows_number(cli, "events_delivered", result->published),
        hf__rows_number(cli, "dead_letters", result->dead_letters),
        hf__rows_number(cli, "pending", result->pending),
        hf__rows_number(cli, "payments", atomic_load(&demo->paid)),
        hf__rows_number(cli, "payments_repeated", atomic_load(&demo->paid_again)),
        hf__rows_number(cli, "nights", demo->night),
        hf__rows_bool("sound", result->all),
        {.name = "checks", .text = checks_json(cli->scope, result), .kind = ROWS_RAW}};

    return hf__rows_one(cli, &settings->database, fields, COMMAND_LEN(fields));
}

/* A word as a shell reads it: quoted if it has more than letters, digits and a few others. */
static struct hf_str shell_word(struct hf_scope *s, struct hf_str text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    struct hf_str word = HF_STR("");
    size_t odd = 0;

    for (size_t i = 0; i < text.len; i++)
        odd += !memchr(plain, text.ptr[i], sizeof(plain) - 1);
    if (odd == 0)
        return text;
    for (size_t i = 0; i < text.len && word.ptr; i++)
        word = text.ptr[i] == '\'' ? hf_scope_format(s, "%.*s'\\''", HF_FMT(word))
                                   : hf_scope_format(s, "%.*s%c", HF_FMT(word), text.ptr[i]);
    return hf_scope_format(s, "'%.*s'", HF_FMT(word));
}

/* Commands that show what is there. Each of them works: test/cli/demo_test.py runs them. */
static void report_commands(FILE *out, struct hf_str path, uint32_t limit)
{
    fprintf(out, "\nThe data is in %.*s. Look at it:\n\n", HF_FMT(path));
    fprintf(out, "    export HOLDFAST_DB=embedded:%.*s\n", HF_FMT(path));
    fputs("    holdfast table ls\n"
          "    holdfast query orders ann -n 3           # a customer's orders\n"
          "    holdfast sql \"SELECT * FROM sales\"       # the projection\n"
          "    holdfast outbox failed                   # dead letters, and why\n"
          "    holdfast outbox stats                    # pending, delivered, dead\n"
          "    holdfast events all --limit 5            # the first events of all orders\n"
          "    holdfast events subscription sales       # where the projection is\n"
          "    holdfast once ls --user ann              # her payments: each is done once\n"
          "    holdfast lock show nightly-report        # the fence\n"
          "    holdfast counter get orders revenue_cents\n"
          "    holdfast kv get -n shop delivery_fee\n",
          out);
    fprintf(out, "    holdfast limit peek orders/zoe --limit %u --window 10m\n", limit);
    fprintf(out, "    holdfast check %.*s\n", HF_FMT(path));
    fprintf(out, "    holdfast serve --db-path %.*s   # for AWS's SDKs and tools\n", HF_FMT(path));
}

static void report_text(struct command_ctx *c, struct demo *demo, struct hf_str path,
                        const struct demo_result *result)
{
    FILE *out = c->cli->out;

    fprintf(out,
            "\norders %llu, refused %llu; events delivered %llu, dead letters %llu; payments %llu, "
            "requested twice %llu\n",
            (unsigned long long)result->orders, (unsigned long long)atomic_load(&demo->refused),
            (unsigned long long)result->published, (unsigned long long)result->dead_letters,
            (unsigned long long)atomic_load(&demo->paid),
            (unsigned long long)atomic_load(&demo->paid_again));
    for (size_t i = 0; i < DEMO_CHECKS; i++)
        fprintf(out, "%s  %s\n", result->held[i] ? "holds " : "BROKEN", result->names[i]);
    report_commands(out, shell_word(c->cli->scope, path), demo->limit);
}

/* ---- running -------------------------------------------------------------------------------- */

/* Show it until the last order was placed, or until a signal. */
static bool demo_watch(struct command_ctx *c, struct hf_scope *s, struct demo *demo,
                       struct demo_view *view)
{
    bool early = false;

    while (!atomic_load(&demo->sold) && !early) {
        hf_scope_reset(s);
        hf__demo_view_show(view, s, demo, "Ctrl-C ends it");
        early = hf_scope_sleep_ms(c->scope, SHOW_MS) != HF_OK;
    }
    atomic_store(&demo->stop, early);
    hf_scope_reset(s);
    hf__demo_view_show(view, s, demo, early ? "ending in order" : "delivering the rest");
    return early;
}

static enum hf_status demo_run(struct command_ctx *c, struct hf_scope *s, struct demo *demo,
                               struct hf_str path)
{
    struct cli *cli = c->cli;
    bool lines = !c->database->json && !c->database->quiet;
    struct demo_result result;
    struct demo_view view;
    enum hf_status status;
    bool early = false;

    hf__demo_view_begin(&view, lines ? cli->out : NULL, cli->terminal && !hf__cli_is_dumb(cli),
                        cli->styled);
    status = hf__demo_start(s, demo);
    if (status == HF_OK)
        early = demo_watch(c, s, demo, &view);
    else
        hf__demo_failed(demo, "the demo could not be started", s);
    if (hf__demo_finish(s, demo, FINISH_MS) != HF_OK)
        hf__demo_failed(demo, "the demo could not be ended in order", s);
    if (status == HF_OK)
        hf__demo_view_show(&view, s, demo, "done");
    hf__demo_view_end(&view);
    if (demo->error[0])
        return hf__command_fail(c, CLI_FAILED, "%s", demo->error);
    hf_scope_reset(s);
    if (hf__demo_check(s, demo, &result) != HF_OK)
        return hf__command_fail(c, CLI_FAILED, "cannot read the data of the demo: %s",
                                hf_scope_error_text(s));
    if (c->database->json)
        c->ends = report_json(c, demo, path, &result, early);
    else if (!c->database->quiet)
        report_text(c, demo, path, &result);
    if (!result.all)
        return hf__command_fail(c, CLI_FAILED, "a check does not hold; please report it");
    return HF_OK;
}

static enum hf_status demo_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    c->without_db = true; /* the frame opens none: it is chosen here */
    if (settings->quick && hf__options_source(c->table, &c->options, "seconds") != OPTION_DEFAULT)
        return hf__command_fail(c, CLI_USAGE, "--quick and --seconds cannot be combined");
    if (settings->quick)
        settings->seconds = QUICK_S;
    return HF_OK;
}

static enum hf_status demo_body(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    uint32_t seconds = (uint32_t)settings->seconds;
    struct demo *demo = hf__scope_array(c->scope, 1, sizeof(*demo));
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str path = hf_str_of(NULL, 0);
    enum hf_status status = HF_NOMEM;

    if (!demo || !s)
        goto done;
    pthread_mutex_init(&demo->mutex, NULL);
    demo->seed = settings->seed;
    demo->seconds = seconds;
    demo->attempts = seconds * DEMO_RATE;
    demo->nights = seconds / NIGHT_S < NIGHTS_MIN ? NIGHTS_MIN : seconds / NIGHT_S;
    demo->limit = demo->attempts / LIMIT_SHARE;
    demo->tried = hf__scope_array(c->scope, demo->attempts + 1, 1);
    if (!demo->tried)
        goto done;
    status = place_open(c, demo, &path);
    if (status == HF_OK && hf__demo_open(s, demo) != HF_OK)
        status = hf__command_fail(c, CLI_FAILED, "%s", hf_scope_error_text(s));
    if (status == HF_OK)
        status = demo_run(c, s, demo, path);
    hf__demo_close(demo);
    hf_db_close(demo->db);
    pthread_mutex_destroy(&demo->mutex);
done:
    hf_scope_free(s);
    return status == HF_NOMEM ? hf__command_fail(c, CLI_FAILED, "out of memory") : status;
}

const struct command hf__demo_command = {COMMAND_SETTINGS(struct settings), .guarded = true,
                                         .ends_by_signal = true, .check = demo_check,
                                         .body = demo_body};
