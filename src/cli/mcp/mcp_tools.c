/*
 * cli/mcp/mcp_tools.c: the tools, as data. See mcp.h.
 *
 * Descriptions are read by language models: they say what a tool does, what it needs, and how to go on.
 */
#include "base/base.h"
#include "cli/mcp/mcp.h"

#include <string.h>

#define PLAIN "Items are plain JSON; sets are {\"$set\":[...]}, bytes {\"$binary\":\"base64\"}."
#define LIST_NEXT "A result with \"next\" goes on: pass that value as "

#define TABLE                                                                                      \
    {                                                                                              \
        .name = "table", .kind = MCP_TEXT, .required = true, .text = "Name of the table."          \
    }
#define KEY                                                                                        \
    {                                                                                              \
        .name = "key", .kind = MCP_KEY, .required = true,                                          \
        .text = "The key: its hash key, and its range key if the table has one."                   \
    }
#define OF_TABLE                                                                                   \
    {                                                                                              \
        .name = "table", .kind = MCP_TEXT, .option = "--table",                                    \
        .text = "The table, if it is not the usual one of this pattern."                           \
    }
#define OF_NAMESPACE                                                                               \
    {                                                                                              \
        .name = "namespace", .kind = MCP_TEXT, .option = "--namespace",                            \
        .text = "Namespace; \"global\" by default."                                                \
    }
#define OPERAND(name_, text_)                                                                      \
    {                                                                                              \
        .name = name_, .kind = MCP_TEXT, .required = true, .text = text_                           \
    }
#define OPTION(name_, kind_, option_, text_)                                                       \
    {                                                                                              \
        .name = name_, .kind = kind_, .option = option_, .text = text_                             \
    }
#define VALUES_AND_NAMES                                                                           \
    OPTION("values", MCP_OBJECT, "--values",                                                       \
           "Values of the placeholders in expressions: {\":min\":5}."),                            \
        OPTION("names", MCP_OBJECT, "--names",                                                     \
               "Attribute names of the placeholders in expressions: {\"#s\":\"status\"}.")
#define CONDITION                                                                                  \
    OPTION("condition", MCP_TEXT, "--if",                                                          \
           "A condition expression that has to hold, such as version = :v.")
#define PREFIX                                                                                     \
    {                                                                                              \
        .name = "prefix", .kind = MCP_TEXT, .text = "Only those that begin with this text."        \
    }
#define PARAMETERS(list) .parameters = list, .len = sizeof(list) / sizeof((list)[0])

/* ---- tables and items ----------------------------------------------------------------------- */

static const struct mcp_parameter table_parameters[] = {TABLE};
static const struct mcp_parameter stats_parameters[] = {
    TABLE, OPTION("exact", MCP_FLAG, "--exact",
                  "Read the whole table: exact counts, largest partitions, attributes and types.")};
static const struct mcp_parameter get_parameters[] = {
    TABLE, KEY,
    OPTION("attributes", MCP_TEXT, "--attributes",
           "Only these attributes, with commas between them."),
    OPTION("consistent", MCP_FLAG, "--consistent",
           "See every write that was acknowledged before.")};
static const struct mcp_parameter get_many_parameters[] = {
    TABLE,
    {.name = "keys",
     .kind = MCP_KEYS,
     .required = true,
     .text = "Up to 25 keys: [[\"ann\",1],[\"ben\",2]]."},
    OPTION("attributes", MCP_TEXT, "--attributes",
           "Only these attributes, with commas between them.")};
static const struct mcp_parameter query_parameters[] = {
    TABLE,
    {.name = "key", .kind = MCP_TEXT, .text = "The hash key. A number is written as a string."},
    {.name = "range",
     .kind = MCP_TEXT,
     .text = "A condition on the range key: 5, >=5, <5, 2..9, or text* for a prefix."},
    OPTION("where", MCP_TEXT, "--where", "A key condition expression, in place of key and range."),
    OPTION("index", MCP_TEXT, "--index", "Read this index of the table."),
    OPTION("filter", MCP_TEXT, "--filter", "A filter expression: only items for which it holds."),
    VALUES_AND_NAMES,
    OPTION("attributes", MCP_TEXT, "--attributes",
           "Only these attributes, with commas between them."),
    OPTION("reverse", MCP_FLAG, "--reverse", "From the largest range key down."),
    OPTION("count", MCP_FLAG, "--count", "Return how many items there are, not the items."),
    OPTION("start", MCP_TEXT, "--start",
           "Start after this key: the \"next\" of the result before.")};
static const struct mcp_parameter scan_parameters[] = {
    TABLE,
    OPTION("index", MCP_TEXT, "--index", "Read this index of the table."),
    OPTION("filter", MCP_TEXT, "--filter", "A filter expression: only items for which it holds."),
    VALUES_AND_NAMES,
    OPTION("attributes", MCP_TEXT, "--attributes",
           "Only these attributes, with commas between them."),
    OPTION("count", MCP_FLAG, "--count", "Return how many items there are, not the items."),
    OPTION("start", MCP_TEXT, "--start",
           "Start after this key: the \"next\" of the result before.")};
static const struct mcp_parameter sql_parameters[] = {
    OPERAND("statement", "The statement, such as SELECT * FROM orders WHERE customer = ?"),
    {.name = "parameters", .kind = MCP_VALUES, .text = "Values for the question marks, in order."}};
static const struct mcp_parameter call_parameters[] = {
    OPERAND("operation",
            "An operation of DynamoDB, such as DescribeTimeToLive or DescribeStream; or a "
            "method of a pattern, such as lock.list: bind.methods lists those with their "
            "arguments."),
    {.name = "request",
     .kind = MCP_OBJECT,
     .text =
         "Its request, as DynamoDB's API has it: items are {\"id\":{\"S\":\"7\"}}. Of a method its "
         "arguments."}};
static const struct mcp_parameter put_parameters[] = {
    TABLE,
    {.name = "item", .kind = MCP_OBJECT, .required = true, .text = "The whole item. " PLAIN},
    OPTION("if_missing", MCP_FLAG, "--if-missing", "Only if there is no item with that key."),
    CONDITION,
    VALUES_AND_NAMES};
static const struct mcp_parameter update_parameters[] = {
    TABLE,
    KEY,
    {.name = "update",
     .kind = MCP_TEXT,
     .option = "--update",
     .required = true,
     .text = "An update expression: SET #s = :s ADD version :one REMOVE note"},
    OPTION("if_there", MCP_FLAG, "--if-there", "Only if the item exists."),
    CONDITION,
    VALUES_AND_NAMES};
static const struct mcp_parameter delete_parameters[] = {TABLE, KEY,
                                                         OPTION("if_there", MCP_FLAG, "--if-there",
                                                                "Only if the item exists."),
                                                         CONDITION, VALUES_AND_NAMES};
static const struct mcp_parameter create_parameters[] = {
    TABLE,
    {.name = "keys",
     .kind = MCP_TEXT,
     .option = "--key",
     .required = true,
     .text = "The key attributes and their types, S, N or B: customer:S,day:N."},
    OPTION("indexes", MCP_TEXTS, "--index", "Global indexes: by_day=day:N."),
    OPTION("ttl", MCP_TEXT, "--ttl",
           "The attribute that holds the time at which an item expires.")};

/* ---- patterns ------------------------------------------------------------------------------- */

static const struct mcp_parameter lock_ls_parameters[] = {
    PREFIX, OPTION("all", MCP_FLAG, "--all", "Include locks that nobody holds."), OF_TABLE};
static const struct mcp_parameter lock_parameters[] = {OPERAND("name", "Name of the lock."),
                                                       OF_TABLE};
static const struct mcp_parameter lock_break_parameters[] = {
    OPERAND("name", "Name of the lock."),
    OPTION("id", MCP_TEXT, "--id", "Take it from this holder alone; by default from all."),
    OF_TABLE};
static const struct mcp_parameter kv_parameters[] = {OPERAND("id", "The key."), OF_NAMESPACE,
                                                     OF_TABLE};
static const struct mcp_parameter kv_ls_parameters[] = {
    PREFIX, OF_NAMESPACE, OPTION("all_namespaces", MCP_FLAG, "--all-namespaces", "All namespaces."),
    OPTION("after", MCP_TEXT, "--after", "Continue a list: the \"next\" of the result before."),
    OF_TABLE};
static const struct mcp_parameter kv_set_parameters[] = {
    OPERAND("id", "The key."),
    OPERAND("value", "The value, as text."),
    {.name = "type",
     .kind = MCP_TEXT,
     .option = "--type",
     .words = "text number json",
     .text = "What the value is; text by default."},
    OPTION("ttl", MCP_TEXT, "--ttl", "How long it lives, such as 1h."),
    OF_NAMESPACE,
    OF_TABLE};
static const struct mcp_parameter counter_parameters[] = {
    {.name = "ids", .kind = MCP_TEXTS, .required = true, .text = "Ids of counters."},
    OF_NAMESPACE,
    OF_TABLE};
static const struct mcp_parameter counter_ls_parameters[] = {
    PREFIX, OF_NAMESPACE,
    OPTION("after", MCP_TEXT, "--after", "Continue a list: the \"next\" of the result before."),
    OF_TABLE};
static const struct mcp_parameter counter_change_parameters[] = {
    OPERAND("id", "Id of the counter."),
    {.name = "number", .kind = MCP_NUMBER, .required = true, .text = "The number."},
    OF_NAMESPACE,
    OF_TABLE};
static const struct mcp_parameter once_parameters[] = {OPERAND("key", "Key of the job."),
                                                       OPTION("user", MCP_TEXT, "--user",
                                                              "User; \"global\" by default."),
                                                       OF_TABLE};
static const struct mcp_parameter once_ls_parameters[] = {
    PREFIX, OPTION("user", MCP_TEXT, "--user", "User; \"global\" by default."), OF_TABLE};
static const struct mcp_parameter limit_parameters[] = {
    OPERAND("name", "Name of the limit, such as login/ann."),
    {.name = "calls",
     .kind = MCP_NUMBER,
     .option = "--limit",
     .required = true,
     .text = "How many calls are allowed per window."},
    OPTION("window", MCP_TEXT, "--window", "Length of a window, such as 15m; 1m by default."),
    {.name = "kind",
     .kind = MCP_TEXT,
     .option = "--kind",
     .words = "attempts fixed sliding rate",
     .text = "How calls are counted."},
    OF_TABLE};
static const struct mcp_parameter limit_reset_parameters[] = {OPERAND("name", "Name of the limit."),
                                                              OF_TABLE};
static const struct mcp_parameter records_ls_parameters[] = {{.name = "state",
                                                              .kind = MCP_TEXT,
                                                              .option = "--state",
                                                              .words =
                                                                  "unprocessed processed failed",
                                                              .text = "Which records."},
                                                             OF_TABLE};
static const struct mcp_parameter of_table_parameters[] = {OF_TABLE};
static const struct mcp_parameter outbox_ls_parameters[] = {
    {.name = "state",
     .kind = MCP_TEXT,
     .option = "--state",
     .words = "pending failed history",
     .text = "Which events; pending by default."},
    OPTION("type", MCP_TEXT, "--type", "Only events of this type; may end with *."),
    OPTION("key", MCP_TEXT, "--key", "Only events with this order key."),
    OF_TABLE};
static const struct mcp_parameter outbox_failed_parameters[] = {
    OPTION("type", MCP_TEXT, "--type", "Only events of this type; may end with *."),
    OPTION("cause", MCP_TEXT, "--cause", "Only events with this cause of failure."), OF_TABLE};
static const struct mcp_parameter outbox_change_parameters[] = {
    {.name = "ids", .kind = MCP_TEXTS, .text = "Ids of dead letters."},
    OPTION("all", MCP_FLAG, "--all", "All of them, or all of a type or cause."),
    OPTION("type", MCP_TEXT, "--type", "With all: only events of this type; may end with *."),
    OPTION("cause", MCP_TEXT, "--cause", "With all: only those with this cause of failure."),
    OF_TABLE};
static const struct mcp_parameter outbox_emit_parameters[] = {
    OPERAND("type", "Type of the event, such as order.placed."),
    {.name = "payload", .kind = MCP_ANY, .required = true, .text = "The payload, any JSON."},
    OPTION("key", MCP_TEXT, "--key", "Order key: events with the same one are delivered in order."),
    OF_TABLE};
static const struct mcp_parameter stream_parameters[] = {
    OPERAND("stream", "The stream: a domain and an id, such as order/7."), OF_TABLE};
static const struct mcp_parameter events_read_parameters[] = {
    OPERAND("stream", "The stream: a domain and an id, such as order/7."),
    OPTION("from", MCP_NUMBER, "--from", "First version; the \"next\" of the result before."),
    OPTION("reverse", MCP_FLAG, "--reverse", "Newest first."), OF_TABLE};
static const struct mcp_parameter events_all_parameters[] = {
    OPTION("after", MCP_TEXT, "--after",
           "Only events after this position: the \"next\" of the result "
           "before."),
    OPTION("domain", MCP_TEXT, "--domain", "Only events of this domain."),
    OPTION("type", MCP_TEXT, "--type", "Only events of this type; may end with *."), OF_TABLE};
static const struct mcp_parameter event_parameters[] = {OPERAND("id", "Id of the event."),
                                                        OF_TABLE};
static const struct mcp_parameter events_ls_parameters[] = {
    {.name = "domain", .kind = MCP_TEXT, .text = "Only streams of this domain."}, OF_TABLE};
static const struct mcp_parameter parked_parameters[] = {
    OPERAND("name", "Name of the subscription, or of the group."),
    OPTION("group", MCP_FLAG, "--group", "The name is that of a consumer group."), OF_TABLE};
static const struct mcp_parameter append_parameters[] = {
    OPERAND("stream", "The stream: a domain and an id, such as order/7."),
    OPERAND("type", "Type of the event."),
    {.name = "payload", .kind = MCP_ANY, .required = true, .text = "The payload, any JSON."},
    OPTION("expect", MCP_TEXT, "--expect",
           "What the stream has to be like: none, any, or the number of its last version."),
    OF_TABLE};

const struct mcp_tool hf__mcp_tools[] = {
    {.name = "list_tables", .command = "table ls", .by_table = true, .text = "List the tables."},
    {.name = "describe_table",
     .command = "table show",
     .by_table = true,
     .text = "Describe a table as DynamoDB's DescribeTable does: keys, indexes, size.",
     PARAMETERS(table_parameters)},
    {.name = "table_stats",
     .command = "table stats",
     .by_table = true,
     .text = "How many items a table and its indexes have, and how large they are.",
     PARAMETERS(stats_parameters)},
    {.name = "get_item",
     .command = "item get",
     .by_table = true,
     .text = "Get one item by its key. " PLAIN,
     PARAMETERS(get_parameters)},
    {.name = "batch_get_items",
     .command = "item get",
     .by_table = true,
     .each = true,
     .text =
         "Get up to 25 items by their keys, one after the other. The result has an item for each "
         "key, in their order; null for one that is missing. " PLAIN,
     PARAMETERS(get_many_parameters)},
    {.name = "query",
     .command = "query",
     .by_table = true,
     .limited = true,
     .text = "Get the items with one hash key, in the order of their range keys. " PLAIN
             " " LIST_NEXT "\"start\".",
     PARAMETERS(query_parameters)},
    {.name = "scan",
     .command = "scan",
     .by_table = true,
     .limited = true,
     .text = "Read a table from its beginning, in no order. Prefer query. " PLAIN " " LIST_NEXT
             "\"start\".",
     PARAMETERS(scan_parameters)},
    {.name = "execute_statement",
     .command = "sql",
     .limited = true,
     .cut = true,
     .statement = true,
     .text =
         "Run a statement of PartiQL, DynamoDB's SQL. A SELECT whose WHERE has no hash key reads "
         "the whole table. " PLAIN,
     PARAMETERS(sql_parameters)},
    {.name = "call_operation",
     .command = "call",
     .guarded = true,
     .destroys = true,
     .text =
         "Call any operation of DynamoDB by its name, with DynamoDB's JSON: for what no other tool "
         "does.",
     PARAMETERS(call_parameters)},
    {.name = "put_item",
     .command = "item put",
     .by_table = true,
     .writes = true,
     .destroys = true,
     .idempotent = true,
     .text = "Store an item; one with the same key is replaced.",
     PARAMETERS(put_parameters)},
    {.name = "update_item",
     .command = "item update",
     .by_table = true,
     .writes = true,
     .destroys = true,
     .text =
         "Change attributes of an item, which is created if it is missing. Returns the new item.",
     PARAMETERS(update_parameters)},
    {.name = "delete_item",
     .command = "item delete",
     .by_table = true,
     .writes = true,
     .destroys = true,
     .idempotent = true,
     .text = "Delete an item.",
     PARAMETERS(delete_parameters)},
    {.name = "create_table",
     .command = "table create",
     .by_table = true,
     .writes = true,
     .text = "Create a table, billed per request.",
     PARAMETERS(create_parameters)},
    {.name = "list_locks",
     .command = "lock ls",
     .limited = true,
     .cut = true,
     .text = "List the locks that are held, and by whom.",
     PARAMETERS(lock_ls_parameters)},
    {.name = "show_lock",
     .command = "lock show",
     .text = "Show a lock: who holds it, since when, its fence.",
     PARAMETERS(lock_parameters)},
    {.name = "break_lock",
     .command = "lock break",
     .writes = true,
     .destroys = true,
     .text = "Take a lock away from its holder, who may still be working.",
     PARAMETERS(lock_break_parameters)},
    {.name = "get_key",
     .command = "kv get",
     .text = "Get the value of a key of the key-value store.",
     PARAMETERS(kv_parameters)},
    {.name = "list_keys",
     .command = "kv ls",
     .limited = true,
     .text = "List keys and values of the key-value store. " LIST_NEXT "\"after\".",
     PARAMETERS(kv_ls_parameters)},
    {.name = "set_key",
     .command = "kv set",
     .writes = true,
     .destroys = true,
     .idempotent = true,
     .text = "Set the value of a key.",
     PARAMETERS(kv_set_parameters)},
    {.name = "delete_key",
     .command = "kv delete",
     .writes = true,
     .destroys = true,
     .idempotent = true,
     .text = "Delete a key.",
     PARAMETERS(kv_parameters)},
    {.name = "get_counters",
     .command = "counter get",
     .text = "Get the values of counters.",
     PARAMETERS(counter_parameters)},
    {.name = "list_counters",
     .command = "counter ls",
     .limited = true,
     .text = "List counters and their values. " LIST_NEXT "\"after\".",
     PARAMETERS(counter_ls_parameters)},
    {.name = "add_to_counter",
     .command = "counter add",
     .writes = true,
     .text = "Add a number, which may be negative, to a counter.",
     PARAMETERS(counter_change_parameters)},
    {.name = "set_counter",
     .command = "counter set",
     .writes = true,
     .destroys = true,
     .idempotent = true,
     .text = "Set a counter.",
     PARAMETERS(counter_change_parameters)},
    {.name = "show_once",
     .command = "once show",
     .text = "Show whether a run-once job is done.",
     PARAMETERS(once_parameters)},
    {.name = "list_once",
     .command = "once ls",
     .limited = true,
     .cut = true,
     .text = "List run-once jobs and their states.",
     PARAMETERS(once_ls_parameters)},
    {.name = "clear_once",
     .command = "once clear",
     .writes = true,
     .destroys = true,
     .idempotent = true,
     .text = "Forget a run-once job, so that it can run again.",
     PARAMETERS(once_parameters)},
    {.name = "peek_limit",
     .command = "limit peek",
     .text = "Show whether a call would be allowed by a limit, without counting it.",
     PARAMETERS(limit_parameters)},
    {.name = "reset_limit",
     .command = "limit reset",
     .writes = true,
     .destroys = true,
     .idempotent = true,
     .text = "Reset a limit: forget the calls that it has counted.",
     PARAMETERS(limit_reset_parameters)},
    {.name = "list_records",
     .command = "records ls",
     .limited = true,
     .cut = true,
     .text = "List records that workers process.",
     PARAMETERS(records_ls_parameters)},
    {.name = "retry_records",
     .command = "records retry",
     .writes = true,
     .text = "Let failed records be processed again.",
     PARAMETERS(of_table_parameters)},
    {.name = "outbox_stats",
     .command = "outbox stats",
     .text = "The backlog, lag and failures of an outbox.",
     PARAMETERS(of_table_parameters)},
    {.name = "list_outbox",
     .command = "outbox ls",
     .limited = true,
     .cut = true,
     .text = "List events of an outbox.",
     PARAMETERS(outbox_ls_parameters)},
    {.name = "list_dead_letters",
     .command = "outbox failed",
     .limited = true,
     .cut = true,
     .text = "List dead letters: events of an outbox that failed permanently, and why.",
     PARAMETERS(outbox_failed_parameters)},
    {.name = "retry_dead_letters",
     .command = "outbox retry",
     .writes = true,
     .text = "Deliver dead letters again: those of `ids`, or `all`.",
     PARAMETERS(outbox_change_parameters)},
    {.name = "discard_dead_letters",
     .command = "outbox discard",
     .writes = true,
     .destroys = true,
     .idempotent = true,
     .text = "Delete dead letters: those of `ids`, or `all`.",
     PARAMETERS(outbox_change_parameters)},
    {.name = "emit_event",
     .command = "outbox emit",
     .writes = true,
     .text = "Store an event in an outbox, for delivery.",
     PARAMETERS(outbox_emit_parameters)},
    {.name = "read_stream",
     .command = "events read",
     .limited = true,
     .text = "Read the events of a stream of the event store. " LIST_NEXT "\"from\".",
     PARAMETERS(events_read_parameters)},
    {.name = "read_all_events",
     .command = "events all",
     .limited = true,
     .text = "Read the events of all streams, in their global order. " LIST_NEXT "\"after\".",
     PARAMETERS(events_all_parameters)},
    {.name = "get_event",
     .command = "events get",
     .text = "Get an event by its id.",
     PARAMETERS(event_parameters)},
    {.name = "list_streams",
     .command = "events ls",
     .limited = true,
     .cut = true,
     .text = "List the streams of the event store.",
     PARAMETERS(events_ls_parameters)},
    {.name = "stream_info",
     .command = "events info",
     .text = "Show the state of a stream: its version, limits, whether it is deleted.",
     PARAMETERS(stream_parameters)},
    {.name = "list_parked_events",
     .command = "events parked",
     .limited = true,
     .cut = true,
     .text = "List parked events: events that a subscription or group could not handle.",
     PARAMETERS(parked_parameters)},
    {.name = "append_event",
     .command = "events append",
     .writes = true,
     .text = "Append an event to a stream. It can never be changed.",
     PARAMETERS(append_parameters)},
};
const size_t hf__mcp_tools_len = ARRAY_LEN(hf__mcp_tools);

/* ---- which are there ------------------------------------------------------------------------ */

bool hf__mcp_tool_offered(const struct mcp_settings *settings, const struct mcp_tool *tool)
{
    if (tool->writes && !settings->write)
        return false;
    return tool->by_table || !settings->tables.len;
}

const struct mcp_tool *hf__mcp_tool_find(struct hf_str name)
{
    for (size_t i = 0; i < hf__mcp_tools_len; i++)
        if (hf_str_equal(name, hf_str_from(hf__mcp_tools[i].name)))
            return &hf__mcp_tools[i];
    return NULL;
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static void write_text(FILE *out, const char *text)
{
    hf__cli_json_write_text(out, hf_str_from(text));
}

static void write_words(FILE *out, const char *words)
{
    fputs(",\"enum\":[", out);
    for (const char *word = words; *word;) {
        size_t len = strcspn(word, " ");

        fprintf(out, "%s\"%.*s\"", word == words ? "" : ",", (int)len, word);
        word += len;
        word += *word == ' ';
    }
    fputc(']', out);
}

static const char key_schema[] =
    "\"type\":\"array\",\"minItems\":1,\"maxItems\":2,\"items\":{\"type\":[\"string\",\"number\"]}";
static const char keys_schema[] =
    "\"type\":\"array\",\"minItems\":1,\"maxItems\":25,\"items\":{\"type\":\"array\",\"minItems\":1,"
    "\"maxItems\":2,\"items\":{\"type\":[\"string\",\"number\"]}}";

static void write_parameter(FILE *out, const struct mcp_parameter *parameter)
{
    static const char *const types[] = {
        [MCP_TEXT] = "\"type\":\"string\"",
        [MCP_NUMBER] = "\"type\":\"integer\"",
        [MCP_FLAG] = "\"type\":\"boolean\"",
        [MCP_OBJECT] = "\"type\":\"object\"",
        [MCP_ANY] = "\"type\":[\"object\",\"array\",\"string\",\"number\",\"boolean\",\"null\"]",
        [MCP_KEY] = key_schema,
        [MCP_KEYS] = keys_schema,
        [MCP_TEXTS] = "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
        [MCP_VALUES] = "\"type\":\"array\""};

    write_text(out, parameter->name);
    fprintf(out, ":{%s,\"description\":", types[parameter->kind]);
    write_text(out, parameter->text);
    if (parameter->words)
        write_words(out, parameter->words);
    fputc('}', out);
}

static void write_schema(FILE *out, const struct mcp_settings *settings,
                         const struct mcp_tool *tool)
{
    bool more = false;

    fputs("{\"type\":\"object\",\"properties\":{", out);
    for (size_t i = 0; i < tool->len; i++) {
        if (i)
            fputc(',', out);
        write_parameter(out, &tool->parameters[i]);
    }
    if (tool->limited)
        fprintf(out,
                "%s\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":%llu,"
                "\"description\":\"At most this many.%s\"}",
                tool->len ? "," : "", (unsigned long long)settings->max_items,
                tool->cut ? " If there are more, the result has \\\"more\\\": true." : "");
    fputs("},\"required\":[", out);
    for (size_t i = 0; i < tool->len; i++)
        if (tool->parameters[i].required) {
            if (more)
                fputc(',', out);
            write_text(out, tool->parameters[i].name);
            more = true;
        }
    fputs("],\"additionalProperties\":false}", out);
}

void hf__mcp_tool_write(FILE *out, const struct mcp_settings *settings, const struct mcp_tool *tool,
                        bool annotations)
{
    bool writes = tool->writes || ((tool->statement || tool->guarded) && settings->write);

    fputs("{\"name\":", out);
    write_text(out, tool->name);
    fputs(",\"description\":", out);
    if (tool->statement && !settings->write)
        hf__cli_json_write_text(
            out, HF_STR("Run a SELECT of PartiQL, DynamoDB's SQL; other statements are refused. "
                        "Without a hash key in its WHERE it reads the whole table. " PLAIN));
    else if (tool->guarded && !settings->write)
        hf__cli_json_write_text(
            out,
            HF_STR(
                "Call any operation of DynamoDB that reads by its name, with DynamoDB's JSON: for "
                "what no other tool does. Those that write are refused."));
    else
        write_text(out, tool->text);
    fputs(",\"inputSchema\":", out);
    write_schema(out, settings, tool);
    if (annotations)
        fprintf(
            out,
            ",\"annotations\":{\"readOnlyHint\":%s,\"destructiveHint\":%s,\"idempotentHint\":%s,"
            "\"openWorldHint\":false}",
            writes ? "false" : "true",
            writes && (tool->destroys || tool->statement) ? "true" : "false",
            !writes || tool->idempotent ? "true" : "false");
    fputc('}', out);
}
