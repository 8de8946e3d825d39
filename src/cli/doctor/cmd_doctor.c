/*
 * cli/doctor/cmd_doctor.c: what is wrong here, and what to do about it? `holdfast doctor`.
 *
 * It runs when something does not work, so it needs nothing to work: the frame opens no database,
 * and every check is by itself. The checks are in groups, a file each:
 *
 *     doctor_machine.c     versions, limits, clock
 *     doctor_variables.c   environment variables that are misspelt or have no effect
 *     doctor_directory.c   a data directory: disk, speed, modes, who has it open, its marks
 *     doctor_network.c     a service: name, connection, credentials, requests
 *
 * What always holds:
 *
 *  (1) Nothing in a database is created or changed. Files for measuring have no name, or lose it
 *      before anything is written to them, so a kill leaves none.
 *  (2) No secret is printed. Of an access key only the ends are.
 *  (3) A finding is printed when it is there, so that a check that hangs shows what came before.
 */
#include "cli/doctor/doctor.h"

#include "base/base.h"
#include "base/buf.h"
#include "cli/frame/output/json.h"
#include "cli/frame/output/mask.h"
#include "cli/frame/output/text.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    STATE_COLUMN = 2,
    CHECK_COLUMN = 11, /* behind the state */
    TEXT_COLUMN = 30,
    WIDTH_LEAST = 40,
    WIDTH_USUAL = 80,
    WIDTH_MOST = 120,
    NARROW = 60 /* columns: from here down texts stand below their names */
};

enum { EXIT_WARNINGS = CLI_CONDITION, EXIT_PROBLEMS = CLI_FAILED };

static const struct option_spec doctor_specs[] = {
    DATABASE_JSON(struct doctor_settings),
    OPT_FLAG_IN(struct doctor_settings, "quiet", database.quiet,
                "Print warnings and problems only.", .letter = 'q'),
    DATABASE_SPECS_WITH(struct doctor_settings, "Time limit for the checks of a service."),
};

static const struct option_example doctor_examples[] = {
    {"holdfast doctor", "The database of HOLDFAST_DB, or http://127.0.0.1:8000."},
    {"holdfast doctor --db embedded:/var/lib/holdfast", "A data directory and its disk."},
    {"holdfast doctor --db dynamodb://eu-central-1 --profile shop",
     "Credentials, permissions and distance of Amazon DynamoDB."},
    {"holdfast doctor --json | jq '.checks[] | select(.state != \"ok\")'", "What needs attention."},
};

const struct options_table hf__doctor_options = {
    .name = "doctor",
    .about =
        "Look for what is wrong, measure, and say what to do about it. Nothing in a database is "
        "created or changed. It works when the database is missing, damaged, in use or "
        "unreachable.\n\n"
        "Always: versions, limits of the process and its control group, the clock, environment "
        "variables that are misspelt or have no effect. With a data directory: free space and the "
        "reserve, the file system, the time of writes and syncs, modes of files, which process "
        "has it open, and whether journal and manifest agree. With a service: its name, "
        "connection, TLS, credentials and where they come from, the region, requests, the "
        "difference of the clocks.\n\n"
        "Writes and syncs are measured with a file that has no name, in the file system of the "
        "directory.",
    COMMAND_SPECS(doctor),
    .notes = "Exit codes: 0 nothing was found, 4 only warnings, 1 at least one problem. In a pipe "
             "every finding is a line of four fields with tabs between them: state, check, what "
             "was found, what to do. The states are ok, skipped, warning and problem.",
};

/* ---- findings ------------------------------------------------------------------------------- */

static const char *const state_names[FINDING_STATES] = {"ok", "skipped", "warning", "problem"};

/* A copy without what a terminal obeys: C0, DEL, and C1 in UTF-8. */
static struct hf_str text_clean(struct hf_scope *s, struct hf_str text)
{
    char *to = hf_scope_alloc(s, text.len + 1);
    size_t len = 0;

    if (!to)
        return HF_STR("out of memory");
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        bool pair = byte == 0xC2 && i + 1 < text.len && (unsigned char)text.ptr[i + 1] >= 0x80 &&
                    (unsigned char)text.ptr[i + 1] < 0xA0;

        i += pair;
        to[len++] = pair || byte < ' ' || byte == 0x7F ? ' ' : (char)byte;
    }
    to[len] = '\0';
    return hf_str_of(to, len);
}

static size_t screen_width(const struct cli *cli)
{
    size_t width = cli->columns ? cli->columns : WIDTH_USUAL;

    return width < WIDTH_LEAST ? WIDTH_LEAST : width > WIDTH_MOST ? WIDTH_MOST : width;
}

static void finding_show(struct doctor *d, const char *check, enum finding_state state,
                         struct hf_str found, struct hf_str advice)
{
    static const char *const colours[FINDING_STATES] = {"32", "2", "33", "31"};
    size_t width = screen_width(d->cli), column = TEXT_COLUMN;
    FILE *out = d->cli->out;
    bool colour = d->cli->styled && hf__cli_for_people(d->cli);

    fprintf(out, "%*s%s%s%s%-*s%s%s", STATE_COLUMN, "", colour ? "\033[" : "",
            colour ? colours[state] : "", colour ? "m" : "", CHECK_COLUMN - STATE_COLUMN,
            state_names[state], colour ? "\033[0m" : "", check);
    if (width < NARROW) {
        column = CHECK_COLUMN;
        fprintf(out, "\n%*s", (int)column, "");
    } else {
        fprintf(out, "%*s", (int)(column - CHECK_COLUMN - strlen(check)), "");
    }
    hf__texts_wrap(out, found.ptr, column, column, width);
    if (advice.len) {
        fprintf(out, "%*s", (int)column, "");
        hf__texts_wrap(out, advice.ptr, column, column, width);
    }
}

static void finding_json(struct doctor *d, const char *check, enum finding_state state,
                         struct hf_str found, struct hf_str advice, bool first)
{
    FILE *out = d->cli->out;

    fprintf(out, "%s{\"check\":\"%s\",\"state\":\"%s\",\"found\":", first ? "" : ",", check,
            state_names[state]);
    hf__cli_json_write_text(out, found);
    fputs(",\"advice\":", out);
    if (advice.len)
        hf__cli_json_write_text(out, advice);
    else
        fputs("null", out);
    fputc('}', out);
}

void hf__doctor_add(struct doctor *d, const char *check, enum finding_state state,
                    struct hf_str found, struct hf_str advice)
{
    bool first = true;

    assert(state < FINDING_STATES && strlen(check) + 2 <= TEXT_COLUMN - CHECK_COLUMN);
    assert(state < FINDING_WARNING || advice.len); /* who is warned wants to know what to do */
    for (size_t i = 0; i < FINDING_STATES; i++)
        first = first && d->counts[i] == 0;
    d->counts[state]++;
    found = hf__cli_mask(d->s, found);
    advice = hf__cli_mask(d->s, advice);
    if (d->settings->database.json) {
        finding_json(d, check, state, found, advice, first);
        return;
    }
    if (d->settings->database.quiet && state < FINDING_WARNING)
        return;
    found = text_clean(d->s, found);
    advice = text_clean(d->s, advice);
    if (hf__cli_for_people(d->cli))
        finding_show(d, check, state, found, advice);
    else
        fprintf(d->cli->out, "%s\t%s\t%s\t%s\n", state_names[state], check, found.ptr, advice.ptr);
    fflush(d->cli->out);
}

struct hf_str hf__doctor_text(struct doctor *d, const char *format, ...)
{
    struct hf_str text;
    va_list args;

    va_start(args, format);
    text = hf__scope_format_args(d->s, format, args);
    va_end(args);
    return text.ptr ? text : HF_STR("out of memory");
}

struct hf_str hf__doctor_bytes(struct doctor *d, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB", "PB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1000 && unit + 1 < COMMAND_LEN(units)) {
        value /= 1000;
        unit++;
    }
    return hf__doctor_text(d, "%.*f %s", unit > 0 && value < 100 ? 1 : 0, value, units[unit]);
}

struct hf_str hf__doctor_time(struct doctor *d, int64_t us)
{
    if (us < 1000)
        return hf__doctor_text(d, "%" PRId64 " us", us);
    if (us < 1000000)
        return hf__doctor_text(d, "%.1f ms", (double)us / 1e3);
    return hf__doctor_text(d, "%.1f s", (double)us / 1e6);
}

int64_t hf__doctor_now_us(const struct doctor *d)
{
    const struct hf_env *env = hf_scope_env(d->s);

    return env->elapsed_us(env->user);
}

uint32_t hf__doctor_left_ms(const struct doctor *d, uint32_t cap)
{
    int64_t left = (d->deadline_us - hf__doctor_now_us(d)) / 1000;

    return left <= 0 ? 0 : left < (int64_t)cap ? (uint32_t)left : cap;
}

static int value_compare(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

    return (first > second) - (first < second);
}

void hf__doctor_sort(int64_t *values, size_t len)
{
    qsort(values, len, sizeof(*values), value_compare);
}

bool hf__doctor_read(const char *path, char *room, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t got;

    assert(size > 0);
    if (fd < 0)
        return false;
    while (len + 1 < size && (got = read(fd, room + len, size - 1 - len)) > 0)
        len += (size_t)got;
    close(fd);
    room[len] = '\0';
    return len > 0;
}

/* ---- the command ---------------------------------------------------------------------------- */

/* The frame is to open nothing: that may be what does not work. */
static enum hf_status doctor_check(struct command_ctx *c)
{
    c->without_db = true;
    return HF_OK;
}

/* The summary, for people or as the end of the JSON. */
static void summary_print(struct doctor *d)
{
    size_t warnings = d->counts[FINDING_WARNING], problems = d->counts[FINDING_PROBLEM];
    FILE *out = d->cli->out;

    if (d->settings->database.json)
        fprintf(out, "],\"state\":\"%s\",\"warnings\":%zu,\"problems\":%zu}\n",
                problems   ? "problem"
                : warnings ? "warning"
                           : "ok",
                warnings, problems);
    else if (hf__cli_for_people(d->cli) && !d->settings->database.quiet)
        fprintf(out, "\n%zu %s, %zu %s\n", problems, problems == 1 ? "problem" : "problems",
                warnings, warnings == 1 ? "warning" : "warnings");
}

static void subject_print(struct doctor *d)
{
    struct hf_str url = hf__cli_mask(d->s, d->settings->database.url);

    if (d->settings->database.json) {
        fputs("{\"database\":", d->cli->out);
        hf__cli_json_write_text(d->cli->out, url);
        fputs(",\"checks\":[", d->cli->out);
    } else if (hf__cli_for_people(d->cli) && !d->settings->database.quiet) {
        fprintf(d->cli->out, "%s\n\n", text_clean(d->s, url).ptr);
    }
}

static enum hf_status doctor_body(struct command_ctx *c)
{
    const struct doctor_settings *settings = c->settings;
    struct doctor d = {.c = c, .cli = c->cli, .s = c->scope, .settings = settings};
    struct hf_str path, name;
    bool directory = str_after(settings->database.url, HF_STR("embedded:"), &path);
    bool unresolved = str_after(settings->database.url, HF_STR("@"), &name); /* see config_error */

    d.url = hf__database_url(c->scope, &settings->database);
    if (!d.url.ptr)
        return HF_NOMEM;
    subject_print(&d);
    hf__doctor_versions(&d, !directory);
    hf__doctor_limits(&d);
    hf__doctor_clock(&d);
    hf__doctor_variables(&d);
    if (c->config_error.ptr)
        hf__doctor_add(&d, "config", FINDING_PROBLEM, c->config_error,
                       HF_STR("Correct the file; until then name databases with --db URL."));
    d.deadline_us = hf__doctor_now_us(&d) + (int64_t)settings->database.timeout_ms * 1000;
    if (directory)
        hf__doctor_directory(&d, hf__doctor_text(&d, "%.*s", HF_FMT(path)).ptr);
    else if (!str_is(settings->database.url, "memory:") && !unresolved)
        hf__doctor_network(&d);
    summary_print(&d);
    if (fflush(c->cli->out) != 0 || ferror(c->cli->out))
        return hf__command_fail(c, CLI_FAILED, "cannot write to %s", hf__cli_out_name(c->cli));
    if (d.counts[FINDING_PROBLEM])
        return hf__command_end(c, EXIT_PROBLEMS);
    return hf__command_end(c, d.counts[FINDING_WARNING] ? EXIT_WARNINGS : CLI_OK);
}

const struct command hf__doctor_command = {COMMAND_SETTINGS(struct doctor_settings),
                                           .reports_config = true, .check = doctor_check,
                                           .body = doctor_body};
