/*
 * cli/events/cmd_events.c: reading an event store: `holdfast events read|all|get|caused|correlated|tree`.
 *
 * What is listed is read page by page, each in a scope that is emptied before the next, so that the
 * memory does not grow with it; each has the whole time of --timeout.
 */
#include "base/base.h"
#include "cli/events/events.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"

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
    struct hf_event_stream_key stream; /* read: the operand */
    int64_t since_us, before_us;
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define LIMIT_SPEC                                                                                 \
    OPT_NUMBER("limit", limit, 0, UINT32_MAX,                                                      \
               "At most this many; with --json, \"next\" says where to continue.")
#define OUTPUT_SPECS                                                                               \
    EVENTS_SPECS(struct settings), DATABASE_JSON(struct settings),                                 \
        DATABASE_JSONL(struct settings), DATABASE_QUIET(struct settings),                          \
        DATABASE_SPECS(struct settings)

/* ---- lists ---------------------------------------------------------------------------------- */

/* A list of events that is being printed. */
struct listing {
    struct cli *cli;
    const struct settings *settings;
    struct hf_str id; /* the operand */
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

static enum hf_status list_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    if (settings->after.ptr && settings->since.ptr)
        return hf__command_fail(c, CLI_USAGE, "--after and --since cannot be combined");
    return hf__cli_events_when(c->cli, c->name, "--since", settings->since, &settings->since_us) &&
                   hf__cli_events_when(c->cli, c->name, "--before", settings->before,
                                       &settings->before_us)
               ? HF_OK
               : hf__command_shown(c, CLI_USAGE);
}

typedef enum hf_status list_fn(struct listing *l);
struct list_kind {
    list_fn *print;
};

/* Print what the command lists. */
static enum hf_status list_print(struct command_ctx *c)
{
    const struct list_kind *kind = c->command->data;
    struct listing l = {.cli = c->cli,
                        .settings = c->settings,
                        .id = hf__command_operand(c, 0),
                        .store = c->place,
                        .pages = hf_scope_new(NULL),
                        .mark = hf_scope_mark(c->scope)};
    enum hf_status status = HF_OK;

    if (!l.pages)
        return hf__command_fail(c, CLI_FAILED, "out of memory");
    l.rows = hf__command_rows(c, "events");
    if (kind->print(&l) != HF_OK)
        status = hf__command_shown(c, hf__database_fail_of(c->cli, c->name, l.pages, NULL));
    c->next = l.next;
    hf_scope_free(l.pages);
    return status;
}

#define LIST_COMMAND(operands, check_, kind)                                                       \
    {                                                                                              \
        EVENTS_SETTINGS(struct settings), .min = (operands), .max = (operands),                    \
                                          .place = &hf__cli_events_place, .table = COMMAND_LOOKS,  \
                                          .list = "events", .check = (check_), .body = list_print, \
                                          .data = &(kind)                                          \
    }

/* ---- read ----------------------------------------------------------------------------------- */

static const struct option_spec read_specs[] = {
    {.heading = "Events",
     .kind = OPTION_NUMBER,
     .name = "from",
     .value = "VERSION",
     .max = UINT64_MAX,
     .text = "First version; by default the first of the stream, with --reverse the last.",
     FIELD(from)},
    {.kind = OPTION_NUMBER,
     .name = "to",
     .value = "VERSION",
     .max = UINT64_MAX,
     .text = "Last version.",
     FIELD(to)},
    OPT_TEXT("since", "WHEN", since,
             "Only events that happened at or after this: a time such as 2026-11-15T09:30:00Z, or "
             "how long ago, such as 15m."),
    OPT_TEXT("before", "WHEN", before, "Only events that happened before this."),
    OPT_FLAG("reverse", backward, "Newest first.", .letter = 'r'),
    LIMIT_SPEC,
    OUTPUT_SPECS,
};

static const struct option_example read_examples[] = {
    {"holdfast events read order/7", "All events of order 7."},
    {"holdfast events read order/7 --reverse --limit 1 --json",
     "The last event, with all its fields."},
};

const struct options_table hf__events_read_options = {
    .name = "events read",
    .operands = "STREAM",
    .about =
        "Print the events of a stream, DOMAIN/ID: stream, version, type, time, id and the start "
        "of the payload; with --json or --jsonl all fields, as 'events export' writes them. A "
        "stream that does not exist has no events.",
    COMMAND_SPECS(read),
    .notes = "If the stream was deleted, the exit code is 4.",
};

static enum hf_status list_stream(struct listing *l)
{
    const struct settings *settings = l->settings;
    struct hf_events_read_options o = {.size = sizeof(o),
                                       .from = settings->from,
                                       .to = settings->to,
                                       .from_us = l->settings->since_us,
                                       .until_us = l->settings->before_us,
                                       .backward = settings->backward};
    struct hf_events_page page;

    do {
        enum hf_status status;

        o.limit = page_len(l);
        status = hf_events_read(begin_page(l), l->store, settings->stream, &o, &page);
        if (status != HF_OK)
            return status;
        print_page(l, page.events, page.events_len);
        o.from = page.next;
    } while (o.from && !is_full(l));
    if (o.from)
        l->next = hf_scope_format(l->cli->scope, "%llu", (unsigned long long)o.from);
    return HF_OK;
}

static enum hf_status read_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    if (!hf__cli_events_stream(c->cli, c->name, c->operands[0], &settings->stream))
        return hf__command_shown(c, CLI_USAGE);
    return list_check(c);
}

static const struct list_kind read_kind = {list_stream};

const struct command hf__events_read_command = LIST_COMMAND(1, read_check, read_kind);

/* ---- all ------------------------------------------------------------------------------------ */

static const struct option_spec all_specs[] = {
    OPT_TEXT("after", "POSITION", after,
             "Only events after this position; by default from the first event.",
             .heading = "Events"),
    OPT_TEXT(
        "since", "WHEN", since,
        "Only events that were appended at or after this: a time such as 2026-11-15T09:30:00Z, "
        "or how long ago, such as 15m."),
    OPT_TEXT("until", "POSITION", until, "Last position, included."),
    OPT_TEXT("domain", "TEXT", domain, "Only events of this domain.", .letter = 'd'),
    OPT_TEXT("type", "TEXT", type, "Only events of this type; may end with *.", .letter = 't'),
    OPT_FLAG("archived", archived, "Include events of archived streams."),
    LIMIT_SPEC,
    OUTPUT_SPECS,
};

static const struct option_example all_examples[] = {
    {"holdfast events all --jsonl", "All events in their global order."},
    {"holdfast events all --since 1h --domain order", "Events of orders in the last hour."},
};

const struct options_table hf__events_all_options = {
    .name = "events all",
    .about =
        "Print the events of all streams in their global order. This order never changes and "
        "agrees with the order of every stream: no event appears later before one that was "
        "printed. The command ends after the last stored event; 'events subscribe' waits for new "
        "ones.",
    COMMAND_SPECS(all),
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
                                         .from_us = l->settings->since_us, .until = settings->until,
                                         .domain = settings->domain, .type = settings->type,
                                         .limit = page_len(l), .archived = settings->archived),
                              &reader);

    if (status != HF_OK)
        return status;
    status = print_all(l, reader);
    hf_events_reader_close(reader);
    return status;
}

static const struct list_kind all_kind = {list_all};

const struct command hf__events_all_command = LIST_COMMAND(0, list_check, all_kind);

/* ---- caused, correlated --------------------------------------------------------------------- */

static const struct option_spec related_specs[] = {LIMIT_SPEC, OUTPUT_SPECS};

static const struct option_example caused_examples[] = {
    {"holdfast events caused 01K3X5", "Direct consequences; 'events tree' prints all."},
};

const struct options_table hf__events_caused_options = {
    .name = "events caused",
    .operands = "ID",
    .about = "Print the events that an event caused directly, in the global order.",
    COMMAND_SPECS_OF(related, caused),
};

static const struct option_example correlated_examples[] = {
    {"holdfast events correlated 01K3X5 --jsonl",
     "All events that belong together, in any stream."},
};

const struct options_table hf__events_correlated_options = {
    .name = "events correlated",
    .operands = "ID",
    .about = "Print the events with a correlation id, in the global order; the event with that id "
             "comes first.",
    COMMAND_SPECS_OF(related, correlated),
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

static const struct list_kind caused_kind = {list_caused};

const struct command hf__events_caused_command = LIST_COMMAND(1, NULL, caused_kind);

static const struct list_kind correlated_kind = {list_correlated};

const struct command hf__events_correlated_command = LIST_COMMAND(1, NULL, correlated_kind);

/* ---- get ------------------------------------------------------------------------------------ */

static const struct option_spec get_specs[] = {
    OPT_FLAG("payload", payload, "Print only the payload, byte for byte.", .letter = 'p',
             .heading = "Output"),
    OPT_FLAG("json", database.json, "Print the event as a JSON object."),
    DATABASE_QUIET(struct settings),
    EVENTS_SPECS(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example get_examples[] = {
    {"holdfast events get 01K3X5", "One event, whichever stream it is in."},
    {"holdfast events get 01K3X5 --payload > photo.jpg", "Its payload."},
};

const struct options_table hf__events_get_options = {
    .name = "events get",
    .operands = "ID",
    .about =
        "Print the event with this id. With --json all its fields, as 'events export' writes them.",
    COMMAND_SPECS(get),
};

static enum hf_status get_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (settings->payload && c->database->json)
        return hf__command_fail(c, CLI_USAGE, "--payload and --json cannot be combined");
    return HF_OK;
}

static enum hf_status event_get(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_stored_event event;

    TRY(hf_events_get(c->scope, c->place, hf__command_operand(c, 0), &event));
    if (!settings->payload)
        return hf__cli_events_one(c, &event);
    fwrite(event.payload.ptr, 1, event.payload.len, c->cli->out);
    return HF_OK;
}

COMMAND_OF(events_get, event_get, EVENTS_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY, .check = get_check);

/* ---- tree ----------------------------------------------------------------------------------- */

static const struct option_spec tree_specs[] = {
    OPT_NUMBER("depth", depth, 1, 1000,
               "Depth limit: a deeper tree is considered a cycle, with exit code 4.",
               .fallback = "100"),
    EVENTS_SPECS(struct settings),
    DATABASE_ONE(struct settings),
};

static const struct option_example tree_examples[] = {
    {"holdfast events tree 01K3X5", "An event and all its consequences."},
};

const struct options_table hf__events_tree_options = {
    .name = "events tree",
    .operands = "ID",
    .about = "Print an event and all events that follow from it by causation, in any stream: type, "
             "stream and version, id. With --json nested objects of \"event\" and \"children\".",
    COMMAND_SPECS(tree),
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

static enum hf_status tree_print(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_event_tree tree;

    TRY(hf_events_tree(c->scope, c->place, hf__command_operand(c, 0), (uint32_t)settings->depth,
                       &tree));
    if (c->database->quiet)
        return HF_OK;
    if (!c->database->json) {
        print_tree(c->cli, &tree, 0);
        return HF_OK;
    }
    TRY(print_tree_json(c->cli, &tree));
    fputc('\n', c->cli->out);
    return HF_OK;
}

COMMAND_OF(events_tree, tree_print, EVENTS_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY);
