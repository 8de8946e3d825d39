/*
 * cli/top/cmd_top.c: what is a server doing now? `holdfast top`.
 *
 * Every interval the figures of the server are read (top_read.c) and compared with those before
 * (top_view.c). On a terminal they are a screen that is drawn again and again; elsewhere lines.
 *
 * Two samples live in two scopes, which take turns. When the server does not answer, the screen
 * keeps the last figures and says so; programs get an error.
 */
#include "cli/top/top.h"

#include <holdfast/client.h>
#include <holdfast/outbox.h>

#include "base/base.h"
#include "cli/frame/process/child.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    INTERVAL_LEAST_MS = 100,
    INTERVAL_MOST_MS = 60 * 60 * 1000,
    KEY_MS = 100, /* how soon a key, another size or a signal is seen */
    ERROR_MAX = 256,
    OUTBOX_READ_MAX = 10 * 1000 /* events that are read to count them */
};

struct settings {
    struct database_settings database;
    uint64_t interval_ms;
    uint64_t count;
    unsigned sort;
    bool once;
    struct option_list outboxes;
};

static const struct option_spec top_specs[] = {
    OPT_TIME("interval", interval_ms, INTERVAL_LEAST_MS, INTERVAL_MOST_MS,
             "Time between two samples; rates are those of this time.", .letter = 'i',
             .fallback = "1s"),
    OPT_FLAG("once", once, "Print the figures of one interval, and end."),
    OPT_NUMBER("count", count, 1, UINT32_MAX, "Print the figures of so many intervals, and end.",
               .letter = 'n'),
    OPT_CHOICE("sort", "rate p99 errors name", sort, "Order of operations and tables.",
               .fallback = "rate"),
    OPT_LIST("outbox", "TABLE", outboxes,
             "Also show how many events wait in this outbox, and for how long: the lag of its "
             "relays. They are read for that, up to 10,000 in each interval. May be repeated."),
    DATABASE_JSON(struct settings),
    DATABASE_SPECS_WITH(struct settings, "Time limit for each look at the server."),
};

static const struct option_example top_examples[] = {
    {"holdfast top", "The server at HOLDFAST_DB, or http://127.0.0.1:8000."},
    {"holdfast top --once --sort errors", "A look, and what fails most first."},
    {"holdfast top --outbox outbox --interval 5s", "With the lag of an outbox."},
    {"holdfast top --json --interval 10s | jq .requests_per_second", "For a program."},
};

const struct options_table hf__top_options = {
    .name = "top",
    .about =
        "Show what a holdfast server is doing: requests per second, their durations and errors by "
        "operation, connections, memory, the wait for the disk, the busiest tables and "
        "partitions, the largest items that were written, and the requests of the last minute as "
        "a line.\n\n"
        "On a terminal the screen is drawn again after each interval. Keys: q quits, space "
        "pauses, s changes the order, + and - change the interval. Elsewhere, or with --json, "
        "lines are printed.\n\n"
        "A server counts all requests to a table, and estimates those to a partition, by its last "
        "seconds. Durations of operations do not include the wait for the disk, which all writes "
        "that came together share.",
    COMMAND_SPECS(top),
    .notes =
        "In a pipe every line begins with the time and a word, and has tabs between its fields. "
        "total: requests/s, errors/s, connections, memory and disk in bytes, wait for the disk "
        "p50 and p99 in microseconds, syncs/s. operation: name, requests/s, errors/s, p50, p99. "
        "table: name, reads/s, writes/s, errors/s. partition: table, hash key, requests/s. "
        "largest: table, hash key, range key, bytes. outbox: table, events that wait, "
        "milliseconds that the oldest due one has waited, dead letters. A duration of -1 means "
        "that there were no requests. --json prints an object per interval and line. If the server "
        "does not show its tables, \"refused\" says why, and the lists are null.\n\n"
        "The figures come from GET /metrics and GET /_holdfast/top; with --credentials the second "
        "needs a key of the server. docs/operations.md describes both.",
};

/* ---- which database ------------------------------------------------------------------------- */

static enum hf_status top_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_str url = settings->database.url, path, rest, holder;

    c->without_db = true;
    if (settings->outboxes.len > TOP_OUTBOXES_MAX)
        return hf__command_fail(c, CLI_USAGE, "--outbox can be given %d times at most",
                                TOP_OUTBOXES_MAX);
    if (settings->once && settings->count)
        return hf__command_fail(c, CLI_USAGE, "give --once or --count, not both");
    if (str_after(url, HF_STR("http://"), &rest) || str_after(url, HF_STR("https://"), &rest))
        return HF_OK;
    if (str_after(url, HF_STR("dynamodb:"), &rest))
        return hf__command_fail(c, CLI_USAGE,
                                "Amazon DynamoDB does not offer these figures: use CloudWatch, or "
                                "name a holdfast server, --db http://HOST:PORT");
    if (!str_after(url, HF_STR("embedded:"), &path))
        return hf__command_fail(c, CLI_USAGE,
                                "'%.*s' is not the URL of a holdfast server, http://HOST:PORT",
                                HF_FMT(url));
    path = hf_scope_copy(c->scope, path);
    holder = path.ptr ? hf__database_holder(c->scope, path.ptr) : (struct hf_str){0};
    if (holder.ptr)
        return hf__command_fail(c, CLI_USAGE,
                                "top needs a server, and %.*s is a directory; it is open in %.*s",
                                HF_FMT(path), HF_FMT(holder));
    return hf__command_fail(c, CLI_USAGE,
                            "top needs a server, and %.*s is a directory: run 'holdfast serve "
                            "--db-path %.*s', then 'holdfast top --db http://127.0.0.1:8000'",
                            HF_FMT(path), HF_FMT(path));
}

/* ---- samples -------------------------------------------------------------------------------- */

struct top {
    struct command_ctx *c;
    struct settings *settings;
    struct hf_db *db; /* of the outboxes; NULL: there are none */
    struct hf_outbox *outboxes[TOP_OUTBOXES_MAX];
    struct hf_scope *scopes[2];
    struct top_sample samples[2];
    size_t newest; /* of the two */
    struct top_view view;
    struct top_look look;
    char error[ERROR_MAX];
};

static bool was_stopped(const struct top *top)
{
    return hf__guard_signal(top->c->guard) != 0;
}

static enum hf_status outboxes_open(struct top *top)
{
    const struct option_list *names = &top->settings->outboxes;
    struct hf_scope *s = top->c->scope;

    if (!names->len)
        return HF_OK;
    hf_scope_timeout_ms(s, (uint32_t)top->settings->database.timeout_ms);
    TRY(hf_connect(s, hf__database_url(s, &top->settings->database), NULL, &top->db));
    for (size_t i = 0; i < names->len; i++)
        TRY(hf_outbox_open(s, top->db,
                           HF_OPTIONS(hf_outbox_options, .table = names->values[i],
                                      .no_create = true),
                           &top->outboxes[i]));
    hf_scope_timeout_ms(s, 0);
    return HF_OK;
}

static enum hf_status outboxes_read(struct top *top, struct hf_scope *s, struct top_sample *sample)
{
    const struct option_list *names = &top->settings->outboxes;

    for (size_t i = 0; i < names->len; i++) {
        struct hf_outbox_stats stats;

        TRY(hf_outbox_stats(s, top->outboxes[i], OUTBOX_READ_MAX, &stats));
        assert(sample->outboxes_len < TOP_OUTBOXES_MAX);
        sample->outboxes[sample->outboxes_len++] =
            (struct top_outbox){.name = names->values[i],
                                .waiting = stats.pending,
                                .failed = stats.failed,
                                .oldest_due_ms = stats.oldest_due_ms,
                                .whole = stats.whole};
    }
    return HF_OK;
}

static void outboxes_close(struct top *top)
{
    for (size_t i = 0; i < TOP_OUTBOXES_MAX; i++)
        hf_outbox_close(top->outboxes[i]);
    hf_db_close(top->db);
}

/* Read the next sample. On failure the one before stays the newest. */
static enum hf_status sample_take(struct top *top)
{
    size_t at = 1 - top->newest;
    enum hf_status status;

    hf_scope_reset(top->scopes[at]);
    hf__scope_follow(top->scopes[at], top->c->scope); /* a signal ends the request */
    status = hf__top_read(top->scopes[at], &top->settings->database, &top->samples[at]);
    if (status == HF_OK)
        status = outboxes_read(top, top->scopes[at], &top->samples[at]);
    if (status != HF_OK) {
        snprintf(top->error, sizeof(top->error), "%s", hf_scope_error_text(top->scopes[at]));
        top->look.error = hf_str_from(top->error);
        return hf_scope_fail_from(top->c->scope, status, top->scopes[at]);
    }
    top->newest = at;
    top->look.error = (struct hf_str){0};
    return HF_OK;
}

static void view_make(struct top *top)
{
    hf__top_view_make(&top->view, &top->samples[1 - top->newest], &top->samples[top->newest],
                      top->look.sort);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static enum hf_status lines_run(struct top *top)
{
    struct cli *cli = top->c->cli;
    uint64_t left = top->settings->once ? 1 : top->settings->count;
    bool forever = left == 0, told = cli->json || cli->terminal; /* these show a refusal */

    top->look.columns = cli->columns ? cli->columns : 80;
    for (; forever || left > 0; left -= !forever) {
        TRY(hf_scope_sleep_ms(top->c->scope, (uint32_t)top->settings->interval_ms));
        TRY(sample_take(top));
        view_make(top);
        if (top->view.sample->refusal.ptr && !told)
            hf__cli_notice(cli, top->c->name, "no tables, partitions and largest items: %.*s",
                           HF_FMT(top->view.sample->refusal));
        told = told || top->view.sample->refusal.ptr;
        if (cli->json)
            hf__top_print_json(cli->out, cli, &top->view);
        else if (cli->terminal)
            hf__top_print(cli->out, top->scopes[top->newest], &top->view, &top->look);
        else
            hf__top_print_lines(cli->out, cli, &top->view);
        if (fflush(cli->out) != 0)
            return hf__command_fail(top->c, CLI_FAILED, "cannot write to %s",
                                    hf__cli_out_name(cli));
    }
    return HF_OK;
}

/* ---- the screen ----------------------------------------------------------------------------- */

static enum hf_status screen_draw(struct top *top)
{
    FILE *out = top->c->cli->out;

    hf__top_screen_size(&top->look.columns, &top->look.rows);
    fputs("\033[H", out);
    hf__top_print(out, top->scopes[top->newest], &top->view, &top->look);
    return fflush(out) == 0 ? HF_OK : HF_IO;
}

/* False: it is the end. */
static bool key_handle(struct top *top, char key)
{
    uint64_t *interval = &top->look.interval_ms;

    switch (key) {
    case 'q':
    case 'Q':
        return false;
    case ' ':
    case 'p':
        top->look.paused = !top->look.paused;
        break;
    case 's':
        top->look.sort = (enum top_sort)((top->look.sort + 1) % TOP_SORTS);
        break;
    case '+':
        *interval = *interval * 2 <= INTERVAL_MOST_MS ? *interval * 2 : INTERVAL_MOST_MS;
        break;
    case '-':
        *interval = *interval / 2 >= INTERVAL_LEAST_MS ? *interval / 2 : INTERVAL_LEAST_MS;
        break;
    default:
        break;
    }
    return true;
}

static uint64_t now_ms(const struct top *top)
{
    const struct hf_env *env = hf_scope_env(top->c->scope);

    return (uint64_t)(env->elapsed_us(env->user) / 1000);
}

/* Wait for the next sample; keys and other sizes are answered at once. False: it is the end. */
static bool screen_wait(struct top *top, uint64_t since_ms)
{
    for (;;) {
        uint64_t now = now_ms(top), due = since_ms + top->look.interval_ms;
        size_t columns, rows;
        char key;

        if (was_stopped(top))
            return false;
        if (!top->look.paused && now >= due)
            return true;
        key =
            hf__top_screen_key(!top->look.paused && due - now < KEY_MS ? (int)(due - now) : KEY_MS);
        hf__top_screen_size(&columns, &rows);
        if (key && !key_handle(top, key))
            return false;
        if (key == 's' && !top->look.error.ptr) {
            top->view.history_len -= top->view.history_len > 0; /* the same interval once more */
            view_make(top);
        }
        if ((key || columns != top->look.columns || rows != top->look.rows) &&
            screen_draw(top) != HF_OK)
            return false;
    }
}

static enum hf_status screen_run(struct top *top)
{
    enum hf_status status = HF_OK;

    top->look.keys = top->look.clears = true;
    view_make(top);
    top->view.history_len = 0; /* there was no interval yet */
    while (status == HF_OK) {
        uint64_t began = now_ms(top);

        status = screen_draw(top);
        if (status != HF_OK || !screen_wait(top, began))
            break;
        if (sample_take(top) == HF_OK)
            view_make(top);
        hf_scope_ok(top->c->scope);
    }
    return status;
}

/* ---- the command ---------------------------------------------------------------------------- */

/* Does the terminal show UTF-8? */
static bool is_utf8(const struct cli *cli)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < COMMAND_LEN(names); i++) {
        const char *value = cli->env(names[i]);

        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8");
    }
    return false;
}

static enum hf_status top_run(struct top *top)
{
    struct cli *cli = top->c->cli;
    enum hf_status status;
    bool screen = cli->terminal && !cli->json && !top->settings->once && !top->settings->count;

    TRY(sample_take(top));
    if (!screen || isatty(STDIN_FILENO) != 1 || !hf__top_screen_begin())
        return lines_run(top);
    top->samples[1 - top->newest] = top->samples[top->newest];
    status = screen_run(top);
    hf__top_screen_end();
    return status;
}

static enum hf_status top_body(struct command_ctx *c)
{
    struct top *top = calloc(1, sizeof(*top));
    struct settings *settings = c->settings;
    enum hf_status status = HF_NOMEM;
    int came;

    if (!top)
        return HF_NOMEM;
    *top = (struct top){.c = c,
                        .settings = settings,
                        .look = {.url = settings->database.url,
                                 .interval_ms = settings->interval_ms,
                                 .sort = (enum top_sort)settings->sort,
                                 .utf8 = is_utf8(c->cli)}};
    for (size_t i = 0; i < 2; i++)
        top->scopes[i] = hf_scope_new(hf_scope_env(c->scope));
    if (top->scopes[0] && top->scopes[1])
        status = outboxes_open(top);
    if (status == HF_OK)
        status = top_run(top);
    outboxes_close(top);
    for (size_t i = 0; i < 2; i++)
        hf_scope_free(top->scopes[i]);
    free(top);
    came = hf__guard_signal(c->guard);
    if (came)
        return hf__command_end(c, CLI_SIGNAL + came);
    return status;
}

const struct command hf__top_command = {COMMAND_SETTINGS(struct settings), .guarded = true,
                                        .check = top_check, .body = top_body};
