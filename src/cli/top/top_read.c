/*
 * cli/top/top_read.c: the figures of a server: Prometheus' text and the JSON of /_holdfast/top.
 *
 * Of the text the lines are used whose names are in a table below; all others are skipped. What a
 * server says is not trusted: lists end at their limits, and what cannot be read is not there.
 */
#include "cli/top/top.h"

#include <holdfast/client.h>

#include "base/base.h"
#include "cli/frame/output/json.h"

#include <stdlib.h>

enum { NUMBER_MAX = 64 };

#define FIGURE_LIMIT 1e18 /* higher ones are not figures of a server, and may not fit */

/* ---- Prometheus' text ----------------------------------------------------------------------- */

/* A line: name{label="value",...} number */
struct metric {
    struct hf_str name;
    struct hf_str labels; /* between the braces; empty: none */
    double value;
};

static bool metric_read(struct hf_str line, struct metric *metric)
{
    const char *brace = line.len ? memchr(line.ptr, '{', line.len) : NULL, *end = NULL;
    char number[NUMBER_MAX];
    struct hf_str rest;

    if (!line.len || line.ptr[0] == '#')
        return false;
    *metric = (struct metric){.labels = HF_STR("")};
    if (brace) {
        end = memrchr(line.ptr, '}', line.len);
        if (!end || end < brace)
            return false;
        metric->name = hf_str_of(line.ptr, (size_t)(brace - line.ptr));
        metric->labels = hf_str_of(brace + 1, (size_t)(end - brace - 1));
        rest = hf_str_of(end + 1, (size_t)(line.ptr + line.len - end - 1));
    } else {
        rest = line;
        metric->name = str_cut(&rest, ' ');
    }
    while (rest.len && rest.ptr[0] == ' ')
        rest = hf_str_of(rest.ptr + 1, rest.len - 1);
    if (!rest.len || rest.len >= sizeof(number))
        return false;
    assert(metric->name.len <= line.len && rest.len < NUMBER_MAX);
    memcpy(number, rest.ptr, rest.len);
    number[rest.len] = '\0';
    metric->value = strtod(number, NULL);
    if (!(metric->value >= 0 && metric->value < FIGURE_LIMIT)) /* and no NaN */
        metric->value = 0;
    return true;
}

/* The value of a label, as it was written; our servers have no quotes in theirs. */
static struct hf_str label_of(const struct metric *metric, const char *name)
{
    struct hf_str rest = metric->labels;

    assert(metric->labels.ptr && name[0]);
    while (rest.len) {
        struct hf_str key = str_cut(&rest, '=');

        if (!rest.len || rest.ptr[0] != '"')
            break;
        rest = hf_str_of(rest.ptr + 1, rest.len - 1);
        if (str_is(key, name))
            return str_cut(&rest, '"');
        str_cut(&rest, '"');
        str_cut(&rest, ',');
    }
    return (struct hf_str){0};
}

static struct top_op *op_find(struct top_sample *sample, struct hf_str name)
{
    assert(sample->ops_len <= TOP_OPS_MAX);
    if (!name.len)
        return NULL;
    for (size_t i = 0; i < sample->ops_len; i++)
        if (hf_str_equal(sample->ops[i].name, name))
            return &sample->ops[i];
    if (sample->ops_len == TOP_OPS_MAX)
        return NULL;
    sample->ops[sample->ops_len] = (struct top_op){.name = name};
    return &sample->ops[sample->ops_len++];
}

/* A bucket is known by its upper bound, le="0.000008". */
static void bucket_note(struct top_times *times, const struct metric *metric)
{
    struct hf_str le = label_of(metric, "le");
    char number[NUMBER_MAX];
    double us, bound = TOP_BUCKET_FIRST_US;

    assert(metric->value >= 0);
    if (!le.len || le.len >= sizeof(number))
        return;
    if (str_is(le, "+Inf")) {
        times->buckets[TOP_BUCKETS - 1] = (uint64_t)metric->value;
        return;
    }
    memcpy(number, le.ptr, le.len);
    number[le.len] = '\0';
    us = strtod(number, NULL) * 1e6;
    for (size_t i = 0; i + 1 < TOP_BUCKETS; i++, bound *= 2)
        if (us > bound * 0.9 && us < bound * 1.1)
            times->buckets[i] = (uint64_t)metric->value;
}

static void op_note(struct top_sample *sample, const struct metric *metric)
{
    struct top_op *op = op_find(sample, label_of(metric, "operation"));
    struct hf_str outcome = label_of(metric, "outcome");
    uint64_t value = (uint64_t)metric->value;

    if (!op)
        return;
    if (str_is(metric->name, "holdfast_request_seconds_bucket"))
        bucket_note(&op->times, metric);
    else if (str_is(outcome, "ok"))
        op->ok = value;
    else if (str_is(outcome, "client_error"))
        op->client_errors = value;
    else if (str_is(outcome, "server_error"))
        op->server_errors = value;
}

static void metric_note(struct top_sample *sample, const struct metric *metric)
{
    const struct {
        const char *name;
        uint64_t *to;
    } numbers[] = {
        {"holdfast_connections", &sample->connections},
        {"process_resident_memory_bytes", &sample->resident_bytes},
        {"holdfast_store_memory_bytes", &sample->store_bytes},
        {"holdfast_disk_bytes", &sample->disk_bytes},
        {"holdfast_work_waiting", &sample->waiting},
        {"holdfast_work_running", &sample->running},
        {"holdfast_log_syncs_total", &sample->syncs},
        {"holdfast_bytes_received_total", &sample->received_bytes},
        {"holdfast_bytes_sent_total", &sample->sent_bytes},
    };

    for (size_t i = 0; i < COMMAND_LEN(numbers); i++)
        if (str_is(metric->name, numbers[i].name))
            *numbers[i].to = (uint64_t)metric->value;
    if (str_is(metric->name, "holdfast_writes_stopped"))
        sample->stopped = metric->value > 0;
    else if (str_is(metric->name, "holdfast_no_space"))
        sample->no_space = metric->value > 0;
    else if (str_is(metric->name, "holdfast_commit_seconds_bucket"))
        bucket_note(&sample->commit, metric);
    else if (str_is(metric->name, "holdfast_requests_total") ||
             str_is(metric->name, "holdfast_request_seconds_bucket"))
        op_note(sample, metric);
}

/* False: these are not the metrics of a holdfast server. */
static bool metrics_note(struct top_sample *sample, struct hf_str text)
{
    bool ours = false;

    while (text.len) {
        struct metric metric;

        if (metric_read(str_cut(&text, '\n'), &metric)) {
            ours = ours || str_is(metric.name, "holdfast_connections");
            metric_note(sample, &metric);
        }
    }
    return ours;
}

/* ---- tables, partitions, items -------------------------------------------------------------- */

static struct hf_str text_of(const struct json_node *object, const char *name)
{
    const struct json_node *node = hf__cli_json_member(object, name);

    return node && node->kind == JSON_STRING ? node->text : (struct hf_str){0};
}

static double number_of(const struct json_node *object, const char *name)
{
    const struct json_node *node = hf__cli_json_member(object, name);
    char number[NUMBER_MAX];
    double value;

    if (!node || node->kind != JSON_NUMBER || node->text.len >= sizeof(number))
        return 0;
    memcpy(number, node->text.ptr, node->text.len);
    number[node->text.len] = '\0';
    value = strtod(number, NULL);
    return value >= 0 && value < FIGURE_LIMIT ? value : 0;
}

static const struct json_node *list_of(const struct json_node *object, const char *name)
{
    const struct json_node *list = hf__cli_json_member(object, name);

    return list && list->kind == JSON_ARRAY ? list->first : NULL;
}

static void top_note(struct top_sample *sample, const struct json_node *json)
{
    const struct json_node *at;

    sample->version = text_of(json, "version");
    for (at = list_of(json, "tables"); at && sample->tables_len < TOP_TABLES_MAX; at = at->next)
        sample->tables[sample->tables_len++] =
            (struct top_table){.name = text_of(at, "name"),
                               .reads = (uint64_t)number_of(at, "reads"),
                               .writes = (uint64_t)number_of(at, "writes"),
                               .errors = (uint64_t)number_of(at, "errors")};
    for (at = list_of(json, "partitions"); at && sample->partitions_len < TOP_PARTITIONS_MAX;
         at = at->next)
        sample->partitions[sample->partitions_len++] =
            (struct top_partition){.table = text_of(at, "table"),
                                   .key = text_of(at, "key"),
                                   .rate = number_of(at, "per_second"),
                                   .cut = hf__cli_json_member(at, "key_cut") != NULL};
    for (at = list_of(json, "largest"); at && sample->largest_len < TOP_LARGEST_MAX; at = at->next)
        sample->largest[sample->largest_len++] =
            (struct top_largest){.table = text_of(at, "table"),
                                 .key = text_of(at, "key"),
                                 .range = text_of(at, "range"),
                                 .bytes = (uint64_t)number_of(at, "bytes")};
}

/* An older server has no such path, and one with keys may not know ours. */
static void top_refused(struct hf_scope *s, const struct hf_server_answer *answer,
                        struct top_sample *sample)
{
    struct hf_str error;
    struct hf_str why = text_of(hf__cli_json_read(s, answer->body, &error), "error");

    sample->refusal = answer->status == 404
                          ? HF_STR("the server is too old to tell")
                          : hf_scope_format(s, "the server refused: %.*s",
                                            HF_FMT(why.ptr ? why : HF_STR("access denied")));
}

/* ---- a sample ------------------------------------------------------------------------------- */

enum hf_status hf__top_read(struct hf_scope *s, const struct database_settings *settings,
                            struct top_sample *sample)
{
    const struct hf_env *env = hf_scope_env(s);
    struct hf_client_options options = {.size = sizeof(options),
                                        .profile = settings->profile,
                                        .region = settings->region};
    struct hf_server_answer answer;
    const struct json_node *json;
    struct hf_str error;

    memset(sample, 0, sizeof(*sample));
    hf_scope_timeout_ms(s, (uint32_t)settings->timeout_ms);
    TRY(hf_server_get(s, settings->url, &options, HF_STR("/metrics"), &answer));
    sample->elapsed_us = env->elapsed_us(env->user);
    sample->wall_us = env->wall_us(env->user);
    if (answer.status != 200 || !metrics_note(sample, answer.body))
        return hf_scope_fail(s, HF_UNSUPPORTED,
                             "%.*s has no metrics of a holdfast server (HTTP status %d)",
                             HF_FMT(settings->url), answer.status);
    TRY(hf_server_get(s, settings->url, &options, HF_STR("/_holdfast/top"), &answer));
    json = answer.status == 200 ? hf__cli_json_read(s, answer.body, &error) : NULL;
    if (json)
        top_note(sample, json);
    else
        top_refused(s, &answer, sample);
    return hf_scope_ok(s);
}
