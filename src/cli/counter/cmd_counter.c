/*
 * cli/counter/cmd_counter.c: counters from a shell: `holdfast counter add|get|set|delete|ls`.
 *
 * A process lives for one add, so it leaves its mark in the counter with every call; the marks of
 * those that came before are dropped as they age (holdfast/counter.h). Whoever has to be able to
 * repeat an add after a crash gives it an id: --request.
 */
#include "base/base.h"
#include "cli/frame/commands.h"

#include <holdfast/counter.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    struct database_settings database;
    struct hf_str table;
    struct hf_str partition;
    struct hf_str space;
    uint64_t shards;
    uint64_t limit;
    struct hf_str after;
    /* add */
    struct hf_str floor;
    struct hf_str ceiling;
    struct hf_str request;
    bool plain;
    struct hf_counter_options bounds; /* what --floor and --ceiling say */
    int64_t number;                   /* the operand */
};

#define KEY_SPECS                                                                                  \
    OPT_TEXT("namespace", "TEXT", space, "Namespace of the counter; \"global\" by default.",       \
             .letter = 'n', .heading = "Counter"),                                                 \
        OPT_TEXT("partition", "TEXT", partition,                                                   \
                 "Partition of the counter, in a partitioned table.", .letter = 'p'),              \
        OPT_NUMBER("shards", shards, 0, HF_COUNTER_SHARDS_MAX,                                     \
                   "Number of items the counter is spread over, for many concurrent adds."),       \
        OPT_TEXT("table", "NAME", table,                                                           \
                 "Table; by default \"keys\", or \"partitioned_keys\" with partitions.")

static enum hf_status counters_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_counters *counters;

    TRY(hf_counters_open(c->scope, c->db,
                         HF_OPTIONS(hf_counters_options, .table = settings->table,
                                    .space = settings->space,
                                    .partitioned = settings->partition.ptr != NULL,
                                    .plain = settings->plain, .no_create = !c->makes,
                                    .shards = (uint32_t)settings->shards),
                         &counters));
    c->place = counters;
    return HF_OK;
}

static void counters_close(void *counters)
{
    hf_counters_close(counters);
}

static const struct command_place counters_place = {counters_open, counters_close, NULL};

static struct hf_counter_key key_of(const struct settings *settings, const char *id)
{
    return hf_counter_of(settings->partition, hf_str_from(id));
}

static enum hf_status read_whole(struct command_ctx *c, const char *what, const char *text,
                                 int64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoll(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0')
        return HF_OK;
    return hf__command_fail(c, CLI_USAGE, "%s: '%s' is not a 64-bit integer", what, text);
}

/* The number alone, or an object. */
static enum hf_status value_print(struct command_ctx *c, int64_t value,
                                  const struct rows_field *more)
{
    struct rows_field fields[3] = {hf__rows_text("id", hf__command_operand(c, 0)),
                                   hf__rows_signed(c->cli, "value", value)};

    if (more)
        fields[2] = *more;
    if (c->database->json || c->database->quiet)
        return hf__command_print(c, fields, more ? 3 : 2);
    fprintf(c->cli->out, "%lld\n", (long long)value);
    return HF_OK;
}

/* ---- add ------------------------------------------------------------------------------------ */

static const struct option_spec add_specs[] = {
    OPT_TEXT("floor", "NUMBER", floor, "Do not go below this number; exit code 4 instead.",
             .heading = "Add"),
    OPT_TEXT("ceiling", "NUMBER", ceiling, "Do not go above this number; exit code 4 instead."),
    OPT_TEXT("request", "ID", request,
             "Id of this add: with the same id it is counted once, however often you repeat it."),
    OPT_FLAG("plain", plain,
             "Do a single unconditional write, which costs least; if its response is lost, it may "
             "have been counted."),
    KEY_SPECS,
    DATABASE_ONE(struct settings),
};

static const struct option_example add_examples[] = {
    {"holdfast counter add visits", "Add one, and print the new value."},
    {"holdfast counter add stock -3 --floor 0",
     "Subtract three if there are at least three; otherwise exit code 4."},
    {"holdfast counter add paid 20 --request \"$invoice\"",
     "Counted once, however often the script runs."},
};

const struct options_table hf__counter_add_options = {
    .name = "counter add",
    .operands = "ID [NUMBER]",
    .about = "Add a number, or 1, to a counter and print its new value. A new counter starts at 0.",
    COMMAND_SPECS(add),
};

static enum hf_status read_bound(struct command_ctx *c, const char *option, struct hf_str text,
                                 int64_t *bound)
{
    if (!text.ptr)
        return HF_OK;
    TRY(read_whole(c, option, text.ptr, bound));
    if (*bound == 0)
        *bound = HF_ZERO;
    return HF_OK;
}

static enum hf_status counter_add_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    settings->number = 1;
    settings->bounds.size = sizeof(settings->bounds);
    if (c->operands_len == 2)
        TRY(read_whole(c, "the number", c->operands[1], &settings->number));
    TRY(read_bound(c, "--floor", settings->floor, &settings->bounds.floor));
    return read_bound(c, "--ceiling", settings->ceiling, &settings->bounds.ceiling);
}

static enum hf_status counter_add(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_counter_key key = key_of(settings, c->operands[0]);
    struct rows_field again;
    bool repeated = false;
    int64_t value = 0;

    if (!settings->request.ptr) {
        TRY(hf_counter_add(c->scope, c->place, key, settings->number, &settings->bounds, &value));
        return value_print(c, value, NULL);
    }
    TRY(hf_counter_add_once(c->scope, c->place, key, settings->request, settings->number,
                            &settings->bounds, &value, &repeated));
    again = hf__rows_bool("again", repeated);
    return value_print(c, value, &again);
}

COMMAND_OF(counter_add, counter_add, COMMAND_SETTINGS(struct settings), .min = 1, .max = 2,
           .place = &counters_place, .table = COMMAND_MAKES, .check = counter_add_check);

/* ---- get ------------------------------------------------------------------------------------ */

static const struct option_spec get_specs[] = {
    KEY_SPECS,
    DATABASE_LIST(struct settings),
};

static const struct option_example get_examples[] = {
    {"holdfast counter get visits", "Its value; 0 for a counter that does not exist."},
    {"holdfast counter get visits sales returns", "Several, one line each, in that order."},
};

const struct options_table hf__counter_get_options = {
    .name = "counter get",
    .operands = "ID...",
    .about = "Print the value of a counter, or of several with their ids. A counter that does not "
             "exist is 0.",
    COMMAND_SPECS(get),
};

static enum hf_status counters_get(struct command_ctx *c)
{
    size_t len = c->operands_len;
    struct hf_counter_key *keys = hf_scope_alloc(c->scope, len * sizeof(*keys));
    struct hf_counter_value *values = hf_scope_alloc(c->scope, len * sizeof(*values));
    struct rows *rows;

    if (!keys || !values)
        return hf__command_fail(c, CLI_FAILED, "out of memory");
    for (size_t i = 0; i < len; i++)
        keys[i] = key_of(c->settings, c->operands[i]);
    memset(values, 0, len * sizeof(*values));
    if (c->place)
        TRY(hf_counter_get_many(c->scope, c->place, keys, len, values));
    rows = hf__command_rows(c, "counters");
    for (size_t i = 0; i < len; i++) {
        struct rows_field found = hf__rows_bool("found", values[i].found);

        found.kind = ROWS_JSON;
        COMMAND_ROW(rows, hf__rows_text("id", keys[i].id),
                    hf__rows_signed(c->cli, "value", values[i].value), found);
    }
    return HF_OK;
}

static enum hf_status counter_get(struct command_ctx *c)
{
    int64_t value = 0;

    if (c->operands_len > 1 || c->database->jsonl)
        return counters_get(c);
    if (c->place)
        TRY(hf_counter_get(c->scope, c->place, key_of(c->settings, c->operands[0]), &value));
    return value_print(c, value, NULL);
}

COMMAND_OF(counter_get, counter_get, COMMAND_SETTINGS(struct settings), .min = 1,
           .max = COMMAND_MANY, .place = &counters_place, .table = COMMAND_LOOKS);

/* ---- set ------------------------------------------------------------------------------------ */

static const struct option_spec set_specs[] = {
    KEY_SPECS,
    DATABASE_ONE(struct settings),
};

static const struct option_example set_examples[] = {
    {"holdfast counter set visits 0", "Reset it and print the old value: no add is lost."},
};

const struct options_table hf__counter_set_options = {
    .name = "counter set",
    .operands = "ID NUMBER",
    .about = "Set a counter, and print the value that it had just before.",
    COMMAND_SPECS(set),
};

static enum hf_status counter_set_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    return read_whole(c, "the number", c->operands[1], &settings->number);
}

static enum hf_status counter_set(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct rows_field before;
    int64_t was = 0;

    TRY(hf_counter_set(c->scope, c->place, key_of(settings, c->operands[0]), settings->number,
                       &was));
    before = hf__rows_signed(c->cli, "was", was);
    return c->database->json ? value_print(c, settings->number, &before)
                             : value_print(c, was, NULL);
}

COMMAND_OF(counter_set, counter_set, COMMAND_SETTINGS(struct settings), .min = 2, .max = 2,
           .place = &counters_place, .table = COMMAND_MAKES, .check = counter_set_check);

/* ---- delete --------------------------------------------------------------------------------- */

static const struct option_spec delete_specs[] = {
    KEY_SPECS,
    DATABASE_ONE(struct settings),
};

static const struct option_example delete_examples[] = {
    {"holdfast counter delete visits", "With its remembered request ids."},
};

const struct options_table hf__counter_delete_options = {
    .name = "counter delete",
    .operands = "ID",
    .about =
        "Delete a counter and its remembered request ids; its value is 0 then. Adds at the same "
        "moment may be lost: use 'counter set ID 0' if every add counts.",
    COMMAND_SPECS(delete),
};

static enum hf_status counter_delete(struct command_ctx *c)
{
    if (c->place)
        TRY(hf_counter_delete(c->scope, c->place, key_of(c->settings, c->operands[0])));
    return COMMAND_JSON(c, hf__rows_text("id", hf__command_operand(c, 0)));
}

COMMAND_OF(counter_delete, counter_delete, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &counters_place, .table = COMMAND_LOOKS);

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    OPT_NUMBER("limit", limit, 0, UINT32_MAX,
               "At most this many; with --json, \"next\" says where to continue."),
    OPT_TEXT("after", "CURSOR", after,
             "Continue a list: the \"next\" that it printed with --json."),
    OPT_TEXT("namespace", "TEXT", space, "Namespace of the counters; \"global\" by default.",
             .letter = 'n', .heading = "Counters"),
    OPT_TEXT("partition", "TEXT", partition, "Partition of the counters, in a partitioned table.",
             .letter = 'p'),
    OPT_TEXT("table", "NAME", table,
             "Table; by default \"keys\", or \"partitioned_keys\" with partitions."),
    DATABASE_LIST(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast counter ls", "All counters, with their values."},
    {"holdfast counter ls --partition ann login",
     "Counters of ann whose ids begin with \"login\"."},
};

const struct options_table hf__counter_ls_options = {
    .name = "counter ls",
    .operands = "[PREFIX]",
    .about =
        "List counters with their values, or those whose ids begin with PREFIX. Reads the whole "
        "table, or one partition of it.",
    COMMAND_SPECS(ls),
};

static enum hf_status counters_list(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_counter_list list;
    struct rows *rows;

    TRY(hf_counter_list(c->scope, c->place,
                        HF_OPTIONS(hf_counter_list_options, .partition = settings->partition,
                                   .prefix = hf__command_operand(c, 0),
                                   .limit = (uint32_t)settings->limit, .after = settings->after),
                        &list));
    rows = hf__command_rows(c, "counters");
    for (size_t i = 0; i < list.counters_len; i++)
        COMMAND_ROW(rows, hf__rows_text("id", list.counters[i].key.id),
                    hf__rows_signed(c->cli, "value", list.counters[i].value));
    c->next = list.next;
    return HF_OK;
}

COMMAND_OF(counter_ls, counters_list, COMMAND_SETTINGS(struct settings), .max = 1,
           .place = &counters_place, .table = COMMAND_LOOKS, .list = "counters");
