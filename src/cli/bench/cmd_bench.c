/*
 * cli/bench/cmd_bench.c: how fast is a database from here? `holdfast bench`.
 *
 *     table     created under a name that nobody has, filled with --items items
 *     runs      one after the other, each with a warm-up: bench_work.c
 *     end       the table is deleted, also after a signal or an error; then the results are printed
 *
 * What always holds:
 *
 *  (1) Only the table that this process created is written to and deleted. CreateTable of a name that
 *      exists fails, and then nothing is deleted.
 *  (2) Whatever ends a run, the table is deleted before anything is written to standard output: a
 *      pipe that is closed cannot leave one behind.
 *  (3) Every attempt is measured: the client does not retry.
 */
#include "cli/bench/bench.h"

#include <holdfast/batch.h>
#include <holdfast/table.h>

#include "base/base.h"
#include "cli/frame/output/progress.h"
#include "cli/frame/process/child.h"

#include <assert.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOAD_PART = 250,       /* items that are written at once */
    LOOK_MS = 100,         /* how often the runs are looked at */
    DELETE_MS = 30 * 1000, /* for deleting the table */
    IDLE_DEFAULT = 64,     /* connections that a client keeps unless it is told */
    GUESS_MS = 10,         /* of one request to Amazon DynamoDB, for the estimate */
    BATCH_ITEMS = 25,      /* of BatchWriteItem */
    RESULTS_MAX = BENCH_KINDS + BENCH_OPS,
    LABEL_MAX = 24,
    ANSWER_MAX = 16
};

struct settings {
    struct database_settings database;
    uint64_t connections;
    uint64_t seconds;
    uint64_t warmup_ms;
    uint64_t items;
    uint64_t size;
    uint64_t rate;
    bool yes;
    bool made; /* the directory of the database is new */
};

static const struct option_spec bench_specs[] = {
    OPT_NUMBER("connections", connections, 1, BENCH_CONNECTIONS_MAX,
               "Requests at the same time: threads, each with a connection of its own.",
               .letter = 'c', .fallback = "8"),
    OPT_NUMBER("seconds", seconds, 1, BENCH_SECONDS_MAX, "How long each operation is measured.",
               .letter = 's', .fallback = "5"),
    OPT_TIME("warm-up", warmup_ms, 0, OPTION_DAY_MS,
             "Before that, requests are sent for this time and not measured.", .fallback = "1s"),
    OPT_NUMBER(
        "rate", rate, 1, BENCH_RATE_MAX,
        "Send so many requests per second, evenly, whatever the database does; durations are "
        "measured from the time at which a request was due. By default each connection "
        "sends the next request when the last one is answered.",
        .letter = 'r'),
    OPT_NUMBER("items", items, 2, BENCH_ITEMS_MAX,
               "Items in the table. Requests choose among them evenly.", .letter = 'n',
               .fallback = "10000"),
    OPT_SIZE("size", size, 1, BENCH_SIZE_MAX, "Bytes of data in an item.", .fallback = "512"),
    OPT_FLAG("yes", yes, "Do not ask before requests to Amazon DynamoDB, which cost money.",
             .letter = 'y'),
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS_WITH(struct settings, "Time limit for each request."),
};

static const struct option_example bench_examples[] = {
    {"holdfast bench", "Get, put, update, query and transact, 5 seconds each, on "
                       "http://127.0.0.1:8000."},
    {"holdfast bench put --db embedded:/var/lib/holdfast -c 32", "Writes to a directory."},
    {"holdfast bench mixed --rate 2000 --seconds 60",
     "2000 requests per second: what would users wait?"},
    {"holdfast bench get --db dynamodb://eu-central-1 --seconds 10 --yes",
     "Amazon DynamoDB, which bills every request."},
};

const struct options_table hf__bench_options = {
    .name = "bench",
    .operands = "[get|put|update|query|transact|mixed]...",
    .about =
        "Measure how many requests a database answers, and how long they take. Without operands "
        "get, put, update, query and transact run, one after the other.\n\n"
        "get reads one item, put replaces one, update adds to a number of one, query reads ten "
        "items with the same hash key, transact updates two items in a transaction. mixed is a "
        "mixture of 60 % get, 20 % put, 10 % update, 8 % query and 2 % transact; each of them "
        "has its own line.\n\n"
        "The command creates a table, holdfast-bench-RANDOM, and deletes it at the end, also after "
        "Ctrl-C. Other tables are not touched. If it is killed with SIGKILL, delete the table with "
        "'holdfast table delete'.",
    COMMAND_SPECS(bench),
    .notes =
        "What is measured: the time from the call to the complete answer, in this process. Without "
        "--rate a connection waits for an answer before it sends the next request. When the "
        "database stalls, fewer requests are sent, and the percentiles look better than what users "
        "with their own rhythm would see. With --rate every request is due at a fixed time, its "
        "duration begins then, and those that were never sent are counted as missed.\n\n"
        "Requests are not retried: throttles and other errors are counted and are not in the "
        "percentiles. Percentiles are exact to 3 %. In a pipe and with --json durations are in "
        "microseconds.\n\n"
        "Exit codes: 0 done, 1 some requests failed (throttles are no failure), 130 after Ctrl-C, "
        "with the results until then.",
};

/* ---- arguments ------------------------------------------------------------------------------ */

static int kind_find(const char *word)
{
    for (int kind = 0; kind < BENCH_KINDS; kind++)
        if (strcmp(word, hf__bench_names[kind]) == 0)
            return kind;
    return -1;
}

/* Does a request there cost money? */
static bool is_amazon(struct hf_str url)
{
    struct hf_str rest;

    return str_after(url, HF_STR("dynamodb:"), &rest) ||
           memmem(url.ptr, url.len, ".amazonaws.com", 14) ||
           memmem(url.ptr, url.len, ".api.aws", 8);
}

static size_t runs_count(const struct command_ctx *c)
{
    return c->operands_len ? c->operands_len : BENCH_MIXED;
}

static uint64_t requests_guess(const struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    uint64_t ms = settings->seconds * 1000 + settings->warmup_ms;
    uint64_t each =
        settings->rate ? settings->rate * ms / 1000 : settings->connections * ms / GUESS_MS;

    return settings->items / BATCH_ITEMS + each * runs_count(c);
}

static enum hf_status cost_confirm(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    char answer[ANSWER_MAX] = "";

    if (!is_amazon(settings->database.url) || settings->yes)
        return HF_OK;
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
        return hf__command_fail(c, CLI_USAGE,
                                "this makes about %" PRIu64 " requests to Amazon DynamoDB, which "
                                "cost money; add --yes to go ahead",
                                requests_guess(c));
    fprintf(c->cli->err,
            "This makes about %" PRIu64 " requests to Amazon DynamoDB, which cost money.\n"
            "Go ahead? Type yes: ",
            requests_guess(c));
    fflush(c->cli->err);
    if (fgets(answer, sizeof(answer), stdin) && strcmp(answer, "yes\n") == 0)
        return HF_OK;
    return hf__command_fail(c, CLI_USAGE, "nothing was done");
}

/* The client is not to retry, and to keep as many connections as there are threads. */
static enum hf_status url_extend(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_str url = settings->database.url, rest;
    bool network =
        str_after(url, HF_STR("http"), &rest) || str_after(url, HF_STR("dynamodb:"), &rest);
    bool has_query = memchr(url.ptr, '?', url.len) != NULL;
    uint64_t idle = settings->connections > IDLE_DEFAULT ? settings->connections : IDLE_DEFAULT;

    if (!network)
        return HF_OK;
    settings->database.url = hf_scope_format(c->scope, "%.*s%cretry=off&connections=%" PRIu64,
                                             HF_FMT(url), has_query ? '&' : '?', idle);
    return settings->database.url.ptr ? HF_OK : HF_NOMEM;
}

/* Is there no directory yet? Then the frame makes one, which is to be said. */
static bool makes_directory(struct hf_scope *s, struct hf_str url)
{
    struct hf_str path;
    struct stat info;

    if (!str_after(url, HF_STR("embedded:"), &path))
        return false;
    path = hf_scope_copy(s, path); /* with a NUL */
    return path.ptr && stat(path.ptr, &info) != 0;
}

static enum hf_status bench_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    settings->made = makes_directory(c->scope, settings->database.url);
    for (size_t i = 0; i < c->operands_len; i++) {
        if (kind_find(c->operands[i]) < 0)
            return hf__command_fail(c, CLI_USAGE,
                                    "unknown operation '%s'; there are get, put, update, query, "
                                    "transact and mixed",
                                    c->operands[i]);
        for (size_t before = 0; before < i; before++)
            if (strcmp(c->operands[before], c->operands[i]) == 0)
                return hf__command_fail(c, CLI_USAGE, "operation '%s' is given twice",
                                        c->operands[i]);
    }
    TRY(cost_confirm(c));
    return url_extend(c);
}

/* ---- the table ------------------------------------------------------------------------------ */

struct bench {
    struct command_ctx *c;
    const struct settings *settings;
    struct hf_str table;
    struct hf_str data;
    bool created;
    struct progress progress;
    struct bench_worker *workers; /* of the run that is going on */
    struct bench_result {
        char label[LABEL_MAX];
        uint64_t requests, errors, throttles, missed;
        double seconds;
        uint64_t p50_ns, p95_ns, p99_ns, p999_ns, max_ns;
    } results[RESULTS_MAX];
    size_t results_len;
    uint64_t errors;
    char error[BENCH_ERROR_MAX]; /* the first one of all runs */
};

static struct hf_str table_name(struct command_ctx *c)
{
    const struct hf_env *env = hf_scope_env(c->scope);
    uint32_t random[2];

    env->random(random, sizeof(random), env->user);
    return hf_scope_format(c->scope, "holdfast-bench-%08x%04x", random[0], random[1] & 0xffff);
}

static enum hf_status table_create(struct bench *b)
{
    const struct hf_attribute_definition attributes[] = {{HF_STR("pk"), HF_SCALAR_S},
                                                         {HF_STR("sk"), HF_SCALAR_N}};
    const struct hf_key_element keys[] = {{HF_STR("pk"), HF_KEY_HASH},
                                          {HF_STR("sk"), HF_KEY_RANGE}};
    struct command_ctx *c = b->c;
    struct hf_create_table create = {.table = b->table,
                                     .attributes = attributes,
                                     .attributes_len = COMMAND_LEN(attributes),
                                     .key_schema = keys,
                                     .key_schema_len = COMMAND_LEN(keys),
                                     .billing = HF_BILLING_PAY_PER_REQUEST};
    enum hf_status status = hf_create_table(c->scope, c->db, &create, NULL);

    /* Nobody else has that name: what may be there is ours. */
    b->created = status == HF_OK || hf_scope_error(c->scope)->may_have_happened;
    TRY(status);
    return hf_table_wait(c->scope, c->db, b->table, HF_TABLE_UNTIL_ACTIVE, NULL);
}

static enum hf_status table_fill(struct bench *b)
{
    struct command_ctx *c = b->c;
    uint64_t items = b->settings->items;
    struct hf_scope *s = hf_scope_new(hf_scope_env(c->scope));
    enum hf_status status = s ? HF_OK : HF_NOMEM;

    for (uint64_t at = 0; at < items && status == HF_OK; at += LOAD_PART) {
        size_t len = items - at < LOAD_PART ? (size_t)(items - at) : LOAD_PART;
        struct hf_write *writes;

        hf_scope_reset(s);
        hf__scope_follow(s, c->scope); /* a signal ends it */
        hf_scope_timeout_ms(s, (uint32_t)b->settings->database.timeout_ms);
        writes = hf__scope_array(s, len, sizeof(*writes));
        for (size_t i = 0; writes && i < len; i++)
            writes[i] =
                (struct hf_write){.table = b->table, .put = hf__bench_item(s, at + i, 0, b->data)};
        status = writes ? hf_write_many(s, c->db, writes, len, NULL, NULL) : HF_NOMEM;
        if (status != HF_OK)
            (void)hf_scope_fail_from(c->scope, status, s);
        else
            status = hf_scope_sleep_ms(c->scope, 0);
        if (hf__progress_due(&b->progress, false))
            hf__progress_print(&b->progress, "filling the table: %" PRIu64 " of %" PRIu64 " items",
                               at + len, items);
    }
    hf_scope_free(s);
    return status;
}

/* On a scope of its own: that of the command may be canceled or out of time. */
static void table_delete(struct bench *b)
{
    struct command_ctx *c = b->c;
    struct hf_scope *s = hf_scope_new(hf_scope_env(c->scope));
    enum hf_status status = HF_NOMEM;

    if (!b->created)
        return;
    if (s) {
        hf_scope_timeout_ms(s, DELETE_MS);
        do
            status = hf_delete_table(s, c->db, &(struct hf_delete_table){.table = b->table}, NULL);
        while ((status == HF_IN_USE || hf_scope_error(s)->may_retry) &&
               hf_scope_sleep_ms(s, LOOK_MS) == HF_OK);
    }
    if (status != HF_OK && status != HF_NOT_FOUND) {
        hf__cli_notice(c->cli, c->name,
                       "table %.*s could not be deleted: %s; delete it with 'holdfast table delete "
                       "%.*s'",
                       HF_FMT(b->table), s ? hf_scope_error_text(s) : "out of memory",
                       HF_FMT(b->table));
        b->errors++;
    }
    hf_scope_free(s);
}

/* ---- runs ----------------------------------------------------------------------------------- */

static void result_add(struct bench *b, const struct bench_run *run, enum bench_op op,
                       double seconds)
{
    struct bench_summary *sum = hf__scope_array(b->c->scope, 1, sizeof(*sum));
    struct bench_result *result = &b->results[b->results_len];

    if (!sum)
        return;
    assert(b->results_len < RESULTS_MAX);
    *result = (struct bench_result){.seconds = seconds};
    for (size_t i = 0; i < run->workers_len; i++) {
        const struct bench_worker *worker = &run->workers[i];

        hf__bench_times_sum(sum, &worker->ops[op].times);
        result->errors += atomic_load(&worker->ops[op].errors);
        result->throttles += atomic_load(&worker->ops[op].throttles);
        if (run->kind != BENCH_MIXED || op == 0)
            result->missed += worker->missed;
    }
    snprintf(result->label, sizeof(result->label), "%s%s", run->kind == BENCH_MIXED ? "mixed " : "",
             hf__bench_names[op]);
    result->requests = sum->count;
    if (sum->count) {
        result->p50_ns = hf__bench_percentile(sum, 0.5);
        result->p95_ns = hf__bench_percentile(sum, 0.95);
        result->p99_ns = hf__bench_percentile(sum, 0.99);
        result->p999_ns = hf__bench_percentile(sum, 0.999);
        result->max_ns = sum->max_ns;
    }
    b->errors += result->errors;
    b->results_len++;
}

static void progress_show(struct bench *b, const struct bench_run *run, uint64_t *last_done,
                          uint64_t *last_ns)
{
    uint64_t now = hf__bench_now_ns(), done = 0, failed = 0;
    bool warm = now < run->from_ns;
    double seconds = (double)(now - (warm ? run->start_ns : run->from_ns)) / 1e9;

    if (!hf__progress_due(&b->progress, false))
        return;
    for (size_t i = 0; i < run->workers_len; i++) {
        done += atomic_load_explicit(&run->workers[i].done, memory_order_relaxed);
        for (int op = 0; op < BENCH_OPS; op++)
            failed +=
                atomic_load_explicit(&run->workers[i].ops[op].errors, memory_order_relaxed) +
                atomic_load_explicit(&run->workers[i].ops[op].throttles, memory_order_relaxed);
    }
    hf__progress_print(&b->progress,
                       "%s: %s%.0f of %" PRIu64 " s, %.0f requests/s, %" PRIu64 " failed",
                       hf__bench_names[run->kind], warm ? "warm-up, " : "", warm ? 0.0 : seconds,
                       b->settings->seconds,
                       now > *last_ns ? (double)(done - *last_done) * 1e9 / (double)(now - *last_ns)
                                      : 0.0,
                       failed);
    *last_done = done;
    *last_ns = now;
}

/* Wait until the run is over, or a signal came: HF_CANCELED. */
static enum hf_status run_watch(struct bench *b, struct bench_run *run)
{
    uint64_t last_done = 0, last_ns = run->start_ns;
    enum hf_status status = HF_OK;

    while (status == HF_OK && hf__bench_now_ns() < run->until_ns) {
        uint64_t left_ms = (run->until_ns - hf__bench_now_ns()) / 1000000 + 1;

        status = hf_scope_sleep_ms(b->c->scope, left_ms < LOOK_MS ? (uint32_t)left_ms : LOOK_MS);
        progress_show(b, run, &last_done, &last_ns);
    }
    if (status != HF_OK)
        hf__bench_stop(run);
    hf__bench_join(run);
    return status;
}

static enum hf_status workers_make(struct bench *b, struct bench_run *run)
{
    struct command_ctx *c = b->c;

    run->workers = hf__scope_array(c->scope, run->connections, sizeof(*run->workers));
    if (!run->workers)
        return HF_NOMEM;
    for (size_t i = 0; i < run->connections; i++) {
        run->workers[i].scope = hf_scope_new(hf_scope_env(c->scope));
        if (!run->workers[i].scope)
            return HF_NOMEM;
    }
    return HF_OK;
}

static enum hf_status run_one(struct bench *b, int kind)
{
    const struct settings *settings = b->settings;
    struct command_ctx *c = b->c;
    struct hf_scope_mark mark = hf_scope_mark(c->scope);
    struct bench_run run = {.db = c->db,
                            .table = b->table,
                            .kind = kind,
                            .items = settings->items,
                            .data = b->data,
                            .rate = settings->rate,
                            .timeout_ms = (uint32_t)settings->database.timeout_ms,
                            .connections = (size_t)settings->connections,
                            .lock = PTHREAD_MUTEX_INITIALIZER};
    enum hf_status status = workers_make(b, &run);
    double seconds;

    run.start_ns = hf__bench_now_ns();
    run.from_ns = run.start_ns + settings->warmup_ms * 1000000;
    run.until_ns = run.from_ns + settings->seconds * UINT64_C(1000000000);
    if (status == HF_OK)
        status = hf__bench_start(c->scope, &run);
    if (status == HF_OK) {
        status = run_watch(b, &run);
        seconds = ((double)hf__bench_now_ns() - (double)run.from_ns) / 1e9;
        /* Without a rate, requests that end late count, and so does the time they took. */
        if (settings->rate && seconds > (double)settings->seconds)
            seconds = (double)settings->seconds;
        for (int op = 0; op < BENCH_OPS && seconds > 0; op++)
            if (kind == BENCH_MIXED || op == kind)
                result_add(b, &run, (enum bench_op)op, seconds);
        if (!b->error[0])
            memcpy(b->error, run.error, sizeof(b->error));
    }
    for (size_t i = 0; run.workers && i < run.connections; i++)
        hf_scope_free(run.workers[i].scope);
    pthread_mutex_destroy(&run.lock);
    if (status == HF_OK)
        hf_scope_rewind(c->scope, mark);
    return status;
}

/* ---- results -------------------------------------------------------------------------------- */

static struct rows_field time_field(struct command_ctx *c, const char *name, const char *name_us,
                                    const struct bench_result *result, uint64_t ns)
{
    double us = (double)ns / 1e3;

    if (!result->requests)
        return (struct rows_field){.name = hf__cli_for_people(c->cli) ? name : name_us,
                                   .kind = ROWS_RAW};
    if (!hf__cli_for_people(c->cli))
        return (struct rows_field){.name = name_us,
                                   .kind = ROWS_RAW,
                                   .text = hf_scope_format(c->scope, "%.1f", us)};
    return (struct rows_field){
        .name = name,
        .kind = ROWS_RAW,
        .text = us < 1000      ? hf_scope_format(c->scope, "%.*f us", us < 100 ? 1 : 0, us)
                : us < 1000000 ? hf_scope_format(c->scope, "%.*f ms", us < 100000 ? 1 : 0, us / 1e3)
                               : hf_scope_format(c->scope, "%.1f s", us / 1e6)};
}

static struct rows_field sparse_count(struct command_ctx *c, const char *name, uint64_t count)
{
    struct rows_field field = hf__rows_number(c->cli, name, count);

    field.sparse = true;
    return field;
}

static void results_print(struct bench *b)
{
    struct command_ctx *c = b->c;
    struct rows *rows = hf__command_rows(c, "results");

    for (size_t i = 0; i < b->results_len; i++) {
        const struct bench_result *r = &b->results[i];

        COMMAND_ROW(
            rows, hf__rows_text("operation", hf_str_from(r->label)),
            hf__rows_number(c->cli, "requests", r->requests),
            ((struct rows_field){.name = "per_second",
                                 .kind = ROWS_RAW,
                                 .text = hf_scope_format(c->scope, "%.0f",
                                                         (double)r->requests / r->seconds)}),
            time_field(c, "p50", "p50_us", r, r->p50_ns),
            time_field(c, "p95", "p95_us", r, r->p95_ns),
            time_field(c, "p99", "p99_us", r, r->p99_ns),
            time_field(c, "p99.9", "p999_us", r, r->p999_ns),
            time_field(c, "max", "max_us", r, r->max_ns), sparse_count(c, "errors", r->errors),
            sparse_count(c, "throttles", r->throttles), sparse_count(c, "missed", r->missed));
    }
}

/* ---- the command ---------------------------------------------------------------------------- */

static enum hf_status bench_runs(struct bench *b)
{
    struct command_ctx *c = b->c;

    TRY(table_create(b));
    hf_scope_timeout_ms(c->scope, 0); /* the runs have their own times */
    TRY(table_fill(b));
    for (size_t i = 0; i < runs_count(c); i++)
        TRY(run_one(b, c->operands_len ? kind_find(c->operands[i]) : (int)i));
    return HF_OK;
}

static struct hf_str data_make(struct hf_scope *s, uint64_t size)
{
    char *data = hf_scope_alloc(s, size + 1);
    uint64_t state = 88172645463325252u;

    for (uint64_t i = 0; data && i < size; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data[i] = (char)('!' + state % 90);
    }
    return hf_str_of(data, data ? (size_t)size : 0);
}

static enum hf_status bench_body(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct bench *b = hf__scope_array(c->scope, 1, sizeof(*b));
    enum hf_status status;
    int came;

    if (!b)
        return HF_NOMEM;
    *b = (struct bench){.c = c, .settings = settings};
    b->table = table_name(c);
    b->data = data_make(c->scope, settings->size);
    if (!b->table.ptr || !b->data.ptr)
        return HF_NOMEM;
    hf__progress_begin(&b->progress, c->cli, settings->database.quiet, false);
    status = bench_runs(b);
    hf__progress_end(&b->progress);
    came = hf__guard_signal(c->guard);
    if (status != HF_OK && !(status == HF_CANCELED && came))
        hf__command_failed(c); /* before the table's own errors */
    table_delete(b);
    if (b->results_len)
        results_print(b);
    if (b->error[0])
        hf__cli_notice(c->cli, c->name, "the first error: %s", b->error);
    if (settings->made && !settings->database.quiet)
        hf__cli_notice(c->cli, c->name, "%.*s was created, and is an empty database now",
                       HF_FMT(settings->database.url));
    if (came)
        return hf__command_end(c, CLI_SIGNAL + came);
    if (status != HF_OK)
        return status;
    return hf__command_end(c, b->errors ? (int)CLI_FAILED : (int)CLI_OK);
}

const struct command hf__bench_command = {COMMAND_SETTINGS(struct settings),
                                          .max = COMMAND_MANY,
                                          .table = COMMAND_MAKES,
                                          .guarded = true,
                                          .check = bench_check,
                                          .body = bench_body};
