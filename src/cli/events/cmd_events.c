/*
 * cli/events/cmd_events.c: reading an event store: `holdfast events read|all|get|caused|correlated|tree`.
 *
 * What is listed is read page by page, each in a scope that is emptied before the next, so that the
 * memory does not grow with it; each has the whole time of --timeout.
 */
#include "cli/events/events.h"
#include "cli/frame/commands.h"
#include "cli/frame/json.h"

enum { PAGE = 500 };

struct settings {
    struct database_settings database;
    struct events_settings store;
    uint64_t from, to, limit, depth;
    struct hf_str since, before;
    struct hf_str after, until, domain, type;
    bool backward;
    bool archived;
    bool payload;
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define LIMIT_SPEC                                                                                 \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "limit", .value = "NUMBER", .max = UINT32_MAX,              \
        .text = "At most so many; --json tells where to go on.", FIELD(limit)                      \
    }
#define OUTPUT_SPECS                                                                               \
    EVENTS_SPECS(struct settings), DATABASE_JSON(struct settings),                                 \
        DATABASE_JSONL(struct settings), DATABASE_QUIET(struct settings),                          \
        DATABASE_SPECS(struct settings)

/* ---- lists ---------------------------------------------------------------------------------- */

enum operand { OPERAND_NONE, OPERAND_STREAM, OPERAND_ID };

/* A list of events that is being printed. */
struct listing {
    struct cli *cli;
    const struct settings *settings;
    struct hf_stream_key stream; /* what the operand was */
    struct hf_str id;
    int64_t since_us, before_us;
    struct hf_events *store;
    struct hf_scope *pages; /* where they are read; emptied before each */
    struct rows *rows;
    struct hf_scope_mark mark; /* of cli->scope: behind it are the texts of rows */
    struct hf_str next;        /* where to go on */
};

/* How many the next page may have. */
static uint32_t page_len(const struct listing *l)
{
    uint64_t left = l->settings->limit ? l->settings->limit - l->rows->count : PAGE;

    return (uint32_t)(left < PAGE ? left : PAGE);
}

static bool is_full(const struct listing *l)
{
    return (l->settings->limit && l->rows->count >= l->settings->limit) || ferror(l->cli->out);
}

/* Print a page, up to the limit; the events are not needed any more then. */
static void print_page(const struct listing *l, const struct hf_stored_event *events, size_t len)
{
    for (size_t i = 0; i < len && !is_full(l); i++) {
        hf__cli_events_add(l->rows, &events[i]);
        hf_scope_rewind(l->cli->scope, l->mark);
    }
}

/* The scope for the next page. */
static struct hf_scope *begin_page(const struct listing *l)
{
    hf_scope_reset(l->pages);
    hf_scope_timeout_ms(l->pages, (uint32_t)l->settings->database.timeout_ms);
    return l->pages;
}

static bool read_operands(struct listing *l, const char *command, enum operand operand,
                          const struct options *options)
{
    const struct settings *settings = l->settings;

    if (operand == OPERAND_ID)
        l->id = hf_str_from(options->operands[0]);
    if (settings->after.ptr && settings->since.ptr) {
        hf__cli_fail(l->cli, command, CLI_USAGE, "--after and --since exclude each other");
        return false;
    }
    return (operand != OPERAND_STREAM ||
            hf__cli_events_stream(l->cli, command, options->operands[0], &l->stream)) &&
           hf__cli_events_when(l->cli, command, "--since", settings->since, &l->since_us) &&
           hf__cli_events_when(l->cli, command, "--before", settings->before, &l->before_us);
}

/* Read the arguments, open the store, and print what `list` does. */
static int run_list(struct cli *cli, const struct options_table *table, size_t args_len,
                    const char *const *args, enum operand operand,
                    enum hf_status (*list)(struct listing *l))
{
    struct settings settings = {.limit = 0};
    struct listing l = {.cli = cli, .settings = &settings};
    size_t operands = operand != OPERAND_NONE;
    struct events_place place;
    struct options options;
    int ends;

    if (!hf__cli_operands(cli, table, args_len, args, operands, operands, &settings, &options,
                          &ends))
        return ends;
    l.rows = hf_scope_alloc(cli->scope, sizeof(*l.rows));
    if (!l.rows)
        return hf__cli_fail(cli, table->name, CLI_FAILED, "out of memory");
    if (!read_operands(&l, table->name, operand, &options))
        return CLI_USAGE;
    settings.database.absent_ok = true;
    if (!hf__cli_events_open(cli, table->name, &settings.database, &settings.store, NULL, &place,
                             &ends))
        return hf__rows_none(cli, &settings.database, "events", ends);
    l.store = place.store;
    l.pages = hf_scope_new(NULL);
    l.mark = hf_scope_mark(cli->scope);
    if (!l.pages) {
        ends = hf__cli_fail(cli, table->name, CLI_FAILED, "out of memory");
    } else {
        hf__rows_begin(l.rows, cli, &settings.database, "events");
        ends = CLI_OK;
        if (list(&l) != HF_OK)
            ends = hf__database_fail_of(cli, table->name, l.pages, NULL);
        ends = hf__rows_end(l.rows, l.next, ends);
    }
    hf_scope_free(l.pages);
    hf__cli_events_close(&place);
    return ends;
}

/* ---- read ----------------------------------------------------------------------------------- */

static const struct option_spec read_specs[] = {
    {.heading = "Which events",
     .kind = OPTION_NUMBER,
     .name = "from",
     .value = "VERSION",
     .max = UINT64_MAX,
     .text = "From this version on; by default from the first, or from the last with --reverse.",
     FIELD(from)},
    {.kind = OPTION_NUMBER,
     .name = "to",
     .value = "VERSION",
     .max = UINT64_MAX,
     .text = "Up to this version.",
     FIELD(to)},
    {.kind = OPTION_TEXT,
     .name = "since",
     .value = "WHEN",
     .text = "Those that happened then or later: a time such as 2026-11-15T09:30:00Z, or how long "
             "ago, such as 15m.",
     FIELD(since)},
    {.kind = OPTION_TEXT,
     .name = "before",
     .value = "WHEN",
     .text = "Those that happened before.",
     FIELD(before)},
    {.kind = OPTION_FLAG,
     .letter = 'r',
     .name = "reverse",
     .text = "Newest first.",
     FIELD(backward)},
    LIMIT_SPEC,
    OUTPUT_SPECS,
};

static const struct option_example read_examples[] = {
    {"holdfast events read order/7", "All that has happened to order 7."},
    {"holdfast events read order/7 --reverse --limit 1 --json", "The last event, whole."},
};

const struct options_table hf__events_read_options = {
    .name = "events read",
    .operands = "STREAM",
    .about = "Print the events of a stream, which is DOMAIN/ID: stream, version, type, time, id, "
             "and the beginning of the payload; with --json or --jsonl all of each, as 'events "
             "export' has them. A stream that was never written has none.",
    .specs = read_specs,
    .len = COMMAND_LEN(read_specs),
    .examples = read_examples,
    .examples_len = COMMAND_LEN(read_examples),
    .notes = "The exit code is 4 when the stream was deleted.",
};

static enum hf_status list_stream(struct listing *l)
{
    const struct settings *settings = l->settings;
    struct hf_events_read_options o = {.size = sizeof(o),
                                       .from = settings->from,
                                       .to = settings->to,
                                       .from_us = l->since_us,
                                       .until_us = l->before_us,
                                       .backward = settings->backward};
    struct hf_events_page page;

    do {
        enum hf_status status;

        o.limit = page_len(l);
        status = hf_events_read(begin_page(l), l->store, l->stream, &o, &page);
        if (status != HF_OK)
            return status;
        print_page(l, page.events, page.events_len);
        o.from = page.next;
    } while (o.from && !is_full(l));
    if (o.from)
        l->next = hf_scope_format(l->cli->scope, "%llu", (unsigned long long)o.from);
    return HF_OK;
}

int hf__events_read_run(struct cli *cli, size_t args_len, const char *const *args)
{
    return run_list(cli, &hf__events_read_options, args_len, args, OPERAND_STREAM, list_stream);
}

/* ---- all ------------------------------------------------------------------------------------ */

static const struct option_spec all_specs[] = {
    {.heading = "Which events",
     .kind = OPTION_TEXT,
     .name = "after",
     .value = "POSITION",
     .text = "Those behind this position; from the first event by default.",
     FIELD(after)},
    {.kind = OPTION_TEXT,
     .name = "since",
     .value = "WHEN",
     .text = "Those that were appended then or later: a time such as 2026-11-15T09:30:00Z, or how "
             "long ago, such as 15m.",
     FIELD(since)},
    {.kind = OPTION_TEXT,
     .name = "until",
     .value = "POSITION",
     .text = "Up to this position, and with it.",
     FIELD(until)},
    {.kind = OPTION_TEXT,
     .letter = 'd',
     .name = "domain",
     .value = "TEXT",
     .text = "Only of this domain.",
     FIELD(domain)},
    {.kind = OPTION_TEXT,
     .letter = 't',
     .name = "type",
     .value = "TEXT",
     .text = "Only of this type; may end with *.",
     FIELD(type)},
    {.kind = OPTION_FLAG,
     .name = "archived",
     .text = "With those of archived streams.",
     FIELD(archived)},
    LIMIT_SPEC,
    OUTPUT_SPECS,
};

static const struct option_example all_examples[] = {
    {"holdfast events all --jsonl", "Everything that is there, in its order."},
    {"holdfast events all --since 1h --domain order", "What has happened to orders lately."},
};

const struct options_table hf__events_all_options = {
    .name = "events all",
    .about = "Print the events of all streams in the order of all, which never changes and never "
             "contradicts that of a stream. No event shows up later in front of one that was "
             "printed. It ends with the last one that is there; 'events subscribe' goes on.",
    .specs = all_specs,
    .len = COMMAND_LEN(all_specs),
    .examples = all_examples,
    .examples_len = COMMAND_LEN(all_examples),
};

static enum hf_status print_all(struct listing *l, struct hf_events_reader *reader)
{
    const struct hf_stored_event *events;
    size_t len;

    do {
        enum hf_status status = hf_events_reader_next(begin_page(l), reader, &events, &len);
        size_t wanted = page_len(l);

        if (status != HF_OK)
            return status;
        print_page(l, events, len);
        if (l->settings->limit && len > wanted) {
            /* The reader is further than what was printed. */
            l->next = hf_scope_copy(l->cli->scope, events[wanted - 1].position);
            return HF_OK;
        }
    } while (len && !is_full(l));
    if (hf_events_reader_position(reader).len)
        l->next = hf_scope_copy(l->cli->scope, hf_events_reader_position(reader));
    return HF_OK;
}

static enum hf_status list_all(struct listing *l)
{
    const struct settings *settings = l->settings;
    struct hf_events_reader *reader;
    enum hf_status status =
        hf_events_reader_open(begin_page(l), l->store,
                              HF_OPTIONS(hf_events_all_options, .after = settings->after,
                                         .from_us = l->since_us, .until = settings->until,
                                         .domain = settings->domain, .type = settings->type,
                                         .limit = page_len(l), .archived = settings->archived),
                              &reader);

    if (status != HF_OK)
        return status;
    status = print_all(l, reader);
    hf_events_reader_close(reader);
    return status;
}

int hf__events_all_run(struct cli *cli, size_t args_len, const char *const *args)
{
    return run_list(cli, &hf__events_all_options, args_len, args, OPERAND_NONE, list_all);
}

/* ---- caused, correlated --------------------------------------------------------------------- */

static const struct option_spec related_specs[] = {LIMIT_SPEC, OUTPUT_SPECS};

static const struct option_example caused_examples[] = {
    {"holdfast events caused 01K3X5", "What followed from it at once; 'events tree' has all."},
};

const struct options_table hf__events_caused_options = {
    .name = "events caused",
    .operands = "ID",
    .about = "Print the events that an event led to directly, in the order of all.",
    .specs = related_specs,
    .len = COMMAND_LEN(related_specs),
    .examples = caused_examples,
    .examples_len = COMMAND_LEN(caused_examples),
};

static const struct option_example correlated_examples[] = {
    {"holdfast events correlated 01K3X5 --jsonl", "All that belongs to it, in whatever stream."},
};

const struct options_table hf__events_correlated_options = {
    .name = "events correlated",
    .operands = "ID",
    .about = "Print the events that have a correlation, in the order of all: that with the id "
             "itself first.",
    .specs = related_specs,
    .len = COMMAND_LEN(related_specs),
    .examples = correlated_examples,
    .examples_len = COMMAND_LEN(correlated_examples),
};

static enum hf_status list_caused(struct listing *l)
{
    const struct hf_stored_event *events;
    enum hf_status status;
    size_t len;

    status = hf_events_caused_by(begin_page(l), l->store, l->id, &events, &len);
    if (status == HF_OK)
        print_page(l, events, len);
    return status;
}

static enum hf_status list_correlated(struct listing *l)
{
    const struct hf_stored_event *events;
    enum hf_status status;
    size_t len;

    status = hf_events_correlated(begin_page(l), l->store, l->id, &events, &len);
    if (status == HF_OK)
        print_page(l, events, len);
    return status;
}

int hf__events_caused_run(struct cli *cli, size_t args_len, const char *const *args)
{
    return run_list(cli, &hf__events_caused_options, args_len, args, OPERAND_ID, list_caused);
}

int hf__events_correlated_run(struct cli *cli, size_t args_len, const char *const *args)
{
    return run_list(cli, &hf__events_correlated_options, args_len, args, OPERAND_ID,
                    list_correlated);
}

/* ---- get ------------------------------------------------------------------------------------ */

static const struct option_spec get_specs[] = {
    {.heading = "Output",
     .kind = OPTION_FLAG,
     .letter = 'p',
     .name = "payload",
     .text = "Print the payload alone, byte for byte.",
     FIELD(payload)},
    {.kind = OPTION_FLAG, .name = "json", .text = "Print a JSON object.", FIELD(database.json)},
    DATABASE_QUIET(struct settings),
    EVENTS_SPECS(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example get_examples[] = {
    {"holdfast events get 01K3X5", "One event, whichever stream it is in."},
    {"holdfast events get 01K3X5 --payload > photo.jpg", "What it carries."},
};

const struct options_table hf__events_get_options = {
    .name = "events get",
    .operands = "ID",
    .about = "Print the event with this id. With --json all of it, as 'events export' has it.",
    .specs = get_specs,
    .len = COMMAND_LEN(get_specs),
    .examples = get_examples,
    .examples_len = COMMAND_LEN(get_examples),
};

int hf__events_get_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.limit = 0};
    struct hf_stored_event event;
    struct events_place place;
    struct options options;
    int ends;

    if (!hf__cli_operands(cli, &hf__events_get_options, args_len, args, 1, 1, &settings, &options,
                          &ends))
        return ends;
    if (settings.payload && settings.database.json)
        return hf__cli_fail(cli, "events get", CLI_USAGE,
                            "--payload and --json exclude each other");
    if (!hf__cli_events_open(cli, "events get", &settings.database, &settings.store, NULL, &place,
                             &ends))
        return ends;
    if (hf_events_get(cli->scope, place.store, hf_str_from(options.operands[0]), &event) != HF_OK) {
        ends = hf__database_fail(cli, "events get");
    } else if (settings.payload) {
        fwrite(event.payload.ptr, 1, event.payload.len, cli->out);
        ends = hf__cli_flushed(cli, CLI_OK);
    } else {
        ends = hf__cli_events_one(cli, &settings.database, &event);
    }
    hf__cli_events_close(&place);
    return ends;
}

/* ---- tree ----------------------------------------------------------------------------------- */

static const struct option_spec tree_specs[] = {
    {.kind = OPTION_NUMBER,
     .name = "depth",
     .value = "NUMBER",
     .min = 1,
     .max = 1000,
     .fallback = "100",
     .text = "A tree that is deeper is taken for a circle: exit code 4.",
     FIELD(depth)},
    EVENTS_SPECS(struct settings),
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example tree_examples[] = {
    {"holdfast events tree 01K3X5", "An event, and what all followed from it."},
};

const struct options_table hf__events_tree_options = {
    .name = "events tree",
    .operands = "ID",
    .about = "Print an event and all that follows from it by causation, in whatever streams: type, "
             "stream and version, id. With --json objects of \"event\" and \"children\".",
    .specs = tree_specs,
    .len = COMMAND_LEN(tree_specs),
    .examples = tree_examples,
    .examples_len = COMMAND_LEN(tree_examples),
};

static void print_tree(struct cli *cli, const struct hf_event_tree *tree, int indent)
{
    struct hf_str stream = hf__cli_events_stream_text(cli->scope, tree->event.stream);

    fprintf(cli->out, "%*s", indent, "");
    hf__rows_print(cli->out, tree->event.type);
    fputs("  ", cli->out);
    hf__rows_print(cli->out, stream);
    fprintf(cli->out, " %llu  ", (unsigned long long)tree->event.version);
    hf__rows_print(cli->out, tree->event.id);
    fputc('\n', cli->out);
    for (size_t i = 0; i < tree->children_len; i++)
        print_tree(cli, &tree->children[i], indent + 2);
}

static enum hf_status print_tree_json(struct cli *cli, const struct hf_event_tree *tree)
{
    struct hf_str json;
    enum hf_status status = hf_event_to_json(cli->scope, &tree->event, &json);

    if (status != HF_OK)
        return status;
    fputs("{\"event\":", cli->out);
    fwrite(json.ptr, 1, json.len, cli->out);
    fputs(",\"children\":[", cli->out);
    for (size_t i = 0; i < tree->children_len && status == HF_OK; i++) {
        fputs(i ? "," : "", cli->out);
        status = print_tree_json(cli, &tree->children[i]);
    }
    fputs("]}", cli->out);
    return status;
}

static int tell_tree(struct cli *cli, const struct settings *settings,
                     const struct hf_event_tree *tree)
{
    if (settings->database.quiet)
        return CLI_OK;
    if (!settings->database.json) {
        print_tree(cli, tree, 0);
        return hf__cli_flushed(cli, CLI_OK);
    }
    if (print_tree_json(cli, tree) != HF_OK)
        return hf__database_fail(cli, "events tree");
    fputc('\n', cli->out);
    return hf__cli_flushed(cli, CLI_OK);
}

int hf__events_tree_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.limit = 0};
    struct hf_event_tree tree;
    struct events_place place;
    struct options options;
    int ends;

    if (!hf__cli_operands(cli, &hf__events_tree_options, args_len, args, 1, 1, &settings, &options,
                          &ends) ||
        !hf__cli_events_open(cli, "events tree", &settings.database, &settings.store, NULL, &place,
                             &ends))
        return ends;
    if (hf_events_tree(cli->scope, place.store, hf_str_from(options.operands[0]),
                       (uint32_t)settings.depth, &tree) != HF_OK)
        ends = hf__database_fail(cli, "events tree");
    else
        ends = tell_tree(cli, &settings, &tree);
    hf__cli_events_close(&place);
    return ends;
}
