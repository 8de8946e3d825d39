/*
 * cli/mcp/cmd_mcp.c: `holdfast mcp`: a server of the Model Context Protocol on standard input and output.
 *
 * Messages are JSON-RPC 2.0, a line each. The main thread reads them, and answers what needs no database. A
 * worker runs tools, one after the other, so that a cancellation is read while one runs.
 *
 *     2024-11-05   tools, results as text
 *     2025-03-26   annotations of tools; several messages in an array
 *     2025-06-18   structuredContent; no arrays any more
 *     2025-11-25   nothing that matters here
 *
 * What always holds:
 *
 *  (1) Nothing but messages is written to what was standard output: everything else that this process prints
 *      goes to standard error.
 *  (2) Every request gets one answer, unless it was canceled; a notification gets none.
 *  (3) At the end of the input all requests are answered before the program ends.
 */
#include "base/assert_held.h"
#include "base/base.h"
#include "cli/frame/process/line_reader.h"
#include "cli/mcp/mcp.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MCP_LINE_MAX = 8 * 1024 * 1024 }; /* bytes of a message */
enum { MCP_QUEUE_MAX = 256 };            /* requests that wait */
enum { MCP_BATCH_MAX = 100 };            /* messages in an array */

/* Codes of JSON-RPC. */
enum {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_NO_METHOD = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_BUSY = -32000,
    RPC_NO_RESOURCE = -32002 /* of the Model Context Protocol */
};

/* The versions of the protocol; the last is offered to clients of other ones. */
enum mcp_version { MCP_2024_11_05, MCP_2025_03_26, MCP_2025_06_18, MCP_2025_11_25, MCP_VERSIONS };
static const char *const version_names[MCP_VERSIONS] = {"2024-11-05", "2025-03-26", "2025-06-18",
                                                        "2025-11-25"};

static const struct option_spec mcp_specs[] = {
    OPT_FLAG_IN(struct mcp_settings, "write", write,
                "Offer tools that change data. Without it nothing can be changed, and no table or "
                "directory is created."),
    OPT_LIST_IN(
        struct mcp_settings, "table", "NAME", tables,
        "Offer this table alone: the tools for tables and items, and no others. May be given "
        "several times."),
    OPT_NUMBER_IN(struct mcp_settings, "max-items", max_items, 1, MCP_MAX_ITEMS_MAX,
                  "Elements of a list that a tool returns at most. A list with more elements has "
                  "\"next\", which says how to go on, or \"more\": true.",
                  .fallback = "100"),
    OPT_SIZE_IN(struct mcp_settings, "max-bytes", max_bytes, MCP_MAX_BYTES_MIN, MCP_MAX_BYTES_MAX,
                "Size of a result at most. A larger one is an error that says what to do.",
                .fallback = "256KiB"),
    OPT_TEXT_IN(struct mcp_settings, "blobs", "URL", blobs,
                "Blob store for values larger than an item: dir:PATH or s3://BUCKET.",
                .env = "HOLDFAST_BLOBS"),
    DATABASE_SPECS_WITH(struct mcp_settings, "Time limit for the database, for each call."),
};

static const struct option_example mcp_examples[] = {
    {"claude mcp add shop -- holdfast mcp --db http://127.0.0.1:8000",
     "Register it with a client, which starts it."},
    {"holdfast mcp --db @shop --table orders --table customers", "Read two tables, nothing else."},
    {"holdfast mcp --db embedded:shop.db --write", "A directory that may be changed."},
};

const struct options_table hf__mcp_options = {
    .name = "mcp",
    .about =
        "Serve a database to language models: a server of the Model Context Protocol on standard "
        "input and output. It ends when its input ends.\n\n"
        "Tools read tables and items, run SELECT statements, and look at locks, keys, counters, "
        "run-once jobs, limits, records, the outbox and the event store. With --write they also "
        "change them. A database error is the result of the tool, so that the model can react.",
    COMMAND_SPECS(mcp),
    .notes =
        "A directory (embedded:DIR) is opened for each call, so that other programs can use it "
        "between calls.",
};

/* ---- state ---------------------------------------------------------------------------------- */

/* Answers to messages that came in one array, which are sent in one. */
struct rpc_batch {
    size_t missing; /* answers */
    bool open;      /* more messages of it are to be read */
    char *ptr;
    size_t len;
    FILE *out;
    size_t count;
};

struct rpc_request {
    struct hf_scope *scope; /* of all that belongs to it */
    struct hf_scope *call;  /* that the tool runs in, and that a cancellation cancels; NULL: none */
    struct hf_str id;       /* as it was written, such as 7 or "a" */
    const struct mcp_tool *tool; /* of tools/call; NULL: it is about resources */
    const struct json_node *arguments;
    struct hf_str uri;       /* of resources/read; absent: resources/list */
    struct rpc_batch *batch; /* NULL: it came alone */
    bool structured;         /* its version of the protocol has structuredContent */
    bool canceled;
};

struct mcp_server {
    struct command_ctx *c;
    const struct mcp_settings *settings;
    enum mcp_version version; /* the main thread's */
    FILE *out;                /* what was standard output; guarded by `mutex` */
    pthread_t worker;
    pthread_mutex_t mutex; /* guards what follows, batches, and `canceled` of requests */
    pthread_cond_t wake;
    struct rpc_request *queue[MCP_QUEUE_MAX]; /* a ring */
    size_t first, len;
    struct rpc_request *running; /* NULL: none */
    bool ended;                  /* there will be no more */
    bool broken;                 /* nobody reads the answers */
};

/* With the mutex held. */
static void server_check(struct mcp_server *server)
{
    ASSERT_HELD(&server->mutex);
    assert(server->len <= MCP_QUEUE_MAX && server->first < MCP_QUEUE_MAX);
    assert(server->out);
}

/* ---- answers -------------------------------------------------------------------------------- */

/* The mutex is held. */
static void answer_send(struct mcp_server *server, struct hf_str line)
{
    server_check(server);
    assert(line.len > 0 && !memchr(line.ptr, '\n', line.len)); /* an answer is one line */
    if (fwrite(line.ptr, 1, line.len, server->out) != line.len || fputc('\n', server->out) == EOF ||
        fflush(server->out) != 0)
        server->broken = true;
}

/* A batch whose last answer is there is sent. The mutex is held. */
static void batch_finish(struct mcp_server *server, struct rpc_batch *batch)
{
    ASSERT_HELD(&server->mutex);
    if (batch->missing || batch->open)
        return;
    if (batch->out) {
        fputc(']', batch->out);
        if (fclose(batch->out) == 0 && batch->count)
            answer_send(server, hf_str_of(batch->ptr, batch->len));
        free(batch->ptr);
    }
    free(batch);
}

static void answer_put(struct mcp_server *server, struct rpc_batch *batch, struct hf_str line)
{
    pthread_mutex_lock(&server->mutex);
    if (!batch)
        answer_send(server, line);
    else if (batch->out) {
        fprintf(batch->out, "%s%.*s", batch->count ? "," : "[", HF_FMT(line));
        batch->count++;
    }
    pthread_mutex_unlock(&server->mutex);
}

/* `result` is JSON. */
static void answer_result(struct mcp_server *server, struct hf_scope *s, struct rpc_batch *batch,
                          struct hf_str id, struct hf_str result)
{
    struct hf_str line;

    assert(id.ptr);
    if (!result.ptr)
        line =
            hf_scope_format(s,
                            "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":%d,\"message\":"
                            "\"out of memory\"}}",
                            HF_FMT(id), RPC_INTERNAL);
    else
        line = hf_scope_format(s, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%.*s}", HF_FMT(id),
                               HF_FMT(result));
    if (line.ptr)
        answer_put(server, batch, line);
}

static void answer_error(struct mcp_server *server, struct hf_scope *s, struct rpc_batch *batch,
                         struct hf_str id, int code, const char *format, ...) HF_PRINTF(6, 7);

static void answer_error(struct mcp_server *server, struct hf_scope *s, struct rpc_batch *batch,
                         struct hf_str id, int code, const char *format, ...)
{
    struct hf_str message, line;
    va_list args;

    va_start(args, format);
    message = hf__cli_json_of_text(s, hf__scope_format_args(s, format, args));
    va_end(args);
    line = hf_scope_format(
        s, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":%d,\"message\":%.*s}}",
        HF_FMT(id.ptr ? id : HF_STR("null")), code, HF_FMT(message));
    if (line.ptr)
        answer_put(server, batch, line);
}

/* ---- the worker ----------------------------------------------------------------------------- */

/* The request is done, and forgotten; its batch may be complete by that. */
static void request_end(struct mcp_server *server, struct rpc_request *request)
{
    struct rpc_batch *batch = request->batch;

    assert(request->scope);
    pthread_mutex_lock(&server->mutex);
    if (server->running == request)
        server->running = NULL;
    if (batch) {
        assert(batch->missing > 0);
        batch->missing--;
        batch_finish(server, batch);
    }
    pthread_mutex_unlock(&server->mutex);
    hf_scope_free(request->call);
    hf_scope_free(request->scope);
}

static struct rpc_request *request_take(struct mcp_server *server)
{
    struct rpc_request *request = NULL;

    pthread_mutex_lock(&server->mutex);
    while (!server->len && !server->ended)
        pthread_cond_wait(&server->wake, &server->mutex);
    if (server->len) {
        server_check(server);
        assert(!server->running);
        request = server->queue[server->first];
        server->first = (server->first + 1) % MCP_QUEUE_MAX;
        server->len--;
        server->running = request;
    }
    pthread_mutex_unlock(&server->mutex);
    return request;
}

static bool is_canceled(struct mcp_server *server, const struct rpc_request *request)
{
    bool canceled;

    pthread_mutex_lock(&server->mutex);
    canceled = request->canceled;
    pthread_mutex_unlock(&server->mutex);
    return canceled;
}

/* Run what it asks for, and answer unless it was canceled. (2) */
static void request_run(struct mcp_server *server, struct rpc_request *request)
{
    const struct cli *cli = server->c->cli;
    struct hf_str result, error = {0};

    if (request->tool)
        result = hf__mcp_call(cli, server->settings, request->tool, request->arguments,
                              request->structured, request->call);
    else if (request->uri.ptr)
        result = hf__mcp_resource_read(cli, server->settings, request->uri, request->call, &error);
    else
        result = hf__mcp_resources_list(cli, server->settings, request->call, &error);
    if (is_canceled(server, request))
        return;
    if (!result.ptr && error.ptr)
        answer_error(server, request->scope, request->batch, request->id,
                     request->uri.ptr ? RPC_NO_RESOURCE : RPC_INTERNAL, "%.*s", HF_FMT(error));
    else
        answer_result(server, request->scope, request->batch, request->id, result);
}

static void *worker_run(void *user)
{
    struct mcp_server *server = user;
    struct rpc_request *request;

    while ((request = request_take(server))) {
        if (!is_canceled(server, request))
            request_run(server, request);
        request_end(server, request);
    }
    return NULL;
}

/* ---- methods -------------------------------------------------------------------------------- */

static void session_initialize(struct mcp_server *server, struct rpc_request *request,
                               const struct json_node *params)
{
    const struct json_node *wanted = hf__cli_json_member(params, "protocolVersion");
    enum mcp_version version = MCP_VERSIONS - 1;
    struct hf_str result;

    if (!wanted || wanted->kind != JSON_STRING) {
        answer_error(server, request->scope, request->batch, request->id, RPC_INVALID_PARAMS,
                     "protocolVersion: expected a string");
        return;
    }
    for (size_t i = 0; i < MCP_VERSIONS; i++)
        if (hf_str_equal(wanted->text, hf_str_from(version_names[i])))
            version = (enum mcp_version)i;
    server->version = version;
    result = hf_scope_format(
        request->scope,
        "{\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{\"listChanged\":false},\"resources\":{}},"
        "\"serverInfo\":{\"name\":\"holdfast\",\"version\":\"%s\"},\"instructions\":\"A database with "
        "DynamoDB's data model. Call list_tables and describe_table first: queries need the names "
        "and types of keys.%s\"}",
        version_names[version], hf_version(),
        server->settings->write ? "" : " Nothing can be changed.");
    answer_result(server, request->scope, request->batch, request->id, result);
}

static void tools_list(struct mcp_server *server, struct rpc_request *request)
{
    struct json_text text;
    bool more = false;

    if (hf__cli_json_text_begin(&text)) {
        fputs("{\"tools\":[", text.out);
        for (size_t i = 0; i < hf__mcp_tools_len; i++) {
            if (!hf__mcp_tool_offered(server->settings, &hf__mcp_tools[i]))
                continue;
            if (more)
                fputc(',', text.out);
            hf__mcp_tool_write(text.out, server->settings, &hf__mcp_tools[i],
                               server->version >= MCP_2025_03_26);
            more = true;
        }
        fputs("]}", text.out);
    }
    answer_result(server, request->scope, request->batch, request->id,
                  hf__cli_json_text_end(&text, request->scope));
}

/* Hand a request to the worker. False: it was refused and answered. */
static bool request_queue(struct mcp_server *server, struct rpc_request *request)
{
    bool full;

    request->call = hf_scope_new(NULL);
    if (!request->call) {
        answer_error(server, request->scope, request->batch, request->id, RPC_INTERNAL,
                     "out of memory");
        return false;
    }
    pthread_mutex_lock(&server->mutex);
    full = server->len == MCP_QUEUE_MAX;
    if (!full) {
        server->queue[(server->first + server->len++) % MCP_QUEUE_MAX] = request;
        pthread_cond_signal(&server->wake);
    }
    pthread_mutex_unlock(&server->mutex);
    if (full)
        answer_error(server, request->scope, request->batch, request->id, RPC_BUSY,
                     "more than %d calls are waiting", (int)MCP_QUEUE_MAX);
    return !full;
}

static bool tools_call(struct mcp_server *server, struct rpc_request *request,
                       const struct json_node *params)
{
    const struct json_node *name = hf__cli_json_member(params, "name");
    const struct json_node *arguments = hf__cli_json_member(params, "arguments");

    request->tool = name && name->kind == JSON_STRING ? hf__mcp_tool_find(name->text) : NULL;
    if (!request->tool || !hf__mcp_tool_offered(server->settings, request->tool)) {
        bool hidden = request->tool && request->tool->writes && !server->settings->write;

        answer_error(server, request->scope, request->batch, request->id, RPC_INVALID_PARAMS,
                     "Unknown tool: %.*s%s",
                     HF_FMT(name && name->kind == JSON_STRING ? name->text : HF_STR("(no name)")),
                     hidden ? " (this server was started without --write)" : "");
        return false;
    }
    if (arguments && arguments->kind != JSON_OBJECT) {
        answer_error(server, request->scope, request->batch, request->id, RPC_INVALID_PARAMS,
                     "arguments: expected an object");
        return false;
    }
    request->arguments = arguments;
    request->structured = server->version >= MCP_2025_06_18;
    return request_queue(server, request);
}

static bool resources_ask(struct mcp_server *server, struct rpc_request *request,
                          const struct json_node *params, bool read)
{
    const struct json_node *uri = hf__cli_json_member(params, "uri");

    if (read && (!uri || uri->kind != JSON_STRING)) {
        answer_error(server, request->scope, request->batch, request->id, RPC_INVALID_PARAMS,
                     "uri: expected a string");
        return false;
    }
    request->uri = read ? uri->text : (struct hf_str){0};
    return request_queue(server, request);
}

/* Two ids are equal as they were written. */
static void request_cancel(struct mcp_server *server, const struct json_node *params)
{
    const struct json_node *id = hf__cli_json_member(params, "requestId");

    if (!id)
        return;
    pthread_mutex_lock(&server->mutex);
    for (size_t i = 0; i < server->len; i++) {
        struct rpc_request *waiting = server->queue[(server->first + i) % MCP_QUEUE_MAX];

        if (hf_str_equal(waiting->id, id->raw))
            waiting->canceled = true;
    }
    if (server->running && hf_str_equal(server->running->id, id->raw)) {
        server->running->canceled = true;
        hf_scope_cancel(server->running->call);
    }
    pthread_mutex_unlock(&server->mutex);
}

/* ---- messages ------------------------------------------------------------------------------- */

/* True: the worker has the request now. */
static bool request_handle(struct mcp_server *server, struct rpc_request *request,
                           struct hf_str method, const struct json_node *params)
{
    if (hf_str_equal(method, HF_STR("tools/call")))
        return tools_call(server, request, params);
    if (hf_str_equal(method, HF_STR("resources/list")))
        return resources_ask(server, request, params, false);
    if (hf_str_equal(method, HF_STR("resources/read")))
        return resources_ask(server, request, params, true);
    if (hf_str_equal(method, HF_STR("initialize")))
        session_initialize(server, request, params);
    else if (hf_str_equal(method, HF_STR("tools/list")))
        tools_list(server, request);
    else if (hf_str_equal(method, HF_STR("ping")))
        answer_result(server, request->scope, request->batch, request->id, HF_STR("{}"));
    else
        answer_error(server, request->scope, request->batch, request->id, RPC_NO_METHOD,
                     "Method not found: %.*s", HF_FMT(method));
    return false;
}

/* `message` is in `s`, which belongs to this function from now on. */
static void message_handle(struct mcp_server *server, struct hf_scope *s,
                           const struct json_node *message, struct rpc_batch *batch)
{
    const struct json_node *rpc = hf__cli_json_member(message, "jsonrpc");
    const struct json_node *id = hf__cli_json_member(message, "id");
    const struct json_node *method = hf__cli_json_member(message, "method");
    const struct json_node *params = hf__cli_json_member(message, "params");
    bool answers = hf__cli_json_member(message, "result") || hf__cli_json_member(message, "error");
    struct rpc_request *request;

    if (message->kind == JSON_OBJECT && !method && answers) { /* to a request that we never made */
        hf_scope_free(s);
        return;
    }
    if (message->kind != JSON_OBJECT || !rpc || !hf_str_equal(rpc->text, HF_STR("2.0")) ||
        !method || method->kind != JSON_STRING ||
        (id && id->kind != JSON_STRING && id->kind != JSON_NUMBER)) {
        answer_error(server, s, batch,
                     id && id->kind != JSON_OBJECT && id->kind != JSON_ARRAY ? id->raw
                                                                             : HF_STR("null"),
                     RPC_INVALID_REQUEST, "Invalid request: not a message of JSON-RPC 2.0");
        hf_scope_free(s);
        return;
    }
    if (!id) {
        if (hf_str_equal(method->text, HF_STR("notifications/cancelled")))
            request_cancel(server, params);
        hf_scope_free(s);
        return;
    }
    request = hf_scope_alloc(s, sizeof(*request));
    if (!request) {
        answer_error(server, s, batch, id->raw, RPC_INTERNAL, "out of memory");
        hf_scope_free(s);
        return;
    }
    *request = (struct rpc_request){.scope = s, .id = id->raw, .batch = batch};
    if (batch) {
        pthread_mutex_lock(&server->mutex);
        batch->missing++;
        pthread_mutex_unlock(&server->mutex);
    }
    if (!request_handle(server, request, method->text, params))
        request_end(server, request);
}

static struct rpc_batch *batch_begin(void)
{
    struct rpc_batch *batch = calloc(1, sizeof(*batch));

    if (!batch)
        return NULL;
    batch->out = open_memstream(&batch->ptr, &batch->len);
    batch->open = true;
    return batch;
}

/* Messages in an array, which one version of the protocol has. */
static void array_handle(struct mcp_server *server, struct hf_scope *s,
                         const struct json_node *array)
{
    struct rpc_batch *batch;

    if (server->version != MCP_2025_03_26 || !array->len || array->len > MCP_BATCH_MAX) {
        answer_error(server, s, NULL, HF_STR("null"), RPC_INVALID_REQUEST,
                     server->version != MCP_2025_03_26
                         ? "Invalid request: this version of the protocol has no batches"
                         : "Invalid request: a batch has 1 to %d messages",
                     (int)MCP_BATCH_MAX);
        return;
    }
    batch = batch_begin();
    if (!batch)
        return;
    for (const struct json_node *at = array->first; at; at = at->next) {
        struct hf_scope *own = hf_scope_new(NULL);
        struct hf_str copy = own ? hf_scope_copy(own, at->raw) : (struct hf_str){0}, error = {0};
        const struct json_node *message = copy.ptr ? hf__cli_json_read(own, copy, &error) : NULL;

        if (message)
            message_handle(server, own, message, batch);
        else
            hf_scope_free(own);
    }
    pthread_mutex_lock(&server->mutex);
    batch->open = false;
    batch_finish(server, batch);
    pthread_mutex_unlock(&server->mutex);
}

static void line_handle(struct mcp_server *server, struct hf_str line)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str copy = s ? hf_scope_copy(s, line) : (struct hf_str){0}, error = {0};
    const struct json_node *message = copy.ptr ? hf__cli_json_read(s, copy, &error) : NULL;

    if (message && message->kind != JSON_ARRAY) {
        message_handle(server, s, message, NULL);
        return;
    }
    if (message)
        array_handle(server, s, message);
    else if (s)
        answer_error(server, s, NULL, HF_STR("null"), RPC_PARSE_ERROR, "Parse error: %.*s",
                     HF_FMT(error));
    hf_scope_free(s);
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool is_blank(struct hf_str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.ptr[i] != ' ' && line.ptr[i] != '\t')
            return false;
    return true;
}

/* Leave out a line that is too long. True: its end has to be read yet, and is the next line. */
static bool line_skip(struct line_reader *reader)
{
    const char *end = memchr(reader->ptr + reader->from, '\n', reader->to - reader->from);

    reader->from = end ? (size_t)(end - reader->ptr) + 1 : reader->to;
    return !end;
}

static bool is_broken(struct mcp_server *server)
{
    bool broken;

    pthread_mutex_lock(&server->mutex);
    broken = server->broken;
    pthread_mutex_unlock(&server->mutex);
    return broken;
}

static enum hf_status lines_read(struct mcp_server *server, struct line_reader *reader)
{
    struct hf_scope *s = server->c->scope;
    bool skipping = false;

    while (!is_broken(server)) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        struct hf_str line;
        enum hf_status status = hf__line_reader_next(s, reader, &line);

        if (status == HF_LIMIT) {
            if (!skipping)
                answer_error(server, s, NULL, HF_STR("null"), RPC_INVALID_REQUEST,
                             "Invalid request: a message has at most %d bytes", (int)MCP_LINE_MAX);
            skipping = line_skip(reader);
            hf_scope_ok(s);
        } else if (status != HF_OK || !line.ptr)
            return status;
        else if (skipping)
            skipping = false;
        else if (!is_blank(line))
            line_handle(server, line);
        hf_scope_rewind(s, mark);
    }
    return HF_OK;
}

/* (1) What was standard output, and nothing for standard input. */
static bool streams_take(struct mcp_server *server, int *input)
{
    int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3),
        nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool fine;

    *input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    fine = output >= 0 && nothing >= 0 && *input >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 &&
           dup2(nothing, STDIN_FILENO) >= 0;
    if (nothing > STDERR_FILENO)
        close(nothing);
    server->out = fine ? fdopen(output, "w") : NULL;
    if (!server->out && output >= 0)
        close(output);
    return server->out != NULL;
}

static enum hf_status mcp_run(struct command_ctx *c)
{
    struct mcp_server server = {.c = c,
                                .settings = c->settings,
                                .version = MCP_VERSIONS - 1,
                                .mutex = PTHREAD_MUTEX_INITIALIZER,
                                .wake = PTHREAD_COND_INITIALIZER};
    struct line_reader reader = {.fd = -1, .path = "standard input", .max = MCP_LINE_MAX};
    enum hf_status status;

    if (isatty(STDIN_FILENO) == 1)
        hf__cli_notice(c->cli, c->name,
                       "this is for programs: it reads JSON-RPC from standard input, "
                       "until that ends (Ctrl-D)");
    if (!streams_take(&server, &reader.fd))
        return hf__command_fail(c, CLI_FAILED, "cannot use standard input and output: %s",
                                strerror(errno));
    if (pthread_create(&server.worker, NULL, worker_run, &server) != 0)
        return hf__command_fail(c, CLI_FAILED, "cannot start a thread");
    status = lines_read(&server, &reader);
    pthread_mutex_lock(&server.mutex);
    server.ended = true;
    pthread_cond_signal(&server.wake);
    pthread_mutex_unlock(&server.mutex);
    pthread_join(server.worker, NULL); /* (3) */
    hf__line_reader_close(&reader);
    if (fclose(server.out) != 0 || server.broken)
        return hf__command_fail(c, CLI_FAILED, "the client does not read the answers");
    return status;
}

static enum hf_status mcp_check(struct command_ctx *c)
{
    c->without_db = true; /* each call opens it */
    return HF_OK;
}

const struct command hf__mcp_command = {COMMAND_SETTINGS(struct mcp_settings), .check = mcp_check,
                                        .body = mcp_run};
